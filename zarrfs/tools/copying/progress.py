"""Progress of the blocks or chunks of one array."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "ProgressCounter"]

Progress = Callable[[str, int, int], object]
"""Called with (name of the array or the step, tasks done, tasks in total)."""


class ProgressCounter:
    """Counts completed tasks and reports progress."""

    def __init__(self, name: str, total: int, progress: Progress | None) -> None:
        self._name, self._total, self._progress = name, total, progress
        self._done = 0
        self._report()

    def add(self, count: int) -> None:
        """Report ``count`` more tasks as done. Not locked: a lost update only makes a progress bar slightly wrong."""
        self._done += count
        self._report()

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._name, self._done, self._total)
