"""Adds the canvas and the panel of a second image to a window, and the entries of the tree that display one."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QBoxLayout, QSplitter, QStackedWidget

from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.canvas.second_image import SecondImage
from zarrfs_viewer.qt.panels.second_panel import SecondPanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.window.side_panels import SidePanels

__all__ = ["SecondImageView"]

IMAGE_PAGE = 1
"""The page of the stack with the picture, which is the first item of its layout."""


class SecondImageView:
    """The second image of a window: its canvas beside the panes, and its panel while there is one."""

    def __init__(self, session: Session, panes: Panes, side: SidePanels, stack: QStackedWidget) -> None:
        self.image = SecondImage(session, panes)
        self.panel = SecondPanel(session, self.image)
        self.panel.hide()
        self._side = side
        page = stack.widget(IMAGE_PAGE)
        layout = page.layout() if page is not None else None
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        if isinstance(layout, QBoxLayout):
            layout.insertWidget(0, self.splitter, 1)
        self.splitter.addWidget(panes)
        self.splitter.addWidget(self.image.canvas)
        self.splitter.setChildrenCollapsible(False)
        side.tree_panel.second_image_requested.connect(self.image.open)
        self.image.canvas.stepped.connect(panes.stepped)
        self.image.pointed.connect(panes.pointed)
        self.image.image_changed.connect(self._show_panel)
        side.tree_panel.model.is_second = lambda item: self.image.is_shown(item.location, item.path)
        self.image.image_changed.connect(side.tree_panel.repaint_rows)

    def close(self) -> None:
        """Stop the thread that draws the second image."""
        self.image.close()

    def _show_panel(self) -> None:
        """Show the panel of the second image, or remove it."""
        tabs = self._side.tabs
        number = tabs.indexOf(self.panel)
        if self.image.image is not None and number < 0:
            tabs.addTab(self.panel, "Second")
            tabs.setCurrentWidget(self.panel)
            width = self.splitter.width()
            self.splitter.setSizes([width // 2, width // 2])
        elif self.image.image is None and number >= 0:
            tabs.removeTab(number)
