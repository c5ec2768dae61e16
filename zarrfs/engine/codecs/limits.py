"""How much memory decoding may take when nothing says how much will come out.

Fixed-size data need no limit of their own: exactly the chunk's size must come out. Elements of varying length say
nothing beforehand, so that a few bytes could ask for all memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from zarrfs.engine.codecs.base import CodecError

__all__ = [
    "VARIABLE_LIMIT_VARIABLE",
    "bounded",
    "check_size",
    "intermediate_limit",
    "limit_error",
    "size_error",
    "variable_limit",
]

VARIABLE_LIMIT_VARIABLE = "ZARRFS_VARIABLE_CHUNK_LIMIT"
"""The environment variable that sets the limit in bytes."""

MIN_LIMIT = 32 << 20
EXPANSION = 64

MAX_ENCODED_EXPANSION = 8
MIN_ENCODED_LIMIT = 64 << 20
"""Encoding makes at most so many times the bytes of a chunk (text of numbers makes the most), or so many bytes of a
small one. What is larger is no such chunk.
"""

_local = threading.local()


def intermediate_limit(largest: int) -> int:
    """Return how many bytes any codec may make of a chunk of fixed size, the largest of whose forms is ``largest``."""
    return max(MIN_ENCODED_LIMIT, MAX_ENCODED_EXPANSION * largest)


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Let ``variable_limit`` return at most ``limit`` in this thread.

    Each codec of a chain may expand what it is given. Without a common bound the factors would multiply.
    """
    outer = getattr(_local, "bound", None)
    _local.bound = limit if outer is None else min(limit, outer)
    try:
        yield
    finally:
        _local.bound = outer


def variable_limit(encoded_size: int) -> int:
    """Return how many bytes may come of ``encoded_size`` when the decoded size is unknown."""
    given = os.environ.get(VARIABLE_LIMIT_VARIABLE, "")
    limit = int(given) if given.isdigit() else MIN_LIMIT + EXPANSION * encoded_size
    bound: int | None = getattr(_local, "bound", None)
    return limit if bound is None else min(limit, bound)


def check_size(found: int, expected: int | None) -> None:
    """Raise CodecError unless ``found`` bytes are what was expected."""
    if expected is not None and found != expected:
        raise size_error(found, expected)


def size_error(found: int | str, expected: int) -> CodecError:
    """Return the error for a decoded size that is not the expected one."""
    return CodecError(f"{found} bytes come out, expected are {expected}")


def limit_error(limit: int) -> CodecError:
    """Return the error for data of unknown size that grow past the limit."""
    return CodecError(
        f"more than {limit} bytes come out of a codec whose decoded size is not known; if that is intended, set the "
        f"environment variable {VARIABLE_LIMIT_VARIABLE} to a number of bytes"
    )
