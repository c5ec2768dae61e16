"""What a data type is here, and the contract of a family of them.

A family knows one kind of data type (integers, floats, structs, ...): its v3 names and configuration, and
its fill values as v3 writes them. What v2 says differently is in ``v2.py``.
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
        name: the v3 identifier; a name that v3 does not have, where only v2 can store it (``object``).
        numpy: the dtype in memory. Its byte order is that of a v2 document; v3 documents give little-endian,
        and
            leave the order on disk to the ``bytes`` codec. ``object`` for elements of variable length.
        configuration: the v3 ``configuration`` object; empty where the name says all.
    """

    name: str
    numpy: np.dtype[Any]
    configuration: Mapping[str, Any] = field(default_factory=dict, hash=False)


class DataTypeFamily(ABC):
    """One kind of data type. Register others by the entry point group ``zarrfs.data_types``: v3 name ->
    instance.
    """

    @abstractmethod
    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        """Return the data type of that v3 name. ``where`` locates the configuration.

        Raises MetadataError that names the bad key, UnsupportedError where NumPy has nothing to hold it.
        """

    @abstractmethod
    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        """Return the fill value that a v3 document gives, as a scalar of ``data_type.numpy``, exact to the
        bit.

        Raises MetadataError.
        """

    @abstractmethod
    def fill_to_json(self, data_type: DataType, value: Any) -> Any:
        """Return the JSON that ``fill_from_json`` makes this scalar of."""

    def default_fill(self, data_type: DataType) -> Any:
        """Return the fill value for those who give none: zero in some sense."""
        return np.zeros((), data_type.numpy)[()]

    def to_json(self, data_type: DataType) -> Any:
        """Return the v3 ``data_type``: the name, or an object where there is a configuration."""
        if not data_type.configuration:
            return data_type.name
        return {"name": data_type.name, "configuration": dict(data_type.configuration)}


def without_configuration(name: str, configuration: Mapping[str, Any], where: str) -> None:
    """Raise MetadataError if the data type ``name``, which takes no configuration, is given one."""
    check_keys(configuration, where, ())


def no_numpy(name: str, where: str, need: str = "") -> UnsupportedError:
    """Return the error of a data type that is known but has no NumPy dtype."""
    return UnsupportedError(
        f'{where}: the data type "{name}" has no NumPy dtype' + (f"; {need}" if need else "")
    )
