"""The attributes and the dimension names of the objects of an HDF5 file, also of netCDF, as Zarr represents them."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.files.hdf5.objects import ERRORS, dimension_labels
from zarrfs.tools.copying.conventions import FILL_VALUE, encode_missing

__all__ = ["FILL_VALUE", "attributes_of", "dimension_names", "encoded_missing"]

OWN_ATTRIBUTES = (
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
)
"""Attributes by which HDF5 and netCDF represent dimensions. They are converted to dimension names."""

SCALE_ATTRIBUTES = ("CLASS", "NAME")
"""Further attributes of dimension scales. Other objects can have attributes with these names."""


def attributes_of(item: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes that JSON can represent, and a message for each other one."""
    converted: dict[str, Any] = {}
    messages = []
    own = (*OWN_ATTRIBUTES, *SCALE_ATTRIBUTES) if getattr(item, "is_scale", False) else OWN_ATTRIBUTES
    for key in item.attrs:
        if key in own:
            continue
        try:
            value = _to_json(item.attrs[key])
        except ERRORS as error:
            messages.append(f"attribute {key!r} skipped: it cannot be read: {error}")
            continue
        if value is _UNSUPPORTED:
            messages.append(f"attribute {key!r} skipped: its data type has no JSON representation")
        else:
            converted[key] = value
    return converted, messages


_UNSUPPORTED = object()


def _to_json(value: Any) -> Any:
    """Return the value of an attribute as JSON; ``_UNSUPPORTED`` for references and other types without one."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        items = [_to_json(entry) for entry in value.tolist()] if value.ndim else _to_json(value.item())
        return _UNSUPPORTED if isinstance(items, list) and _UNSUPPORTED in items else items
    if isinstance(value, np.generic):
        return _to_json(value.item())
    if isinstance(value, list | tuple):
        return [_to_json(entry) for entry in value]
    return value if isinstance(value, str | int | float | bool) else _UNSUPPORTED


def dimension_names(item: Any) -> list[str | None] | None:
    """Return the name of each dimension of a dataset: its label, or the name of its dimension scale; None if there are
    none. A scale names its own dimension.
    """
    names: list[str | None] = []
    for dimension, label in zip(item.dims, dimension_labels(item), strict=True):
        try:
            scale = dimension[0].name.rpartition("/")[2] if len(dimension) else ""
        except ERRORS:
            scale = ""  # a damaged attribute
        names.append(label or scale or None)
    if not any(names):
        own = item.name.rpartition("/")[2]
        return [own] if item.is_scale and len(item.shape) == 1 else None
    return names


def encoded_missing(item: Any, value: Any) -> Any:
    """Return the missing value of a dataset (the attribute ``_FillValue``) as xarray encodes it in JSON.

    netCDF stores it as an array with one element. The result is ``value`` if it is no value of the data type.
    """
    dtype = np.dtype(item.dtype)
    if dtype.kind not in "biuf" or np.size(value) != 1:
        return value
    try:
        missing = np.asarray(value).reshape(())[()]
        return encode_missing(missing, dtype) if np.asarray(missing).dtype.kind in "biuf" else value
    except (TypeError, ValueError, OverflowError):
        return value
