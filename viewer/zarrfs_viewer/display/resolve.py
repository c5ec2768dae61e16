"""Resolution of settings, image and viewport to one frozen display state: level, planes and tiles.

Pure functions; nothing is read. The pipeline calls ``resolve`` whenever the settings or the viewport changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from zarrfs_viewer.display.levels import (
    FrameGrid,
    choose_level,
    frame_grid,
    levels_in_use,
    pixel_aspect,
    sampling_steps,
    strides,
    visible_spans,
)
from zarrfs_viewer.display.overlay import level_map, translate_settings
from zarrfs_viewer.display.prefetch import next_positions
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, Rank, Slab, TileKey, TileRequest, request_order
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings, LabelsSettings, Viewport

__all__ = [
    "DisplayState",
    "FrameGrid",
    "Layer",
    "choose_level",
    "clipped",
    "pixel_aspect",
    "plane_key",
    "resolve",
]

MAX_PREFETCH_PIXELS = 1 << 24
"""The limit of prefetched pixels, for large planes without a pyramid."""
MAX_TILES_NBYTES = 64 << 20
"""The default limit of the tiles of one picture. A plane whose visible tiles are larger is sampled."""


@dataclass(frozen=True)
class Layer:
    """One layer of a frame: a channel of the front image, or a label image.

    ``planes`` are the planes to fetch and to draw, from the coarsest level to the target level. ``resident`` are those
    of all coarser levels, from the coarsest: what is in the cache is drawn until the target level is. The slice in each
    level is computed with the physical transform of that level. Exactly one of ``channel`` and ``labels`` is set.
    """

    image: Image
    planes: tuple[PlaneKey, ...]
    channel: ChannelSettings | None = None
    labels: LabelsSettings | None = None
    resident: tuple[PlaneKey, ...] = ()


@dataclass(frozen=True)
class DisplayState:
    """The layers to draw, and the tiles to fetch for them.

    ``image`` is the front image and ``level`` its target level. ``tiles`` are visible; they and ``prefetch`` are
    sorted by priority.
    """

    settings: DisplaySettings
    viewport: Viewport
    image: Image
    level: int
    grid: FrameGrid
    layers: tuple[Layer, ...]
    tiles: tuple[TileRequest, ...]
    prefetch: tuple[TileRequest, ...] = ()

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of all layers, each once."""
        return tuple({layer.image.uid: layer.image for layer in self.layers}.values())

    @property
    def is_sampled(self) -> bool:
        """Whether only a part of the pixels of the front image is read, because all of them would be too many."""
        return any(layer.planes[-1].steps != (1, 1) for layer in self.layers if layer.image is self.image)


def plane_key(image: Image, level: int, settings: DisplaySettings, channel: int = 0) -> PlaneKey:
    """Return the plane of a level at the position of settings, computed with the level's physical transform.

    The settings are in the axes and data coordinates of ``image``.
    """
    indices = []
    for axis, position in enumerate(settings.position):
        if axis in settings.displayed:
            indices.append(0)
        elif axis == image.rgb_axis:
            indices.append(ALL)
        elif axis == image.channel_axis:
            indices.append(min(channel, image.shape[axis] - 1))
        else:
            indices.append(image.level_index(level, axis, position))
    return PlaneKey(image.uid, level, settings.displayed, tuple(indices), _slab(image, level, settings))


def _slab(image: Image, level: int, settings: DisplaySettings) -> Slab | None:
    projection = settings.projection
    if projection is None or projection.axis in settings.displayed or projection.thickness <= 1:
        return None
    axis = projection.axis
    if axis in (image.channel_axis, image.rgb_axis):
        return None
    middle, half = settings.position[axis], (projection.thickness - 1) / 2
    first, last = sorted(
        (image.level_index(level, axis, middle - half), image.level_index(level, axis, middle + half))
    )
    return Slab(axis, first, last + 1, projection.mode)


