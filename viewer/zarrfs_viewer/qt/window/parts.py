"""The parts of a window other than its frame: the session, the page of the picture, the panels, and the status bar.

They are imported where they are created, because the window is visible before (see ``frame``).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QVBoxLayout, QWidget

from zarrfs_viewer.qt.window.frame import WindowFrame
from zarrfs_viewer.qt.window.panels import PANELS

if TYPE_CHECKING:
    from zarrfs_viewer.qt.canvas.canvas import Canvas
    from zarrfs_viewer.qt.panels.panel import Panel

__all__ = ["WindowParts"]

PART_MODULES = (
    "session",
    "canvas.panes",
    "support.docks",
    "window.banner",
    "window.free_memory",
    "window.last_session",
    "window.location_thumbnails",
    "window.opening",
    "window.preference_actions",
    "window.settings_writer",
    "window.status",
    "window.store_watch",
)
"""The modules of ``zarrfs_viewer.qt`` that create the parts of a window, except for panels."""

Kind = TypeVar("Kind", bound="Panel")


class WindowParts(WindowFrame):
    """A window with its parts, which are attributes, and its panels. A subclass connects them and adds the actions."""

    part_modules = (
        *(f"zarrfs_viewer.qt.{name}" for name in PART_MODULES),
        *(f"zarrfs_viewer.qt.panels.{name}" for name, _ in PANELS),
    )

    def panel(self, kind: type[Kind]) -> Kind:
        """Return the panel of a class."""
        return self.panel_context.find(kind)

    def _create_session(self) -> None:
        from zarrfs_viewer.mounts import Mounts
        from zarrfs_viewer.qt.session import Session
        from zarrfs_viewer.qt.window.free_memory import MemoryRelease
        from zarrfs_viewer.qt.window.opening import LocationOpener
        from zarrfs_viewer.qt.window.settings_writer import SettingsWriter

        self.session = Session(self)
        self._memory_release = MemoryRelease(self.session.worker, self)
        self._settings_writer = SettingsWriter(self.settings, self.session.worker, self)
        self.mounts = Mounts()
        self.opener = LocationOpener(self.session, self.settings, self.recent, self)

    def _create_center(self) -> Iterator[None]:
        """Create the page of the picture, the messages over it, and the status bar. Each ``yield`` ends a step."""
        from zarrfs_viewer.qt.canvas.panes import Panes
        from zarrfs_viewer.qt.support.docks import DockLayout
        from zarrfs_viewer.qt.support.tabs import NarrowTabWidget
        from zarrfs_viewer.qt.window.banner import Banner
        from zarrfs_viewer.qt.window.status import StatusFields

        self.panes = Panes(self.session)
        yield
        image_view = QWidget()
        image_layout = QVBoxLayout(image_view)
        image_layout.setContentsMargins(0, 0, 0, 0)
        image_layout.setSpacing(0)
        image_layout.addWidget(self.panes, 1)
        self.stack.addWidget(image_view)
        self.notice = Banner(self.centralWidget() or self)
        self.outcome = Banner(self.centralWidget() or self, self.notice)
        self.docks = DockLayout(self, self.settings)
        self.panels = NarrowTabWidget()
        self.docks.add("Image", self.panels, Qt.DockWidgetArea.RightDockWidgetArea, "first")
        bar = self.statusBar()
        assert bar is not None
        self.status = StatusFields(bar)
        yield

    def _create_panels(self) -> Iterator[None]:
        """Create the panels. Each ``yield`` ends a step."""
        from zarrfs_viewer.qt.panels.panel import PanelContext

        self.panel_context = context = PanelContext(
            self,
            self.session,
            self.panes,
            self.settings,
            self.mounts,
            self.stack,
            self.panels,
            self.docks,
        )
        for module, name in PANELS:
            panel = getattr(import_module(f"zarrfs_viewer.qt.panels.{module}"), name)(context)
            context.panels.append(panel)
            yield from panel.prepare()
            yield

    def _create_controllers(self) -> None:
        from zarrfs_viewer.qt.window.location_thumbnails import LocationThumbnails
        from zarrfs_viewer.qt.window.preference_actions import PreferenceActions
        from zarrfs_viewer.qt.window.store_watch import StoreWatch

        self.thumbnails = LocationThumbnails(self.session, self.canvas, self.recent, self)
        self.store_watch = StoreWatch(self.session, self)
        self.preferences = PreferenceActions(
            self.settings, self.session, self.panes, self.mounts, self.toolbar, self
        )

    @property
    def canvas(self) -> Canvas:
        """The canvas of the main pane."""
        return self.panes.main.canvas
