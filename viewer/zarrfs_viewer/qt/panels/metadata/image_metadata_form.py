"""The tables of an image's channels (names and colours) and axes (pixel sizes and units), for editing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import QColorDialog, QHeaderView, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from zarrfs.errors import MetadataError
from zarrfs.ngff import parse
from zarrfs.ngff.editing import with_axis_unit, with_channel_color, with_channel_label, with_pixel_size
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain

__all__ = ["ImageMetadataForm"]

MAX_ROWS = 64
"""The maximum number of channels in the table. Further ones can be edited in the JSON text."""

Attributes = Mapping[str, Any]
Edit = Callable[[Attributes], Attributes]


class ImageMetadataForm(QWidget):
    """Tables of values in existing OME-NGFF metadata. Values that are missing can be added in the JSON text.

    Signals:
        edited: (function) the user changed a value. The function takes the attributes, and returns changed ones or
            raises MetadataError. The connection must be queued, because the slot fills the tables again.
    """

    edited = pyqtSignal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.has_content = False
        self.channels = _table("Channels", ["Name", "Colour"])
        self.axes = _table("Axes", ["Axis", "Pixel size", "Unit"])
        self.channels_title = PlainLabel("Channels: double-click a colour to change it")
        self.axes_title = PlainLabel("Axes: the pixel size of level 0; those of the other levels follow")
        self.channels.itemChanged.connect(self._edit_channel)
        self.channels.cellDoubleClicked.connect(self._ask_color)
        self.axes.itemChanged.connect(self._edit_axis)
        layout = QVBoxLayout(self)
        for widget in (self.channels_title, self.channels, self.axes_title, self.axes):
            layout.addWidget(widget)

    def show_attributes(self, attributes: Attributes) -> None:
        """Show the channels and axes of the first image in the attributes."""
        ngff = parse(attributes)
        channels = ngff.omero.channels[:MAX_ROWS] if ngff.omero is not None else ()
        image = ngff.multiscales[0] if ngff.multiscales else None
        axes = image.axes if image is not None else ()
        scale = image.levels[0].scale if image is not None else None
        self.has_content = bool(channels or axes)
        for table in (self.channels, self.axes):
            table.blockSignals(True)
        self.channels.setRowCount(len(channels))
        for row, channel in enumerate(channels):
            color = "" if channel.color is None else "#" + "".join(f"{part:02X}" for part in channel.color)
            self.channels.setItem(row, 0, _item(channel.label or ""))
            item = _item(color, is_editable=False)
            if color:
                item.setData(Qt.ItemDataRole.DecorationRole, QColor(color))
            self.channels.setItem(row, 1, item)
        self.axes.setRowCount(len(axes))
        for row, axis in enumerate(axes):
            self.axes.setItem(row, 0, _item(axis.name, is_editable=False))
            has_size = scale is not None and row < len(scale)
            self.axes.setItem(row, 1, _item(repr(abs(scale[row])) if scale and has_size else "", has_size))
            self.axes.setItem(row, 2, _item(axis.unit or ""))
        for table in (self.channels, self.axes):
            table.blockSignals(False)
        for widgets, is_shown in (
            ((self.channels_title, self.channels), bool(channels)),
            ((self.axes_title, self.axes), bool(axes)),
        ):
            for widget in widgets:
                widget.setVisible(is_shown)

    def _edit_channel(self, item: QTableWidgetItem) -> None:
        row, text = item.row(), item.text()
        if item.column() == 0:
            self.edited.emit(lambda attributes: with_channel_label(attributes, row, text))

    def _ask_color(self, row: int, column: int) -> None:
        item = self.channels.item(row, column)
        if column == 1 and item is not None:
            color = QColorDialog.getColor(QColor(item.text() or "#FFFFFF"), self, "Colour of the channel")
            if color.isValid():
                self.set_color(row, (color.red(), color.green(), color.blue()))

    def set_color(self, channel: int, color: tuple[int, int, int]) -> None:
        """Change the colour of a channel, as if the user had selected it."""
        self.edited.emit(lambda attributes: with_channel_color(attributes, channel, color))

    def _edit_axis(self, item: QTableWidgetItem) -> None:
        row, text = item.row(), item.text().strip()
        if item.column() == 1:
            self.edited.emit(lambda attributes: with_pixel_size(attributes, row, _number(text)))
        else:
            self.edited.emit(lambda attributes: with_axis_unit(attributes, row, text))


def _item(text: str, is_editable: bool = True) -> QTableWidgetItem:
    """Return a cell. A text that cannot be displayed unchanged is not edited here, so that its rest is not lost."""
    item = QTableWidgetItem(plain(text))
    if not is_editable or plain(text) != text:
        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
    return item


def _number(text: str) -> float:
    try:
        return float(text.replace(",", "."))  # a decimal comma; "1,000.5" is refused
    except ValueError:
        raise MetadataError(f"expected a number as pixel size, such as 0.25, found {plain(text)!r}") from None


def _table(name: str, columns: list[str]) -> QTableWidget:
    table = QTableWidget(0, len(columns))
    table.setAccessibleName(plain(name))
    table.setHorizontalHeaderLabels([plain(column) for column in columns])
    header, rows = table.horizontalHeader(), table.verticalHeader()
    if header is not None:
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
    if rows is not None:
        rows.hide()
    return table
