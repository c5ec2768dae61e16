"""What a copy of an array is to be, and in which blocks its values are copied. Pure, but for looking at metadata.

Chunks are copied untouched wherever the other format can say how they are encoded; else values are decoded and encoded
anew, block by block, each block a whole number of the chunks (shards) that are written, so that each is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain as joined
from math import prod
from typing import Any

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.chunking.chunk_grids import RegularGrid
from zarrfs.engine.chunking.chunk_key_encodings import ChunkKeyEncoding, DefaultKeys, V2Keys
from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec
from zarrfs.engine.codecs.numcodecs.core import core_codec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.creation.array_spec import array_spec
from zarrfs.engine.dtypes import default_fill
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.v2_codecs import chain_to_v2
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.tools.copying.advice import on_command_line, option
from zarrfs.tools.copying.block_grid import Block, BlockGrid, stored_boxes

__all__ = ["Form", "blocks", "losses", "new_spec", "same_chunks"]

UNITS: tuple[int | str, ...] = (3, "n5")
"""Formats that have units of dimensions."""

ALIKE: tuple[int | str, ...] = (1, 2, 3)
"""Formats whose chunks are encoded alike, so that only the documents differ."""

USUAL_MEMORY = 256 << 20


@dataclass(frozen=True)
class Form:
    """What is to be different of a copy; None keeps what the source has.

    ``zarr_format`` as for ``create_array``; ``chunks`` and ``shards`` likewise (``shards=False``: none);
    ``compressors`` as for ``create_array``. ``allow_loss``: a data type that the format does not have becomes the one
    that NumPy has for its values.
    """

    zarr_format: int | str | None = None
    chunks: Any = None
    shards: Any = None
    compressors: Any = None
    allow_loss: bool = False

    def format_of(self, zarr_format: int | str) -> int | str:
        """Return the format of the copy of a node; 2 in place of 1, which is no longer written."""
        wanted = zarr_format if self.zarr_format is None else self.zarr_format
        return 2 if wanted == 1 else wanted

    @property
    def changes_chunks(self) -> bool:
        """Whether chunks cannot be as they are in the source."""
        return self.chunks is not None or self.shards is not None or self.compressors is not None


def same_chunks(spec: ArraySpec, form: Form, in_place: bool = False) -> ArraySpec | None:
    """Return the spec of a copy whose chunks are those of the source, byte by byte; None where there is none.

    ``in_place`` keeps the keys of chunks too.
    """
    if form.changes_chunks:
        return None
    wanted = form.format_of(spec.zarr_format)
    if wanted == spec.zarr_format:
        return spec
    if wanted not in ALIKE or spec.zarr_format not in ALIKE:
        return None
    keys: ChunkKeyEncoding = spec.chunk_key_encoding
    if wanted == 2 and not isinstance(keys, V2Keys):
        if in_place:
            return None
        keys = V2Keys(keys.separator if isinstance(keys, DefaultKeys) else ".")
    elif wanted == 3 and not in_place:
        keys = DefaultKeys("/")
    fill, codecs = spec.fill_value, spec.codecs
    if wanted == 3:
        fill = default_fill(spec.data_type) if fill is None else fill
        plain = _core_codecs(spec, spec.codecs)
        if plain is None:
            return None
        codecs = plain
    made = replace(
        spec, zarr_format=wanted, chunk_key_encoding=keys, fill_value=fill, codecs=codecs, document={}
    )
    try:
        formats.check_writable(made)
    except UnsupportedError:
        return None
    return made


def _core_codecs(spec: ArraySpec, chain: Iterable[Codec]) -> tuple[Codec, ...] | None:
    """Return the chain in the words of the v3 core where it has them; None for records that v3 cannot say."""
    shape = spec.chunk_grid.chunk_shape or spec.shape
    chunk = ChunkSpec(tuple(shape), spec.data_type.numpy, spec.fill_value)
    codecs = []
    for codec in chain:
        if isinstance(codec, BytesCodec) and codec.endian is None and spec.data_type.numpy.names is not None:
            # Fields have byte orders of their own in v2, records have one in v3.
            if spec.data_type.numpy != spec.data_type.numpy.newbyteorder("<"):
                return None
            codec = BytesCodec("little")
        codecs.append(core_codec(codec, chunk))
    return tuple(codecs)


def _inner_chain(source: Array) -> tuple[Codec, ...]:
    """Return the codecs of what is decoded as one: of a shard those of its chunks."""
    sharding = source.storage.sharding()
    return source.spec.codecs if sharding is None else tuple(sharding[0].codecs)


def new_spec(source: Array, spec: ArraySpec, form: Form) -> ArraySpec:
    """Return the spec of a copy that is encoded anew: with all codecs of the source if they can be kept, else with its
    compression, else with the usual one. ``spec`` is that of the source with the names and fill value of the copy.

    Raises MetadataError for chunks, shards or compressors that do not fit the array, UnsupportedError for what the
    format cannot say.
    """
    wanted = form.format_of(spec.zarr_format)
    options: dict[str, Any] = {
        "shape": source.shape,
        # Many a data type of v3 is the same to NumPy as another one.
        "dtype": source.dtype if form.allow_loss and not source.dtype.hasobject else spec.data_type,
        "chunks": _new_chunks(source, wanted, form),
        "shards": _new_shards(source, wanted, form),
        "fill_value": spec.fill_value,
        "dimension_names": spec.dimension_names,
        "dimension_units": spec.dimension_units if wanted in UNITS else None,
        "attributes": dict(spec.attributes),
        "zarr_format": wanted,
        "order": source.order if wanted in (2, 3) else "C",
    }
    keys = spec.chunk_key_encoding
    if wanted == 2 and isinstance(keys, V2Keys | DefaultKeys):
        options["dimension_separator"] = keys.separator
    elif wanted == 3 and spec.zarr_format == 3:
        options["chunk_key_encoding"] = keys
    if wanted == "n5":
        options["fill_value"] = None  # zero is the only one that N5 has; other values are written out
    rejected: MetadataError | None = None
    for codecs in _codec_options(source, wanted, form):
        try:
            made = array_spec(**options, **codecs)
            formats.check_writable(made)
            Array(MemoryStore(), "", made, ChunkCache(0), True)  # finds out whether the codecs fit the chunks
        except MetadataError as error:
            rejected = error
            continue
        return made
    if rejected is None:
        raise UnsupportedError(f"{source.name} cannot be written in this form")
    raise rejected


def _new_chunks(source: Array, wanted: int | str, form: Form) -> Any:
    if form.chunks is not None:
        return form.chunks
    grid = source.spec.chunk_grid
    if wanted == 3 and form.shards is None and not isinstance(grid, RegularGrid):
        return grid
    return _inner_chunks(source)


def _new_shards(source: Array, wanted: int | str, form: Form) -> Any:
    """Return the shards of a copy: those given, else those of the source. Raises MetadataError where these cannot be
    kept with other chunks.
    """
    if wanted != 3:
        if form.shards is not None and form.shards is not False:
            raise UnsupportedError(f"shards need zarr_format 3; {wanted} has none")
        return None
    if form.shards is not None:
        return None if form.shards is False else form.shards
    if source.shards is None or form.chunks is None:
        return source.shards
    try:
        array_spec(shape=source.shape, dtype="u1", chunks=form.chunks, shards=source.shards)
    except MetadataError as error:
        raise MetadataError(
            f"the shards of the source, {source.shards}, cannot be kept with chunks {form.chunks}: {error}; give other "
            f"shards, or {option('shards', 'none' if on_command_line() else False)} for none"
        ) from error
    return source.shards


def _codec_options(source: Array, wanted: int | str, form: Form) -> Iterator[dict[str, Any]]:
    chain = _core_codecs(source.spec, _inner_chain(source)) if source.zarr_format in ALIKE else None
    given: dict[str, Any] = {}
    if form.compressors is not None:
        given = {"compressors": None if form.compressors == "none" else form.compressors}
    if chain is not None and wanted == 3:
        kept = [codec for codec in chain if not (given and isinstance(codec, BytesBytesCodec))]
        arrays = [codec_to_json(codec) for codec in kept if isinstance(codec, ArrayArrayCodec)]
        (serializer,) = [codec_to_json(codec) for codec in kept if isinstance(codec, ArrayBytesCodec)]
        compressors = [codec_to_json(codec) for codec in kept if isinstance(codec, BytesBytesCodec)]
        arrays = [codec for codec in arrays if not _is_reversal(codec, source)]
        yield {"filters": arrays, "serializer": serializer, "compressors": compressors, **given}
    if source.zarr_format in ALIKE and wanted == 2:
        with suppress(UnsupportedError):
            _, filters, compressor = chain_to_v2(_inner_chain(source))
            yield {"filters": filters, "compressors": compressor, **given}
    if given:
        yield given
        return
    yield {"compressors": _compressors(source, wanted)}
    yield {}


def _is_reversal(codec: Mapping[str, Any], source: Array) -> bool:
    """Whether a codec is the one that ``order`` adds."""
    rank = len(source.shape)
    return (
        source.order == "F"
        and codec["name"] == "transpose"
        and list(codec["configuration"]["order"]) == list(range(rank))[::-1]
    )


def _inner_chunks(source: Array) -> Any:
    """Return the shape of what is decoded as one; of chunks of several shapes that of the first."""
    chunks = source.chunks
    return tuple(side if isinstance(side, int) else side[0] for side in chunks)


def _compressors(source: Array, wanted: int | str) -> list[Any]:
    chunk = ChunkSpec(_inner_chunks(source), source.dtype, source.spec.fill_value)
    codecs = [codec for codec in _inner_chain(source) if isinstance(codec, BytesBytesCodec)]
    kept = [codec_to_json(core_codec(codec, chunk)) for codec in codecs]
    return kept if wanted == 3 else [codec for codec in kept if codec.get("name") != "crc32c"]


PLUMBING = {"bytes", "transpose", "sharding_indexed", "n5_default", "reshape"}
"""Codecs that say how elements are laid out, which formats do in other ways."""


def losses(source: Array, made: ArraySpec, form: Form) -> list[str]:
    """Return what of the source a copy of that spec does not keep, in words."""
    lost = []
    if made.data_type.name != source.spec.data_type.name:
        lost.append(f"data type {source.spec.data_type.name} becomes {made.data_type.name}")
    grid = source.spec.chunk_grid
    if not isinstance(grid, RegularGrid) and isinstance(made.chunk_grid, RegularGrid) and form.chunks is None:
        lost.append(f"chunks of several shapes become {made.chunk_grid.chunk_shape}")
    if source.shards is not None and form.shards is None and not _is_sharded(made):
        lost.append(f"shards {source.shards} are dropped: format {made.zarr_format} has none")
    kept = set(_codec_names(made.codecs))
    names = [
        name
        for codec in _inner_chain(source)
        if not (form.compressors is not None and isinstance(codec, BytesBytesCodec))
        for name in _codec_names((codec,))
        if name not in kept
    ]
    if names:
        instead = ", ".join(sorted(kept - PLUMBING)) or "none"
        lost.append(f"codecs are not kept: {', '.join(names)} (now: {instead})")
    return lost


def _is_sharded(spec: ArraySpec) -> bool:
    return any(codec.name == "sharding_indexed" for codec in spec.codecs)


def _codec_names(codecs: Iterable[Codec]) -> Iterator[str]:
    for codec in codecs:
        name = codec.name.removeprefix("numcodecs.")
        if name not in PLUMBING:
            yield name
        yield from _codec_names(getattr(codec, "codecs", ()))


def blocks(
    target: Array, source: Array, memory: int = USUAL_MEMORY, *, everything: bool = True
) -> Sequence[Block]:
    """Cut an array into blocks to copy: whole written chunks each, towards the source's chunks as far as ``memory``
    bytes allow, so that few of those are decoded more than once.

    ``everything``: all blocks; else those in which one of the two arrays has a stored chunk.
    """
    shape = target.shape
    itemsize = 64 if target.dtype.hasobject else max(1, target.dtype.itemsize)
    step = list(_written_shape(target))
    other = _written_shape(source)
    for axis in reversed(range(len(shape))):
        wanted = min(shape[axis], other[axis])
        while step[axis] < wanted and prod(step) * itemsize * 2 <= memory:
            step[axis] *= 2
    grid = BlockGrid(shape, step)
    if everything or not (source.store.listable and target.store.listable):
        return grid
    return grid.touching(joined(stored_boxes(source), stored_boxes(target)))


def _written_shape(array: Array) -> Sequence[int]:
    grid = array.spec.chunk_grid
    if isinstance(grid, RegularGrid):
        return tuple(max(1, side) for side in grid.chunk_shape)
    return tuple(max(1, length) for length in array.shape)
