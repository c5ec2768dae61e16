"""The dialog that lists the colour maps of the package cmap."""

from __future__ import annotations

from PyQt6.QtCore import Qt, QTimer
from PyQt6.QtWidgets import QDialog, QDialogButtonBox, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from zarrfs_viewer.qt.panels.channels.channel_row import swatch
from zarrfs_viewer.qt.support.plain_text import plain_name
from zarrfs_viewer.qt.support.widgets import search_box
from zarrfs_viewer.state.luts import lut_title

__all__ = ["ColormapDialog"]

WIDTH, HEIGHT = 340, 460
ICONS_PER_STEP = 10
"""Icons are drawn in steps of this number, so that the window remains responsive."""


class ColormapDialog(QDialog):
    """A list of colour maps with a search field."""

    def __init__(self, names: tuple[str, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Colour maps")
        self.resize(WIDTH, HEIGHT)
        self.search = search_box("Find colour map")
        self.list = QListWidget()
        self.list.setAccessibleName("Colour maps")
        self.list.setUniformItemSizes(True)
        for name in names:
            item = QListWidgetItem(plain_name(lut_title(name)))
            item.setData(Qt.ItemDataRole.UserRole, name)
            self.list.addItem(item)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.list.itemDoubleClicked.connect(lambda _: self.accept())
        self.search.textChanged.connect(self._filter)
        layout = QVBoxLayout(self)
        for widget in (self.search, self.list, self.buttons):
            layout.addWidget(widget)
        self._next_icon = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._draw_icons)
        self._timer.start(0)
        self._filter("")

    def selected(self) -> str | None:
        """Return the name of the selected colour map, or None."""
        item = self.list.currentItem()
        name = None if item is None or item.isHidden() else item.data(Qt.ItemDataRole.UserRole)
        return name if isinstance(name, str) else None

    def _filter(self, text: str) -> None:
        first = None
        for row in range(self.list.count()):
            item = self.list.item(row)
            if item is not None:
                item.setHidden(text.casefold() not in item.text().casefold())
                first = item if first is None and not item.isHidden() else first
        self.list.setCurrentItem(first)

    def _draw_icons(self) -> None:
        for row in range(self._next_icon, min(self._next_icon + ICONS_PER_STEP, self.list.count())):
            item = self.list.item(row)
            if item is not None:
                item.setIcon(swatch(item.data(Qt.ItemDataRole.UserRole)))
        self._next_icon += ICONS_PER_STEP
        if self._next_icon >= self.list.count():
            self._timer.stop()
