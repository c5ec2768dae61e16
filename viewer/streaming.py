"""Fetching tiles in the background: worker threads, one priority queue, generations, and a bounded cache.

Callbacks are called from worker threads, never under the lock; whoever needs another thread marshals them. Nothing
here knows what a tile looks like on the screen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from viewer.image import Image
from viewer.tiles import TileKey, TileRequest

__all__ = ["MemoryUse", "TileError", "TileStream", "TileStreamer"]

OnTile = Callable[[TileKey, int], None]
"""A wanted tile is in the cache; with the generation that wants it."""
OnError = Callable[["TileError", int], None]
OnExact = Callable[[int], None]
"""Every tile of that generation is there (or failed): called once per generation."""


@dataclass(frozen=True)
class TileError:
    """A tile, or some chunks of it, could not be read. ``message`` is one sentence for the user; ``failed`` are the
    pixel rectangles of the level (top, left, bottom, right) that are blank for it; the rest of the tile is shown.
    """

    key: TileKey
    message: str
    failed: tuple[tuple[int, int, int, int], ...]
    error: BaseException


@dataclass(frozen=True)
class MemoryUse:
    """The live meter: bytes and number of tiles held, the bound, and what is under way."""

    nbytes: int
    budget: int
    tiles: int
    queued: int
    running: int
    hits: int
    misses: int


class TileStreamer:
    """The workers and the cache, shared by all panes of a process.

    A tile wanted by several streams is read once. Requests no stream wants any more are dropped before they are
    read. The cache keeps at most ``budget`` bytes, least recently used out first, but never drops what a stream
    shows now.
    """

    def __init__(self, workers: int = 2, budget: int = 256 << 20, queue_limit: int = 4096) -> None:
        raise NotImplementedError

    def open(
        self,
        *,
        on_tile: OnTile | None = None,
        on_error: OnError | None = None,
        on_exact: OnExact | None = None,
    ) -> TileStream:
        """Return a new stream: one pane's wishes."""
        raise NotImplementedError

    def get(self, key: TileKey) -> np.ndarray[Any, Any] | None:
        """Return a tile from the cache, read-only, or None. Never blocks on I/O."""
        raise NotImplementedError

    @property
    def memory(self) -> MemoryUse:
        raise NotImplementedError

    def set_budget(self, nbytes: int) -> None:
        """Change the bound; drops tiles at once where it shrinks."""
        raise NotImplementedError

    def forget(self, image: Image) -> None:
        """Drop the tiles and requests of an image that was closed."""
        raise NotImplementedError

    def pause(self) -> None:
        """Start no further reads until ``resume``."""
        raise NotImplementedError

    def resume(self) -> None:
        raise NotImplementedError

    def close(self, timeout: float = 10.0) -> bool:
        """Stop the workers and drop everything. Returns False if a read still hangs after ``timeout`` seconds."""
        raise NotImplementedError


class TileStream:
    """What one pane wants now. Made by ``TileStreamer.open``. Thread-safe."""

    def show(
        self, images: Sequence[Image], wanted: Sequence[TileRequest], prefetch: Sequence[TileRequest] = ()
    ) -> int:
        """Want these tiles from now on, and nothing else; returns the new generation at once.

        ``images`` are those that the requests name. Tiles in the cache already are reported by no ``on_tile``; if
        all are, ``on_exact`` is called before this returns, in the calling thread.
        """
        raise NotImplementedError

    @property
    def generation(self) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """Want nothing any more; no callback comes after this returns."""
        raise NotImplementedError
