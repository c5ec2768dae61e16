"""Reading planes and pieces of planes from arrays: selection, projection, axes in display order. Blocks.

Knows nothing of images or pyramids, only of one array and a ``PlaneKey``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, Slab
from zarrfs_viewer.images.values import to_display

__all__ = ["Lifted", "SourceArray", "read_plane_region", "uniform_chunks"]

AnyArray = npt.NDArray[Any]


class SourceArray(Protocol):
    """What is needed of an array; ``zarrfs.Array`` has it, and so has a double made of NumPy."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]: ...
    def __getitem__(self, selection: Any, /) -> Any: ...


class Lifted:
    """An array of rank 0 or 1 as one of rank 2: with leading axes of length 1."""

    def __init__(self, array: SourceArray) -> None:
        self.array = array
        self._missing = 2 - len(array.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,) * self._missing + self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        return (1,) * self._missing + uniform_chunks(self.array)

    def __getitem__(self, selection: tuple[Any, ...]) -> AnyArray:
        """Read with one integer or slice per axis."""
        values = np.asarray(self.array[selection[self._missing :]])
        lifted = values.reshape((1,) * self._missing + values.shape)
        return lifted[tuple(slice(None) if isinstance(s, slice) else 0 for s in selection[: self._missing])]


def uniform_chunks(array: SourceArray) -> tuple[int, ...]:
    """Return one chunk length per axis; of chunks that differ, the longest."""
    chunks = tuple(max(c, default=1) if isinstance(c, tuple) else c for c in array.chunks)
    return tuple(max(1, min(c, n)) if n else 1 for c, n in zip(chunks, array.shape, strict=True))


def read_plane_region(array: SourceArray, plane: PlaneKey, rows: slice, columns: slice) -> AnyArray:
    """Read (rows, columns) of a plane, or (rows, columns, samples) where its index says ``ALL`` for an axis.

    What comes is as ``values.to_display`` gives it. A slab is read chunk by chunk along its axis, so that it
    takes the memory of one chunk's depth; its mean is float32 (float64 of 64-bit types).
    """
    selection: list[Any] = [slice(None) if index == ALL else index for index in plane.indices]
    selection[plane.displayed[0]] = rows
    selection[plane.displayed[1]] = columns
    if plane.slab is None:
        return _ordered(np.asarray(array[tuple(selection)]), plane, None)
    pieces = _slab_pieces(array, plane, plane.slab, selection)
    return _mean(pieces) if plane.slab.mode == "mean" else _maximum(pieces)


def _slab_pieces(array: SourceArray, plane: PlaneKey, slab: Slab, selection: list[Any]) -> Iterator[AnyArray]:
    """Yield blocks whose first axis runs along the slab."""
    step = uniform_chunks(array)[slab.axis]
    start = slab.start
    while start < slab.stop:
        stop = min((start // step + 1) * step, slab.stop)
        selection[slab.axis] = slice(start, stop)
        yield _ordered(np.asarray(array[tuple(selection)]), plane, slab.axis)
        start = stop


def _ordered(values: AnyArray, plane: PlaneKey, slab_axis: int | None) -> AnyArray:
    """Bring the axes that are left into the order slab, row, column, samples."""
    row, column = plane.displayed
    samples = [axis for axis, index in enumerate(plane.indices) if index == ALL]
    wanted = [*([] if slab_axis is None else [slab_axis]), row, column, *samples]
    left = sorted(wanted)
    return to_display(values.transpose([left.index(axis) for axis in wanted]))


def _maximum(pieces: Iterator[AnyArray]) -> AnyArray:
    result: AnyArray | None = None
    for piece in pieces:
        for values in piece:
            result = values if result is None else _larger(result, values)
    return _found(result)


def _larger(left: AnyArray, right: AnyArray) -> AnyArray:
    if left.dtype.names is not None:
        both = left.copy()
        for name in left.dtype.names:
            both[name] = _larger(left[name], right[name])
        return both
    if left.dtype.kind == "c":
        return np.where(np.abs(right) > np.abs(left), right, left)
    if left.dtype.kind == "f":
        return np.fmax(left, right)
    return np.maximum(left, right)


def _mean(pieces: Iterator[AnyArray]) -> AnyArray:
    total: Any = None
    depth = 0
    dtype = np.dtype(np.float32)
    for piece in pieces:
        dtype = piece.dtype
        depth += len(piece)
        if dtype.names is not None:
            sums = {name: piece[name].sum(axis=0, dtype=np.float64) for name in dtype.names}
            total = sums if total is None else {name: total[name] + sums[name] for name in sums}
        else:
            sums = piece.sum(axis=0, dtype=np.complex128 if dtype.kind == "c" else np.float64)
            total = sums if total is None else total + sums
    if dtype.names is not None:
        first = next(iter(total.values()))
        means = np.zeros(first.shape, [(name, np.float64) for name in dtype.names])
        for name in dtype.names:
            means[name] = total[name] / depth
        return means
    mean: AnyArray = _found(total) / depth
    if dtype.kind == "c":
        return mean.astype(dtype)
    return mean.astype(np.float64 if dtype.itemsize == 8 else np.float32)


def _found(result: AnyArray | None) -> AnyArray:
    if result is None:
        raise ValueError("a slab needs at least one plane")
    return result
