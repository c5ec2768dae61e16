"""The metadata of an array that is to be made: what users give -> an ArraySpec, with defaults chosen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from zarrfs.engine.chunking.chunk_grids import ChunkGrid, RectilinearGrid, RegularGrid, chunk_grid_from_json
from zarrfs.engine.chunking.chunk_key_encodings import (
    ChunkKeyEncoding,
    DefaultKeys,
    Separator,
    V2Keys,
    chunk_key_encoding_from_json,
)
from zarrfs.engine.creation.chunk_shapes import ChunkConstraint, choose_read_write, guess_chunks
from zarrfs.engine.creation.codec_chain import sharded, usual_serializer, v2_chain, v3_chain
from zarrfs.engine.dtypes import DataType, data_type_from_numpy, default_fill
from zarrfs.engine.formats import api as formats
from zarrfs.engine.json_checks import MAX_RANK
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.values import describe_value, fill_scalar
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["WRITABLE_FORMATS", "array_spec", "check_format", "data_type_of_option", "shape_of"]

SHARD_CHUNKS = 8
"""How many chunks a shard of guessed shape has along each dimension, at most."""

UNITS: tuple[int | str, ...] = (3, "n5")
"""Formats that say the units of dimensions."""

RAGGED = "array:"
"""What stands before the dtype of the arrays that are the elements of an array, as zarr-python 2 has it."""

SEPARATORS: dict[int | str, Separator] = {2: ".", "draft2019": "."}
"""What stands between the parts of a chunk key unless another is asked for, where it is not a slash."""

DEFAULT_FILL: Any = object()
"""The fill value of those who give none: unlike None, which v2 writes as ``null``."""

WRITABLE_FORMATS: tuple[int | str, ...] = (2, 3, "n5", "draft2019")


def check_format(zarr_format: int | str) -> None:
    if zarr_format not in WRITABLE_FORMATS:
        raise UnsupportedError(
            f"zarr_format {zarr_format!r} cannot be written; expected one of {WRITABLE_FORMATS}"
        )


def array_spec(
    *,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    chunks: Any = "auto",
    shards: Any = None,
    codecs: Sequence[Any] | None = None,
    filters: Sequence[Any] | None = None,
    serializer: Any = "auto",
    compressors: Any = "auto",
    fill_value: Any = DEFAULT_FILL,
    order: Literal["C", "F"] = "C",
    zarr_format: int | str = 3,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    dimension_units: Sequence[str | None] | None = None,
    dimension_separator: Separator | None = None,
    chunk_key_encoding: Any = None,
) -> ArraySpec:
    """Return the metadata of an array to be, with defaults chosen. Touches no store.

    Args:
        shape, dtype: what the array is; float64 if no dtype is given. Elements of any length: ``str``, ``bytes``,
            ``"array:<i4"`` (ragged arrays; v2), or ``object`` with a filter that makes bytes of them (v2).
        chunks: chunk shape, or a number for all dimensions; -1 or None in it means the whole dimension; ``"auto"``
            or True chooses about a mebibyte, False or None makes one chunk; a ChunkConstraint says what is wanted.
            A list of lengths in place of one cuts a dimension into those (v3, a rectilinear grid), as
            ``((3, 4, 3), 5)``; a ChunkGrid, or the metadata of one, is taken as it is.
        shards: shard shape, a multiple of the chunk shape, or ``"auto"``; None stores chunks on their own (v3); a
            ChunkConstraint chooses together with ``chunks``, and makes shards only if they come out larger.
        codecs: the whole chain of a v3 array as metadata or Codec objects; excludes the three that follow.
        filters: array->array codecs (v3), or numcodecs filters (v2).
        serializer: the array->bytes codec of a v3 array.
        compressors: bytes->bytes codecs, one or several; None for none. As v3 metadata
            (``{"name": "gzip", "configuration": {"level": 5}}``), v2 metadata (``{"id": "zlib", "level": 1}``), a name,
            or a numcodecs codec. By default Blosc with Zstandard and shuffling.
        fill_value: what unwritten elements read as; zero by default. None leaves it undefined in v2, which writes
            ``null``, and is zero in other formats.
        order: the memory order within chunks; in v3 ``"F"`` adds a transpose codec.
        dimension_units: the unit of each dimension, as ``"4 nm"`` (v3, N5).
        dimension_separator: ``"."`` or ``"/"`` between the parts of a chunk key; by default what the format says.
        zarr_format: 3, 2, ``"n5"``, or ``"draft2019"`` for the draft of June 2019.
    """
    check_format(zarr_format)
    if isinstance(dtype, str) and dtype.startswith(RAGGED):
        inner = data_type_from_numpy(dtype.removeprefix(RAGGED)).numpy
        filters = [*(filters or ()), {"id": "vlen-array", "dtype": inner.str}]
    data_type = data_type_of_option("float64" if dtype is None else dtype)
    lengths = shape_of(shape)
    given_grid = _given_grid(chunks, lengths, shards, zarr_format)
    if isinstance(chunks, ChunkConstraint) or isinstance(shards, ChunkConstraint):
        chunks, shards = _chosen(lengths, chunks, shards, zarr_format)
    chunk_shape = () if given_grid is not None else _chunks(chunks, lengths, data_type, shards)
    shard_shape = _shards(shards, chunk_shape, lengths, zarr_format)
    if order not in ("C", "F"):
        raise MetadataError(f"order must be 'C' or 'F', found {describe_value(order)}")
    if dimension_separator not in (None, ".", "/"):
        raise MetadataError(
            f"dimension_separator must be '.' or '/', found {describe_value(dimension_separator)}"
        )
    if fill_value is None and zarr_format == 2:
        fill = None
    elif fill_value is None or fill_value is DEFAULT_FILL:
        fill = default_fill(data_type)
    elif zarr_format == 2 and data_type.numpy.hasobject and type(fill_value) is int and fill_value == 0:
        # As zarr-python 2 writes it for variable-length elements; it means the default of the data type.
        fill = 0
    else:
        fill = fill_scalar(fill_value, data_type)
    if zarr_format == 2:
        chain = v2_chain(data_type, order, filters, compressors, codecs, len(lengths))
        keys: ChunkKeyEncoding = V2Keys(dimension_separator or SEPARATORS[2])
    else:
        if isinstance(serializer, str) and serializer == "auto" and codecs is None:
            serializer = usual_serializer(data_type, zarr_format)
        chain = v3_chain(data_type, order, codecs, filters, serializer, compressors, len(lengths))
        if shard_shape is not None:
            chain = sharded(chain, chunk_shape)
        keys = _keys(chunk_key_encoding, dimension_separator, SEPARATORS.get(zarr_format, "/"))
    names = _for_each_dimension(dimension_names, len(lengths), "dimension_names")
    units = _for_each_dimension(dimension_units, len(lengths), "dimension_units")
    if units is not None and any(units) and zarr_format not in UNITS:
        raise UnsupportedError(
            f"dimension_units need a format that has units, one of {UNITS}, not {zarr_format!r}; "
            "give them as attributes"
        )
    grid: ChunkGrid = given_grid or RegularGrid(shard_shape or chunk_shape)
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
    return formats.adapted(spec)


def data_type_of_option(dtype: Any) -> DataType:
    """Return the data type that the option ``dtype`` of a new array asks for."""
    if isinstance(dtype, str) and dtype.startswith(RAGGED):
        return data_type_from_numpy(object)
    return data_type_from_numpy(dtype)


def _given_grid(chunks: Any, shape: tuple[int, ...], shards: Any, zarr_format: int | str) -> ChunkGrid | None:
    """Return the chunk grid that ``chunks`` is, or lists the lengths of; None where it is a mere chunk shape."""
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
    if zarr_format != 3:
        raise UnsupportedError(
            f"a chunk grid of its own needs zarr_format 3; {zarr_format} has chunks of one shape"
        )
    if shards:
        raise MetadataError("shards are cut into chunks of one shape; give either shards or a chunk grid")
    return grid


def _pairs(chunks: Sequence[Any], shape: tuple[int, ...]) -> list[tuple[Any, int]]:
    if len(chunks) != len(shape):
        raise MetadataError(f"chunks has {len(chunks)} dimensions, the shape {shape} has {len(shape)}")
    return list(zip(chunks, shape, strict=True))


def _whole(length: Any, full: int) -> Any:
    return max(1, full) if length is None or length == -1 else length


def _for_each_dimension(
    values: Sequence[str | None] | None, ndim: int, what: str
) -> tuple[str | None, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise MetadataError(f"{what} must be a list of strings or None, found {describe_value(values)}")
    entries = tuple(values)
    if len(entries) != ndim:
        raise MetadataError(f"{len(entries)} {what} for {ndim} dimensions; expected one for each")
    for entry in entries:
        if entry is not None and not isinstance(entry, str):
            raise MetadataError(f"{what} must be strings or None, found {describe_value(entry)}")
    return entries


def _chosen(
    shape: tuple[int, ...], chunks: Any, shards: Any, zarr_format: int | str
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return chunk and shard shape by constraints on them; no shard shape where they are the same."""
    read, write = (_constraint(value, shape) for value in (chunks, shards))
    if shards is None or zarr_format != 3:
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
    """Return the entries of a shape; None for what is no shape at all."""
    if _is_length(value):
        return (value,)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return None
    return tuple(value)


