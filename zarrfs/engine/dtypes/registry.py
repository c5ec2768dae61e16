"""The registry of data type families by v3 name. Other packages register families through the entry point group
``zarrfs.data_types``.
"""

from __future__ import annotations

from typing import Any

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily, no_numpy_dtype_error
from zarrfs.engine.dtypes.floats import COMPLEX, COMPLEX_NAMES, FLOAT_NAMES, FLOATS
from zarrfs.engine.dtypes.integers import (
    BOOLEAN,
    INTEGER_NAMES,
    INTEGERS,
    SMALL_INTEGER_NAMES,
    SMALL_INTEGERS,
)
from zarrfs.engine.dtypes.raw import FIXED_BYTES, FIXED_TEXT, RAW, RAW_NAME
from zarrfs.engine.dtypes.structs import STRUCT_NAMES, StructFamily
from zarrfs.engine.dtypes.times import TIME_NAMES, TIMES
from zarrfs.engine.dtypes.v2_only import EXTENDED, OBJECT
from zarrfs.engine.dtypes.variable import STRING, VARIABLE_BYTES
from zarrfs.engine.json_checks import named_configuration
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.plugins import find_plugin
from zarrfs.text import MAX_VALUE, safe_text, short_repr

__all__ = ["ENTRY_POINTS", "STRUCTS", "data_type_from_v3", "families", "family_of"]

ENTRY_POINTS = "zarrfs.data_types"

_ALIASES = {
    "complex_float32": "complex64",
    "complex_float64": "complex128",
    "datetime64": "numpy.datetime64",
    "timedelta64": "numpy.timedelta64",
    "variable_length_bytes": "bytes",
    "binary": "bytes",
}


def data_type_from_v3(value: Any, where: str) -> DataType:
    """Return the data type of the ``data_type`` of a v3 document.

    Raises UnsupportedError for a data type that is unknown or has no NumPy dtype, MetadataError for invalid metadata.
    """
    name, configuration = named_configuration(value, where, "data type")
    name = _ALIASES.get(name, name)
    family = _family(name)
    if family is None:
        if name.startswith("complex_float"):
            raise no_numpy_dtype_error(name, where)
        raise UnsupportedError(
            f'{where}: unknown data type "{safe_text(name, MAX_VALUE)}"; packages can add data types through '
            f"the entry point group {ENTRY_POINTS!r}"
        )
    return family.from_configuration(
        name, configuration, f"{where}/configuration" if configuration else where
    )


def family_of(data_type: DataType) -> DataTypeFamily:
    """Return the family of a data type. Raises UnsupportedError if it is unknown."""
    family = _family(data_type.name)
    if family is None:
        raise UnsupportedError(f"unknown data type {short_repr(data_type.name)}")
    return family


STRUCTS = StructFamily(data_type_from_v3, family_of)

_FAMILIES: dict[str, DataTypeFamily] = {
    "bool": BOOLEAN,
    **dict.fromkeys(INTEGER_NAMES, INTEGERS),
    **dict.fromkeys(SMALL_INTEGER_NAMES, SMALL_INTEGERS),
    **dict.fromkeys(FLOAT_NAMES, FLOATS),
    **dict.fromkeys(COMPLEX_NAMES, COMPLEX),
    **dict.fromkeys(TIME_NAMES, TIMES),
    **dict.fromkeys(STRUCT_NAMES, STRUCTS),
    **dict.fromkeys(("float96", "float128", "complex192", "complex256"), EXTENDED),
    "raw_bytes": RAW,
    "null_terminated_bytes": FIXED_BYTES,
    "fixed_length_utf32": FIXED_TEXT,
    "string": STRING,
    "bytes": VARIABLE_BYTES,
    "object": OBJECT,
}


def families() -> dict[str, DataTypeFamily]:
    """Return the families of the built-in data types, by the names of the data types in Zarr v3 metadata."""
    return dict(_FAMILIES)


def _family(name: str) -> DataTypeFamily | None:
    if name not in _FAMILIES:
        if RAW_NAME.fullmatch(name):
            return RAW
        third_party = find_plugin(ENTRY_POINTS, name, DataTypeFamily, MetadataError)
        if third_party is not None:
            _FAMILIES[name] = third_party
    return _FAMILIES.get(name)
