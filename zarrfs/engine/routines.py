"""Creation routines as NumPy and zarr-python name them: zeros, ones, full, empty, array, and the like of another.

Without a location an array is made in memory. All options of ``create_array`` may be given.
"""

from __future__ import annotations

from typing import Any

from zarrfs.engine.array import Array
from zarrfs.engine.open import Location, create_array, open_array
from zarrfs.engine.stores.memory import MemoryStore

__all__ = [
    "array",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "open_like",
    "zeros",
    "zeros_like",
]


def _create(location: Location | None, path: str, options: dict[str, Any]) -> Array:
    return create_array(MemoryStore() if location is None else location, path, **options)


def full(
    shape: Any, fill_value: Any, location: Location | None = None, path: str = "", **options: Any
) -> Array:
    """Make an array that reads as ``fill_value`` everywhere. Nothing is stored but its metadata."""
    return _create(location, path, {"shape": shape, "fill_value": fill_value, **options})


def zeros(shape: Any, location: Location | None = None, path: str = "", **options: Any) -> Array:
    """Make an array of zeros."""
    return full(shape, 0, location, path, **options)


def ones(shape: Any, location: Location | None = None, path: str = "", **options: Any) -> Array:
    """Make an array of ones."""
    return full(shape, 1, location, path, **options)


def empty(shape: Any, location: Location | None = None, path: str = "", **options: Any) -> Array:
    """Make an array of which nothing is said: it reads as the data type's zero."""
    return full(shape, None, location, path, **options)


def array(data: Any, location: Location | None = None, path: str = "", **options: Any) -> Array:
    """Make an array that holds the data."""
    return _create(location, path, {"data": data, **options})


def _like(other: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with shape, dtype and, of an array of ours, chunks, shards, order, fill value and compression
    of another array, where they are not given.
    """
    found: dict[str, Any] = {"shape": tuple(other.shape), "dtype": other.dtype}
    if isinstance(other, Array):
        spec = other.spec
        found |= {
            "dtype": spec.data_type.name if other.dtype.hasobject else other.dtype,
            "chunks": tuple(side if isinstance(side, int) else side[0] for side in other.chunks),
            "shards": other.shards,
            "order": other.order,
            "fill_value": other.fill_value,
            "zarr_format": 2 if spec.zarr_format == 1 else spec.zarr_format,
            "dimension_names": other.dimension_names,
        }
        if options.get("zarr_format", found["zarr_format"]) != 3:
            found["shards"] = None
    elif isinstance(getattr(other, "chunks", None), tuple):
        chunks = other.chunks
        # Dask gives all lengths of each dimension.
        found["chunks"] = tuple(side if isinstance(side, int) else max(side) for side in chunks)
    return found | options


def full_like(other: Any, fill_value: Any, location: Location | None = None, **options: Any) -> Array:
    """Make an array like another one, reading as ``fill_value``. ``other`` may be any array."""
    return _create(location, options.pop("path", ""), _like(other, {"fill_value": fill_value, **options}))


def zeros_like(other: Any, location: Location | None = None, **options: Any) -> Array:
    """Make an array of zeros like another one."""
    return full_like(other, 0, location, **options)


def ones_like(other: Any, location: Location | None = None, **options: Any) -> Array:
    """Make an array of ones like another one."""
    return full_like(other, 1, location, **options)


def empty_like(other: Any, location: Location | None = None, **options: Any) -> Array:
    """Make an array like another one; of an array of ours with the same fill value."""
    return _create(location, options.pop("path", ""), _like(other, options))


def open_like(other: Any, location: Location, path: str = "", mode: Any = "a", **options: Any) -> Array:
    """Open the array at a location, made like another one if there is nothing."""
    return open_array(
        location, path, mode, **(_like(other, options) if mode in ("a", "w", "w-") else options)
    )
