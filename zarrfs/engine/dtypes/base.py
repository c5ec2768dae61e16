"""The model of a data type and the base class of data type families.

A family implements one kind of data type (integers, floats, structs, ...): its v3 names, its configuration, and its
fill values in v3 metadata. The conversion of v2 metadata is in ``v2.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zarrfs.engine.json_checks import check_keys
from zarrfs.errors import UnsupportedError

__all__ = ["DataType", "DataTypeFamily"]


@dataclass(frozen=True)
class DataType:
    """The type of an array's elements.

    Attributes:
        name: the v3 name, or a name of our own for a data type that only v2 can store (``object``).
        numpy: the dtype in memory. Its byte order is that of a v2 document. Data types of v3 documents are
            little-endian in memory; the ``bytes`` codec defines the stored byte order. ``object`` for elements of
            variable length.
        configuration: the v3 ``configuration`` object; empty if the name is sufficient.
    """

    name: str
    numpy: np.dtype[Any]
    configuration: Mapping[str, Any] = field(default_factory=dict, hash=False)


class DataTypeFamily(ABC):
    """The base class of data type families.

    Other packages register families through the entry point group ``zarrfs.data_types`` (v3 name -> instance).
    """

    @abstractmethod
    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        """Return the data type of a v3 name. ``where`` is the location of the configuration for messages.

        Raises MetadataError that names the invalid key, UnsupportedError if NumPy has no suitable dtype.
        """

    @abstractmethod
    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        """Return the fill value of a v3 document as a scalar of ``data_type.numpy``, with exactly the same bits.

        Raises MetadataError.
        """

    @abstractmethod
    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        """Return the fill value for a v3 document. ``fill_from_json`` returns an equal scalar for it."""

    def default_fill(self, data_type: DataType) -> Any:
        """Return the default fill value, by default zero."""
        return np.zeros((), data_type.numpy)[()]

    def to_json(self, data_type: DataType) -> Any:
        """Return the v3 ``data_type``: the name, or an object if there is a configuration."""
        if not data_type.configuration:
            return data_type.name
        return {"name": data_type.name, "configuration": dict(data_type.configuration)}


def check_no_configuration(name: str, configuration: Mapping[str, Any], where: str) -> None:
    """Raise MetadataError for any key in the configuration of the data type ``name``, which has none."""
    check_keys(configuration, where, ())


def no_numpy_dtype_error(name: str, where: str, advice: str = "") -> UnsupportedError:
    """Return the error for a known data type without a NumPy dtype."""
    return UnsupportedError(
        f'{where}: the data type "{name}" has no NumPy dtype' + (f"; {advice}" if advice else "")
    )
