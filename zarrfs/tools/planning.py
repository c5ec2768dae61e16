"""What a copy of an array is to be, and in which blocks its values are copied. Pure, but for looking at metadata.

Chunks are copied untouched wherever the other format can say how they are encoded; else values are decoded and encoded
anew, block by block, each block a whole number of the chunks (shards) that are written, so that each is written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from zarrfs.engine.array import Array
from zarrfs.engine.chunk_grids import RegularGrid
from zarrfs.engine.chunk_keys import ChunkKeyEncoding, DefaultKeys, V2Keys
from zarrfs.engine.codecs.base import BytesBytesCodec, ChunkSpec, Codec
from zarrfs.engine.codecs.bytes import BytesCodec
from zarrfs.engine.codecs.numcodecs_twins import core_codec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.dtypes import default_fill
from zarrfs.engine.formats import detect
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import UnsupportedError

__all__ = ["Form", "blocks", "creation_options", "same_chunks"]

ALIKE: tuple[int | str, ...] = (1, 2, 3)
"""Formats whose chunks are encoded alike, so that only the documents differ."""

USUAL_MEMORY = 256 << 20


@dataclass(frozen=True)
class Form:
    """What is to be different of a copy; None keeps what the source has.

    ``zarr_format`` as for ``create_array``; ``chunks`` and ``shards`` likewise (``shards=False``: none);
    ``compressors`` as for ``create_array``.
    """

    zarr_format: int | str | None = None
    chunks: Any = None
    shards: Any = None
    compressors: Any = None

    @property
    def changes_chunks(self) -> bool:
        """Whether chunks cannot be as they are in the source."""
        return self.chunks is not None or self.shards is not None or self.compressors is not None


def same_chunks(spec: ArraySpec, form: Form, in_place: bool = False) -> ArraySpec | None:
    """Return the spec of a copy whose chunks are those of the source, byte by byte; None where there is none.

    ``in_place`` keeps the keys of chunks too.
    """
    wanted = spec.zarr_format if form.zarr_format is None else form.zarr_format
    if form.changes_chunks:
        return None
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
        plain = _core_codecs(spec)
        if plain is None:
            return None
        codecs = plain
    made = replace(
        spec, zarr_format=wanted, chunk_key_encoding=keys, fill_value=fill, codecs=codecs, document={}
    )
    try:
        detect.check_writable(made)
    except UnsupportedError:
        return None
    return made


def _core_codecs(spec: ArraySpec) -> tuple[Codec, ...] | None:
    """Return the chain in the words of the v3 core where it has them; None for records that v3 cannot say."""
    shape = spec.chunk_grid.chunk_shape or spec.shape
    chunk = ChunkSpec(tuple(shape), spec.data_type.numpy, spec.fill_value)
    codecs = []
    for codec in spec.codecs:
        if isinstance(codec, BytesCodec) and codec.endian is None and spec.data_type.numpy.names is not None:
            # Fields have byte orders of their own in v2, records have one in v3.
            if spec.data_type.numpy != spec.data_type.numpy.newbyteorder("<"):
                return None
            codec = BytesCodec("little")
        codecs.append(core_codec(codec, chunk))
    return tuple(codecs)


def creation_options(source: Array, form: Form) -> Iterator[dict[str, Any]]:
    """Yield options for ``create_array`` to try in turn: with the source's compression, then with the usual one."""
    spec = source.spec
    wanted = spec.zarr_format if form.zarr_format is None else form.zarr_format
    wanted = 2 if wanted == 1 else wanted
    inner, shards = _inner_chunks(source), source.shards
    if form.chunks is not None:
        inner, shards = form.chunks, None
    if form.shards is not None:
        shards = form.shards or None
    if wanted != 3:
        if shards is not None and form.shards:
            raise UnsupportedError(f"shards need zarr_format 3; {wanted} has none")
        shards = None
    options: dict[str, Any] = {
        "shape": source.shape,
        "dtype": spec.data_type.name if source.dtype.hasobject else source.dtype,
        "chunks": inner,
        "shards": shards,
        "fill_value": spec.fill_value,
        "dimension_names": spec.dimension_names,
        "attributes": dict(spec.attributes),
        "zarr_format": wanted,
    }
    if wanted == "n5":
        options["fill_value"] = None  # zero is the only one that N5 has; other values are written out
    if form.compressors is not None:
        compressors = None if form.compressors == "none" else form.compressors
        yield {**options, "compressors": compressors}
        return
    yield {**options, "compressors": _compressors(source)}
    yield options


def _inner_chunks(source: Array) -> Any:
    """Return the shape of what is decoded as one; of chunks of several shapes that of the first."""
    chunks = source.chunks
    return tuple(side if isinstance(side, int) else side[0] for side in chunks)


def _compressors(source: Array) -> list[Any]:
    codecs = source.spec.codecs
    sharding = source.layout.sharding()
    if sharding is not None:
        codecs = sharding[0].codecs
    chunk = ChunkSpec(_inner_chunks(source), source.dtype, source.spec.fill_value)
    kept = [codec_to_json(core_codec(codec, chunk)) for codec in codecs if isinstance(codec, BytesBytesCodec)]
    return [codec for codec in kept if codec.get("name") != "crc32c"]


def blocks(target: Array, source: Array, memory: int = USUAL_MEMORY) -> list[tuple[slice, ...]]:
    """Cut an array into blocks to copy: whole written chunks each, towards the source's chunks as far as ``memory``
    bytes allow, so that few of those are decoded more than once.
    """
    shape = target.shape
    itemsize = 64 if target.dtype.hasobject else max(1, target.dtype.itemsize)
    step = list(_written_shape(target))
    other = _written_shape(source)
    for axis in reversed(range(len(shape))):
        wanted = min(shape[axis], other[axis])
        while step[axis] < wanted and prod(step) * itemsize * 2 <= memory:
            step[axis] *= 2
    spans = [
        [slice(start, min(start + side, length)) for start in range(0, length, side)]
        for side, length in zip(step, shape, strict=True)
    ]
    return list(product(*spans))


def _written_shape(array: Array) -> Sequence[int]:
    grid = array.spec.chunk_grid
    if isinstance(grid, RegularGrid):
        return tuple(max(1, side) for side in grid.chunk_shape)
    return tuple(max(1, length) for length in array.shape)
