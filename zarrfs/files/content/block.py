"""One block of a virtual file in memory: the state of its assembly and of its use."""

from __future__ import annotations

import mmap
import sys
import threading
import time
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from zarrfs.files.content.streams import Bytes

__all__ = ["Block", "Retention", "new_memory", "units_of"]

IN_USE_SECONDS = 0.1
"""A block that has not been read completely is kept for this time after the last read of it."""

LATE_SECONDS = 0.03
"""A block that was read almost completely is kept for this time: the last requests may be late, or the kernel has
cached the remaining pages.
"""

MAX_UNREAD_NBYTES = 1 << 20
"""A block was read almost completely if at most this many bytes, and at most a quarter of the block, were not read. For
a window this counts as read completely, because a window is larger than the reads.
"""

RELEASE_SECONDS, RELEASE_POLL_SECONDS = 0.01, 0.0005
"""How long the assembly of a block waits for requests that still refer to the memory that it reuses, and how often it
checks. The last replies of a block are copied when the next one is claimed.
"""

UNIT_NBYTES = 64 << 10
"""The unit in which the ranges of a block that were read are recorded."""


def units_of(start: int, stop: int, nbytes: int) -> int:
    """Return the units of a block of ``nbytes`` bytes whose last byte is in a range, as bits."""
    first = start // UNIT_NBYTES
    end = -(-nbytes // UNIT_NBYTES) if stop >= nbytes else stop // UNIT_NBYTES
    return (1 << end) - (1 << first) if end > first else 0


HUGE_PAGE_NBYTES = 2 << 20
"""The size of the huge pages of x86-64 and of most other systems."""


def new_memory(nbytes: int) -> Bytes:
    """Return new memory for a block of ``nbytes`` bytes.

    Memory of a whole number of huge pages is mapped, so that the kernel can align it to them. Memory of the allocator
    begins after a header: its first and its last part are hundreds of small pages, each of which is a page fault.
    """
    if nbytes % HUGE_PAGE_NBYTES or not nbytes or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(nbytes, np.uint8)
    try:
        mapping = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{nbytes} bytes of memory cannot be mapped") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # The kernel has no huge pages.
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapping, np.uint8)


def _reference_count() -> int:
    """Return what ``sys.getrefcount`` returns for an object to which one local variable refers."""
    data = np.empty(1, np.uint8)
    return sys.getrefcount(data)


_UNSHARED = _reference_count()


class Retention(Enum):
    """How long a block stays in memory after it was read completely."""

    READ_ONCE = "until its memory is used for the next block"
    KEPT = "as long as there is room"
    WINDOW = "as long as there is room; it is a window of a strided access, of which a part may never be read"


@dataclass(eq=False)
class Block:
    """A block and the state of its assembly.

    Attributes:
        retention: how long it stays in memory. A block that is read again is kept.
        users: the number of threads that have found the block and may take a reference of ``data``. It is changed with
            the lock of the pool.
        memory: the memory of an evicted block of the same size. The block is assembled in it if nothing else refers to
            it by then.
        is_awaited: whether a request had to wait for its assembly.
        units: the units whose last byte was read, as bits. Like ``served_nbytes`` it is changed with the lock of the
            pool.
        served_nbytes: the number of bytes that were read.
    """

    nbytes: int
    retention: Retention = Retention.KEPT
    users: int = 0
    memory: Bytes | None = None
    done: threading.Event = field(default_factory=threading.Event)
    data: Bytes | None = None
    error: BaseException | None = None
    version: Hashable | None = None
    checked_at: float = 0.0
    is_awaited: bool = False
    units: int = 0
    served_nbytes: int = 0
    used_at: float = field(default_factory=time.monotonic)

    def take_memory(self) -> Bytes | None:
        """Return the memory of an evicted block, for ``memory`` of another one. The lock of the pool is held."""
        data = self.data
        if self.users or data is None:
            return None
        self.data = None
        return data

    def unshared_memory(self) -> Bytes | None:
        """Return the memory of the evicted block when no request in progress refers to it, or None if there is none.

        Newly mapped memory costs about as much as decoding, because the kernel fills it with zeros. Therefore wait a
        moment for the last requests.
        """
        data, self.memory = self.memory, None
        if data is None:
            return None
        deadline = time.monotonic() + RELEASE_SECONDS
        # Requests refer to the data by views, also if the memory was mapped.
        while sys.getrefcount(data) != _UNSHARED:
            if time.monotonic() > deadline:
                return None
            time.sleep(RELEASE_POLL_SECONDS)
        return data

    def wait(self, max_seconds: float | None = None) -> bool:
        """Wait until the block is assembled, or for ``max_seconds``. Return whether it is."""
        if self.done.is_set():
            return True
        self.is_awaited = True
        return self.done.wait(max_seconds)

    def mark_read(self, start: int, stop: int) -> None:
        """Record that a range of the block was read. The lock of the pool is held."""
        self.used_at = time.monotonic()
        self.served_nbytes += stop - start
        self.units |= units_of(start, stop, self.nbytes)
        if self.served_nbytes >= 2 * self.nbytes:
            self.keep()  # It was read again.

    def keep(self) -> None:
        """Let the block stay in memory, as long as there is room, after it was read completely."""
        if self.retention is Retention.READ_ONCE:
            self.retention = Retention.KEPT

    @property
    def is_read(self) -> bool:
        """Whether the block was read completely, so that no read in progress needs it."""
        if self.retention is Retention.WINDOW:
            return self._is_almost_read
        return self.units == units_of(0, self.nbytes, self.nbytes)

    @property
    def is_in_use(self) -> bool:
        if not self.done.is_set():
            return True
        if self.is_read:
            return False
        idle = time.monotonic() - self.used_at
        return idle < (LATE_SECONDS if self._is_almost_read else IN_USE_SECONDS)

    @property
    def _is_almost_read(self) -> bool:
        return self.nbytes - self.served_nbytes <= min(MAX_UNREAD_NBYTES, self.nbytes // 4)
