"""Actions with their menus and shortcuts, the command palette and the list of keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QAction, QActionGroup, QKeyEvent, QKeySequence
from PyQt6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QMenu,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain
from zarrfs_viewer.qt.support.widgets import search_box

__all__ = [
    "MENUS",
    "ActionSpec",
    "CommandPalette",
    "KeyHelp",
    "add_actions",
    "add_menus",
    "key_help",
    "show_key_help",
]

MENUS = ("&File", "&Edit", "&View", "&Image", "&Measure", "&Saved views", "&Help")
"""The titles of the menus, in their order."""


@dataclass(frozen=True)
class ActionSpec:
    """A menu action. ``checked`` is None for an action without a check mark. Actions of a ``group`` are exclusive.

    Several shortcuts are separated by ``; ``. The first one is shown.
    """

    name: str
    menu: str
    title: str
    shortcut: str
    run: Callable[..., object]
    checked: bool | None = None
    group: str = ""


def add_menus(window: QMainWindow) -> None:
    """Add empty menus to the menu bar."""
    bar = window.menuBar()
    if bar is not None:
        for title in MENUS:
            bar.addMenu(plain(title))


def add_actions(window: QMainWindow, specs: list[ActionSpec]) -> dict[str, QAction]:
    """Create the actions, and add each to its menu, which ``add_menus`` created. Returns them by name."""
    bar = window.menuBar()
    menus: dict[str, QMenu] = {}
    for entry in bar.actions() if bar is not None else ():
        menu = entry.menu()
        if menu is not None:
            menus[entry.text()] = menu
    groups: dict[str, QActionGroup] = {}
    actions: dict[str, QAction] = {}
    for spec in specs:
        action = QAction(plain(spec.title), window)
        action.setShortcuts(QKeySequence.listFromString(spec.shortcut))
        action.setCheckable(spec.checked is not None)
        action.setChecked(bool(spec.checked))
        if spec.group:
            groups.setdefault(spec.group, QActionGroup(window)).addAction(action)
        if spec.checked is None or spec.group:
            action.triggered.connect(lambda _=False, run=spec.run: run())
        else:
            action.toggled.connect(spec.run)
        menus[spec.menu].addAction(action)
        actions[spec.name] = action
    return actions


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
            if action.isEnabled() and all(word in title.casefold() for word in words):
                keys = action.shortcut().toString()
                item = QListWidgetItem(plain(f"{title}    {keys}" if keys else title))
                item.setData(Qt.ItemDataRole.UserRole, action)
                self.matches.addItem(item)
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
        if item is not None:
            item.data(Qt.ItemDataRole.UserRole).trigger()
