"""Making nodes: what a user gives -> an ArraySpec or GroupSpec, with defaults chosen, written to the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from zarrfs.engine.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.chunk_grids import ChunkGrid, RegularGrid
from zarrfs.engine.chunk_keys import (
    ChunkKeyEncoding,
    DefaultKeys,
    Separator,
    V2Keys,
    chunk_key_encoding_from_json,
)
from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.codecs.v2 import chain_from_v2
from zarrfs.engine.dtypes import DataType, data_type_from_numpy, default_fill
from zarrfs.engine.formats import detect
from zarrfs.engine.hierarchy import delete_node
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeExistsError, NodeTypeError, UnsupportedError

__all__ = ["check_required", "create_ancestors", "create_array_node", "create_group_node", "guess_chunks"]

CHUNK_NBYTES = 1 << 20
"""What a chunk of guessed shape holds at most: quick to decode for a slice, large enough to be worth a request."""

SHARD_CHUNKS = 8
"""How many chunks a shard of guessed shape has along each dimension, at most."""

RAGGED = "array:"
"""What stands before the dtype of the arrays that are the elements of an array, as zarr-python 2 has it."""

SEPARATORS: dict[int | str, Separator] = {2: ".", "draft2019": "."}
"""What stands between the parts of a chunk key unless another is asked for, where it is not a slash."""

ORDERED_FORMATS: tuple[int | str, ...] = ("draft2019",)
"""Formats in which the byte order is part of the data type, and yet a codec's matter here."""

WRITABLE_FORMATS: tuple[int | str, ...] = (2, 3, "n5", "draft2019")


# -- groups ----------------------------------------------------------------------------------------------------


def create_group_node(
    store: Store, path: str, zarr_format: int | str, attributes: Mapping[str, Any], overwrite: bool
) -> GroupSpec:
    """Write a group and the groups on the way to it; return its spec."""
    _check_format(zarr_format)
    detect.check_path(store, path, zarr_format)
    _make_room(store, path, overwrite)
    create_ancestors(store, path, zarr_format)
    spec = detect.write_node(store, path, GroupSpec(zarr_format, dict(attributes)))
    if not isinstance(spec, GroupSpec):
        raise TypeError(f"{type(spec).__name__} came back for a group")
    return spec


def create_ancestors(store: Store, path: str, zarr_format: int | str) -> None:
    """Write the groups on the way to ``path`` that are not there. An array on the way is a NodeTypeError."""
    parts = path.split("/")[:-1] if path else []
    for depth in range(len(parts) + (1 if path else 0)):
        ancestor = "/".join(parts[:depth])
        kind = detect.read_kind(store, ancestor)
        if kind == "array":
            raise NodeTypeError(
                f"{store.url}: {ancestor or '/'!r} is an array, nothing can be created below it as {path!r}"
            )
        if kind is None:
            detect.write_node(store, ancestor, GroupSpec(zarr_format))


def _make_room(store: Store, path: str, overwrite: bool) -> None:
    kind = detect.read_kind(store, path)
    if kind is None:
        return
    if not overwrite:
        raise NodeExistsError(
            f"{store.url}: there is already {'an array' if kind == 'array' else 'a group'} at {path or '/'!r}; "
            "give overwrite=True to replace it with all that is below"
        )
    delete_node(store, path)


def _check_format(zarr_format: int | str) -> None:
    if zarr_format not in WRITABLE_FORMATS:
        raise UnsupportedError(
            f"zarr_format {zarr_format!r} cannot be written; expected one of {WRITABLE_FORMATS}"
        )


# -- arrays ----------------------------------------------------------------------------------------------------


