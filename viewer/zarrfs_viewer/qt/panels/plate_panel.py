"""The wells of a plate as a grid of thumbnails, with selectors for the acquisition and the field of view."""

from __future__ import annotations

from functools import partial

from PyQt6.QtCore import QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QIcon, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHBoxLayout,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.images.dataset import Dataset, Field
from zarrfs_viewer.qt.panels.thumbnails import ThumbnailLoader, placeholder
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused

__all__ = ["PlatePanel"]

WELL = Qt.ItemDataRole.UserRole
ALL = -1
CELL_SIZE = 64


class PlatePanel(QWidget):
    """The wells of a plate. Metadata and thumbnails are read only for visible wells.

    Signals:
        image_selected: (path of an image within the plate).
    """

    image_selected = pyqtSignal(str)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._dataset: Dataset | None = None
        self._well = ""
        self._fields: tuple[Field, ...] = ()
        self.thumbnails = ThumbnailLoader(session.worker, self._show, self._show_error, self)
        self.table = QTableWidget()
        self.table.setAccessibleName("Wells")
        self.table.setIconSize(QSize(CELL_SIZE, CELL_SIZE))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.currentItemChanged.connect(lambda item, _: self._select_well(item))
        self.acquisition = QComboBox()
        self.acquisition.setAccessibleName("Acquisition")
        self.field = QComboBox()
        self.field.setAccessibleName("Field of view")
        ignore_wheel_unless_focused(self.acquisition, self.field)
        self.title = PlainLabel()
        row = QHBoxLayout()
        for widget in (self.title, self.acquisition, self.field):
            row.addWidget(widget)
        row.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.table, 1)
        layout.addLayout(row)
        self.acquisition.activated.connect(self._fill_fields)
        self.field.activated.connect(lambda _: self._emit_selected())
        self._request_timer = QTimer(self)
        self._request_timer.setSingleShot(True)
        self._request_timer.setInterval(0)
        self._request_timer.timeout.connect(self._request_visible)
        for bar in (self.table.verticalScrollBar(), self.table.horizontalScrollBar()):
            if bar is not None:
                bar.valueChanged.connect(lambda _: self._request_timer.start())

    def show_dataset(self, dataset: Dataset) -> None:
        """Show the wells of a plate."""
        plate = dataset.plate
        if plate is None or dataset is self._dataset:
            return
        self._dataset = dataset
        self.thumbnails.clear()
        self.table.blockSignals(True)
        self.table.clear()
        self.table.setRowCount(len(plate.rows))
        self.table.setColumnCount(len(plate.columns))
        self.table.setVerticalHeaderLabels([plain_name(name) for name in plate.rows])
        self.table.setHorizontalHeaderLabels([plain_name(name) for name in plate.columns])
        for row in range(len(plate.rows)):
            self.table.setRowHeight(row, CELL_SIZE + 8)
        for column in range(len(plate.columns)):
            self.table.setColumnWidth(column, CELL_SIZE + 8)
        for well in plate.wells:
            item = QTableWidgetItem(placeholder(), "")
            item.setData(WELL, well.path)
            item.setToolTip(tooltip(well.path))
            self.table.setItem(well.row, well.column, item)
        self.table.setCurrentItem(None)
        self.table.blockSignals(False)
        self.acquisition.clear()
        self.acquisition.addItem("All acquisitions", ALL)
        for number, name in plate.acquisitions.items():
            self.acquisition.addItem(plain_name(name or f"Acquisition {number}"), number)
        self.acquisition.setVisible(len(plate.acquisitions) > 1)
        self.field.clear()
        self.title.setText(plain_name(f"{len(plate.wells)} wells"))
        self._request_timer.start()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._request_timer.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._request_timer.start()

    def _request_visible(self) -> None:
        dataset, viewport = self._dataset, self.table.viewport()
        if dataset is None or viewport is None or not self.isVisible():
            return
        last_row, last_column = self.table.rowCount() - 1, self.table.columnCount() - 1
        bottom, right = self.table.rowAt(viewport.height() - 1), self.table.columnAt(viewport.width() - 1)
        for row in range(max(0, self.table.rowAt(0)), (last_row if bottom < 0 else bottom) + 1):
            for column in range(max(0, self.table.columnAt(0)), (last_column if right < 0 else right) + 1):
                item = self.table.item(row, column)
                if item is not None:
                    self.thumbnails.request(
                        (row, column), dataset, partial(_first_field, dataset, item.data(WELL))
                    )

    def _show(self, place: object, icon: QIcon) -> None:
        item = self._item_at(place)
        if item is not None:
            item.setIcon(icon)

    def _show_error(self, place: object, reason: str) -> None:
        item = self._item_at(place)
        if item is not None:
            item.setToolTip(tooltip(reason))
            item.setBackground(QColor(120, 50, 30))

    def _item_at(self, place: object) -> QTableWidgetItem | None:
        return self.table.item(*place) if isinstance(place, tuple) else None

    # -- selection ---------------------------------------------------------------------------------------------

    def _select_well(self, item: QTableWidgetItem | None) -> None:
        dataset = self._dataset
        if item is None or dataset is None:
            return
        self._well = item.data(WELL)
        well = self._well
        self._session.run_in_worker(lambda: dataset.fields(well), self._show_fields, "fields")

    def _show_fields(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self._fill_fields()

    def _fill_fields(self) -> None:
        """List the fields of the selected acquisition, and keep the index of the selected field."""
        acquisition = self.acquisition.currentData()
        previous_index = max(0, self.field.currentIndex())
        self.field.clear()
        for entry in self._fields:
            if acquisition in (None, ALL) or entry.acquisition in (None, acquisition):
                self.field.addItem(plain_name(f"Field {entry.path.rpartition('/')[2]}"), entry.path)
        self.title.setText(plain_name(self._well))
        if self.field.count():
            self.field.setCurrentIndex(min(previous_index, self.field.count() - 1))
            self._emit_selected()
        else:
            self._session.show_message(f"Well {self._well} has no field of view in this acquisition.")

    def _emit_selected(self) -> None:
        path = self.field.currentData()
        if path is not None:
            self.image_selected.emit(path)


def _first_field(dataset: Dataset, well: str) -> str:
    """Return the path of the first field of a well. Blocks. Raises ValueError if the well has no field."""
    fields = dataset.fields(well)
    if not fields:
        raise ValueError(f"well {well} has no field of view")
    return fields[0].path
