"""Drawing of a frame from a display state and the cached tiles: sampling, contrast, composition and labels.

The renderer stores state between frames: the last values of each layer, so that old pixels are drawn until new
ones arrive and a contrast change does not sample again, and the automatic contrast limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.levels import FrameGrid
from zarrfs_viewer.display.resolve import DisplayState, Layer
from zarrfs_viewer.images.tile_grid import PlaneKey, TileKey
from zarrfs_viewer.images.values import component, data_limits
from zarrfs_viewer.rendering.compose import NAN_COLOR, OPAQUE, Pixels, compose, compose_rgb
from zarrfs_viewer.rendering.contrast import auto_limits, rgb_limits
from zarrfs_viewer.rendering.labels import blend_labels
from zarrfs_viewer.rendering.sampling import (
    Fetch,
    LayerBuffer,
    footprint,
    plane_pixels,
    resample,
    sample_plane,
)
from zarrfs_viewer.state.view_state import ChannelSettings
from zarrfs_viewer.streaming.streamer import TileError
from zarrfs_viewer.streaming.tile_reading import is_of_chunk, read_tile

__all__ = ["Frame", "FrameRenderer", "complete_frame", "slice_id"]

LayerId = tuple[Any, ...]
SliceId = tuple[Any, ...]
FailedPixels = Callable[[Layer, PlaneKey], npt.NDArray[np.bool_] | None]

HATCH_DISTANCE, HATCH_WIDTH = 8, 3
"""Pixels of the frame. Values that could not be read are hatched with lines of this distance and width."""
HATCH_PIXEL = OPAQUE | np.uint32(NAN_COLOR[0] << 16 | NAN_COLOR[1] << 8 | NAN_COLOR[2])
HATCH_TINT = OPAQUE | np.uint32(NAN_COLOR[0] // 3 << 16 | NAN_COLOR[1] // 3 << 8 | NAN_COLOR[2] // 3)


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture, to be drawn at ``grid.rect`` (data coordinates).

    ``pixels`` are 0xAARRGGBB, 0 where no tile has been read. They are not modified after the frame is created.
    ``complete`` means that all tiles of the target level are complete. ``finished`` means that no further frame
    follows: the frame is complete, or the missing tiles have failed. ``errors`` are the errors of its tiles.
    ``is_replaced`` means that parts of it are still those of the slice that was displayed before.
    ``channels`` are the drawn channels with the limits that were used, including automatic ones.
    """

    pixels: Pixels
    grid: FrameGrid
    state: DisplayState
    complete: bool
    finished: bool
    channels: tuple[ChannelSettings, ...] = ()
    errors: tuple[TileError, ...] = ()
    is_replaced: bool = False

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all pixels have the same colour."""
        pixels = self.pixels.reshape(-1)
        # Few pixels of most pictures suffice to find a different one.
        return bool(pixels.size) and all((pixels[::step] == pixels[0]).all() for step in (997, 1))


Failures = Callable[[], tuple[TileError, ...]]


def _no_failures() -> tuple[TileError, ...]:
    return ()


class FrameRenderer:
    """Draws the frames of one pane. Not thread-safe."""

    def __init__(self) -> None:
        self._buffers: dict[LayerId, tuple[Layer, LayerBuffer, bool]] = {}
        self._limits: dict[LayerId, tuple[tuple[float, float], bool]] = {}
        self._slice: SliceId = ()  # of the buffers
        self._former: set[LayerId] = set()  # layers with pixels of another slice
        self._view: tuple[int, tuple[int, int]] | None = None

    def clear(self) -> None:
        """Remove the old pixels and the automatic contrast limits."""
        self._buffers.clear()
        self._limits.clear()
        self._view = None

    def render(
        self, state: DisplayState, fetch: Fetch, finished: bool = False, failures: Failures = _no_failures
    ) -> Frame | None:
        """Return the frame, or None if no tile is cached yet and the request is not ``finished``.

        ``fetch`` returns a cached tile or None. ``failures`` returns the errors of the state's tiles. It is called
        before and after sampling: a tile that arrives during sampling may add an error, and a retry that starts
        during sampling removes the errors of tiles that were already sampled.
        """
        errors = dict.fromkeys(failures())

        def failed_pixels(layer: Layer, plane: PlaneKey) -> npt.NDArray[np.bool_] | None:
            """Return the pixels of a plane that was just sampled that could not be read."""
            errors.update(dict.fromkeys(failures()))
            return _failed_pixels(state, layer, plane, errors)

        view = state.image.uid, state.settings.displayed
        if view != self._view:
            self._buffers.clear()
            self._view = view
        current = slice_id(state)
        if current != self._slice:
            self._former = set(self._buffers)
            self._slice = current
        sampled = [(layer, *self._sample(state, layer, fetch, failed_pixels)) for layer in state.layers]
        errors.update(dict.fromkeys(failures()))
        # A tile with an error may be partly unreadable. It is sampled again, because a retry replaces it.
        failed_planes = {error.key.plane for error in errors}
        self._buffers = {
            _layer_id(layer): (layer, buffer, complete and layer.planes[-1] not in failed_planes)
            for layer, buffer, complete in sampled
            if buffer is not None
        }
        grid = state.grid
        pixels = np.zeros(grid.shape, np.uint32)
        complete = not errors and all(is_complete for _, _, is_complete in sampled)
        drawable = [(layer, buffer) for layer, buffer, _ in sampled if buffer is not None]
        if sampled and not drawable and not finished:
            return None
        complete_layers = {_layer_id(layer) for layer, _, complete in sampled if complete}
        channels = self._draw_channels(pixels, state, drawable, complete_layers)
        for layer, buffer in drawable:
            if layer.labels is not None:
                blend_labels(pixels, buffer.values, layer.labels, layer.image.image_label)
        _hatch(pixels, state, errors)
        self._former &= set(self._buffers)
        is_replaced = bool(self._former) and not finished
        return Frame(
            pixels, grid, state, complete, complete or finished, channels, tuple(errors), is_replaced
        )

    def _sample(
        self, state: DisplayState, layer: Layer, fetch: Fetch, failed_pixels: FailedPixels
    ) -> tuple[LayerBuffer | None, bool]:
        """Return the values of a layer on the frame's grid, and whether the target level is complete."""
        previous = self._buffers.get(_layer_id(layer))
        if previous is not None:
            old_layer, old_buffer, was_complete = previous
            if was_complete and old_layer.planes == layer.planes and old_buffer.grid == state.grid:
                return old_buffer, True

        def painter(plane: PlaneKey) -> Callable[[LayerBuffer | None], tuple[LayerBuffer | None, bool]]:
            paint = sample_plane(state.image, layer.image, plane, state.settings.displayed, state.grid, fetch)

            def paint_readable(buffer: LayerBuffer | None) -> tuple[LayerBuffer | None, bool]:
                painted, complete = paint(buffer)
                return _without(painted, failed_pixels(layer, plane)), complete

            return paint_readable

        number, paint_target = _layer_id(layer), painter(layer.planes[-1])
        buffer, complete = paint_target(None)
        if complete:
            self._former.discard(number)
            return _within_image(state, layer, buffer), True
        # Tiles are missing: draw what is in the cache of the coarser levels, then the target level on top. Old pixels
        # are below them, or above if they are complete pixels of this slice, which are not coarser.
        old = resample(previous[1], state.grid) if previous is not None else None
        is_sharp = previous is not None and previous[2] and number not in self._former
        buffer = None if is_sharp else old
        for plane in layer.resident:
            buffer, is_covered = painter(plane)(buffer)
            if is_covered:
                self._former.discard(number)
        if is_sharp and old is not None:
            buffer = _over(old, buffer)
        buffer, _ = paint_target(buffer)
        return _within_image(state, layer, buffer), False

    def _draw_channels(
        self,
        pixels: Pixels,
        state: DisplayState,
        drawable: list[tuple[Layer, LayerBuffer]],
        complete_layers: set[LayerId],
    ) -> tuple[ChannelSettings, ...]:
        layers = [(layer.channel, layer, buffer) for layer, buffer in drawable if layer.channel is not None]
        if not layers:
            return ()
        channels = [
            self._resolve_limits(channel, layer, buffer, _layer_id(layer) in complete_layers)
            for channel, layer, buffer in layers
        ]
        values = [buffer.values for _, _, buffer in layers]
        if values[0].ndim == 3:
            compose_rgb(values[0], channels[0], pixels)
        else:
            compose(values, channels, pixels, [buffer.covered for _, _, buffer in layers])
        uncovered = _uncovered([buffer for _, _, buffer in layers])
        if uncovered is not None:
            pixels[uncovered] = 0
        return tuple(channels)

    def _resolve_limits(
        self, channel: ChannelSettings, layer: Layer, buffer: LayerBuffer, complete: bool
    ) -> ChannelSettings:
        """Return the channel with limits. Automatic limits are final once they come from a complete picture. Pixels
        that could not be read do not count. An empty slice, of zeros or NaN, has no limits: they would not suit others.

        A picture of a coarser level is not sufficient: its slice may be far from the slice of the target level.
        """
        if channel.limits is not None:
            return channel
        limits, is_final = self._limits.get(_limits_id(layer), (None, False))
        if limits is None or not is_final:
            if _is_empty(channel, layer, buffer):
                return channel
            limits = _choose_limits(channel, layer, buffer)
            self._limits[_limits_id(layer)] = limits, complete
        return replace(channel, limits=limits)


