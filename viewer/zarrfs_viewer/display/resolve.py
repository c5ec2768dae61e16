"""From intent, image and window to one frozen display state: which level, which planes, which tiles. Pure.

Nothing is read here. The pipeline asks again whenever intent or window change, and compares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from zarrfs_viewer.display.levels import (
    FrameGrid,
    choose_level,
    frame_grid,
    levels_in_use,
    pixel_aspect,
    visible_spans,
)
from zarrfs_viewer.display.overlay import level_map, translate_intent
from zarrfs_viewer.display.prefetch import next_positions
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, Rank, Slab, TileKey, TileRequest, request_order
from zarrfs_viewer.state.view_state import ChannelSettings, LabelsSettings, ViewIntent, Viewport

__all__ = [
    "DisplayState",
    "FrameGrid",
    "Layer",
    "choose_level",
    "pixel_aspect",
    "plane_key",
    "resolve",
]

PREFETCH_PIXELS = 1 << 24
"""No more than so many pixels are fetched ahead (a whole slide without a pyramid is too much)."""


@dataclass(frozen=True)
class Layer:
    """One thing drawn: a channel of the image, or a labels overlay.

    ``planes`` are its planes from the coarsest level in use to the target level (the last); each names level
    and slice through that level's own physical transform. Exactly one of ``channel`` and ``labels`` is set.
    """

    image: Image
    planes: tuple[PlaneKey, ...]
    channel: ChannelSettings | None = None
    labels: LabelsSettings | None = None


@dataclass(frozen=True)
class DisplayState:
    """What is to be on the screen. ``tiles`` (wanted now) and ``prefetch`` are in request order.

    ``level`` is the target level of ``image``, the image in front.
    """

    intent: ViewIntent
    viewport: Viewport
    image: Image
    level: int
    grid: FrameGrid
    layers: tuple[Layer, ...]
    tiles: tuple[TileRequest, ...]
    prefetch: tuple[TileRequest, ...] = ()

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that requests may name."""
        return tuple({layer.image.uid: layer.image for layer in self.layers}.values())


def plane_key(image: Image, level: int, intent: ViewIntent, channel: int = 0) -> PlaneKey:
    """Return the plane of one level that an intent shows, its slice found through the level's physical
    transform.

    The intent is that of ``image`` itself.
    """
    index = []
    for axis, position in enumerate(intent.position):
        if axis in intent.displayed:
            index.append(0)
        elif axis == image.rgb_axis:
            index.append(ALL)
        elif axis == image.channel_axis:
            index.append(min(channel, image.shape[axis] - 1))
        else:
            index.append(image.level_index(level, axis, position))
    return PlaneKey(image.uid, level, intent.displayed, tuple(index), _slab(image, level, intent))


def _slab(image: Image, level: int, intent: ViewIntent) -> Slab | None:
    projection = intent.projection
    if projection is None or projection.axis in intent.displayed or projection.thickness <= 1:
        return None
    axis = projection.axis
    if axis in (image.channel_axis, image.rgb_axis):
        return None
    middle, half = intent.position[axis], (projection.thickness - 1) / 2
    first, last = sorted(
        (image.level_index(level, axis, middle - half), image.level_index(level, axis, middle + half))
    )
    return Slab(axis, first, last + 1, projection.mode)


def resolve(
    intent: ViewIntent,
    image: Image,
    viewport: Viewport,
    overlays: Sequence[Image] = (),
    previous: DisplayState | None = None,
) -> DisplayState:
    """Return what to draw and fetch.

    ``overlays`` are the label images that ``intent.labels[].index`` counts; a label image in front comes
    before them as its own first overlay. ``previous`` gives hysteresis of the level and, where a slider
    moved, the direction to prefetch.
    """
    intent = _clipped(intent, image)
    before = previous
    if before is not None and (before.image is not image or before.intent.displayed != intent.displayed):
        before = None
    if intent.level_lock is not None:
        level = min(max(intent.level_lock, 0), len(image.levels) - 1)
    else:
        level = choose_level(image, viewport, intent.displayed, before.level if before else None)
    overlays = (image, *overlays) if image.kind == "labels" else tuple(overlays)
    state = DisplayState(
        intent=intent,
        viewport=viewport,
        image=image,
        level=level,
        grid=frame_grid(image, level, intent, viewport),
        layers=tuple(_layers(intent, image, overlays, level, viewport)),
        tiles=(),
    )
    state = replace(state, tiles=_requests(state, [p for layer in state.layers for p in layer.planes]))
    return replace(state, prefetch=_prefetch(state, overlays, before.intent if before else None))


