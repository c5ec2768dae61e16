"""The number of requests that a store sends at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["RequestLimit"]


class RequestLimit:
    """Limits the requests in progress to ``count``. Thread-safe.

    A thread reserves requests for one operation at a time, so that operations cannot wait for each other.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._reserved = 0
        self._changed = threading.Condition()

    @property
    def count(self) -> int:
        """The maximum number of requests in progress."""
        return self._count

    def reduce(self, count: int) -> None:
        """Set the limit unless it is smaller already."""
        with self._changed:
            self._count = min(self._count, max(1, count))

    @contextmanager
    def reserve(self, count: int = 1) -> Iterator[int]:
        """Reserve up to ``count`` requests, and yield their number, at least 1. Waits until one is free."""
        with self._changed:
            while self._reserved >= self._count:
                self._changed.wait()
            number = max(1, min(count, self._count - self._reserved))
            self._reserved += number
        try:
            yield number
        finally:
            self.release(number)

    def reserve_ahead(self, count: int) -> int:
        """Reserve up to ``count`` requests without waiting, and return their number. ``release`` releases them.

        One request is left for operations that wait for one: those that have reserved requests ahead may need it.
        """
        with self._changed:
            number = max(0, min(count, self._count - self._reserved - 1))
            self._reserved += number
        return number

    def release(self, count: int) -> None:
        """Release requests that were reserved ahead."""
        with self._changed:
            self._reserved -= count
            self._changed.notify_all()
