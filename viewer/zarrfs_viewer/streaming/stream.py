"""One pane's wishes for tiles, and what it is told of them.

The streamer that serves them is in ``streaming``; a stream is made by ``TileStreamer.open``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileKey, TileRequest

__all__ = ["MemoryUse", "OnError", "OnExact", "OnTile", "TileError", "TileStream"]

OnTile = Callable[[TileKey, int], None]
"""A wanted tile is in the cache; with the generation that wants it."""
OnError = Callable[["TileError", int], None]
OnExact = Callable[[int], None]
"""Every tile of that generation is there, or has failed: called once per generation."""


@dataclass(frozen=True)
class TileError:
    """A tile, or some chunks of it, could not be read. ``message`` is for the user; ``failed`` are the pixel
    rectangles of the level (top, left, bottom, right) that are blank for it; the rest of the tile is shown.
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


class StreamOwner(Protocol):
    """What a stream needs of the streamer that serves it."""

    def _show(
        self,
        stream: TileStream,
        images: Sequence[Image],
        wanted: Sequence[TileRequest],
        prefetch: Sequence[TileRequest],
    ) -> int: ...

    def _remove(self, stream: TileStream) -> None: ...


class TileStream:
    """What one pane wants now. Made by ``TileStreamer.open``. Thread-safe."""

    def __init__(
        self,
        streamer: StreamOwner,
        on_tile: OnTile | None,
        on_error: OnError | None,
        on_exact: OnExact | None,
    ) -> None:
        self._streamer = streamer
        self._on_tile = on_tile
        self._on_error = on_error
        self._on_exact = on_exact
        self._generation = 0
        self._images: dict[int, Image] = {}
        self._requests: tuple[TileRequest, ...] = ()
        self._shown: frozenset[TileKey] = frozenset()
        self._missing: set[TileKey] = set()
        self._closed = False
        # Held while a callback runs, so that close() can promise silence; re-entrant, as callbacks may call back.
        self._callback_lock = threading.RLock()

    @property
    def generation(self) -> int:
        """The number of the last ``show``; 0 before the first."""
        return self._generation

    def show(
        self, images: Sequence[Image], wanted: Sequence[TileRequest], prefetch: Sequence[TileRequest] = ()
    ) -> int:
        """Want these tiles from now on, and nothing else; returns the new generation at once.

        ``images`` are those that the requests name. Tiles in the cache already are reported by no
        ``on_tile``; if all are, ``on_exact`` is called before this returns, in the calling thread. Errors of
        tiles that failed before are reported again in the same way.
        """
        return self._streamer._show(self, images, wanted, prefetch)

    def close(self) -> None:
        """Want nothing any more; no callback comes after this returns."""
        self._streamer._remove(self)
        with self._callback_lock:
            self._closed = True

    def _tell(self, generation: int, callback: Callable[..., None] | None, *arguments: object) -> None:
        """Make a callback, unless the pane wants something else by now."""
        if callback is None:
            return
        with self._callback_lock:
            if not self._closed and generation == self._generation:
                callback(*arguments, generation)
