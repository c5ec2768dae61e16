"""The position of the displayed slice: sliders below the picture, playback, slabs, and the dialog for coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from PyQt6.QtWidgets import QBoxLayout

from zarrfs_viewer.images.stored_places import has_stored_chunk, next_stored_slice
from zarrfs_viewer.qt.panels.panel import IMAGE_PAGE, NO_IMAGE, Panel, PanelContext
from zarrfs_viewer.qt.panels.position.dimensions_panel import DimensionsPanel
from zarrfs_viewer.qt.panels.position.goto_dialog import GoToDialog
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.widgets import set_tab_order
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import with_displayed, with_position, with_projection

__all__ = ["Position"]

NO_DATA = "no data stored here\nAlt+. and Alt+, show the next and the previous stored plane"


class Position(Panel):
    """Shows and changes the displayed axes, the position and the slab projection."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session, panes = context.session, context.panes
        self._panes = panes
        self.dimensions = DimensionsPanel()
        self.dimensions.is_ready_for_next = self.is_slice_drawn
        page = context.stack.widget(IMAGE_PAGE)
        layout = page.layout() if page is not None else None
        if isinstance(layout, QBoxLayout):
            layout.addWidget(self.dimensions)
        self.dimensions.moved.connect(self.set_position)
        self.dimensions.projected.connect(self.set_projection)
        panes.stepped.connect(self.dimensions.step)
        panes.frame_shown.connect(self._show_frame)
        session.axes_changed.connect(self._show_axes)
        session.position_changed.connect(self._show_position)
        session.projection_changed.connect(self._show_projection)

    def prepare(self) -> Iterator[None]:
        yield
        self.dimensions.create_first_row()

    def actions(self) -> Sequence[ActionSpec]:
        image, step, step_time = "&Image", self.dimensions.step, self.dimensions.step_time
        return (
            ActionSpec(
                "next_axes",
                "&View",
                "Show next a&xes",
                "X",
                self.show_next_axes,
                place=100,
                needs="image",
                synonyms="transpose xz yz plane",
            ),
            ActionSpec("next_slice", image, "&Next slice", ".", lambda: step(1), place=0, needs="image"),
            ActionSpec(
                "previous_slice", image, "&Previous slice", ",", lambda: step(-1), place=10, needs="image"
            ),
            ActionSpec(
                "next_stored",
                image,
                "Next store&d plane",
                "Alt+.",
                lambda: self.show_next_stored(1),
                place=12,
                needs="image",
                synonyms="data chunk sparse empty",
            ),
            ActionSpec(
                "previous_stored",
                image,
                "Pre&vious stored plane",
                "Alt+,",
                lambda: self.show_next_stored(-1),
                place=14,
                needs="image",
                synonyms="data chunk sparse empty",
            ),
            ActionSpec(
                "next_time", image, "Next &time point", "]", lambda: step_time(1), place=20, needs="image"
            ),
            ActionSpec(
                "previous_time",
                image,
                "Previous ti&me point",
                "[",
                lambda: step_time(-1),
                place=30,
                needs="image",
            ),
            ActionSpec(
                "go_to",
                image,
                "&Go to coordinate...",
                "Ctrl+G",
                self.ask_position,
                place=40,
                needs="image",
                synonyms="jump position",
            ),
            ActionSpec(
                "play",
                image,
                "P&lay or stop",
                "K",
                self.dimensions.play,
                place=50,
                needs="image",
                synonyms="animate",
            ),
            ActionSpec(
                "slab",
                image,
                "Next &slab projection",
                "S",
                self.dimensions.next_mode,
                place=100,
                needs="image",
                synonyms="maximum intensity projection MIP mean",
            ),
        )

    def close(self) -> None:
        self.dimensions.stop()

    def _show_axes(self) -> None:
        self.dimensions.show_image(self._session.image, self._session.settings)
        set_tab_order(self._panes.main.canvas, *self.dimensions.focus_order())

    def _show_position(self) -> None:
        if self._session.settings is not None:
            self.dimensions.show_position(self._session.settings.position)

    def _show_projection(self) -> None:
        if self._session.settings is not None:
            self.dimensions.show_slab(self._session.settings.projection)

    def _show_frame(self, frame: Frame) -> None:
        self.dimensions.show_level(frame.state.level)
        canvas = self._panes.main.canvas
        if not frame.complete or frame.errors or not frame.is_uniform:
            self._session.worker.cancel("stored here")
            canvas.show_note("")
            return
        image, settings, level = frame.state.image, frame.state.settings, frame.state.level
        rect = frame.state.viewport.rect
        self._session.worker.cancel("stored here")
        self._session.worker.submit(
            lambda: has_stored_chunk(image, settings.position, settings.displayed, level, rect),
            lambda is_stored: canvas.show_note("" if is_stored else NO_DATA),
            lambda _: canvas.show_note(""),
            "stored here",
        )

    def show_next_stored(self, direction: int) -> None:
        """Show the next slice with stored chunks along the last slider, in a direction (1 or -1)."""
        image, settings, axis = self._session.image, self._session.settings, self.dimensions.last_axis
        if image is None or settings is None or axis is None:
            self._session.show_message("The image has no further planes.")
            return
        step = direction * self.dimensions.step_size(axis)

        def show(found: int | None) -> None:
            if found is None:
                name = image.axes[axis].name or f"axis {axis}"
                where = "after" if direction > 0 else "before"
                self._session.show_message(f"No plane is stored {where} {name} {settings.position[axis]:g}.")
            elif self._session.settings == settings:
                self.dimensions.set_position(axis, found)

        self._session.run_for_image(
            lambda: next_stored_slice(image, settings.position, settings.displayed, axis, step),
            show,
            "next stored",
        )

    def set_position(self, axis: int, value: float) -> None:
        """Show another slice along an axis."""
        if self._session.settings is not None:
            self._session.change(with_position(self._session.settings, axis, value))

    def set_projection(self, projection: Any) -> None:
        """Show a projection of a slab; None shows a single slice."""
        if self._session.settings is not None:
            self._session.change(with_projection(self._session.settings, projection))

    def show_next_axes(self) -> None:
        """Display the next pair of axes: XY, XZ, YZ."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            return
        axes = image.slider_axes
        pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]
        if len(pairs) > 1:
            current = pairs.index(settings.displayed) if settings.displayed in pairs else 0
            self._session.change(with_displayed(settings, *pairs[(current - 1) % len(pairs)]))

    def ask_position(self) -> None:
        """Ask for a coordinate, and show it: its slice, with the position in the middle of the canvas."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            self._session.show_message(NO_IMAGE)
            return
        dialog = GoToDialog(image, settings, self._panes.main.canvas.viewport.center, self._context.window)
        if dialog.exec():
            self.go_to(dialog.position())

    def go_to(self, position: tuple[float, ...]) -> None:
        """Show a position, given in data coordinates, in the middle of the canvas."""
        settings = self._session.settings
        if settings is None:
            return
        center = position[settings.displayed[0]], position[settings.displayed[1]]
        for axis, value in enumerate(position):
            settings = with_position(settings, axis, value)
        self._session.change(settings)
        canvas = self._panes.main.canvas
        canvas.set_viewport(replace(canvas.viewport, center=center))

    def is_slice_drawn(self) -> bool:
        """Return whether the current slice is displayed. Playback waits for it."""
        frame, settings = self._panes.main.canvas.frame, self._session.settings
        if frame is None or settings is None:
            return False
        return frame.finished and frame.state.settings.position == settings.position
