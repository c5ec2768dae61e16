"""Partial codec chains: checking a stored chain against one, merging two, and completing one for a new array.

See "CodecChain" in the documentation of TensorStore's zarr3 driver. A codec may be given by name only, its
configuration may be incomplete, and the array -> bytes codec may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.engine.codecs.base import ArrayArrayCodec, BytesBytesCodec
from zarrfs.engine.codecs.registry import ALIASES, codec_class
from zarrfs.engine.dtypes import DataType, data_type_from_numpy
from zarrfs.engine.json_checks import expect_object, expect_shape
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import short_repr

__all__ = ["chain_from_json", "check_chain", "complete_chain", "is_sharded", "merge_chains", "sharding_shape"]

Entry = dict[str, Any]
Chain = list[Entry]

SHARDING = "sharding_indexed"

DEFAULT_INDEX_CODECS: Chain = [
    {"name": "bytes", "configuration": {}},
    {"name": "crc32c", "configuration": {}},
]
CHAIN_MEMBERS = ("codecs", "index_codecs")
"""Configuration members of the sharding codec that are codec chains."""


def chain_from_json(value: Any, where: str) -> Chain:
    """Return a chain as objects with ``name`` and ``configuration``. Raises MetadataError with the JSON path
    ``where``.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise MetadataError(f"{where}: expected a list of codecs, found {short_repr(value)}")
    chain: Chain = []
    for position, given in enumerate(value):
        entry: Any = {"name": given} if isinstance(given, str) else given
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise MetadataError(
                f"{where}/{position}: expected a codec or its name, found {short_repr(given)}"
            )
        configuration = entry.get("configuration", {})
        configuration = expect_object(configuration, f"{where}/{position}/configuration")
        name = str(ALIASES.get(entry["name"], entry["name"]))
        codec_type = codec_class(name)
        if codec_type is None:
            raise UnsupportedError(f"{where}/{position}: codec {short_repr(name)} is not supported")
        options = dict(configuration)
        for key in CHAIN_MEMBERS:
            if name == SHARDING and key in options:
                options[key] = chain_from_json(options[key], f"{where}/{position}/{key}")
        chain.append({"name": name, "configuration": options})
    if [_kind(entry) for entry in chain] != sorted(_kind(entry) for entry in chain):
        names = ", ".join(entry["name"] for entry in chain)
        raise MetadataError(
            f"{where}: expected array -> array codecs first and bytes -> bytes codecs last, found {names}"
        )
    if sum(_kind(entry) == 1 for entry in chain) > 1:
        raise MetadataError(f"{where}: found more than one array -> bytes codec")
    return chain


def _kind(entry: Entry) -> int:
    codec_type = codec_class(entry["name"])
    assert codec_type is not None
    return (
        0 if issubclass(codec_type, ArrayArrayCodec) else 2 if issubclass(codec_type, BytesBytesCodec) else 1
    )


def _split_chain(chain: Chain) -> tuple[Chain, Entry | None, Chain]:
    first, serializer, last = ([entry for entry in chain if _kind(entry) == kind] for kind in range(3))
    return [e for e in first if not _is_identity(e)], serializer[0] if serializer else None, last


def _is_identity(entry: Entry) -> bool:
    if entry["name"] != "transpose":
        return False
    order = entry["configuration"].get("order")
    return order == "C" or (isinstance(order, list | tuple) and list(order) == list(range(len(order))))


def is_sharded(chain: Chain) -> bool:
    """Return whether a chain contains the sharding codec."""
    return any(entry["name"] == SHARDING for entry in chain)


def sharding_shape(chain: Chain) -> tuple[int, ...] | None:
    """Return the innermost ``chunk_shape`` that a chain specifies; None if it has none."""
    for entry in chain:
        if entry["name"] == SHARDING:
            inner = sharding_shape(entry["configuration"].get("codecs", []))
            shape = entry["configuration"].get("chunk_shape")
            return inner or (None if shape is None else expect_shape(shape, "codecs/chunk_shape"))
    return None


def check_chain(expected: Chain, stored: Chain, where: str) -> None:
    """Raise MetadataError unless the stored chain matches the partial chain ``expected``."""
    for kind, one, other in zip(
        ("array -> array", None, "bytes -> bytes"), _split_chain(expected), _split_chain(stored), strict=True
    ):
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                names = [[entry["name"] for entry in part] for part in (one, other)]
                raise MetadataError(f"{where}: expected the {kind} codecs {names[0]}, found {names[1]}")
            for first, second in zip(one, other, strict=True):
                _check_entry(first, second, where)
        elif isinstance(one, dict):
            assert isinstance(other, dict)
            _check_entry(one, other, where)


def _check_entry(expected: Entry, stored: Entry, where: str) -> None:
    if expected["name"] != stored["name"]:
        raise MetadataError(
            f"{where}: expected codec {short_repr(expected['name'])}, found {short_repr(stored['name'])}"
        )
    for key, value in expected["configuration"].items():
        actual = stored["configuration"].get(key)
        path = f"{where}/{expected['name']}/{key}"
        if expected["name"] == SHARDING and key in CHAIN_MEMBERS:
            check_chain(value, actual or [], path)
            continue
        if expected["name"] == "transpose" and isinstance(actual, list | tuple):
            value = _order(value, len(actual))
            actual = list(actual)
        if value != actual:
            raise MetadataError(f"{path}: expected {short_repr(value)}, found {short_repr(actual)}")


def _order(value: Any, rank: int) -> Any:
    if value == "C":
        return list(range(rank))
    if value == "F":
        return list(range(rank))[::-1]
    return list(value) if isinstance(value, list | tuple) else value


