"""The properties of an array or a group as readable text, and the status of its OME-NGFF metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import zarrfs
from zarrfs_viewer.analysis.readout import format_bytes

if TYPE_CHECKING:
    from zarrfs.ngff import Report

__all__ = ["check_status", "compression", "node_summary", "stored_array_summary"]

BYTE_ORDERS = {"<": "little-endian", ">": "big-endian"}
SERIALIZERS = frozenset(("bytes", "vlen-utf8", "vlen-bytes"))
CONTAINERS = frozenset(("sharding_indexed", "n5_default"))
CHECKSUMS = frozenset(("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"))
LEVEL_NAMES = ("level", "clevel", "preset")
MAX_MESSAGES = 50
"""The maximum number of messages of the check in the summary. The tab Check lists all of them."""


def node_summary(node: zarrfs.Array | zarrfs.Group) -> dict[str, Any]:
    """Return the properties of a node by name, in the order in which they are displayed. Does not access the store."""
    if isinstance(node, zarrfs.Group):
        return {"Group": node.name, "Format": f"Zarr {node.zarr_format}"}
    from zarrfs.engine.hierarchy.summary import array_metadata_summary

    metadata = array_metadata_summary(node)
    summary: dict[str, Any] = {
        "Array": node.name,
        "Shape": _product(node.shape) or "scalar",
        "Dimensions": _names(metadata["dimension_names"]),
        "Units": _names(metadata["dimension_units"]),
        "Data type": _data_type(node.dtype, metadata),
        "Size": None if node.dtype.hasobject else format_bytes(node.nbytes),
        "Chunks": _grid(node.chunks),
        "Chunk size": _chunk_size(node),
        "Shards": None if node.shards is None else _grid(node.shards),
        "Fill value": _text(metadata["fill_value"]),
        "Memory order": "column-major (F)" if node.order == "F" else None,
        **compression(node),
        "Format": f"Zarr {metadata['zarr_format']}" if metadata["zarr_format"] else None,
    }
    return {name: value for name, value in summary.items() if value not in (None, "", {})}


def compression(node: zarrfs.Array) -> dict[str, str]:
    """Return the codecs of an array by their purpose: filters, compression and checksums; for shards, those of the
    inner chunks.
    """
    from zarrfs.engine.codecs.base import ArrayArrayCodec
    from zarrfs.engine.codecs.registry import codec_class, codec_to_json

    codecs = [codec_to_json(codec) for codec in node.spec.codecs]
    while (inner := _inner_codecs(codecs)) is not None:
        codecs = inner
    purposes: dict[str, list[str]] = {"Filters": [], "Compression": [], "Checksum": []}
    for codec in codecs:
        name, configuration = _codec_name(codec), codec.get("configuration") or {}
        if name in SERIALIZERS:
            continue
        if name in CHECKSUMS:
            purpose = "Checksum"
        else:
            found = codec_class(codec["name"])
            is_filter = found is not None and issubclass(found, ArrayArrayCodec)
            purpose = "Filters" if is_filter else "Compression"
        purposes[purpose].append(_codec_text(name, configuration))
    purposes["Compression"] = purposes["Compression"] or ["none"]
    return {purpose: ", then ".join(texts) for purpose, texts in purposes.items() if texts}


def stored_array_summary(array: zarrfs.Array) -> dict[str, str]:
    """Return the stored chunks and bytes of an array. Lists its chunks and blocks. Raises ZarrError."""
    stored = array.nbytes_stored()
    parts = "chunks" if array.shards is None else "shards"
    summary = {
        f"Stored {parts}": f"{array.nshards_initialized:,} of {array.nshards:,}",
        "Stored size": format_bytes(stored),
    }
    if stored and not array.dtype.hasobject:
        summary["Compression ratio"] = f"{array.nbytes / stored:.2f}"
    return summary


def check_status(report: Report) -> dict[str, Any]:
    """Return the result of a check: one text if there is nothing to report, otherwise an object with the messages.
    Empty if the node has no OME-NGFF metadata.
    """
    if report.version is None:
        return {}
    result = "valid" if report.valid else "not valid"
    count = len(report.messages)
    if not count:
        return {"OME-NGFF": f"{report.version}, {result}"}
    messages = f"{count} message{'s' if count != 1 else ''}"
    details = {"Version": report.version, "Status": f"{result}, {messages}"}
    for number, message in enumerate(report.messages[:MAX_MESSAGES], start=1):
        details[f"Message {number}"] = f"{message.message} (at {message.pointer or '/'})"
    if count > MAX_MESSAGES:
        details["More"] = f"{count - MAX_MESSAGES} in the tab Check"
    return {"OME-NGFF": details}


def _product(lengths: Iterable[object]) -> str:
    return " x ".join(map(str, lengths))


def _grid(lengths: Iterable[int | tuple[int, ...]]) -> str:
    """Return the chunk lengths; of a rectilinear grid the shortest and the longest along each axis."""
    return _product(
        each
        if isinstance(each, int)
        else f"{min(each)}"
        if len(set(each)) == 1
        else f"({min(each)} to {max(each)})"
        for each in lengths
        if isinstance(each, int) or each
    )


def _chunk_size(array: zarrfs.Array) -> str | None:
    """Return the size of a decoded chunk of a regular grid."""
    lengths = [length for length in array.chunks if isinstance(length, int)]
    if array.dtype.hasobject or len(lengths) < array.ndim:
        return None
    return format_bytes(prod(lengths) * array.dtype.itemsize)


def _names(names: Any) -> str | None:
    if not names or not any(names):
        return None
    return " ".join("-" if name is None else str(name) for name in names)


def _data_type(dtype: np.dtype[Any], metadata: Mapping[str, Any]) -> Any:
    """Return the name of a data type, or the fields of a structured one."""
    if dtype.names is not None:
        return {name: _dtype_text(dtype[name]) for name in dtype.names}
    if dtype.hasobject or (dtype.kind == "V" and dtype.type is not np.void):
        return metadata["data_type"]
    return _dtype_text(dtype)


def _dtype_text(dtype: np.dtype[Any]) -> str:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return f"{_dtype_text(base)}, {_product(shape)}"
    if dtype.names is not None:
        return "record of " + ", ".join(dtype.names)
    if dtype.kind == "U":
        return f"text of up to {dtype.itemsize // 4} characters"
    if dtype.kind == "S":
        return f"bytes, up to {dtype.itemsize}"
    if dtype.kind == "V" and dtype.type is np.void:
        return f"{dtype.itemsize} raw bytes"
    order = BYTE_ORDERS.get(dtype.str[0], "") if dtype.str[0] == ">" else ""
    return f"{dtype.name}, {order}" if order else dtype.name


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, list):
        return ", ".join(_text(each) or "null" for each in value)
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _inner_codecs(codecs: list[Any]) -> list[Any] | None:
    """Return the codecs inside of a shard or of a block of N5, with the codecs around it; None if there are none."""
    for number, codec in enumerate(codecs):
        inner = (codec.get("configuration") or {}).get("codecs")
        if _codec_name(codec) in CONTAINERS and isinstance(inner, list):
            return [*codecs[:number], *inner, *codecs[number + 1 :]]
    return None


def _codec_name(codec: Mapping[str, Any]) -> str:
    return str(codec.get("name", "")).removeprefix("numcodecs.")


def _codec_text(name: str, configuration: Mapping[str, Any]) -> str:
    """Return a codec with the options that users choose: algorithm and level."""
    parts = [f"{name} ({configuration['cname']})" if "cname" in configuration else name]
    parts += [f"level {configuration[key]}" for key in LEVEL_NAMES if configuration.get(key) is not None]
    return ", ".join(parts)
