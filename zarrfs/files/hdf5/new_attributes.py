"""The attributes of new HDF5 files: JSON values as values for h5py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.errors import UnsupportedError
from zarrfs.files.hdf5.dimensions import RESERVED_ATTRIBUTES
from zarrfs.libraries import import_library
from zarrfs.text import short_repr
from zarrfs.tools.copying.conventions import FILL_VALUE, convert_conventions, decode_missing

__all__ = ["BOOL_MARK", "dataset_attributes", "set_attributes"]

BOOL_MARK = {"dtype": "bool"}
"""The attribute by which xarray recognizes booleans, which netCDF does not have."""

MAX_NAME_NBYTES = (1 << 16) - 2
"""The maximum length of the name of an attribute: the field for it, with the terminating NUL, has two bytes."""


def dataset_attributes(array: Array, is_netcdf: bool) -> dict[str, Any]:
    """Return the attributes of an array in the convention of netCDF: without dimension names, and with ``_FillValue``
    and ``missing_value`` as values of the data type of the array.
    """
    attributes = dict(convert_conventions(array.spec, 3, lambda: False).attributes)
    dtype = array.dtype
    if FILL_VALUE in attributes:
        missing = decode_missing(attributes[FILL_VALUE], dtype)
        if missing is not None and dtype.kind in "biufc":
            attributes[FILL_VALUE] = np.array([missing], dtype)
        elif missing is not None:
            del attributes[FILL_VALUE]
            if missing:
                attributes[FILL_VALUE] = missing
    value = attributes.get("missing_value")
    if dtype.kind in "iuf" and isinstance(value, int | float) and not isinstance(value, bool):
        missing = decode_missing(value, dtype)
        attributes["missing_value"] = value if missing is None else missing
    return {**attributes, **BOOL_MARK} if is_netcdf and dtype.kind == "b" else attributes


def set_attributes(target: Any, attributes: Mapping[str, Any], is_netcdf: bool) -> None:
    """Set attributes of a group or dataset. Values that HDF5 cannot represent are stored as JSON text."""
    for key, value in attributes.items():
        if key in RESERVED_ATTRIBUTES:
            continue
        if len(key.encode(errors="surrogatepass")) > MAX_NAME_NBYTES:
            raise UnsupportedError(
                f"HDF5 cannot store the attribute {short_repr(key)}: its name is longer than {MAX_NAME_NBYTES:,} bytes"
            )
        converted = _attribute_value(value)
        try:
            target.attrs[key] = _netcdf_value(converted) if is_netcdf else converted
        except (TypeError, ValueError, OverflowError, RuntimeError, KeyError) as error:
            raise UnsupportedError(f"HDF5 cannot store the attribute {short_repr(key)}: {error}") from error


def _attribute_value(value: Any) -> Any:
    if isinstance(value, str | int | float | bool | np.ndarray | np.generic):
        return value
    is_list = isinstance(value, list) and value and all(type(entry) is type(value[0]) for entry in value)
    if is_list and isinstance(value[0], int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _netcdf_value(value: Any) -> Any:
    """Return a value as all netCDF programs read it: text of fixed length, NC_CHAR, and booleans as bytes."""
    if isinstance(value, str) and value and "\0" not in value:
        encoded = value.encode()
        return np.array(encoded, import_library("h5py").string_dtype("utf-8", len(encoded)))
    if isinstance(value, bool) or (isinstance(value, list) and isinstance(value[0], bool)):
        return np.array(value, np.int8)
    return value
