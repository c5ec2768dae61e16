"""Dirty chunks of all arrays of a mount: bounded in memory, merged into the store in the background.

A written byte is in exactly one of three places: in a dirty chunk, in a chunk that is being flushed, or in the store.
Reads take the first two from ``overlay`` before they read the store, so that they never miss a byte that is moved in
between. A chunk whose flush fails stays dirty, and is flushed again later.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.engine.stores.base import Store
from zarrfs.engine.write.patching import write_patches
from zarrfs.errors import NodeNotFoundError, StoreError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.writing.dirty_array import DirtyArray, DirtyChunk, Overlay
from zarrfs.mount.writing.tiles import TilePart, element_bytes

__all__ = ["DEFAULT_DIRTY_NBYTES", "WriteBuffer"]

DEFAULT_DIRTY_NBYTES = 128 << 20

IDLE_SECONDS = 1.0
"""A chunk that has not been written for this time is flushed in the background."""

RETRY_SECONDS = 10.0
"""After a failure the background thread does not flush again for this time."""

SETTLING_SECONDS = 2.0
"""For this time after a flush, files of the array are not read from blocks, which may be older: blocks are compared
with the store after ``REVALIDATION_SECONDS`` only.
"""

MAX_MODIFICATION_TIMES = 10_000

MAX_NAMED_CHUNKS = 10
"""The number of chunks that a description of lost data names."""

Key = tuple[int, str]
Coords = tuple[int, ...]


class WriteBuffer:
    """The dirty chunks of the arrays of a mount. Thread-safe.

    ``max_nbytes`` bounds their memory, except for one tile per thread that writes: when it is exceeded, a write flushes
    the oldest chunks first, and raises the error if that fails. ``close`` flushes everything.
    """

    def __init__(
        self, max_nbytes: int = DEFAULT_DIRTY_NBYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_nbytes = max_nbytes
        self._clock = clock
        self._arrays: dict[Key, DirtyArray] = {}
        self._nbytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._failed_at = float("-inf")
        self._modified: OrderedDict[Key, float] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """The memory of all dirty chunks in bytes, including those that are being flushed."""
        return self._nbytes

    # -- writing and reading -----------------------------------------------------------------------------------

    def write(self, array: Array, order: FlatOrder, swap_width: int, offset: int, data: Any) -> None:
        """Write bytes to a flat stream of an array; the range lies in the stream.

        Raises the error of a flush if the buffer is full. Some of the bytes may have been accepted then.
        """
        mapping = DirtyArray(array)
        for elements in element_bytes(offset, np.frombuffer(data, np.uint8), array.itemsize, swap_width):
            for part in mapping.parts(array, order, elements):
                coords = mapping.chunk_of(part)
                # Flush before the bytes are kept, so that the buffer does not grow while the store is full.
                self._make_room()
                while (stale := self._put(array, coords, part)) is not None:
                    self._flush_chunk(stale, coords)

    def _put(self, array: Array, coords: Coords, part: TilePart) -> DirtyArray | None:
        """Keep a part. Return the dirty array whose chunk has to be flushed first, or None if the part is kept."""
        with self._changed:
            self._start()
            dirty = self._arrays.setdefault(_key(array), DirtyArray(array))
            grown = dirty.put(coords, part, self._clock())
            self._nbytes += grown or 0
            self._modified[_key(array)] = time.time()
            if len(self._modified) > MAX_MODIFICATION_TIMES:
                self._modified.popitem(last=False)
            return dirty if grown is None else None

    def _make_room(self) -> None:
        while self._nbytes > self.max_nbytes:
            with self._changed:
                candidates = [
                    (not chunk.is_complete, chunk.written_at, dirty, coords)
                    for dirty in self._arrays.values()
                    for coords, chunk in dirty.chunks.items()
                ]
                if not candidates:
                    # All chunks are being flushed by other threads.
                    self._changed.wait(timeout=IDLE_SECONDS)
                    continue
            _, _, oldest, coords = min(candidates, key=lambda candidate: candidate[:2])
            self._flush_chunk(oldest, coords)

    def overlay(
        self, array: Array, order: FlatOrder, swap_width: int, offset: int, size: int
    ) -> Overlay | None:
        """Return the dirty bytes of a range of a flat stream, or None if there are none.

        Call this before the range is read from the store, and apply it afterwards.
        """
        with self._changed:
            dirty = self._arrays.get(_key(array))
            if dirty is None or not dirty.is_dirty:
                return None
            return dirty.overlay(array, order, swap_width, offset, size)

    def modified(self, store: Store, path: str) -> float:
        """Return the time of the last write to an array in seconds since the epoch; 0 if it is not known."""
        return self._modified.get((id(store), path), 0.0)

    def is_settled(self, array: Array) -> bool:
        """Return whether the array has no dirty bytes and has not been flushed lately."""
        if _key(array) not in self._arrays:
            return True
        with self._changed:
            dirty = self._arrays.get(_key(array))
            if dirty is None:
                return True
            if dirty.is_dirty or self._clock() - dirty.flushed_at < SETTLING_SECONDS:
                return False
            del self._arrays[_key(array)]
        return True

    # -- flushing ----------------------------------------------------------------------------------------------

    def flush(self, array: Array | None = None, below: str | None = None) -> None:
        """Write the dirty chunks of one array, of all arrays at or below a path, or of all arrays.

        All chunks are tried. Then the first error is raised; the chunks that failed stay dirty.
        """
        with self._changed:
            tasks = [
                (dirty, coords)
                for key, dirty in self._arrays.items()
                if (array is None or key == _key(array)) and (below is None or _is_below(key[1], below))
                for coords in {**dirty.chunks, **dirty.flushing}
            ]
        first: Exception | None = None
        for dirty, coords in tasks:
            try:
                self._flush_chunk(dirty, coords)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def _flush_chunk(self, dirty: DirtyArray, coords: Coords) -> None:
        with self._changed:
            while coords in dirty.flushing:
                self._changed.wait()
            chunk = dirty.chunks.pop(coords, None)
            if chunk is None:
                return
            dirty.flushing[coords] = chunk
        done = False
        try:
            self._write(dirty.array, coords, chunk)
            done = True
        finally:
            with self._changed:
                del dirty.flushing[coords]
                dirty.flushed_at = self._clock()
                self._nbytes -= chunk.nbytes
                if not done:
                    newer = dirty.chunks.get(coords)
                    if newer is None:
                        dirty.chunks[coords] = chunk
                        self._nbytes += chunk.nbytes
                    else:
                        before = newer.nbytes
                        newer.merge_older(chunk)
                        self._nbytes += newer.nbytes - before
                self._changed.notify_all()

    def _write(self, array: Array, coords: Coords, chunk: DirtyChunk) -> None:
        try:
            # Another writer may have resized the array.
            array.refresh()
        except NodeNotFoundError as error:
            raise StoreError(f"{array.name}: the array was removed after it was written: {error}") from error
        patches = chunk.patches(array, coords)
        if len(patches) < len(chunk.tiles):
            logger.warning(
                "%s: written data outside the present shape %s is dropped", array.name, array.shape
            )
        if patches:
            write_patches(array.storage, coords, patches, array.write_empty_chunks)

    def discard(self, path: str) -> None:
        """Drop the dirty bytes of the arrays at or below a path, because they are removed."""
        with self._changed:
            for key in [key for key in self._arrays if _is_below(key[1], path)]:
                dirty = self._arrays[key]
                self._nbytes -= sum(chunk.nbytes for chunk in dirty.chunks.values())
                dirty.chunks.clear()
                while dirty.flushing:
                    self._changed.wait()
                self._nbytes -= sum(chunk.nbytes for chunk in dirty.chunks.values())
                dirty.chunks.clear()
                self._arrays.pop(key, None)

    # -- the background ----------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="zarrfs-write-back", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(timeout=IDLE_SECONDS / 2)
                if self._closed:
                    return
            self.flush_idle()

    def flush_idle(self) -> None:
        """Flush the chunks that have not been written lately. Errors are logged, and the chunks stay dirty."""
        now = self._clock()
        if now - self._failed_at < RETRY_SECONDS:
            return
        with self._changed:
            tasks = [
                (dirty, coords)
                for dirty in self._arrays.values()
                for coords, chunk in dirty.chunks.items()
                if now - chunk.written_at >= IDLE_SECONDS
            ]
        for dirty, coords in tasks:
            try:
                self._flush_chunk(dirty, coords)
            except Exception as error:
                self._failed_at = now
                logger.warning(
                    "%s: written data cannot be stored now and is kept in memory: %s",
                    dirty.array.name,
                    describe_error(error),
                )
                return

    def close(self) -> list[str]:
        """Flush everything and stop the background thread. Return a description of the lost data of each array."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        lost = []
        for dirty in list(self._arrays.values()):
            try:
                self.flush(dirty.array)
            except Exception as error:
                coords = sorted(dirty.chunks)
                named = ", ".join(map(str, coords[:MAX_NAMED_CHUNKS]))
                more = f" and {len(coords) - MAX_NAMED_CHUNKS} more" if len(coords) > MAX_NAMED_CHUNKS else ""
                lost.append(
                    f"{dirty.array.name}: the data written to {len(coords)} chunks of the array are lost "
                    f"({named}{more}): {describe_error(error)}"
                )
        self._arrays.clear()
        self._nbytes = 0
        return lost


def _key(array: Array) -> Key:
    return id(array.store), array.path


def _is_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")
