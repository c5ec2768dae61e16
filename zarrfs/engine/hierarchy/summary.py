"""Summaries of arrays and groups as JSON values, for ``zarrfs info``, the mount and the viewer.

Only the functions named ``complete_...`` access the store; the others use the metadata of the node alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.hierarchy.protocols import ArrayNode, GroupNode

__all__ = [
    "Info",
    "array_metadata_summary",
    "array_summary",
    "complete_array_summary",
    "complete_group_summary",
    "group_metadata_summary",
    "group_summary",
    "json_safe",
]


class Info(dict[str, Any]):
    """The summary of a node by names; its ``repr`` is a table of two columns."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in self.items() if value is not None)


JSON_SCALAR_TYPES = frozenset((str, int, bool, type(None)))


def array_summary(array: ArrayNode) -> dict[str, Any]:
    """Return the properties of an array, with its user attributes, as JSON values."""
    return {**array_metadata_summary(array), "attributes": json_safe(array.attrs.asdict())}


def array_metadata_summary(array: ArrayNode) -> dict[str, Any]:
    """Return the properties of an array as JSON values, without its user attributes, which may be large."""
    spec = array.spec
    return {
        "kind": "array",
        "path": array.name,
        "zarr_format": spec.zarr_format,
        "shape": list(array.shape),
        "dtype": dtype_text(array.dtype),
        "data_type": spec.data_type.name,
        "chunks": json_safe(array.chunks),
        "shards": json_safe(array.shards),
        "codecs": json_safe([codec_to_json(codec) for codec in spec.codecs]),
        "fill_value": json_safe(spec.fill_value),
        "order": array.order,
        "dimension_names": json_safe(array.dimension_names),
        "dimension_units": json_safe(spec.dimension_units),
        "nbytes": None if array.dtype.hasobject else array.nbytes,
    }


def group_summary(group: GroupNode) -> dict[str, Any]:
    """Return the properties of a group, with its user attributes, as JSON values."""
    return {**group_metadata_summary(group), "attributes": json_safe(group.attrs.asdict())}


def group_metadata_summary(group: GroupNode) -> dict[str, Any]:
    """Return the properties of a group as JSON values, without its user attributes, which may be large."""
    return {"kind": "group", "path": group.name, "zarr_format": group.zarr_format}


def complete_array_summary(array: ArrayNode) -> dict[str, Any]:
    """Return the summary of an array with its stored size and the number of stored chunks. Lists its keys."""
    stored = array.nbytes_stored()
    nbytes = None if array.dtype.hasobject else array.nbytes
    return {
        **array_summary(array),
        "nbytes_stored": stored,
        "storage_ratio": None if nbytes is None or not stored else round(nbytes / stored, 1),
        "chunks_initialized": array.nchunks_initialized,
        "chunks_total": array.nchunks,
    }


def complete_group_summary(group: GroupNode) -> dict[str, Any]:
    """Return the summary of a group with the number of arrays and groups below it. Reads the metadata of all."""
    arrays = groups = 0
    for _, node in group.walk():
        if hasattr(node, "shape"):
            arrays += 1
        else:
            groups += 1
    return {**group_summary(group), "members": arrays + groups, "arrays": arrays, "groups": groups}


def dtype_text(dtype: np.dtype[Any]) -> Any:
    """Return a dtype as a JSON value.

    The string of NumPy (``"<u2"``), the list of fields of a structured dtype, or the name of a dtype of another package
    (``"bfloat16"``), because the string of those is ``"<V2"``.
    """
    if dtype.names:
        return json_safe(dtype.descr)
    return dtype.name if dtype.str[1] == "V" and dtype.type is not np.void else dtype.str


def json_safe(value: Any) -> Any:
    """Return a value with everything that JSON cannot represent converted: floats to the strings of Zarr v3 ("NaN",
    "Infinity"), NumPy values to lists and numbers, bytes to Latin-1 text, other objects to their ``str``.
    """
    if type(value) in JSON_SCALAR_TYPES:  # most values of large attributes
        return value
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, np.void):
        return json_safe(list(value.item())) if value.dtype.names else list(value.tobytes())
    if isinstance(value, np.datetime64 | np.timedelta64):
        return "NaT" if np.isnat(value) else str(value)
    if isinstance(value, np.ndarray):
        return json_safe(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
        return json_safe(value) if not isinstance(value, np.generic) else str(value)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [json_safe(value.real), json_safe(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
