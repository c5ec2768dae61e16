"""The standard streams of the process: closed ones, writes that fail or end early, and readers that have ended."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zarrfs.errors import StoreError

__all__ = ["complete_output", "discard_output", "open_closed_streams"]

STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))
"""The streams in the order of their file descriptors, and how /dev/null is opened in the place of a closed one: writes
to standard output fail, and messages are discarded.
"""


def open_closed_streams() -> None:
    """Open /dev/null for each standard stream that the caller of the program has closed.

    Otherwise the next file that is opened would get its descriptor. Python has no object for a closed stream.
    """
    for name, flags in STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(descriptor, mode, encoding="utf-8"))  # noqa: SIM115 - for the process


class _StandardOutput(io.RawIOBase):
    """Standard output without a buffer. Errors name it."""

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw

    def write(self, data: Any) -> int | None:
        try:
            return self._raw.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StoreError(f"standard output cannot be written: {error.strerror}", error.errno) from error

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()


@contextmanager
def complete_output() -> Iterator[None]:
    """Within the context a write to standard output writes everything, or raises StoreError or BrokenPipeError.

    With PYTHONUNBUFFERED standard output is a raw stream. Python ignores that a write to it ends early, for example
    because the disk is full.
    """
    stdout = sys.stdout
    buffer = getattr(stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if not isinstance(raw, io.FileIO):
        yield
        stdout.flush()
        return
    stdout.flush()
    buffered = io.BufferedWriter(_StandardOutput(raw))
    text = io.TextIOWrapper(
        buffered,
        stdout.encoding,
        stdout.errors,
        line_buffering=bool(stdout.line_buffering),
        write_through=buffer is raw,
    )
    sys.stdout = text
    try:
        yield
        text.flush()
    finally:
        sys.stdout = stdout
        try:
            text.flush()
        except OSError:  # The error was raised before.
            discard_output()
        text.detach()
        buffered.detach()


def discard_output() -> None:
    """Discard the rest of standard output, which cannot be written. Python would report it when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