def create_array_node(
    store: Store,
    path: str,
    cache: ChunkCache,
    *,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    data: Any = None,
    chunks: Any = "auto",
    shards: Any = None,
    codecs: Sequence[Any] | None = None,
    filters: Sequence[Any] | None = None,
    serializer: Any = "auto",
    compressors: Any = "auto",
    fill_value: Any = None,
    order: Literal["C", "F"] = "C",
    zarr_format: int | str = 3,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    dimension_separator: Separator | None = None,
    chunk_key_encoding: Any = None,
    overwrite: bool = False,
    write_empty_chunks: bool = False,
) -> Array:
    """Create an array and the groups on the way to it.

    Args:
        shape, dtype: what the array is; taken from ``data`` where that is given, which is then written. Elements of
            any length: ``str``, ``bytes``, ``"array:<i4"`` (ragged arrays; v2), or ``object`` with a filter that
            makes bytes of them (v2).
        chunks: chunk shape, or a number for all dimensions; -1 or None in it means the whole dimension; ``"auto"``
            or True chooses about a mebibyte, False or None makes one chunk.
        shards: shard shape, a multiple of the chunk shape, or ``"auto"``; None stores chunks on their own (v3).
        codecs: the whole chain of a v3 array as metadata or Codec objects; excludes the three that follow.
        filters: array->array codecs (v3), or numcodecs filters (v2).
        serializer: the array->bytes codec of a v3 array.
        compressors: bytes->bytes codecs, one or several; None for none. As v3 metadata
            (``{"name": "gzip", "configuration": {"level": 5}}``), v2 metadata (``{"id": "zlib", "level": 1}``), a name,
            or a numcodecs codec. By default Blosc with Zstandard and shuffling.
        fill_value: what unwritten elements read as; zero by default.
        order: the memory order within chunks; in v3 ``"F"`` adds a transpose codec.
        dimension_separator: ``"."`` or ``"/"`` between the parts of a chunk key; by default what the format says.
        zarr_format: 3, 2, ``"n5"``, or ``"draft2019"`` for the draft of June 2019.
        overwrite: delete a node that is there; otherwise that is a NodeExistsError.
        write_empty_chunks: store chunks that hold nothing but the fill value.
    """
    _check_format(zarr_format)
    detect.check_path(store, path, zarr_format)
    values = None if data is None else _values(data)
    if isinstance(dtype, str) and dtype.startswith(RAGGED):
        inner = data_type_from_numpy(dtype.removeprefix(RAGGED)).numpy
        filters = [*(filters or ()), {"id": "vlen-array", "dtype": inner.str}]
        dtype = object
    if dtype is None:
        dtype = "float64" if values is None else _dtype_of(data, values)
    data_type = data_type_from_numpy(dtype)
    lengths = _shape(shape, values)
    chunk_shape = _chunks(chunks, lengths, data_type, shards)
    shard_shape = _shards(shards, chunk_shape, lengths, zarr_format)
    fill = _fill(fill_value, data_type)
    if zarr_format == 2:
        chain = _v2_chain(data_type, order, filters, compressors, codecs, len(lengths))
        keys: ChunkKeyEncoding = V2Keys(dimension_separator or SEPARATORS[2])
    else:
        if isinstance(serializer, str) and serializer == "auto" and codecs is None:
            serializer = _serializer(data_type, zarr_format)
        chain = _v3_chain(data_type, order, codecs, filters, serializer, compressors, len(lengths))
        if shard_shape is not None:
            chain = _sharded(chain, chunk_shape)
        keys = _keys(chunk_key_encoding, dimension_separator, SEPARATORS.get(zarr_format, "/"))
    names = None if dimension_names is None else tuple(dimension_names)
    if names is not None and len(names) != len(lengths):
        raise MetadataError(f"{len(names)} dimension names for {len(lengths)} dimensions")
    grid: ChunkGrid = RegularGrid(shard_shape or chunk_shape)
    spec = ArraySpec(
        zarr_format,
        lengths,
        data_type,
        grid,
        keys,
        chain,
        fill,
        names,
        None,
        dict(attributes or {}),
        order,
        {},
    )
    spec = detect.adapted(spec)
    # All is checked before anything is changed in the store.
    detect.check_writable(spec)
    Array(store, path, spec, cache, False)
    _make_room(store, path, overwrite)
    create_ancestors(store, path, zarr_format)
    written = detect.write_node(store, path, spec)
    if not isinstance(written, ArraySpec):
        raise TypeError(f"{type(written).__name__} came back for an array")
    array = Array(store, path, written, cache, False, write_empty_chunks)
    if values is not None:
        array[...] = values
    return array


