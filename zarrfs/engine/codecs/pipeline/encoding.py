"""Encoding whole chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import Buffer, Codec, CodecError
from zarrfs.engine.codecs.pipeline.chain import CodecChain, RegionCodec, raise_located
from zarrfs.engine.codecs.pipeline.scratch import new_chunk, scratch_chunk
from zarrfs.errors import MetadataError

__all__ = ["ChunkEncoder"]

Array = np.ndarray[Any, Any]


class ChunkEncoder:
    """Encodes the chunks of one codec chain. Immutable and thread-safe. All methods raise CodecError.

    Raises CodecError on construction if a codec has a parameter that prevents encoding, such as an invalid compression
    level; such an array can still be read.
    """

    def __init__(self, chain: CodecChain) -> None:
        for codec in chain.codecs:
            try:
                codec.check_encoding()
            except MetadataError as error:
                raise CodecError(f"{error}; the array can be read, but not written") from error
        self.chain = chain
        self._encodes_scratch = chain.direct and not any(codec.rounds for codec, _ in chain.array_codecs)

    def encode(self, array: Array, *, may_alias_scratch: bool = False, keep_filled: bool = False) -> Buffer:
        """Encode a whole chunk of ``chain.spec.shape``.

        The result may be the memory of ``array``. With ``may_alias_scratch`` it may also be this thread's scratch
        memory, which is valid until the thread encodes or decodes the next chunk. With ``keep_filled`` inner chunks
        that contain only the fill value are stored; by default they are omitted.
        """
        chain = self.chain
        codec: Codec = chain.array_bytes_codec
        must_copy = False
        try:
            if (
                self._encodes_scratch
                and (may_alias_scratch or chain.bytes_codecs)
                and self._is_strided(array)
            ):
                scratch, memory = scratch_chunk(chain)
                scratch[...] = array
                data: Buffer = memory
                must_copy = not may_alias_scratch
            else:
                for codec, spec in chain.array_codecs:
                    array = codec.encode(array, spec)
                codec = chain.array_bytes_codec
                if keep_filled and isinstance(codec, RegionCodec):
                    data = b"".join(codec.encode_parts(array, chain.array_bytes_spec, True))
                else:
                    data = chain.array_bytes_codec.encode(array, chain.array_bytes_spec)
            for codec, _ in chain.bytes_codecs:
                data = codec.encode(data)
        except Exception as error:
            raise_located(error, codec, "encode")
        # A codec may have returned its argument.
        return bytes(data) if must_copy and not isinstance(data, bytes) else data

    def encode_parts(self, array: Array, keep_filled: bool = False) -> list[Buffer]:
        """Encode a whole chunk to the parts of one value, for ``Store.set_parts``.

        The parts are valid until this thread encodes or decodes the next chunk.
        """
        chain = self.chain
        region_codec = chain.array_bytes_codec
        if not isinstance(region_codec, RegionCodec) or chain.bytes_codecs:
            return [self.encode(array, may_alias_scratch=True, keep_filled=keep_filled)]
        codec: Codec = region_codec
        try:
            for codec, spec in chain.array_codecs:
                array = codec.encode(array, spec)
            codec = region_codec
            return region_codec.encode_parts(array, chain.array_bytes_spec, keep_filled)
        except Exception as error:
            raise_located(error, codec, "encode")

    def working_chunk(self) -> Array:
        """Return memory for one decoded chunk, to be filled and passed to ``encode_parts``.

        It is this thread's scratch memory where that saves an allocation.
        """
        if self.chain.direct:
            return scratch_chunk(self.chain)[0]
        return new_chunk(self.chain.spec)

    def _is_strided(self, array: Array) -> bool:
        """Return whether the memory order of the chunk differs from the order in which it is encoded."""
        return not self.chain.encoded_view(array).flags.c_contiguous
