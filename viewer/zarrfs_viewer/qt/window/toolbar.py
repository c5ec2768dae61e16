"""The toolbar: icons for the most frequent actions, with their shortcuts in the tooltips."""

from __future__ import annotations

from collections.abc import Mapping

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QAction, QPalette
from PyQt6.QtWidgets import QToolBar, QWidget

from zarrfs_viewer.qt.support.icons import icon
from zarrfs_viewer.qt.support.plain_text import tooltip

__all__ = ["ToolBar"]

GROUPS = (
    ("open",),
    ("fit", "one_to_one", "linked"),
    ("move", "point", "line", "rectangle", "ellipse", "polygon"),
    ("labels", "chunks", "slab"),
    ("auto_all",),
    ("export",),
)
"""The actions in the toolbar. Groups are divided by separators."""

ACTIONS_OF_ICONS = {"open": "open_folder"}
"""Icons that have another name than their action."""

ICON_SIZE = 20
MIN_HEIGHT = 35
"""The height with buttons. Without it, the page below the empty toolbar would move when the actions are added."""
STYLE = (
    "QToolBar { border: none; spacing: 2px; padding: 2px; }"
    "QToolButton { padding: 3px; border: 1px solid transparent; border-radius: 4px; }"
    "QToolButton:hover { background: palette(mid); }"
    "QToolButton:checked, QToolButton[active=true] { background: palette(highlight); }"
)


class ToolBar(QToolBar):
    """A toolbar of actions of the window. The active tool and the enabled overlays are highlighted."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Tools", parent)
        self.setObjectName("Tools")
        self.setMovable(False)
        self.setIconSize(QSize(ICON_SIZE, ICON_SIZE))
        self.setMinimumHeight(MIN_HEIGHT)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self.setStyleSheet(STYLE)
        self._icons: dict[str, QAction] = {}

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        """Add the actions of the toolbar. ``show_theme`` adds their icons."""
        for number, names in enumerate(GROUPS):
            if number:
                self.addSeparator()
            for name in names:
                action = actions[ACTIONS_OF_ICONS.get(name, name)]
                title = action.text().replace("&", "").rstrip(".")
                action.setToolTip(tooltip(f"{title} ({action.shortcut().toString()})"))
                self._icons[name] = action
                self.addAction(action)

    def set_active(self, name: str, on: bool) -> None:
        """Highlight the button of an action that has more states than a check mark."""
        button = self.widgetForAction(self._icons[name]) if name in self._icons else None
        style = self.style()
        if button is not None and style is not None and bool(button.property("active")) != on:
            button.setProperty("active", on)
            style.unpolish(button)
            style.polish(button)

    def show_theme(self, palette: QPalette) -> None:
        """Draw the icons in the colours of a palette."""
        self.setStyleSheet(STYLE)
        for name, action in self._icons.items():
            action.setIcon(icon(name, palette))
            action.setIconVisibleInMenu(False)