def complete_frame(state: DisplayState, skip_corrupt: bool = False) -> Frame:
    """Return the frame of a state. The tiles of its target level are read here. Blocks. Raises ZarrError.

    With ``skip_corrupt`` unreadable chunks are hatched, as on the canvas, and are reported in ``errors`` of the frame.
    """
    images = {layer.image.uid: layer.image for layer in state.layers}
    target_planes = {layer.planes[-1] for layer in state.layers}
    tiles: dict[TileKey, npt.NDArray[Any] | None] = {}
    errors: list[TileError] = []
    for key in (request.key for request in state.tiles if request.key.plane in target_planes):
        image = images[key.plane.image]
        if not skip_corrupt:
            tiles[key] = image.read_tile(key)
            continue
        tiles[key], failure = read_tile(image, key)
        if failure is not None:
            if not is_of_chunk(failure.error):
                raise failure.error
            errors.append(TileError(key, failure.message, failure.failed, failure.error))
    frame = FrameRenderer().render(state, tiles.get, finished=True, failures=lambda: tuple(errors))
    if frame is None:
        raise RuntimeError("a finished frame is never None")
    return frame


def _within_image(state: DisplayState, layer: Layer, buffer: LayerBuffer | None) -> LayerBuffer | None:
    """Return a buffer whose pixels outside of a resampled image are not valid."""
    if buffer is None:
        return None
    inside = footprint(state.image, layer.image, layer.planes[-1], state.settings.displayed, state.grid)
    if inside is None or inside.all():
        return buffer
    covered = inside if buffer.covered is None else buffer.covered & inside
    return LayerBuffer(buffer.values, covered, buffer.grid)


