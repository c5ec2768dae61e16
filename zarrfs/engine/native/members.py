"""The metadata documents of many members of a group, with what their files occupy, read in one call.

Listing a group of thousands of arrays needs their documents and stored sizes. The native function reads them without
the interpreter lock; the Python function returns the same.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from zarrfs.engine.native.library import NativeLibrary, native_library
from zarrfs.engine.stores.base import Usage
from zarrfs.engine.stores.local_files import read_at
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX

__all__ = ["MAX_ENTRIES", "ScannedMember", "scan_members"]

DOCUMENT = "zarr.json"
OTHER_DOCUMENTS = (".zarray", ".zgroup")

MAX_ENTRIES = 256
"""A member with more files and directories is not scanned: that would take too long for one step of a listing."""

MAX_DEPTH = 32

BUFFER_NBYTES = 256 << 10

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW

_RESULTS = 5
"""The number of values that the native function returns for each member."""


class ScannedMember(NamedTuple):
    """A member of a group: the bytes of its ``zarr.json``, and what its files occupy, as ``Store.usage`` returns it."""

    document: bytes
    usage: Usage


def scan_members(
    directory: int, names: Sequence[str], max_document: int, max_entries: int = MAX_ENTRIES
) -> list[ScannedMember | None]:
    """Return the members ``names`` of the directory of a group, an open file descriptor.

    A member is None if it has no ``zarr.json`` or one of more than ``max_document`` bytes, a symbolic link anywhere in
    it, documents of Zarr v2, or more than ``max_entries`` entries, or if it cannot be read: the caller opens it in the
    ordinary way, which supports everything and reports errors.
    """
    library = native_library()
    function = None if library is None else _native_function(library)
    if function is None or any("\0" in name for name in names):
        return [_scan(directory, name, max_document, max_entries) for name in names]
    return _scan_natively(function, directory, names, max_document, max_entries)


@cache
def _native_function(library: NativeLibrary) -> ctypes._NamedFuncPointer | None:
    """Return the function of the library, None if the library does not have it."""
    try:
        function: ctypes._NamedFuncPointer = ctypes.CDLL(str(library.path)).zarrfs_scan_members
    except AttributeError:
        return None
    function.restype = ctypes.c_int64
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int64,
        ctypes.c_void_p,
        *(ctypes.c_int64,) * 3,
        ctypes.c_void_p,
    ]
    return function


def _scan_natively(
    function: ctypes._NamedFuncPointer,
    directory: int,
    names: Sequence[str],
    max_document: int,
    max_entries: int,
) -> list[ScannedMember | None]:
    members: list[ScannedMember | None] = []
    buffer = bytearray(max(BUFFER_NBYTES, max_document))
    address = ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))
    while len(members) < len(names):
        encoded = [os.fsencode(name) for name in names[len(members) :]]
        results = (ctypes.c_int64 * (len(encoded) * _RESULTS))()
        count = function(
            directory,
            b"\0".join([*encoded, b""]),
            len(encoded),
            address,
            len(buffer),
            max_document,
            max_entries,
            results,
        )
        values = results[: count * _RESULTS]
        for first in range(0, len(values), _RESULTS):
            start, nbytes, keys, stored, newest = values[first : first + _RESULTS]
            members.append(
                None
                if start < 0
                else ScannedMember(bytes(buffer[start : start + nbytes]), Usage(keys, stored, newest / 1e9))
            )
    return members


def _scan(directory: int, name: str, max_document: int, max_entries: int) -> ScannedMember | None:
    """Do what the native function does."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        return None
    try:
        member = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
        try:
            return _Scan(max_document, max_entries).member(member)
        finally:
            os.close(member)
    except (OSError, _NotSimpleError):
        return None


class _NotSimpleError(Exception):
    """A member that is to be opened in the ordinary way."""


class _Scan:
    """The scan of one member."""

    def __init__(self, max_document: int, max_entries: int) -> None:
        self._max_document = max_document
        self._entries = max_entries
        self._document: bytes | None = None
        self._statuses: list[os.stat_result] = []

    def member(self, directory: int) -> ScannedMember:
        self._scan(directory, 0)
        if self._document is None:
            raise _NotSimpleError
        newest = max(status.st_mtime_ns for status in self._statuses)
        nbytes = sum(status.st_size for status in self._statuses)
        return ScannedMember(self._document, Usage(len(self._statuses), nbytes, newest / 1e9))

    def _scan(self, directory: int, depth: int) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                self._entry(directory, entry, depth)

    def _entry(self, directory: int, entry: os.DirEntry[str], depth: int) -> None:
        self._entries -= 1
        if self._entries < 0 or entry.is_symlink():
            raise _NotSimpleError
        if entry.name.startswith(TEMPORARY_PREFIX):
            return
        if entry.is_dir(follow_symlinks=False):
            if depth == MAX_DEPTH:
                raise _NotSimpleError
            below = os.open(entry.name, DIRECTORY_FLAGS, dir_fd=directory)
            try:
                self._scan(below, depth + 1)
            finally:
                os.close(below)
            return
        if depth == 0 and entry.name == DOCUMENT:
            self._read_document(directory)
            return
        if depth == 0 and entry.name in OTHER_DOCUMENTS:
            raise _NotSimpleError
        try:
            status = os.lstat(entry.name, dir_fd=directory)
        except FileNotFoundError:  # It was deleted.
            return
        if stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode):  # It was replaced.
            raise _NotSimpleError
        self._statuses.append(status)

    def _read_document(self, directory: int) -> None:
        fd = os.open(DOCUMENT, FILE_FLAGS, dir_fd=directory)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._max_document:
                raise _NotSimpleError
            self._document = read_at(fd, status.st_size, 0)
        finally:
            os.close(fd)
        if len(self._document) != status.st_size:
            raise _NotSimpleError
        self._statuses.append(status)
