"""What an array or group is, as plain values that JSON can hold: for ``zarrfs info``, the mount and the viewer.

Only what metadata say; counting chunks costs a listing and is the caller's to ask for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.nodes.protocols import ArrayNode, GroupNode

__all__ = [
    "Info",
    "array_facts",
    "array_summary",
    "complete_array_summary",
    "complete_group_summary",
    "group_facts",
    "group_summary",
    "json_safe",
]


class Info(dict[str, Any]):
    """The facts of a node, by name; shown as a table of two columns."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in self.items() if value is not None)


PLAIN_TYPES = frozenset((str, int, bool, type(None)))


def array_summary(array: ArrayNode) -> dict[str, Any]:
    """Return the facts of an array."""
    return {**array_facts(array), "attributes": json_safe(array.attrs.asdict())}


def array_facts(array: ArrayNode) -> dict[str, Any]:
    """Return the facts of an array, without its user attributes, which may be large."""
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
    """Return the facts of a group."""
    return {**group_facts(group), "attributes": json_safe(group.attrs.asdict())}


def group_facts(group: GroupNode) -> dict[str, Any]:
    """Return the facts of a group, without its user attributes, which may be large."""
    return {"kind": "group", "path": group.name, "zarr_format": group.zarr_format}


def complete_array_summary(array: ArrayNode) -> dict[str, Any]:
    """Return the facts of an array, and what is stored of it. Costs a listing."""
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
    """Return the facts of a group, and how many arrays and groups are below it. Costs a look at all of them."""
    arrays = groups = 0
    for _, node in group.walk():
        if hasattr(node, "shape"):
            arrays += 1
        else:
            groups += 1
    return {**group_summary(group), "members": arrays + groups, "arrays": arrays, "groups": groups}


def dtype_text(dtype: np.dtype[Any]) -> Any:
    """Return a dtype as NumPy writes it (``"<u2"``), the list of fields of a structured one, or the name of one of
    another package (``"bfloat16"``), which are all ``"<V2"`` to NumPy.
    """
    if dtype.names:
        return json_safe(dtype.descr)
    return dtype.name if dtype.str[1] == "V" and dtype.type is not np.void else dtype.str


def json_safe(value: Any) -> Any:
    """Return the value with all that JSON has no words for in those of Zarr v3 ("NaN", "Infinity")."""
    if type(value) in PLAIN_TYPES:  # most values of large attributes
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
