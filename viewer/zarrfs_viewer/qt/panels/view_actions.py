"""How the image is displayed: zoom, orientation, pyramid level, overlays and linked planes; reading it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PyQt6.QtGui import QAction
from PyQt6.QtWidgets import QInputDialog

from zarrfs_viewer.qt.canvas.canvas import KEY_ZOOM
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.plain_text import plain
from zarrfs_viewer.state.view_state import with_level_lock

__all__ = ["ViewActions"]


class ViewActions(Panel):
    """The actions on the picture that have no widgets."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self._panes = context.panes
        self._parent = context.window
        self._linked: QAction | None = None

    def actions(self) -> Sequence[ActionSpec]:
        view, panes, canvas = "&View", self._panes, self._panes.main.canvas
        return (
            ActionSpec(
                "reload",
                "&File",
                "Reload from the s&tore",
                "Ctrl+F5",
                self.reload,
                place=170,
                needs="data",
                synonyms="refresh",
            ),
            ActionSpec(
                "fit",
                view,
                "&Fit to window",
                "F",
                canvas.fit,
                place=0,
                needs="image",
                synonyms="whole image zoom",
            ),
            ActionSpec(
                "one_to_one",
                view,
                "&Actual size",
                "1",
                canvas.one_to_one,
                place=10,
                needs="image",
                synonyms="100 % original zoom",
            ),
            ActionSpec(
                "zoom_in", view, "Zoom &in", "+", lambda: canvas.zoom(KEY_ZOOM), place=20, needs="image"
            ),
            ActionSpec(
                "zoom_out", view, "Zoom o&ut", "-", lambda: canvas.zoom(1 / KEY_ZOOM), place=30, needs="image"
            ),
            ActionSpec(
                "linked",
                view,
                "&Three planes and a slab",
                "3",
                self.show_linked,
                False,
                place=110,
                needs="image",
                synonyms="orthogonal views xy xz yz",
            ),
            ActionSpec(
                "rotate", view, "&Rotate by 90 degrees", "Shift+R", canvas.rotate, place=120, needs="image"
            ),
            ActionSpec(
                "mirror", view, "&Mirror left and right", "Shift+M", canvas.mirror, place=130, needs="image"
            ),
            ActionSpec(
                "overview",
                view,
                "O&verview map",
                "V",
                panes.overview.set_enabled,
                True,
                place=200,
                synonyms="navigator minimap",
            ),
            ActionSpec(
                "level",
                view,
                "Pyramid &level...",
                "L",
                self.ask_level,
                place=140,
                needs="image",
                synonyms="resolution multiscale",
            ),
            ActionSpec("scale_bar", view, "&Scale bar", "B", panes.set_show_scale_bar, True, place=210),
            ActionSpec(
                "chunks",
                view,
                "&Chunk grid and missing chunks",
                "G",
                panes.set_show_chunks,
                False,
                place=220,
                synonyms="blocks tiles",
            ),
            ActionSpec(
                "retry",
                "&Image",
                "&Retry failed reads",
                "F5",
                self.retry,
                place=200,
                needs="image",
                synonyms="unreadable reload",
            ),
        )

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        self._linked = actions["linked"]

    def show_linked(self, on: bool) -> None:
        """Show three linked panes, or one."""
        if not self._panes.set_linked(on):
            self._session.show_message("Linked panes need an image with a third axis.")
            if self._linked is not None:
                self._linked.setChecked(False)

    def ask_level(self) -> None:
        """Ask for the pyramid level to display."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            return
        names = ["Automatic"] + [
            plain(f"{number}: {' x '.join(map(str, level.shape))}")
            for number, level in enumerate(image.levels)
        ]
        lock = settings.level_lock
        text, accepted = QInputDialog.getItem(
            self._parent, "Pyramid level", "Level:", names, 0 if lock is None else lock + 1, False
        )
        if accepted:
            number = names.index(text) - 1
            self._session.change(with_level_lock(settings, None if number < 0 else number))

    def reload(self) -> None:
        """Open the displayed location again, with the same settings."""
        self._session.reload(self._panes.main.canvas.viewport)

    def retry(self) -> None:
        """Read the tiles again that could not be read."""
        self._session.show_message("")
        self._session.streamer.retry()
        self._panes.refresh()
