"""Read requests that are served like those of libfuse: by the native library, or by its callback in Python."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Any

from tests.engine.native.executors import require_library
from zarrfs.mount.native.library import NativeReads, Range

__all__ = ["ClockedReads", "Requests"]

EXPIRED, NEVER = 0, (1 << 63) - 1


class FileInfo(ctypes.Structure):
    """The part of ``fuse_file_info`` that the library uses."""

    _fields_ = (("flags", ctypes.c_int), ("fh", ctypes.c_uint64))


CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int64,
    ctypes.POINTER(FileInfo),
)


class ClockedReads(NativeReads):
    """The library, compiled from the sources as they are. Ranges expire by the clock of a test, if one is given."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__(require_library().path)
        self._clock = clock
        self._published: dict[int, tuple[Range, int]] = {}

    def publish(self, slot: int, published: Range) -> None:
        if self._clock is not None:
            self._published[slot] = published, published.expires
            published.expires = NEVER
        super().publish(slot, published)

    def retract(self, slot: int) -> Any:
        self._published.pop(slot, None)
        return super().retract(slot)

    def expire(self) -> None:
        """Let the ranges expire whose time has come by the clock of the test."""
        for slot, (published, expires) in self._published.items():
            if self._clock is not None and self._clock() * 1e9 >= expires:
                published.expires = EXPIRED
                super().publish(slot, published)


class Requests:
    """Sends read requests to the library, which passes those that it cannot serve to ``read`` of the operations."""

    def __init__(self, operations: Any, library: ClockedReads) -> None:
        self._operations = operations
        self._library = library
        self._callback = CALLBACK(self._read)  # the library does not keep it alive
        library.serve(self._callback, FileInfo.fh.offset)
        self._serve = ctypes.cast(library.read, CALLBACK)

    def _read(self, path: bytes, out: int, size: int, offset: int, file: Any) -> int:
        try:
            found = self._operations.read(os.fsdecode(path), size, offset, file.contents.fh)
        except OSError as error:
            return -(error.errno or errno.EIO)
        ctypes.memmove(out, bytes(found), len(found))
        return len(found)

    def read(self, path: str, size: int, offset: int, handle: int) -> bytes:
        """Return what a request returns. Raises OSError."""
        self._library.expire()
        out = ctypes.create_string_buffer(size)
        file = FileInfo(0, handle)
        count = self._serve(os.fsencode(path), ctypes.addressof(out), size, offset, ctypes.byref(file))
        if count < 0:
            raise OSError(-count, os.strerror(-count))
        return out.raw[:count]
