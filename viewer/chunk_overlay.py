"""The chunk and shard grid of the displayed plane, with the chunks that are not stored marked. Pure, but for
asking the store which chunks there are."""

from __future__ import annotations

from dataclasses import dataclass

from viewer.image import Image
from viewer.state import ViewIntent, Viewport

__all__ = ["ChunkGrid", "chunk_grid", "missing_chunks"]


@dataclass(frozen=True)
class ChunkGrid:
    """Lines to draw, in data coordinates: positions of horizontal lines (``rows``) and vertical lines
    (``columns``) at the borders of chunks, and of shards where there are any. ``dense`` says that lines would
    be nearer than a few device pixels and were left out.
    """

    level: int
    chunk_rows: tuple[float, ...]
    chunk_columns: tuple[float, ...]
    shard_rows: tuple[float, ...] = ()
    shard_columns: tuple[float, ...] = ()
    dense: bool = False


def chunk_grid(image: Image, intent: ViewIntent, viewport: Viewport, level: int) -> ChunkGrid:
    """Return the lines that cross the viewport."""
    raise NotImplementedError


def missing_chunks(
    image: Image, intent: ViewIntent, viewport: Viewport, level: int, limit: int = 4096
) -> tuple[tuple[float, float, float, float], ...]:
    """Return the rectangles (top, left, bottom, right in data coordinates) of chunks (shards where sharded)
    in the viewport's plane that are not stored, for the first shown channel. Blocks on the store; at most
    ``limit`` are asked.
    """
    raise NotImplementedError
