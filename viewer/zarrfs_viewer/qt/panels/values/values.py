"""The values of arrays in the centre of the window, and those around the pointer in a dock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QAction

import zarrfs
from zarrfs_viewer.images.reading import PaddedArray, SourceArray
from zarrfs_viewer.images.resampling import source_array
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.panel import IMAGE_PAGE, Panel, PanelContext, check_while_visible
from zarrfs_viewer.qt.panels.values.neighbourhood_panel import NeighbourhoodPanel
from zarrfs_viewer.qt.panels.values.values_view import ValuesView
from zarrfs_viewer.qt.support.actions import ActionSpec

__all__ = ["Values"]


class Values(Panel):
    """Shows arrays that are not pictures as values: those of rank 0 and 1, strings, raw bytes and empty arrays."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session = context.session
        self._stack = context.stack
        self.view = ValuesView(session)
        context.stack.addWidget(self.view)
        self.neighbourhood = NeighbourhoodPanel(session)
        self.dock = context.docks.add(
            "Values", self.neighbourhood, Qt.DockWidgetArea.RightDockWidgetArea, "as_left"
        )
        context.panes.main.canvas.pointed.connect(self.neighbourhood.point)
        session.image_changed.connect(self._show_image)

    @property
    def is_shown(self) -> bool:
        """Whether the centre of the window shows values."""
        return self._stack.currentWidget() is self.view

    @property
    def is_current(self) -> bool:
        """Whether the values have been drawn, as far as they have been read."""
        return not self.view.plot.is_waiting

    def toggle(self) -> None:
        """Show the values of the displayed array as a table, or its picture again."""
        image, array = self._session.image, self._array()
        if self.is_shown and image is not None:
            self._stack.setCurrentIndex(IMAGE_PAGE)
        elif array is not None:
            self._show(array)
        else:
            self._session.show_message("No array is displayed.")

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec(
                "values",
                "&View",
                "Table &of values",
                "Ctrl+T",
                self.toggle,
                place=320,
                needs="data",
                synonyms="numbers pixels",
            ),
            ActionSpec(
                "neighbourhood",
                "&View",
                "Values around the poi&nter",
                "Ctrl+I",
                self.dock.setVisible,
                False,
                place=330,
                synonyms="pixel values",
            ),
        )

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        check_while_visible(self.dock, actions["neighbourhood"])

    def _array(self) -> SourceArray | None:
        dataset, image = self._session.dataset, self._session.image
        if image is not None:
            array: Any = source_array(image.levels[0].array)
            return array.array if isinstance(array, PaddedArray) else array
        node = dataset.node if dataset is not None else None
        return node if isinstance(node, zarrfs.Array) else None

    def _show_image(self) -> None:
        """Show the values of an array that is not a picture."""
        array = self._array()
        if array is not None and (self._session.image is None or len(array.shape) < 2):
            self._show(array)
            self._context.tabs.setCurrentWidget(
                self._context.find(Metadata).panel
            )  # its channels are not drawn
        else:
            self.view.show_array(None, "")

    def _show(self, array: SourceArray) -> None:
        dataset, image = self._session.dataset, self._session.image
        name = image.name if image is not None else dataset.name if dataset is not None else ""
        self.view.show_array(array, name)
        self._stack.setCurrentWidget(self.view)
