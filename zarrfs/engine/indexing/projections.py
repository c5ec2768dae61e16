"""Projection of a normalized selection onto the chunks of an array. Pure functions; no input or output.

Terms: the chunk coordinates (``chunk_coords``) identify a chunk in the grid. The chunk region is a box within the
chunk. The local selection is an index into that box, or None for the whole box. The target is the index into the
output buffer that receives the selected elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.codecs.base import Region
from zarrfs.engine.indexing.axes import Axis, RegularAxis
from zarrfs.engine.indexing.normalized import CoordinateSelection, Indices, OrthogonalSelection, Span

__all__ = [
    "ChunkProjection",
    "SpanProjections",
    "chunk_projections",
    "count_chunks",
    "select_projections",
    "span_projections",
]


class ChunkProjection(NamedTuple):
    """The part of a selection that lies in one chunk.

    Attributes:
        chunk_coords: the coordinates of the chunk in the grid.
        chunk_region: the bounding box of the selected elements, relative to the chunk.
        local: the selected elements as an index into the box; None for the whole box.
        target: the position of the selected elements as an index into the output buffer.
        whole: whether all elements of the chunk that lie in the array are selected.
    """

    chunk_coords: tuple[int, ...]
    chunk_region: Region
    local: tuple[Any, ...] | None
    target: Any
    whole: bool


class DimensionProjection(NamedTuple):
    """One dimension of a ChunkProjection. ``chunk`` is the number of the chunk along the dimension."""

    chunk: int
    region: slice
    local: slice | Indices | None
    target: slice | Indices
    whole: bool


def chunk_projections(
    selection: OrthogonalSelection | CoordinateSelection, axes: Sequence[Axis]
) -> Iterator[ChunkProjection]:
    """Yield the projection of the selection onto each chunk that it intersects, in C order of the chunks."""
    if isinstance(selection, CoordinateSelection):
        return _coordinate_projections(selection, axes)
    return _orthogonal_projections(
        [_dimension_projections(s, axis) for s, axis in zip(selection.selectors, axes, strict=True)]
    )


def select_projections(
    selection: OrthogonalSelection, axes: Sequence[Axis], positions: Iterable[int]
) -> Iterator[ChunkProjection]:
    """Yield the projections of ``chunk_projections`` at the given positions."""
    dimensions = [_dimension_projections(s, axis) for s, axis in zip(selection.selectors, axes, strict=True)]
    for position in positions:
        parts = []
        for dimension in reversed(dimensions):
            position, number = divmod(position, len(dimension))
            parts.append([dimension[number]])
        yield from _orthogonal_projections(parts[::-1])


def count_chunks(selection: OrthogonalSelection | CoordinateSelection, axes: Sequence[Axis]) -> int:
    """Return an upper bound of the number of chunks that the selection intersects, without iterating over them."""
    if isinstance(selection, CoordinateSelection):
        return len(selection.points[0]) if selection.points else 1
    counts = []
    for selector, axis in zip(selection.selectors, axes, strict=True):
        if isinstance(selector, Span):
            if selector.count <= 1:
                counts.append(selector.count)
                continue
            chunks = axis.find(selector.last) - axis.find(selector.start) + 1
            counts.append(min(chunks, selector.count))
        else:
            counts.append(len(selector))
    return prod(counts)


def _orthogonal_projections(dimensions: Sequence[Sequence[DimensionProjection]]) -> Iterator[ChunkProjection]:
    if not dimensions:
        # An index of () would give a scalar and not a view of the one element.
        yield ChunkProjection((), (), None, (Ellipsis,), True)
        return
    has_local = any(projection.local is not None for axis in dimensions for projection in axis)
    if not has_local:
        for projections in product(*dimensions):
            coords, region, _, target, whole = zip(*projections, strict=True)
            yield ChunkProjection(coords, region, None, target, all(whole))
        return
    for projections in product(*dimensions):
        coords, region, local, target, whole = zip(*projections, strict=True)
        yield ChunkProjection(
            coords,
            region,
            _product_index([slice(None) if index is None else index for index in local], region),
            _product_index(list(target), None),
            all(whole) and all(index is None for index in local),
        )


def _product_index(indices: list[Any], region: Region | None) -> tuple[Any, ...]:
    """Return an index that selects the product of slices and index arrays, as ``np.ix_`` does.

    ``region`` is the box that is indexed. It may be None if all slices have explicit bounds.
    """
    if sum(isinstance(index, np.ndarray) for index in indices) <= 1:
        return tuple(indices)
    expanded = []
    for axis, index in enumerate(indices):
        if isinstance(index, slice):
            if region is not None:
                index = np.arange(*index.indices(region[axis].stop - region[axis].start))
            else:
                index = np.arange(index.start, index.stop)
        expanded.append(index)
    return np.ix_(*expanded)


def _dimension_projections(selector: Span | Indices, axis: Axis) -> list[DimensionProjection]:
    if isinstance(selector, Span):
        if selector.count == 0:
            return []
        return _project_range(selector, axis) if selector.step == 1 else _project_strided(selector, axis)
    return _project_indices(selector, axis)


def _project_range(span: Span, axis: Axis) -> list[DimensionProjection]:
    start, stop = span.start, span.start + span.count
    projections = []
    chunk = axis.find(start)
    if span.count == 1:
        begin = axis.begin(chunk)
        is_whole = start == begin and (axis.size(chunk) == 1 or start + 1 == axis.length)
        region = slice(start - begin, start - begin + 1, 1)
        return [DimensionProjection(chunk, region, None, slice(0, 1, 1), is_whole)]
    position = start
    while position < stop:
        begin = axis.begin(chunk)
        end = min(begin + axis.size(chunk), axis.length)
        high = min(end, stop)
        if high > position:
            region = slice(position - begin, high - begin, 1)
            target = slice(position - start, high - start, 1)
            whole = position == begin and high == end
            projections.append(DimensionProjection(chunk, region, None, target, whole))
            position = high
        chunk += 1
    return projections


class SpanProjections(NamedTuple):
    """The projections of a Span onto the chunks of one dimension, as parallel lists: the chunk, the first selected
    element in the chunk, the number of selected elements, and the position of the first one in the output.
    """

    chunks: list[int]
    starts: list[int]
    counts: list[int]
    targets: list[int]


def span_projections(span: Span, axis: RegularAxis) -> SpanProjections:
    """Return the projections of a Span that is not empty, in the order of ``chunk_projections``."""
    chunk = axis.chunk
    if span.step > 1:
        strided = _project_strided(span, axis)
        targets = [part.target.start for part in strided if isinstance(part.target, slice)]
        return SpanProjections(
            [part.chunk for part in strided],
            [part.region.start for part in strided],
            [after - target for target, after in pairwise([*targets, span.count])],
            targets,
        )
    first, last = span.start // chunk, span.last // chunk
    offset = span.start - first * chunk
    if first == last:
        return SpanProjections([first], [offset], [span.count], [0])
    targets = [0, *range(chunk - offset, span.count, chunk)]
    return SpanProjections(
        list(range(first, last + 1)),
        [offset] + [0] * (last - first),
        [chunk - offset] + [chunk] * (last - first - 1) + [span.count - targets[-1]],
        targets,
    )


def _project_strided(span: Span, axis: Axis) -> list[DimensionProjection]:
    start, step, count = span
    projections = []
    done = 0
    while done < count:
        index = start + done * step
        chunk = axis.find(index)
        begin = axis.begin(chunk)
        inside = min(count - done, -(-(begin + axis.size(chunk) - index) // step))
        low = index - begin
        high = low + (inside - 1) * step + 1
        local = None if inside == 1 else slice(None, None, step)
        whole = inside == 1 and low == 0 and high == min(axis.size(chunk), axis.length - begin)
        target = slice(done, done + inside, 1)
        projections.append(DimensionProjection(chunk, slice(low, high, 1), local, target, whole))
        done += inside
    return projections


def _project_indices(indices: Indices, axis: Axis) -> list[DimensionProjection]:
    if not len(indices):
        return []
    chunks = axis.locate(indices)
    order = None
    if (np.diff(chunks) < 0).any():
        order = np.argsort(chunks, kind="stable")
        chunks = chunks[order]
        indices = indices[order]
    edges = [0, *(np.nonzero(np.diff(chunks))[0] + 1).tolist(), len(chunks)]
    projections = []
    for low, high in pairwise(edges):
        chunk = int(chunks[low])
        inside = indices[low:high] - axis.begin(chunk)
        first, last = int(inside.min()), int(inside.max())
        target = slice(low, high, 1) if order is None else order[low:high]
        region = slice(first, last + 1, 1)
        projections.append(DimensionProjection(chunk, region, inside - first, target, False))
    return projections


def _coordinate_projections(
    selection: CoordinateSelection, axes: Sequence[Axis]
) -> Iterator[ChunkProjection]:
    """Group points by their chunk. ``target`` is an index into the flat list of points."""
    points = selection.points
    count = prod(selection.shape)
    if count == 0:
        return
    if not points:
        yield ChunkProjection((), (), (), slice(0, count, 1), False)
        return
    chunks = [axis.locate(p) for p, axis in zip(points, axes, strict=True)]
    order = np.lexsort(chunks[::-1])
    sorted_chunks = np.stack([c[order] for c in chunks])
    changes = (np.diff(sorted_chunks, axis=1) != 0).any(axis=0)
    edges = [0, *(np.nonzero(changes)[0] + 1).tolist(), count]
    for low, high in pairwise(edges):
        members = order[low:high]
        coords = tuple(sorted_chunks[:, low].tolist())
        region = []
        local = []
        for p, axis, chunk in zip(points, axes, coords, strict=True):
            inside = p[members] - axis.begin(chunk)
            first, last = int(inside.min()), int(inside.max())
            region.append(slice(first, last + 1, 1))
            local.append(inside - first)
        yield ChunkProjection(coords, tuple(region), tuple(local), members, False)
