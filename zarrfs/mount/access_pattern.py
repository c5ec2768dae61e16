"""Classification of the reads of one open file."""

from __future__ import annotations

import threading

__all__ = ["AccessPattern"]

MIN_SEQUENTIAL_NBYTES = 256 << 10
"""After this many bytes of consecutive reads an access is sequential."""

REORDERING_WINDOW = 256 << 10
"""The kernel sends the requests of its read-ahead at the same time, and they may arrive in another order. A read
that starts at most this far from the end of the previous ones continues them.
"""


class AccessPattern:
    """Detects whether an open file is read sequentially. Thread-safe."""

    def __init__(self) -> None:
        self._end = 0
        self._run = 0
        self._lock = threading.Lock()

    def is_sequential(self, offset: int, size: int) -> bool:
        """Record a read and return whether it belongs to a sequential access."""
        with self._lock:
            if abs(offset - self._end) <= REORDERING_WINDOW:
                self._run += size
                self._end = max(self._end, offset + size)
            else:
                self._run = size
                self._end = offset + size
            return self._run >= MIN_SEQUENTIAL_NBYTES
