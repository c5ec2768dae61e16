"""Conversion of the options for a new array to an ArraySpec with all defaults chosen. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from zarrfs.engine.chunks.chunk_grids import ChunkGrid, RectilinearGrid, RegularGrid, chunk_grid_from_json
from zarrfs.engine.chunks.chunk_key_encodings import (
    ChunkKeyEncoding,
    DefaultKeys,
    Separator,
    V2Keys,
    chunk_key_encoding_from_json,
)
from zarrfs.engine.create.array_options import ArrayOptions, described
from zarrfs.engine.create.chunk_shapes import ChunkConstraint, choose_read_write, guess_chunks
from zarrfs.engine.create.codec_chain import default_serializer, sharded, v2_chain, v3_chain
from zarrfs.engine.dtypes import DataType, data_type_from_numpy, default_fill
from zarrfs.engine.formats import api as formats
from zarrfs.engine.json_checks import MAX_RANK
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.values import describe_value
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["array_spec", "data_type_of_option", "shape_of"]

MAX_SHARD_CHUNKS = 8
"""The maximum number of chunks along each dimension of a shard whose shape is chosen automatically."""

RAGGED_PREFIX = "array:"
"""The prefix of the dtype of ragged arrays, whose elements are arrays, as in zarr-python 2."""

DEFAULTS = described(ArrayOptions)

DEFAULT_FILL: Any = object()
"""The fill value if none is specified. It differs from None, which v2 stores as ``null``."""


def array_spec(
    *,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    chunks: Any = DEFAULTS["chunks"].default,
    shards: Any = None,
    codecs: Sequence[Any] | None = None,
    filters: Sequence[Any] | None = None,
    serializer: Any = DEFAULTS["serializer"].default,
    compressors: Any = DEFAULTS["compressors"].default,
    fill_value: Any = DEFAULT_FILL,
    order: Literal["C", "F"] = DEFAULTS["order"].default,
    zarr_format: int | str = DEFAULTS["zarr_format"].default,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    dimension_units: Sequence[str | None] | None = None,
    dimension_separator: Separator | None = None,
    chunk_key_encoding: Any = None,
) -> ArraySpec:
    """Return the metadata of a new array, with all defaults chosen. Does not access a store.

    Raises MetadataError for invalid options, and UnsupportedError for options that the format does not support.

    The options are described in ``array_options``, and are those without aliases.
    """
    formats.check_format(zarr_format)
    features = formats.features(zarr_format)
    if isinstance(dtype, str) and dtype.startswith(RAGGED_PREFIX):
        inner = data_type_from_numpy(dtype.removeprefix(RAGGED_PREFIX)).numpy
        filters = [*(filters or ()), {"id": "vlen-array", "dtype": inner.str}]
    data_type = data_type_of_option(DEFAULTS["dtype"].default if dtype is None else dtype)
    lengths = shape_of(shape)
    shards, index_location = _shards_and_index(shards)
    explicit_grid = _explicit_grid(chunks, lengths, shards, zarr_format)
    if isinstance(chunks, ChunkConstraint) or isinstance(shards, ChunkConstraint):
        chunks, shards = _solve_constraints(lengths, chunks, shards, zarr_format)
    chunk_shape = () if explicit_grid is not None else _chunk_shape(chunks, lengths, data_type, shards)
    shard_shape = _shard_shape(shards, chunk_shape, lengths, zarr_format)
    if order not in ("C", "F"):
        raise MetadataError(f"order must be 'C' or 'F', found {describe_value(order)}")
    if dimension_separator not in (None, ".", "/"):
        raise MetadataError(
            f"dimension_separator must be '.' or '/', found {describe_value(dimension_separator)}"
        )
    if fill_value is DEFAULT_FILL:
        fill = default_fill(data_type)
    else:
        fill = formats.new_fill_value(fill_value, data_type, zarr_format)
    if features.filters:
        chain = v2_chain(data_type, order, filters, compressors, codecs, len(lengths))
        keys: ChunkKeyEncoding = V2Keys(dimension_separator or features.default_separator)
    else:
        if isinstance(serializer, str) and serializer == "auto" and codecs is None:
            serializer = default_serializer(data_type, keep_byte_order=features.byte_order)
        chain = v3_chain(data_type, order, codecs, filters, serializer, compressors, len(lengths))
        if shard_shape is not None:
            chain = sharded(chain, chunk_shape, index_location)
        keys = _chunk_key_encoding(chunk_key_encoding, dimension_separator, features.default_separator)
    names = _per_dimension(dimension_names, len(lengths), "dimension_names")
    units = _per_dimension(dimension_units, len(lengths), "dimension_units")
    if units is not None and any(units) and not features.dimension_units:
        raise UnsupportedError(
            f"dimension_units are not supported by zarr_format {zarr_format!r}; store them as attributes"
        )
    grid: ChunkGrid = explicit_grid or RegularGrid(shard_shape or chunk_shape)
    spec = ArraySpec(
        zarr_format,
        lengths,
        data_type,
        grid,
        keys,
        chain,
        fill,
        names,
        units,
        dict(attributes or {}),
        order,
        {},
    )
    return formats.with_prescribed_encoding(spec)


def data_type_of_option(dtype: Any) -> DataType:
    """Return the data type for the option ``dtype`` of a new array."""
    if isinstance(dtype, str) and dtype.startswith(RAGGED_PREFIX):
        return data_type_from_numpy(object)
    return data_type_from_numpy(dtype)


def _explicit_grid(
    chunks: Any, shape: tuple[int, ...], shards: Any, zarr_format: int | str
) -> ChunkGrid | None:
    """Return the grid that ``chunks`` specifies as a grid or as lists of lengths; None for other values."""
    if isinstance(chunks, tuple | list) and any(isinstance(entry, tuple | list) for entry in chunks):
        lengths = [
            entry if isinstance(entry, tuple | list) else _whole(entry, n)
            for entry, n in _pairs(chunks, shape)
        ]
        grid: ChunkGrid = RectilinearGrid.from_configuration(
            {"kind": "inline", "chunk_shapes": lengths}, "chunks"
        )
    elif isinstance(chunks, Mapping):
        grid = chunk_grid_from_json(chunks, shape, "chunks")
    elif isinstance(chunks, ChunkGrid):
        grid = chunks
    else:
        return None
    grid.check(shape, "chunks")
    if not formats.features(zarr_format).chunk_grids:
        raise UnsupportedError(
            f"a chunk grid needs zarr_format 3; in zarr_format {zarr_format} all chunks have the same shape"
        )
    if shards:
        raise MetadataError(
            "the chunks of a shard have the same shape; specify either shards or a chunk grid"
        )
    return grid


def _pairs(chunks: Sequence[Any], shape: tuple[int, ...]) -> list[tuple[Any, int]]:
    if len(chunks) != len(shape):
        raise MetadataError(f"chunks has {len(chunks)} dimensions, the shape {shape} has {len(shape)}")
    return list(zip(chunks, shape, strict=True))


def _whole(length: Any, full: int) -> Any:
    return max(1, full) if length is None or length == -1 else length


def _per_dimension(
    values: Sequence[str | None] | None, ndim: int, option: str
) -> tuple[str | None, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise MetadataError(f"{option} must be a list of strings or None, found {describe_value(values)}")
    entries = tuple(values)
    if len(entries) != ndim:
        raise MetadataError(
            f"{option}: expected {ndim} entries, one for each dimension, found {len(entries)}"
        )
    for entry in entries:
        if entry is not None and not isinstance(entry, str):
            raise MetadataError(f"{option} must be strings or None, found {describe_value(entry)}")
    return entries


def _solve_constraints(
    shape: tuple[int, ...], chunks: Any, shards: Any, zarr_format: int | str
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the chunk and shard shape that satisfy the constraints; no shard shape if both are the same."""
    read, write = (_constraint(value, shape) for value in (chunks, shards))
    if shards is None or not formats.features(zarr_format).sharding:
        return choose_read_write(shape, read, read)[0], None
    inner, outer = choose_read_write(shape, read, write)
    return inner, None if inner == outer else outer


