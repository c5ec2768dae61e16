"""Parts of virtual files that consist of records of equal size, which are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["RecordSegment"]

MAX_BATCH_NBYTES = 1 << 20
"""Records are computed in batches of about this size."""


class RecordSegment:
    """``count`` records of ``record_nbytes`` bytes each.

    ``encode(start, stop)`` returns the records from ``start`` to ``stop`` and may be called from several threads.
    """

    def __init__(self, count: int, record_nbytes: int, encode: Callable[[int, int], bytes]) -> None:
        self._record_nbytes = record_nbytes
        self._encode = encode
        self.nbytes = count * record_nbytes

    def read_into(self, offset: int, out: memoryview) -> None:
        batch = max(1, MAX_BATCH_NBYTES // self._record_nbytes)
        stop = offset + len(out)
        first, last = offset // self._record_nbytes, -(-stop // self._record_nbytes)
        for start in range(first, last, batch):
            end = min(start + batch, last)
            records = self._encode(start, end)
            expected = (end - start) * self._record_nbytes
            if len(records) != expected:
                raise ValueError(f"records {start} to {end} have {len(records)} bytes, expected {expected}")
            position = start * self._record_nbytes
            low, high = max(offset, position), min(stop, position + expected)
            out[low - offset : high - offset] = records[low - position : high - position]
