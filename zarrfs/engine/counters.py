"""Counters of the work of this process, for statistics."""

from __future__ import annotations

import os
import threading

__all__ = ["DecodeCounter", "decoded"]


class DecodeCounter:
    """The number of chunks, or parts of chunks, that were decoded, and the decoded bytes. Thread-safe."""

    def __init__(self) -> None:
        self.chunks = 0
        self.nbytes = 0
        self._lock = threading.Lock()

    def add(self, nbytes: int, chunks: int = 1) -> None:
        """Count chunks that were decoded to ``nbytes`` bytes together."""
        with self._lock:
            self.chunks += chunks
            self.nbytes += nbytes


decoded = DecodeCounter()
"""The chunks and bytes that this process has decoded."""


def _after_fork() -> None:
    # Another thread may have held the lock when the process forked.
    decoded._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
