"""The metadata documents and stored sizes of many members of a group, read in one call.

Listing a group of thousands of arrays needs their documents and stored sizes. The native function reads them without
the interpreter lock; the Python function returns the same.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from zarrfs.engine.native.library import NativeLibrary, native_library
from zarrfs.engine.stores.base import Usage
from zarrfs.engine.stores.local.files import read_at
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX

__all__ = ["MAX_ENTRIES", "ScannedMember", "scan_members"]

DOCUMENT, V2_ARRAY, V2_ATTRIBUTES, V2_GROUP = "zarr.json", ".zarray", ".zattrs", ".zgroup"
DOCUMENTS = (DOCUMENT, V2_ARRAY, V2_ATTRIBUTES)

MAX_ENTRIES = 256
"""A member with more files and directories is not scanned: that would take too long for one step of a listing."""

MAX_DEPTH = 32

DOCUMENT_NBYTES = 4 << 10
"""The memory for the documents of a member. If more is needed, the members that remain are read by another call."""

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW

_RESULTS = 10
"""The number of values that the native function returns for each member."""

_RESULT = struct.Struct(f"={_RESULTS}q")

_V3 = -2
"""The native function returns this in place of the position of the attributes."""


class ScannedMember(NamedTuple):
    """An array in a group.

    Attributes:
        zarr_format: 3 or 2.
        document: the bytes of ``zarr.json``, or of ``.zarray``.
        attributes: the bytes of ``.zattrs``, None if there is none or the format is 3.
        usage: the number and size of its files, as ``Store.usage`` returns them. None if they were not determined.
        access: the mode, the user and the group of the document.
    """

    zarr_format: int
    document: bytes
    attributes: bytes | None
    usage: Usage | None
    access: tuple[int, int, int]


def scan_members(
    directory: int,
    names: Sequence[str],
    max_document: int,
    max_entries: int = MAX_ENTRIES,
    *,
    with_usage: bool = True,
) -> list[ScannedMember | None]:
    """Return the arrays ``names`` in the directory of a group, an open file descriptor.

    A member is None if it has no document of an array or one of more than ``max_document`` bytes, a symbolic link
    anywhere in it, documents of two formats, or more than ``max_entries`` entries, or if it cannot be read: the caller
    opens it in the ordinary way, which supports everything and reports errors. Without ``with_usage`` only the
    documents are examined, not the other entries of the member.
    """
    library = native_library()
    function = None if library is None else _native_function(library)
    if function is None or any("\0" in name for name in names):
        return [_scan(directory, name, max_document, max_entries, with_usage) for name in names]
    return _scan_natively(function, directory, names, max_document, max_entries, with_usage)


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
        ctypes.c_int,
        ctypes.c_void_p,
    ]
    return function


def _scan_natively(
    function: ctypes._NamedFuncPointer,
    directory: int,
    names: Sequence[str],
    max_document: int,
    max_entries: int,
    with_usage: bool,
) -> list[ScannedMember | None]:
    members: list[ScannedMember | None] = []
    buffer = bytearray(
        max(DOCUMENT_NBYTES * len(names), 2 * max_document)
    )  # an array has at most two documents
    documents = memoryview(buffer)
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
            not with_usage,
            results,
        )
        values = memoryview(results).cast("B")[: count * _RESULT.size]
        for start, nbytes, other, other_nbytes, keys, stored, newest, *access in _RESULT.iter_unpack(values):
            if start < 0:
                members.append(None)
                continue
            members.append(
                ScannedMember(
                    3 if other == _V3 else 2,
                    bytes(documents[start : start + nbytes]),
                    None if other < 0 else bytes(documents[other : other + other_nbytes]),
                    Usage(keys, stored, newest / 1e9) if with_usage else None,
                    (access[0], access[1], access[2]),
                )
            )
    return members


def _scan(
    directory: int, name: str, max_document: int, max_entries: int, with_usage: bool
) -> ScannedMember | None:
    """Read the documents and the stored size of one member, as the native function does."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        return None
    try:
        member = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
        try:
            return _Scan(max_document, max_entries, with_usage).member(member)
        finally:
            os.close(member)
    except (OSError, _NotSimpleError):
        return None


class _NotSimpleError(Exception):
    """The member cannot be scanned; the caller opens it as a node."""


class _Scan:
    """The scan of one member."""

    def __init__(self, max_document: int, max_entries: int, with_usage: bool) -> None:
        self._max_document = max_document
        self._entries = max_entries
        self._with_usage = with_usage
        self._documents: dict[str, tuple[bytes, os.stat_result]] = {}
        self._statuses: list[os.stat_result] = []

    def member(self, directory: int) -> ScannedMember:
        if self._with_usage:
            self._scan(directory, 0)
        else:
            self._read_documents(directory)
        if (DOCUMENT in self._documents) == (V2_ARRAY in self._documents):
            raise _NotSimpleError
        is_v3 = DOCUMENT in self._documents
        document, status = self._documents[DOCUMENT if is_v3 else V2_ARRAY]
        attributes = None if is_v3 else self._documents.get(V2_ATTRIBUTES)
        usage = None
        if self._with_usage:
            newest = max(status.st_mtime_ns for status in self._statuses)
            nbytes = sum(status.st_size for status in self._statuses)
            usage = Usage(len(self._statuses), nbytes, newest / 1e9)
        return ScannedMember(
            3 if is_v3 else 2,
            document,
            None if attributes is None else attributes[0],
            usage,
            (status.st_mode, status.st_uid, status.st_gid),
        )

    def _read_documents(self, directory: int) -> None:
        for name in (*DOCUMENTS, V2_GROUP):
            with suppress(FileNotFoundError):
                os.lstat(name, dir_fd=directory)
                if name == V2_GROUP:
                    raise _NotSimpleError
                if name != V2_ATTRIBUTES or V2_ARRAY in self._documents:
                    self._read_document(directory, name)

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
        if depth == 0:
            if entry.name in DOCUMENTS:
                self._read_document(directory, entry.name)
                return
            if entry.name == V2_GROUP:
                raise _NotSimpleError
        if entry.is_dir(follow_symlinks=False):
            if depth == MAX_DEPTH:
                raise _NotSimpleError
            below = os.open(entry.name, DIRECTORY_FLAGS, dir_fd=directory)
            try:
                self._scan(below, depth + 1)
            finally:
                os.close(below)
            return
        try:
            status = os.lstat(entry.name, dir_fd=directory)
        except FileNotFoundError:  # It was deleted.
            return
        if stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode):  # It was replaced.
            raise _NotSimpleError
        self._statuses.append(status)

    def _read_document(self, directory: int, name: str) -> None:
        fd = os.open(name, FILE_FLAGS, dir_fd=directory)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._max_document:
                raise _NotSimpleError
            data = read_at(fd, status.st_size, 0)
        finally:
            os.close(fd)
        if len(data) != status.st_size:
            raise _NotSimpleError
        self._documents[name] = data, status
        self._statuses.append(status)
