"""Codecs: subclass ``ArrayArrayCodec``, ``ArrayBytesCodec`` or ``BytesBytesCodec``."""

from __future__ import annotations

from zarrfs.engine.codecs.base import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    Buffer,
    BufferSource,
    ByteRange,
    BytesBytesCodec,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.registry import register_codec

__all__ = [
    "ArrayArrayCodec",
    "ArrayBytesCodec",
    "Buffer",
    "BufferSource",
    "ByteRange",
    "ByteSource",
    "BytesBytesCodec",
    "ChunkSpec",
    "Codec",
    "CodecError",
    "Region",
    "register_codec",
]
