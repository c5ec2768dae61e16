"""What a panel is: one subject of a window, with its widgets, its actions, and its connections with the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from PyQt6.QtCore import QObject, QSettings
from PyQt6.QtGui import QAction
from PyQt6.QtWidgets import QDockWidget, QMainWindow, QStackedWidget

from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.docks import DockLayout
from zarrfs_viewer.qt.support.tabs import NarrowTabWidget

__all__ = ["IMAGE_PAGE", "NO_IMAGE", "Panel", "PanelContext", "check_while_visible"]

IMAGE_PAGE = 1
"""The page of the stack with the picture, which is the first item of its layout."""
NO_IMAGE = "No image is open."

Kind = TypeVar("Kind", bound="Panel")


@dataclass
class PanelContext:
    """What a window offers to its panels.

    ``stack`` has the pages in the centre of the window, ``tabs`` the settings of the image at its right. ``panels`` are
    the panels that exist already.
    """

    window: QMainWindow
    session: Session
    panes: Panes
    settings: QSettings
    mounts: Mounts
    stack: QStackedWidget
    tabs: NarrowTabWidget
    docks: DockLayout
    panels: list[Panel] = field(default_factory=list)

    def find(self, kind: type[Kind]) -> Kind:
        """Return the panel of a class. It is created before the panels that use it."""
        return next(panel for panel in self.panels if isinstance(panel, kind))


class Panel(QObject):
    """One subject of a window. ``qt.window.panels`` lists the panels.

    The constructor creates the widgets, adds them to the window, and connects them with the session and with
    panels that are created before.
    """

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context.window)
        self._context = context
        self._session = context.session

    @property
    def keeps_focus(self) -> bool:
        """Whether a widget of the panel has the keyboard focus and keeps it when another image is displayed."""
        return False

    @property
    def is_current(self) -> bool:
        """Whether the panel shows what the worker threads have computed for the displayed image."""
        return True

    def prepare(self) -> Iterator[None]:
        """Do what takes long before the first use of the panel. Each ``yield`` ends a step of some milliseconds."""
        yield from ()

    def actions(self) -> Sequence[ActionSpec]:
        """Return the actions that the panel performs."""
        return ()

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        """Use the actions of the window, which exist now."""

    def close(self) -> None:
        """Stop threads and timers, and save what the user has changed."""


def check_while_visible(dock: QDockWidget, action: QAction) -> None:
    """Check an action while a dock is visible. A window that is hidden, as when it closes, hides its docks too."""

    def show(visible: bool) -> None:
        window = dock.window()
        if window is not None and not window.isHidden():
            action.setChecked(visible)

    dock.visibilityChanged.connect(show)
