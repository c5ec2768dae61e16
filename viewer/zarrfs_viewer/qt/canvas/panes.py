"""Panes: one image, or three linked orthogonal planes.

Panes display the session's settings. Clicks and wheel events change the settings.
"""

from __future__ import annotations

from dataclasses import replace

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QVBoxLayout, QWidget

from zarrfs_viewer.display.linking import linked_axes, linked_orientations, linked_viewport
from zarrfs_viewer.qt.canvas.overview import OverviewMap
from zarrfs_viewer.qt.canvas.pane import Pane
from zarrfs_viewer.qt.canvas.pane_grid import PaneGrid
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.saved_views.views import is_fitted, restored_viewport
from zarrfs_viewer.state.view_state import Viewport, with_channel, with_position

__all__ = ["Panes"]

AxisPair = tuple[int, int]


class Panes(QWidget):
    """The main pane with its overview map, and three further panes while linked panes are enabled.

    Signals:
        frame_shown: (frame) the main pane displays another frame.
        pointed: (readout or None) the values below the pointer, in any pane.
        clicked: (readout or None) the values at a click with the tool that moves the image.
        menu_requested: (pane, position on the screen, row, column) the user requests the context menu of a pane.
        stepped: (slices) a step requested in the main pane.
    """

    frame_shown = pyqtSignal(object)
    pointed = pyqtSignal(object)
    clicked = pyqtSignal(object)
    menu_requested = pyqtSignal(object, object, float, float)
    stepped = pyqtSignal(int)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._is_synchronizing = False
        self.linked = False
        self._side_orientation = (0, False)
        self.main = self._create_pane()
        self.side: tuple[Pane, ...] = ()
        self.grid = PaneGrid()
        self.grid.show_widgets([self.main.canvas])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.grid)
        self.overview = OverviewMap(self.main.canvas, session.streamer)
        self.overview.moved.connect(self._center)
        self.main.frame_shown.connect(self._adopt_limits)
        self.main.canvas.stepped.connect(self.stepped)
        session.axes_changed.connect(self._show_axes)
        session.settings_changed.connect(self.refresh)

    def _create_pane(self) -> Pane:
        pane = Pane(self._session, self)
        pane.pointed.connect(self.pointed)
        pane.canvas.clicked.connect(lambda row, column: self._click(pane, row, column))
        pane.canvas.menu_requested.connect(lambda *place: self.menu_requested.emit(pane, *place))
        pane.canvas.cross_dragged.connect(lambda row, column: self._drag_cross(pane, row, column))
        pane.canvas.viewport_changed.connect(lambda: self._synchronize_viewports(pane))
        return pane

    @property
    def all(self) -> tuple[Pane, ...]:
        """All panes, the main pane first."""
        return (self.main, *self.side)

    def set_linked(self, linked: bool) -> bool:
        """Show three orthogonal planes and a slab of the first one, or one pane.

        Returns False, with no change, if the image has no third axis.
        """
        image, settings = self._session.image, self._session.settings
        if linked and (image is None or settings is None or linked_axes(image, settings.displayed) is None):
            return False
        self.linked = linked
        self._show_side_axes()
        self.refresh()
        return True

    def set_show_chunks(self, on: bool) -> None:
        """Show or hide the chunk grid in all panes."""
        for pane in self.all:
            pane.show_chunks = on
            pane.draw_grid()

    def set_show_scale_bar(self, on: bool) -> None:
        """Show or hide the scale bar in all panes."""
        for pane in self.all:
            pane.canvas.layers.show_scale_bar = on
            pane.canvas.update()

    def set_wheel_steps(self, on: bool) -> None:
        """Let the wheel step through slices, and zoom with Ctrl, or the reverse, in all panes."""
        for pane in self.all:
            pane.canvas.wheel_steps = on

    def refresh(self) -> None:
        """Display the current settings."""
        self._update_cross()
        for pane in self.all:
            pane.refresh()
        self.overview.show_settings(self._session.image, self.main.settings, self._session.overlays)

    def _center(self, row: float, column: float) -> None:
        canvas = self.main.canvas
        canvas.set_viewport(replace(canvas.viewport, center=(row, column)))

    def close_panes(self) -> None:
        """Stop all pipelines."""
        self.overview.close_map()
        for pane in self.all:
            pane.close()

    def _show_axes(self) -> None:
        settings = self._session.settings
        if self._side_axes() is None:
            self._set_side_pane_count(0)
        self._is_synchronizing = True
        self.main.show_axes((0, 1) if settings is None else settings.displayed)
        self._is_synchronizing = False
        viewport, self._session.pending_viewport = self._session.pending_viewport, None
        if viewport is not None:
            self._restore_viewport(viewport)
        self._show_side_axes()
        self.refresh()

    def _side_axes(self) -> tuple[AxisPair, AxisPair, AxisPair] | None:
        """Return the axes of the panes at the right and below, or None if there are no such panes."""
        image, settings = self._session.image, self._session.settings
        if not self.linked or image is None or settings is None:
            return None
        linked = linked_axes(image, settings.displayed, self.main.canvas.orientation[0])
        # The last pane shows a slab of the main pane's plane.
        return None if linked is None else (*linked, settings.displayed)

    def _show_side_axes(self) -> None:
        """Show the axes of the panes at the right and below, in the orientation of the main pane."""
        pairs = self._side_axes()
        self._set_side_pane_count(0 if pairs is None else len(pairs))
        if pairs is None:
            return
        orientation = self._side_orientation = self.main.canvas.orientation
        orientations = (*linked_orientations(*orientation), orientation)
        self._is_synchronizing = True
        for pane, pair, own_orientation in zip(self.side, pairs, orientations, strict=True):
            if pane.displayed != pair or pane.image is not self._session.image:
                pane.show_axes(pair)
            pane.canvas.set_orientation(*own_orientation)
        self._is_synchronizing = False
        self._synchronize_viewports(self.main)

    def _restore_viewport(self, viewport: Viewport) -> None:
        """Display the part of the plane that a view contains. A view of the whole plane remains fitted."""
        canvas, image, settings = self.main.canvas, self._session.image, self._session.settings
        if image is not None and settings is not None:
            rows, columns = (image.shape[axis] for axis in settings.displayed)
            if is_fitted(viewport, rows, columns):
                canvas.set_orientation(viewport.turns, viewport.mirrored)
                canvas.fit()
                return
        canvas.set_viewport(restored_viewport(viewport, canvas.viewport))

    def _set_side_pane_count(self, count: int) -> None:
        """Create or delete the panes at the right and below."""
        if len(self.side) == count:
            return
        for pane in self.side:
            pane.close()
            pane.canvas.setParent(None)
            pane.canvas.deleteLater()
            pane.deleteLater()
        self.side = tuple(self._create_pane() for _ in range(count))
        for number, pane in enumerate(self.side):
            pane.shows_slab = number == count - 1
            pane.show_chunks = self.main.show_chunks
            pane.canvas.layers.show_scale_bar = self.main.canvas.layers.show_scale_bar
            pane.canvas.wheel_steps = self.main.canvas.wheel_steps
            if pane.shows_slab:
                pane.canvas.stepped.connect(self.stepped)
            else:
                pane.canvas.stepped.connect(lambda count, pane=pane: self._step_depth(pane, count))
        self.grid.show_widgets([pane.canvas for pane in self.all])

    def _adopt_limits(self, frame: Frame) -> None:
        """Copy the contrast limits that the renderer chose into the settings, so that the panel shows them."""
        settings = self._session.settings
        if settings is None:
            return
        frame_limits = {(channel.index, channel.field): channel.limits for channel in frame.channels}
        for number, channel in enumerate(settings.channels):
            limits = frame_limits.get((channel.index, channel.field))
            # A frame with an unreadable chunk never becomes exact. Its limits are those of the readable chunks.
            if channel.limits is None and limits is not None and frame.finished:
                settings = with_channel(settings, number, limits=limits)
        self._session.change(settings)
        self.frame_shown.emit(frame)

    # -- linking -----------------------------------------------------------------------------------------------

    def _synchronize_viewports(self, source: Pane) -> None:
        """Apply the viewport of one pane to the other panes."""
        image = self._session.image
        if self._is_synchronizing or not self.side or image is None:
            return
        if any(pane.image is not image for pane in self.all):
            return  # another image is being shown: its axes are set for one pane after the other
        if self.main.canvas.orientation != self._side_orientation:
            self._show_side_axes()
            self.refresh()
            return
        self._is_synchronizing = True
        for pane in self.all:
            if pane is not source:
                current = pane.canvas.viewport
                pane.canvas.follow(
                    linked_viewport(image, source.displayed, source.canvas.viewport, pane.displayed, current)
                )
        self._is_synchronizing = False

    def _click(self, pane: Pane, row: float, column: float) -> None:
        if pane.canvas.tool == "move":
            self._set_cross_position(pane, row, column)
            self.clicked.emit(pane.values_at(row, column))

    def _set_cross_position(self, pane: Pane, row: float, column: float) -> None:
        """Move the cross-hair, and with it the planes of the other panes, to the clicked position."""
        if self.side:
            self._drag_cross(pane, row, column)

    def _drag_cross(self, pane: Pane, row: float | None, column: float | None) -> None:
        """Move lines of the cross-hair. None keeps the position along that axis."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            return
        for axis, value in zip(pane.displayed, (row, column), strict=True):
            if value is None:
                continue
            nearest = min(max(round(value), 0), image.shape[axis] - 1)
            settings = with_position(settings, axis, nearest)
        self._session.change(settings)

    def _step_depth(self, pane: Pane, count: int) -> None:
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            return
        axis = next(axis for axis in settings.displayed if axis not in pane.displayed)
        value = min(max(settings.position[axis] + count, 0), image.shape[axis] - 1)
        self._session.change(with_position(settings, axis, value))

    def _update_cross(self) -> None:
        settings = self._session.settings
        for pane in self.all:
            cross = None
            if self.side and settings is not None:
                cross = settings.position[pane.displayed[0]], settings.position[pane.displayed[1]]
            pane.canvas.show_cross(cross)
