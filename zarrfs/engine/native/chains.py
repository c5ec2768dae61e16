"""Translation of a codec chain to the structures of the native library, where the library supports the chain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec, needs_canonical
from zarrfs.engine.codecs.base import ArrayArrayCodec, BytesBytesCodec, ChunkSpec
from zarrfs.engine.codecs.n5.block import N5BlockCodec
from zarrfs.engine.codecs.pipeline.chain import CodecChain
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.native.library import NativeLibrary
from zarrfs.engine.native.structures import (
    DECODERS,
    MAX_NDIM,
    MAX_STEPS,
    ChainStructure,
    ShardStructure,
)
from zarrfs.engine.read_limits import MAX_WHOLE_NBYTES

__all__ = ["NativeChain", "native_chain"]

BOOL, COPY = 1, 0
"""Conversions of elements (``ELEMENT_...``). The others are the number of bytes that are reversed."""


class NativeChain(NamedTuple):
    """A codec chain for the native library.

    Attributes:
        chain: the codecs of a chunk, or of an inner chunk if the array is sharded.
        shard: the index of a shard; not ``present`` otherwise.
        chunk_shape: the shape of a chunk, or of an inner chunk.
        steps: the codec of each step of ``chain``, and the size in bytes of its decoded side.
    """

    chain: ChainStructure
    shard: ShardStructure
    chunk_shape: tuple[int, ...]
    steps: tuple[tuple[BytesBytesCodec, int | None], ...]


def native_chain(chain: CodecChain, library: NativeLibrary) -> NativeChain | None:
    """Return the structures for a codec chain, or None if the library does not support it."""
    shard = ShardStructure()
    if chain.sharded:
        codec = chain.array_bytes_codec
        if type(codec) is not ShardingCodec or chain.array_codecs or chain.bytes_codecs:
            return None
        layout = codec.shard_layout(chain.array_bytes_spec)
        if layout.pipeline.chain.sharded or not 0 < len(layout.grid) <= MAX_NDIM:
            return None
        if not _translate_index(layout.index_pipeline.chain, shard):
            return None
        shard.present = 1
        shard.index_at_start = codec.index_location == "start"
        shard.index_nbytes = layout.index_nbytes
        shard.grid[: len(layout.grid)] = layout.grid
        chain = layout.pipeline.chain
    structure = ChainStructure()
    codecs = _translate(chain, structure, library)
    if codecs is None:
        return None
    return NativeChain(structure, shard, chain.spec.shape, codecs)


def _translate_index(chain: CodecChain, shard: ShardStructure) -> bool:
    """Describe the codecs of a shard index. Return False if it has others than ``bytes`` and ``crc32c``."""
    if chain.array_codecs or not chain.direct or type(chain.array_bytes_codec) is not BytesCodec:
        return False
    steps = [_step(codec) for codec, _ in chain.bytes_codecs]
    shard.index_has_checksum = len(steps)
    return steps in ([], ["crc32c"])


def _translate(
    chain: CodecChain, structure: ChainStructure, library: NativeLibrary
) -> tuple[tuple[BytesBytesCodec, int | None], ...] | None:
    """Describe the codecs of a chunk. Return the codecs of the steps, or None if the library does not support them."""
    spec = chain.spec
    ndim = len(spec.shape)
    nbytes = spec.nbytes
    if (
        sys.byteorder != "little"
        or not 0 < ndim <= MAX_NDIM
        or nbytes is None
        or chain.max_encoded_size is None
    ):
        return None
    if not 0 < nbytes <= MAX_WHOLE_NBYTES:
        return None
    axes = _stored_axes(tuple(range(ndim)), [codec for codec, _ in chain.array_codecs])
    if axes is None:
        return None
    array_bytes = chain.array_bytes_codec
    bytes_codecs = chain.bytes_codecs
    if type(array_bytes) is N5BlockCodec:
        inner = CodecChain(
            array_bytes.codecs, ChunkSpec(chain.array_bytes_spec.shape, spec.dtype, spec.fill_value)
        )
        inner_axes = _stored_axes(axes, [codec for codec, _ in inner.array_codecs])
        if bytes_codecs or inner_axes is None:
            return None
        structure.n5 = 1
        structure.n5_axes[:ndim] = axes
        axes = inner_axes
        array_bytes = inner.array_bytes_codec
        bytes_codecs = inner.bytes_codecs
    if type(array_bytes) is not BytesCodec:
        return None
    element = _element(spec.dtype, array_bytes.stored_dtype(spec.dtype))
    steps = [_step(codec) for codec, _ in reversed(bytes_codecs)]
    compressors = [step for step in steps if step != "crc32c"]
    if element is None or len(steps) > MAX_STEPS or len(compressors) > 1:
        return None
    if not all(step in DECODERS and library.supports(step) for step in steps):
        return None
    structure.ndim = ndim
    structure.step_count = len(steps)
    structure.steps[: len(steps)] = [DECODERS[step] for step in steps]
    structure.element = element
    structure.itemsize = spec.dtype.itemsize
    structure.nbytes = nbytes
    structure.max_encoded = chain.max_encoded_size
    structure.shape[:ndim] = spec.shape
    structure.axes[:ndim] = axes
    return tuple(reversed(bytes_codecs))


def _stored_axes(axes: tuple[int, ...], codecs: Sequence[ArrayArrayCodec]) -> tuple[int, ...] | None:
    """Return the dimension of the array for each dimension after the codecs; None unless all are transpositions."""
    for codec in codecs:
        if type(codec) is not TransposeCodec:
            return None
        axes = tuple(axes[axis] for axis in codec.order)
    return axes


def _step(codec: BytesBytesCodec) -> str:
    """Return the decoder of a codec, or an empty string if the library has none."""
    for defining in type(codec).__mro__:
        members = vars(defining)
        if "native_decoder" in members:
            return codec.native_decoder
        if "decode" in members:  # A subclass that decodes other bytes.
            return ""
    return ""


def _element(dtype: np.dtype[Any], stored: np.dtype[Any]) -> int | None:
    """Return how elements are converted from the stored dtype, or None if the library cannot do it."""
    if dtype.hasobject or dtype.itemsize == 0 or dtype.subdtype is not None:
        return None
    if needs_canonical(dtype):
        return BOOL if dtype.kind == "b" else None
    if stored == dtype:
        return COPY
    if dtype.kind in "iufmM" and dtype.isbuiltin != 2 and dtype.itemsize in (2, 4, 8):
        return dtype.itemsize
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        return dtype.itemsize // 2
    return None
