"""Fetching tiles in the background: worker threads, one priority queue, generations, and a bounded cache.

Callbacks are called from worker threads, never under the lock; whoever needs another thread marshals them.
Nothing here knows what a tile looks like on the screen.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy.typing as npt

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileKey, TileRequest, request_order
from zarrfs_viewer.streaming.cache import TileCache
from zarrfs_viewer.streaming.stream import MemoryUse, OnError, OnExact, OnTile, TileError, TileStream
from zarrfs_viewer.streaming.tile_reading import ReadFailure, read_tile

__all__ = ["MemoryUse", "TileError", "TileStream", "TileStreamer"]


class TileStreamer:
    """The workers and the cache, shared by all panes of a process.

    A tile wanted by several streams is read once. Requests no stream wants any more are dropped before they
    are read. The cache keeps at most ``budget`` bytes, least recently used out first, but never drops what a
    stream shows now. Close it when done: the workers are threads.
    """

    def __init__(self, workers: int = 2, budget: int = 256 << 20, queue_limit: int = 4096) -> None:
        self._lock = threading.Condition()
        self._streams: list[TileStream] = []
        self._queue: list[TileRequest] = []
        self._running: dict[TileKey, Image] = {}
        self._outdated: set[TileKey] = set()  # running reads that began before the last retry
        self._failed: dict[TileKey, TileError] = {}
        self._cache = TileCache(budget, self._is_shown)
        self._queue_limit = queue_limit
        self._paused = self._closed = self._truncated = False
        self._hits = self._misses = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"viewer-tiles-{number}", daemon=True)
            for number in range(max(1, workers))
        ]
        for thread in self._threads:
            thread.start()

    def open(
        self,
        *,
        on_tile: OnTile | None = None,
        on_error: OnError | None = None,
        on_exact: OnExact | None = None,
    ) -> TileStream:
        """Return a new stream: one pane's wishes."""
        stream = TileStream(self, on_tile, on_error, on_exact)
        with self._lock:
            self._streams.append(stream)
        return stream

    def get(self, key: TileKey) -> npt.NDArray[Any] | None:
        """Return a tile from the cache, read-only, or None. Never blocks on I/O."""
        with self._lock:
            return self._cache.get(key)

    def present(self, keys: Sequence[TileKey]) -> frozenset[TileKey]:
        """Return those of the tiles that are in the cache."""
        with self._lock:
            return frozenset(key for key in keys if key in self._cache)

    def failures(self, keys: Sequence[TileKey]) -> tuple[TileError, ...]:
        """Return what is known to have failed of these tiles."""
        if not self._failed:
            return ()
        with self._lock:
            return tuple(self._failed[key] for key in keys if key in self._failed)

    @property
    def memory(self) -> MemoryUse:
        """The meter. Hits and misses count the tiles wanted, at the time they were."""
        with self._lock:
            return MemoryUse(
                self._cache.nbytes,
                self._cache.budget,
                len(self._cache),
                len(self._queue),
                len(self._running),
                self._hits,
                self._misses,
            )

    def set_budget(self, nbytes: int) -> None:
        """Change the bound; drops tiles at once where it shrinks."""
        with self._lock:
            self._cache.budget = nbytes
            self._cache.shrink()

    def retry(self) -> None:
        """Read again what failed and is still wanted, for instance when a vanished store is back.

        A read that is running now and fails is repeated as well: it may have failed before the store was back.
        """
        with self._lock:
            self._outdated.update(self._running)
            failed = set(self._failed)
            self._failed.clear()
            for stream in self._streams:
                stream._missing |= failed & stream._shown
            for key in failed:
                self._cache.discard(key)
            self._replan()

    def forget(self, image: Image) -> None:
        """Drop the tiles and requests of an image that was closed."""
        with self._lock:
            for stream in self._streams:
                stream._requests = tuple(r for r in stream._requests if r.key.plane.image != image.uid)
                stream._shown = frozenset(key for key in stream._shown if key.plane.image != image.uid)
                stream._missing = {key for key in stream._missing if key.plane.image != image.uid}
            self._cache.discard_image(image.uid)
            self._failed = {key: e for key, e in self._failed.items() if key.plane.image != image.uid}
            self._replan()

    def pause(self) -> None:
        """Start no further reads until ``resume``."""
        with self._lock:
            self._paused = True

    def resume(self) -> None:
        """Go on reading."""
        with self._lock:
            self._paused = False
            self._lock.notify_all()

    def close(self, timeout: float = 10.0) -> bool:
        """Stop the workers and drop everything. Returns False if a read still hangs after ``timeout``
        seconds.
        """
        with self._lock:
            self._closed = True
            self._streams.clear()
            self._queue.clear()
            self._lock.notify_all()
        deadline = monotonic() + timeout
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - monotonic()))
        with self._lock:
            self._cache.clear()
            self._failed.clear()
        return not any(thread.is_alive() for thread in self._threads)

    # -- for streams -------------------------------------------------------------------------------------------

    def _show(
        self,
        stream: TileStream,
        images: Sequence[Image],
        wanted: Sequence[TileRequest],
        prefetch: Sequence[TileRequest],
    ) -> int:
        shown = frozenset(request.key for request in wanted)
        with self._lock:
            stream._generation += 1
            generation = stream._generation
            stream._images = {image.uid: image for image in images}
            stream._requests = (*wanted, *prefetch)
            stream._shown = shown
            stream._missing = {key for key in shown if key not in self._cache and key not in self._failed}
            self._misses += len(stream._missing)
            self._hits += len(shown) - len(stream._missing)
            for key in shown:
                self._cache.get(key)  # what is shown is what was used last
            errors = [self._failed[key] for key in shown if key in self._failed]
            exact = not stream._missing
            self._replan()
        for error in errors:
            stream._tell(generation, stream._on_error, error)
        if exact:
            stream._tell(generation, stream._on_exact)
        return generation

    def _remove(self, stream: TileStream) -> None:
        with self._lock:
            if stream in self._streams:
                self._streams.remove(stream)
            stream._generation += 1
            self._replan()

    def _is_shown(self, key: TileKey) -> bool:
        return any(key in stream._shown for stream in self._streams)

    def _replan(self) -> None:
        """Queue what the streams want now: all else is dropped, whoever wanted it. Called under the lock."""
        best: dict[TileKey, TileRequest] = {}
        for stream in self._streams:
            for request in stream._requests:
                key = request.key
                if key.plane.image not in stream._images:
                    continue
                if key in self._cache or key in self._running or key in self._failed:
                    continue
                if key not in best or request.order < best[key].order:
                    best[key] = request
        ordered = request_order(list(best.values()))
        self._truncated = len(ordered) > self._queue_limit
        del ordered[self._queue_limit :]
        ordered.reverse()  # the next one is popped from the end
        self._queue = ordered
        if ordered:
            self._lock.notify(len(ordered))

    # -- workers -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._closed and (self._paused or not self._queue):
                    self._lock.wait()
                if self._closed:
                    return
                request = self._queue.pop()
                image = self._image_of(request.key)
                if image is None:
                    continue
                self._running[request.key] = image
                if not self._queue and self._truncated:
                    self._replan()
            tile, failure = read_tile(image, request.key)
            self._finish(request.key, tile, failure)

    def _image_of(self, key: TileKey) -> Image | None:
        for stream in self._streams:
            image = stream._images.get(key.plane.image)
            if image is not None:
                return image
        return None

    def _finish(self, key: TileKey, tile: npt.NDArray[Any] | None, failure: ReadFailure | None) -> None:
        error = None if failure is None else TileError(key, failure.message, failure.failed, failure.error)
        with self._lock:
            self._running.pop(key, None)
            outdated = key in self._outdated
            self._outdated.discard(key)
            if self._closed:
                return
            if error is not None and outdated:
                self._replan()
                return
            arrived = tile is not None
            if tile is not None:
                self._cache.put(key, tile)
            if error is not None:
                self._failed[key] = error
            waiting = [(s, s._generation) for s in self._streams if key in s._missing]
            exact = []
            for stream, generation in waiting:
                stream._missing.discard(key)
                if not stream._missing:
                    exact.append((stream, generation))
        for stream, generation in waiting:
            if error is not None:
                stream._tell(generation, stream._on_error, error)
            if arrived:
                stream._tell(generation, stream._on_tile, key)
        for stream, generation in exact:
            stream._tell(generation, stream._on_exact)
