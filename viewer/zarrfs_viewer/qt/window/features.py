"""Connects the features that have modules of their own with a window, and lists their actions."""

from __future__ import annotations

from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.window.actions import ActionSpec
from zarrfs_viewer.qt.window.image_actions import ImageActions
from zarrfs_viewer.qt.window.side_panels import SidePanels

__all__ = ["Features", "merged_specs"]

LAST_MENU = "&Help"


class Features:
    """The features of one window. The window creates it after its panels and controllers."""

    def __init__(self, session: Session, panes: Panes, side: SidePanels, image_actions: ImageActions) -> None:
        session.overlays_changed.connect(side.show_label_images)
        panes.clicked.connect(side.labels.table.pick)
        side.labels.table.position_selected.connect(image_actions.go_to)

    def commands(self) -> list[ActionSpec]:
        """Return the actions of the features."""
        return []


def merged_specs(specs: list[ActionSpec], added: list[ActionSpec]) -> list[ActionSpec]:
    """Return the actions with added ones at the end of their menus. New menus are placed before the last one."""
    menus = list(dict.fromkeys(spec.menu for spec in specs))
    new = [menu for menu in dict.fromkeys(spec.menu for spec in added) if menu not in menus]
    place = menus.index(LAST_MENU) if LAST_MENU in menus else len(menus)
    menus[place:place] = new
    return [spec for menu in menus for spec in (*specs, *added) if spec.menu == menu]
