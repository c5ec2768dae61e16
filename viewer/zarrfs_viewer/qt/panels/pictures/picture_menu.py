"""The context menu of the picture: values, coordinates and the chunk at a point, and actions on the image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from PyQt6.QtCore import QObject, QPoint
from PyQt6.QtGui import QAction
from PyQt6.QtWidgets import QMenu, QWidget

from zarrfs_viewer.analysis.readout import Readout, Unreadable, exact_text, format_coordinate, short_unit
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.canvas.pane import Pane
from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard
from zarrfs_viewer.state.view_state import FIT_MARGIN, fit

__all__ = ["PictureMenu"]

ACTIONS = (
    ("copy_picture", "picture", "export"),
    ("fit", "one_to_one", "rotate", "mirror", "go_to"),
    ("linked", "chunks", "scale_bar"),
)
"""The names of the actions of the window that the menu offers, in groups."""
MAX_SHOWN_VALUE = 40


class PictureMenu(QObject):
    """Shows the context menu of a pane at the pointer, or in the middle of the pane for the menu key."""

    def __init__(
        self,
        session: Session,
        panes: Panes,
        regions: Measurements,
        actions: Mapping[str, QAction],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._panes = panes
        self._regions = regions
        self._actions = actions
        self._parent = parent
        panes.menu_requested.connect(self._show)

    def _show(self, pane: Pane, place: QPoint, row: float, column: float) -> None:
        if self._session.image is not None:
            self.menu(pane, row, column).popup(place)

    def menu(self, pane: Pane, row: float, column: float) -> QMenu:
        """Return the menu for a point of a pane in data coordinates. It is deleted when it closes."""
        menu = QMenu(self._parent)
        menu.aboutToHide.connect(menu.deleteLater)
        values = pane.values_at(row, column)
        if values is not None:
            self._add_point(menu, pane, values, row, column)
            menu.addSeparator()
        for group in ACTIONS:
            menu.addActions([self._actions[name] for name in group])
            menu.addSeparator()
        if self._panes.main.canvas.shape is not None:
            menu.addActions([self._actions["add_region"]])
        if values is not None and pane is self._panes.main:
            _add(menu, "Add this point to the regions", lambda: self._add_region(row, column))
        return menu

    def _add_point(self, menu: QMenu, pane: Pane, values: Readout, row: float, column: float) -> None:
        """Add the actions for the values at a point."""
        found = [each for _, each in values.values if each is not None]
        errors = [each for each in found if isinstance(each, Unreadable)]
        value = ", ".join(exact_text(each) for each in found)
        if errors:
            _add(
                menu,
                "Copy why it is unreadable",
                lambda: copy_to_clipboard(errors[0].reason),
            )
        elif value:
            shown = value if len(value) <= MAX_SHOWN_VALUE else f"{value[: MAX_SHOWN_VALUE - 1]}…"
            _add(menu, f"Copy value {shown}", lambda: copy_to_clipboard(value))
        for label in values.labels:
            if label.value:
                _add(menu, f"Copy label {label.value}", partial(copy_to_clipboard, str(label.value)))
        position = ", ".join(
            f"{name} = {format_coordinate(number, step)}{' ' + short_unit(unit) if unit else ''}"
            for (name, number, unit), step in zip(values.physical, values.steps, strict=True)
        )
        if position:
            _add(menu, "Copy coordinates", lambda: copy_to_clipboard(position))
        index = ", ".join(map(str, values.pixel))
        level = f" of level {values.level}" if values.level else ""
        _add(menu, f"Copy index ({index}){level}", lambda: copy_to_clipboard(index))
        chunk = values.chunk
        if chunk is not None:
            _add(menu, f"Copy chunk key {chunk}", lambda: copy_to_clipboard(chunk))
            _add(menu, "Show this chunk", lambda: self._show_chunk(pane, values, row, column))

    def _show_chunk(self, pane: Pane, values: Readout, row: float, column: float) -> None:
        """Fit the chunk at a point to the pane, and show the chunk grid."""
        image = self._session.image
        if image is None or pane.image is not image:
            return
        level = image.levels[values.level]
        center, lengths = [], []
        for axis in pane.displayed:
            length = level.chunks[axis]
            first = values.pixel[axis] // length * length
            last = min(first + length, level.shape[axis]) - 1
            center.append(image.from_level(values.level, axis, (first + last) / 2))
            lengths.append(max(1, round((last - first + 1) * image.downsampling(values.level, axis))))
        viewport = pane.canvas.viewport
        rows, columns = lengths
        fitted = fit(
            viewport.width, viewport.height, rows, columns, viewport.aspect, FIT_MARGIN, viewport.turns
        )
        pane.canvas.set_viewport(replace(viewport, center=(center[0], center[1]), zoom=fitted.zoom))
        self._actions["chunks"].setChecked(True)

    def _add_region(self, row: float, column: float) -> None:
        """Add a point to the list of regions."""
        self._panes.main.canvas.shape_deselected.emit()
        self._panes.main.canvas.show_shape(Shape("point", ((row, column),)))
        self._regions.add()


def _add(menu: QMenu, title: str, run: Callable[[], object]) -> None:
    action = menu.addAction(button_text(title))
    if action is not None:
        action.triggered.connect(lambda _=False: run())
