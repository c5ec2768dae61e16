"""The actions of the main window, with their menus and keyboard shortcuts."""

from __future__ import annotations

from typing import Any, Protocol

from zarrfs_viewer.qt.canvas.canvas import KEY_ZOOM
from zarrfs_viewer.qt.window.actions import ActionSpec

__all__ = ["command_specs"]


class CommandWindow(Protocol):
    """The part of ``MainWindow`` that the actions use. ``MainWindow`` imports this module, not the reverse."""

    @property
    def canvas(self) -> Any: ...
    @property
    def close(self) -> Any: ...
    @property
    def contrast(self) -> Any: ...
    @property
    def dimensions(self) -> Any: ...
    @property
    def image_actions(self) -> Any: ...
    @property
    def measure(self) -> Any: ...
    @property
    def opener(self) -> Any: ...
    @property
    def panes(self) -> Any: ...
    @property
    def preferences(self) -> Any: ...
    @property
    def set_tool(self) -> Any: ...
    @property
    def show_keys(self) -> Any: ...
    @property
    def show_linked(self) -> Any: ...
    @property
    def show_palette(self) -> Any: ...
    @property
    def side(self) -> Any: ...
    @property
    def tree_panel(self) -> Any: ...
    @property
    def views(self) -> Any: ...
    @property
    def new_window_requested(self) -> Any: ...