def _constraint(value: Any, shape: tuple[int, ...]) -> ChunkConstraint:
    if isinstance(value, ChunkConstraint):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return ChunkConstraint((value,) * len(shape))
    return ChunkConstraint(tuple(value)) if isinstance(value, tuple | list) else ChunkConstraint()


def _is_length(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _lengths(value: Any) -> tuple[Any, ...] | None:
    """Return the entries of a shape, or None for a value that is not a shape."""
    if _is_length(value):
        return (value,)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return None
    return tuple(value)


def shape_of(shape: int | Sequence[int] | None) -> tuple[int, ...]:
    if shape is None:
        raise MetadataError("an array needs a shape, or data that have one")
    lengths = _lengths(shape)
    if lengths is None or not all(_is_length(n) and n >= 0 for n in lengths):
        raise MetadataError(
            f"shape must be integers of at least 0, one for each dimension, found {describe_value(shape)}"
        )
    if len(lengths) > MAX_RANK:
        raise MetadataError(f"shape: expected at most {MAX_RANK} dimensions, found {len(lengths)}")
    return tuple(int(n) for n in lengths)


def _chunk_shape(chunks: Any, shape: tuple[int, ...], data_type: DataType, shards: Any) -> tuple[int, ...]:
    whole = tuple(max(1, n) for n in shape)
    if chunks is None or chunks is False:
        return whole
    if chunks is True or (isinstance(chunks, str) and chunks == "auto"):
        guessed = guess_chunks(shape, 16 if data_type.numpy.hasobject else data_type.numpy.itemsize)
        if isinstance(shards, tuple | list) and len(shards) == len(guessed):
            return tuple(_largest_divisor(shard, n) for shard, n in zip(shards, guessed, strict=True))
        return guessed
    lengths = (chunks,) * len(shape) if _is_length(chunks) else _lengths(chunks)
    if lengths is None:
        raise MetadataError(
            f"chunks must be an integer, an integer for each dimension, 'auto' or None, found {describe_value(chunks)}"
        )
    if len(lengths) != len(shape):
        raise MetadataError(
            f"chunks {lengths} has {len(lengths)} dimensions, the shape {shape} has {len(shape)}"
        )
    result = []
    for length, full, size in zip(lengths, whole, shape, strict=True):
        if length is None or length == -1 or (length == 0 and size == 0 and _is_length(length)):
            length = full
        if not _is_length(length) or length < 1:
            raise MetadataError(
                f"chunks must be positive integers (or -1 for a whole dimension), found {describe_value(chunks)}"
            )
        result.append(int(length))
    return tuple(result)


def _largest_divisor(shard: int, limit: int) -> int:
    """Return the largest divisor of ``shard`` that is at most ``limit``."""
    return next(n for n in range(min(shard, limit), 0, -1) if shard % n == 0)


def _shards_and_index(shards: Any) -> tuple[Any, str]:
    """Return the shard shape of the option ``shards``, and the location of the index."""
    if not isinstance(shards, Mapping):
        return shards, "end"
    if "shape" not in shards or set(shards) - {"shape", "index_location"}:
        raise MetadataError(
            'shards: expected a shape, or {"shape": ..., "index_location": "start" or "end"}, found '
            f"{describe_value(shards)}"
        )
    location = shards.get("index_location") or "end"
    location = getattr(location, "value", location)
    if location not in ("start", "end"):
        raise MetadataError(
            f"shards: index_location must be 'start' or 'end', found {describe_value(location)}"
        )
    return shards["shape"], location


def _shard_shape(
    shards: Any, chunks: tuple[int, ...], shape: tuple[int, ...], zarr_format: int | str
) -> tuple[int, ...] | None:
    if shards is None or shards is False:
        return None
    if not formats.features(zarr_format).sharding:
        raise UnsupportedError(f"shards need zarr_format 3; zarr_format {zarr_format} does not support them")
    if shards is True or (isinstance(shards, str) and shards == "auto"):
        return tuple(
            chunk * max(1, min(MAX_SHARD_CHUNKS, -(-length // chunk)))
            for chunk, length in zip(chunks, shape, strict=True)
        )
    lengths = (shards,) * len(shape) if _is_length(shards) else _lengths(shards)
    if (
        lengths is None
        or len(lengths) != len(chunks)
        or any(not _is_length(n) or n < 1 or n % c for n, c in zip(lengths, chunks, strict=False))
    ):
        raise MetadataError(
            f"shards must be a multiple of the chunks {chunks} in each dimension, 'auto' or None, "
            f"found {describe_value(shards)}"
        )
    return tuple(int(n) for n in lengths)


def _chunk_key_encoding(encoding: Any, separator: Separator | None, default: Separator) -> ChunkKeyEncoding:
    if isinstance(encoding, ChunkKeyEncoding):
        return encoding
    if encoding is None:
        return DefaultKeys(separator or default)
    if separator is not None:
        raise MetadataError("specify either chunk_key_encoding or dimension_separator, not both")
    return chunk_key_encoding_from_json(encoding, "chunk_key_encoding")