def slice_id(state: DisplayState) -> SliceId:
    """Return a value that is equal for two states that display the same slice of the same image."""
    settings = state.settings
    position = tuple(v for axis, v in enumerate(settings.position) if axis not in settings.displayed)
    return state.image.uid, settings.displayed, position, settings.projection


def _over(upper: LayerBuffer, lower: LayerBuffer | None) -> LayerBuffer:
    """Return the values of a buffer, and those of another one where it has none."""
    if lower is None or upper.covered is None or lower.values.dtype != upper.values.dtype:
        return upper
    missing = ~upper.covered
    upper.values[missing] = lower.values[missing]
    covered = upper.covered | (True if lower.covered is None else lower.covered)
    upper.covered = None if covered.all() else covered
    return upper


def _layer_id(layer: Layer) -> LayerId:
    if layer.channel is not None:
        return layer.image.uid, "channel", layer.channel.index, layer.channel.field
    return layer.image.uid, "labels", layer.labels.index if layer.labels is not None else 0


def _limits_id(layer: Layer) -> LayerId:
    channel = layer.channel or ChannelSettings()
    return layer.image.uid, channel.index, channel.field, channel.component


def _failed_pixels(
    state: DisplayState, layer: Layer, plane: PlaneKey, errors: Iterable[TileError]
) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the pixels of the frame whose values in a plane could not be read, or None if there are none."""
    failed = [rect for error in errors if error.key.plane == plane for rect in error.failed]
    if not failed:
        return None
    rows, columns = plane_pixels(state.image, layer.image, plane, state.settings.displayed, state.grid)
    mask = np.zeros(state.grid.shape, np.bool_)
    for top, left, bottom, right in failed:
        mask[np.ix_((rows >= top) & (rows < bottom), (columns >= left) & (columns < right))] = True
    return mask


def _without(buffer: LayerBuffer | None, failed: npt.NDArray[np.bool_] | None) -> LayerBuffer | None:
    """Remove the values that could not be read from a buffer, and return it; None if no other values remain."""
    if buffer is None or failed is None:
        return buffer
    buffer.covered = ~failed if buffer.covered is None else buffer.covered & ~failed
    return buffer if buffer.covered.any() else None


def _hatch(pixels: Pixels, state: DisplayState, errors: Iterable[TileError]) -> None:
    """Draw lines in the colour of NaN over the pixels whose values could not be read in a layer. The pixels between
    them have a darker tint, so that an area smaller than the distance of two lines is not black.
    """
    for layer in state.layers:
        failed = _failed_pixels(state, layer, layer.planes[-1], errors)
        if failed is None:
            continue
        rows, columns = (
            start // stride + np.arange(count)
            for start, stride, count in zip(
                (state.grid.top, state.grid.left), state.grid.stride, state.grid.shape, strict=True
            )
        )
        lines = (rows[:, None] + columns) % HATCH_DISTANCE < HATCH_WIDTH
        pixels[failed & lines] = HATCH_PIXEL
        pixels[failed & ~lines] |= HATCH_TINT


def _choose_limits(channel: ChannelSettings, layer: Layer, buffer: LayerBuffer) -> tuple[float, float]:
    if layer.image.rgb_axis is not None and buffer.values.dtype == np.uint8:
        return data_limits(buffer.values.dtype)
    if channel.component == "phase":
        return -np.pi, np.pi
    values = buffer.values if buffer.covered is None else buffer.values[buffer.covered]
    if layer.image.rgb_axis is not None:
        return rgb_limits(values[..., :3])
    return auto_limits(component(values, channel.component, channel.field))


def _is_empty(channel: ChannelSettings, layer: Layer, buffer: LayerBuffer) -> bool:
    """Return whether the values of a slice of a stack are all zero or NaN."""
    depth = [axis for axis in layer.image.slider_axes if axis not in layer.planes[-1].displayed]
    if layer.image.rgb_axis is not None or all(layer.image.shape[axis] == 1 for axis in depth):
        return False
    values = component(buffer.values, channel.component, channel.field)
    has_values = values != 0
    if values.dtype.kind == "f":
        has_values &= ~np.isnan(values)
    return not has_values.any()


def _uncovered(buffers: list[LayerBuffer]) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the pixels without values in any layer, or None if there are no such pixels."""
    if any(buffer.covered is None for buffer in buffers):
        return None
    masks = [buffer.covered for buffer in buffers if buffer.covered is not None]
    return np.asarray(~np.logical_or.reduce(masks), np.bool_)
