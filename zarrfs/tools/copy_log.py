"""The log and the result of ``copy``, ``copy_all`` and ``copy_store``, which behave as in zarr-python 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

__all__ = ["CopyResult", "Log", "line_writer"]

Log = str | IO[str] | Callable[[str], object] | None
"""Receives a line for each node or key: the path of a file, an open text file, or a function. None disables it."""


class CopyResult(NamedTuple):
    """The number of nodes or keys copied and skipped, and the number of bytes of the copied values."""

    copied: int
    skipped: int
    nbytes: int


@contextmanager
def line_writer(log: Log) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes a line to ``log``."""
    if log is None:
        yield lambda line: None
    elif isinstance(log, str):
        with open(log, "w", encoding="utf-8") as file:
            yield lambda line: file.write(line + "\n")
    elif callable(log):
        yield log
    elif hasattr(log, "write"):
        given = log
        yield lambda line: given.write(line + "\n")
    else:
        raise TypeError(f"log must be a path, a file or a function, found {log!r}")
