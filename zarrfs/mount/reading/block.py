"""One block of a virtual file in memory: the state of its assembly and of its use."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from zarrfs.mount.reading.streams import Bytes

__all__ = ["Block"]

IN_USE_SECONDS = 0.1
"""A block that has not been read completely is kept for this time after the last read of it."""

MAX_UNREAD_NBYTES = 1 << 20
"""A block of which at most this many bytes, or a quarter, were not read counts as read completely. The first reads of a
file are direct, before the access is recognised as sequential.
"""


def _reference_count() -> int:
    """Return what ``sys.getrefcount`` returns for an object to which one local variable refers."""
    data = np.empty(1, np.uint8)
    return sys.getrefcount(data)


_UNSHARED = _reference_count()


@dataclass(eq=False)
class Block:
    """A block and the state of its assembly.

    Attributes:
        users: the number of threads that have found the block and may take a reference of ``data``. It is changed with
            the lock of the pool.
        memory: memory of an evicted block of the same size, in which the block is assembled.
    """

    nbytes: int
    users: int = 0
    memory: Bytes | None = None
    done: threading.Event = field(default_factory=threading.Event)
    data: Bytes | None = None
    error: BaseException | None = None
    version: Hashable | None = None
    checked_at: float = 0.0
    served_nbytes: int = 0
    used_at: float = field(default_factory=time.monotonic)

    def take_memory(self) -> Bytes | None:
        """Return the memory of an evicted block if nothing else refers to it. The lock of the pool is held.

        Newly mapped memory costs about as much as decoding: the kernel fills it with zeros.
        """
        data = self.data
        if self.users or data is None:
            return None
        self.data = None
        # Requests in progress refer to the data by views.
        return data if sys.getrefcount(data) == _UNSHARED else None

    @property
    def is_read(self) -> bool:
        return self.nbytes - self.served_nbytes <= min(MAX_UNREAD_NBYTES, self.nbytes // 4)

    @property
    def is_in_use(self) -> bool:
        if not self.done.is_set():
            return True
        return not self.is_read and time.monotonic() - self.used_at < IN_USE_SECONDS
