"""Connects the features that have modules of their own with a window, and lists their actions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PyQt6.QtCore import QSettings
from PyQt6.QtGui import QAction
from PyQt6.QtWidgets import QStackedWidget

from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.panels.export_dialog import Exporter
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.window.actions import MENUS, ActionSpec
from zarrfs_viewer.qt.window.colormap_actions import ColormapActions
from zarrfs_viewer.qt.window.image_actions import ImageActions
from zarrfs_viewer.qt.window.metadata_editing import MetadataEditing
from zarrfs_viewer.qt.window.picture_menu import PictureMenu
from zarrfs_viewer.qt.window.pictures import PictureActions
from zarrfs_viewer.qt.window.plate_navigation import PlateNavigation
from zarrfs_viewer.qt.window.pyramid_actions import PyramidActions
from zarrfs_viewer.qt.window.region_actions import RegionActions
from zarrfs_viewer.qt.window.second_image_view import SecondImageView
from zarrfs_viewer.qt.window.settings_history import SettingsHistory
from zarrfs_viewer.qt.window.side_panels import SidePanels
from zarrfs_viewer.qt.window.values_page import ValuesPage
from zarrfs_viewer.saved_views.image_settings import ImageSettings

__all__ = ["Features", "merged_specs"]


class Features:
    """The features of one window. The window creates it after its panels and controllers."""

    def __init__(
        self,
        session: Session,
        panes: Panes,
        side: SidePanels,
        image_actions: ImageActions,
        settings: QSettings,
        stack: QStackedWidget,
        exporter: Exporter,
    ) -> None:
        file = Path(settings.fileName()).with_name("images.json")
        self.regions = RegionActions(session, panes, side.measure, stack)
        self.history = SettingsHistory(session, ImageSettings(file), self.regions.panel, panes.main.canvas)
        self._menu_parts = session, panes, self.regions, stack
        self.plates = PlateNavigation(session, side.plate, stack)
        self.second = SecondImageView(session, panes, side, stack)
        self.colormaps = ColormapActions(
            session, settings, (side.channels, self.second.panel.channels), stack
        )
        self.pyramids = PyramidActions(session, stack)
        panes.frame_shown.connect(self.pyramids.offer)
        self.values = ValuesPage(session, panes, side, stack)
        self.editing = MetadataEditing(session, panes, side.tabs, stack)
        side.metadata.edit_requested.connect(self.editing.edit)
        self.pictures = PictureActions(session, panes, exporter, stack)
        session.overlays_changed.connect(side.show_label_images)
        panes.clicked.connect(side.labels.table.pick)
        side.labels.table.position_selected.connect(image_actions.go_to)

    def commands(self) -> list[ActionSpec]:
        """Return the actions of the features."""
        history, plates, pictures = self.history, self.plates, self.pictures
        regions = self.regions
        return [
            ActionSpec("undo", "&Edit", "&Undo", "Ctrl+Z", history.undo),
            ActionSpec("redo", "&Edit", "&Redo", "Ctrl+Shift+Z", history.redo),
            ActionSpec("reset", "&Edit", "Reset &settings of the image", "Ctrl+Shift+R", history.reset),
            ActionSpec("copy_picture", "&Edit", "&Copy picture", "Ctrl+C", pictures.copy),
            ActionSpec("picture", "&File", "Save p&icture...", "Ctrl+P", pictures.ask_picture),
            ActionSpec("movie", "&File", "Save mo&vie...", "Ctrl+Shift+M", pictures.ask_movie),
            ActionSpec("add_region", "&Measure", "&Add to regions", "D", regions.add),
            ActionSpec("load_regions", "&Measure", "Load re&gions...", "Ctrl+Alt+O", regions.ask_load),
            ActionSpec("save_regions", "&Measure", "&Save regions...", "Ctrl+Alt+S", regions.ask_save),
            ActionSpec("values", "&View", "Table &of values", "Ctrl+T", self.values.toggle),
            ActionSpec(
                "neighbourhood",
                "&View",
                "Values around the poi&nter",
                "Ctrl+I",
                self.values.set_neighbourhood,
                False,
            ),
            ActionSpec("plate", "&View", "&Plate overview", "W", plates.toggle_overview),
            ActionSpec("pyramid", "&Image", "&Build a pyramid...", "Ctrl+B", self.pyramids.ask),
            ActionSpec("well_left", "&Image", "Well to the le&ft", "Alt+Left", lambda: plates.step(0, -1)),
            ActionSpec("well_right", "&Image", "Well to the rig&ht", "Alt+Right", lambda: plates.step(0, 1)),
            ActionSpec("well_up", "&Image", "Well ab&ove", "Alt+Up", lambda: plates.step(-1, 0)),
            ActionSpec("well_down", "&Image", "Well belo&w", "Alt+Down", lambda: plates.step(1, 0)),
        ]

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        """Create what uses the actions of the window: the context menu of the picture."""
        session, panes, regions, parent = self._menu_parts
        self.menu = PictureMenu(session, panes, regions, actions, parent)

    def close(self) -> None:
        """Write what is not saved yet."""
        self.editing.close()
        self.history.close()
        self.second.close()
        self.regions.close()
        self.pyramids.close()


def merged_specs(specs: list[ActionSpec], added: list[ActionSpec]) -> list[ActionSpec]:
    """Return the actions with added ones at the end of their menus, before the one that closes the window."""
    return sorted((*specs, *added), key=lambda spec: (MENUS.index(spec.menu), spec.name == "quit"))
