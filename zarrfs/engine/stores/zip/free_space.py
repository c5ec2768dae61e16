"""Management of the free space in a file: which byte ranges are free, and allocation of ranges."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

__all__ = ["FreeSpace"]


class FreeSpace:
    """Free ranges ``(start, stop)`` of a file. Adjacent ranges are merged. Not safe to use from several threads."""

    def __init__(self) -> None:
        self._stops: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._sizes: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(sorted(self._stops.items()))

    def free(self, start: int, stop: int) -> tuple[int, int]:
        """Add a free range. Return the merged range that contains it."""
        if start in self._starts:
            start = self._pop(self._starts[start])[0]
        if stop in self._stops:
            stop = self._pop(stop)[1]
        self._insert(start, stop)
        return start, stop

    def allocate(self, size: int, min_remainder: int) -> int | None:
        """Allocate ``size`` bytes from the smallest suitable range (best fit). Return the offset, or None.

        The rest of the range is empty or has at least ``min_remainder`` bytes.
        """
        index = bisect_left(self._sizes, (size, 0))
        if index == len(self._sizes) or self._sizes[index][0] != size:
            index = bisect_left(self._sizes, (size + min_remainder, 0))
            if index == len(self._sizes):
                return None
        start, stop = self._pop(self._sizes[index][1])
        if stop - start > size:
            self._insert(start + size, stop)
        return start

    def remove(self, start: int) -> None:
        """Remove the range that starts at ``start``."""
        self._pop(start)

    def _insert(self, start: int, stop: int) -> None:
        self._stops[start] = stop
        self._starts[stop] = start
        insort(self._sizes, (stop - start, start))

    def _pop(self, start: int) -> tuple[int, int]:
        stop = self._stops.pop(start)
        del self._starts[stop]
        del self._sizes[bisect_left(self._sizes, (stop - start, start))]
        return start, stop
