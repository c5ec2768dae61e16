"""The large overview of a plate in the centre of the window, and the strip with the fields of view of a well."""

from __future__ import annotations

from functools import partial

from PyQt6.QtCore import QSize
from PyQt6.QtGui import QIcon, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.panels.plate.plate_grid import fit_cells
from zarrfs_viewer.qt.panels.plate.plate_panel import PlatePanel
from zarrfs_viewer.qt.panels.thumbnails import ThumbnailLoader, placeholder
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ConfirmingTableView

__all__ = ["FieldStrip", "PlateOverview"]

MIN_CELL_SIZE, MAX_CELL_SIZE = 14, 140
STRIP_ICON_SIZE = 64
MAX_FIELDS = 200
"""The strip has at most this number of fields; the selector in the dock has all of them."""


class PlateOverview(QWidget):
    """All wells of a plate, as large as the window permits. A double click or Enter displays a well."""

    def __init__(self, plate: PlatePanel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plate = plate
        self.view = ConfirmingTableView()
        self.view.setAccessibleName("Wells of the plate")
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        plate.add_view(self.view)
        self.setFocusProxy(self.view)
        self.title = PlainLabel("Double-click a well, or select it with the arrow keys and press Enter.")
        self.title.setWordWrap(True)  # The text does not widen the window.
        layout = QVBoxLayout(self)
        layout.addWidget(self.view, 1)
        layout.addWidget(self.title)
        self.view.doubleClicked.connect(lambda index: plate.open_well(index.row(), index.column()))
        self.view.confirmed.connect(self._open_current)

    def show_plate(self) -> None:
        """Fit the cells to another plate, and select the displayed well or the first one."""
        self._fit()
        model = self.view.model()
        current = self._plate.table.currentIndex()
        if model is not None:
            self.view.setCurrentIndex(model.index(max(0, current.row()), max(0, current.column())))
        self.view.setFocus()

    def _fit(self) -> None:
        fit_cells(self.view, MIN_CELL_SIZE, MAX_CELL_SIZE)
        self._plate.request_thumbnails()

    def _open_current(self) -> None:
        index = self.view.currentIndex()
        self._plate.open_well(index.row(), index.column())

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._fit()


class FieldStrip(QListWidget):
    """The fields of view of the selected well as one row of thumbnails. A click displays a field."""

    def __init__(self, session: Session, plate: PlatePanel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plate = plate
        self.setAccessibleName("Fields of the well")
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(False)
        self.setMovement(QListView.Movement.Static)
        self.setIconSize(QSize(STRIP_ICON_SIZE, STRIP_ICON_SIZE))
        self.setFixedHeight(STRIP_ICON_SIZE + 44)
        self.setUniformItemSizes(True)
        self.thumbnails = ThumbnailLoader(session.worker, self._show, self._show_error, self)
        plate.fields_changed.connect(self._list_fields)
        self.itemClicked.connect(lambda item: plate.select_field(self.row(item)))
        self.itemActivated.connect(lambda item: plate.select_field(self.row(item)))
        self.hide()

    def _list_fields(self) -> None:
        """Show the fields of another well, if it has more than one."""
        dataset, paths = self._plate.dataset, self._plate.listed_fields()[:MAX_FIELDS]
        self.thumbnails.clear()
        self.clear()
        self.setVisible(len(paths) > 1)
        if dataset is None or len(paths) <= 1:
            return
        self.thumbnails.find_limits = self._plate.thumbnails.find_limits
        for number, path in enumerate(paths):
            name = path.rpartition("/")[2]
            item = QListWidgetItem(placeholder(), plain_name(f"Field {name}"))
            item.setToolTip(tooltip(path))
            self.addItem(item)
            self.thumbnails.request(number, dataset, partial(str, path))
        self.setCurrentRow(self._plate.field.currentIndex())

    def _show(self, number: object, icon: QIcon) -> None:
        item = self.item(number) if isinstance(number, int) else None
        if item is not None:
            item.setIcon(icon)

    def _show_error(self, number: object, reason: str) -> None:
        item = self.item(number) if isinstance(number, int) else None
        if item is not None:
            item.setToolTip(tooltip(reason))
