"""Data types of variable length: ``string`` and ``bytes`` of the zarr-extensions registry. The elements in memory are
Python objects.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily, check_no_configuration
from zarrfs.engine.dtypes.raw import bytes_from_json
from zarrfs.engine.json_checks import expect_string

__all__ = ["ELEMENT_TYPES", "STRING", "VARIABLE_BYTES"]


class StringFamily(DataTypeFamily):
    """``string``: ``str`` objects."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_no_configuration(name, configuration, where)
        return DataType("string", np.dtype(object))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return expect_string(value, where)

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return str(value)

    def default_fill(self, data_type: DataType) -> Any:
        return ""


class VariableBytesFamily(DataTypeFamily):
    """``bytes`` (also named ``variable_length_bytes`` and ``binary``): ``bytes`` objects."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_no_configuration(name, configuration, where)
        return DataType("bytes", np.dtype(object))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        return bytes_from_json(value, where)

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return base64.b64encode(bytes(value)).decode("ascii")

    def default_fill(self, data_type: DataType) -> Any:
        return b""


ELEMENT_TYPES: dict[str, type] = {"string": str, "bytes": bytes}
"""The types of the Python objects in memory, by the name of the data type."""

STRING = StringFamily()
VARIABLE_BYTES = VariableBytesFamily()
