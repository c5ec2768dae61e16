"""Classification of the reads of one open file."""

from __future__ import annotations

import threading
from enum import Enum

__all__ = ["MIN_SEQUENTIAL_NBYTES", "AccessPattern", "Pattern"]

MIN_SEQUENTIAL_NBYTES = 256 << 10
"""After this many bytes of consecutive reads an access is sequential."""

MIN_FIRST_NBYTES = 128 << 10
"""A first read of at least this many bytes at the beginning of a file is sequential. Programs that read a header only
ask for less, and the kernel then reads less ahead.
"""

MIN_READ_AHEAD_NBYTES = 1 << 20
MIN_READ_AHEAD_FRACTION = 1 / 16
"""After this many bytes of consecutive reads, and this part of a block, the next block is read ahead. One plane of a
large block does not need the next one. The kernel itself reads some 100 KiB
ahead, also for a program that reads a few pages.
"""

REORDERING_WINDOW = 256 << 10
"""The kernel sends the requests of its read-ahead at the same time, and they may arrive in another order. A read
that starts within this distance of the end of the preceding reads is their continuation, if the reads cover at least
half of their range. Otherwise they are at a short distance from each other, as rows of a plane.
"""

PAGE_NBYTES = 4096
"""Reads of a mapped file begin at pages, so that equal distances of elements differ by up to a page."""

MIN_EQUAL_STRIDES = 3
"""After this many equal distances between the beginnings of runs of reads an access is strided."""


class Pattern(Enum):
    """How a file is read."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"
    STRIDED = "strided"


class AccessPattern:
    """Detects how an open file is read. Thread-safe.

    Reads at a constant distance are strided, as of one plane across the slowest dimension of an array. Between two
    jumps there may be a run of consecutive reads, such as a row of several pages.

    Attributes:
        stride: the distance of the runs of a strided access in bytes. It is negative if they go backwards.
        run_nbytes: the number of bytes of the last complete run.
    """

    def __init__(self) -> None:
        self.stride = 0
        self.run_nbytes = 0
        self._is_first = True
        self._end = 0
        self._run = 0
        self._run_start = 0
        self._equal_strides = 0
        self._lock = threading.Lock()

    def record(self, offset: int, size: int) -> Pattern:
        """Record a read and return the pattern that it belongs to."""
        with self._lock:
            is_first, self._is_first = self._is_first, False
            if is_first and offset <= REORDERING_WINDOW and size >= MIN_FIRST_NBYTES:
                self._run, self._run_start, self._end = size, offset, offset + size
                return Pattern.SEQUENTIAL
            end = max(self._end, offset + size)
            is_dense = 2 * (self._run + size) >= end - min(self._run_start, offset)
            if is_dense and abs(offset - self._end) <= REORDERING_WINDOW:
                self._run += size
                self._end = end
                if self._run >= MIN_SEQUENTIAL_NBYTES:
                    self._equal_strides = 0
                    return Pattern.SEQUENTIAL
            else:
                stride = offset - self._run_start
                if abs(stride - self.stride) > PAGE_NBYTES:
                    self.stride, self._equal_strides = stride, 0
                self._equal_strides += 1
                self.run_nbytes = self._run
                self._run = size
                self._run_start = offset
                self._end = offset + size
            return Pattern.STRIDED if self._equal_strides >= MIN_EQUAL_STRIDES else Pattern.RANDOM

    def is_long(self, block_nbytes: int) -> bool:
        """Return whether a sequential access is so long that it probably continues to the end of a block."""
        return self._run >= max(MIN_READ_AHEAD_NBYTES, MIN_READ_AHEAD_FRACTION * block_nbytes)
