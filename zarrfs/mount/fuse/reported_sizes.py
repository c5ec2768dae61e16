"""The file sizes that were reported to the kernel, which it may use without a new request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

__all__ = ["ReportedSizes"]

SETTLING_SECONDS = 0.02
"""A reply with the former size, which was on its way when a change was noticed, has reached the kernel after this time.
The kernel ignores a reply to a request that it made before another reply arrived.
"""


@dataclass
class _Change:
    """A change of a size that the kernel may not know yet: when it was noticed, when the kernel was first made to ask
    again, and when the new size was reported last.
    """

    noticed: float
    asked: float = inf
    reported: float = -inf


class ReportedSizes:
    """The sizes that were reported within the time for which the kernel caches attributes, by path. Thread-safe.

    The kernel ends reads of a file at the size that it has cached. If a file has changed, the part of the new file
    within the former size would be taken for the whole. An open that fails with ESTALE is repeated by the kernel (once)
    after it has looked up the file again.

    A size is kept for one to two times ``seconds``, so that the memory is bounded by the rate of the requests.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: dict[str, int] = {}
        self._former: dict[str, int] = {}
        self._changes: dict[str, _Change] = {}
        self._start = clock()

    def report(self, path: str, nbytes: int) -> None:
        """Record the size of a file that is returned to the kernel."""
        with self._lock:
            now = self._expire()
            known = self._recent.get(path, self._former.get(path))
            self._recent[path] = nbytes
            if known is not None and known != nbytes:
                self._changes[path] = _Change(now)
            elif self._changes:
                change = self._changes.get(path)
                if change is not None:
                    change.reported = now

    def delay(self, path: str, nbytes: int) -> float | None:
        """Return None if the kernel has no other size for a file than ``nbytes``, and the file can be opened.

        Otherwise return the number of seconds after which opening it has to fail with ESTALE.
        """
        with self._lock:
            now = self._expire()
            known = self._recent.get(path, self._former.get(path))
            if known is not None and known != nbytes:
                self._recent[path] = nbytes
                self._changes[path] = _Change(now)
            change = self._changes.get(path)
            if change is None:
                return None
            if change.reported >= change.asked:
                del self._changes[path]
                return None
            seconds = max(0.0, change.noticed + SETTLING_SECONDS - now)
            # Other programs that open the file ask again, too. The first answer is sufficient for all.
            change.asked = min(change.asked, now + seconds)
            return seconds

    def _expire(self) -> float:
        """Drop sizes that the kernel has dropped, and return the time."""
        now = self._clock()
        age = now - self._start
        if age >= self._seconds:
            self._former = self._recent if age < 2 * self._seconds else {}
            self._recent = {}
            self._start = now
            self._changes = {
                path: change
                for path, change in self._changes.items()
                if now - change.noticed < 2 * self._seconds
            }
        return now
