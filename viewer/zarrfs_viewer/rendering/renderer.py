"""One frame from a display state and the tiles that are there: sampling, contrast, composition, labels.

Keeps what frames share: the last values per layer (old pixels stay until better are there; a contrast change
does not sample again) and the contrast chosen for channels that bring none. Used by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.levels import FrameGrid
from zarrfs_viewer.display.resolve import DisplayState, Layer
from zarrfs_viewer.images.values import component, data_limits
from zarrfs_viewer.rendering.compose import Pixels, compose, compose_rgb
from zarrfs_viewer.rendering.contrast import auto_limits
from zarrfs_viewer.rendering.labels import blend_labels
from zarrfs_viewer.rendering.sampling import Fetch, LayerBuffer, resample, sample_plane
from zarrfs_viewer.state.view_state import ChannelSettings
from zarrfs_viewer.streaming.streamer import TileError

__all__ = ["Frame", "FrameRenderer"]

ChannelId = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture, to be drawn over ``grid.rect`` (data coordinates).

    ``pixels`` are 0xAARRGGBB, 0 where nothing is known yet, and never written to again. ``exact``: every tile of the
    target level is in it, whole. ``settled``: no better one will come, as it is exact or what is missing has failed.
    ``errors`` are the failures among its tiles; what they left blank is drawn like missing chunks or not at all.
    ``channels`` are the drawn channels with the limits they were drawn with, chosen automatically where the intent
    had None.
    """

    pixels: Pixels
    grid: FrameGrid
    state: DisplayState
    exact: bool
    settled: bool
    channels: tuple[ChannelSettings, ...] = ()
    errors: tuple[TileError, ...] = ()


Failures = Callable[[], tuple[TileError, ...]]


def _no_failures() -> tuple[TileError, ...]:
    return ()


class FrameRenderer:
    """Draws frames, one after the other."""

    def __init__(self) -> None:
        self._buffers: dict[ChannelId, tuple[Layer, LayerBuffer, bool]] = {}
        self._limits: dict[ChannelId, tuple[tuple[float, float], bool]] = {}
        self._view: tuple[int, tuple[int, int]] | None = None

    def clear(self) -> None:
        """Forget old pixels and chosen contrast."""
        self._buffers.clear()
        self._limits.clear()
        self._view = None

    def render(
        self, state: DisplayState, fetch: Fetch, settled: bool = False, failures: Failures = _no_failures
    ) -> Frame | None:
        """Return the frame, None where nothing of it is there yet and more will come (not ``settled``).

        ``fetch`` gives tiles that are there, or None; ``failures`` tells what is known to have failed of the state's
        tiles. It is asked before and after sampling: a tile that arrives while the frame is drawn brings its error with
        it, and a retry that begins while the frame is drawn forgets the errors of the tiles that were sampled.
        """
        known = failures()
        view = state.image.uid, state.intent.displayed
        if view != self._view:
            self._buffers.clear()
            self._view = view
        sampled = [(layer, *self._sample(state, layer, fetch)) for layer in state.layers]
        errors = tuple(dict.fromkeys((*known, *failures())))
        # A tile with an error may be partly blank. It is sampled again, because a retry replaces it.
        failed = {error.key.plane for error in errors}
        self._buffers = {
            _layer_id(layer): (layer, buffer, done and layer.planes[-1] not in failed)
            for layer, buffer, done in sampled
            if buffer is not None
        }
        grid = state.grid
        pixels = np.zeros(grid.shape, np.uint32)
        exact = not errors and all(done for _, _, done in sampled)
        shown = [(layer, buffer) for layer, buffer, _ in sampled if buffer is not None]
        if sampled and not shown and not settled:
            return None
        channels = self._draw_channels(pixels, shown)
        for layer, buffer in shown:
            if layer.labels is not None:
                blend_labels(pixels, buffer.values, layer.labels, layer.image.image_label)
        return Frame(pixels, grid, state, exact, exact or settled, channels, errors)

    def _sample(self, state: DisplayState, layer: Layer, fetch: Fetch) -> tuple[LayerBuffer | None, bool]:
        """Return the values of a layer on the frame's grid, and whether the target level is complete."""
        before = self._buffers.get(_layer_id(layer))
        if before is not None:
            old, buffer, done = before
            if done and old.planes == layer.planes and buffer.grid == state.grid:
                return buffer, True
        target = sample_plane(
            state.image, layer.image, layer.planes[-1], state.intent.displayed, state.grid, fetch
        )
        buffer_now, complete = target(None)
        if complete:
            return buffer_now, True
        # Something is missing: old pixels below, what there is of coarser levels over them, the target on top.
        painted = resample(before[1], state.grid) if before is not None else None
        for plane in layer.planes[:-1]:
            paint = sample_plane(state.image, layer.image, plane, state.intent.displayed, state.grid, fetch)
            painted, _ = paint(painted)
        painted, _ = target(painted)
        return painted, False

    def _draw_channels(
        self, pixels: Pixels, shown: list[tuple[Layer, LayerBuffer]]
    ) -> tuple[ChannelSettings, ...]:
        layers = [(layer.channel, layer, buffer) for layer, buffer in shown if layer.channel is not None]
        if not layers:
            return ()
        drawn = [self._with_limits(channel, layer, buffer) for channel, layer, buffer in layers]
        values = [buffer.values for _, _, buffer in layers]
        if values[0].ndim == 3:
            compose_rgb(values[0], drawn[0], pixels)
        else:
            compose(values, drawn, pixels)
        uncovered = _uncovered([buffer for _, _, buffer in layers])
        if uncovered is not None:
            pixels[uncovered] = 0
        return tuple(drawn)

    def _with_limits(self, channel: ChannelSettings, layer: Layer, buffer: LayerBuffer) -> ChannelSettings:
        """Fill in limits. They are chosen anew until a picture without gaps was there to choose them from."""
        if channel.limits is not None:
            return channel
        known = self._limits.get(_limits_id(layer))
        if known is None or not known[1]:
            limits = _choose_limits(channel, layer, buffer)
            known = limits, buffer.covered is None
            self._limits[_limits_id(layer)] = known
        return replace(channel, limits=known[0])


def _layer_id(layer: Layer) -> ChannelId:
    if layer.channel is not None:
        return layer.image.uid, "channel", layer.channel.index, layer.channel.field
    return layer.image.uid, "labels", layer.labels.index if layer.labels is not None else 0


def _limits_id(layer: Layer) -> ChannelId:
    channel = layer.channel or ChannelSettings()
    return layer.image.uid, channel.index, channel.field, channel.component


def _choose_limits(channel: ChannelSettings, layer: Layer, buffer: LayerBuffer) -> tuple[float, float]:
    if layer.image.rgb_axis is not None and buffer.values.dtype.kind == "u":
        return data_limits(buffer.values.dtype)
    if channel.component == "phase":
        return -np.pi, np.pi
    values = buffer.values if buffer.covered is None else buffer.values[buffer.covered]
    if layer.image.rgb_axis is not None:
        values = values[..., :3]
    return auto_limits(component(values, channel.component, channel.field))


def _uncovered(buffers: list[LayerBuffer]) -> npt.NDArray[np.bool_] | None:
    """Return where no layer has values; None where every pixel has some."""
    if any(buffer.covered is None for buffer in buffers):
        return None
    masks = [buffer.covered for buffer in buffers if buffer.covered is not None]
    return np.asarray(~np.logical_or.reduce(masks), np.bool_)
