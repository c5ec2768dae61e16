"""The model of the table of labels: one row per label, with its colour, its size and its properties."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from PyQt6.QtCore import QAbstractTableModel, QModelIndex, Qt
from PyQt6.QtGui import QColor, QIcon, QPixmap

from zarrfs.ngff import ImageLabel
from zarrfs_viewer.analysis.label_table import LabelRow, LabelTable
from zarrfs_viewer.analysis.readout import format_value
from zarrfs_viewer.qt.support.plain_text import plain, plain_name
from zarrfs_viewer.rendering.labels import label_color

__all__ = ["LabelTableModel"]

SWATCH_SIZE = 16
MAX_PROPERTIES = 20
"""The table displays at most this number of properties."""


class LabelTableModel(QAbstractTableModel):
    """The columns are the label, its size, and its properties."""

    def __init__(self) -> None:
        super().__init__()
        self.table: LabelTable | None = None
        self._properties: tuple[str, ...] = ()
        self._image_label: ImageLabel | None = None
        self._rows: list[LabelRow] = []
        self._rows_of_labels: dict[int, int] = {}
        self._column = 0
        self._is_descending = False

    def show_table(self, table: LabelTable | None, image_label: ImageLabel | None) -> None:
        """Display another table; None displays no rows."""
        self.beginResetModel()
        self.table, self._image_label = table, image_label
        self._properties = table.properties[:MAX_PROPERTIES] if table is not None else ()
        self._order()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Order the rows by a column. Rows without a value are last."""
        self.beginResetModel()
        self._column, self._is_descending = column, order == Qt.SortOrder.DescendingOrder
        self._order()
        self.endResetModel()

    def _order(self) -> None:
        rows = self.table.rows if self.table is not None else ()
        column = self._column if self._column < self.columnCount() else 0
        known = [row for row in rows if self._value(row, column) is not None]
        unknown = [row for row in rows if self._value(row, column) is None]
        known.sort(key=lambda row: _sort_key(self._value(row, column)), reverse=self._is_descending)
        self._rows = known + unknown
        self._rows_of_labels = {row.value: number for number, row in enumerate(self._rows)}

    def row(self, number: int) -> LabelRow | None:
        """Return the label of a row, or None if there is no such row."""
        return self._rows[number] if 0 <= number < len(self._rows) else None

    def index_of(self, value: int) -> QModelIndex:
        """Return the index of a label; an invalid index if it is not listed."""
        number = self._rows_of_labels.get(value)
        return QModelIndex() if number is None else self.index(number, 0)

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else 2 + len(self._properties)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.row(index.row())
        if row is None:
            return None
        value = self._value(row, index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return plain(_text(value))
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 0:
            return swatch(label_color(row.value, self._image_label))
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        if section < 2:
            unit = self.table.unit if self.table is not None else "px"
            return plain("Label" if section == 0 else f"Size ({unit})")
        return plain_name(self._properties[section - 2])

    def _value(self, row: LabelRow, column: int) -> Any:
        if column == 0:
            return row.value
        if column == 1:
            return row.size
        return row.properties.get(self._properties[column - 2])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return format_value(value) if isinstance(value, bool | int | float) else str(value)


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Order numbers before texts."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else str(value).casefold()


@lru_cache(maxsize=1024)
def swatch(rgba: tuple[int, int, int, int]) -> QIcon:
    """Return the square beside a label. It has the same colour in a selected row, where Qt would tint it."""
    pixmap = QPixmap(SWATCH_SIZE, SWATCH_SIZE)
    pixmap.fill(QColor(*rgba[:3]))
    icon = QIcon(pixmap)
    icon.addPixmap(pixmap, QIcon.Mode.Selected)
    return icon
