"""The spec of the copy of an array, and the blocks in which its values are copied. Reads metadata and listings only.

Encoded chunks are copied unchanged if the target format can describe their encoding. Otherwise values are decoded and
re-encoded block by block. A block consists of whole target chunks (shards), so that each is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain as concatenated
from math import prod
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding, DefaultKeys, SeparatorKeys, V2Keys
from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec
from zarrfs.engine.codecs.numcodecs.core import core_codec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.create.array_spec import array_spec
from zarrfs.engine.dtypes import default_fill
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.v2_codecs import chain_to_v2
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.tools.copying.block_grid import Block, BlockGrid, stored_regions

__all__ = ["TargetOptions", "copy_blocks", "describe_losses", "spec_for_chunk_copy", "spec_for_reencoding"]

DEFAULT_MEMORY = 256 << 20


@dataclass(frozen=True)
class TargetOptions:
    """Properties of a copy that differ from the source; None keeps the property of the source.

    ``zarr_format``, ``chunks``, ``shards`` and ``compressors`` have the values that ``create_array`` accepts;
    ``shards=False`` means no shards. ``chunks`` can also be sizes of named dimensions, from which
    ``for_dimensions`` makes a shape.
    ``allow_loss`` replaces a data type that the format does not have with the NumPy type of its values.
    """

    zarr_format: int | str | None = None
    chunks: Any = None
    shards: Any = None
    compressors: Any = None
    allow_loss: bool = False

    def format_of(self, zarr_format: int | str) -> int | str:
        """Return the format of the copy of a node. It can be written."""
        return formats.writable_format(zarr_format if self.zarr_format is None else self.zarr_format)

    def for_dimensions(self, source: Array, names: Sequence[str | None] | None) -> TargetOptions:
        """Return the options for an array with these dimension names: sizes of named dimensions become a chunk shape.

        The other dimensions have the chunks of the source. Without any of the dimensions the chunks are not changed.
        """
        if not isinstance(self.chunks, Mapping):
            return self
        if not names or not set(self.chunks) & set(names):
            return replace(self, chunks=None)
        sizes = zip(names, _inner_chunks(source), strict=True)
        return replace(self, chunks=tuple(self.chunks.get(name, size) for name, size in sizes))

    @property
    def changes_chunks(self) -> bool:
        """Whether chunks have to be re-encoded."""
        return self.chunks is not None or self.shards is not None or self.compressors is not None


def spec_for_chunk_copy(spec: ArraySpec, options: TargetOptions, in_place: bool = False) -> ArraySpec | None:
    """Return the spec of a copy with the same encoded chunks; None if the options or the format do not allow it.

    ``in_place`` keeps the chunk keys as well.
    """
    if options.changes_chunks:
        return None
    target_format = options.format_of(spec.zarr_format)
    if target_format == spec.zarr_format:
        return spec
    features = formats.features(target_format)
    if not (features.zarr_chunks and formats.features(spec.zarr_format).zarr_chunks):
        return None
    keys: ChunkKeyEncoding = spec.chunk_key_encoding
    if not features.key_encodings and not isinstance(keys, V2Keys):
        if in_place:
            return None
        keys = V2Keys(keys.separator if isinstance(keys, SeparatorKeys) else ".")
    elif features.key_encodings and not in_place:
        keys = DefaultKeys("/")
    fill, codecs = spec.fill_value, spec.codecs
    if features.codec_chain:
        fill = default_fill(spec.data_type) if fill is None else fill
        core_codecs = _core_codecs(spec, spec.codecs)
        if core_codecs is None:
            return None
        codecs = core_codecs
    target_spec = replace(
        spec, zarr_format=target_format, chunk_key_encoding=keys, fill_value=fill, codecs=codecs, document={}
    )
    try:
        formats.check_writable(target_spec)
    except UnsupportedError:
        return None
    return target_spec


def _core_codecs(spec: ArraySpec, chain: Iterable[Codec]) -> tuple[Codec, ...] | None:
    """Return the chain with codecs of the v3 core specification where possible; None for structured data types
    that v3 cannot represent.
    """
    shape = spec.chunk_grid.chunk_shape or spec.shape
    chunk = ChunkSpec(tuple(shape), spec.data_type.numpy, spec.fill_value)
    codecs = []
    for codec in chain:
        if isinstance(codec, BytesCodec) and codec.endian is None and spec.data_type.numpy.names is not None:
            # In v2 each field has a byte order, in v3 the codec has one for all fields.
            if spec.data_type.numpy != spec.data_type.numpy.newbyteorder("<"):
                return None
            codec = BytesCodec("little")
        codecs.append(core_codec(codec, chunk))
    return tuple(codecs)


def _inner_chain(source: Array) -> tuple[Codec, ...]:
    """Return the codecs of a chunk, or of an inner chunk if the array is sharded."""
    sharding = source.storage.sharding()
    return source.spec.codecs if sharding is None else tuple(sharding[0].codecs)


def spec_for_reencoding(source: Array, spec: ArraySpec, options: TargetOptions) -> ArraySpec:
    """Return the spec of a re-encoded copy: with all codecs of the source if the format has them, else with its
    compressors, else with the default ones. ``spec`` is the source's with the dimension names and fill value of the
    copy.

    Raises MetadataError for chunks, shards or compressors that do not fit the array, UnsupportedError for properties
    that the format cannot represent.
    """
    target_format = options.format_of(spec.zarr_format)
    features = formats.features(target_format)
    arguments: dict[str, Any] = {
        "shape": source.shape,
        # Several data types of v3 may have the same NumPy data type.
        "dtype": source.dtype if options.allow_loss and not source.dtype.hasobject else spec.data_type,
        "chunks": _new_chunks(source, target_format, options),
        "shards": _new_shards(source, target_format, options),
        "fill_value": spec.fill_value,
        "dimension_names": spec.dimension_names,
        "dimension_units": spec.dimension_units if features.dimension_units else None,
        "attributes": dict(spec.attributes),
        "zarr_format": target_format,
        "order": source.order if features.zarr_chunks else "C",
    }
    keys = spec.chunk_key_encoding
    if features.filters and isinstance(keys, SeparatorKeys):
        arguments["dimension_separator"] = keys.separator
    elif features.key_encodings and target_format == spec.zarr_format:
        arguments["chunk_key_encoding"] = keys
    if not features.fill_value:
        arguments["fill_value"] = None  # always zero; other values are stored explicitly
    last_error: MetadataError | None = None
    for codecs in _codec_options(source, target_format, options):
        try:
            target_spec = array_spec(**arguments, **codecs)
            formats.check_writable(target_spec)
            # The constructor raises MetadataError if the codecs do not fit the chunks.
            Array(MemoryStore(), "", target_spec, ChunkCache(0), True)
        except MetadataError as error:
            last_error = error
            continue
        return target_spec
    if last_error is None:
        raise UnsupportedError(f"{source.name} cannot be written in format {target_format}")
    raise last_error


def _new_chunks(source: Array, target_format: int | str, options: TargetOptions) -> Any:
    if options.chunks is not None:
        return options.chunks
    grid = source.spec.chunk_grid
    if (
        formats.features(target_format).chunk_grids
        and options.shards is None
        and not isinstance(grid, RegularGrid)
    ):
        return grid
    return _inner_chunks(source)


def _new_shards(source: Array, target_format: int | str, options: TargetOptions) -> Any:
    """Return the shard shape of a copy: the given one, else that of the source. Raises MetadataError if the latter is
    not a multiple of the new chunks.
    """
    if not formats.features(target_format).sharding:
        if options.shards is not None and options.shards is not False:
            raise UnsupportedError(
                f"shards need zarr_format 3; format {target_format} does not support sharding"
            )
        return None
    if options.shards is not None:
        return None if options.shards is False else options.shards
    if source.shards is None or options.chunks is None:
        return source.shards
    try:
        array_spec(shape=source.shape, dtype="u1", chunks=options.chunks, shards=source.shards)
    except MetadataError as error:
        raise MetadataError(
            f"the shards of the source, {source.shards}, do not fit chunks {options.chunks}: {error}; "
            "set other shards, or shards=False to disable sharding"
        ) from error
    return source.shards


def _codec_options(
    source: Array, target_format: int | str, options: TargetOptions
) -> Iterator[dict[str, Any]]:
    features, source_features = formats.features(target_format), formats.features(source.zarr_format)
    chain = _core_codecs(source.spec, _inner_chain(source)) if source_features.zarr_chunks else None
    compressor_option: dict[str, Any] = {}
    if options.compressors is not None:
        compressor_option = {"compressors": None if options.compressors == "none" else options.compressors}
    if chain is not None and features.codec_chain:
        kept = [codec for codec in chain if not (compressor_option and isinstance(codec, BytesBytesCodec))]
        arrays = [codec_to_json(codec) for codec in kept if isinstance(codec, ArrayArrayCodec)]
        (serializer,) = [codec_to_json(codec) for codec in kept if isinstance(codec, ArrayBytesCodec)]
        compressors = [codec_to_json(codec) for codec in kept if isinstance(codec, BytesBytesCodec)]
        arrays = [codec for codec in arrays if not _is_reversal(codec, source)]
        yield {"filters": arrays, "serializer": serializer, "compressors": compressors, **compressor_option}
    if source_features.zarr_chunks and features.filters:
        with suppress(UnsupportedError):
            _, filters, compressor = chain_to_v2(_inner_chain(source))
            yield {"filters": filters, "compressors": compressor, **compressor_option}
    if compressor_option:
        yield compressor_option
        return
    yield {"compressors": _compressors(source, target_format)}
    yield {}


def _is_reversal(codec: Mapping[str, Any], source: Array) -> bool:
    """Return whether a codec is the transpose that ``order="F"`` adds."""
    rank = len(source.shape)
    return (
        source.order == "F"
        and codec["name"] == "transpose"
        and list(codec["configuration"]["order"]) == list(range(rank))[::-1]
    )


def _inner_chunks(source: Array) -> Any:
    """Return the shape of an inner chunk (or chunk); that of the first one if the chunk grid is not regular."""
    chunks = source.chunks
    return tuple(side if isinstance(side, int) else side[0] for side in chunks)


def _compressors(source: Array, target_format: int | str) -> Any:
    """Return the compressors of the source, also those inside of blocks of N5; "auto" if one is only known to N5."""
    chunk = ChunkSpec(_inner_chunks(source), source.dtype, source.spec.fill_value)
    codecs = [codec for codec in _all_codecs(_inner_chain(source)) if isinstance(codec, BytesBytesCodec)]
    if target_format != source.zarr_format and any(codec.name.startswith(N5_PREFIX) for codec in codecs):
        return "auto"
    kept = [codec_to_json(core_codec(codec, chunk)) for codec in codecs]
    if formats.features(target_format).codec_chain:
        return kept
    return [codec for codec in kept if codec.get("name") != "crc32c"]


N5_PREFIX = "n5_"

LAYOUT_CODECS = {"bytes", "transpose", "sharding_indexed", "n5_default", "reshape"}
"""Codecs that describe the layout of elements. Formats represent it in different ways, so they are not compared."""


def describe_losses(source: Array, target_spec: ArraySpec, options: TargetOptions) -> list[str]:
    """Return a description of each property of the source that a copy with ``target_spec`` does not retain."""
    descriptions = []
    if target_spec.data_type.name != source.spec.data_type.name:
        descriptions.append(
            f"data type {source.spec.data_type.name} is converted to {target_spec.data_type.name}"
        )
    grid = source.spec.chunk_grid
    if (
        not isinstance(grid, RegularGrid)
        and isinstance(target_spec.chunk_grid, RegularGrid)
        and options.chunks is None
    ):
        descriptions.append(
            f"the rectilinear chunk grid is replaced with chunks {target_spec.chunk_grid.chunk_shape}"
        )
    if source.shards is not None and options.shards is None and not _is_sharded(target_spec):
        descriptions.append(
            f"shards {source.shards} are dropped: format {target_spec.zarr_format} does not support sharding"
        )
    kept = set(map(_codec_name, _all_codecs(target_spec.codecs)))
    names = [
        name
        for codec in _all_codecs(_inner_chain(source))
        if not (options.compressors is not None and isinstance(codec, BytesBytesCodec))
        if (name := _codec_name(codec)) not in kept | LAYOUT_CODECS
    ]
    if names:
        replacements = ", ".join(sorted(kept - LAYOUT_CODECS)) or "none"
        descriptions.append(f"codecs are dropped: {', '.join(names)} (codecs of the copy: {replacements})")
    return descriptions


def _is_sharded(spec: ArraySpec) -> bool:
    return any(codec.name == "sharding_indexed" for codec in spec.codecs)


def _all_codecs(codecs: Iterable[Codec]) -> Iterator[Codec]:
    """Yield codecs, each followed by those of its inner chunks or blocks."""
    for codec in codecs:
        yield codec
        yield from _all_codecs(getattr(codec, "codecs", ()))


def _codec_name(codec: Codec) -> str:
    return codec.name.removeprefix("numcodecs.")


def copy_blocks(
    target: Array, source: Array, memory: int = DEFAULT_MEMORY, *, include_missing: bool = True
) -> Sequence[Block]:
    """Return the blocks in which an array is copied. A block consists of whole target chunks (shards). It is extended
    towards the source chunk shape as far as ``memory`` bytes allow, to decode few source chunks more than once.

    ``include_missing=False`` omits blocks in which neither array has a stored chunk.
    """
    shape = target.shape
    itemsize = 64 if target.dtype.hasobject else max(1, target.dtype.itemsize)
    step = list(_written_shape(target))
    source_step = _written_shape(source)
    for axis in reversed(range(len(shape))):
        max_side = min(shape[axis], source_step[axis])
        while step[axis] < max_side and prod(step) * itemsize * 2 <= memory:
            step[axis] *= 2
    grid = BlockGrid(shape, step)
    if include_missing or not (source.store.listable and target.store.listable):
        return grid
    return grid.overlapping(concatenated(stored_regions(source), stored_regions(target)))


def _written_shape(array: Array) -> Sequence[int]:
    grid = array.spec.chunk_grid
    if isinstance(grid, RegularGrid):
        return tuple(max(1, side) for side in grid.chunk_shape)
    return tuple(max(1, length) for length in array.shape)