def shape_of(shape: int | Sequence[int] | None) -> tuple[int, ...]:
    if shape is None:
        raise MetadataError("an array needs a shape, or data to take it from")
    lengths = _lengths(shape)
    if lengths is None or not all(_is_length(n) and n >= 0 for n in lengths):
        raise MetadataError(
            f"shape must be integers of at least 0, one for each dimension, found {describe_value(shape)}"
        )
    if len(lengths) > MAX_RANK:
        raise MetadataError(f"shape: expected at most {MAX_RANK} dimensions, found {len(lengths)}")
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
    lengths = (chunks,) * len(shape) if _is_length(chunks) else _lengths(chunks)
    if lengths is None:
        raise MetadataError(
            f"chunks must be an integer, or one for each dimension, 'auto' or None, found {describe_value(chunks)}"
        )
    if len(lengths) != len(shape):
        raise MetadataError(
            f"chunks {lengths} has {len(lengths)} dimensions, the shape {shape} has {len(shape)}"
        )
    result = []
    for length, full in zip(lengths, whole, strict=True):
        if length is None or length == -1:
            length = full
        if not _is_length(length) or length < 1:
            raise MetadataError(
                f"chunks must be positive integers (or -1 for a whole dimension), found {describe_value(chunks)}"
            )
        result.append(int(length))
    return tuple(result)


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


def _keys(encoding: Any, separator: Separator | None, default: Separator) -> ChunkKeyEncoding:
    if isinstance(encoding, ChunkKeyEncoding):
        return encoding
    if encoding is None:
        return DefaultKeys(separator or default)
    if separator is not None:
        raise MetadataError("give either chunk_key_encoding or dimension_separator, not both")
    return chunk_key_encoding_from_json(encoding, "chunk_key_encoding")
