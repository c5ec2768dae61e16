"""The codec chain of an array with its decoder and encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from zarrfs.engine.codecs.base import ChunkSpec, Codec
from zarrfs.engine.codecs.pipeline.chain import CodecChain
from zarrfs.engine.codecs.pipeline.decoding import ChunkDecoder
from zarrfs.engine.codecs.pipeline.encoding import ChunkEncoder

__all__ = ["CodecPipeline"]


class CodecPipeline:
    """The codecs of an array, resolved for chunks of one shape. Immutable and thread-safe.

    Raises MetadataError on construction when the codecs do not fit together or do not fit ``spec``.

    Attributes:
        chain: the codecs and the representations between them.
        decoder: decodes chunks and regions.
        encoder: encodes chunks.
    """

    def __init__(self, codecs: Sequence[Codec], spec: ChunkSpec) -> None:
        self.chain = CodecChain(codecs, spec)
        self.decoder = ChunkDecoder(self.chain)

    @cached_property
    def encoder(self) -> ChunkEncoder:
        """Encodes chunks."""
        return ChunkEncoder(self.chain)