def _values(data: Any) -> Any:
    if hasattr(data, "shape") and hasattr(data, "dtype"):
        return data
    array = np.asarray(data)
    return array.astype(object) if array.dtype.kind == "U" else array


def _dtype_of(data: Any, values: Any) -> Any:
    """Return the dtype for data that come without one: strings of a list may be of any length."""
    is_text = values.dtype == object and data is not values and np.asarray(data).dtype.kind == "U"
    return str if is_text else values.dtype


def _shape(shape: int | Sequence[int] | None, values: Any) -> tuple[int, ...]:
    if shape is None:
        if values is None:
            raise MetadataError("an array needs a shape, or data to take it from")
        return tuple(int(n) for n in values.shape)
    lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in lengths):
        raise MetadataError(f"shape must be integers of at least 0, found {shape!r}")
    return tuple(int(n) for n in lengths)


def _chunks(chunks: Any, shape: tuple[int, ...], data_type: DataType, shards: Any) -> tuple[int, ...]:
    whole = tuple(max(1, n) for n in shape)
    if chunks is None or chunks is False:
        return whole
    if chunks is True or (isinstance(chunks, str) and chunks == "auto"):
        guessed = guess_chunks(shape, 16 if data_type.numpy.hasobject else data_type.numpy.itemsize)
        if isinstance(shards, tuple | list) and len(shards) == len(guessed):
            return tuple(_divisor_below(shard, n) for shard, n in zip(shards, guessed, strict=True))
        return guessed
    lengths = (chunks,) * len(shape) if isinstance(chunks, int | np.integer) else tuple(chunks)
    if len(lengths) != len(shape):
        raise MetadataError(
            f"chunks {lengths} has {len(lengths)} dimensions, the shape {shape} has {len(shape)}"
        )
    result = []
    for length, full in zip(lengths, whole, strict=True):
        if length is None or length == -1:
            length = full
        if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 1:
            raise MetadataError(
                f"chunks must be positive integers (or -1 for a whole dimension), found {chunks!r}"
            )
        result.append(int(length))
    return tuple(result)


def guess_chunks(shape: tuple[int, ...], itemsize: int, target: int = CHUNK_NBYTES) -> tuple[int, ...]:
    """Return a chunk shape of at most ``target`` bytes, its sides as equal as the array allows, powers of two where
    they do not span a whole dimension. Cubes serve slices along every axis alike.
    """
    chunks = [max(1, n) for n in shape]
    itemsize = max(1, itemsize)
    while chunks and prod(chunks) * itemsize > target and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        length = chunks[axis]
        power = 1 << ((length - 1).bit_length() - 1)
        chunks[axis] = max(1, power)
    return tuple(chunks)


def _divisor_below(shard: int, most: int) -> int:
    return next(n for n in range(min(shard, most), 0, -1) if shard % n == 0)


