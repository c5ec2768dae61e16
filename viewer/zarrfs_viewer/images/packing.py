"""Packed values of the CF conventions, as netCDF, xarray and GDAL store them: ``_FillValue``, ``missing_value``,
``scale_factor``, ``add_offset`` and ``_Unsigned``. This is the only module that knows these attributes.

See sections 2.5.1 and 8.1 of the CF conventions. The data types are those of ``xarray.open_dataset``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.text import short_repr

__all__ = ["Packing", "find_packing", "unit_of_values"]

MAX_UNIT_LENGTH = 40
"""A longer text is a description and not a unit."""


@dataclass(frozen=True, eq=False)
class Packing:
    """How the values of an array are stored: ``value = stored * scale + offset``, with NaN for ``missing`` values.

    ``stored_dtype`` is the data type in the store, ``dtype`` that of the values: float64, or float32 where it is exact.
    ``missing`` are values of ``stored_dtype``. With ``is_unsigned`` the stored integers are unsigned in spite of their
    data type.
    """

    stored_dtype: np.dtype[Any]
    dtype: np.dtype[Any]
    scale: float = 1.0
    offset: float = 0.0
    missing: tuple[Any, ...] = ()
    is_unsigned: bool = False

    @property
    def is_scaled(self) -> bool:
        """Whether stored numbers differ from the values."""
        return self.scale != 1 or self.offset != 0

    def unpack(self, stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of stored numbers as a new array."""
        is_missing = [stored == value for value in self.missing]
        if self.is_unsigned:
            stored = stored.view(stored.dtype.str.replace("i", "u"))
        values: npt.NDArray[Any] = np.array(stored, self.dtype)
        if self.scale != 1:
            values *= self.scale
        if self.offset != 0:
            values += self.offset
        for mask in is_missing:
            values[mask] = np.nan
        return values

    def stored_number(self, value: float) -> Any:
        """Return the stored number of a value, as an int; None if several are possible or it is the value itself."""
        if self.stored_dtype.kind not in "iu":
            return None
        if math.isnan(value):
            return self.missing[0].item() if len(self.missing) == 1 else None
        if not self.is_scaled:
            return None
        number = (value - self.offset) / self.scale
        if not abs(number) < 1 << 53:
            return None
        return round(number) if abs(number - round(number)) < 1e-3 else None

    def exact(self, value: Any) -> Any:
        """Return a value as an int if it is an integer that is stored without scaling."""
        is_number = self.stored_dtype.kind in "iu" and not self.is_scaled and not math.isnan(value)
        return int(value) if is_number else value

    def summary(self) -> dict[str, str]:
        """Return the properties by the names of their attributes."""
        found = {"stored as": self.stored_dtype.name}
        if self.is_unsigned:
            found["_Unsigned"] = "true"
        if self.is_scaled:
            found |= {"scale_factor": f"{self.scale:.15g}", "add_offset": f"{self.offset:.15g}"}
        if self.missing:
            found["missing"] = ", ".join(short_repr(value.item()) for value in self.missing)
        return found


def find_packing(array: Any, fill_may_be_missing: bool) -> Packing | None:
    """Return the packing of the values of an array, or None if they are stored as they are.

    ``fill_may_be_missing``: in Zarr v2, xarray stores the missing value as ``fill_value``. This is assumed of arrays
    that have the dimension names of xarray, except for an unscaled 0, which is the default of other writers.
    Attributes that are no numbers are ignored.
    """
    attributes: Mapping[str, Any] = getattr(array, "attrs", {})
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        return None
    scale = _number(attributes.get("scale_factor"))
    offset = _number(attributes.get("add_offset"))
    scale, offset = scale or 1.0, offset or 0.0
    is_scaled = scale != 1 or offset != 0
    is_unsigned = dtype.kind == "i" and str(attributes.get("_Unsigned")).casefold() == "true"
    missing = _missing_values(attributes, dtype)
    if fill_may_be_missing and _is_of_xarray(array, attributes):
        fill = array.fill_value
        if fill is not None and (is_scaled or fill != 0):
            missing += (np.asarray(fill, dtype)[()],)
    missing = tuple({value.item(): value for value in missing if value == value}.values())
    if not (is_scaled or missing or is_unsigned):
        return None
    is_small = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    unpacked = np.dtype(np.float32 if is_small and not is_scaled else np.float64)
    return Packing(dtype, unpacked, scale, offset, missing, is_unsigned)


def unit_of_values(array: Any) -> str | None:
    """Return the attribute ``units`` of an array if it is a text."""
    unit = getattr(array, "attrs", {}).get("units")
    return (
        unit if isinstance(unit, str) and 0 < len(unit.strip()) <= MAX_UNIT_LENGTH and unit != "1" else None
    )


def _number(value: Any) -> float | None:
    """Return a finite number, or the only number of a list."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _missing_values(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the missing values that attributes declare, as scalars of ``dtype``."""
    if not {"_FillValue", "missing_value"} & attributes.keys():
        return ()
    from zarrfs.tools.copying.conventions import decode_missing  # the engine takes long to import

    found = []
    for name in ("_FillValue", "missing_value"):
        declared = attributes.get(name)
        for value in declared if isinstance(declared, list) else [declared]:
            if dtype.kind in "iu" and isinstance(value, float) and value.is_integer():
                value = int(value)
            decoded = decode_missing(value, dtype)
            if decoded is not None:
                found.append(decoded)
    return tuple(found)


def _is_of_xarray(array: Any, attributes: Mapping[str, Any]) -> bool:
    """Return whether xarray treats the fill value of an array as missing."""
    from zarrfs.engine.formats import api as formats

    if "_ARRAY_DIMENSIONS" not in attributes or not hasattr(array, "zarr_format"):
        return False
    spec = getattr(array, "spec", None)
    return (
        formats.features(array.zarr_format).fill_is_missing
        and spec is not None
        and spec.fill_value is not None
    )
