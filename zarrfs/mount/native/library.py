"""The part of the native library that serves reads of published ranges without the interpreter; see ``reads.c``."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

from zarrfs.engine.native.build import DIRECTORY, LIBRARY_NAME
from zarrfs.engine.native.library import DISABLING_VARIABLE

__all__ = [
    "BUCKETS",
    "MAX_UNITS",
    "WAYS",
    "NativeReads",
    "Range",
    "Totals",
    "Usage",
    "load_reads",
    "native_reads",
]

VERSION = 1
BUCKETS, WAYS = 64, 8
"""A handle has the ``WAYS`` slots of the bucket ``handle % BUCKETS``."""

UNIT_WORDS = 16
MAX_UNITS = 64 * UNIT_WORDS
"""The number of units of the largest block of which a range can be published."""


class Range(ctypes.Structure):
    """``struct range``: bytes of an open file that are in memory."""

    _fields_ = (
        ("handle", ctypes.c_uint64),
        ("start", ctypes.c_int64),
        ("stop", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("block_offset", ctypes.c_int64),
        ("block_nbytes", ctypes.c_int64),
        ("expires", ctypes.c_int64),
        ("max_run", ctypes.c_int64),
    )


class Usage(ctypes.Structure):
    """``struct usage``: what was served from a range."""

    _fields_ = (
        ("nbytes", ctypes.c_int64),
        ("units", ctypes.c_uint64 * UNIT_WORDS),
        ("used_at", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("run", ctypes.c_int64),
    )


class Totals(ctypes.Structure):
    """``struct totals``: the requests that the library has served in this process."""

    _fields_ = (("requests", ctypes.c_int64), ("nbytes", ctypes.c_int64), ("active", ctypes.c_int64))


class NativeReads:
    """The loaded library. It has one table of published ranges in a process.

    The calls for one slot must be made one after another. ``last_usage`` and ``totals`` are thread-safe.

    Attributes:
        path: the file.
        read: the function of C that serves the operation ``read`` of libfuse.
        is_serving: whether libfuse calls ``read``, so that publishing a range has an effect.
    """

    def __init__(self, path: Path) -> None:
        """Load the library. Raises OSError if that fails, AttributeError if it was built from other sources."""
        self.path = path
        self.is_serving = False
        # Calls that wait for nothing but short critical sections keep the interpreter lock.
        quick = ctypes.PyDLL(str(path))
        self._describe(quick)
        self._quick = quick
        self._retract = ctypes.CDLL(str(path)).zarrfs_mount_retract
        self.read: Any = ctypes.CDLL(str(path)).zarrfs_mount_read

    def _describe(self, library: ctypes.PyDLL) -> None:
        described = (ctypes.c_int64 * 6)()
        library.zarrfs_mount_describe(described)
        sizes = [ctypes.sizeof(structure) for structure in (Range, Usage, Totals)]
        if list(described) != [VERSION, *sizes, BUCKETS, WAYS]:
            raise AttributeError(f"{self.path} was built from other sources; install the package again")
        library.zarrfs_mount_configure.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.zarrfs_mount_last_usage.argtypes = [ctypes.c_uint64, ctypes.POINTER(Usage)]

    def serve(self, python_read: Any, handle_offset: int) -> None:
        """Set the callback that serves what is not published, and the offset of the handle in ``fuse_file_info``.

        The caller keeps the callback alive as long as requests are served.
        """
        self._quick.zarrfs_mount_configure(ctypes.cast(python_read, ctypes.c_void_p), handle_offset)
        self.is_serving = True

    def publish(self, slot: int, published: Range) -> None:
        """Publish a range in an empty slot. Its memory must not change until ``retract`` has returned."""
        self._quick.zarrfs_mount_publish(slot, ctypes.byref(published))

    def retract(self, slot: int) -> Usage:
        """Empty a slot, wait for the copies from its memory, and return what was served and not collected."""
        usage = Usage()
        self._retract(slot, ctypes.byref(usage))
        return usage

    def collect(self, slot: int) -> Usage:
        """Return what was served from a range since the last call."""
        usage = Usage()
        self._quick.zarrfs_mount_collect(slot, ctypes.byref(usage))
        return usage

    def last_usage(self, handle: int) -> Usage:
        """Return the usage of the range of a handle that was used last."""
        usage = Usage()
        self._quick.zarrfs_mount_last_usage(handle, ctypes.byref(usage))
        return usage

    def totals(self) -> Totals:
        """Return the counters of the process."""
        totals = Totals()
        self._quick.zarrfs_mount_totals(ctypes.byref(totals))
        return totals


def load_reads(path: Path = DIRECTORY / LIBRARY_NAME) -> NativeReads | None:
    """Return the library, or None if it is not available or disabled. The result is not cached."""
    if os.environ.get(DISABLING_VARIABLE) == "0":
        return None
    try:
        return NativeReads(path)
    except (OSError, AttributeError):
        return None


@cache
def native_reads() -> NativeReads | None:
    """Return the library of the installed package, or None if it is not available or disabled."""
    return load_reads()
