"""Actions with their menus and shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from PyQt6.QtGui import QAction, QActionGroup, QKeySequence
from PyQt6.QtWidgets import QMainWindow, QMenu

from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["MENUS", "SYNONYMS", "ActionSpec", "Need", "add_actions", "add_menus", "enable_actions"]

Need = Literal["", "data", "image", "plate"]
"""What must be open for an action: nothing, a location, an image, or a plate."""

NEED, SYNONYMS = "need", "synonyms"
"""Names of properties of the actions."""

SECTION = 100
"""Actions of a menu whose places are in different hundreds are divided by a separator."""

MENUS = ("&File", "&Edit", "&View", "&Image", "&Measure", "&Saved views", "&Help")
"""The titles of the menus, in their order."""


@dataclass(frozen=True)
class ActionSpec:
    """A menu action. ``checked`` is None for an action without a check mark. Actions of a ``group`` are exclusive.

    Several shortcuts are separated by ``; ``. The first one is shown. The actions of a menu are in the order of their
    ``place``. An action is disabled while what it ``needs`` is not open. ``synonyms`` are other words by which the
    command palette finds it. With ``fill`` the action is a submenu, which ``fill`` fills each time it is opened; then
    only the shortcut and the palette call ``run``.
    """

    name: str
    menu: str
    title: str
    shortcut: str
    run: Callable[..., object]
    checked: bool | None = None
    group: str = ""
    place: int = 0
    needs: Need = ""
    synonyms: str = ""
    fill: Callable[[QMenu], object] | None = None


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
    sections: dict[str, int] = {}
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
        action.setProperty(NEED, spec.needs)
        action.setProperty(SYNONYMS, spec.synonyms)
        if spec.fill is not None:
            action.setMenu(_submenu(spec.fill, window))
        menu, section = menus[spec.menu], spec.place // SECTION
        if sections.setdefault(spec.menu, section) != section:
            menu.addSeparator()
            sections[spec.menu] = section
        menu.addAction(action)
        actions[spec.name] = action
    return actions


def _submenu(fill: Callable[[QMenu], object], window: QMainWindow) -> QMenu:
    menu = QMenu(window)

    def renew() -> None:
        menu.clear()
        fill(menu)

    menu.aboutToShow.connect(renew)
    return menu


def enable_actions(actions: Iterable[QAction], available: Iterable[Need]) -> None:
    """Enable the actions that need nothing or something of ``available``, and disable the others."""
    needs = {"", *available}
    for action in actions:
        action.setEnabled(action.property(NEED) in needs)
