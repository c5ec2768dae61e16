"""Limits of the memory that decoding allocates when the decoded size is unknown.

Chunks of fixed-size elements have a known size and need no other limit. The size of variable-length elements is unknown
before decoding, so that a few bytes could otherwise exhaust the memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from zarrfs.engine.codecs.base import CodecError

__all__ = [
    "VARIABLE_LIMIT_VARIABLE",
    "bounded",
    "check_size",
    "configured_variable_limit",
    "intermediate_limit",
    "limit_error",
    "replaced_variable_limit",
    "size_error",
    "variable_limit",
]

VARIABLE_LIMIT_VARIABLE = "ZARRFS_VARIABLE_CHUNK_LIMIT"
"""The environment variable that sets the limit in bytes."""

MIN_LIMIT = 32 << 20
EXPANSION = 64

MAX_ENCODED_EXPANSION = 8
"""The largest plausible ratio of the encoded to the decoded size. Numbers as text have the largest ratio."""

MIN_ENCODED_LIMIT = 64 << 20
"""Encoded chunks of up to this many bytes are accepted for decoded chunks of any size."""

_local = threading.local()

_replacement: ContextVar[int | None] = ContextVar("zarrfs_variable_chunk_limit", default=None)


def intermediate_limit(largest: int) -> int:
    """Return the largest plausible size in bytes between two codecs, if the largest known size is ``largest`` bytes."""
    return max(MIN_ENCODED_LIMIT, MAX_ENCODED_EXPANSION * largest)


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Bound ``variable_limit`` by ``limit`` in this thread, in the body of the ``with`` statement.

    Each codec of a chain may expand its input. Without a common bound the factors would multiply.
    """
    outer = getattr(_local, "bound", None)
    _local.bound = limit if outer is None else min(limit, outer)
    try:
        yield
    finally:
        _local.bound = outer


@contextmanager
def replaced_variable_limit(nbytes: int | None) -> Iterator[None]:
    """Use this number of bytes instead of ``VARIABLE_LIMIT_VARIABLE`` within the context; None changes nothing."""
    token = _replacement.set(_replacement.get() if nbytes is None else nbytes)
    try:
        yield
    finally:
        _replacement.reset(token)


def configured_variable_limit() -> int | None:
    """Return the limit that ``replaced_variable_limit`` or ``VARIABLE_LIMIT_VARIABLE`` sets, or None."""
    replacement = _replacement.get()
    if replacement is not None:
        return replacement
    setting = os.environ.get(VARIABLE_LIMIT_VARIABLE, "")
    return int(setting) if setting.isdigit() else None


def variable_limit(encoded_size: int) -> int:
    """Return the limit of the decoded size for ``encoded_size`` bytes when the decoded size is unknown."""
    limit = configured_variable_limit()
    if limit is None:
        limit = MIN_LIMIT + EXPANSION * encoded_size
    bound: int | None = getattr(_local, "bound", None)
    return limit if bound is None else min(limit, bound)


def check_size(found: int, expected: int | None) -> None:
    """Raise CodecError unless ``found`` equals ``expected``. None accepts any size."""
    if expected is not None and found != expected:
        raise size_error(found, expected)


def size_error(found: int | str, expected: int) -> CodecError:
    """Return the error for data that decode to ``found`` bytes instead of ``expected``."""
    return CodecError(f"the data decode to {found} bytes, expected {expected}")


def limit_error(limit: int) -> CodecError:
    """Return the error for data of unknown size that exceed the limit."""
    return CodecError(
        f"the data decode to more than {limit} bytes, the limit for data of unknown size; to decode them, set the "
        f"environment variable {VARIABLE_LIMIT_VARIABLE} to a larger number of bytes"
    )
