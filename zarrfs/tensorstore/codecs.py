"""Codec chains that are only partly given: whether a stored one fits, and what a new one becomes.

"CodecChain" in the documentation of TensorStore's zarr3 driver: a codec may be a mere name, members of its
configuration may be missing, and so may the array -> bytes codec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.engine.codecs.base import ArrayArrayCodec, BytesBytesCodec
from zarrfs.engine.codecs.registry import ALIASES, codec_class
from zarrfs.engine.dtypes import DataType, data_type_from_numpy
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["chain_from_json", "check_chain", "completed", "is_sharded", "merged_chains", "sharding_shape"]

Entry = dict[str, Any]
Chain = list[Entry]

SHARDING = "sharding_indexed"

USUAL_INDEX: Chain = [{"name": "bytes", "configuration": {}}, {"name": "crc32c", "configuration": {}}]
CHAINS = ("codecs", "index_codecs")
"""Members of a configuration that are chains themselves."""


def chain_from_json(value: Any, where: str) -> Chain:
    """Return a chain as objects with ``name`` and ``configuration``. Raises MetadataError that says where."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise MetadataError(f"{where}: expected a list of codecs, found {value!r}")
    chain: Chain = []
    for position, given in enumerate(value):
        entry: Any = {"name": given} if isinstance(given, str) else given
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise MetadataError(f"{where}/{position}: expected a codec or its name, found {given!r}")
        configuration = entry.get("configuration", {})
        if not isinstance(configuration, Mapping):
            raise MetadataError(
                f"{where}/{position}/configuration: expected an object, found {configuration!r}"
            )
        name = str(ALIASES.get(entry["name"], entry["name"]))
        known = codec_class(name)
        if known is None:
            raise UnsupportedError(f"{where}/{position}: codec {name!r} is not known here")
        options = dict(configuration)
        for key in CHAINS:
            if name == SHARDING and key in options:
                options[key] = chain_from_json(options[key], f"{where}/{position}/{key}")
        chain.append({"name": name, "configuration": options})
    if [_kind(entry) for entry in chain] != sorted(_kind(entry) for entry in chain):
        names = ", ".join(entry["name"] for entry in chain)
        raise MetadataError(f"{where}: codecs of arrays come first and codecs of bytes last, found {names}")
    if sum(_kind(entry) == 1 for entry in chain) > 1:
        raise MetadataError(f"{where}: more than one codec makes bytes of arrays")
    return chain


def _kind(entry: Entry) -> int:
    known = codec_class(entry["name"])
    assert known is not None
    return 0 if issubclass(known, ArrayArrayCodec) else 2 if issubclass(known, BytesBytesCodec) else 1


def _parts(chain: Chain) -> tuple[Chain, Entry | None, Chain]:
    first, middle, last = ([entry for entry in chain if _kind(entry) == kind] for kind in range(3))
    return [e for e in first if not _is_identity(e)], middle[0] if middle else None, last


def _is_identity(entry: Entry) -> bool:
    if entry["name"] != "transpose":
        return False
    order = entry["configuration"].get("order")
    return order == "C" or (isinstance(order, list | tuple) and list(order) == list(range(len(order))))


def is_sharded(chain: Chain) -> bool:
    """Whether chunks are made of smaller ones."""
    return any(entry["name"] == SHARDING for entry in chain)


def sharding_shape(chain: Chain) -> tuple[int, ...] | None:
    """Return the innermost shape of inner chunks that is given."""
    for entry in chain:
        if entry["name"] == SHARDING:
            inner = sharding_shape(entry["configuration"].get("codecs", []))
            shape = entry["configuration"].get("chunk_shape")
            return inner or (None if shape is None else tuple(shape))
    return None


def check_chain(wanted: Chain, stored: Chain, where: str) -> None:
    """Raise MetadataError unless the stored chain is one of those that ``wanted`` describes."""
    for kind, one, other in zip(
        ("array -> array", None, "bytes -> bytes"), _parts(wanted), _parts(stored), strict=True
    ):
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                names = [[entry["name"] for entry in part] for part in (one, other)]
                raise MetadataError(
                    f"{where}: the {kind} codecs asked for are {names[0]}, stored are {names[1]}"
                )
            for first, second in zip(one, other, strict=True):
                _check_entry(first, second, where)
        elif isinstance(one, dict):
            assert isinstance(other, dict)
            _check_entry(one, other, where)


def _check_entry(wanted: Entry, stored: Entry, where: str) -> None:
    if wanted["name"] != stored["name"]:
        raise MetadataError(f"{where}: codec {wanted['name']!r} is asked for, {stored['name']!r} is stored")
    for key, value in wanted["configuration"].items():
        found = stored["configuration"].get(key)
        place = f"{where}/{wanted['name']}/{key}"
        if wanted["name"] == SHARDING and key in CHAINS:
            check_chain(value, found or [], place)
            continue
        if wanted["name"] == "transpose" and isinstance(found, list | tuple):
            value = _order(value, len(found))
            found = list(found)
        if value != found:
            raise MetadataError(f"{place}: {value!r} is asked for, {found!r} is stored")


