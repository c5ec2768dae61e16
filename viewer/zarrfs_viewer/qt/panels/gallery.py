"""Thumbnails of the images of a dataset: the series of a bioformats2raw conversion, or the fields of a well."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from PyQt6.QtCore import QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QIcon, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import QListView, QListWidget, QListWidgetItem, QWidget

from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.images.image import ImageEntry
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.panels.thumbnails import THUMBNAIL_SIZE, ThumbnailLoader, placeholder
from zarrfs_viewer.qt.support.plain_text import plain, plain_name, tooltip
from zarrfs_viewer.qt.support.worker import Worker

__all__ = ["Gallery", "Series"]

PATH = Qt.ItemDataRole.UserRole
BATCH = 50
"""The number of items that one event adds or arranges."""


class Gallery(QListWidget):
    """A list with one item per image. Thumbnails are read only for visible items.

    Signals:
        image_selected: (path of the image within the dataset).
    """

    image_selected = pyqtSignal(str)

    def __init__(self, worker: Worker, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Images of the data set")
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setMovement(QListView.Movement.Static)
        self.setIconSize(QSize(THUMBNAIL_SIZE, THUMBNAIL_SIZE))
        self.setGridSize(QSize(THUMBNAIL_SIZE + 20, THUMBNAIL_SIZE + 34))
        self.setWordWrap(True)
        self.setUniformItemSizes(True)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setBatchSize(BATCH)
        self._dataset: Dataset | None = None
        self.thumbnails = ThumbnailLoader(worker, self._show, self._show_error, self)
        # The list is laid out in the next iteration of the event loop. Only then are the visible items known.
        self._request_timer = QTimer(self)
        self._request_timer.setSingleShot(True)
        self._request_timer.setInterval(0)
        self._request_timer.timeout.connect(self._request_visible)
        self._remaining: Iterator[ImageEntry] = iter(())
        self._add_timer = QTimer(self)
        self._add_timer.setSingleShot(True)
        self._add_timer.setInterval(0)
        self._add_timer.timeout.connect(self._add_items)
        bar = self.verticalScrollBar()
        if bar is not None:
            bar.valueChanged.connect(lambda _: self._request_timer.start())
        self.itemActivated.connect(self._select)
        self.itemClicked.connect(self._select)

    def show_dataset(self, dataset: Dataset) -> None:
        """Show the images of another dataset. Nothing changes if it is displayed already."""
        if dataset is self._dataset:
            return
        self._dataset = dataset
        self.thumbnails.clear()
        self.clear()
        self._remaining = iter(dataset.images)
        self._add_items()
        self.setCurrentRow(0)
        self._request_timer.start()

    @property
    def dataset(self) -> Dataset | None:
        """The dataset whose images are listed."""
        return self._dataset

    def select_path(self, path: str) -> None:
        """Select the item of an image, if it is in the list already."""
        for row in range(self.count()):
            item = self.item(row)
            if item is not None and item.data(PATH) == path:
                self.setCurrentItem(item)
                return

    def _add_items(self) -> None:
        """Add the next items. Later events add the rest, so that thousands of images do not stall the window."""
        entries = list(islice(self._remaining, BATCH))
        for entry in entries:
            item = QListWidgetItem(placeholder(), plain_name(entry.name or entry.path or "image"))
            item.setToolTip(tooltip(entry.name or entry.path))
            item.setData(PATH, entry.path)
            self.addItem(item)
        if len(entries) == BATCH:
            self._add_timer.start()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._request_timer.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._request_timer.start()

    def _request_visible(self) -> None:
        """Request the thumbnails of the visible items."""
        viewport = self.viewport()
        if self._dataset is None or viewport is None or not self.isVisible():
            return
        # The items are in rows of a grid.
        columns = max(1, viewport.width() // self.gridSize().width())
        first = self.verticalOffset() // self.gridSize().height() * columns
        visible_rows = viewport.height() // self.gridSize().height() + 2
        for row in range(max(0, first - columns), min(self.count(), first + visible_rows * columns)):
            item = self.item(row)
            if item is not None and self.visualItemRect(item).intersects(viewport.rect()):
                self.thumbnails.request(row, self._dataset, partial(str, item.data(PATH)))

    def _show(self, row: object, icon: QIcon) -> None:
        item = self.item(row) if isinstance(row, int) else None
        if item is not None:
            item.setIcon(icon)

    def _show_error(self, row: object, reason: str) -> None:
        item = self.item(row) if isinstance(row, int) else None
        if item is not None:
            item.setToolTip(tooltip(reason))
            item.setText(plain(f"{item.text()} (cannot be displayed)"))

    def _select(self, item: QListWidgetItem) -> None:
        self.image_selected.emit(item.data(PATH))


class Series(Panel):
    """The dock with the images of a data set that has several."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self.gallery = Gallery(context.session.worker)
        self.dock = context.docks.add(
            "Images", self.gallery, Qt.DockWidgetArea.LeftDockWidgetArea, "with_data"
        )
        self.gallery.image_selected.connect(context.session.open_image)
        context.session.dataset_changed.connect(self._show_dataset)
        context.session.image_changed.connect(self._show_image)

    def _show_dataset(self) -> None:
        dataset = self._session.dataset
        if dataset is not None:
            # The images of a scene are layers.
            has_series = len(dataset.images) > 1 and dataset.kind != "scene"
            if has_series:
                self.gallery.show_dataset(dataset)
            self._context.docks.show_with_data(self.dock, has_series)

    def _show_image(self) -> None:
        """Select the displayed image."""
        dataset, image = self._session.dataset, self._session.image
        if dataset is not None and image is not None and dataset is self.gallery.dataset:
            self.gallery.select_path(image.path)
