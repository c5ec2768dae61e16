"""Projection of a normalized selection onto the chunks of an array. Pure functions; no input or output.

Terms: the chunk coordinates (``chunk_coords``) identify a chunk in the grid. The chunk region is a box within the
chunk. The local selection is an index into that box, or None for the whole box. The target is the index into the
output buffer that receives the selected elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product, repeat
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.codecs.base import Region
from zarrfs.engine.indexing.axes import Axis, RegularAxis
from zarrfs.engine.indexing.normalized import CoordinateSelection, Indices, OrthogonalSelection, Span

__all__ = [
    "ChunkProjection",
    "ChunkProjections",
    "SpanProjections",
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


class SpanProjections(NamedTuple):
    """The projections of a Span onto the chunks of one dimension, as parallel lists: the chunk, the first selected
    element in the chunk, the number of selected elements, and the position of the first one in the output.
    """

    chunks: Sequence[int]
    starts: Sequence[int]
    counts: Sequence[int]
    targets: Sequence[int]
    step: int


class ChunkProjections:
    """The projections of a selection onto the chunks that it intersects, in C order of the chunks.

    The arithmetic of the chunk grid is done once, when the object is created.

    Attributes:
        count: the number of chunks; for a list of points an upper bound.
        selectors: the selectors of each dimension; empty for a list of points.
        spans: the projections of each dimension if all selectors are Spans, else None.
    """

    __slots__ = ("_axes", "_dimensions", "_points", "count", "selectors", "spans")

    def __init__(self, selection: OrthogonalSelection | CoordinateSelection, axes: Sequence[Axis]) -> None:
        self._axes = axes
        self._dimensions: list[list[DimensionProjection]] = []
        self._points: list[ChunkProjection] | CoordinateSelection | None = None
        self.spans: list[SpanProjections] | None = None
        self.selectors: Sequence[Span | Indices] = ()
        if isinstance(selection, CoordinateSelection):
            self._points = selection
            self.count = len(selection.points[0]) if selection.points else 1
            return
        self.selectors = selectors = selection.selectors
        spans = [
            span_projections(s, axis) for s, axis in zip(selectors, axes, strict=True) if isinstance(s, Span)
        ]
        if len(spans) == len(selectors):
            self.spans = spans
            self.count = prod([len(span.chunks) for span in spans])
            return
        self._dimensions = [
            _dimension_projections(span_projections(s, axis), axis)
            if isinstance(s, Span)
            else _project_indices(s, axis)
            for s, axis in zip(selectors, axes, strict=True)
        ]
        self.count = prod(map(len, self._dimensions))

    def __iter__(self) -> Iterator[ChunkProjection]:
        if self._points is None:
            return _orthogonal_projections(self._parts())
        if isinstance(self._points, CoordinateSelection):
            self._points = list(_coordinate_projections(self._points, self._axes))
        return iter(self._points)

    def _parts(self) -> list[list[DimensionProjection]]:
        if self.spans is not None and not self._dimensions:
            self._dimensions = [
                _dimension_projections(span, axis) for span, axis in zip(self.spans, self._axes, strict=True)
            ]
        return self._dimensions

    def coords(self) -> list[tuple[int, ...]]:
        """Return the coordinates of the chunks."""
        if self.spans is not None:
            return list(product(*[span.chunks for span in self.spans]))
        return [projection.chunk_coords for projection in self]

    def at(self, positions: Iterable[int]) -> Iterator[ChunkProjection]:
        """Yield the projections at the given positions. The selection is a product."""
        dimensions = self._parts()
        for position in positions:
            parts = []
            for dimension in reversed(dimensions):
                position, number = divmod(position, len(dimension))
                parts.append([dimension[number]])
            yield from _orthogonal_projections(parts[::-1])


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


def span_projections(span: Span, axis: Axis) -> SpanProjections:
    """Return the projections of a Span, in the order of the chunks."""
    start, step, count = span
    if count == 0:
        return SpanProjections((), (), (), (), step)
    first = axis.find(start)
    offset = start - axis.begin(first)
    size = axis.size(first)
    if offset + (count - 1) * step < size:
        return SpanProjections((first,), (offset,), (count,), (0,), step)
    if step == 1 and isinstance(axis, RegularAxis):
        last = (start + count - 1) // size
        targets = [0, *range(size - offset, count, size)]
        counts = [size - offset, *repeat(size, last - first - 1), count - targets[-1]]
        return SpanProjections(range(first, last + 1), [offset, *repeat(0, last - first)], counts, targets, 1)
    found: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    done = 0
    while done < count:
        index = start + done * step
        chunk = axis.find(index)
        low = index - axis.begin(chunk)
        inside = min(count - done, -(-(axis.size(chunk) - low) // step))
        for numbers, number in zip(found, (chunk, low, inside, done), strict=True):
            numbers.append(number)
        done += inside
    return SpanProjections(*found, step)


def _dimension_projections(span: SpanProjections, axis: Axis) -> list[DimensionProjection]:
    step = span.step
    projections = []
    for chunk, start, count, target in zip(*span[:4], strict=True):
        local = None if step == 1 or count == 1 else slice(None, None, step)
        whole = not start and (count == axis.size(chunk) or axis.begin(chunk) + count == axis.length)
        region = slice(start, start + (count - 1) * step + 1, 1)
        projections.append(DimensionProjection(chunk, region, local, slice(target, target + count, 1), whole))
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
