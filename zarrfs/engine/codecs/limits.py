"""How much memory decoding may take when nothing says how much will come out.

Fixed-size data need no limit of their own: exactly the chunk's size must come out. Elements of varying length say
nothing beforehand, so that a few bytes could ask for all memory.
"""

from __future__ import annotations

import os

from zarrfs.engine.codecs.base import CodecError

__all__ = ["VARIABLE_LIMIT_VARIABLE", "check_size", "size_error", "variable_limit"]

VARIABLE_LIMIT_VARIABLE = "ZARRFS_VARIABLE_CHUNK_LIMIT"
"""The environment variable that sets the limit in bytes."""

LEAST_LIMIT = 32 << 20
EXPANSION = 64


def variable_limit(encoded_size: int) -> int:
    """Return how many bytes may come of ``encoded_size`` when the decoded size is unknown."""
    given = os.environ.get(VARIABLE_LIMIT_VARIABLE, "")
    if given.isdigit():
        return int(given)
    return LEAST_LIMIT + EXPANSION * encoded_size


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
        f"more than {limit} bytes come out of a chunk of variable-length elements; if that is meant, set the "
        f"environment variable {VARIABLE_LIMIT_VARIABLE} to a number of bytes"
    )