def _order(value: Any, rank: int) -> Any:
    if value == "C":
        return list(range(rank))
    if value == "F":
        return list(range(rank))[::-1]
    return list(value) if isinstance(value, list | tuple) else value


def merged_chains(one: Chain | None, other: Chain | None, where: str) -> Chain | None:
    """Return the chain that both describe. Raises MetadataError where they contradict each other."""
    if one is None or other is None:
        return other if one is None else one
    merged: list[Any] = []
    for first, second in zip(_parts(one), _parts(other), strict=True):
        if isinstance(first, list) and isinstance(second, list):
            if len(first) != len(second):
                names = [[entry["name"] for entry in chain] for chain in (one, other)]
                raise MetadataError(f"{where}: {names[0]} are asked for, and {names[1]} too")
            merged += [_merged_entries(a, b, where) for a, b in zip(first, second, strict=True)]
        elif first is None or second is None:
            merged += [entry for entry in (first, second) if entry is not None]
        else:
            merged.append(_merged_entries(first, second, where))  # type: ignore[arg-type]
    return merged


def _merged_entries(one: Entry, other: Entry, where: str) -> Entry:
    if one["name"] != other["name"]:
        raise MetadataError(f"{where}: codec {one['name']!r} is asked for, and {other['name']!r} too")
    options = dict(one["configuration"])
    for key, value in other["configuration"].items():
        if key not in options:
            options[key] = value
        elif one["name"] == SHARDING and key in CHAINS:
            options[key] = merged_chains(options[key], value, f"{where}/{one['name']}/{key}")
        elif options[key] != value:
            raise MetadataError(
                f"{where}/{one['name']}/{key}: {options[key]!r} is asked for, and {value!r} too"
            )
    return {"name": one["name"], "configuration": options}


# -- new chains ------------------------------------------------------------------------------------------------


def completed(
    chain: Chain | None,
    data_type: DataType,
    read_shape: tuple[int, ...],
    write_shape: tuple[int, ...],
    inner_order: tuple[int, ...] | None,
) -> Chain:
    """Return the chain of a new array with what was left open chosen as TensorStore chooses it: no compression, and
    shards where what is written as one is larger than what is read as one.
    """
    if read_shape != write_shape and not is_sharded(chain or []):
        chain = [{"name": SHARDING, "configuration": {} if chain is None else {"codecs": chain}}]
    return _completed(chain, data_type, read_shape, inner_order)


def _completed(
    chain: Chain | None, data_type: DataType, read_shape: tuple[int, ...], inner_order: tuple[int, ...] | None
) -> Chain:
    before, middle, after = _parts(chain or [])
    rank = len(read_shape)
    if middle is not None and middle["name"] == SHARDING:
        options = dict(middle["configuration"])
        options.setdefault("chunk_shape", list(read_shape))
        options["codecs"] = _completed(options.get("codecs"), data_type, read_shape, inner_order)
        index = data_type_from_numpy("uint64")
        options["index_codecs"] = [
            _completed_bytes(entry, index) for entry in options.get("index_codecs", USUAL_INDEX)
        ]
        options.setdefault("index_location", "end")
        middle = {"name": SHARDING, "configuration": options}
    else:
        if inner_order is not None and inner_order != tuple(range(rank)) and chain is None:
            before = [{"name": "transpose", "configuration": {"order": list(inner_order)}}]
        middle = _completed_bytes(middle, data_type)
    before = [_completed_transpose(entry, rank) for entry in before]
    itemsize = 1 if data_type.numpy.hasobject else data_type.numpy.itemsize
    # What another codec has made has no elements to shuffle.
    sizes = [itemsize, *(None for _ in after)]
    return [
        *before,
        middle,
        *(_completed_compressor(entry, size) for entry, size in zip(after, sizes, strict=False)),
    ]


def _completed_transpose(entry: Entry, rank: int) -> Entry:
    if entry["name"] != "transpose":
        return entry
    order = _order(entry["configuration"].get("order", "C"), rank)
    return {"name": "transpose", "configuration": {"order": order}}


def _completed_bytes(entry: Entry | None, data_type: DataType) -> Entry:
    if entry is None:
        if data_type.numpy.hasobject:
            return {"name": "vlen-utf8" if data_type.name == "string" else "vlen-bytes"}
        entry = {"name": "bytes", "configuration": {}}
    if entry["name"] == "bytes" and not data_type.numpy.hasobject:
        if data_type.numpy.itemsize == 1:
            return {"name": "bytes"}
        return {"name": "bytes", "configuration": {"endian": "little", **entry["configuration"]}}
    return entry if entry["configuration"] else {"name": entry["name"]}


def _completed_compressor(entry: Entry, itemsize: int | None) -> Entry:
    usual: dict[str, dict[str, Any]] = {
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
    if entry["name"] not in usual and not entry["configuration"]:
        return {"name": entry["name"]}
    return {
        "name": entry["name"],
        "configuration": {**usual.get(entry["name"], {}), **entry["configuration"]},
    }
