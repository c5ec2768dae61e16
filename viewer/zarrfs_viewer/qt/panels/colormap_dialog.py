"""The dialog that lists the color maps of the package cmap."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QAbstractListModel, QModelIndex, QSortFilterProxyModel, Qt
from PyQt6.QtWidgets import QDialog, QDialogButtonBox, QListView, QVBoxLayout, QWidget

from zarrfs_viewer.qt.panels.channel_row import swatch
from zarrfs_viewer.qt.support.plain_text import plain_name
from zarrfs_viewer.qt.support.widgets import search_box
from zarrfs_viewer.state.luts import lut_title

__all__ = ["ColormapDialog"]

WIDTH, HEIGHT = 340, 460


class _ColormapModel(QAbstractListModel):
    """Color maps by name. The icon of a color map is drawn when its row becomes visible."""

    def __init__(self, names: tuple[str, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self._names = names

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 - the signature of Qt
        return 0 if parent.isValid() else len(self._names)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        name = self._names[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return plain_name(lut_title(name))
        if role == Qt.ItemDataRole.DecorationRole:
            return swatch(name)
        return name if role == Qt.ItemDataRole.UserRole else None


class ColormapDialog(QDialog):
    """A list of color maps with a search field."""

    def __init__(self, names: tuple[str, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Color maps")
        self.resize(WIDTH, HEIGHT)
        self.search = search_box("Find color map")
        self.proxy = QSortFilterProxyModel(self)
        self.proxy.setSourceModel(_ColormapModel(names, self))
        self.proxy.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.view = QListView()
        self.view.setAccessibleName("Color maps")
        self.view.setUniformItemSizes(True)
        self.view.setModel(self.proxy)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.view.doubleClicked.connect(lambda _: self.accept())
        self.search.textChanged.connect(self._filter)
        layout = QVBoxLayout(self)
        for widget in (self.search, self.view, self.buttons):
            layout.addWidget(widget)
        self._filter("")

    def selected(self) -> str | None:
        """Return the name of the selected color map, or None."""
        name = self.view.currentIndex().data(Qt.ItemDataRole.UserRole)
        return name if isinstance(name, str) else None

    def _filter(self, text: str) -> None:
        self.proxy.setFilterFixedString(text)
        self.view.setCurrentIndex(self.proxy.index(0, 0))