def _shards(
    shards: Any, chunks: tuple[int, ...], shape: tuple[int, ...], zarr_format: int | str
) -> tuple[int, ...] | None:
    if shards is None or shards is False:
        return None
    if zarr_format != 3:
        raise UnsupportedError(f"shards need zarr_format 3; zarr_format {zarr_format} has none")
    if shards is True or (isinstance(shards, str) and shards == "auto"):
        return tuple(
            chunk * max(1, min(SHARD_CHUNKS, -(-length // chunk)))
            for chunk, length in zip(chunks, shape, strict=True)
        )
    lengths = (shards,) * len(shape) if isinstance(shards, int | np.integer) else tuple(shards)
    if len(lengths) != len(chunks) or any(
        not isinstance(n, int | np.integer) or n < 1 or n % c for n, c in zip(lengths, chunks, strict=False)
    ):
        raise MetadataError(f"shards {shards!r} must be a multiple of the chunks {chunks} in each dimension")
    return tuple(int(n) for n in lengths)


def _fill(fill_value: Any, data_type: DataType) -> Any:
    if fill_value is None:
        return default_fill(data_type)
    if data_type.numpy.hasobject:
        return fill_value
    try:
        return np.asarray(fill_value).astype(data_type.numpy)[()]
    except (TypeError, ValueError, OverflowError) as error:
        raise MetadataError(f"fill_value {fill_value!r} is no {data_type.numpy}: {error}") from error


# -- codecs ----------------------------------------------------------------------------------------------------


def _default_compressor(data_type: DataType) -> dict[str, Any]:
    """Blosc decodes fastest, runs without the GIL, and lets a part of a chunk be read."""
    if data_type.numpy.hasobject:
        return {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
    return {"name": "blosc", "configuration": _blosc_options(data_type)}


def _blosc_options(data_type: DataType) -> dict[str, Any]:
    """Return the configuration of Blosc for elements of this type."""
    itemsize = 1 if data_type.numpy.hasobject else data_type.numpy.itemsize
    shuffle = "bitshuffle" if itemsize == 1 else "shuffle"
    return {
        "cname": "zstd",
        "clevel": 3,
        "shuffle": shuffle,
        "typesize": max(1, min(itemsize, 255)),
        "blocksize": 0,
    }


def _completed(codec: Any, data_type: DataType) -> Any:
    """Return the v3 metadata of a codec, of Blosc with a choice for what was left open: it must be recorded."""
    entry = {"name": codec} if isinstance(codec, str) else codec
    if not isinstance(entry, Mapping) or entry.get("name") != "blosc":
        return codec
    given = entry.get("configuration", {})
    if not isinstance(given, Mapping):
        return codec
    return {**entry, "configuration": _blosc_options(data_type) | dict(given)}


def _v3_chain(
    data_type: DataType,
    order: str,
    codecs: Sequence[Any] | None,
    filters: Sequence[Any] | None,
    serializer: Any,
    compressors: Any,
    ndim: int,
) -> tuple[Codec, ...]:
    if codecs is not None:
        if filters is not None or serializer != "auto" or compressors != "auto":
            raise MetadataError("give either codecs, or filters, serializer and compressors, not both")
        return codecs_from_json([_codec_json(codec) for codec in codecs], "codecs")
    chain: list[Any] = [_codec_json(codec) for codec in filters or ()]
    if order == "F" and ndim > 1:
        chain.insert(0, {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}})
    chain.append(_codec_json(serializer))
    chain += [_completed(_codec_json(codec), data_type) for codec in _compressor_list(compressors, data_type)]
    return codecs_from_json(chain, "codecs")


def _serializer(data_type: DataType, zarr_format: int | str) -> dict[str, Any]:
    """Return the array->bytes codec for elements of this type, little-endian unless the order is part of the type."""
    if data_type.numpy.hasobject:
        return {"name": "vlen-utf8" if data_type.name == "string" else "vlen-bytes"}
    if data_type.numpy.itemsize == 1 and data_type.numpy.names is None:
        return {"name": "bytes"}
    is_big = zarr_format in ORDERED_FORMATS and data_type.numpy.str[0] == ">"
    return {"name": "bytes", "configuration": {"endian": "big" if is_big else "little"}}


def _compressor_list(compressors: Any, data_type: DataType) -> list[Any]:
    if isinstance(compressors, str) and compressors == "auto":
        return [_default_compressor(data_type)]
    if compressors is None:
        return []
    return list(compressors) if isinstance(compressors, list | tuple) else [compressors]


def _codec_json(codec: Any) -> Any:
    """Return v3 metadata of a codec given as metadata of v3 or v2, one of ours, or one of numcodecs."""
    if isinstance(codec, Codec):
        return codec_to_json(codec)
    if hasattr(codec, "get_config"):
        codec = codec.get_config()
    if isinstance(codec, Mapping) and "id" in codec and "name" not in codec:
        configuration = {key: value for key, value in codec.items() if key != "id"}
        return {"name": f"numcodecs.{codec['id']}", "configuration": configuration}
    if isinstance(codec, str | Mapping):
        return codec
    if hasattr(codec, "to_dict"):
        return codec.to_dict()
    raise MetadataError(f"{codec!r} is no codec: expected a name, metadata, or a codec object")


def _v2_chain(
    data_type: DataType, order: str, filters: Sequence[Any] | None, compressors: Any, codecs: Any, ndim: int
) -> tuple[Codec, ...]:
    if codecs is not None:
        raise MetadataError("zarr_format 2 has no codecs; give filters and compressors")
    is_object = data_type.numpy.hasobject
    filter_list = [_v2_json(codec) for codec in filters or ()]
    if not filter_list and data_type.name in ("string", "bytes"):
        filter_list = [{"id": "vlen-utf8" if data_type.name == "string" else "vlen-bytes"}]
    listed = _compressor_list(compressors, data_type)
    if len(listed) > 1:
        raise MetadataError(
            f"zarr_format 2 has one compressor, {len(listed)} were given; put the others into filters"
        )
    return chain_from_v2(
        dtype=data_type.numpy,
        is_object=is_object,
        order=order,
        filters=filter_list or None,
        compressor=_v2_json(listed[0]) if listed else None,
        ndim=ndim,
        where="create_array",
    )


SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def _v2_json(codec: Any) -> dict[str, Any]:
    if isinstance(codec, str):
        return {"id": codec}
    if hasattr(codec, "get_config"):
        return dict(codec.get_config())
    entry = dict(codec_to_json(codec)) if isinstance(codec, Codec) else dict(codec)
    if "id" in entry:
        return entry
    options = dict(entry.get("configuration", {}))
    if isinstance(options.get("shuffle"), str):
        options["shuffle"] = SHUFFLES[options["shuffle"]]
        options.pop("typesize", None)
    return {"id": str(entry["name"]).removeprefix("numcodecs."), **options}


def _sharded(chain: tuple[Codec, ...], chunk_shape: tuple[int, ...]) -> tuple[Codec, ...]:
    from zarrfs.engine.codecs.sharding import ShardingCodec

    index = codecs_from_json(
        [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}], "index_codecs"
    )
    return (ShardingCodec(chunk_shape, chain, index),)


def _keys(encoding: Any, separator: Separator | None, default: Separator) -> ChunkKeyEncoding:
    if isinstance(encoding, ChunkKeyEncoding):
        return encoding
    if encoding is None:
        return DefaultKeys(separator or default)
    if separator is not None:
        raise MetadataError("give either chunk_key_encoding or dimension_separator, not both")
    return chunk_key_encoding_from_json(encoding, "chunk_key_encoding")


# -- requirements ----------------------------------------------------------------------------------------------


def check_required(array: Array, shape: Any, dtype: Any, exact: bool) -> None:
    """Raise unless the array has the shape, and a dtype that serves for ``dtype``."""
    lengths = _shape(shape, None)
    if array.shape != lengths:
        raise NodeTypeError(f"{array.name} has shape {array.shape}, required is {lengths}")
    if dtype is None:
        return
    wanted = data_type_from_numpy(dtype).numpy
    fits = array.dtype == wanted if exact else np.can_cast(wanted, array.dtype)
    if not fits:
        raise NodeTypeError(f"{array.name} has dtype {array.dtype}, required is {wanted}")
