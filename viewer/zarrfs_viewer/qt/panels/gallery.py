"""The images of a dataset to choose among, by thumbnails: the series of a conversion, the fields of a well."""

from __future__ import annotations

from functools import partial

from PyQt6.QtCore import QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QIcon, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QListView, QListWidget, QListWidgetItem, QWidget

from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.qt.panels.thumbnails import SIDE, Thumbnails, placeholder
from zarrfs_viewer.qt.support.plain_text import plain, plain_name, tooltip
from zarrfs_viewer.qt.support.worker import Worker

__all__ = ["Gallery"]

PATH = Qt.ItemDataRole.UserRole


class Gallery(QListWidget):
    """One entry per image; only those in sight are read.

    Signals:
        chosen: (path of the image within the dataset).
    """

    chosen = pyqtSignal(str)

    def __init__(self, worker: Worker, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Images of the dataset")
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMovement(QListView.Movement.Static)
        self.setIconSize(QSize(SIDE, SIDE))
        self.setGridSize(QSize(SIDE + 20, SIDE + 34))
        self.setWordWrap(True)
        self.setUniformItemSizes(True)
        self._dataset: Dataset | None = None
        self.thumbnails = Thumbnails(worker, self._show, self._fail, self)
        # A list lays itself out a turn of the loop later; then it is known what is in sight.
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)
        self._later.timeout.connect(self._look)
        bar = self.verticalScrollBar()
        if bar is not None:
            bar.valueChanged.connect(lambda _: self._later.start())
        self.itemActivated.connect(self._choose)
        self.itemClicked.connect(self._choose)

    def show_dataset(self, dataset: Dataset) -> None:
        """Show the images of another dataset. A dataset that was chosen from this one keeps it as it is."""
        if dataset is self._dataset:
            return
        self._dataset = dataset
        self.thumbnails.forget()
        self.clear()
        for entry in dataset.images:
            item = QListWidgetItem(placeholder(), plain_name(entry.name or entry.path or "image"))
            item.setToolTip(tooltip(entry.name or entry.path))
            item.setData(PATH, entry.path)
            self.addItem(item)
        self.setCurrentRow(0)
        self._later.start()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._later.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._later.start()

    def _look(self) -> None:
        """Ask for the thumbnails of what is in sight."""
        viewport = self.viewport()
        if self._dataset is None or viewport is None or not self.isVisible():
            return
        for row in range(self.count()):
            item = self.item(row)
            if item is not None and self.visualItemRect(item).intersects(viewport.rect()):
                self.thumbnails.want(row, self._dataset, partial(str, item.data(PATH)))

    def _show(self, row: object, icon: QIcon) -> None:
        item = self.item(row) if isinstance(row, int) else None
        if item is not None:
            item.setIcon(icon)

    def _fail(self, row: object, why: str) -> None:
        item = self.item(row) if isinstance(row, int) else None
        if item is not None:
            item.setToolTip(tooltip(why))
            item.setText(plain(f"{item.text()} (cannot be shown)"))

    def _choose(self, item: QListWidgetItem) -> None:
        self.chosen.emit(item.data(PATH))
