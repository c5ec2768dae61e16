"""File names of members whose names are so long that the name with a suffix is not a valid file name.

Such a file has a shortened name: the beginning of the name of the member, ``~``, and a hash of the whole name. It
depends on the name of the member only, so that it is the same in each mount.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["MAX_NAME_NBYTES", "file_name", "find_shortened", "is_shortened", "reference_name"]

MAX_NAME_NBYTES = 255
"""The maximum length of a file name in Linux, in bytes."""

MAX_SUFFIX_NBYTES = 64
"""The maximum length of the suffix of a view."""

KEPT_NBYTES = 160
"""The length of the beginning of a name that its shortened form contains."""

HASH_NBYTES = 8

_SHORTENED = re.compile(rf".+~[0-9a-f]{{{2 * HASH_NBYTES}}}", re.DOTALL)


def file_name(stem: str, suffix: str) -> str:
    """Return the name of the file that presents a member: ``stem`` with ``suffix``, shortened if it is too long."""
    name = stem + suffix
    # Most names are far from the limit. A character has at most four bytes.
    if 4 * len(name) <= MAX_NAME_NBYTES or _length(name) <= MAX_NAME_NBYTES:
        return name
    return _shortened(stem) + suffix


def reference_name(stem: str) -> str:
    """Return the name to which any suffix can be appended. Files refer to each other by it."""
    return stem if _fits_with_suffix(stem) else _shortened(stem)


def is_shortened(name: str) -> bool:
    """Return whether a name has the form of a shortened name."""
    return "~" in name and _SHORTENED.fullmatch(name) is not None


def find_shortened(name: str, members: Iterable[str]) -> str | None:
    """Return the member whose shortened name is ``name``, or None."""
    return next((each for each in members if not _fits_with_suffix(each) and _shortened(each) == name), None)


def _fits_with_suffix(stem: str) -> bool:
    limit = MAX_NAME_NBYTES - MAX_SUFFIX_NBYTES
    return 4 * len(stem) <= limit or _length(stem) <= limit


def _shortened(stem: str) -> str:
    encoded = stem.encode("utf-8", "surrogateescape")
    beginning = encoded[:KEPT_NBYTES].decode("utf-8", "ignore")
    return f"{beginning}~{blake2b(encoded, digest_size=HASH_NBYTES).hexdigest()}"


def _length(name: str) -> int:
    return len(name.encode("utf-8", "surrogateescape"))
