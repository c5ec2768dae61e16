"""Counterparts of ``dask.array.from_zarr`` and ``to_zarr`` that read and write with zarrfs.

The functions of Dask import zarr-python: they refuse arrays and stores of zarrfs. These have the same parameters and
accept every location of zarrfs. They need Dask.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any

from zarrfs.api.open import create_array, open_array, open_group
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.locations import Location
from zarrfs.engine.values import describe_value
from zarrfs.errors import DataShapeError, OptionError, UnsupportedError
from zarrfs.plugins import install_hint

__all__ = ["from_zarr", "to_zarr"]

MODES = ("r+", "a", "w", "w-")

LOCAL_SCHEDULERS = ("dask.local", "dask.threaded")
"""Modules of the schedulers whose tasks run in this process."""


def from_zarr(
    url: Location,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    chunks: Any = None,
    name: str | None = None,
    inline_array: bool = False,
    **options: Any,
) -> Any:
    """Return a Dask array of the array at a location. The tasks read the chunks.

    Args:
        url: an array, or any location that ``zarrfs.open_array`` accepts. It is opened for reading.
        component: the path of the array below the location.
        storage_options: as in ``zarrfs.open``.
        chunks: the chunks of the Dask array, as in ``dask.array.from_array``. The default is those of the array.
        name: the name of the Dask array. The default depends on the location, the path and ``chunks``.
        inline_array: as in ``dask.array.from_array``.
        options: other options of ``zarrfs.open_array``. They are not used for an open array.

    Raises the errors of ``zarrfs.open_array``, and UnsupportedError if Dask is not installed.
    """
    dask_array = _import_dask_array()
    from dask.base import tokenize

    if isinstance(url, Array) and not component:
        array = url
    else:
        array = open_array(url, component, storage_options=storage_options, **options)
    if chunks is None:
        chunks = array.chunks
    if name is None:
        name = f"from-zarr-{tokenize(array, chunks)}"
    return dask_array.from_array(array, chunks, name=name, inline_array=inline_array)


def to_zarr(
    arr: Any,
    url: Location,
    component: str | None = None,
    storage_options: dict[str, Any] | None = None,
    region: Any = None,
    compute: bool = True,
    return_stored: bool = False,
    mode: str = "a",
    **options: Any,
) -> Any:
    """Write a Dask array to an array of the same shape, or to a new array at a location.

    The chunks of ``arr`` are merged where two of them would write to one stored chunk or shard. Each stored chunk is
    thus written by one task, on all schedulers.

    Args:
        arr: the Dask array.
        url: an open array, or any location that ``zarrfs.create_array`` accepts.
        component: the path of the new array below the location.
        storage_options: as in ``zarrfs.open``.
        region: the part of an open array that is written: a slice or an integer for each dimension.
        compute: False returns a delayed value that writes when it is computed. The new array is created at once.
        return_stored: whether Dask arrays that read the stored values are returned, as by ``dask.array.store``.
        mode: for a location: ``"a"`` and ``"w-"`` raise an error if a node exists at the path, ``"w"`` replaces it,
            ``"r+"`` also requires an existing group at the location.
        options: options of ``zarrfs.create_array``. The default chunks are the largest ones of ``arr``.

    Returns: what ``dask.array.store`` returns, None by default.

    Raises:
        NodeExistsError: a node exists at the path.
        DataShapeError: ``arr`` has another shape than the array or the region, or chunks of unknown lengths.
        OptionError: ``mode``, ``region`` or an option of ``create_array`` is invalid.
        UnsupportedError: Dask is not installed, or the array is in the memory of this process and the tasks run in
            other processes.
    """
    _import_dask_array()
    if any(length != length for length in arr.shape):  # NaN
        raise DataShapeError(
            "the Dask array has chunks of unknown lengths; compute them first: arr.compute_chunk_sizes()"
        )
    if isinstance(url, Array) and not component:
        array = url
    else:
        if region is not None:
            raise OptionError(
                "region is a part of an existing array; pass an open array instead of a location"
            )
        array = _create(arr, url, component, storage_options, mode, options)
    if array.store.in_process and not _runs_in_this_process():
        raise UnsupportedError(
            f"{array.store.url} is in the memory of this process, and the scheduler of Dask uses other processes; use "
            "a store that they can access, or scheduler='threads'"
        )
    parts = _parts(array, region)
    shape = tuple(len(part) for part in parts if isinstance(part, range))
    if arr.shape != shape:
        raise DataShapeError(
            f"{array.store.url}: {array.name}: the Dask array has the shape {arr.shape}, the target has {shape}; "
            "nothing was written"
        )
    grid: tuple[int | tuple[int, ...], ...] = array.shards or array.chunks
    pairs = [(part, lengths) for part, lengths in zip(parts, grid, strict=True) if isinstance(part, range)]
    chunks = tuple(
        _aligned_chunks(given, _edges(part, lengths))
        for given, (part, lengths) in zip(arr.chunks, pairs, strict=True)
    )
    target = tuple(
        slice(part.start, part.stop, part.step) if isinstance(part, range) else part for part in parts
    )
    return arr.rechunk(chunks).store(
        array,
        lock=False,
        regions=None if region is None else target,
        compute=compute,
        return_stored=return_stored,
    )


def _import_dask_array() -> Any:
    try:
        import dask.array
    except ImportError as error:
        raise UnsupportedError(f"zarrfs.dask needs the package dask: {install_hint('dask')}") from error
    return dask.array


def _runs_in_this_process() -> bool:
    """Return whether the scheduler that Dask would use for arrays now runs tasks in this process."""
    from dask.base import get_scheduler

    scheduler = get_scheduler()
    return scheduler is None or getattr(scheduler, "__module__", "") in LOCAL_SCHEDULERS


def _create(
    arr: Any,
    location: Location,
    component: str | None,
    storage_options: dict[str, Any] | None,
    mode: str,
    options: dict[str, Any],
) -> Array:
    """Create the array for a Dask array."""
    if mode not in MODES:
        raise OptionError(f"mode must be one of {', '.join(map(repr, MODES))}, found {describe_value(mode)}")
    if component and options.get("name"):
        raise OptionError("give either component or name")
    if mode == "r+":
        open_group(location, "", "r+", storage_options=storage_options)
    elif mode == "w":
        options = {**options, "overwrite": True}
    defaults = {
        "shape": arr.shape,
        "dtype": arr.dtype,
        "chunks": tuple(max(1, *lengths) for lengths in arr.chunks),
    }
    path = component or options.pop("name", None) or ""
    if isinstance(location, Group):
        return location.create_array(path, **{**defaults, **options})
    return create_array(location, path, storage_options=storage_options, **{**defaults, **options})


def _parts(array: Array, region: Any) -> list[range | int]:
    """Return the positions in each dimension that a region selects: a range with a positive step, or an integer."""
    given = region if isinstance(region, tuple) else (slice(None),) if region is None else (region,)
    if len(given) > array.ndim > 0:
        raise OptionError(f"region has {len(given)} dimensions, the array has {array.ndim}")
    parts: list[range | int] = []
    for axis, length in enumerate(array.shape):
        part = given[axis] if axis < len(given) else slice(None)
        if isinstance(part, slice) and (part.step is None or part.step > 0):
            parts.append(range(*part.indices(length)))
        elif isinstance(part, int) and not isinstance(part, bool) and -length <= part < length:
            parts.append(part % length)
        else:
            raise OptionError(
                f"region: dimension {axis} of {length} elements: expected a slice with a positive step, or an integer "
                f"inside the dimension, found {describe_value(part)}"
            )
    return parts


def _edges(part: range, lengths: int | tuple[int, ...]) -> Callable[[int], int]:
    """Return the function that rounds a number of selected elements up, so that no stored chunk is divided.

    Args:
        part: the selected positions.
        lengths: the chunk length, or the lengths of all chunks of the dimension.
    """
    ends = None if isinstance(lengths, int) else list(accumulate(lengths))

    def round_up(count: int) -> int:
        last = part[count - 1]
        if ends is None:
            assert isinstance(lengths, int)
            end = (last // lengths + 1) * lengths
        else:
            end = ends[bisect_left(ends, last + 1)]
        return min(len(part), len(range(part.start, end, part.step)))

    return round_up


def _aligned_chunks(lengths: tuple[int, ...], round_up: Callable[[int], int]) -> tuple[int, ...]:
    """Return chunk lengths whose ends are those of ``lengths``, rounded up."""

    def ends() -> Iterator[int]:
        for end in accumulate(lengths):
            if end:
                yield round_up(end)

    edges = [0, *sorted(set(ends()))]
    return tuple(stop - start for start, stop in pairwise(edges)) or (0,)
