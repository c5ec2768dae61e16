"""The memory of this process: its size, and settings of the allocator that keep it small."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["limit_arenas", "release_free_memory", "resident_nbytes"]

M_ARENA_MAX = -8
"""The parameter of ``mallopt`` (glibc) for the number of arenas."""
MAX_ARENAS = 2
STATM = Path("/proc/self/statm")


def _glibc() -> Any:
    """Return the C library if it is glibc, otherwise None."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def limit_arenas() -> None:
    """Limit the number of arenas of the allocator. Call it before threads start.

    Each thread that decodes chunks would otherwise keep freed memory in an arena of its own: about 100 MiB for a
    window that has shown 60 slices of a large volume.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(M_ARENA_MAX, MAX_ARENAS)


def release_free_memory() -> None:
    """Return freed memory to the operating system. Takes milliseconds; call it on a worker thread."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def resident_nbytes() -> int | None:
    """Return the resident memory of this process in bytes; None where it is unknown."""
    try:
        pages = int(STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
