"""Actions with their menus and shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PyQt6.QtGui import QAction, QActionGroup, QKeySequence
from PyQt6.QtWidgets import QMainWindow, QMenu

from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["MENUS", "ActionSpec", "add_actions", "add_menus"]

MENUS = ("&File", "&Edit", "&View", "&Image", "&Measure", "&Saved views", "&Help")
"""The titles of the menus, in their order."""


@dataclass(frozen=True)
class ActionSpec:
    """A menu action. ``checked`` is None for an action without a check mark. Actions of a ``group`` are exclusive.

    Several shortcuts are separated by ``; ``. The first one is shown. The actions of a menu are in the order of their
    ``place``.
    """

    name: str
    menu: str
    title: str
    shortcut: str
    run: Callable[..., object]
    checked: bool | None = None
    group: str = ""
    place: int = 0


def add_menus(window: QMainWindow) -> None:
    """Add empty menus to the menu bar."""
    bar = window.menuBar()
    if bar is not None:
        for title in MENUS:
            bar.addMenu(plain(title))


def add_actions(window: QMainWindow, specs: Iterable[ActionSpec]) -> dict[str, QAction]:
    """Create the actions, and add each to its menu, which ``add_menus`` created. Returns them by name."""
    bar = window.menuBar()
    menus: dict[str, QMenu] = {}
    for entry in bar.actions() if bar is not None else ():
        menu = entry.menu()
        if menu is not None:
            menus[entry.text()] = menu
    groups: dict[str, QActionGroup] = {}
    actions: dict[str, QAction] = {}
    for spec in sorted(specs, key=lambda spec: (MENUS.index(spec.menu), spec.place)):
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
