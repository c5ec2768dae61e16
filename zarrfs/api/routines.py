"""Array creation functions under the names of NumPy and zarr-python: ``zeros``, ``full``, ``array``, ``zeros_like`` ...

Without a location the array is created in memory. All options and errors are those of ``create_array``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from zarrfs.api.open import Mode, create_array, open_array
from zarrfs.engine.array.array import Array
from zarrfs.engine.create.array_options import (
    CreateOptions,
    OpenArrayOptions,
    UnfilledCreateOptions,
    with_fill_value,
    with_options_signature,
)
from zarrfs.engine.create.similar_arrays import options_like, spec_of
from zarrfs.engine.stores.locations import Location
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import OptionError

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


def _create(store: Location | None, path: str | None, options: Mapping[str, Any]) -> Array:
    return create_array(MemoryStore() if store is None else store, path, **options)


@with_options_signature(CreateOptions)
def create(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    **options: Unpack[CreateOptions],
) -> Array:
    """Create an array of a given shape. Without a location it is created in memory. Options as in ``create_array``."""
    return _create(store, path, {**options, "shape": shape})


@with_options_signature(UnfilledCreateOptions)
def full(
    shape: Any,
    fill_value: Any,
    store: Location | None = None,
    path: str | None = "",
    **options: Unpack[UnfilledCreateOptions],
) -> Array:
    """Create an array that reads as ``fill_value``. Only its metadata are written."""
    return _create(store, path, {**options, "shape": shape, "fill_value": fill_value})


@with_options_signature(UnfilledCreateOptions)
def zeros(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    **options: Unpack[UnfilledCreateOptions],
) -> Array:
    """Create an array of zeros. Only its metadata are written."""
    return _create(store, path, {**with_fill_value("zeros()", options, 0), "shape": shape})


@with_options_signature(UnfilledCreateOptions)
def ones(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    **options: Unpack[UnfilledCreateOptions],
) -> Array:
    """Create an array of ones. Only its metadata are written."""
    return _create(store, path, {**with_fill_value("ones()", options, 1), "shape": shape})


@with_options_signature(CreateOptions)
def empty(
    shape: Any,
    store: Location | None = None,
    path: str | None = "",
    **options: Unpack[CreateOptions],
) -> Array:
    """Create an array without data. It reads as its fill value, by default the default value of its data type: zero,
    or an empty string.
    """
    return _create(store, path, {**options, "shape": shape})


@with_options_signature(CreateOptions)
def array(
    data: Any,
    store: Location | None = None,
    path: str | None = "",
    **options: Unpack[CreateOptions],
) -> Array:
    """Create an array from ``data``, an array-like object.

    The chunks of a chunked array (Dask, h5py) are the default of ``chunks``. For a ``zarrfs.Array`` or an array of
    zarr-python this is ``from_array``, which uses all its metadata.
    """
    if spec_of(data) is not None:
        return from_array(store, data=data, path=path, **options)
    array_options: dict[str, Any] = {**options, "data": data}
    if array_options.get("chunks") is None and isinstance(getattr(data, "chunks", None), tuple):
        array_options["chunks"] = options_like(data, {})["chunks"]
    return _create(store, path, array_options)


@with_options_signature(CreateOptions)
def from_array(
    store: Location | None,
    *,
    data: Any,
    path: str | None = "",
    name: str | None = None,
    write_data: bool = True,
    **options: Unpack[CreateOptions],
) -> Array:
    """Create an array with the metadata and values of another array.

    Options that are not given, or given as ``"keep"``, are taken from ``data``: chunks, shards, codecs, fill value,
    dimension names, attributes and format. Values are copied one stored chunk at a time; with ``write_data=False`` they
    are not copied. ``data`` that is no array, such as a list, is converted.
    """
    if not hasattr(data, "shape") or not hasattr(data, "dtype"):
        return create_array(
            store, path, name=name, data=data, write_data=write_data, **_without_keep(options)
        )
    array_options = options_like(data, options)
    spec = spec_of(data)
    if spec is not None and "attributes" not in array_options:
        array_options["attributes"] = dict(spec.attributes)
    if write_data:
        array_options["copy_from"] = data
    created = create_array(store, path, name=name, **array_options)
    created._read_only = bool(options.get("read_only"))
    return created


def _without_keep(options: Any) -> Any:
    return {
        name: value for name, value in options.items() if not (isinstance(value, str) and value == "keep")
    }


@with_options_signature(UnfilledCreateOptions)
def full_like(
    a: Any,
    fill_value: Any = None,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    **options: Unpack[UnfilledCreateOptions],
) -> Array:
    """Create an array that reads as ``fill_value``, with the shape and metadata of another array.

    ``a`` may be any array, including a NumPy array. The default of ``fill_value`` is the fill value of ``a``.
    """
    given: dict[str, Any] = {**options, "shape": shape}
    if fill_value is not None:
        given["fill_value"] = fill_value
    return _create(store, path, options_like(a, given))


@with_options_signature(UnfilledCreateOptions)
def zeros_like(
    a: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    **options: Unpack[UnfilledCreateOptions],
) -> Array:
    """Create an array of zeros with the shape and metadata of another array."""
    given = {**with_fill_value("zeros_like()", options, 0), "shape": shape}
    return _create(store, path, options_like(a, given))


@with_options_signature(UnfilledCreateOptions)
def ones_like(
    a: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    **options: Unpack[UnfilledCreateOptions],
) -> Array:
    """Create an array of ones with the shape and metadata of another array."""
    given = {**with_fill_value("ones_like()", options, 1), "shape": shape}
    return _create(store, path, options_like(a, given))


@with_options_signature(CreateOptions)
def empty_like(
    a: Any,
    store: Location | None = None,
    path: str | None = "",
    *,
    shape: Any = None,
    **options: Unpack[CreateOptions],
) -> Array:
    """Create an array without data, with the shape and metadata of another array; with its fill value if it has one."""
    return _create(store, path, options_like(a, {**options, "shape": shape}))


@with_options_signature(OpenArrayOptions)
def open_like(
    a: Any,
    store: Location | None = None,
    path: str | None = "",
    mode: Mode = "a",
    **options: Unpack[OpenArrayOptions],
) -> Array:
    """Open the array at a location. If it does not exist, create it with the shape and metadata of another array.

    Without ``store``, ``path`` is the location, as in zarr-python 2.
    """
    if store is None:
        if not path:
            raise OptionError("open_like() needs the location of the array")
        store, path = path, ""
    creating = mode not in ("r", "r+")
    array_options: dict[str, Any] = options_like(a, options) if creating else dict(options)
    if mode == "a":
        # An existing array is accepted whatever its format is.
        array_options.setdefault("zarr_format", None)
    return open_array(store, path, mode, **array_options)
