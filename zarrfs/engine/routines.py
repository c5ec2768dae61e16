"""Creation routines as NumPy and zarr-python name them: zeros, ones, full, empty, array, and the like of another.

Without a location an array is made in memory. All options of ``create_array`` may be given.
"""

from __future__ import annotations

from typing import Any, Unpack

from zarrfs.engine.creation.array_options import ArrayOptions, FilledOptions, StorageOptions, lists_options
from zarrfs.engine.locations import Location
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.similar_arrays import options_like, spec_of
from zarrfs.engine.open import Mode, create_array, open_array
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.synchronizers import Synchronizer
from zarrfs.errors import MetadataError

__all__ = [
    "array",
    "create",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "open_like",
    "zeros",
    "zeros_like",
]


def _create(
    store: Location | None,
    path: str | None,
    options: dict[str, Any],
    storage_options: dict[str, Any] | None,
    synchronizer: Synchronizer | None,
) -> Array:
    return create_array(
        MemoryStore() if store is None else store,
        path,
        storage_options=storage_options,
        synchronizer=synchronizer,
        **options,
    )


@lists_options(FilledOptions)
def create(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[FilledOptions],
) -> Array:
    """Create an array of a shape; in memory if no location is given. Options as ``create_array``."""
    return _create(store, path, {**options, "shape": shape}, storage_options, synchronizer)


@lists_options(StorageOptions)
def full(
    shape: Any,
    fill_value: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[StorageOptions],
) -> Array:
    """Create an array that reads as ``fill_value`` everywhere. Nothing is stored but its metadata."""
    made = {**options, "shape": shape, "fill_value": fill_value}
    return _create(store, path, made, storage_options, synchronizer)


@lists_options(StorageOptions)
def zeros(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[StorageOptions],
) -> Array:
    """Create an array of zeros."""
    made = {**options, "shape": shape, "fill_value": 0}
    return _create(store, path, made, storage_options, synchronizer)


@lists_options(StorageOptions)
def ones(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[StorageOptions],
) -> Array:
    """Create an array of ones."""
    made = {**options, "shape": shape, "fill_value": 1}
    return _create(store, path, made, storage_options, synchronizer)


@lists_options(FilledOptions)
def empty(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[FilledOptions],
) -> Array:
    """Create an array that reads as the default value of its data type: zero, or an empty string."""
    return _create(store, path, {**options, "shape": shape}, storage_options, synchronizer)


@lists_options(FilledOptions)
def array(
    data: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[FilledOptions],
) -> Array:
    """Create an array that holds the data. Of data that are an array in chunks these are kept, and of an array of this
    package or of zarr-python everything, as by ``from_array``.
    """
    if spec_of(data) is not None:
        return from_array(
            store, data=data, path=path, storage_options=storage_options, synchronizer=synchronizer, **options
        )
    made: dict[str, Any] = {**options, "data": data}
    if made.get("chunks") is None and isinstance(getattr(data, "chunks", None), tuple):
        made["chunks"] = options_like(data, {})["chunks"]
    return _create(store, path, made, storage_options, synchronizer)


@lists_options(FilledOptions)
def from_array(
    store: Location | None,
    *,
    data: Any,
    path: str | None = "",
    name: str | None = None,
    write_data: bool = True,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[FilledOptions],
) -> Array:
    """Create an array like another one, and write its values and attributes.

    What is not given, or given as ``"keep"``, is taken from ``data``: chunks, shards, codecs, fill value, dimension
    names and format. Values are written chunk by chunk. ``write_data=False`` leaves them out.
    """
    if not hasattr(data, "shape") or not hasattr(data, "dtype"):
        if write_data:
            return create_array(
                store,
                path,
                name=name,
                data=data,
                storage_options=storage_options,
                synchronizer=synchronizer,
                **_without_keep(options),
            )
        raise MetadataError("write_data=False needs data with a shape and a dtype")
    made = options_like(data, options)
    spec = spec_of(data)
    if spec is not None and "attributes" not in made:
        made["attributes"] = dict(spec.attributes)
    if write_data:
        made["copy_from"] = data
    created = create_array(
        store, path, name=name, storage_options=storage_options, synchronizer=synchronizer, **made
    )
    created._read_only = bool(options.get("read_only"))
    return created


def _without_keep(options: Any) -> Any:
    return {
        name: value for name, value in options.items() if not (isinstance(value, str) and value == "keep")
    }


@lists_options(StorageOptions)
def full_like(
    other: Any,
    fill_value: Any = None,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[StorageOptions],
) -> Array:
    """Create an array like another one, reading as ``fill_value``; without one as the other array does where nothing
    was written. ``other`` may be any array.
    """
    given: dict[str, Any] = {**options, "shape": shape}
    if fill_value is not None:
        given["fill_value"] = fill_value
    return _create(store, path, options_like(other, given), storage_options, synchronizer)


@lists_options(StorageOptions)
def zeros_like(
    other: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[StorageOptions],
) -> Array:
    """Create an array of zeros like another one."""
    made = options_like(other, {**options, "shape": shape, "fill_value": 0})
    return _create(store, path, made, storage_options, synchronizer)


@lists_options(StorageOptions)
def ones_like(
    other: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[StorageOptions],
) -> Array:
    """Create an array of ones like another one."""
    made = options_like(other, {**options, "shape": shape, "fill_value": 1})
    return _create(store, path, made, storage_options, synchronizer)


@lists_options(FilledOptions)
def empty_like(
    other: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[FilledOptions],
) -> Array:
    """Create an array like another one; with its fill value if it has one."""
    return _create(
        store, path, options_like(other, {**options, "shape": shape}), storage_options, synchronizer
    )


@lists_options(ArrayOptions)
def open_like(
    other: Any,
    store: Location,
    path: str | None = "",
    mode: Mode = "a",
    *,
    storage_options: dict[str, Any] | None = None,
    synchronizer: Synchronizer | None = None,
    **options: Unpack[ArrayOptions],
) -> Array:
    """Open the array at a location, created like another one if there is nothing."""
    creating = mode not in ("r", "r+")
    made: dict[str, Any] = options_like(other, options) if creating else dict(options)
    if mode == "a":
        # An array that is there is taken whatever its format is.
        made.setdefault("zarr_format", None)
    return open_array(store, path, mode, storage_options=storage_options, synchronizer=synchronizer, **made)
