"""Names of dimensions and missing values, which each format keeps elsewhere, carried to another format so that xarray
reads the same.

Zarr v2: the attribute ``_ARRAY_DIMENSIONS``, and ``fill_value``, which xarray takes for missing. Other formats: names
of their own, and the attribute ``_FillValue``; their fill value is a value like any other. After "Zarr Encoding
Specification" of xarray's documentation.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.engine.dtypes import default_fill
from zarrfs.engine.formats.dimension_names import DIMENSIONS, names_in
from zarrfs.engine.model import ArraySpec

__all__ = ["carried", "reads_as"]

FILL = "_FillValue"

MASK_FORMATS: tuple[int | str, ...] = (1, 2)
"""Formats of which xarray takes the fill value for missing."""

TEXT = ("string", "bytes")
"""Data types of elements of any length."""

UNITS_FORMATS: tuple[int | str, ...] = (3, "n5")
"""Formats that have units of dimensions."""

N5_NAMES, N5_UNITS = "axes", ("units", "resolution")
"""Attributes of N5 that say the names and units of dimensions, the fastest first."""


def carried(spec: ArraySpec, wanted: int | str, all_stored: Callable[[], bool]) -> ArraySpec:
    """Return the spec with names, units, missing value and fill value as the format ``wanted`` keeps them.

    Format, codecs and chunk keys stay. ``all_stored`` tells whether no chunk of the array is absent; it is asked only
    if the answer matters. Where the result has another fill value, ``reads_as`` tells whether absent chunks change.
    """
    if wanted == spec.zarr_format:
        return spec
    names, attributes = _names(spec, wanted)
    units = spec.dimension_units if wanted in UNITS_FORMATS else None
    if units is not None and spec.zarr_format == "n5":
        attributes = {key: value for key, value in attributes.items() if key not in N5_UNITS}
    made = replace(spec, attributes=attributes, dimension_names=names, dimension_units=units)
    old, new = spec.zarr_format in MASK_FORMATS, wanted in MASK_FORMATS
    if old == new or names is None or None in names:
        return made
    if spec.data_type.name in TEXT:
        # xarray reads no missing value of such arrays in other formats: the attribute would keep it from opening them.
        return made if old else replace(made, fill_value=None)
    if spec.data_type.numpy.kind not in "biufcSU":
        return made
    if old:
        if made.fill_value is not None:
            made = replace(made, attributes={**attributes, FILL: _encoded(made.fill_value, _dtype(made))})
        return made
    return _with_mask_as_fill(made, all_stored)


def reads_as(spec: ArraySpec) -> Any:
    """Return what elements of absent chunks read as."""
    return default_fill(spec.data_type) if spec.fill_value is None else spec.fill_value


def _with_mask_as_fill(spec: ArraySpec, all_stored: Callable[[], bool]) -> ArraySpec:
    """Return the spec for a format whose fill value is what is missing."""
    dtype = _dtype(spec)
    mask = _decoded(spec.attributes.get(FILL), dtype)
    plain = {key: value for key, value in spec.attributes.items() if key != FILL}
    if mask is not None and (_same(mask, spec.fill_value) or all_stored()):
        return replace(spec, fill_value=mask, attributes=plain)
    if mask is None and dtype.kind in "fc" and np.isnan(spec.fill_value):
        return spec  # NaN is missing in any case
    # Null, so that no value is missing by it; where there is a mask the attribute still says it.
    return replace(spec, fill_value=None)


def _names(spec: ArraySpec, wanted: int | str) -> tuple[tuple[str | None, ...] | None, dict[str, Any]]:
    """Return the names of the dimensions, and the attributes without what says the same."""
    attributes, names = dict(spec.attributes), spec.dimension_names
    if names is None and not spec.shape and spec.zarr_format == 3:
        names = ()  # xarray needs the names of all arrays, of a scalar too
    if names is None:
        return None, attributes
    if names_in(attributes, len(spec.shape)) == names:
        del attributes[DIMENSIONS]
    if spec.zarr_format == "n5" and wanted != "n5":
        attributes.pop(N5_NAMES, None)
    return names, attributes


def _dtype(spec: ArraySpec) -> np.dtype[Any]:
    return spec.data_type.numpy


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def _encoded(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a missing value as xarray writes it into JSON."""
    if dtype.kind == "S":
        return base64.b64encode(bytes(value)).decode("ascii")
    if dtype.kind == "f":
        return _float_text(value)
    if dtype.kind == "c":
        return [_float_text(value.real), _float_text(value.imag)]
    if dtype.kind == "U":
        return str(value)
    return bool(value) if dtype.kind == "b" else int(value)


def _float_text(value: Any) -> str:
    return base64.b64encode(struct.pack("<d", float(value))).decode("ascii")


def _decoded(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the missing value that an attribute says; None where it says none that the array can have."""
    try:
        if dtype.kind == "f":
            found: Any = _float_of(value)
        elif dtype.kind == "c":
            found = complex(*map(_float_of, value))
        elif dtype.kind == "S":
            found = base64.b64decode(value, validate=True)
        elif isinstance(value, str) == (dtype.kind == "U") and isinstance(value, str | int | bool):
            found = value
        else:
            return None
        scalar = np.array(found).astype(dtype)[()]
    except (TypeError, ValueError, OverflowError, struct.error, binascii.Error):
        return None
    return scalar if _same(scalar, found) or dtype.kind in "fc" else None


def _float_of(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    number: float = struct.unpack("<d", base64.b64decode(value, validate=True))[0]
    return number
