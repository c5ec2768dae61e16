"""Ranges of open files that lie in blocks in memory, and that the native library may serve without the interpreter."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from typing import NamedTuple

from zarrfs.mount.native.library import BUCKETS, MAX_UNITS, WAYS, NativeReads, Range, Totals, Usage
from zarrfs.mount.reading.block import UNIT_NBYTES, Block

__all__ = ["UNLIMITED", "FileRange", "PublishedRanges"]

RECENT_SECONDS = 0.05
"""A file counts as being read for this time after a request for it was served: the kernel sends the next request soon.
"""

NANOSECONDS = 1_000_000_000

UNLIMITED = (1 << 63) - 1
"""A ``max_run`` for accesses whose pattern is known."""


class FileRange(NamedTuple):
    """A range of an open file that is a part of a stream, and the conditions under which its blocks may be published.

    Attributes:
        handle: the handle of the file, unique in the process.
        start, stop: the range of the file.
        shift: the difference between the offset of a byte in the file and in the stream.
        expires: the time of the monotonic clock until which the metadata of the file need no comparison; -inf if they
            have to be compared now.
        max_run: the number of consecutive bytes after which a request is passed to Python.
        changes: ``PublishedRanges.changes`` before the metadata were compared.
    """

    handle: int
    start: int
    stop: int
    shift: int
    expires: float
    max_run: int
    changes: int


class _Published(NamedTuple):
    key: Hashable
    block: Block
    handle: int
    expires: float
    max_run: int


class PublishedRanges:
    """The ranges that the native library may serve; none without the library.

    A range is retracted before the memory of its block is used for anything else, and before a change can be observed
    in another way. It expires when its block or the metadata of its file have to be compared with the store.
    Thread-safe: ``lock`` is the reentrant lock of the blocks.

    Attributes:
        changes: a number that changes when all ranges are retracted. A range is not published if that has happened
            since its file was compared with the store.
    """

    def __init__(self, library: NativeReads | None, lock: threading.RLock) -> None:
        self.changes = 0
        self._lock = lock
        self._library = library
        self._slots: dict[int, _Published] = {}
        self._retracted: dict[int, Usage] = {}
        """By handle of which a range was published, the usage of the retracted range that was used last."""

    def publish(self, key: Hashable, block: Block, offset: int, file: FileRange, expires: float) -> None:
        """Publish the part of a block in a file. ``offset`` is the offset of the block in the stream.

        ``expires`` is the time until which the block needs no comparison with the store. The lock of the blocks is
        held, and the block is present.
        """
        library, data = self._library, block.data
        if library is None or not library.is_serving or data is None or file.changes != self.changes:
            return
        first = offset + file.shift
        start, stop = max(first, file.start), min(first + block.nbytes, file.stop)
        expires = min(expires, file.expires)
        if start >= stop or expires < 0 or block.nbytes > MAX_UNITS * UNIT_NBYTES:
            return
        published = _Published(key, block, file.handle, expires, file.max_run)
        if file.max_run == UNLIMITED and published in map(self._slots.get, _slots_of(file.handle)):
            return  # by a read at the same time
        slot = self._empty_slot(file.handle, block)
        self._slots[slot] = published
        self._retracted.setdefault(file.handle, Usage())
        address = data.ctypes.data + start - first
        nanoseconds = int(expires * NANOSECONDS)
        library.publish(
            slot,
            Range(file.handle, start, stop, address, start - first, block.nbytes, nanoseconds, file.max_run),
        )

    def retract(self, block: Block) -> None:
        """Retract the ranges of a block. No copy from its memory is in progress afterwards.

        The lock of the blocks is held.
        """
        for slot, published in list(self._slots.items()):
            if published.block is block:
                self._retract(slot)

    def retract_all(self) -> None:
        """Retract all ranges, because the metadata or the data may have changed."""
        with self._lock:
            self.changes += 1
            for slot in list(self._slots):
                self._retract(slot)

    def close_file(self, handle: int) -> None:
        """Retract the ranges of a handle that is not used any more, and forget it."""
        if handle not in self._retracted:
            return
        with self._lock:
            for slot in _slots_of(handle):
                if slot in self._slots and self._slots[slot].handle == handle:
                    self._retract(slot)
            self._retracted.pop(handle, None)

    def collect(self) -> list[Hashable]:
        """Record in the blocks which of their bytes were served. Return the keys of the blocks that were used, in the
        order of use.

        The lock of the blocks is held.
        """
        used = []
        for slot, published in self._slots.items():
            assert self._library is not None
            usage = self._library.collect(slot)
            if usage.nbytes:
                _record(published.block, usage)
                used.append((usage.used_at, published.key))
        return [key for _, key in sorted(used, key=lambda item: item[0])]

    def last_run(self, handle: int) -> tuple[int, int, float] | None:
        """Return the end, the number of bytes and the time of the last consecutive requests of a handle.

        None if none was served.
        """
        usage = self._last_usage(handle)
        if usage is None or not usage.used_at:
            return None
        return usage.end, usage.run, usage.used_at / NANOSECONDS

    def is_being_read(self, handle: int) -> bool:
        """Return whether a request of a handle was served just now."""
        usage = self._last_usage(handle)
        return usage is not None and time.monotonic() - usage.used_at / NANOSECONDS < RECENT_SECONDS

    def totals(self) -> Totals:
        """Return the requests that the library has served in this process."""
        return Totals() if self._library is None else self._library.totals()

    def _last_usage(self, handle: int) -> Usage | None:
        if handle not in self._retracted:
            return None
        with self._lock:
            retracted = self._retracted.get(handle)
            if retracted is None:
                return None
            assert self._library is not None
            return max(self._library.last_usage(handle), retracted, key=lambda usage: usage.used_at)

    def _empty_slot(self, handle: int, block: Block) -> int:
        """Return an empty slot of a handle. Retract the range of the same block, or the one that expires first."""
        candidates = {slot: self._slots.get(slot) for slot in _slots_of(handle)}
        for slot, published in candidates.items():
            if published is not None and published.handle == handle and published.block is block:
                self._retract(slot)
                return slot
        slot = min(candidates, key=lambda slot: _expiry(candidates[slot]))
        if candidates[slot] is not None:
            self._retract(slot)
        return slot

    def _retract(self, slot: int) -> None:
        assert self._library is not None
        published = self._slots.pop(slot)
        usage = self._library.retract(slot)
        _record(published.block, usage)
        if usage.used_at > self._retracted[published.handle].used_at:
            self._retracted[published.handle] = usage


def _slots_of(handle: int) -> range:
    first = handle % BUCKETS * WAYS
    return range(first, first + WAYS)


def _expiry(published: _Published | None) -> float:
    return float("-inf") if published is None else published.expires


def _record(block: Block, usage: Usage) -> None:
    if usage.nbytes:
        units = int.from_bytes(bytes(usage.units), "little")
        block.mark_served(usage.nbytes, units, usage.used_at / NANOSECONDS)
