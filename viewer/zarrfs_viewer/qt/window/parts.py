"""The parts of a window other than its frame: the session, the pages, the panels, and what connects them to the data.

They are imported where they are created, because the window is visible before (see ``frame``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtWidgets import QVBoxLayout, QWidget

from zarrfs_viewer.qt.window.frame import WindowFrame

if TYPE_CHECKING:
    from zarrfs_viewer.qt.canvas.canvas import Canvas

__all__ = ["WindowParts"]

PART_MODULES = """
session window.free_memory window.settings_writer canvas.panes panels.dimensions_panel window.banner
window.side_panels window.status panels.saved_views window.contrast_actions window.image_actions
window.location_thumbnails window.opening window.preference_actions window.commands window.features
window.last_session window.store_watch
"""
"""The modules of ``zarrfs_viewer.qt`` that create the parts of a window."""


class WindowParts(WindowFrame):
    """A window with its parts, which are attributes. A subclass connects them and adds the actions."""

    part_modules = tuple(f"zarrfs_viewer.qt.{name}" for name in PART_MODULES.split())

    def _create_widgets(self) -> Iterator[None]:
        """Create the session, the widgets and their controllers. Each ``yield`` ends a step."""
        self._create_session()
        yield
        yield from self._create_center()
        yield from self._create_side_panels()
        self._create_controllers()
        yield

    def _create_session(self) -> None:
        from zarrfs_viewer.mounts import Mounts
        from zarrfs_viewer.qt.panels.export_dialog import Exporter
        from zarrfs_viewer.qt.session import Session
        from zarrfs_viewer.qt.window.free_memory import MemoryRelease
        from zarrfs_viewer.qt.window.opening import LocationOpener
        from zarrfs_viewer.qt.window.settings_writer import SettingsWriter

        self.session = Session(self)
        self._memory_release = MemoryRelease(self.session.worker, self)
        self._settings_writer = SettingsWriter(self.settings, self.session.worker, self)
        self.mounts = Mounts()
        self.opener = LocationOpener(self.session, self.settings, self.recent, self)
        self.exporter = Exporter(self.session, self)

    def _create_center(self) -> Iterator[None]:
        from zarrfs_viewer.qt.canvas.panes import Panes
        from zarrfs_viewer.qt.panels.dimensions_panel import DimensionsPanel
        from zarrfs_viewer.qt.window.banner import Banner

        self.panes = Panes(self.session)
        yield
        self.dimensions = DimensionsPanel()
        yield
        self.dimensions.create_first_row()
        image_view = QWidget()
        image_layout = QVBoxLayout(image_view)
        image_layout.setContentsMargins(0, 0, 0, 0)
        image_layout.setSpacing(0)
        image_layout.addWidget(self.panes, 1)
        image_layout.addWidget(self.dimensions)
        self.stack.addWidget(image_view)
        self.notice = Banner(self.centralWidget() or self)
        self.outcome = Banner(self.centralWidget() or self, self.notice)
        yield

    def _create_side_panels(self) -> Iterator[None]:
        from zarrfs_viewer.qt.window.side_panels import SidePanels
        from zarrfs_viewer.qt.window.status import StatusFields

        self.side = SidePanels(self, self.session, self.mounts, self.settings)
        yield from self.side.create()
        self.docks, self.panels = self.side.docks, self.side.tabs
        self.tree_panel, self.gallery, self.plate = self.side.tree_panel, self.side.gallery, self.side.plate
        self.channels, self.labels, self.measure = self.side.channels, self.side.labels, self.side.measure
        self.metadata, self.log = self.side.metadata, self.side.log
        bar = self.statusBar()
        assert bar is not None
        self.status = StatusFields(bar)

    def _create_controllers(self) -> None:
        from zarrfs_viewer.qt.panels.saved_views import SavedViewsMenu
        from zarrfs_viewer.qt.window.contrast_actions import ContrastActions
        from zarrfs_viewer.qt.window.image_actions import ImageActions
        from zarrfs_viewer.qt.window.location_thumbnails import LocationThumbnails
        from zarrfs_viewer.qt.window.preference_actions import PreferenceActions
        from zarrfs_viewer.qt.window.store_watch import StoreWatch

        self.image_actions = ImageActions(self.session, self.panes, self.measure, self.exporter, self)
        self.contrast = ContrastActions(self.session, self.channels, self)
        self.thumbnails = LocationThumbnails(self.session, self.canvas, self.recent, self)
        self.store_watch = StoreWatch(self.session, self)
        self.dimensions.is_ready_for_next = self.image_actions.is_slice_drawn
        views = Path(self.settings.fileName()).with_name("views.json")
        self.views = SavedViewsMenu(self.session, self.panes, views, self)
        self.preferences = PreferenceActions(
            self.settings, self.session, self.panes, self.mounts, self.toolbar, self
        )

    @property
    def canvas(self) -> Canvas:
        """The canvas of the main pane."""
        return self.panes.main.canvas
