"""The command palette and the list of keyboard shortcuts."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QAction, QKeyEvent
from PyQt6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QListWidget,
    QListWidgetItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.support.actions import SYNONYMS
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain
from zarrfs_viewer.qt.support.widgets import search_box

__all__ = ["CommandPalette", "KeyHelp", "key_help", "show_key_help"]

MOUSE_HELP = (
    "Drag to pan. Use the wheel to zoom, and Ctrl and the wheel to step through slices. Double-click to fit the image "
    "to the window. The arrow keys pan; Page Up and Page Down step through slices."
)


def show_key_help(actions: dict[str, QAction], parent: QWidget) -> None:
    """Show a dialog with the keyboard shortcuts."""
    dialog = KeyHelp(actions, parent)
    dialog.exec()
    dialog.deleteLater()


class KeyHelp(QDialog):
    """A list of the keyboard shortcuts. A list, because the layout of so much rich text would stall the window."""

    def __init__(self, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        self.resize(520, 560)
        self.keys = QTreeWidget()
        self.keys.setAccessibleName("Keyboard shortcuts")
        self.keys.setHeaderLabels(["Keys", "Action"])
        self.keys.setRootIsDecorated(False)
        self.keys.setUniformRowHeights(True)
        self.keys.setAlternatingRowColors(True)
        for keys, title in key_help(actions):
            self.keys.addTopLevelItem(QTreeWidgetItem([plain(keys), plain(title)]))
        self.keys.resizeColumnToContents(0)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(self.keys)
        layout.addWidget(PlainLabel(MOUSE_HELP, wrap=True))
        layout.addWidget(buttons)


def key_help(actions: dict[str, QAction]) -> list[tuple[str, str]]:
    """Return the keyboard shortcuts, with the titles of their actions."""
    return [
        (action.shortcut().toString(), _title(action))
        for action in actions.values()
        if not action.shortcut().isEmpty()
    ]


def _title(action: QAction) -> str:
    return action.text().replace("&", "").rstrip(".")


class CommandPalette(QDialog):
    """A dialog that searches all actions by name and runs one."""

    def __init__(self, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Command palette")
        self.setMinimumSize(460, 380)
        self._actions = list(actions.values())
        self.search = search_box("Search actions")
        self.matches = QListWidget()
        self.matches.setAccessibleName("Matching actions")
        layout = QVBoxLayout(self)
        layout.addWidget(self.search)
        layout.addWidget(self.matches)
        self.search.textChanged.connect(self._filter)
        self.search.returnPressed.connect(self._run)
        self.matches.itemActivated.connect(lambda _: self._run())
        self._filter("")

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        self.matches.clear()
        for action in self._actions:
            title = _title(action)
            searched = f"{title} {action.property(SYNONYMS)}".casefold()
            if action.isEnabled() and all(word in searched for word in words):
                keys = action.shortcut().toString()
                item = QListWidgetItem(plain(f"{title}    {keys}" if keys else title))
                item.setData(Qt.ItemDataRole.UserRole, action)
                self.matches.addItem(item)
        if not self.matches.count():
            item = QListWidgetItem("No matches")
            item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.matches.addItem(item)
            return
        self.matches.setCurrentRow(0)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is not None and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            step = 1 if event.key() == Qt.Key.Key_Down else -1
            self.matches.setCurrentRow((self.matches.currentRow() + step) % max(1, self.matches.count()))
            return
        super().keyPressEvent(event)

    def _run(self) -> None:
        item = self.matches.currentItem()
        self.accept()
        action = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if action is not None:
            action.trigger()
