"""Adds layers to a window: their canvas, their panel, and the entries of the tree that display one."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QBoxLayout, QSplitter, QVBoxLayout, QWidget

from zarrfs_viewer.qt.canvas.image_layers import ImageLayers
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.layers.layers_panel import LayersPanel
from zarrfs_viewer.qt.panels.layers.system_header import SystemHeader
from zarrfs_viewer.qt.panels.panel import IMAGE_PAGE, Panel, PanelContext

__all__ = ["LayersView"]


class LayersView(Panel):
    """The layers of a window: the canvas beside the panes, the header above, and the panel while there are layers."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session, panes, stack = context.session, context.panes, context.stack
        tree = context.find(Hierarchy).tree
        self.layers = ImageLayers(session, panes)
        self.panel = LayersPanel(session, self.layers)
        self.panel.hide()
        context.find(Channels).colormaps.add(self.panel.channels)
        self.header = SystemHeader(session)
        picture = QWidget()
        column = QVBoxLayout(picture)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        page = stack.widget(IMAGE_PAGE)
        layout = page.layout() if page is not None else None
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        if isinstance(layout, QBoxLayout):
            layout.insertWidget(0, picture, 1)
        self.splitter.addWidget(panes)
        self.splitter.addWidget(self.layers.canvas)
        self.splitter.setChildrenCollapsible(False)
        column.addWidget(self.header)
        column.addWidget(self.splitter, 1)
        tree.layer_requested.connect(self.layers.open)
        self.layers.canvas.stepped.connect(panes.stepped)
        self.layers.pointed.connect(panes.pointed)
        self.layers.layers_changed.connect(self._show_panel)
        tree.model.is_layer = lambda item: self.layers.is_shown(item.location, item.path)
        self.layers.layers_changed.connect(tree.repaint_rows)

    @property
    def is_current(self) -> bool:
        """Whether all visible layers are displayed completely, or their problem is."""
        return self.layers.is_complete

    def close(self) -> None:
        """Stop the thread that draws the layers."""
        self.layers.close()

    def _show_panel(self) -> None:
        """Show the panel of the layers, or remove it."""
        tabs = self._context.tabs
        number = tabs.indexOf(self.panel)
        if self.layers.layers and number < 0:
            tabs.addTab(self.panel, "Layers")
            tabs.setCurrentWidget(self.panel)
            width = self.splitter.width()
            self.splitter.setSizes([width // 2, width // 2])
        elif not self.layers.layers and number >= 0:
            tabs.removeTab(number)
