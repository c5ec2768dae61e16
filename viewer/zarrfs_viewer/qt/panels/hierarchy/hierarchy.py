"""The hierarchy at the left of the window, with its actions."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt

from zarrfs_viewer.qt.panels.hierarchy.tree_panel import TreePanel
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.support.actions import ActionSpec

__all__ = ["Hierarchy"]


class Hierarchy(Panel):
    """The tree of the open locations."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self.tree = TreePanel(context.session, context.mounts)
        context.docks.add("Hierarchy", self.tree, Qt.DockWidgetArea.LeftDockWidgetArea, "first")
        self.tree.closed.connect(context.session.close_location)

    def actions(self) -> Sequence[ActionSpec]:
        tree = self.tree
        return (
            ActionSpec(
                "mount",
                "&File",
                "&Mount and open folder",
                "Ctrl+M",
                lambda: tree.mount_and_open(tree.current()),
                place=300,
                needs="data",
                synonyms="FUSE files",
            ),
            ActionSpec(
                "file_manager",
                "&File",
                "Show in file mana&ger",
                "Ctrl+Shift+F",
                lambda: tree.show_in_file_manager(tree.current()),
                place=310,
                needs="data",
            ),
            ActionSpec(
                "find",
                "&View",
                "Find in &hierarchy",
                "Ctrl+F",
                tree.focus_search,
                place=300,
                needs="data",
                synonyms="search",
            ),
        )
