"""Reading regions of planes from one array: selection, projection, and transposition to display order.

The functions block on the store. Images and pyramids are in ``images.image``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.packing import Packing
from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, Slab
from zarrfs_viewer.images.values import to_display

__all__ = [
    "PaddedArray",
    "SourceArray",
    "UnpackedArray",
    "cache_on_next_read",
    "level_slices",
    "projected_dtype",
    "read_plane_region",
    "read_projection",
    "stored_array",
    "uniform_chunks",
    "unpacked",
]

AnyArray = npt.NDArray[Any]


class SourceArray(Protocol):
    """The part of ``zarrfs.Array`` that the viewer uses."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]: ...
    def __getitem__(self, selection: Any, /) -> Any: ...


class PaddedArray:
    """An array of rank 0 or 1 as an array of rank 2, with leading axes of length 1."""

    def __init__(self, array: SourceArray) -> None:
        self.array = array
        self._added_axes = 2 - len(array.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,) * self._added_axes + self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        return (1,) * self._added_axes + uniform_chunks(self.array)

    def __getitem__(self, selection: tuple[Any, ...]) -> AnyArray:
        """Read with one integer or slice per axis."""
        values = np.asarray(self.array[selection[self._added_axes :]])
        padded = values.reshape((1,) * self._added_axes + values.shape)
        return padded[
            tuple(slice(None) if isinstance(s, slice) else 0 for s in selection[: self._added_axes])
        ]


class UnpackedArray:
    """The values of an array that is stored in packed form. See ``packing``."""

    def __init__(self, array: SourceArray, packing: Packing) -> None:
        self.array = array
        self.packing = packing

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.packing.dtype

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        return self.array.chunks

    def __getitem__(self, selection: Any, /) -> AnyArray:
        return self.packing.unpack(np.asarray(self.array[selection]))


def unpacked(array: SourceArray, packing: Packing) -> SourceArray:
    """Return the values of an array with a packing."""
    if isinstance(array, PaddedArray):
        return PaddedArray(UnpackedArray(array.array, packing))
    return UnpackedArray(array, packing)


def stored_array(array: SourceArray) -> SourceArray:
    """Return the array of a level as it is stored: without added axes, and with packed values."""
    while isinstance(array, PaddedArray | UnpackedArray):
        array = array.array
    return array


def uniform_chunks(array: SourceArray) -> tuple[int, ...]:
    """Return one chunk length per axis: the longest if the chunks of a rectilinear grid differ."""
    chunks = tuple(max(c, default=1) if isinstance(c, tuple) else c for c in array.chunks)
    return tuple(max(1, min(c, n)) if n else 1 for c, n in zip(chunks, array.shape, strict=True))


def level_slices(plane: PlaneKey, rows: slice, columns: slice) -> tuple[slice, slice]:
    """Return the rows and columns of the level for those of a plane, which may be sampled."""
    row_step, column_step = plane.steps
    return (
        slice(rows.start * row_step, (rows.stop - 1) * row_step + 1, row_step),
        slice(columns.start * column_step, (columns.stop - 1) * column_step + 1, column_step),
    )


def read_plane_region(array: SourceArray, plane: PlaneKey, rows: slice, columns: slice) -> AnyArray:
    """Read a region of a plane as (rows, columns), or as (rows, columns, samples) if one of the plane's indices
    is ``ALL``. Blocks. Raises ZarrError.

    The data type is that of ``values.to_display``. A slab is read chunk by chunk along its axis, so that only one
    chunk's depth is in memory. The mean of a slab is float32, or float64 for 64-bit data types.
    """
    selection: list[Any] = [slice(None) if index == ALL else index for index in plane.indices]
    selection[plane.displayed[0]], selection[plane.displayed[1]] = level_slices(plane, rows, columns)
    if plane.slab is None:
        return _ordered(np.asarray(array[tuple(selection)]), plane, None)
    slab = plane.slab
    return _project(
        (_ordered(block, plane, slab.axis) for block in _slab_blocks(array, slab, selection)), slab
    )


