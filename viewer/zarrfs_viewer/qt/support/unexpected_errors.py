"""Exceptions in functions that Qt calls. PyQt ends the process for such an exception, unless there is a hook."""

from __future__ import annotations

import sys
from types import TracebackType

from zarrfs.logs import logger

__all__ = ["UnexpectedErrorsAreReported"]


class UnexpectedErrorsAreReported:
    """A context manager in which an exception in the event loop is reported, and the event loop continues.

    The exception is an error of the viewer. It is logged, so that the windows display it as a message, and written to
    stderr with its traceback.
    """

    def __enter__(self) -> None:
        self._previous = sys.excepthook
        sys.excepthook = _report

    def __exit__(self, *_: object) -> None:
        sys.excepthook = self._previous


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, Exception):
        logger.error("unexpected error in the viewer: %s: %s", kind.__name__, error)
    sys.__excepthook__(kind, error, trace)
