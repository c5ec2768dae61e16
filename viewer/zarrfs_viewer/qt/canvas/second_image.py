"""A second image: beside the first one with linked views, or over it with opacity and a blending mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtGui import QImage

from zarrfs.errors import ZarrError
from zarrfs_viewer.analysis.readout import readout
from zarrfs_viewer.display.pairing import Pairing, pair
from zarrfs_viewer.images.dataset import describe, describe_member, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.locations import within
from zarrfs_viewer.qt.canvas.canvas import Canvas
from zarrfs_viewer.qt.canvas.painting import PictureOverlay
from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.rendering.contrast import auto_limits, channel_values
from zarrfs_viewer.rendering.pipeline import ViewPipeline
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.saved_views.views import View, fitted_settings
from zarrfs_viewer.saved_views.window_state import Arrangement, SecondView
from zarrfs_viewer.state.view_state import DisplaySettings, with_appearance, with_channel
from zarrfs_viewer.streaming.streamer import TileError

__all__ = ["SecondImage"]

OPACITY = 0.5
"""The initial opacity of each second image."""


class SecondImage(QObject):
    """Displays a second image at the position and the region of the session's image.

    Its channels are set independently. In the arrangement ``beside`` the image has a canvas of its own; otherwise it is
    drawn over the first image in the main pane.

    Attributes:
        canvas: the canvas of the second image.
        image: the second image, or None.
        settings: its channels and labels; the position and the axes are those of the first image.

    Signals:
        image_changed: another second image is displayed, or none.
        settings_changed: its settings changed.
        arranged: the arrangement changed.
        pointed: (readout or None) the values below the pointer in the canvas of the second image.
    """

    image_changed = pyqtSignal()
    settings_changed = pyqtSignal()
    arranged = pyqtSignal()
    pointed = pyqtSignal(object)
    _frame_received = pyqtSignal(object)
    _tile_failed = pyqtSignal(object)

    def __init__(self, session: Session, panes: Panes) -> None:
        super().__init__(panes)
        self._session = session
        self._panes = panes
        self.canvas = Canvas()
        self.canvas.setAccessibleName("Second image")
        self.canvas.hide()
        self.image: Image | None = None
        self.settings: DisplaySettings | None = None
        self.arrangement: Arrangement = "beside"
        self.opacity = OPACITY
        self._place = "", ""
        self._pairing: Pairing | None = None
        self._displayed: tuple[int, int] | None = None
        self.frame: Frame | None = None
        self._is_following = False
        self._pipeline: ViewPipeline | None = None
        self._frame_received.connect(self._show_frame)
        self._tile_failed.connect(self._show_error)
        session.image_changed.connect(self.refresh)
        session.settings_changed.connect(self.refresh)
        panes.main.canvas.viewport_changed.connect(self.refresh)
        panes.main.canvas.visibility_changed.connect(self._follow_visibility)
        self.canvas.viewport_changed.connect(self._lead)
        self.canvas.pointed.connect(self._point)

    # -- the image ---------------------------------------------------------------------------------------------

    def is_shown(self, location: str, path: str) -> bool:
        """Return whether the second image belongs to the node at a path."""
        return self.image is not None and self._place == (location, path)

    def open(self, node: Any, location: str, path: str, arrangement: Arrangement = "beside") -> None:
        """Display the image of an open node as second image. Returns at once."""
        if self._session.image is None:
            self._session.show_message(
                "No image is open: a second image is displayed together with a first one."
            )
            return

        def show(image: Image) -> None:
            settings = initial_settings(image, 0)
            remembered = self._session.remembered(within(location, path), image, settings)
            self._place = location, path
            self._show_image(image, with_appearance(settings, remembered), arrangement, OPACITY)

        self._session.run_in_worker(lambda: describe(node, location, path).open_image(), show, "second image")

    def restore(self, node: Any, second: SecondView) -> None:
        """Display the second image of a former session. ``node`` is that of its location. Returns at once."""
        view = second.view

        def show(image: Image) -> None:
            settings = initial_settings(image, 0)
            try:
                settings = with_appearance(settings, fitted_settings(view, image, settings))
            except ZarrError as error:
                self._session.show_message(str(error), True)
            self._place = view.location, view.image
            self._show_image(image, settings, second.arrangement, second.opacity)

        self._session.run_for_image(
            lambda: describe_member(node, view.location, view.image).open_image(),
            show,
            "second image",
        )

    def view(self) -> SecondView | None:
        """Return the second image and its settings; None if there is none."""
        settings = self.displayed_settings() or self.settings
        if settings is None:
            return None
        return SecondView(View("", *self._place, settings), self.arrangement, self.opacity)

    def _show_image(
        self, image: Image, settings: DisplaySettings, arrangement: Arrangement, opacity: float
    ) -> None:
        """Display an image as second image."""
        if self._pipeline is None:
            self._pipeline = ViewPipeline(
                self._session.streamer, on_frame=self._frame_received.emit, on_error=self._tile_failed.emit
            )
        self.image, self.settings = image, settings
        self.arrangement, self.opacity = arrangement, opacity
        self.canvas.layers.title = image.name or image.path
        self._displayed = self.frame = None
        self._pipeline.clear()
        self.refresh()
        self.image_changed.emit()
        self.arranged.emit()

    def close_image(self) -> None:
        """Display only the first image."""
        image, self.image, self.settings = self.image, None, None
        self._pairing = self.frame = None
        if self._pipeline is not None:
            self._pipeline.clear()
        if image is not None:
            self._session.streamer.forget(image)
        self.refresh()
        self.image_changed.emit()

    def close(self) -> None:
        """Stop the thread that draws."""
        if self._pipeline is not None:
            self._pipeline.close()

    def arrange(self, arrangement: Arrangement, opacity: float) -> None:
        """Display the second image beside the first one, or over it with a blending mode and an opacity."""
        self.arrangement, self.opacity = arrangement, opacity
        self.arranged.emit()
        self.refresh()
        self._draw_overlay()

    def change_channel(self, number: int, **changes: Any) -> None:
        """Change settings of a channel of the second image."""
        if self.settings is not None and number < len(self.settings.channels):
            self.settings = with_channel(self.settings, number, **changes)
            self.settings_changed.emit()
            self.refresh()

    def change_visibility(self, numbers: Sequence[int], visible: bool) -> None:
        """Show or hide channels of the second image."""
        if self.settings is not None:
            for number in numbers:
                self.settings = with_channel(self.settings, number, visible=visible)
            self.settings_changed.emit()
            self.refresh()

    def auto_contrast(self, number: int) -> None:
        """Choose new contrast limits for a channel of the second image."""
        image, settings = self.image, self.displayed_settings()
        if image is not None and settings is not None and number < len(settings.channels):
            self._session.run_in_worker(
                lambda: auto_limits(channel_values(image, settings.channels[number], settings)),
                lambda limits: self.change_channel(number, limits=limits) if self.image is image else None,
                f"second contrast {number}",
            )

    # -- display -----------------------------------------------------------------------------------------------

    def displayed_settings(self) -> DisplaySettings | None:
        """Return the settings of the second image, at the position of the first one; None if it is not displayed."""
        if self.settings is None or self._pairing is None:
            return None
        place = self._pairing.settings
        return replace(
            self.settings, displayed=place.displayed, position=place.position, projection=place.projection
        )

    def refresh(self) -> None:
        """Display the current position and region of the first image."""
        first, settings, second = self._session.image, self._session.settings, self.image
        self._pairing = None
        if first is not None and settings is not None and second is not None:
            self._pairing = pair(first, settings, second)
            if self._pairing is None:
                self._session.show_message(
                    f"{second.name} is not displayed: it does not have the displayed axes of {first.name}.",
                    True,
                )
        is_shown = self._pairing is not None
        self._is_following = True  # the canvas is resized when it appears
        self.canvas.setVisible(is_shown and self.arrangement == "beside")
        self._is_following = False
        shown = self.displayed_settings()
        if self._pairing is None or shown is None or second is None or self._pipeline is None:
            self._panes.main.canvas.show_picture_overlay(None)
            return
        if shown.displayed != self._displayed:
            self._displayed = shown.displayed
            self._is_following = True
            self.canvas.show_image(second, shown.displayed)
            self._is_following = False
        viewport = self._pairing.to_second(self._panes.main.canvas.viewport)
        if self.arrangement == "beside":
            self._is_following = True
            self.canvas.follow(viewport)
            self._is_following = False
            viewport = self.canvas.viewport
        if self._panes.main.canvas.isVisible():
            self._pipeline.show(second, shown, viewport)

    def _follow_visibility(self) -> None:
        """Read nothing while the canvases are not displayed."""
        if self._panes.main.canvas.isVisible():
            self.refresh()
        elif self._pipeline is not None:
            self._pipeline.clear()

    def _lead(self) -> None:
        """Apply the viewport of the second canvas to the first one, unless it follows the first one."""
        if self._pairing is None or self._is_following or self.arrangement != "beside":
            return
        if self._displayed is None:
            return  # the canvas has no image yet
        main, own = self._panes.main.canvas, self.canvas.viewport
        expected = self._pairing.to_second(main.viewport)
        if math.isclose(own.zoom, expected.zoom) and own.center == expected.center:
            self.refresh()  # the canvas was resized; a fitted first image remains fitted
        else:
            # The first canvas has another size; only the centre and the zoom are applied.
            main.follow(self._pairing.to_first(own))

    def _show_frame(self, frame: Frame) -> None:
        if frame.state.image is not self.image:
            return
        self.frame = frame
        self._adopt_limits(frame)
        if self.arrangement == "beside":
            self.canvas.show_frame(frame)
        self._draw_overlay()

    def _adopt_limits(self, frame: Frame) -> None:
        """Copy the contrast limits that the renderer chose, so that they do not change and the panel shows them."""
        if self.settings is None or not frame.finished:
            return
        limits = {(channel.index, channel.field): channel.limits for channel in frame.channels}
        for number, channel in enumerate(self.settings.channels):
            found = limits.get((channel.index, channel.field))
            if channel.limits is None and found is not None:
                self.settings = with_channel(self.settings, number, limits=found)
                self.settings_changed.emit()

    def _draw_overlay(self) -> None:
        main, frame, pairing = self._panes.main.canvas, self.frame, self._pairing
        if frame is None or pairing is None or self.arrangement == "beside":
            main.show_picture_overlay(None)
            return
        height, width = frame.pixels.shape
        data: Any = frame.pixels.data
        picture = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
        by_rows, by_columns = pairing.mirrored
        # The copy does not depend on the memory of the frame.
        picture = picture.mirrored(by_columns, by_rows) if by_rows or by_columns else picture.copy()
        rect = pairing.rect_to_first(frame.grid.rect)
        main.show_picture_overlay(PictureOverlay(picture, rect, self.arrangement, self.opacity))

    def _show_error(self, error: TileError) -> None:
        self._session.show_message(error.message, True)

    def _point(self, position: tuple[float, float] | None) -> None:
        state = self._pipeline.state if self._pipeline is not None else None
        values = None
        if position is not None and state is not None:
            values = readout(state, self._session.streamer, *position)
        self.pointed.emit(values)