def command_specs(window: CommandWindow, dark: bool) -> list[ActionSpec]:
    """Return the actions of a window, in the order of its menus."""
    opener, views, tree, canvas = window.opener, window.views, window.tree_panel, window.canvas
    dimensions, measure = window.dimensions, window.measure
    image, contrast = window.image_actions, window.contrast
    return [
        ActionSpec("new_window", "&File", "&New window", "Ctrl+N", window.new_window_requested.emit),
        ActionSpec("open_folder", "&File", "Open &folder...", "Ctrl+O", opener.ask_folder),
        ActionSpec("open_zip", "&File", "&Open file...", "Ctrl+Shift+O", opener.ask_zip),
        ActionSpec("open_location", "&File", "Open &location or link...", "Ctrl+L", opener.ask_location),
        ActionSpec("credentials", "&File", "Credenti&als of a URL...", "Ctrl+Alt+C", opener.ask_credentials),
        ActionSpec("open_sample", "&File", "Open sample &data set", "Ctrl+Shift+S", opener.open_sample),
        ActionSpec("open_recent", "&File", "Open &recent...", "Ctrl+R", opener.ask_recent),
        ActionSpec("reload", "&File", "Reload from the s&tore", "Ctrl+F5", image.reload),
        ActionSpec("paste", "&File", "Open from clip&board", "Ctrl+V", opener.paste),
        ActionSpec("export", "&File", "&Export...", "Ctrl+E", image.ask_export),
        ActionSpec("screenshot", "&File", "Save &screenshot...", "Ctrl+S", image.ask_screenshot),
        ActionSpec(
            "mount",
            "&File",
            "&Mount and open folder",
            "Ctrl+M",
            lambda: tree.mount_and_open(tree.current()),
        ),
        ActionSpec(
            "file_manager",
            "&File",
            "Show in file mana&ger",
            "Ctrl+Shift+F",
            lambda: tree.show_in_file_manager(tree.current()),
        ),
        ActionSpec("preferences", "&File", "&Preferences...", "Ctrl+,", window.preferences.ask),
        ActionSpec("quit", "&File", "&Close", "Ctrl+Q", window.close),
        ActionSpec("fit", "&View", "&Fit to window", "F", canvas.fit),
        ActionSpec("one_to_one", "&View", "&Actual size", "1", canvas.one_to_one),
        ActionSpec("zoom_in", "&View", "Zoom &in", "+", lambda: canvas.zoom(KEY_ZOOM)),
        ActionSpec("zoom_out", "&View", "Zoom o&ut", "-", lambda: canvas.zoom(1 / KEY_ZOOM)),
        ActionSpec("next_axes", "&View", "Show next a&xes", "X", image.show_next_axes),
        ActionSpec("linked", "&View", "&Three planes and a slab", "3", window.show_linked, False),
        ActionSpec("rotate", "&View", "&Rotate by 90 degrees", "Shift+R", canvas.rotate),
        ActionSpec("mirror", "&View", "&Mirror left and right", "Shift+M", canvas.mirror),
        ActionSpec("overview", "&View", "O&verview map", "V", window.panes.overview.set_enabled, True),
        ActionSpec("level", "&View", "Pyramid &level...", "L", image.ask_level),
        ActionSpec("scale_bar", "&View", "&Scale bar", "B", window.panes.set_show_scale_bar, True),
        ActionSpec(
            "chunks", "&View", "&Chunk grid and missing chunks", "G", window.panes.set_show_chunks, False
        ),
        ActionSpec("labels", "&View", "La&bels", "T", image.show_labels, True),
        ActionSpec("messages", "&View", "M&essages", "Ctrl+J", window.side.log_dock.setVisible, False),
        ActionSpec("find", "&View", "Find in &hierarchy", "Ctrl+F", window.tree_panel.focus_search),
        ActionSpec("dark", "&View", "&Dark theme", "Ctrl+D", window.preferences.set_dark, dark),
        ActionSpec("next_slice", "&Image", "&Next slice", ".", lambda: dimensions.step(1)),
        ActionSpec("previous_slice", "&Image", "&Previous slice", ",", lambda: dimensions.step(-1)),
        ActionSpec("next_time", "&Image", "Next &time point", "]", lambda: dimensions.step_time(1)),
        ActionSpec("previous_time", "&Image", "Previous ti&me point", "[", lambda: dimensions.step_time(-1)),
        ActionSpec("go_to", "&Image", "&Go to coordinate...", "Ctrl+G", image.ask_position),
        ActionSpec("play", "&Image", "P&lay or stop", "K", dimensions.play),
        ActionSpec("slab", "&Image", "Next &slab projection", "S", dimensions.next_mode),
        ActionSpec("auto_all", "&Image", "&Auto-contrast all channels", "A", contrast.auto_contrast),
        ActionSpec(
            "auto_contrast_per_image",
            "&Image",
            "Auto-contrast &each image",
            "Shift+A",
            contrast.set_per_image,
            False,
        ),
        ActionSpec("retry", "&Image", "&Retry failed reads", "F5", image.retry),
        ActionSpec("move", "&Measure", "&Move image", "M", lambda: window.set_tool("move"), True, "tool"),
        ActionSpec("line", "&Measure", "Line &profile", "P", lambda: window.set_tool("line"), False, "tool"),
        ActionSpec(
            "rectangle", "&Measure", "&Rectangle", "R", lambda: window.set_tool("rectangle"), False, "tool"
        ),
        ActionSpec("ellipse", "&Measure", "&Ellipse", "O", lambda: window.set_tool("ellipse"), False, "tool"),
        ActionSpec("polygon", "&Measure", "Pol&ygon", "Y", lambda: window.set_tool("polygon"), False, "tool"),
        ActionSpec("point", "&Measure", "P&oint", "I", lambda: window.set_tool("point"), False, "tool"),
        ActionSpec("delete_shape", "&Measure", "&Delete shape", "Backspace", lambda: canvas.show_shape(None)),
        ActionSpec("copy_csv", "&Measure", "&Copy results as CSV", "Ctrl+Shift+C", measure.copy_csv),
        ActionSpec("save_view", "&Saved views", "&Save view...", "Ctrl+K", views.ask_save),
        ActionSpec("open_view", "&Saved views", "&Open saved view...", "Ctrl+Shift+K", views.ask_open),
        ActionSpec("delete_view", "&Saved views", "&Delete saved view...", "Ctrl+Shift+D", views.ask_delete),
        ActionSpec("copy_link", "&Saved views", "Copy &link to view", "Ctrl+Shift+L", views.copy_link),
        ActionSpec(
            "copy_command", "&Saved views", "Copy &command for view", "Ctrl+Shift+X", views.copy_command
        ),
        ActionSpec("palette", "&Help", "Command &palette...", "Ctrl+Shift+P", window.show_palette),
        ActionSpec("keys", "&Help", "&Keyboard shortcuts", "?; F1", window.show_keys),
    ]
