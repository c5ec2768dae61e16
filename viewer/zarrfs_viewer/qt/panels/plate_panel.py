"""A plate as the grid that it is: wells by thumbnails, then the field and the acquisition of the one chosen."""

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
from zarrfs_viewer.qt.panels.thumbnails import Thumbnails, placeholder
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import scrolls_past

__all__ = ["PlatePanel"]

WELL = Qt.ItemDataRole.UserRole
ALL = -1
CELL = 64


class PlatePanel(QWidget):
    """The wells of a plate. Metadata and thumbnails are read for the wells in sight, nothing for the rest.

    Signals:
        chosen: (path of an image within the plate).
    """

    chosen = pyqtSignal(str)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._dataset: Dataset | None = None
        self._well = ""
        self._fields: tuple[Field, ...] = ()
        self.thumbnails = Thumbnails(session.worker, self._show, self._fail, self)
        self.table = QTableWidget()
        self.table.setAccessibleName("Wells")
        self.table.setIconSize(QSize(CELL, CELL))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.currentItemChanged.connect(lambda item, _: self._choose(item))
        self.acquisition = QComboBox()
        self.acquisition.setAccessibleName("Acquisition")
        self.field = QComboBox()
        self.field.setAccessibleName("Field of view")
        scrolls_past(self.acquisition, self.field)
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
        self.field.activated.connect(lambda _: self._tell())
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)
        self._later.timeout.connect(self._look)
        for bar in (self.table.verticalScrollBar(), self.table.horizontalScrollBar()):
            if bar is not None:
                bar.valueChanged.connect(lambda _: self._later.start())

    def show_dataset(self, dataset: Dataset) -> None:
        """Show the wells of a plate."""
        plate = dataset.plate
        if plate is None or dataset is self._dataset:
            return
        self._dataset = dataset
        self.thumbnails.forget()
        self.table.blockSignals(True)
        self.table.clear()
        self.table.setRowCount(len(plate.rows))
        self.table.setColumnCount(len(plate.columns))
        self.table.setVerticalHeaderLabels([plain_name(name) for name in plate.rows])
        self.table.setHorizontalHeaderLabels([plain_name(name) for name in plate.columns])
        for row in range(len(plate.rows)):
            self.table.setRowHeight(row, CELL + 8)
        for column in range(len(plate.columns)):
            self.table.setColumnWidth(column, CELL + 8)
        for well in plate.wells:
            item = QTableWidgetItem(placeholder(), "")
            item.setData(WELL, well.path)
            item.setToolTip(tooltip(well.path))
            self.table.setItem(well.row, well.column, item)
        self.table.setCurrentItem(None)
        self.table.blockSignals(False)
        self.acquisition.clear()
        self.acquisition.addItem("all acquisitions", ALL)
        for number, name in plate.acquisitions.items():
            self.acquisition.addItem(plain_name(name or f"acquisition {number}"), number)
        self.acquisition.setVisible(len(plate.acquisitions) > 1)
        self.field.clear()
        self.title.setText(plain_name(f"{len(plate.wells)} wells"))
        self._later.start()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._later.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._later.start()

    def _look(self) -> None:
        dataset, viewport = self._dataset, self.table.viewport()
        if dataset is None or viewport is None or not self.isVisible():
            return
        last_row, last_column = self.table.rowCount() - 1, self.table.columnCount() - 1
        bottom, right = self.table.rowAt(viewport.height() - 1), self.table.columnAt(viewport.width() - 1)
        for row in range(max(0, self.table.rowAt(0)), (last_row if bottom < 0 else bottom) + 1):
            for column in range(max(0, self.table.columnAt(0)), (last_column if right < 0 else right) + 1):
                item = self.table.item(row, column)
                if item is not None:
                    self.thumbnails.want(
                        (row, column), dataset, partial(_first_field, dataset, item.data(WELL))
                    )

    def _show(self, place: object, icon: QIcon) -> None:
        item = self._at(place)
        if item is not None:
            item.setIcon(icon)

    def _fail(self, place: object, why: str) -> None:
        item = self._at(place)
        if item is not None:
            item.setToolTip(tooltip(why))
            item.setBackground(QColor(120, 50, 30))

    def _at(self, place: object) -> QTableWidgetItem | None:
        return self.table.item(*place) if isinstance(place, tuple) else None

    # -- choosing ----------------------------------------------------------------------------------------------

    def _choose(self, item: QTableWidgetItem | None) -> None:
        dataset = self._dataset
        if item is None or dataset is None:
            return
        self._well = item.data(WELL)
        well = self._well
        self._session.ask(lambda: dataset.fields(well), self._show_fields, "fields")

    def _show_fields(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self._fill_fields()

    def _fill_fields(self) -> None:
        """List the fields of the acquisition that is chosen, and keep the number of the one in front."""
        wanted = self.acquisition.currentData()
        before = max(0, self.field.currentIndex())
        self.field.clear()
        for entry in self._fields:
            if wanted in (None, ALL) or entry.acquisition in (None, wanted):
                self.field.addItem(plain_name(f"field {entry.path.rpartition('/')[2]}"), entry.path)
        self.title.setText(plain_name(self._well))
        if self.field.count():
            self.field.setCurrentIndex(min(before, self.field.count() - 1))
            self._tell()
        else:
            self._session.say(f"well {self._well} has no field of this acquisition")

    def _tell(self) -> None:
        path = self.field.currentData()
        if path is not None:
            self.chosen.emit(path)


def _first_field(dataset: Dataset, well: str) -> str:
    """Return the path of a well's first field. Blocks."""
    fields = dataset.fields(well)
    if not fields:
        raise ValueError(f"well {well} has no field of view")
    return fields[0].path
