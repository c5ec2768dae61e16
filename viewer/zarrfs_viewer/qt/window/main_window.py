"""The main window: hierarchy at the left, image in the centre, channels, measurements and metadata at the right.

The window connects its parts, which ``parts`` creates. The state is in the session. ``side_panels`` creates the docks;
``image_actions`` and ``contrast_actions`` contain the user's actions on the image. The modules of the actions are
imported where they are created, because the window is visible before (see ``frame``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PyQt6.QtCore import QSettings, pyqtSignal
from PyQt6.QtGui import QResizeEvent, QShowEvent

from zarrfs_viewer.qt.support.plain_text import window_title
from zarrfs_viewer.qt.support.widgets import set_tab_order
from zarrfs_viewer.qt.window.actions import CommandPalette, add_actions, show_key_help
from zarrfs_viewer.qt.window.parts import WindowParts
from zarrfs_viewer.qt.window.preferences import Preferences

if TYPE_CHECKING:
    from zarrfs.engine.stores.base import Store
    from zarrfs_viewer.images.dataset import Dataset
    from zarrfs_viewer.images.image import Image
    from zarrfs_viewer.qt.canvas.canvas import Tool
    from zarrfs_viewer.rendering.renderer import Frame
    from zarrfs_viewer.state.view_state import ViewIntent

__all__ = ["MainWindow"]


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
        yield from self._create_widgets()
        self._connect()
        yield from self._create_actions()
        self.preferences.apply_stored()
        if self.isVisible():
            self._follow_show()

    def _create_actions(self) -> Iterator[None]:
        from zarrfs_viewer.qt.window.commands import command_specs
        from zarrfs_viewer.qt.window.features import Features, merged_specs

        self.features = Features(
            self.session, self.panes, self.side, self.image_actions, self.settings, self.stack, self.exporter
        )
        self.features.editing.saved.connect(self.store_watch.restart)
        yield
        specs = command_specs(self, Preferences.load(self.settings).dark)
        self.actions_by_name = add_actions(self, merged_specs(specs, self.features.commands()))
        self.features.show_actions(self.actions_by_name)
        self.preferences.dark_action = self.actions_by_name["dark"]
        self.features.values.dock.visibilityChanged.connect(
            lambda visible: self._check("neighbourhood", visible)
        )
        yield
        self.toolbar.show_actions(self.actions_by_name)
        yield

    def _connect(self) -> None:
        session = self.session
        session.message_changed.connect(self._show_message)
        session.outcome_reported.connect(self._show_outcome)
        session.failed.connect(self._show_failure)
        session.dataset_changed.connect(self._show_dataset)
        session.image_changed.connect(self._show_image)
        session.axes_changed.connect(self._show_axes)
        session.intent_changed.connect(self._show_intent)
        self.status.follow(session)
        self.panes.frame_shown.connect(self._show_frame)
        self.panes.pointed.connect(self.status.show_readout)
        self.panes.stepped.connect(self.dimensions.step)
        self.canvas.shape_changed.connect(self.image_actions.measure)
        self.dimensions.moved.connect(self.image_actions.set_position)
        self.dimensions.projected.connect(self.image_actions.set_projection)
        self.tree_panel.window_requested.connect(self.location_window_requested)
        self.log.warning_count_changed.connect(self.status.show_warning_count)
        self.status.warnings_requested.connect(lambda: self.actions_by_name["messages"].setChecked(True))
        self.side.log_dock.visibilityChanged.connect(lambda visible: self._check("messages", visible))

    def _trigger(self, name: str) -> None:
        """Trigger the action of a button of the start page, as soon as the actions exist."""
        self.call_when_complete(lambda: self.actions_by_name[name].trigger())

    def _check(self, name: str, visible: bool) -> None:
        """Check the action of a dock that was shown or closed."""
        if not self.isHidden():
            self.actions_by_name[name].setChecked(visible)

    # -- public interface --------------------------------------------------------------------------------------

    @property
    def image(self) -> Image | None:
        """The displayed image, or None."""
        return self.session.image

    @property
    def intent(self) -> ViewIntent | None:
        """The display settings of the image, or None."""
        return self.session.intent

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

    def _show_message(self, text: str, is_warning: bool) -> None:
        """Show a message over the image. An empty text hides it."""
        self.notice.show_message(text, is_warning)
        self.log.add(text, is_warning)

    def _show_outcome(self, text: str, is_warning: bool) -> None:
        """Show how a long operation ended, until the user closes the message."""
        self.outcome.add_message(text, is_warning)
        self.log.add(text, is_warning)

    def _show_failure(self, reason: str) -> None:
        if self.session.image is None:
            self.stack.setCurrentIndex(0 if self.session.dataset is None else 1)
            self.panels.setCurrentWidget(self.metadata)
        if self.session.dataset is None:
            self.metadata.show_text(reason)
        self.failed.emit(reason)

    def _show_dataset(self) -> None:
        dataset = self.session.dataset
        if dataset is None:
            self._show_start_page()
            return
        self.stack.setCurrentIndex(1)
        self.setWindowTitle(window_title(dataset.name or dataset.location))
        self.side.show_dataset(dataset)

    def _show_start_page(self) -> None:
        """Show the start page after the displayed location was closed. The docks remain while others are open."""
        self.setWindowTitle("zarrfs viewer")
        self.empty.refresh()
        self.stack.setCurrentIndex(0)
        if not self.tree_panel.model.tops:
            self.docks.hide()

    def _show_axes(self) -> None:
        self.dimensions.show_image(self.session.image, self.session.intent)
        set_tab_order(self.canvas, *self.dimensions.focus_order())

    def _show_image(self) -> None:
        self.contrast.forget_slice()
        if self.session.dataset is not None:
            self.stack.setCurrentIndex(1)
        self.side.show_image()
        if self.session.image is not None and not self.plate.table.hasFocus():
            self.canvas.setFocus()  # unless the arrow keys select the next well

    def _show_intent(self) -> None:
        intent = self.session.intent
        if intent is not None:
            self.side.show_channel_settings(intent.channels)
            self.labels.show_settings(intent.labels)
            self.dimensions.show_intent(intent)
            self.toolbar.set_active("slab", intent.projection is not None)
            self.image_actions.measure_again()

    def _show_frame(self, frame: Frame) -> None:
        self.contrast.show_frame(frame)
        self.dimensions.show_level(frame.state.level)
        self.thumbnails.show_frame(frame)
        self.status.show_memory(self.session.streamer.memory)
        self._memory_release.request()
        self.frame_shown.emit(frame)

    # -- actions -----------------------------------------------------------------------------------------------

    def show_linked(self, on: bool) -> None:
        """Show three linked panes, or one."""
        if not self.panes.set_linked(on):
            self.session.show_message("Linked panes need an image with a third axis.")
            self.actions_by_name["linked"].setChecked(False)

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of dragging on the image."""
        self.canvas.set_tool(tool)
        if tool != "move":
            self.panels.setCurrentWidget(self.measure)

    def show_palette(self) -> None:
        """Open the command palette."""
        CommandPalette(self.actions_by_name, self).exec()

    def show_keys(self) -> None:
        """Show the keyboard shortcuts."""
        show_key_help(self.actions_by_name, self)

    # -- events ------------------------------------------------------------------------------------------------

    def focus_canvas(self) -> None:
        """Give the keyboard focus to the canvas."""
        page = self.stack.currentWidget()
        if page in (self.empty, self.features.plates.overview, self.features.values.view):
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

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if self.is_complete:
            self.docks.arrange()

    def _close_parts(self) -> None:
        self.docks.save()
        self.hide()
        stoppable = (self.contrast, self.thumbnails, self.status, self._memory_release, self._settings_writer)
        for part in (*stoppable, self.dimensions, self.store_watch):
            part.stop()
        self.exporter.close()
        self.features.close()
        self.panes.close_panes()
        self.session.close()
        self.side.close()
        self.mounts.close()
