"""The user's actions on the preferences: they are edited, applied to a window, and stored for other windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PyQt6.QtCore import QSettings
from PyQt6.QtGui import QAction
from PyQt6.QtWidgets import QApplication, QWidget

from zarrfs.engine.cache import set_default_capacity
from zarrfs_viewer.images.channels import set_palette
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.theme import apply_theme
from zarrfs_viewer.qt.window.preferences import Preferences, PreferencesDialog
from zarrfs_viewer.qt.window.toolbar import ToolBar

__all__ = ["PreferenceActions"]


class PreferenceActions:
    """Applies preferences to the parts of one window.

    Attributes:
        dark_action: the action that is checked while the theme is dark; None until the actions exist.
    """

    def __init__(
        self,
        settings: QSettings,
        session: Session,
        panes: Panes,
        mounts: Mounts,
        toolbar: ToolBar,
        parent: QWidget,
    ) -> None:
        self._settings = settings
        self._session = session
        self._panes = panes
        self._mounts = mounts
        self._toolbar = toolbar
        self._parent = parent
        self.dark_action: QAction | None = None

    def actions(self) -> Sequence[ActionSpec]:
        """Return the actions that change the preferences."""
        dark = Preferences.load(self._settings).dark
        return (
            ActionSpec(
                "preferences",
                "&File",
                "&Preferences...",
                "Ctrl+,",
                self.ask,
                place=400,
                synonyms="settings options threads cache",
            ),
            ActionSpec(
                "dark",
                "&View",
                "&Dark theme",
                "Ctrl+D",
                self.set_dark,
                dark,
                place=410,
                synonyms="light colours",
            ),
        )

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        """Keep the action of the theme, which is checked while it is dark."""
        self.dark_action = actions["dark"]

    def apply_stored(self) -> None:
        """Apply the stored preferences."""
        self.apply(Preferences.load(self._settings))

    def set_dark(self, on: bool) -> None:
        """Use the dark or the light theme."""
        self.apply(replace(Preferences.load(self._settings), dark=on))

    def ask(self) -> None:
        """Ask for the preferences, and apply them."""
        dialog = PreferencesDialog(Preferences.load(self._settings), self._parent)
        if dialog.exec():
            self.apply(dialog.preferences())

    def apply(self, preferences: Preferences) -> None:
        """Apply preferences to this window, and store them for other windows."""
        preferences.save(self._settings)
        self._mounts.suffix = preferences.file_type
        self._panes.set_wheel_steps(preferences.wheel == "step")
        # A quarter of the budget is for tiles. The engine's cache has the chunks that several slices share.
        self._session.streamer.set_budget(preferences.cache_mib << 18)
        set_default_capacity(3 * preferences.cache_mib << 18)
        self._session.streamer.set_workers(preferences.threads)
        set_palette(preferences.colors)
        if self.dark_action is not None:
            self.dark_action.blockSignals(True)
            self.dark_action.setChecked(preferences.dark)
            self.dark_action.blockSignals(False)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, preferences.dark)
            self._toolbar.show_theme(application.palette())