def cache_on_next_read(array: SourceArray, plane: PlaneKey, rows: slice, columns: slice) -> None:
    """Let the next read of a region of a plane decode its chunks completely and cache them. Does not block.

    Has no effect on arrays that do not cache their chunks.
    """
    from zarrfs.engine.array_context import ArrayContext
    from zarrfs.engine.indexing.selections import basic_selection  # the engine takes long to import
    from zarrfs.engine.read.planning import cache_on_next_read

    source = stored_array(array)
    added_axes = len(array.shape) - len(source.shape)
    storage = getattr(source, "storage", None)
    if plane.slab is None and isinstance(storage, ArrayContext):
        selection: list[Any] = [slice(None) if index == ALL else index for index in plane.indices]
        selection[plane.displayed[0]], selection[plane.displayed[1]] = level_slices(plane, rows, columns)
        cache_on_next_read(storage, basic_selection(tuple(selection[added_axes:]), source.shape))


def read_projection(array: SourceArray, slab: Slab, selection: tuple[slice, ...]) -> AnyArray:
    """Read a region and project it along the axis of a slab, which has length 1 in the result. Blocks.

    The values are those that ``read_plane_region`` returns. ``selection`` has one slice per axis; its slice of the
    slab's axis is ignored. Raises ZarrError.
    """
    blocks = _slab_blocks(array, slab, list(selection))
    projected = _project((to_display(np.moveaxis(block, slab.axis, 0)) for block in blocks), slab)
    return np.expand_dims(projected, slab.axis)


def projected_dtype(dtype: np.dtype[Any], slab: Slab) -> np.dtype[Any]:
    """Return the data type of the projection of an array."""
    return _project(iter([to_display(np.zeros((1, 1), dtype))]), slab).dtype


def _project(blocks: Iterator[AnyArray], slab: Slab) -> AnyArray:
    return _mean(blocks) if slab.mode == "mean" else _maximum(blocks)


def _slab_blocks(array: SourceArray, slab: Slab, selection: list[Any]) -> Iterator[AnyArray]:
    """Yield blocks of at most one chunk's depth."""
    step = uniform_chunks(array)[slab.axis]
    start = slab.start
    while start < slab.stop:
        stop = min((start // step + 1) * step, slab.stop)
        selection[slab.axis] = slice(start, stop)
        yield np.asarray(array[tuple(selection)])
        start = stop


def _ordered(values: AnyArray, plane: PlaneKey, slab_axis: int | None) -> AnyArray:
    """Transpose the axes of a read block to the order slab, row, column, samples."""
    row, column = plane.displayed
    samples = [axis for axis, index in enumerate(plane.indices) if index == ALL]
    display_order = [*([] if slab_axis is None else [slab_axis]), row, column, *samples]
    array_order = sorted(display_order)
    return to_display(values.transpose([array_order.index(axis) for axis in display_order]))


def _maximum(blocks: Iterator[AnyArray]) -> AnyArray:
    result: AnyArray | None = None
    for block in blocks:
        for values in block:
            result = values if result is None else _elementwise_maximum(result, values)
    return _not_empty(result)


def _elementwise_maximum(left: AnyArray, right: AnyArray) -> AnyArray:
    """Return the maximum per field of structured types, by magnitude for complex numbers, and ignoring NaN."""
    if left.dtype.names is not None:
        result = left.copy()
        for name in left.dtype.names:
            result[name] = _elementwise_maximum(left[name], right[name])
        return result
    if left.dtype.kind == "c":
        return np.where(np.abs(right) > np.abs(left), right, left)
    if left.dtype.kind == "f":
        return np.fmax(left, right)
    return np.maximum(left, right)


def _mean(blocks: Iterator[AnyArray]) -> AnyArray:
    total: Any = None
    depth = 0
    dtype = np.dtype(np.float32)
    for block in blocks:
        dtype = block.dtype
        depth += len(block)
        if dtype.names is not None:
            sums = {name: block[name].sum(axis=0, dtype=np.float64) for name in dtype.names}
            total = sums if total is None else {name: total[name] + sums[name] for name in sums}
        else:
            sums = block.sum(axis=0, dtype=np.complex128 if dtype.kind == "c" else np.float64)
            total = sums if total is None else total + sums
    if dtype.names is not None:
        first = next(iter(total.values()))
        means = np.zeros(first.shape, [(name, np.float64) for name in dtype.names])
        for name in dtype.names:
            means[name] = total[name] / depth
        return means
    mean: AnyArray = _not_empty(total) / depth
    if dtype.kind == "c":
        return mean.astype(dtype)
    return mean.astype(np.float64 if dtype.itemsize == 8 else np.float32)


def _not_empty(result: AnyArray | None) -> AnyArray:
    if result is None:
        raise ValueError("a slab needs at least one plane")
    return result
