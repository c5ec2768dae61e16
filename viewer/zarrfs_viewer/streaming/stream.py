"""The tile requests of one pane, and the callbacks that report their results.

Streams are created by ``TileStreamer.open``; the streamer is in ``streaming.streamer``.
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
"""Called when a requested tile is in the cache, with the generation of the request."""
OnError = Callable[["TileError", int], None]
"""Called when a requested tile, or a part of it, could not be read."""
OnExact = Callable[[int], None]
"""Called once per generation, when every visible tile is in the cache or has failed."""


@dataclass(frozen=True)
class TileError:
    """A tile, or some chunks of it, could not be read.

    ``message`` is displayed to the user. ``failed`` are the rectangles (top, left, bottom, right), in pixels of
    the plane, that are hatched. The rest of the tile is displayed.
    """

    key: TileKey
    message: str
    failed: tuple[tuple[int, int, int, int], ...]
    error: BaseException

    def contains(self, row: int, column: int) -> bool:
        """Return whether a pixel of the plane could not be read."""
        return any(top <= row < bottom and left <= column < right for top, left, bottom, right in self.failed)


@dataclass(frozen=True)
class MemoryUse:
    """The state of the cache and the queue. ``nbytes`` and ``tiles`` are in the cache, ``budget`` is its limit.

    ``queued`` and ``running`` are numbers of requests; ``hits`` and ``misses`` count requested tiles.
    """

    nbytes: int
    budget: int
    tiles: int
    queued: int
    running: int
    hits: int
    misses: int


class StreamOwner(Protocol):
    """The methods of ``TileStreamer`` that a stream calls."""

    def _show(
        self,
        stream: TileStream,
        images: Sequence[Image],
        visible: Sequence[TileRequest],
        prefetch: Sequence[TileRequest],
    ) -> int: ...

    def _prefetch(self, stream: TileStream, requests: Sequence[TileRequest]) -> None: ...

    def _remove(self, stream: TileStream) -> None: ...


class TileStream:
    """The current tile requests of one pane. Created by ``TileStreamer.open``. Thread-safe."""

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
        self._visible: frozenset[TileKey] = frozenset()
        self._pending: set[TileKey] = set()
        self._closed = False
        # Held while a callback runs, so that no callback runs after close(). Re-entrant, because callbacks may
        # call methods of the stream.
        self._callback_lock = threading.RLock()

    @property
    def generation(self) -> int:
        """The generation of the last call of ``show``; 0 before the first."""
        return self._generation

    def show(
        self, images: Sequence[Image], visible: Sequence[TileRequest], prefetch: Sequence[TileRequest] = ()
    ) -> int:
        """Replace the requests of this stream, and return the new generation. Does not block.

        ``images`` are the images of the requests. ``on_tile`` is not called for tiles that are in the cache. If
        all visible tiles are in the cache or have failed, ``on_exact`` is called in the calling thread before this
        returns.
        Errors of tiles that failed before are reported again, also in the calling thread.
        """
        return self._streamer._show(self, images, visible, prefetch)

    def prefetch(self, requests: Sequence[TileRequest]) -> None:
        """Add requests for tiles that are needed later to those of the last call of ``show``. Does not block."""
        self._streamer._prefetch(self, requests)

    def close(self) -> None:
        """Cancel all requests. No callback is called after this returns."""
        self._streamer._remove(self)
        with self._callback_lock:
            self._closed = True

    def _notify(self, generation: int, callback: Callable[..., None] | None, *arguments: object) -> None:
        """Call a callback, unless the stream is closed or its requests have changed."""
        if callback is None:
            return
        with self._callback_lock:
            if not self._closed and generation == self._generation:
                callback(*arguments, generation)
