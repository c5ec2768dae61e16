"""Bytes and text of fixed length: ``r*`` of the Zarr v3 core specification, ``fixed_length_utf32`` of the
zarr-extensions registry, and ``null_terminated_bytes`` and ``raw_bytes`` as written by zarr-python.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily, check_no_configuration
from zarrfs.engine.json_checks import check_keys, expect_integer, expect_string, unexpected_value
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import short_repr

__all__ = ["FIXED_BYTES", "FIXED_TEXT", "RAW", "RAW_NAME", "base64_to_bytes", "bytes_from_json"]

RAW_NAME = re.compile("r(0|[1-9][0-9]{0,11})", re.ASCII)

MAX_ITEMSIZE = 16 << 20
"""The largest size of an element in bytes. NumPy supports more. The limit prevents metadata from causing allocations of
gigabytes: the fill value alone is one element.
"""


def base64_to_bytes(text: str, where: str) -> bytes:
    """Return the bytes of standard base64 text. Raises MetadataError for other text."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MetadataError(f"{where}: expected base64 text, found {short_repr(text)}: {error}") from error


def bytes_from_json(value: Any, where: str) -> bytes:
    """Return the bytes of a list of integers 0 to 255 or of base64 text. Raises MetadataError for other values."""
    if isinstance(value, str):
        return base64_to_bytes(value, where)
    if isinstance(value, list | tuple):
        return bytes(expect_integer(byte, f"{where}/{index}", 0, 255) for index, byte in enumerate(value))
    raise unexpected_value(where, "a list of integers 0 to 255, or base64 text", value)


def _length(configuration: Mapping[str, Any], where: str, low: int) -> int:
    check_keys(configuration, where, ("length_bytes",))
    if "length_bytes" not in configuration:
        raise MetadataError(f'{where}: "length_bytes" is missing; expected the size of an element in bytes')
    length = expect_integer(configuration["length_bytes"], f"{where}/length_bytes", low, 2**31 - 1)
    if length > MAX_ITEMSIZE:
        raise UnsupportedError(
            f"{where}/length_bytes: elements of more than {MAX_ITEMSIZE} bytes are not supported, found {length}"
        )
    return length


class RawFamily(DataTypeFamily):
    """``r8``, ``r16``, ...: opaque bytes, NumPy's void. ``raw_bytes`` with ``length_bytes`` is an alias."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        if name == "raw_bytes":
            return self.of_length(_length(configuration, where, 1))
        check_no_configuration(name, configuration, where)
        bits = int(name[1:])
        if bits == 0 or bits % 8:
            raise UnsupportedError(
                f'{where}: "{name}" is not a data type: the number of bits must be a positive multiple of 8'
            )
        if bits > MAX_ITEMSIZE * 8:
            raise UnsupportedError(
                f'{where}: "{name}" has more than {MAX_ITEMSIZE} bytes, which are not supported'
            )
        return self.of_length(bits // 8)

    def of_length(self, length: int) -> DataType:
        """Return the data type of ``length`` bytes."""
        return DataType(f"r{length * 8}", np.dtype(f"V{length}"))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        raw = bytes_from_json(value, where)
        if len(raw) != data_type.numpy.itemsize:
            raise MetadataError(
                f"{where}: expected {data_type.numpy.itemsize} bytes for the data type {data_type.name}, "
                f"found {len(raw)}"
            )
        return np.void(raw)

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return list(np.asarray(value, data_type.numpy).tobytes())


class FixedBytesFamily(DataTypeFamily):
    """``null_terminated_bytes``: NumPy's ``S``, padded with NUL."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        return self.of_length(_length(configuration, where, 0))

    def of_length(self, length: int) -> DataType:
        """Return the data type of ``length`` bytes."""
        return DataType("null_terminated_bytes", np.dtype(f"S{length}"), {"length_bytes": length})

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        raw = bytes_from_json(value, where)
        if len(raw) > data_type.numpy.itemsize:
            raise MetadataError(
                f"{where}: expected at most {data_type.numpy.itemsize} bytes, found {len(raw)}"
            )
        return np.array(raw, data_type.numpy)[()]

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return base64.b64encode(bytes(value)).decode("ascii")


class FixedTextFamily(DataTypeFamily):
    """``fixed_length_utf32``: NumPy's ``U``, padded with NUL."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        length = _length(configuration, where, 0)
        if length % 4:
            raise unexpected_value(
                f"{where}/length_bytes", "a multiple of 4, the size of a character in bytes", length
            )
        return self.of_length(length // 4)

    def of_length(self, characters: int) -> DataType:
        """Return the data type of ``characters`` characters."""
        return DataType("fixed_length_utf32", np.dtype(f"<U{characters}"), {"length_bytes": characters * 4})

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        text = expect_string(value, where)
        if len(text) > data_type.numpy.itemsize // 4:
            raise MetadataError(
                f"{where}: expected at most {data_type.numpy.itemsize // 4} characters, found {len(text)}"
            )
        return np.array(text, data_type.numpy)[()]

    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        return str(value)


RAW = RawFamily()
FIXED_BYTES = FixedBytesFamily()
FIXED_TEXT = FixedTextFamily()