def resolve(
    settings: DisplaySettings,
    image: Image,
    viewport: Viewport,
    overlays: Sequence[Image] = (),
    previous: DisplayState | None = None,
    chunk_budget: int | None = None,
    tile_budget: int = MAX_TILES_NBYTES,
) -> DisplayState:
    """Return the display state: what to draw and what to fetch.

    ``settings.labels[].index`` is an index in ``overlays``; if the front image is a label image, it is inserted as
    the first overlay. ``previous`` is used for the hysteresis of the level and for the direction of prefetching.
    ``chunk_budget`` is the limit of cached chunks in bytes, None without a limit. The chunks of the visible tiles are
    cached if they fit, and the next chunks are prefetched if they fit in addition.
    ``tile_budget`` is the limit of the visible tiles in bytes. A layer that needs more than its part, because there is
    no coarser level, is read with steps, so that its tiles contain little more than the pixels that are drawn.
    """
    settings = clipped(settings, image)
    if previous is not None and (
        previous.image is not image or previous.settings.displayed != settings.displayed
    ):
        previous = None
    if settings.level_lock is not None:
        level = min(max(settings.level_lock, 0), len(image.levels) - 1)
    else:
        level = choose_level(image, viewport, settings.displayed, previous.level if previous else None)
    overlays = (image, *overlays) if image.kind == "labels" else tuple(overlays)
    layers = tuple(_layers(settings, image, overlays, level, viewport))
    layers = tuple(
        _sampled(layer, settings, image, viewport, tile_budget / max(1, len(layers))) for layer in layers
    )
    steps = next((layer.planes[-1].steps for layer in layers if layer.image is image), (1, 1))
    state = DisplayState(
        settings=settings,
        viewport=viewport,
        image=image,
        level=level,
        grid=frame_grid(image, level, settings, viewport, steps),
        layers=layers,
        tiles=(),
    )
    state = replace(state, tiles=_requests(state, [p for layer in state.layers for p in layer.planes]))
    nbytes = _visible_chunk_nbytes(state)
    if chunk_budget is None or nbytes <= chunk_budget:
        state = replace(state, tiles=tuple(replace(tile, keeps_chunks=True) for tile in state.tiles))
    fits_twice = chunk_budget is None or 2 * nbytes <= chunk_budget
    before = previous.settings if previous else None
    positions = next_positions(image, level, settings, before, next_chunk=fits_twice)
    return replace(state, prefetch=_prefetch(state, overlays, positions))


def clipped(settings: DisplaySettings, image: Image) -> DisplaySettings:
    """Return the settings with all positions clipped to the image."""
    position = tuple(
        min(max(value, 0.0), float(length - 1)) if math.isfinite(value) else 0.0
        for value, length in zip(settings.position, image.shape, strict=True)
    )
    return settings if position == settings.position else replace(settings, position=position)


def _layers(
    settings: DisplaySettings, image: Image, overlays: Sequence[Image], level: int, viewport: Viewport
) -> Iterator[Layer]:
    for channel in settings.shown_channels:
        planes, resident = _planes(image, level, settings, channel.index)
        yield Layer(image, planes, channel=channel, resident=resident)
    for labels in settings.labels:
        if not labels.visible or labels.opacity <= 0 or not 0 <= labels.index < len(overlays):
            continue
        overlay = overlays[labels.index]
        translated = translate_settings(settings, image, overlay)
        if translated is None:
            continue
        target = level if overlay is image else _overlay_level(image, overlay, settings, translated, viewport)
        planes, resident = _planes(overlay, target, translated)
        yield Layer(overlay, planes, labels=labels, resident=resident)


def _planes(
    image: Image, level: int, settings: DisplaySettings, channel: int = 0
) -> tuple[tuple[PlaneKey, ...], tuple[PlaneKey, ...]]:
    """Return ``planes`` and ``resident`` of the layer of a channel."""
    used = levels_in_use(image, level, settings.displayed)
    coarser = range(len(image.levels) - 1, level, -1)
    keys = {number: plane_key(image, number, settings, channel) for number in (*used, *coarser)}
    return tuple(keys[number] for number in used), tuple(keys[number] for number in coarser)


def _overlay_level(
    image: Image, overlay: Image, settings: DisplaySettings, translated: DisplaySettings, viewport: Viewport
) -> int:
    """Return the level of an overlay for a viewport in the data coordinates of the front image."""
    row_zoom, zoom = _zooms(image, overlay, settings.displayed, translated.displayed, viewport)
    return choose_level(overlay, replace(viewport, zoom=zoom, aspect=row_zoom / zoom), translated.displayed)


def _zooms(
    image: Image,
    other: Image,
    displayed: tuple[int, int],
    other_displayed: tuple[int, int],
    viewport: Viewport,
) -> tuple[float, float]:
    """Return the device pixels per data pixel of another image, along (rows, columns)."""
    row_zoom, column_zoom = (
        zoom / abs(level_map(image, other, 0, front_axis, axis)[0])
        for zoom, front_axis, axis in zip(viewport.zooms, displayed, other_displayed, strict=True)
    )
    return row_zoom, column_zoom


def _sampled(
    layer: Layer, settings: DisplaySettings, front: Image, viewport: Viewport, max_nbytes: float
) -> Layer:
    """Return the layer with steps in its target plane, if its visible tiles are larger than the limit."""
    image, plane = layer.image, layer.planes[-1]
    ends = []
    for (front_axis, _, low, high), axis in zip(
        visible_spans(settings.displayed, viewport), plane.displayed, strict=True
    ):
        factor, offset = level_map(front, image, plane.level, front_axis, axis)
        ends.append(sorted((factor * low + offset, factor * high + offset)))
    (top, bottom), (left, right) = ends
    pixels = image.grid(plane.level, plane.displayed).pixels_within(top, left, bottom, right)
    if pixels * image.pixel_nbytes <= max_nbytes:
        return layer
    zooms = _zooms(front, image, settings.displayed, plane.displayed, viewport)
    steps = sampling_steps(strides(image, plane.level, plane.displayed, zooms))
    return replace(layer, planes=(*layer.planes[:-1], plane._replace(steps=steps)))