def merge_chains(one: Chain | None, other: Chain | None, where: str) -> Chain | None:
    """Return the chain that satisfies both partial chains. Raises MetadataError if they conflict."""
    if one is None or other is None:
        return other if one is None else one
    result: list[Any] = []
    for first, second in zip(_split_chain(one), _split_chain(other), strict=True):
        if isinstance(first, list) and isinstance(second, list):
            if len(first) != len(second):
                names = [[entry["name"] for entry in chain] for chain in (one, other)]
                raise MetadataError(f"{where}: conflicting codecs {names[0]} and {names[1]}")
            result += [_merge_entries(a, b, where) for a, b in zip(first, second, strict=True)]
        elif first is None or second is None:
            result += [entry for entry in (first, second) if entry is not None]
        else:
            result.append(_merge_entries(first, second, where))  # type: ignore[arg-type]
    return result


def _merge_entries(one: Entry, other: Entry, where: str) -> Entry:
    if one["name"] != other["name"]:
        raise MetadataError(
            f"{where}: conflicting codecs {short_repr(one['name'])} and {short_repr(other['name'])}"
        )
    options = dict(one["configuration"])
    for key, value in other["configuration"].items():
        if key not in options:
            options[key] = value
        elif one["name"] == SHARDING and key in CHAIN_MEMBERS:
            options[key] = merge_chains(options[key], value, f"{where}/{one['name']}/{key}")
        elif options[key] != value:
            raise MetadataError(
                f"{where}/{one['name']}/{key}: conflicting values {short_repr(options[key])} and {short_repr(value)}"
            )
    return {"name": one["name"], "configuration": options}


# -- new chains ------------------------------------------------------------------------------------------------


def complete_chain(
    chain: Chain | None,
    data_type: DataType,
    read_shape: tuple[int, ...],
    write_shape: tuple[int, ...],
    inner_order: tuple[int, ...] | None,
) -> Chain:
    """Return the complete chain of a new array, with the defaults of TensorStore: no compression, and sharding if the
    write chunk shape differs from the read chunk shape.
    """
    if read_shape != write_shape and not is_sharded(chain or []):
        chain = [{"name": SHARDING, "configuration": {} if chain is None else {"codecs": chain}}]
    return _complete_inner_chain(chain, data_type, read_shape, inner_order)


def _complete_inner_chain(
    chain: Chain | None, data_type: DataType, read_shape: tuple[int, ...], inner_order: tuple[int, ...] | None
) -> Chain:
    array_codecs, serializer, bytes_codecs = _split_chain(chain or [])
    rank = len(read_shape)
    if serializer is not None and serializer["name"] == SHARDING:
        options = dict(serializer["configuration"])
        options.setdefault("chunk_shape", list(read_shape))
        options["codecs"] = _complete_inner_chain(options.get("codecs"), data_type, read_shape, inner_order)
        index = data_type_from_numpy("uint64")
        options["index_codecs"] = [
            _complete_serializer(entry, index) for entry in options.get("index_codecs", DEFAULT_INDEX_CODECS)
        ]
        options.setdefault("index_location", "end")
        serializer = {"name": SHARDING, "configuration": options}
    else:
        if inner_order is not None and inner_order != tuple(range(rank)) and chain is None:
            array_codecs = [{"name": "transpose", "configuration": {"order": list(inner_order)}}]
        serializer = _complete_serializer(serializer, data_type)
    array_codecs = [_complete_transpose(entry, rank) for entry in array_codecs]
    itemsize = 1 if data_type.numpy.hasobject else data_type.numpy.itemsize
    # Only the first bytes -> bytes codec sees the elements of the array. Later ones have none to shuffle.
    sizes = [itemsize, *(None for _ in bytes_codecs)]
    return [
        *array_codecs,
        serializer,
        *(_complete_compressor(entry, size) for entry, size in zip(bytes_codecs, sizes, strict=False)),
    ]


def _complete_transpose(entry: Entry, rank: int) -> Entry:
    if entry["name"] != "transpose":
        return entry
    order = _order(entry["configuration"].get("order", "C"), rank)
    return {"name": "transpose", "configuration": {"order": order}}


def _complete_serializer(entry: Entry | None, data_type: DataType) -> Entry:
    if entry is None:
        if data_type.numpy.hasobject:
            return {"name": "vlen-utf8" if data_type.name == "string" else "vlen-bytes"}
        entry = {"name": "bytes", "configuration": {}}
    if entry["name"] == "bytes" and not data_type.numpy.hasobject:
        if data_type.numpy.itemsize == 1:
            return {"name": "bytes"}
        return {"name": "bytes", "configuration": {"endian": "little", **entry["configuration"]}}
    return entry if entry["configuration"] else {"name": entry["name"]}


def _complete_compressor(entry: Entry, itemsize: int | None) -> Entry:
    defaults: dict[str, dict[str, Any]] = {
        "gzip": {"level": 6},
        "zstd": {"level": 3, "checksum": False},
        "blosc": {
            "cname": "lz4",
            "clevel": 5,
            "shuffle": "noshuffle" if itemsize is None else "bitshuffle" if itemsize == 1 else "shuffle",
            "typesize": min(itemsize or 1, 255),
            "blocksize": 0,
        },
    }
    if entry["name"] not in defaults and not entry["configuration"]:
        return {"name": entry["name"]}
    return {
        "name": entry["name"],
        "configuration": {**defaults.get(entry["name"], {}), **entry["configuration"]},
    }
