"""Everything that can be done in the window, with its menu and its key. What it does is said where it is done."""

from __future__ import annotations

from typing import Any, Protocol

from zarrfs_viewer.qt.canvas.canvas import KEY_ZOOM
from zarrfs_viewer.qt.window.actions import ActionSpec

__all__ = ["command_specs"]


class CommandWindow(Protocol):
    """What the commands need of the window. ``MainWindow`` imports this module, not the reverse."""

    @property
    def ask_export(self) -> Any: ...
    @property
    def ask_level(self) -> Any: ...
    @property
    def ask_screenshot(self) -> Any: ...
    @property
    def auto_contrast(self) -> Any: ...
    @property
    def canvas(self) -> Any: ...
    @property
    def close(self) -> Any: ...
    @property
    def dimensions(self) -> Any: ...
    @property
    def find_node(self) -> Any: ...
    @property
    def measure(self) -> Any: ...
    @property
    def opening(self) -> Any: ...
    @property
    def panes(self) -> Any: ...
    @property
    def retry(self) -> Any: ...
    @property
    def set_auto_each(self) -> Any: ...
    @property
    def set_dark(self) -> Any: ...
    @property
    def set_tool(self) -> Any: ...
    @property
    def show_keys(self) -> Any: ...
    @property
    def show_labels(self) -> Any: ...
    @property
    def show_linked(self) -> Any: ...
    @property
    def show_log(self) -> Any: ...
    @property
    def show_palette(self) -> Any: ...
    @property
    def tree_panel(self) -> Any: ...
    @property
    def turn(self) -> Any: ...
    @property
    def views(self) -> Any: ...
    @property
    def wants_window(self) -> Any: ...


def command_specs(window: CommandWindow, dark: bool) -> list[ActionSpec]:
    """Return the actions of a window, in the order of its menus."""
    opening, views, tree, canvas = window.opening, window.views, window.tree_panel, window.canvas
    dimensions, measure = window.dimensions, window.measure
    return [
        ActionSpec("new_window", "&File", "&New window", "Ctrl+N", window.wants_window.emit),
        ActionSpec("open_folder", "&File", "Open &folder ...", "Ctrl+O", opening.ask_folder),
        ActionSpec("open_zip", "&File", "Open &zip file ...", "Ctrl+Shift+O", opening.ask_zip),
        ActionSpec("open_location", "&File", "Open &location or link ...", "Ctrl+L", opening.ask_location),
        ActionSpec("open_recent", "&File", "Open &recent ...", "Ctrl+R", opening.ask_recent),
        ActionSpec("paste", "&File", "Open what is on the &clipboard", "Ctrl+V", opening.paste),
        ActionSpec("export", "&File", "&Export ...", "Ctrl+E", window.ask_export),
        ActionSpec("screenshot", "&File", "Save the &picture ...", "Ctrl+S", window.ask_screenshot),
        ActionSpec(
            "mount",
            "&File",
            "&Mount and open the folder",
            "Ctrl+M",
            lambda: tree.mount_and_open(tree.current()),
        ),
        ActionSpec(
            "file_manager",
            "&File",
            "Show in the file mana&ger",
            "Ctrl+Shift+F",
            lambda: tree.show_in_file_manager(tree.current()),
        ),
        ActionSpec("quit", "&File", "&Close", "Ctrl+Q", window.close),
        ActionSpec("fit", "&View", "Show &all", "F", canvas.fit),
        ActionSpec("one_to_one", "&View", "&One to one", "1", canvas.one_to_one),
        ActionSpec("zoom_in", "&View", "Zoom &in", "+", lambda: canvas.zoom(KEY_ZOOM)),
        ActionSpec("zoom_out", "&View", "Zoom o&ut", "-", lambda: canvas.zoom(1 / KEY_ZOOM)),
        ActionSpec("turn", "&View", "Show the next pair of a&xes", "X", window.turn),
        ActionSpec("linked", "&View", "&Three linked panes", "3", window.show_linked, False),
        ActionSpec("level", "&View", "Pyramid &level ...", "L", window.ask_level),
        ActionSpec("scale_bar", "&View", "&Scale bar", "B", window.panes.set_show_scale_bar, True),
        ActionSpec(
            "chunks", "&View", "&Chunk grid and missing chunks", "G", window.panes.set_show_chunks, False
        ),
        ActionSpec("labels", "&View", "La&bels", "T", window.show_labels, True),
        ActionSpec("messages", "&View", "&Messages", "Ctrl+J", window.show_log, False),
        ActionSpec("find", "&View", "Find in the &hierarchy", "Ctrl+F", window.find_node),
        ActionSpec("dark", "&View", "&Dark colours", "Ctrl+D", window.set_dark, dark),
        ActionSpec("next_slice", "&Image", "&Next slice", ".", lambda: dimensions.step(1)),
        ActionSpec("previous_slice", "&Image", "&Previous slice", ",", lambda: dimensions.step(-1)),
        ActionSpec("play", "&Image", "P&lay, or stop", "K", dimensions.play),
        ActionSpec("slab", "&Image", "&Slice, maximum or mean of a slab", "S", dimensions.next_mode),
        ActionSpec("auto_all", "&Image", "&Auto-contrast of all channels", "A", window.auto_contrast),
        ActionSpec(
            "auto_each",
            "&Image",
            "Contrast of its own for &each image",
            "Shift+A",
            window.set_auto_each,
            False,
        ),
        ActionSpec("retry", "&Image", "&Read again what failed", "F5", window.retry),
        ActionSpec(
            "move", "&Measure", "&Move the picture", "M", lambda: window.set_tool("move"), True, "tool"
        ),
        ActionSpec(
            "line", "&Measure", "&Profile along a line", "P", lambda: window.set_tool("line"), False, "tool"
        ),
        ActionSpec(
            "rectangle", "&Measure", "&Rectangle", "R", lambda: window.set_tool("rectangle"), False, "tool"
        ),
        ActionSpec("ellipse", "&Measure", "&Ellipse", "O", lambda: window.set_tool("ellipse"), False, "tool"),
        ActionSpec(
            "no_shape", "&Measure", "&Take the shape away", "Backspace", lambda: canvas.show_shape(None)
        ),
        ActionSpec("copy_csv", "&Measure", "&Copy the numbers as CSV", "Ctrl+Shift+C", measure.copy_csv),
        ActionSpec("keep_view", "&Keep", "&Keep this view ...", "Ctrl+K", views.ask_name),
        ActionSpec("show_view", "&Keep", "&Show a kept view ...", "Ctrl+Shift+K", views.ask_view),
        ActionSpec("delete_view", "&Keep", "&Delete a kept view ...", "Ctrl+Shift+D", views.ask_delete),
        ActionSpec("copy_link", "&Keep", "Copy a &link to this view", "Ctrl+Shift+L", views.copy_link),
        ActionSpec(
            "copy_command",
            "&Keep",
            "Copy the &command that shows this view",
            "Ctrl+Shift+X",
            views.copy_command,
        ),
        ActionSpec("palette", "&Help", "Find an &action ...", "Ctrl+Shift+P", window.show_palette),
        ActionSpec("keys", "&Help", "&Keys", "?", window.show_keys),
    ]
