"""Conversion of dimension names and missing values between the conventions of the formats, so that xarray reads the
same dataset.

Zarr v2 stores dimension names in the attribute ``_ARRAY_DIMENSIONS``, and xarray treats ``fill_value`` as the missing
value. Other formats have dimension names of their own, and the missing value is the attribute ``_FillValue``; their
fill value is an ordinary value. See "Zarr Encoding Specification" in xarray's documentation.
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
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.dimension_names import DIMENSIONS, dimension_names_from_attributes
from zarrfs.engine.model import ArraySpec

__all__ = ["FILL_VALUE", "convert_conventions", "decode_missing", "effective_fill_value", "encode_missing"]

FILL_VALUE = "_FillValue"

VARIABLE_LENGTH_TYPES = ("string", "bytes")
"""Variable-length data types."""


def convert_conventions(spec: ArraySpec, zarr_format: int | str, all_stored: Callable[[], bool]) -> ArraySpec:
    """Return the spec with dimension names, units, missing value and fill value in the convention of ``zarr_format``.

    Format, codecs and chunk keys are unchanged. ``all_stored`` returns whether the array has no missing chunks; it is
    called only if the result depends on it. The fill value may change: compare ``effective_fill_value`` of both specs
    to find out whether missing chunks read differently.
    """
    if zarr_format == spec.zarr_format:
        return spec
    names, attributes = _dimension_names(spec)
    source, target = formats.features(spec.zarr_format), formats.features(zarr_format)
    units = spec.dimension_units if target.dimension_units else None
    if units is not None:
        attributes = {key: value for key, value in attributes.items() if key not in source.unit_attributes}
    result = replace(spec, attributes=attributes, dimension_names=names, dimension_units=units)
    source_masks, target_masks = source.fill_is_missing, target.fill_is_missing
    if source_masks == target_masks or names is None or None in names:
        return result
    if spec.data_type.name in VARIABLE_LENGTH_TYPES:
        # xarray cannot open such arrays in other formats if they have the attribute for missing values.
        return result if source_masks else replace(result, fill_value=None)
    if spec.data_type.numpy.kind not in "biufcSU":
        return result
    if source_masks:
        if result.fill_value is not None:
            result = replace(
                result,
                attributes={**attributes, FILL_VALUE: encode_missing(result.fill_value, _dtype(result))},
            )
        return result
    return _with_missing_as_fill(result, all_stored)


def effective_fill_value(spec: ArraySpec) -> Any:
    """Return the value that elements of missing chunks read as."""
    return default_fill(spec.data_type) if spec.fill_value is None else spec.fill_value


def _with_missing_as_fill(spec: ArraySpec, all_stored: Callable[[], bool]) -> ArraySpec:
    """Return the spec for a format whose fill value is the missing value."""
    dtype = _dtype(spec)
    missing = decode_missing(spec.attributes.get(FILL_VALUE), dtype)
    other_attributes = {key: value for key, value in spec.attributes.items() if key != FILL_VALUE}
    if missing is not None and (_same_value(missing, spec.fill_value) or all_stored()):
        return replace(spec, fill_value=missing, attributes=other_attributes)
    if missing is None and dtype.kind in "fc" and np.isnan(spec.fill_value):
        return spec  # xarray treats NaN as missing in any case
    # With null no value is treated as missing. The attribute, if there is one, still states the missing value.
    return replace(spec, fill_value=None)


def _dimension_names(
    spec: ArraySpec,
) -> tuple[tuple[str | None, ...] | None, dict[str, Any]]:
    """Return the dimension names, and the attributes without those that duplicate them."""
    features = formats.features(spec.zarr_format)
    attributes, names = dict(spec.attributes), spec.dimension_names
    if names is None and not spec.shape and features.dimension_names:
        names = ()  # xarray requires dimension names for all arrays, including scalars
    if names is None:
        return None, attributes
    if dimension_names_from_attributes(attributes, len(spec.shape)) == names:
        del attributes[DIMENSIONS]
    for name in features.name_attributes:
        attributes.pop(name, None)
    return names, attributes


def _dtype(spec: ArraySpec) -> np.dtype[Any]:
    return spec.data_type.numpy


def _same_value(first: Any, second: Any) -> bool:
    return bool(first == second or (first != first and second != second))


def encode_missing(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a missing value as xarray encodes it in JSON."""
    if dtype.kind == "S":
        return base64.b64encode(bytes(value)).decode("ascii")
    if dtype.kind == "f":
        return _encode_float(value)
    if dtype.kind == "c":
        return [_encode_float(value.real), _encode_float(value.imag)]
    if dtype.kind == "U":
        return str(value)
    return bool(value) if dtype.kind == "b" else int(value)


def _encode_float(value: Any) -> str:
    return base64.b64encode(struct.pack("<d", float(value))).decode("ascii")


def decode_missing(value: Any, dtype: np.dtype[Any]) -> Any:
    """Decode the missing value of an attribute. None if the value is invalid or not representable in ``dtype``."""
    try:
        if dtype.kind == "f":
            decoded: Any = _decode_float(value)
        elif dtype.kind == "c":
            decoded = complex(*map(_decode_float, value))
        elif dtype.kind == "S":
            decoded = base64.b64decode(value, validate=True)
        elif isinstance(value, str) == (dtype.kind == "U") and isinstance(value, str | int | bool):
            decoded = value
        else:
            return None
        scalar = np.array(decoded).astype(dtype)[()]
    except (TypeError, ValueError, OverflowError, struct.error, binascii.Error):
        return None
    return scalar if _same_value(scalar, decoded) or dtype.kind in "fc" else None


def _decode_float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    number: float = struct.unpack("<d", base64.b64decode(value, validate=True))[0]
    return number
