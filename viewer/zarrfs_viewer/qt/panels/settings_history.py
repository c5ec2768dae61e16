"""Undo, redo and reset of the settings, regions and orientation of the image, and the settings of former images."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from PyQt6.QtCore import QTimer

from zarrfs_viewer.analysis.regions import PlaneRegions
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.saved_views.image_settings import ImageSettings
from zarrfs_viewer.saved_views.views import View
from zarrfs_viewer.state.history import History
from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["SettingsHistory"]

Others = tuple[tuple[PlaneRegions, ...], tuple[int, bool]]
"""The state that the history records with the settings: the regions and the orientation of the picture."""

UPRIGHT = (0, False)
"""The orientation without rotation and mirroring."""

SAVE_DELAY_MILLISECONDS = 1000
"""Settings are saved when they have not changed for this long."""


class SettingsHistory(Panel):
    """Records every change of the settings of a session's image, and saves those that the user changed."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session = context.session
        regions, canvas = context.find(Measurements).panel, context.panes.main.canvas
        settings = ImageSettings(Path(context.settings.fileName()).with_name("images.json"))
        self._regions = regions
        self._canvas = canvas
        self._is_restoring = False
        self._image = session.image
        self._settings = settings
        self._history = History()
        self._history.clear(None, ((), UPRIGHT))
        self._unsaved: View | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY_MILLISECONDS)
        self._timer.timeout.connect(self._save)
        session.find_settings = settings.get
        session.image_changed.connect(self._show_image)
        session.settings_changed.connect(self._record)
        regions.changed.connect(self._record)
        canvas.orientation_changed.connect(self._record_orientation)
        session.worker.submit(settings.load, lambda _: None, lambda _: None)

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec("undo", "&Edit", "&Undo", "Ctrl+Z", self.undo, place=0),
            ActionSpec("redo", "&Edit", "&Redo", "Ctrl+Shift+Z", self.redo, place=10),
            ActionSpec(
                "reset",
                "&Edit",
                "Reset &settings of the image",
                "Ctrl+Shift+R",
                self.reset,
                place=100,
                needs="image",
            ),
        )

    def undo(self) -> None:
        """Undo the last change of the settings."""
        settings = self._history.undo()
        if settings is None:
            self._session.show_message("There is nothing to undo.")
        else:
            self._restore(settings)

    def redo(self) -> None:
        """Apply the change that was undone last."""
        settings = self._history.redo()
        if settings is None:
            self._session.show_message("There is nothing to redo.")
        else:
            self._restore(settings)

    def _restore(self, settings: DisplaySettings) -> None:
        """Apply settings of the history, and the regions and the orientation that belong to them."""
        others: Others = self._history.others  # type: ignore[assignment]
        regions, orientation = others
        self._is_restoring = True
        self._session.change(settings)
        self._regions.restore(regions)
        if orientation != self._canvas.orientation:
            self._canvas.set_orientation(*orientation)
        self._is_restoring = False

    def reset(self) -> None:
        """Apply the initial settings of the image: those of its metadata, and automatic contrast limits."""
        image = self._session.image
        if image is not None:
            before = self._canvas.orientation
            self._is_restoring = True
            self._session.change(initial_settings(image, len(self._session.overlays)))
            self._canvas.set_orientation(*UPRIGHT)
            self._is_restoring = False
            self._record_orientation(before)

    def close(self) -> None:
        """Save the settings of the displayed image. Blocks for the time that writing a small file takes."""
        self._timer.stop()
        self._remember()
        try:
            self._settings.save()
        except OSError as error:
            logging.getLogger("zarrfs").warning("the settings of images cannot be saved: %s", error)

    def _show_image(self) -> None:
        self._remember()
        self._image = self._session.image
        self._history.clear(self._session.settings, (self._regions.by_plane, self._canvas.orientation))

    def _record(self) -> None:
        # A restored view may have another orientation than the image had at first: this is not a change of the user.
        self._record_orientation(self._canvas.orientation)

    def _record_orientation(self, before: tuple[int, bool]) -> None:
        """Record the current state. ``before`` is the orientation before the change."""
        settings = self._session.settings
        if settings is None or self._is_restoring or self._session.image is not self._image:
            return  # with another image, the regions change before ``_show_image`` is called
        others: Others = self._history.others  # type: ignore[assignment]
        self._history.others = others[0], before
        self._history.record(settings, monotonic(), (self._regions.by_plane, self._canvas.orientation))
        if self._history.can_undo or self._history.can_redo:
            self._unsaved = self._session.view("", None)
            self._timer.start()

    def _remember(self) -> None:
        if self._unsaved is not None:
            self._settings.put(self._unsaved)
            self._unsaved = None

    def _save(self) -> None:
        self._remember()
        self._session.worker.submit(self._settings.save, lambda _: None, self._session.show_error)