def _requests(
    state: DisplayState, planes: Sequence[PlaneKey], rank: Rank = Rank.VISIBLE
) -> tuple[TileRequest, ...]:
    """Return a request for each visible tile of the planes, without duplicates, sorted by priority."""
    images = {layer.image.uid: layer.image for layer in state.layers}
    requests = [
        TileRequest(TileKey(plane, row, column), rank, distance)
        for plane in dict.fromkeys(planes)
        for row, column, distance in _visible_tiles(state, images[plane.image], plane)
    ]
    return tuple(request_order(requests))


def _visible_tiles(state: DisplayState, image: Image, plane: PlaneKey) -> Iterator[tuple[int, int, float]]:
    """Yield (row, column, distance from the viewport's centre in device pixels) of the tiles that the frame needs."""
    frame, front = state.grid, state.image
    if not all(frame.shape):
        return
    grid = image.grid(plane.level, plane.displayed, plane.steps)
    maps, ends = [], []
    for first, count, stride, front_axis, axis, zoom, step in zip(
        (frame.top, frame.left),
        frame.shape,
        frame.stride,
        state.settings.displayed,
        plane.displayed,
        state.viewport.zooms,
        plane.steps,
        strict=True,
    ):
        factor, offset = level_map(front, image, plane.level, front_axis, axis)
        maps.append((factor, offset, zoom, step))
        data = (
            front.from_level(frame.level, front_axis, edge) for edge in (first, first + (count - 1) * stride)
        )
        # As in ``rendering.sampling``: the pixel of the level, then the sample at or before it.
        ends.append(sorted(math.floor(factor * edge + offset + 0.5 + 1e-9) // step for edge in data))
    (top, bottom), (left, right) = ends
    for row, column in grid.within(top, left, bottom, right):
        squared_distance = 0.0
        for part, center, (factor, offset, zoom, step) in zip(
            grid.rect(row, column), state.viewport.center, maps, strict=True
        ):
            middle = ((part.start + part.stop - 1) / 2 * step - offset) / factor
            squared_distance += ((middle - center) * zoom) ** 2
        yield row, column, math.sqrt(squared_distance)


def _prefetch(
    state: DisplayState, overlays: Sequence[Image], positions: Sequence[tuple[float, ...]]
) -> tuple[TileRequest, ...]:
    """Return the tiles to fetch after the visible ones: those of the coarsest level of the whole plane, so that panning
    and zooming show no empty areas, then those of other positions, in their order and the coarsest level first.
    """
    keeps_chunks = any(request.keeps_chunks for request in state.tiles)
    visible = {request.key for request in state.tiles}
    requests = {key: TileRequest(key, Rank.PREFETCH) for key in _backdrop(state) if key not in visible}
    pixels = 0
    if any(layer.planes[-1].steps != (1, 1) for layer in state.layers):
        # The samples of another plane take as long to read as the whole plane.
        return tuple(requests.values())
    for step, position in enumerate(positions):
        settings = replace(state.settings, position=position)
        layers = _layers(settings, state.image, overlays, state.level, state.viewport)
        planes = [plane for layer in layers for plane in layer.planes]
        for request in _requests(state, planes, Rank.PREFETCH):
            if request.key in visible or request.key in requests:
                continue
            # The order of slices takes precedence over the distance within a slice.
            requests[request.key] = replace(
                request, distance=request.distance + step * 1e6, keeps_chunks=keeps_chunks
            )
            pixels += _area(state, request.key)
            if pixels > MAX_PREFETCH_PIXELS:
                return tuple(request_order(list(requests.values())))
    return tuple(request_order(list(requests.values())))


def _backdrop(state: DisplayState) -> Iterator[TileKey]:
    """Yield the tiles of the whole planes that are drawn until finer tiles arrive."""
    for layer in state.layers:
        for plane in layer.planes[:-1]:
            rows, columns = layer.image.grid(plane.level, plane.displayed).counts
            yield from (TileKey(plane, row, column) for row, column in product(range(rows), range(columns)))


def _visible_chunk_nbytes(state: DisplayState) -> int:
    """Return the decoded size of the chunks of the visible tiles of the target planes."""
    targets = {layer.planes[-1]: layer.image for layer in state.layers}
    nbytes = 0
    for request in state.tiles:
        image = targets.get(request.key.plane)
        if image is not None:
            level = image.levels[request.key.plane.level]
            depth = math.prod(
                1 if axis in request.key.plane.displayed else length
                for axis, length in enumerate(level.chunks)
            )
            area = _area(state, request.key) * math.prod(request.key.plane.steps)
            nbytes += area * depth * image.dtype.itemsize
    return nbytes


def _area(state: DisplayState, key: TileKey) -> int:
    image = next(layer.image for layer in state.layers if layer.image.uid == key.plane.image)
    rows, columns = image.rect(key)
    height: int = rows.stop - rows.start
    width: int = columns.stop - columns.start
    return height * width
