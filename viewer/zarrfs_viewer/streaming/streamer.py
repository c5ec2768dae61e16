"""Fetching of tiles in the background: worker threads, one priority queue, and a bounded cache.

Callbacks are called from worker threads and never while the lock is held. A caller that needs another thread
marshals them. Drawing of tiles is in ``rendering``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy.typing as npt

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import Rank, TileKey, TileRequest, request_order
from zarrfs_viewer.streaming.cache import TileCache
from zarrfs_viewer.streaming.tile_reading import ReadFailure, read_tile

__all__ = ["MemoryUse", "TileError", "TileStream", "TileStreamer"]

OnTile = Callable[[TileKey, int], None]
"""Called when a requested tile is in the cache, with the generation of the request."""
OnError = Callable[["TileError", int], None]
"""Called when a requested tile, or a part of it, could not be read."""
OnFinished = Callable[[int], None]
"""Called once per generation, when every visible tile is in the cache or has failed."""


@dataclass(frozen=True)
class TileError:
    """A tile, or some chunks of it, could not be read.

    ``message`` is displayed to the user. ``failed`` are the rectangles (top, left, bottom, right), in pixels of
    the plane, that are hatched. The rest of the tile is displayed, if ``is_partial``; otherwise there is no tile.
    """

    key: TileKey
    message: str
    failed: tuple[tuple[int, int, int, int], ...]
    error: BaseException
    is_partial: bool = False

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


class TileStream:
    """The current tile requests of one pane, and the callbacks that report their results. Created by
    ``TileStreamer.open``. Thread-safe.
    """

    def __init__(
        self,
        streamer: TileStreamer,
        on_tile: OnTile | None,
        on_error: OnError | None,
        on_finished: OnFinished | None,
    ) -> None:
        self._streamer = streamer
        self._on_tile = on_tile
        self._on_error = on_error
        self._on_finished = on_finished
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
        all visible tiles are in the cache or have failed, ``on_finished`` is called in the calling thread before this
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


class TileStreamer:
    """The worker threads and the tile cache, shared by all panes of a process. Thread-safe.

    A tile that several streams request is read once. Queued requests that no stream needs are dropped. The cache
    is an LRU cache of ``budget`` bytes that never evicts visible tiles. ``close`` stops the worker threads.
    """

    def __init__(self, workers: int = 2, budget: int = 256 << 20, max_queued: int = 4096) -> None:
        self._lock = threading.Condition()
        self._streams: list[TileStream] = []
        self._queue: list[TileRequest] = []
        self._running: dict[TileKey, Image] = {}
        self._running_chunks: set[Hashable] = set()  # ``Image.chunks_of`` of the running reads
        self._outdated: set[TileKey] = set()  # running reads that started before the last retry
        self._failed: dict[TileKey, TileError] = {}
        self._cache = TileCache(budget, self._is_visible)
        self._max_queued = max_queued
        self._closed = self._truncated = False
        self._hits = self._misses = 0
        self._threads: list[threading.Thread] = []
        self._worker_count = 0
        self.set_workers(workers)

    def set_workers(self, count: int) -> None:
        """Change the number of worker threads. Threads that are no longer needed end after the tile that they read."""
        with self._lock:
            if self._closed:
                return
            self._worker_count = max(1, count)
            running = {thread.name for thread in self._threads}
            for number in range(self._worker_count):
                name = f"viewer-tiles-{number}"
                if name not in running:
                    thread = threading.Thread(target=self._run_worker, args=(number,), name=name, daemon=True)
                    self._threads.append(thread)
                    thread.start()
            self._lock.notify_all()

    def open(
        self,
        *,
        on_tile: OnTile | None = None,
        on_error: OnError | None = None,
        on_finished: OnFinished | None = None,
    ) -> TileStream:
        """Return a new stream for the requests of one pane."""
        stream = TileStream(self, on_tile, on_error, on_finished)
        with self._lock:
            self._streams.append(stream)
        return stream

    def get(self, key: TileKey) -> npt.NDArray[Any] | None:
        """Return a tile from the cache as a read-only array, or None. Does not block on I/O."""
        with self._lock:
            return self._cache.get(key)

    def cached_keys(self, keys: Sequence[TileKey]) -> frozenset[TileKey]:
        """Return the keys whose tiles are in the cache."""
        with self._lock:
            return frozenset(key for key in keys if key in self._cache)

    def failures(self, keys: Sequence[TileKey]) -> tuple[TileError, ...]:
        """Return the errors of those of the tiles that have failed."""
        if not self._failed:
            return ()
        with self._lock:
            return tuple(self._failed[key] for key in keys if key in self._failed)

    @property
    def memory(self) -> MemoryUse:
        """The current state of the cache and the queue. A tile is a hit or a miss at the time of its request.

        The numbers are read without the lock, because the GUI thread reads them for each picture and would wait for
        the workers. A number may therefore be older than the next one.
        """
        return MemoryUse(
            self._cache.nbytes,
            self._cache.budget,
            len(self._cache),
            len(self._queue),
            len(self._running),
            self._hits,
            self._misses,
        )

    def set_budget(self, budget: int) -> None:
        """Set the limit of the cache in bytes. Tiles above it are removed with the next tile that is read."""
        with self._lock:
            self._cache.budget = budget

    def retry(self) -> None:
        """Read failed tiles again if they are still requested, for instance after a store has become available.

        A running read that fails is repeated too, because it may have failed before this call.
        """
        with self._lock:
            self._outdated.update(self._running)
            failed = set(self._failed)
            self._failed.clear()
            for stream in self._streams:
                stream._pending |= failed & stream._visible
            for key in failed:
                self._cache.discard(key)
            self._rebuild_queue()

    def forget(self, image: Image) -> None:
        """Remove the tiles and the requests of an image that was closed."""
        with self._lock:
            for stream in self._streams:
                stream._requests = tuple(r for r in stream._requests if r.key.plane.image != image.uid)
                stream._visible = frozenset(key for key in stream._visible if key.plane.image != image.uid)
                stream._pending = {key for key in stream._pending if key.plane.image != image.uid}
            self._cache.discard_image(image.uid)
            self._failed = {key: e for key, e in self._failed.items() if key.plane.image != image.uid}
            self._rebuild_queue()

    def close(self, timeout: float = 10.0) -> bool:
        """Stop the workers and clear the cache. Returns False if a worker has not stopped after ``timeout``
        seconds, because its read is blocked.
        """
        with self._lock:
            self._closed = True
            self._streams.clear()
            self._queue.clear()
            self._lock.notify_all()
        deadline = monotonic() + timeout
        threads = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        with self._lock:
            self._cache.clear()
            self._failed.clear()
        return not any(thread.is_alive() for thread in threads)

    # -- called by streams -------------------------------------------------------------------------------------

    def _show(
        self,
        stream: TileStream,
        images: Sequence[Image],
        visible: Sequence[TileRequest],
        prefetch: Sequence[TileRequest],
    ) -> int:
        keys = frozenset(request.key for request in visible)
        with self._lock:
            stream._generation += 1
            generation = stream._generation
            stream._images = {image.uid: image for image in images}
            stream._requests = (*visible, *prefetch)
            stream._visible = keys
            stream._pending = {key for key in keys if not self._is_settled(key)}
            self._misses += len(stream._pending)
            self._hits += len(keys) - len(stream._pending)
            for key in keys:
                self._cache.get(key)  # mark as most recently used
            errors = [self._failed[key] for key in keys if key in self._failed]
            finished = not stream._pending
            self._rebuild_queue()
        for error in errors:
            stream._notify(generation, stream._on_error, error)
        if finished:
            stream._notify(generation, stream._on_finished)
        return generation

    def _prefetch(self, stream: TileStream, requests: Sequence[TileRequest]) -> None:
        with self._lock:
            stream._requests = (*stream._requests, *requests)
            self._rebuild_queue()

    def _remove(self, stream: TileStream) -> None:
        with self._lock:
            if stream in self._streams:
                self._streams.remove(stream)
            stream._generation += 1
            self._rebuild_queue()

    def _is_settled(self, key: TileKey) -> bool:
        """Return whether a tile is not to be read: it is in the cache, or nothing of it can be read. A tile of which a
        part can be read may have been evicted from the cache.
        """
        error = self._failed.get(key)
        return key in self._cache or (error is not None and not error.is_partial)

    def _is_visible(self, key: TileKey) -> bool:
        return any(key in stream._visible for stream in self._streams)

    def _rebuild_queue(self) -> None:
        """Rebuild the queue from the requests of all streams. The caller holds the lock."""
        best: dict[TileKey, TileRequest] = {}
        for stream in self._streams:
            for request in stream._requests:
                key = request.key
                if key.plane.image not in stream._images:
                    continue
                if key in self._running or self._is_settled(key):
                    continue
                if key not in best or request.order < best[key].order:
                    best[key] = request
        ordered = request_order(list(best.values()))
        self._truncated = len(ordered) > self._max_queued
        del ordered[self._max_queued :]
        ordered.reverse()  # requests are popped from the end
        self._queue = ordered
        if ordered:
            self._lock.notify(len(ordered))

    # -- workers -----------------------------------------------------------------------------------------------

    def _run_worker(self, number: int) -> None:
        while True:
            with self._lock:
                request = None
                while request is None:
                    if self._closed:
                        return
                    if number >= self._worker_count:
                        self._threads.remove(threading.current_thread())
                        self._lock.notify()  # another worker has taken the request for which this one was woken
                        return
                    request = self._pop()
                    if request is None:
                        self._lock.wait()
                image = self._image_of(request.key)
                if image is None:
                    continue
                chunks = image.chunks_of(request.key)
                self._running[request.key] = image
                self._running_chunks.add(chunks)
                if not self._queue and self._truncated:
                    self._rebuild_queue()
            tile, failure = read_tile(image, request.key, request.keeps_chunks, request.rank is Rank.VISIBLE)
            self._finish(request.key, chunks, tile, failure)

    def _pop(self) -> TileRequest | None:
        """Remove the first request from the queue whose chunks no other worker is decoding. The caller holds the lock.

        Two workers that read two planes of the same chunks would decode each chunk twice.
        """
        for position in range(len(self._queue) - 1, -1, -1):
            request = self._queue[position]
            image = self._image_of(request.key)
            if image is None or image.chunks_of(request.key) not in self._running_chunks:
                return self._queue.pop(position)
        return None

    def _image_of(self, key: TileKey) -> Image | None:
        for stream in self._streams:
            image = stream._images.get(key.plane.image)
            if image is not None:
                return image
        return None

    def _finish(
        self, key: TileKey, chunks: Hashable, tile: npt.NDArray[Any] | None, failure: ReadFailure | None
    ) -> None:
        error = (
            None
            if failure is None
            else TileError(key, failure.message, failure.failed, failure.error, tile is not None)
        )
        with self._lock:
            self._running.pop(key, None)
            self._running_chunks.discard(chunks)
            if self._queue:
                self._lock.notify()  # a worker may wait for these chunks
            outdated = key in self._outdated
            self._outdated.discard(key)
            if self._closed:
                return
            if error is not None and outdated:
                self._rebuild_queue()
                return
            arrived = tile is not None
            if tile is not None:
                self._cache.put(key, tile)
            if error is None:
                self._failed.pop(key, None)  # of an evicted tile, of which a part could not be read
            else:
                self._failed[key] = error
            waiting = [(s, s._generation) for s in self._streams if key in s._pending]
            finished = []
            for stream, generation in waiting:
                stream._pending.discard(key)
                if not stream._pending:
                    finished.append((stream, generation))
        for stream, generation in waiting:
            if error is not None:
                stream._notify(generation, stream._on_error, error)
            if arrived:
                stream._notify(generation, stream._on_tile, key)
        for stream, generation in finished:
            stream._notify(generation, stream._on_finished)
