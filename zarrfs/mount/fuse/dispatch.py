"""Distribution of the requests of the kernel to the operations of the sources, and their counting."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from zarrfs.files.views import view_endings
from zarrfs.mount.fuse.control import CONTROL_DIRECTORY, ControlOperations
from zarrfs.mount.fuse.open_directories import DirectoryEntry
from zarrfs.mount.fuse.permissions import DOCUMENT_ACCESS, Permissions
from zarrfs.mount.statistics import RequestCounters

__all__ = ["Dispatcher", "inode_number"]

PATH_OPERATIONS = (
    "access",
    "chmod",
    "chown",
    "getattr",
    "getxattr",
    "listxattr",
    "mkdir",
    "mknod",
    "opendir",
    "readlink",
    "releasedir",
    "fsyncdir",
    "removexattr",
    "rmdir",
    "setxattr",
    "statfs",
    "truncate",
    "unlink",
    "utimens",
)
"""Operations whose first argument is a path. A last argument that is an open file is replaced by its handle."""

HANDLE_OPERATIONS = ("fallocate", "flush", "fsync", "lseek", "read", "release", "write")
"""Operations whose first argument is a path and whose last argument is an open file."""

WAITING_OPERATIONS = ("access", "getattr", "getxattr", "listxattr", "lseek", "read")
"""Operations that may wait for a server, and that can be abandoned: they change nothing and leave nothing open."""

READDIRPLUS_AUTO = 1 << 14
"""The capability FUSE_CAP_READDIRPLUS_AUTO of libfuse 3."""

PAIR_OPERATIONS = ("link", "rename")
"""Operations with two paths, which must belong to one source."""

ROOT_INODE = 1
"""The inode number of the root of a file system in FUSE."""

MAX_INODE = 2**63 - 1

UNKNOWN_INODE = 0xFFFFFFFF
"""The inode number of libfuse for an entry of a directory whose number is not known."""


VIEW_HASH_NBYTES = 3

MAX_HASHES = 4096


def inode_number(path: str) -> int:
    """Return the inode number of a path of a mount: a hash of the path, or of the array and the view that it names.

    It does not depend on the process, so that programs which recognize unchanged files by their inode numbers (restic,
    borg) do so in later mounts. The hash of an array has 63 bits, and that of a view, which is added to it, 24. So the
    numbers of the files of an array follow each other: programs such as ``du``, which look up the files of a directory
    in the order of these numbers, then look up the files of one array after another. Two of a million arrays have
    files with the same number with a probability of 1 to a million.
    """
    name = path.strip("/")
    if not name:
        return ROOT_INODE
    stem, _, suffix = name.rpartition(".")
    is_view = bool(stem) and f".{suffix}" in view_endings()
    number = (_hash(stem) + _view_hash(suffix)) & MAX_INODE if is_view else _hash(name)
    return number if number > ROOT_INODE and number != UNKNOWN_INODE else number + 2


@lru_cache(MAX_HASHES)
def _hash(name: str) -> int:
    digest = hashlib.blake2b(os.fsencode(name), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@cache
def _view_hash(suffix: str) -> int:
    """Return a small positive number."""
    digest = hashlib.blake2b(suffix.encode(), digest_size=VIEW_HASH_NBYTES).digest()
    return 1 + int.from_bytes(digest, "little")


def _unknown_inode(path: str) -> int:
    return 0


class Dispatcher:
    """The operations of a mount. Thread-safe. The binding passes open files as structures (``raw_fi``).

    ``root`` serves all paths except those below the directories ``sources`` and ``control``. For one source ``root``
    is the operations of the source, and ``sources`` is empty. A request is counted as failed if it raises OSError.
    ``call_waiting``, if it is given, calls operations that may wait for a server (``InterruptibleCalls``). Without
    ``numbers_inodes`` libfuse assigns the inode numbers.

    libfuse passes no path for an open file that was removed or replaced; see ``hard_remove`` in serving.py. The
    operations find it by its handle.
    """

    use_ns = True
    flag_nullpath_ok = True
    """libfuse 2 then sends requests for such files, too."""

    def __init__(
        self,
        root: Any,
        sources: Mapping[str, Any],
        control: ControlOperations,
        counters: RequestCounters,
        ready: Callable[[], None],
        permissions: Permissions,
        max_read: int | None = None,
        call_waiting: Callable[..., Any] | None = None,
        *,
        numbers_inodes: bool = True,
    ) -> None:
        self._root = root
        self._directories = {**sources, CONTROL_DIRECTORY: control}
        self._sources = list(sources.values()) or [root]
        self._counters = counters
        self._ready = ready
        self._permissions = permissions
        self._max_read = max_read
        self._call_waiting = call_waiting
        self._inode_number = inode_number if numbers_inodes else _unknown_inode
        self._open_files: dict[int, Any] = {}
        """The operations by the handles of the files that they opened."""
        self._destroying = threading.Lock()
        self._is_destroyed = False
        for name in (*PATH_OPERATIONS, *HANDLE_OPERATIONS):
            if self._is_supported(name):
                setattr(self, name, self._make(name))
        for name in PAIR_OPERATIONS:
            if self._is_supported(name):
                setattr(self, name, self._make_pair(name))

    def _is_supported(self, name: str) -> bool:
        return any(hasattr(operations, name) for operations in self._sources)

    def _route(self, path: str) -> tuple[Any, str]:
        """Return the operations that a path belongs to, and the path in them."""
        name, separator, rest = path[1:].partition("/")
        operations = self._directories.get(name)
        if operations is None:
            return self._root, path
        return operations, separator + rest or "/"

    def _route_handle(self, arguments: tuple[Any, ...]) -> tuple[Any, str]:
        """Return the operations that opened a file without a path, and the last path of the file in them."""
        handle = arguments[-1] if arguments else None
        operations = self._open_files.get(handle) if isinstance(handle, int) else None
        path = None if operations is None else operations.open_path(handle)
        if path is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return operations, path

    def _make(self, name: str) -> Callable[..., Any]:
        counters, route = self._counters, self._route
        is_status, changes_attributes = name == "getattr", self._permissions.has_effect
        call = self._call_waiting if name in WAITING_OPERATIONS else None
        is_read, is_write, has_handle = name == "read", name == "write", name in HANDLE_OPERATIONS
        is_release = name == "release"
        number = self._inode_number

        def operation(path: str | None, *arguments: Any) -> Any:
            counters.begin(name)
            try:
                if arguments and (has_handle or hasattr(arguments[-1], "fh")):
                    arguments = (*arguments[:-1], arguments[-1].fh)
                operations, inner = self._route_handle(arguments) if path is None else route(path)
                if is_release:
                    self._open_files.pop(arguments[-1], None)
                method = _method(operations, name)
                result = method(inner, *arguments) if call is None else call(method, inner, *arguments)
                if is_status:
                    if changes_attributes:
                        result = self._apply_permissions(result, operations, inner)
                    if path is not None:  # The kernel knows the number of an open file.
                        result["st_ino"] = number(path)
            except BaseException as error:
                counters.fail(getattr(error, "errno", None), name)
                raise
            if is_read:
                counters.end(read_nbytes=len(result))
            elif is_write:
                counters.end(written_nbytes=result)
            else:
                counters.end()
            return result

        return operation

    def _apply_permissions(self, attributes: dict[str, Any], operations: Any, path: str) -> dict[str, Any]:
        find_node = getattr(operations, "find_node", None)
        needs_node = self._permissions.follow_store and DOCUMENT_ACCESS not in attributes
        node = find_node(path) if needs_node and find_node is not None else None
        return self._permissions.apply(attributes, node)

    def _make_pair(self, name: str) -> Callable[..., Any]:
        def operation(first: str, second: str, *arguments: Any) -> Any:
            self._counters.begin(name)
            try:
                operations, inner = self._route(first)
                others, other_inner = self._route(second)
                if others is not operations:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                result = _method(operations, name)(inner, other_inner, *arguments)
            except BaseException as error:
                self._counters.fail(getattr(error, "errno", None))
                raise
            self._counters.end()
            return result

        return operation

    # -- operations of another form ----------------------------------------------------------------------------

    def open(self, path: str, file: Any) -> int:
        """Open a file: set the handle in its structure."""
        return self._open("open", path, file, file.flags)

    def create(self, path: str, mode: int, file: Any) -> int:
        """Create a file: set the handle in its structure."""
        return self._open("create", path, file, mode)

    def _open(self, name: str, path: str, file: Any, argument: int) -> int:
        self._counters.begin(name)
        try:
            operations, inner = self._route(path)
            method = _method(operations, name)
            # Files that are opened for reading only can be closed again.
            if self._call_waiting is None or name != "open" or argument & (os.O_ACCMODE | os.O_TRUNC):
                file.fh = method(inner, argument)
            else:
                file.fh = self._call_waiting(
                    method, inner, argument, undo=lambda handle: operations.release(inner, handle)
                )
            if hasattr(operations, "open_path"):
                self._open_files[file.fh] = operations
            if getattr(operations, "direct_io", False):
                file.direct_io = 1
            elif hasattr(operations, "keeps_pages") and operations.keeps_pages(file.fh):
                file.keep_cache = 1
        except BaseException as error:
            self._counters.fail(getattr(error, "errno", None))
            raise
        self._counters.end()
        return 0

    def read_directory(
        self, path: str, fh: int, offset: int, with_attributes: bool
    ) -> Iterator[DirectoryEntry]:
        """Yield the entries of a directory from ``offset`` on."""
        self._counters.begin("readdirplus" if with_attributes else "readdir")
        try:
            operations, inner = self._route(path)
            entries = _method(operations, "read_directory")(inner, fh, offset, with_attributes)
            changes_attributes = self._permissions.has_effect
            parent = path.rstrip("/")
            number = self._inode_number
            special = {".": parent, "..": parent.rpartition("/")[0]}
            for name, kind, attributes, node, _ in entries:
                inode = number(special.get(name, f"{parent}/{name}"))
                if attributes is not None:
                    if changes_attributes:
                        attributes = self._permissions.apply(attributes, node)
                    attributes["st_ino"] = inode
                yield DirectoryEntry(name, kind, attributes, node, inode)
        except GeneratorExit:
            self._counters.end()
            raise
        except BaseException as error:
            self._counters.fail(getattr(error, "errno", None))
            raise
        self._counters.end()

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
        """Return (name, attributes, 0) of the entries of a directory, as both bindings accept them.

        The attributes contain the type and the inode number of the file only.
        """
        entries = self.read_directory(path, fh, 0, False)
        return [(entry.name, {"st_mode": entry.type, "st_ino": entry.inode}, 0) for entry in entries]

    def symlink(self, target: str, source: str) -> int:
        """Create a symbolic link at ``target``."""
        operations, inner = self._route(target)
        return int(_method(operations, "symlink")(inner, source) or 0)

    def init_with_config(self, connection: Any, config: Any) -> None:
        """Called when libfuse has initialized the mount."""
        if self._max_read is not None and connection is not None and hasattr(connection, "max_read"):
            # libfuse 3 refuses a mount option that differs from the value of the connection.
            connection.max_read = self._max_read
        if connection is not None and hasattr(connection, "want"):
            # The operations decide for which entries attributes are returned. With this capability the kernel would
            # request them for the first page only, which programs such as du read before they request the attributes of
            # any file.
            connection.want &= ~READDIRPLUS_AUTO
        for operations in self._sources:
            initialize = getattr(operations, "init", None)
            if initialize is not None:
                initialize("/")
        self._ready()

    def init(self, path: str) -> None:
        """Called by bindings that have no configuration."""
        self.init_with_config(None, None)

    def destroy(self, path: str) -> None:
        """Called when the file system has been unmounted. Changes are written. A second call waits for the first."""
        with self._destroying:
            if not self._is_destroyed:
                self._is_destroyed = True
                for operations in self._sources:
                    operations.destroy(path)

    @property
    def lost(self) -> list[str]:
        """Descriptions of written data that could not be stored and are lost."""
        return [
            description for operations in self._sources for description in getattr(operations, "lost", ())
        ]


def _method(operations: Any, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] | None = getattr(operations, name, None)
    if method is None:
        number = errno.EROFS if isinstance(operations, ControlOperations) else errno.ENOSYS
        raise OSError(number, os.strerror(number))
    return method
