"""The free space in a file that values come into and leave: which bytes, and a place for so many."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

__all__ = ["Holes"]


class Holes:
    """Ranges ``(start, stop)`` of a file that nothing is in; neighbours are joined. Not safe under threads."""

    def __init__(self) -> None:
        self._stops: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._sizes: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(sorted(self._stops.items()))

    def give(self, start: int, stop: int) -> tuple[int, int]:
        """Add a range; return the hole that it is in now."""
        if start in self._starts:
            start = self._remove(self._starts[start])[0]
        if stop in self._stops:
            stop = self._remove(stop)[1]
        self._add(start, stop)
        return start, stop

    def take(self, size: int, least: int) -> int | None:
        """Return where ``size`` bytes are free, which they are then no more: the start of the tightest hole. None where
        there is none. What remains of the hole is nothing, or ``least`` bytes at least.
        """
        at = bisect_left(self._sizes, (size, 0))
        if at == len(self._sizes) or self._sizes[at][0] != size:
            at = bisect_left(self._sizes, (size + least, 0))
            if at == len(self._sizes):
                return None
        start, stop = self._remove(self._sizes[at][1])
        if stop - start > size:
            self._add(start + size, stop)
        return start

    def remove(self, start: int) -> None:
        """Forget the hole that begins at ``start``."""
        self._remove(start)

    def _add(self, start: int, stop: int) -> None:
        self._stops[start] = stop
        self._starts[stop] = start
        insort(self._sizes, (stop - start, start))

    def _remove(self, start: int) -> tuple[int, int]:
        stop = self._stops.pop(start)
        del self._starts[stop]
        del self._sizes[bisect_left(self._sizes, (stop - start, start))]
        return start, stop
