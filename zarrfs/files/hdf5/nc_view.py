""".nc: a netCDF-4 file with one variable, which has the name of the array.

It is an HDF5 file whose dimensions are dimension scales. Specification:
https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html. Boolean and time values follow the
conventions of xarray and CF.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from zarrfs.cf_times import integer_times
from zarrfs.files.content.content import ArraySegment, VirtualFileContent
from zarrfs.files.hdf5.dimensions import NO_VARIABLE, create_empty_scale
from zarrfs.files.hdf5.h5_view import RESERVED_ATTRIBUTES, axis_positions
from zarrfs.files.hdf5.layout import MAX_HDF5_RANK, attribute_values, hdf5_content, library_unsupported_reason
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason
from zarrfs.libraries import import_library
from zarrfs.ngff.geometry import ArrayAxis
from zarrfs.text import short_repr

__all__ = ["NcView"]

MAX_NAME_LENGTH = 256
"""The maximum length of a name (NC_MAX_NAME)."""

NUMBER_KINDS = "iuf"
MIN_FLOAT_NBYTES = 4

NETCDF_ATTRIBUTES = frozenset(
    ("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties", "_ARRAY_DIMENSIONS")
)
"""The attributes that netCDF reserves, and that in which Zarr format 2 stores the names of the dimensions."""

VALUE_ATTRIBUTES = ("_FillValue", "missing_value")
"""The attributes whose data type must be that of the variable."""


@dataclass(frozen=True)
class _Variable:
    """How a variable is stored: the HDF5 data type of the elements, additional attributes, and whether each element of
    the array is a row of single characters.
    """

    dtype: np.dtype[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    is_text: bool = False


class NcView(View):
    """A netCDF-4 file with one variable."""

    suffix: ClassVar[str] = ".nc"

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = fixed_size_unsupported_reason(array)
        if unsupported_reason is not None:
            return unsupported_reason
        variable = _variable(array.dtype)
        if variable is None:
            return f"netCDF has no data type for its elements ({array.spec.data_type.name})"
        rank = array.ndim + variable.is_text
        if rank > MAX_HDF5_RANK:
            return f"its {rank} dimensions exceed the maximum of HDF5 ({MAX_HDF5_RANK})"
        names = [axis.name for axis in presented.geometry.axes]
        if None in names:
            return "not all of its dimensions have a name"
        for name in names:
            if name is not None and (names.count(name) > 1 or not _is_valid_name(name)):
                return f"{short_repr(name)} is not a valid name of a single dimension in netCDF"
        if presented.name in names and array.ndim > 1:
            return f"the array and one of its dimensions are named {presented.name!r}"
        return library_unsupported_reason()

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, axes = presented.array, presented.geometry.axes
        variable = _variable(array.dtype)
        assert variable is not None
        shape = (*array.shape, array.dtype.itemsize) if variable.is_text else array.shape
        reserved = RESERVED_ATTRIBUTES | NETCDF_ATTRIBUTES | set(variable.attributes)
        attributes = {name: value for name, value in array.attrs.asdict().items() if name not in reserved}
        for name in VALUE_ATTRIBUTES:
            if name in attributes:
                value = _value_of_type(attributes.pop(name), variable.dtype)
                if value is not None:
                    attributes[name] = value

        def describe(h5: Any, dataset: Any) -> None:
            for name, value in attribute_values(attributes):
                dataset.attrs[name] = _netcdf_value(value)
            for name, value in variable.attributes.items():
                dataset.attrs[name] = _netcdf_value(value)
            if "units" not in dataset.attrs and presented.name == getattr(
                axes[0] if axes else None, "name", None
            ):
                _set_unit(dataset, axes[0])
            for number, axis in enumerate(axes):
                _add_dimension(h5, dataset, number, axis, presented.name)
            if variable.is_text:
                name = f"string{array.dtype.itemsize}"
                while name in h5:
                    name += "_"
                _attach(dataset, len(axes), create_empty_scale(h5, name, array.dtype.itemsize), NO_VARIABLE)

        name = presented.name.replace("/", "_")
        return hdf5_content(name, shape, variable.dtype, ArraySegment(array), describe, track_order=True)


def _variable(dtype: np.dtype[Any]) -> _Variable | None:
    """Return how elements of a dtype are stored, or None if netCDF has no data type for them."""
    if dtype.isbuiltin == 2 or dtype.names is not None:
        return None
    if dtype.kind == "b":
        return _Variable(np.dtype("i1"), {"dtype": "bool"})
    if dtype.kind == "S":
        return _Variable(np.dtype("S1"), {}, is_text=True)
    if dtype.kind in "mM":
        times = integer_times(dtype)
        return None if times is None else _Variable(*times)
    if dtype.kind in "iu" or (dtype.kind == "f" and MIN_FLOAT_NBYTES <= dtype.itemsize <= 8):
        return _Variable(dtype)
    return None


def _is_valid_name(name: str) -> bool:
    return (
        name.isprintable() and 0 < len(name) <= MAX_NAME_LENGTH and name == name.strip() and "/" not in name
    )


def _value_of_type(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return an attribute as a number of a dtype, or None if it cannot be converted exactly."""
    if dtype.kind not in NUMBER_KINDS or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if isinstance(value, str) or dtype.kind == "f" else value
        converted = np.array(number).astype(dtype, casting="unsafe")[()] if dtype.kind == "f" else None
        if converted is None and int(number) == number:
            converted = np.array(int(number), dtype)[()]
    except (ValueError, OverflowError):
        return None
    return converted


def _netcdf_value(value: Any) -> Any:
    """Return the value of an attribute as netCDF programs expect it.

    netCDF has no boolean attributes. A text of fixed length has the type NC_CHAR, which all programs read. h5py stores
    a ``str`` as NC_STRING, which many programs do not read.
    """
    if isinstance(value, str) and value and "\0" not in value:
        encoded = value.encode()
        return np.array(encoded, import_library("h5py").string_dtype("utf-8", len(encoded)))
    if isinstance(value, bool):
        return np.int8(value)
    return value.astype(np.int8) if isinstance(value, np.ndarray) and value.dtype.kind == "b" else value


def _add_dimension(h5: Any, dataset: Any, number: int, axis: ArrayAxis, variable: str) -> None:
    assert axis.name is not None
    length = dataset.shape[number]
    if axis.name == variable:
        dataset.make_scale(axis.name)
        dataset.attrs["_Netcdf4Dimid"] = np.int32(number)
        return
    positions = axis_positions(axis, length)
    if positions is None:
        _attach(dataset, number, create_empty_scale(h5, axis.name, length), NO_VARIABLE)
        return
    scale = h5.create_dataset(axis.name, data=positions)
    _set_unit(scale, axis)
    _attach(dataset, number, scale, axis.name)


def _set_unit(variable: Any, axis: ArrayAxis) -> None:
    if axis.unit is not None:
        variable.attrs["units"] = _netcdf_value(axis.unit)


def _attach(dataset: Any, number: int, scale: Any, name: str) -> None:
    scale.make_scale(name % scale.shape[0] if name == NO_VARIABLE else name)
    scale.attrs["_Netcdf4Dimid"] = np.int32(number)
    dataset.dims[number].attach_scale(scale)
