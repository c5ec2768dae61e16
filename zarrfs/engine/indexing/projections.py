"""A plain selection and a chunk grid -> which chunks, where in each, and where in the output. Pure arithmetic.

Kept apart throughout: ``coords`` is which chunk, ``region`` the box in that chunk, ``local`` what to take of the box
(None: all of it), ``target`` where that goes in the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from zarrfs.engine.codecs.base import Region
from zarrfs.engine.indexing.selections import CoordinateSelection, Indices, OrthogonalSelection, Span

__all__ = [
    "Axis",
    "ChunkProjection",
    "IrregularAxis",
    "RegularAxis",
    "chunk_projections",
    "count_chunks",
    "flat_boxes",
]


class Axis(Protocol):
    """How one dimension is cut into chunks."""

    @property
    def length(self) -> int:
        """The number of indices."""

    def locate(self, indices: Indices) -> Indices:
        """Return the chunk that holds each index."""

    def find(self, index: int) -> int:
        """Return the chunk that holds the index."""

    def begin(self, chunk: int) -> int:
        """Return the first index of the chunk."""

    def size(self, chunk: int) -> int:
        """Return the length of the chunk in this dimension, what overhangs the array included."""


class RegularAxis(NamedTuple):
    """Chunks of one length."""

    length: int
    chunk: int

    def locate(self, indices: Indices) -> Indices:
        return indices // self.chunk

    def find(self, index: int) -> int:
        return index // self.chunk

    def begin(self, chunk: int) -> int:
        return chunk * self.chunk

    def size(self, chunk: int) -> int:
        return self.chunk


class IrregularAxis(NamedTuple):
    """Chunks of any lengths; ``edges`` are their first indices, with the end of the last one last."""

    length: int
    edges: np.ndarray[Any, np.dtype[np.int64]]

    def locate(self, indices: Indices) -> Indices:
        return np.searchsorted(self.edges, indices, "right") - 1

    def find(self, index: int) -> int:
        return int(np.searchsorted(self.edges, index, "right")) - 1

    def begin(self, chunk: int) -> int:
        return int(self.edges[chunk])

    def size(self, chunk: int) -> int:
        return int(self.edges[chunk + 1] - self.edges[chunk])


class ChunkProjection(NamedTuple):
    """What a selection wants of one chunk.

    Attributes:
        coords: the chunk's place in the grid.
        region: the box of the chunk that holds all that is wanted.
        local: what of the box is wanted, as an index into it; None for all.
        target: where that goes, as an index into the output.
        whole: whether the box is all of the chunk that lies in the array.
    """

    coords: tuple[int, ...]
    region: Region
    local: tuple[Any, ...] | None
    target: Any
    whole: bool


class _Piece(NamedTuple):
    """One dimension of a ChunkProjection. ``whole`` as there."""

    chunk: int
    region: slice
    local: slice | Indices | None
    target: slice | Indices
    whole: bool


def chunk_projections(
    selection: OrthogonalSelection | CoordinateSelection, axes: Sequence[Axis]
) -> Iterator[ChunkProjection]:
    """Yield what the selection wants of each chunk it touches, in C order of the chunks."""
    if isinstance(selection, CoordinateSelection):
        return _point_parts(selection, axes)
    return _outer_parts([_pieces(s, axis) for s, axis in zip(selection.selectors, axes, strict=True)])


def count_chunks(selection: OrthogonalSelection | CoordinateSelection, axes: Sequence[Axis]) -> int:
    """Return at most how many chunks the selection touches, without walking them."""
    if isinstance(selection, CoordinateSelection):
        return len(selection.points[0]) if selection.points else 1
    counts = []
    for selector, axis in zip(selection.selectors, axes, strict=True):
        if isinstance(selector, Span):
            chunks = axis.find(selector.last) - axis.find(selector.start) + 1 if selector.count else 0
            counts.append(min(chunks, selector.count))
        else:
            counts.append(len(selector))
    return prod(counts)


def _outer_parts(pieces: Sequence[Sequence[_Piece]]) -> Iterator[ChunkProjection]:
    if not pieces:
        # An index of () would give a scalar and not a view of the one element.
        yield ChunkProjection((), (), None, (Ellipsis,), True)
        return
    plain = all(piece.local is None for axis in pieces for piece in axis)
    if plain:
        for parts in product(*pieces):
            coords, region, _, target, whole = zip(*parts, strict=True)
            yield ChunkProjection(coords, region, None, target, all(whole))
        return
    for parts in product(*pieces):
        coords, region, local, target, whole = zip(*parts, strict=True)
        yield ChunkProjection(
            coords,
            region,
            _combine([slice(None) if part is None else part for part in local], region),
            _combine(list(target), None),
            all(whole) and all(part is None for part in local),
        )


def _combine(parts: list[Any], region: Region | None) -> tuple[Any, ...]:
    """Make an index of slices and index arrays that means their product (as ``np.ix_``)."""
    arrays = sum(isinstance(part, np.ndarray) for part in parts)
    if arrays == 0 or (arrays == 1 and len(parts) == 1):
        return tuple(parts)
    if arrays == 1:
        return tuple(parts)
    expanded = []
    for axis, part in enumerate(parts):
        if isinstance(part, slice):
            if region is not None:
                part = np.arange(*part.indices(region[axis].stop - region[axis].start))
            else:
                part = np.arange(part.start, part.stop)
        expanded.append(part)
    return np.ix_(*expanded)


def _pieces(selector: Span | Indices, axis: Axis) -> list[_Piece]:
    if isinstance(selector, Span):
        if selector.count == 0:
            return []
        return _unit_pieces(selector, axis) if selector.step == 1 else _step_pieces(selector, axis)
    return _index_pieces(selector, axis)


def _unit_pieces(span: Span, axis: Axis) -> list[_Piece]:
    start, stop = span.start, span.start + span.count
    pieces = []
    chunk = axis.find(start)
    position = start
    while position < stop:
        begin = axis.begin(chunk)
        end = min(begin + axis.size(chunk), axis.length)
        high = min(end, stop)
        if high > position:
            region = slice(position - begin, high - begin, 1)
            target = slice(position - start, high - start, 1)
            pieces.append(_Piece(chunk, region, None, target, position == begin and high == end))
            position = high
        chunk += 1
    return pieces


def _step_pieces(span: Span, axis: Axis) -> list[_Piece]:
    start, step, count = span
    pieces = []
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
        pieces.append(_Piece(chunk, slice(low, high, 1), local, slice(done, done + inside, 1), whole))
        done += inside
    return pieces


def _index_pieces(indices: Indices, axis: Axis) -> list[_Piece]:
    if not len(indices):
        return []
    chunks = axis.locate(indices)
    order = None
    if (np.diff(chunks) < 0).any():
        order = np.argsort(chunks, kind="stable")
        chunks = chunks[order]
        indices = indices[order]
    edges = [0, *(np.nonzero(np.diff(chunks))[0] + 1).tolist(), len(chunks)]
    pieces = []
    for low, high in pairwise(edges):
        chunk = int(chunks[low])
        inside = indices[low:high] - axis.begin(chunk)
        first, last = int(inside.min()), int(inside.max())
        target = slice(low, high, 1) if order is None else order[low:high]
        pieces.append(_Piece(chunk, slice(first, last + 1, 1), inside - first, target, False))
    return pieces


def _point_parts(selection: CoordinateSelection, axes: Sequence[Axis]) -> Iterator[ChunkProjection]:
    """Group points by the chunk they lie in. ``target`` indexes the flat list of points."""
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


def flat_boxes(start: int, stop: int, shape: Sequence[int]) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Cut the range ``start`` to ``stop`` of the elements in C order into boxes, each contiguous in that order.

    Yields (flat position of the box's first element, box as slices). There are at most two per dimension.
    """
    if start >= stop:
        return
    if not shape:
        yield start, ()
        return
    inner = prod(shape[1:])
    if inner == 0:
        return
    first, first_rest = divmod(start, inner)
    last, last_rest = divmod(stop, inner)
    rest = shape[1:]
    if first == last:
        for position, box in flat_boxes(first_rest, last_rest, rest):
            yield first * inner + position, (slice(first, first + 1), *box)
        return
    if first_rest:
        for position, box in flat_boxes(first_rest, inner, rest):
            yield first * inner + position, (slice(first, first + 1), *box)
        first += 1
    if last > first:
        yield first * inner, (slice(first, last), *(slice(0, length) for length in rest))
    if last_rest:
        for position, box in flat_boxes(0, last_rest, rest):
            yield last * inner + position, (slice(last, last + 1), *box)
