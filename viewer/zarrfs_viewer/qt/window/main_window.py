"""The main window: hierarchy at the left, image in the centre, channels, measurements and metadata at the right.

The window shows the pages, the title and the messages, and collects the actions of its panels in menus. The state is in
the session. ``panels`` lists the panels, which connect themselves with the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from PyQt6.QtCore import QEvent, QSettings, pyqtSignal
from PyQt6.QtGui import QResizeEvent, QShowEvent

from zarrfs.credentials import hide_credentials
from zarrfs_viewer.locations import display_name
from zarrfs_viewer.qt.support.actions import ActionSpec, Need, add_actions, enable_actions
from zarrfs_viewer.qt.support.plain_text import window_title
from zarrfs_viewer.qt.window.about import show_about
from zarrfs_viewer.qt.window.command_palette import CommandPalette, show_key_help
from zarrfs_viewer.qt.window.parts import WindowParts

if TYPE_CHECKING:
    from zarrfs.engine.stores.base import Store
    from zarrfs_viewer.images.dataset import Dataset
    from zarrfs_viewer.images.image import Image
    from zarrfs_viewer.rendering.renderer import Frame
    from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["MainWindow"]

IMAGE_PAGE = 1
"""The page of the stack with the picture."""


class MainWindow(WindowParts):
    """A window of the viewer.

    Signals:
        frame_shown: (frame) the main pane displays another frame.
        failed: (text) a location could not be opened, with the reason.
        new_window_requested: the user requested another window.
        location_window_requested: (location) the user requested another window with a location.
    """

    frame_shown = pyqtSignal(object)
    failed = pyqtSignal(str)
    new_window_requested = pyqtSignal()
    location_window_requested = pyqtSignal(str)

    def __init__(self, settings: QSettings | None = None, in_steps: bool = False) -> None:
        """Create the window. With ``in_steps`` most parts do not exist before ``complete_in_steps`` creates them."""
        super().__init__(settings if settings is not None else QSettings("zarrfs", "viewer"))
        self._was_shown = False
        self.empty.action_requested.connect(self._trigger)
        self.empty.location_selected.connect(self.open_location)
        if not in_steps:
            self.complete()

    # -- construction ------------------------------------------------------------------------------------------

    def _create_parts(self) -> Iterator[None]:
        self._create_session()
        yield
        yield from self._create_center()
        self._connect()  # before the panels: their pages replace the picture that the window shows
        yield from self._create_panels()
        self._create_controllers()
        yield
        yield from self._create_actions()
        self.preferences.apply_stored()
        if self.isVisible():
            self._follow_show()

    def _create_actions(self) -> Iterator[None]:
        from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
        from zarrfs_viewer.qt.panels.messages import Messages
        from zarrfs_viewer.qt.panels.metadata.metadata import Metadata

        self.panel(Hierarchy).tree.window_requested.connect(self.location_window_requested)
        self.panel(Messages).log.warning_count_changed.connect(self.status.show_warning_count)
        self.panel(Metadata).saved.connect(self.store_watch.restart)
        panels = self.panel_context.panels
        of_panels = chain.from_iterable(panel.actions() for panel in panels)
        others = (
            *self.opener.actions(),
            *self.preferences.actions(),
            *self.docks.actions(),
            *self._own_actions(),
        )
        self.actions_by_name = add_actions(self, (*of_panels, *others))
        self.session.dataset_changed.connect(self._enable_actions)
        self.session.image_changed.connect(self._enable_actions)
        self._enable_actions()
        for panel in panels:
            panel.show_actions(self.actions_by_name)
        self.preferences.show_actions(self.actions_by_name)
        yield
        self.toolbar.show_actions(self.actions_by_name)
        yield

    def _own_actions(self) -> tuple[ActionSpec, ...]:
        return (
            ActionSpec(
                "new_window", "&File", "&New window", "Ctrl+N", self.new_window_requested.emit, place=0
            ),
            ActionSpec("quit", "&File", "&Close", "Ctrl+Q", self.close, place=500),
            ActionSpec("palette", "&Help", "Command &palette...", "Ctrl+Shift+P", self.show_palette, place=0),
            ActionSpec("keys", "&Help", "&Keyboard shortcuts", "?; F1", self.show_keys, place=10),
            ActionSpec("about", "&Help", "&About zarrfs", "Ctrl+F1", self.show_about, place=100),
        )

    def _connect(self) -> None:
        session = self.session
        session.message_changed.connect(self._show_message)
        session.outcome_reported.connect(self.outcome.add_message)
        session.opening_changed.connect(self._show_opening)
        session.failed.connect(self._show_failure)
        session.dataset_changed.connect(self._show_dataset)
        session.image_changed.connect(self._show_image)
        session.projection_changed.connect(self._show_projection)
        self.status.follow(session)
        self.panes.frame_shown.connect(self._show_frame)
        self.panes.pointed.connect(self.status.show_readout)
        self.status.warnings_requested.connect(lambda: self.actions_by_name["messages"].setChecked(True))

    def _trigger(self, name: str) -> None:
        """Trigger the action of a button of the start page, as soon as the actions exist."""
        self.call_when_complete(lambda: self.actions_by_name[name].trigger())

    # -- public interface --------------------------------------------------------------------------------------

    @property
    def image(self) -> Image | None:
        """The displayed image, or None."""
        return self.session.image

    @property
    def display_settings(self) -> DisplaySettings | None:
        """The display settings of the image, or None."""
        return self.session.settings

    @property
    def dataset(self) -> Dataset | None:
        """The dataset that was opened last, or None."""
        return self.session.dataset

    def open_location(self, location: str | Store, path: str = "") -> None:
        """Open a location on a worker thread, as soon as the window is complete. Returns at once."""
        self.call_when_complete(lambda: self.session.open_location(location, path))

    def open_dropped(self, text: str) -> None:
        """Open dropped locations, one per line."""
        self.call_when_complete(lambda: self.opener.open_all(text))

    # -- display -----------------------------------------------------------------------------------------------

    def _show_message(self, text: str, is_warning: bool, action: str) -> None:
        self.notice.show_message(text, is_warning, self.actions_by_name[action] if action else None)

    def _show_opening(self, locations: list[str]) -> None:
        """Show what is being opened in the place of the start page."""
        if self.session.dataset is not None or not locations:
            return
        names = (f"Opening {display_name(each)}\n{each}" for each in locations)
        self.canvas.show_waiting(hide_credentials("\n".join(names)))
        self.stack.setCurrentIndex(IMAGE_PAGE)

    def _show_failure(self, reason: str) -> None:
        if self.session.image is None:
            self.canvas.show_waiting("")
            self.stack.setCurrentIndex(0 if self.session.dataset is None else IMAGE_PAGE)
        self.failed.emit(reason)

    def _show_dataset(self) -> None:
        dataset = self.session.dataset
        if dataset is None:
            self._show_start_page()
            return
        self.stack.setCurrentIndex(IMAGE_PAGE)
        self.setWindowTitle(window_title(dataset.name or dataset.location))
        self.docks.show()

    def _show_start_page(self) -> None:
        """Show the start page after the displayed location was closed. The docks remain while others are open."""
        self.setWindowTitle("zarrfs viewer")
        self.empty.refresh()
        self.stack.setCurrentIndex(0)
        from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy

        if not self.panel(Hierarchy).tree.model.tops:
            self.docks.hide()

    def _show_image(self) -> None:
        if self.session.dataset is not None:
            self.stack.setCurrentIndex(IMAGE_PAGE)
        if self.session.image is not None and not any(
            panel.keeps_focus for panel in self.panel_context.panels
        ):
            self.canvas.setFocus()

    def _show_projection(self) -> None:
        settings = self.session.settings
        self.toolbar.set_active("slab", settings is not None and settings.projection is not None)

    def _show_frame(self, frame: Frame) -> None:
        self.thumbnails.show_frame(frame)
        self.status.show_memory(self.session.streamer.memory)
        self._memory_release.request()
        self.frame_shown.emit(frame)

    # -- actions -----------------------------------------------------------------------------------------------

    def _enable_actions(self) -> None:
        """Enable the actions for what is open now."""
        dataset, image = self.session.dataset, self.session.image
        available: list[Need] = []
        if dataset is not None:
            available.append("data")
            if dataset.plate is not None:
                available.append("plate")
        if image is not None:
            available.append("image")
        enable_actions(self.actions_by_name.values(), available)

    def show_palette(self) -> None:
        """Open the command palette."""
        CommandPalette(self.actions_by_name, self).exec()

    def show_keys(self) -> None:
        """Show the keyboard shortcuts."""
        show_key_help(self.actions_by_name, self)

    def show_about(self) -> None:
        """Show the versions of the program and of the libraries that a report of a fault needs."""
        show_about(self)

    # -- events ------------------------------------------------------------------------------------------------

    def focus_canvas(self) -> None:
        """Give the keyboard focus to the canvas."""
        page = self.stack.currentWidget()
        if page is not None and page is not self.stack.widget(IMAGE_PAGE):
            page.setFocus()
        else:
            self.canvas.setFocus()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        if self.is_complete:
            self._follow_show()
        else:
            self.empty.setFocus()

    def _follow_show(self) -> None:
        self.focus_canvas()
        if not self._was_shown:
            self._was_shown = True
            self.session.import_engine()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.ActivationChange and self.is_complete:
            self.store_watch.compare()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if self.is_complete:
            self.docks.arrange()

    def _close_parts(self) -> None:
        self.docks.save()
        self.hide()
        for part in (
            self.thumbnails,
            self.status,
            self._memory_release,
            self._settings_writer,
            self.store_watch,
        ):
            part.stop()
        for panel in self.panel_context.panels:
            panel.close()
        self.panes.close_panes()
        self.session.close()
        self.mounts.close()
