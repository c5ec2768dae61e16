"""Chunk grids and chunk key encodings: subclass ``ChunkGrid`` with an ``Axis``, or ``ChunkKeyEncoding``."""

from __future__ import annotations

from zarrfs.engine.chunks.chunk_grids import ChunkGrid
from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding
from zarrfs.engine.indexing.axes import Axis

__all__ = ["Axis", "ChunkGrid", "ChunkKeyEncoding"]
