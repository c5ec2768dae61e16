"""Further images as layers: over the first one with opacity and a blending mode, or beside it with linked views.

The images of a scene are layers at their places. They are opened when they become visible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from zarrfs.errors import ZarrError
from zarrfs_viewer.analysis.readout import LayerReadout, readout
from zarrfs_viewer.display.pairing import Pairing, Rect, intersect, pair
from zarrfs_viewer.display.resolve import clipped
from zarrfs_viewer.images.coordinates import Extent
from zarrfs_viewer.images.dataset import Dataset, describe, describe_member, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.locations import display_name, within
from zarrfs_viewer.qt.canvas.canvas import Canvas
from zarrfs_viewer.qt.canvas.layer_pictures import LayerDrawing, layer_settings, picture_overlay
from zarrfs_viewer.qt.canvas.painting import PictureOverlay
from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.rendering.contrast import auto_limits, channel_values
from zarrfs_viewer.rendering.pipeline import FrameThread, ViewPipeline
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.saved_views.views import View, fitted_settings
from zarrfs_viewer.saved_views.window_state import Arrangement, LayerView
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport, with_appearance, with_channel
from zarrfs_viewer.streaming.streamer import TileError

__all__ = ["ImageLayer", "ImageLayers"]

OPACITY = 0.5
"""The initial opacity of a layer that the user adds. Images of a scene are opaque."""

EXTENT_BATCH = 16
"""The places of this many images of a scene are read by one task of a worker thread."""

MAX_OPENING = 4
"""The number of images that are being opened at the same time."""


class ImageLayer:
    """One layer, and what it displays. ``ImageLayers`` changes it.

    Attributes:
        name: the name in the list.
        location, path: the place of the node of the image.
        open_image: opens the image. Blocks.
        scene: the dataset of the scene to which the image belongs, None for a layer that the user has added.
        entry: the path of the image in the scene; also of a layer that the user has added. Empty for other images.
        image: the image, None until it is opened.
        settings: its channels and labels; the position and the axes are those of the first image.
        arrangement, opacity, visible: how it is displayed.
        extent: the box in the coordinate system of the scene; None until it is known, or without a scene.
        problem: why it is not displayed, or displayed at another place; empty if everything is well.
        view: the settings of a former session, until the image is opened.
        is_changed: whether the user has changed how an image of a scene is displayed.
        follows_first: whether it has the channel settings of the first image: images of a scene with the same channels,
            until the user changes theirs.
        pairing: the relation to the first image; None if it is not displayed.
        frame: its last picture, or None.
    """

    def __init__(self, name: str, location: str, path: str, open_image: Callable[[], Image]) -> None:
        self.name = name
        self.location, self.path = location, path
        self.open_image = open_image
        self.scene: Dataset | None = None
        self.entry = ""
        self.image: Image | None = None
        self.settings: DisplaySettings | None = None
        self.arrangement: Arrangement = "translucent"
        self.opacity = OPACITY
        self.visible = True
        self.extent: Extent | None = None
        self.problem = ""
        self.view: View | None = None
        self.is_changed = False
        self.follows_first = False
        self.is_opening = False
        self.pairing: Pairing | None = None
        self.frame: Frame | None = None
        self.pipeline: ViewPipeline | None = None
        self.requested: tuple[DisplaySettings, Viewport] | None = None
        self.overlay: tuple[object, PictureOverlay] | None = None
        self.paired: tuple[tuple[object, ...], Pairing | None] | None = None

    def displayed_settings(self) -> DisplaySettings | None:
        """Return the settings at the position of the first image; None if the layer is not displayed."""
        if self.settings is None or self.pairing is None:
            return None
        return layer_settings(self.settings, self.pairing)

    @property
    def is_loading(self) -> bool:
        """Whether another picture follows."""
        if self.requested is None:
            return False
        frame = self.frame
        return (
            frame is None
            or not frame.finished
            or self.requested != (frame.state.settings, frame.state.viewport)
        )

    def follow(self, first: Image, settings: DisplaySettings) -> bool:
        """Adopt the channel settings of the first image, if the layer follows it. Returns whether they have changed."""
        image = self.image
        if not self.follows_first or image is None or self.settings is None:
            return False
        if not _have_same_channels(first, image):
            self.follows_first = False
            return False
        channels = with_appearance(self.settings, settings).channels
        has_changed = channels != self.settings.channels
        self.settings = replace(self.settings, channels=channels)
        return has_changed


class ImageLayers(QObject):
    """Displays layers at the position and the region of the session's image.

    The channels of each are set independently. At most one layer has the arrangement ``beside`` and a canvas of its
    own; the others are drawn over the first image in the main pane.

    Attributes:
        canvas: the canvas of the layer that is displayed beside the first image.
        layers: the layers from back to front.
        current: the layer whose settings are displayed, or None.
        first_visible: whether the first image is displayed.

    Signals:
        layers_changed: layers were added, removed or moved.
        current_changed: the settings of another layer are displayed, or its image was opened.
        settings_changed: the settings of the current layer changed.
        state_changed: (layer) its arrangement, opacity, visibility or problem changed.
        pointed: (readout or None) the values below the pointer in the canvas beside the first image.
    """

    layers_changed = pyqtSignal()
    current_changed = pyqtSignal()
    settings_changed = pyqtSignal()
    state_changed = pyqtSignal(object)
    pointed = pyqtSignal(object)
    _frame_received = pyqtSignal(object, object)
    _tile_failed = pyqtSignal(object)

    def __init__(self, session: Session, panes: Panes) -> None:
        super().__init__(panes)
        self._session = session
        self._panes = panes
        self.canvas = Canvas()
        self.canvas.setAccessibleName("Image beside the first one")
        self.canvas.hide()
        self.layers: list[ImageLayer] = []
        self.current: ImageLayer | None = None
        self.first_visible = True
        self._beside: tuple[Image, tuple[int, int]] | None = None
        self._is_following = False
        self._thread: FrameThread | None = None
        self._frame_received.connect(self._show_frame)
        self._tile_failed.connect(lambda error: self._show_error(error))
        session.image_changed.connect(self._follow_image)
        session.axes_changed.connect(self._show_extent)
        session.settings_changed.connect(self.refresh)
        panes.main.canvas.viewport_changed.connect(self.refresh)
        panes.main.canvas.visibility_changed.connect(self._follow_visibility)
        panes.main.read_layers = self.readouts
        self.canvas.viewport_changed.connect(self._lead)
        self.canvas.pointed.connect(self._point)

    # -- the layers --------------------------------------------------------------------------------------------

    def is_shown(self, location: str, path: str) -> bool:
        """Return whether the node at a path is the image of a layer."""
        return any((layer.location, layer.path) == (location, path) for layer in self.layers)

    def open(self, node: Any, location: str, path: str, arrangement: Arrangement = "translucent") -> None:
        """Display the image of an open node as a further layer, in front of the others. Returns at once."""
        if self._session.image is None:
            self._session.show_message("No image is open: a layer is displayed together with a first image.")
            return
        layer = self._new_layer(location, path, lambda: describe(node, location, path).open_image())
        layer.arrangement = arrangement
        self._add(layer)

    def _new_layer(self, location: str, path: str, open_image: Callable[[], Image]) -> ImageLayer:
        """Return a layer for a node. An image of the displayed scene is opened at its place, others as they are."""
        layer = ImageLayer(display_name(path or location), location, path, open_image)
        dataset = self._session.dataset
        if dataset is not None and dataset.coordinates is not None and dataset.location == location:
            prefix = f"{dataset.path}/" if dataset.path else ""
            inner = path.removeprefix(prefix)
            if path.startswith(prefix) and inner in dataset.coordinates.intrinsic:
                layer.entry = inner
                layer.open_image = partial(dataset.open_image, inner, is_layer=True)
        return layer

    def restore(self, node: Any, view: LayerView) -> None:
        """Display a layer of a former session. ``node`` is that of its location. Returns at once."""
        location, path = view.view.location, view.view.image
        for layer in self.layers:
            if layer.scene is not None and (layer.location, layer.path) == (location, path):
                self._restore_state(layer, view)
                layer.image = None  # opened again with the settings of the view
                self.refresh()
                return
        layer = self._new_layer(location, path, lambda: describe_member(node, location, path).open_image())
        self._restore_state(layer, view)
        self._add(layer)

    def _restore_state(self, layer: ImageLayer, view: LayerView) -> None:
        layer.view, layer.arrangement, layer.opacity = view.view, view.arrangement, view.opacity
        layer.visible, layer.is_changed = view.visible, True
        self.state_changed.emit(layer)

    def views(self) -> tuple[LayerView, ...]:
        """Return the layers and their settings. Images of a scene are contained if the user has changed them."""
        views = []
        for layer in self.layers:
            settings = layer.displayed_settings() or layer.settings
            if settings is not None and (layer.scene is None or layer.is_changed):
                view = View("", layer.location, layer.path, settings)
                views.append(LayerView(view, layer.arrangement, layer.opacity, layer.visible))
        return tuple(views)

    def _add(self, layer: ImageLayer) -> None:
        self.layers.append(layer)
        self._only_beside(layer)
        self.layers_changed.emit()
        self.select(layer)
        self._open([layer])

    def _open(self, layers: Iterable[ImageLayer]) -> None:
        """Open the images of layers on worker threads."""
        for layer in layers:
            layer.is_opening = True
            owner = f"layer {id(layer)}"
            self._session.worker.submit(
                layer.open_image, partial(self._show_image, layer), partial(self._fail, layer), owner
            )

    def _fail(self, layer: ImageLayer, error: Exception) -> None:
        layer.is_opening = False
        if layer not in self.layers:
            return
        layer.problem = str(error)
        self.state_changed.emit(layer)
        if layer.scene is None:
            self._session.show_message(f"{layer.name}: {error}", True)
        if layer is self.current:
            self.current_changed.emit()
        self.refresh()

    def _show_image(self, layer: ImageLayer, image: Image) -> None:
        """Display the image of a layer, which is open now."""
        layer.is_opening = False
        if layer not in self.layers:
            return
        settings = initial_settings(image, 0)
        remembered = self._session.remembered(within(layer.location, layer.path), image, settings)
        if remembered is not settings:
            layer.follows_first = False
            settings = with_appearance(settings, remembered)
        if layer.settings is not None:  # opened again, in another coordinate system
            settings = with_appearance(settings, layer.settings)
        if layer.view is not None:
            layer.follows_first = False
            try:
                settings = with_appearance(settings, fitted_settings(layer.view, image, settings))
            except ZarrError as error:
                self._session.show_message(str(error), True)
        layer.image, layer.settings, layer.view = image, settings, None
        layer.frame = layer.requested = layer.overlay = None
        layer.name = layer.name if layer.scene is not None else image.name or image.path or layer.name
        layer.problem = "  ".join(image.notes)
        self._show_extent()
        self.refresh()
        self.state_changed.emit(layer)
        if layer is self.current:
            self.current_changed.emit()

    def remove(self, layer: ImageLayer) -> None:
        """Remove a layer."""
        if layer not in self.layers:
            return
        number = self.layers.index(layer)
        self.layers.remove(layer)
        self._discard(layer)
        if layer is self.current:
            self.current = self.layers[min(number, len(self.layers) - 1)] if self.layers else None
        if not self.layers:
            self.first_visible = True  # there is no list any more to show it again
        self._show_extent()
        self.refresh()
        self._draw_overlays()
        self.layers_changed.emit()
        self.current_changed.emit()

    def _discard(self, layer: ImageLayer) -> None:
        """Free what a layer that is removed holds."""
        self._session.worker.cancel(f"layer {id(layer)}")
        if layer.pipeline is not None:
            layer.pipeline.close()
            layer.pipeline = None
        if layer.image is not None:
            self._session.streamer.forget(layer.image)
        layer.image = layer.frame = layer.overlay = layer.pairing = layer.paired = None

    def close(self) -> None:
        """Stop the thread that draws."""
        for layer in self.layers:
            if layer.pipeline is not None:
                layer.pipeline.close()
        if self._thread is not None:
            self._thread.close()

    def move(self, layer: ImageLayer, steps: int) -> None:
        """Move a layer to the front by a number of layers; to the back if it is negative."""
        number = self.layers.index(layer)
        target = min(max(number + steps, 0), len(self.layers) - 1)
        if target != number:
            self.layers.insert(target, self.layers.pop(number))
            self.layers_changed.emit()
            self._draw_overlays()

    def select(self, layer: ImageLayer | None) -> None:
        """Display the settings of another layer; None stands for the first image."""
        if layer is not self.current:
            self.current = layer
            self.current_changed.emit()

    def arrange(self, layer: ImageLayer, arrangement: Arrangement, opacity: float) -> None:
        """Display a layer beside the first image, or over it with a blending mode and an opacity."""
        layer.arrangement, layer.opacity, layer.is_changed = arrangement, opacity, True
        self._only_beside(layer)
        self.state_changed.emit(layer)
        self.refresh()

    def _only_beside(self, layer: ImageLayer) -> None:
        """Draw the other layer that was beside the first image over it: there is one canvas."""
        if layer.arrangement == "beside":
            for other in self.layers:
                if other is not layer and other.arrangement == "beside":
                    other.arrangement = "translucent"
                    self.state_changed.emit(other)

    def show(self, layer: ImageLayer | None, visible: bool) -> None:
        """Show or hide a layer; None stands for the first image."""
        if layer is None:
            self.first_visible = visible
            self._draw_overlays()
        elif layer.visible != visible:
            layer.visible, layer.is_changed = visible, True
            self.state_changed.emit(layer)
            self.refresh()

    def change_channel(self, number: int, **changes: Any) -> None:
        """Change settings of a channel of the current layer."""
        layer = self.current
        if layer is not None and layer.settings is not None and number < len(layer.settings.channels):
            self._change(layer, with_channel(layer.settings, number, **changes))

    def change_visibility(self, numbers: Sequence[int], visible: bool) -> None:
        """Show or hide channels of the current layer."""
        layer = self.current
        if layer is not None and layer.settings is not None:
            settings = layer.settings
            for number in numbers:
                settings = with_channel(settings, number, visible=visible)
            self._change(layer, settings)

    def _change(self, layer: ImageLayer, settings: DisplaySettings) -> None:
        layer.settings, layer.is_changed, layer.follows_first = settings, True, False
        if layer is self.current:
            self.settings_changed.emit()
        self.refresh()

    def auto_contrast(self, number: int) -> None:
        """Choose new contrast limits for a channel of the current layer."""
        layer = self.current
        image, settings = (None, None) if layer is None else (layer.image, layer.displayed_settings())
        if layer is None or image is None or settings is None or number >= len(settings.channels):
            return

        def apply(limits: tuple[float, float]) -> None:
            if layer.image is image and layer.settings is not None and number < len(layer.settings.channels):
                self._change(layer, with_channel(layer.settings, number, limits=limits))

        self._session.run_in_worker(
            lambda: auto_limits(channel_values(image, settings.channels[number], settings)),
            apply,
            f"contrast {id(layer)} {number}",
        )

    # -- scenes ------------------------------------------------------------------------------------------------

    def _follow_image(self) -> None:
        """Display the other images of the scene of another first image, and no longer those of the former one."""
        session = self._session
        scene = session.dataset if session.dataset is not None and session.dataset.kind == "scene" else None
        if session.image is None:
            scene = None
        first = None if session.image is None else session.image.path
        own = [layer for layer in self.layers if layer.scene is not None]
        if scene is None and not own:
            self._replace(self.layers)
            self._show_extent()
            self.refresh()
            return
        former = {}
        if scene is not None:
            former = {
                layer.entry: layer
                for layer in own
                if layer.scene is not None
                and (layer.scene.location, layer.scene.path) == (scene.location, scene.path)
            }
        added = [layer for layer in self.layers if layer.scene is None]
        self._replace(added)
        for layer in own:
            self._discard(layer)
        new = [] if scene is None else self._scene_layers(scene, first, former)
        self.layers = [*new, *added]
        if self.current is not None and self.current in own:
            entry = self.current.entry
            self.current = next((layer for layer in new if layer.entry == entry), None)
        if self.current is None and self.layers:
            self.current = self.layers[-1]
        self.first_visible = True
        self._draw_overlays()
        self.layers_changed.emit()
        self.current_changed.emit()
        if scene is not None:
            self._read_extents(scene, new)
        else:
            self._show_extent()
        self.refresh()

    def _replace(self, layers: Iterable[ImageLayer]) -> None:
        """Open those of the layers that are images of the displayed scene again: another system may be displayed."""
        dataset = self._session.dataset
        for layer in layers:
            if layer.entry and dataset is not None and dataset.location == layer.location:
                layer.open_image = partial(dataset.open_image, layer.entry, is_layer=True)
                self._open([layer])

    def _scene_layers(
        self, scene: Dataset, first: str | None, former: Mapping[str, ImageLayer]
    ) -> list[ImageLayer]:
        """Return layers for the images of a scene without the first one."""
        paths = [entry.path for entry in scene.images if entry.path != first]
        return [self._scene_layer(scene, path, former.get(path)) for path in paths]

    def _scene_layer(self, scene: Dataset, entry: str, former: ImageLayer | None) -> ImageLayer:
        """Return a layer for an image of a scene, with the settings of a former layer of the same image."""
        path = within(scene.path, entry) if scene.path else entry
        layer = ImageLayer(entry, scene.location, path, partial(scene.open_image, entry, is_layer=True))
        layer.scene, layer.entry, layer.opacity = scene, entry, 1.0
        layer.follows_first = not self._session.auto_contrast_per_image
        if former is not None:
            layer.follows_first = former.follows_first
            layer.settings, layer.view, layer.is_changed = former.settings, former.view, former.is_changed
            layer.arrangement, layer.opacity, layer.visible = (
                former.arrangement,
                former.opacity,
                former.visible,
            )
        return layer

    def _read_extents(self, scene: Dataset, layers: list[ImageLayer]) -> None:
        """Find the places of images of a scene on a worker thread, some at a time, and open those that are visible."""
        batch, rest = layers[:EXTENT_BATCH], layers[EXTENT_BATCH:]
        if not batch:
            self._show_extent()
            return

        def read() -> list[Extent | str]:
            found: list[Extent | str] = []
            for layer in batch:
                try:
                    found.append(scene.extent(layer.entry))
                except ZarrError as error:
                    found.append(str(error))
            return found

        def show(found: list[Extent | str]) -> None:
            if not set(batch) <= set(self.layers):
                return  # another image is displayed
            for layer, extent in zip(batch, found, strict=True):
                if isinstance(extent, str):
                    layer.problem = extent
                    self.state_changed.emit(layer)
                else:
                    layer.extent = extent
            self._read_extents(scene, rest)
            self.refresh()

        self._session.worker.cancel("extents")
        self._session.worker.submit(read, show, self._session.show_error, "extents")

    def _rect(self, layer: ImageLayer) -> Rect | None:
        """Return the box of a layer of a scene in data coordinates of the first image; None if it is not known."""
        image, settings, extent = self._session.image, self._session.settings, layer.extent
        if image is None or settings is None or extent is None:
            return None
        spans = []
        for axis in settings.displayed:
            span = extent.get(image.axes[axis].name)
            if span is None:
                return None
            spans.append(sorted(image.from_physical(axis, value) for value in span))
        (top, bottom), (left, right) = spans
        return top, left, bottom, right

    def _is_at_position(self, layer: ImageLayer) -> bool:
        """Return whether the displayed slice can contain a part of a layer that has not been opened."""
        image, settings, extent = self._session.image, self._session.settings, layer.extent
        if image is None or settings is None or extent is None:
            return False
        for axis in image.slider_axes:
            span = extent.get(image.axes[axis].name)
            if axis not in settings.displayed and span is not None:
                thickness = 1.0
                if settings.projection is not None and settings.projection.axis == axis:
                    thickness = settings.projection.thickness
                low, high = sorted(image.from_physical(axis, value) for value in span)
                if not low - thickness / 2 <= settings.position[axis] <= high + thickness / 2:
                    return False
        return True

    def _show_extent(self) -> None:
        """Let the view of the whole picture contain all images of the scene."""
        image, settings = self._session.image, self._session.settings
        boxes = [box for layer in self.layers if (box := self._rect(layer)) is not None]
        if image is None or settings is None or not boxes:
            self._panes.main.canvas.show_extent(None)
            return
        rows, columns = (image.shape[axis] for axis in settings.displayed)
        boxes.append((-0.5, -0.5, rows - 0.5, columns - 0.5))
        low = [min(box[number] for box in boxes) for number in (0, 1)]
        high = [max(box[number] for box in boxes) for number in (2, 3)]
        self._panes.main.canvas.show_extent((low[0], low[1], high[0], high[1]))

    def _open_visible(self) -> None:
        """Open the visible images of the scene that are not open, those in the middle first."""
        canvas = self._panes.main.canvas
        if not canvas.isVisible():
            return
        waiting: list[tuple[float, int, ImageLayer]] = []
        for layer in self.layers:
            if layer.image is not None or layer.problem or not layer.visible or layer.is_opening:
                continue
            box = self._rect(layer)
            if box is not None and intersect(box, canvas.viewport.rect) and self._is_at_position(layer):
                row, column = canvas.viewport.center
                distance = math.hypot((box[0] + box[2]) / 2 - row, (box[1] + box[3]) / 2 - column)
                waiting.append((distance, len(waiting), layer))
        opening = sum(layer.is_opening for layer in self.layers)
        self._open(layer for _, _, layer in sorted(waiting)[: max(0, MAX_OPENING - opening)])

    # -- display -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Display the current position and region of the first image."""
        if not self.layers and self._beside is None and not self._panes.main.canvas.layers.overlays:
            return
        beside = None
        for layer in self.layers:
            self._refresh_layer(layer)
            if layer.arrangement == "beside" and layer.pairing is not None and layer.visible:
                beside = layer
        self._show_beside(beside)
        self._open_visible()
        self._draw_overlays()

    def _refresh_layer(self, layer: ImageLayer) -> None:
        first, settings, image = self._session.image, self._session.settings, layer.image
        was_displayed = layer.pairing is not None
        layer.pairing = None
        if first is None or settings is None or image is None:
            return
        key = first, settings, image
        if layer.paired is None or any(
            one is not other for one, other in zip(layer.paired[0], key, strict=True)
        ):
            if layer.follow(first, settings) and layer is self.current:
                self.settings_changed.emit()
            layer.paired = key, pair(first, settings, image)
        pairing = layer.paired[1]
        if pairing is None:
            if was_displayed or not layer.problem:
                layer.problem = (
                    f"{image.name} is not displayed: it does not have the displayed axes of {first.name}."
                )
                self._session.show_message(layer.problem, True)
                self.state_changed.emit(layer)
            return
        if not was_displayed and layer.problem:
            problem = "  ".join(image.notes)
            if problem != layer.problem:
                layer.problem = problem
                self.state_changed.emit(layer)
        layer.pairing = pairing
        canvas = self._panes.main.canvas
        if not canvas.isVisible():
            self._stop(layer, keeps_picture=True)
        elif not layer.visible:
            self._stop(layer)
        elif layer.arrangement != "beside":
            if pairing.is_displayed(canvas.viewport):
                self._request(layer, pairing.to_second(canvas.viewport))
            else:
                self._stop(layer)

    def _stop(self, layer: ImageLayer, keeps_picture: bool = False) -> None:
        """Read nothing for a layer that is not displayed, and free its picture."""
        if layer.requested is not None and layer.pipeline is not None:
            layer.pipeline.clear()
        layer.requested = None
        if not keeps_picture:
            layer.frame = layer.overlay = None

    def _request(self, layer: ImageLayer, viewport: Viewport) -> None:
        """Draw a layer in a viewport in its own data coordinates, unless that is the picture that exists."""
        image, settings = layer.image, layer.displayed_settings()
        if image is None or settings is None:
            return
        settings = clipped(settings, image)  # as in the state of the frame
        if self._is_drawn(layer, settings, viewport):
            return
        if layer.pipeline is None:
            if self._thread is None:
                self._thread = FrameThread()
            layer.pipeline = ViewPipeline(
                self._session.streamer,
                on_frame=partial(self._frame_received.emit, layer),
                on_error=self._tile_failed.emit,
                thread=self._thread,
            )
        layer.requested = settings, viewport
        layer.pipeline.show(image, settings, viewport)

    @staticmethod
    def _is_drawn(layer: ImageLayer, settings: DisplaySettings, viewport: Viewport) -> bool:
        """Return whether the picture that exists is that of the whole plane, which another viewport contains as well.

        Most images of a scene are visible completely, and panning does not change their pictures.
        """
        frame, pairing = layer.frame, layer.pairing
        if frame is None or pairing is None or not frame.complete or layer.requested is None:
            return False
        state = frame.state
        if layer.requested != (state.settings, state.viewport) or state.settings != settings:
            return False
        # The centre and the size are those of the region; what remains determines the level.
        former = replace(state.viewport, center=viewport.center, width=viewport.width, height=viewport.height)
        rows, columns = pairing.shape
        return former == viewport and all(
            top <= -0.5 and left <= -0.5 and bottom >= rows - 0.5 and right >= columns - 0.5
            for top, left, bottom, right in (state.viewport.rect, viewport.rect)
        )

    def _show_beside(self, layer: ImageLayer | None) -> None:
        """Show the canvas of a layer beside the first image, or hide it."""
        self._is_following = True  # the canvas is resized when it appears
        self.canvas.setVisible(layer is not None)
        if layer is None or layer.image is None or layer.pairing is None:
            self._beside = None
        else:
            displayed = layer.pairing.settings.displayed
            if self._beside != (layer.image, displayed):
                self._beside = layer.image, displayed
                self.canvas.layers.title = layer.image.name or layer.image.path
                self.canvas.show_image(layer.image, displayed)
                if layer.frame is not None and layer.frame.state.settings.displayed == displayed:
                    self.canvas.show_frame(layer.frame)
            self.canvas.follow(layer.pairing.to_second(self._panes.main.canvas.viewport))
            if self._panes.main.canvas.isVisible():
                self._request(layer, self.canvas.viewport)
        self._is_following = False

    def _layer_beside(self) -> ImageLayer | None:
        image = None if self._beside is None else self._beside[0]
        return next((layer for layer in self.layers if image is not None and layer.image is image), None)

    def _follow_visibility(self) -> None:
        """Read nothing while the canvases are not displayed."""
        self.refresh()

    def _lead(self) -> None:
        """Apply the viewport of the canvas of a layer to the first one, unless it follows the first one."""
        layer = self._layer_beside()
        if self._is_following or layer is None or layer.pairing is None:
            return
        main, own = self._panes.main.canvas, self.canvas.viewport
        expected = layer.pairing.to_second(main.viewport)
        if math.isclose(own.zoom, expected.zoom) and own.center == expected.center:
            self.refresh()  # the canvas was resized; a fitted first image remains fitted
        else:
            # The first canvas has another size; only the centre and the zoom are applied.
            main.follow(layer.pairing.to_first(own))

    def _show_frame(self, layer: ImageLayer, frame: Frame) -> None:
        if layer not in self.layers or frame.state.image is not layer.image or layer.requested is None:
            return
        layer.frame = frame
        self._adopt_limits(layer, frame)
        if layer is self._layer_beside() and layer.arrangement == "beside":
            self.canvas.show_frame(frame)
        self._draw_overlays()

    def _adopt_limits(self, layer: ImageLayer, frame: Frame) -> None:
        """Copy the contrast limits that the renderer chose, so that they do not change and the panel shows them."""
        if layer.settings is None or not frame.finished or layer.follows_first:
            return
        limits = {(channel.index, channel.field): channel.limits for channel in frame.channels}
        settings = layer.settings
        for number, channel in enumerate(settings.channels):
            found = limits.get((channel.index, channel.field))
            if channel.limits is None and found is not None:
                settings = with_channel(settings, number, limits=found)
        if settings is not layer.settings:
            layer.settings = settings
            if layer is self.current:
                self.settings_changed.emit()

    def _draw_overlays(self) -> None:
        overlays: list[PictureOverlay] = []
        for layer in self.layers:
            frame, pairing = layer.frame, layer.pairing
            if frame is not None and pairing is not None and layer.visible and layer.arrangement != "beside":
                key = frame, pairing.rows, pairing.columns, layer.arrangement, layer.opacity
                if layer.overlay is None or layer.overlay[0] != key:
                    layer.overlay = key, picture_overlay(frame, pairing, layer.arrangement, layer.opacity)
                overlays.append(layer.overlay[1])
        self._panes.main.canvas.show_picture_overlays(tuple(overlays), self.first_visible)

    @property
    def is_complete(self) -> bool:
        """Whether all layers that are visible in the viewport are displayed completely."""
        return not any(layer.is_opening or layer.is_loading for layer in self.layers)

    def drawings(self, viewport: Viewport) -> tuple[LayerDrawing, ...]:
        """Return what is needed to draw the layers over a picture of a viewport, from back to front."""
        first, settings = self._session.image, self._session.settings
        drawings = []
        for layer in self.layers:
            if not layer.visible or layer.arrangement == "beside" or first is None or settings is None:
                continue
            if layer.image is None:
                box = self._rect(layer)
                if layer.problem or box is None or not intersect(box, viewport.rect):
                    continue
            opened = partial(_opened, layer.image, layer.settings, layer.open_image)
            if layer.follows_first:
                opened = partial(_opened_like, opened, first, settings)
            drawings.append(LayerDrawing(layer.name, opened, layer.arrangement, layer.opacity))
        return tuple(drawings)

    def _show_error(self, error: TileError) -> None:
        self._session.show_message(error.message, True)

    # -- values ------------------------------------------------------------------------------------------------

    def readouts(self, row: float, column: float) -> tuple[LayerReadout, ...]:
        """Return the values of the visible layers at a point of the first image, the front layer first."""
        found = []
        for layer in reversed(self.layers):
            state = layer.pipeline.state if layer.pipeline is not None else None
            if (
                state is None
                or layer.pairing is None
                or layer.frame is None
                or state.image is not layer.image
            ):
                continue
            values = readout(state, self._session.streamer, *layer.pairing.point_to_second(row, column))
            if values is not None:
                found.append(LayerReadout(layer.name, values))
        return tuple(found)

    def _point(self, position: tuple[float, float] | None) -> None:
        layer = self._layer_beside()
        state = layer.pipeline.state if layer is not None and layer.pipeline is not None else None
        values = None
        if position is not None and state is not None:
            values = readout(state, self._session.streamer, *position)
        self.pointed.emit(values)


def _have_same_channels(first: Image, other: Image) -> bool:
    """Return whether the values and the channels of two images have the same meaning."""
    one, two = ((image.kind, image.dtype, image.value_unit, len(image.channels)) for image in (first, other))
    names, other_names = ([(c.label, c.field) for c in image.channels] for image in (first, other))
    return one == two and names == other_names


def _opened(
    image: Image | None, settings: DisplaySettings | None, open_image: Callable[[], Image]
) -> tuple[Image, DisplaySettings]:
    """Return the image of a layer, which may not have been visible until now, and its settings. Blocks."""
    if image is None:
        image = open_image()
        settings = None if settings is None else with_appearance(initial_settings(image, 0), settings)
    return image, initial_settings(image, 0) if settings is None else settings


def _opened_like(
    opened: Callable[[], tuple[Image, DisplaySettings]], first: Image, settings: DisplaySettings
) -> tuple[Image, DisplaySettings]:
    """Return an opened image with the channel settings of the first image, if it has the same channels. Blocks."""
    image, own = opened()
    return image, with_appearance(own, settings) if _have_same_channels(first, image) else own
