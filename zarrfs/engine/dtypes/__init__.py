"""Data types: conversion of data types and fill values between the Zarr formats and NumPy.

``base.py`` contains the model, and there is one module per family of data types. ``registry.py`` maps the names of v3
to families, ``v2.py`` converts v2 metadata, and ``numpy_types.py`` converts NumPy dtypes.
"""

from __future__ import annotations

from typing import Any

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily
from zarrfs.engine.dtypes.numpy_types import data_type_from_numpy
from zarrfs.engine.dtypes.registry import ENTRY_POINTS, data_type_from_v3, family_of
from zarrfs.engine.dtypes.v2 import data_type_from_v2, data_type_to_v2, fill_from_v2, fill_to_v2
from zarrfs.engine.dtypes.variable import ELEMENT_TYPES

__all__ = [
    "ELEMENT_TYPES",
    "ENTRY_POINTS",
    "DataType",
    "DataTypeFamily",
    "data_type_from_numpy",
    "data_type_from_v2",
    "data_type_from_v3",
    "data_type_to_v2",
    "data_type_to_v3",
    "default_fill",
    "fill_from_v2",
    "fill_from_v3",
    "fill_to_v2",
    "fill_to_v3",
]


def data_type_to_v3(data_type: DataType) -> Any:
    """Return the ``data_type`` of a v3 document. Raises UnsupportedError if v3 has no such data type."""
    return family_of(data_type).to_json(data_type)


def fill_from_v3(data_type: DataType, value: Any, where: str) -> Any:
    """Return the fill value of a v3 document as a scalar of ``data_type.numpy``, with exactly the same bits.

    Raises MetadataError with the values that the data type allows.
    """
    return family_of(data_type).fill_from_json(data_type, value, where)


def fill_to_v3(data_type: DataType, value: Any) -> Any:
    """Return the ``fill_value`` of a v3 document."""
    return family_of(data_type).fill_to_json(data_type, value)


def default_fill(data_type: DataType) -> Any:
    """Return the default fill value: zero, false, an empty string or NaT."""
    return family_of(data_type).default_fill(data_type)
