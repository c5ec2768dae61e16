"""Adds the canvas and the panel of a second image to a window, and the entries of the tree that display one."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QBoxLayout, QSplitter

from zarrfs_viewer.qt.canvas.second_image import SecondImage
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.panel import IMAGE_PAGE, Panel, PanelContext
from zarrfs_viewer.qt.panels.second.second_panel import SecondPanel

__all__ = ["SecondImageView"]


class SecondImageView(Panel):
    """The second image of a window: its canvas beside the panes, and its panel while there is one."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session, panes, stack = context.session, context.panes, context.stack
        tree = context.find(Hierarchy).tree
        self.image = SecondImage(session, panes)
        self.panel = SecondPanel(session, self.image)
        self.panel.hide()
        context.find(Channels).colormaps.add(self.panel.channels)
        page = stack.widget(IMAGE_PAGE)
        layout = page.layout() if page is not None else None
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        if isinstance(layout, QBoxLayout):
            layout.insertWidget(0, self.splitter, 1)
        self.splitter.addWidget(panes)
        self.splitter.addWidget(self.image.canvas)
        self.splitter.setChildrenCollapsible(False)
        tree.second_image_requested.connect(self.image.open)
        self.image.canvas.stepped.connect(panes.stepped)
        self.image.pointed.connect(panes.pointed)
        self.image.image_changed.connect(self._show_panel)
        tree.model.is_second = lambda item: self.image.is_shown(item.location, item.path)
        self.image.image_changed.connect(tree.repaint_rows)

    def close(self) -> None:
        """Stop the thread that draws the second image."""
        self.image.close()

    def _show_panel(self) -> None:
        """Show the panel of the second image, or remove it."""
        tabs = self._context.tabs
        number = tabs.indexOf(self.panel)
        if self.image.image is not None and number < 0:
            tabs.addTab(self.panel, "Second")
            tabs.setCurrentWidget(self.panel)
            width = self.splitter.width()
            self.splitter.setSizes([width // 2, width // 2])
        elif self.image.image is None and number >= 0:
            tabs.removeTab(number)