def _clipped(intent: ViewIntent, image: Image) -> ViewIntent:
    """Return the intent with every position within the image."""
    position = tuple(
        min(max(value, 0.0), float(length - 1)) if math.isfinite(value) else 0.0
        for value, length in zip(intent.position, image.shape, strict=True)
    )
    return intent if position == intent.position else replace(intent, position=position)


def _layers(
    intent: ViewIntent, image: Image, overlays: Sequence[Image], level: int, viewport: Viewport
) -> Iterator[Layer]:
    levels = levels_in_use(image, level, intent.displayed)
    for channel in intent.shown_channels:
        planes = tuple(plane_key(image, number, intent, channel.index) for number in levels)
        yield Layer(image, planes, channel=channel)
    for labels in intent.labels:
        if not labels.visible or labels.opacity <= 0 or not 0 <= labels.index < len(overlays):
            continue
        overlay = overlays[labels.index]
        theirs = translate_intent(intent, image, overlay)
        if theirs is None:
            continue
        chosen = level if overlay is image else _overlay_level(image, overlay, intent, theirs, viewport)
        used = levels_in_use(overlay, chosen, theirs.displayed)
        yield Layer(overlay, tuple(plane_key(overlay, number, theirs) for number in used), labels=labels)


def _overlay_level(
    image: Image, overlay: Image, intent: ViewIntent, theirs: ViewIntent, viewport: Viewport
) -> int:
    """Return the level of an overlay for a viewport given in the data coordinates of the image below it."""
    factors = [
        abs(level_map(image, overlay, 0, axis, own)[0])
        for axis, own in zip(intent.displayed, theirs.displayed, strict=True)
    ]
    zoom = viewport.zoom / factors[1]
    aspect = viewport.aspect * factors[1] / factors[0]
    return choose_level(overlay, replace(viewport, zoom=zoom, aspect=aspect), theirs.displayed)


def _requests(
    state: DisplayState, planes: Sequence[PlaneKey], rank: Rank = Rank.VISIBLE
) -> tuple[TileRequest, ...]:
    """Return a request for each tile of the planes that the viewport shows, each tile once, in request
    order.
    """
    images = {layer.image.uid: layer.image for layer in state.layers}
    found = [
        TileRequest(TileKey(plane, row, column), rank, distance)
        for plane in dict.fromkeys(planes)
        for row, column, distance in _visible_tiles(state, images[plane.image], plane)
    ]
    return tuple(request_order(found))


def _visible_tiles(state: DisplayState, image: Image, plane: PlaneKey) -> Iterator[tuple[int, int, float]]:
    """Yield (row, column, distance from the centre in device pixels) of the tiles in view."""
    grid = image.grid(plane.level, plane.displayed)
    maps, ends = [], []
    spans = visible_spans(state.intent.displayed, state.viewport)
    for (front_axis, zoom, low, high), axis in zip(spans, plane.displayed, strict=True):
        factor, offset = level_map(state.image, image, plane.level, front_axis, axis)
        maps.append((factor, offset, zoom))
        ends.append(sorted((factor * low + offset, factor * high + offset)))
    (top, bottom), (left, right) = ends
    for row, column in grid.within(top, left, bottom, right):
        squares = 0.0
        for part, center, (factor, offset, zoom) in zip(
            grid.rect(row, column), state.viewport.center, maps, strict=True
        ):
            middle = ((part.start + part.stop - 1) / 2 - offset) / factor
            squares += ((middle - center) * zoom) ** 2
        yield row, column, math.sqrt(squares)


def _prefetch(
    state: DisplayState, overlays: Sequence[Image], before: ViewIntent | None
) -> tuple[TileRequest, ...]:
    """Return what to fetch when all that is visible is there, the next slices in turn."""
    found: dict[TileKey, TileRequest] = {}
    visible = {request.key for request in state.tiles}
    pixels = 0
    for step, position in enumerate(next_positions(state.image, state.level, state.intent, before)):
        intent = replace(state.intent, position=position)
        layers = _layers(intent, state.image, overlays, state.level, state.viewport)
        for request in _requests(state, [layer.planes[-1] for layer in layers], Rank.PREFETCH):
            if request.key in visible or request.key in found:
                continue
            # The nearer slice first, whatever the distance within the window.
            found[request.key] = replace(request, distance=request.distance + step * 1e6)
            pixels += _area(state, request.key)
            if pixels > PREFETCH_PIXELS:
                return tuple(request_order(list(found.values())))
    return tuple(request_order(list(found.values())))


def _area(state: DisplayState, key: TileKey) -> int:
    image = next(layer.image for layer in state.layers if layer.image.uid == key.plane.image)
    rows, columns = image.grid(key.plane.level, key.plane.displayed).rect(key.row, key.column)
    height: int = rows.stop - rows.start
    width: int = columns.stop - columns.start
    return height * width
