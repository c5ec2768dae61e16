"""Every action in one place: its menu, its shortcut, what it does. The palette and the key help are made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QAction, QActionGroup, QKeyEvent, QKeySequence
from PyQt6.QtWidgets import (
    QDialog,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QMenu,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.qt.support.plain_text import html_text, plain
from zarrfs_viewer.qt.support.widgets import search_box

__all__ = ["ActionSpec", "Palette", "add_actions", "key_help"]


@dataclass(frozen=True)
class ActionSpec:
    """One thing that the user can do. ``checked`` is None for what is no switch; of a ``group`` just one is on."""

    name: str
    menu: str
    title: str
    shortcut: str
    run: Callable[..., object]
    checked: bool | None = None
    group: str = ""


def add_actions(window: QMainWindow, specs: list[ActionSpec]) -> dict[str, QAction]:
    """Make the actions and put each into its menu of the window's menu bar."""
    bar = window.menuBar()
    menus: dict[str, QMenu] = {}
    groups: dict[str, QActionGroup] = {}
    actions: dict[str, QAction] = {}
    for spec in specs:
        if spec.menu not in menus and bar is not None:
            made = bar.addMenu(plain(spec.menu))
            if made is not None:
                menus[spec.menu] = made
        action = QAction(plain(spec.title), window)
        action.setShortcut(QKeySequence(spec.shortcut))
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


def key_help(actions: dict[str, QAction]) -> str:
    """Return the keys as HTML."""
    rows = "".join(
        f"<tr><td><b>{html_text(action.shortcut().toString())}</b>&nbsp;&nbsp;</td><td>{html_text(_plain(action))}</td></tr>"
        for action in actions.values()
        if not action.shortcut().isEmpty()
    )
    mouse = (
        "<p>Drag moves the picture, the wheel zooms, Ctrl and the wheel step through slices, a double click shows "
        "all. Arrow keys move, Page Up and Page Down step.</p>"
    )
    return f"<h3>Keys</h3><table>{rows}</table>{mouse}"


def _plain(action: QAction) -> str:
    return action.text().replace("&", "").rstrip(".")


class Palette(QDialog):
    """All actions, found by typing a part of their names."""

    def __init__(self, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Actions")
        self.setMinimumSize(460, 380)
        self._actions = list(actions.values())
        self.search = search_box("What do you want to do?")
        self.found = QListWidget()
        self.found.setAccessibleName("Actions found")
        layout = QVBoxLayout(self)
        layout.addWidget(self.search)
        layout.addWidget(self.found)
        self.search.textChanged.connect(self._filter)
        self.search.returnPressed.connect(self._run)
        self.found.itemActivated.connect(lambda _: self._run())
        self._filter("")

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        self.found.clear()
        for action in self._actions:
            title = _plain(action)
            if action.isEnabled() and all(word in title.casefold() for word in words):
                keys = action.shortcut().toString()
                item = QListWidgetItem(plain(f"{title}    {keys}" if keys else title))
                item.setData(Qt.ItemDataRole.UserRole, action)
                self.found.addItem(item)
        self.found.setCurrentRow(0)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is not None and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            step = 1 if event.key() == Qt.Key.Key_Down else -1
            self.found.setCurrentRow((self.found.currentRow() + step) % max(1, self.found.count()))
            return
        super().keyPressEvent(event)

    def _run(self) -> None:
        item = self.found.currentItem()
        self.accept()
        if item is not None:
            item.data(Qt.ItemDataRole.UserRole).trigger()
