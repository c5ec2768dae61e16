"""What the kernel asks, answered from the tree. The only place where exceptions become error numbers."""

from __future__ import annotations

import errno
import functools
import itertools
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.summary import array_facts, group_facts, json_safe
from zarrfs.errors import NodeNotFoundError, ReadOnlyError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.blocks import BlockPool
from zarrfs.mount.open_files import OpenFile
from zarrfs.mount.tree import Directory, Entry, Tree, VirtualFile

__all__ = ["make_operations"]

F = TypeVar("F", bound=Callable[..., Any])

BLOCK = 512
"""The unit of ``st_blocks``, whatever the file system."""
PREFERRED_READ = 1 << 20
MAX_ATTRIBUTE = 64 << 10
"""The kernel passes no extended attribute larger than this."""
PREFIX = "user.zarr."
MAX_REPORTED = 10_000

PASSED_ON = (errno.EACCES, errno.ENOENT, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Error numbers of the store that are answered as they are; all others become EIO."""

WRITING = [
    "chmod",
    "chown",
    "create",
    "link",
    "mkdir",
    "mknod",
    "removexattr",
    "rename",
    "rmdir",
    "setxattr",
    "symlink",
    "truncate",
    "unlink",
    "utimens",
    "write",
    "fallocate",
]


def make_operations(
    binding: ModuleType,
    tree: Tree,
    ready: Callable[[], None],
    mounted_at: float | None = None,
    pool: BlockPool | None = None,
) -> Any:
    """Return the operations object for a binding. ``ready`` is called once the kernel has made contact."""
    base: Any = binding.Operations
    fuse_error: Any = binding.FuseOSError

    class ZarrOperations(base):  # type: ignore[misc]
        """Read-only operations on a Tree, called by libfuse from several threads at once."""

        use_ns = True

        def __init__(self) -> None:
            self._tree = tree
            self._files: dict[int, OpenFile] = {}
            self._pool = BlockPool() if pool is None else pool
            self._handles = itertools.count(1)
            self._started = time.time() if mounted_at is None else mounted_at
            self._owner = (os.getuid(), os.getgid())
            self._reports = _Reports()

        # -- life ----------------------------------------------------------------------------------------------

        def init(self, path: str) -> None:
            ready()

        def init_with_config(self, connection: Any, config: Any) -> None:
            ready()

        def destroy(self, path: str) -> None:
            self._files.clear()
            self._pool.close()

        # -- looking -------------------------------------------------------------------------------------------

        def _entry(self, path: str) -> Entry:
            entry = self._tree.find(path)
            if entry is None:
                raise fuse_error(errno.ENOENT)
            return entry

        @_translated(fuse_error)
        def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
            entry = self._entry(path)
            modified = entry.modified or self._started
            stamp = int(modified * 1e9)
            common = {
                "st_uid": self._owner[0],
                "st_gid": self._owner[1],
                "st_atime": stamp,
                "st_mtime": stamp,
                "st_ctime": stamp,
            }
            if isinstance(entry, Directory):
                return {
                    "st_mode": stat.S_IFDIR | 0o555,
                    "st_nlink": 2,
                    "st_size": 0,
                    "st_blocks": 0,
                    **common,
                }
            return {
                "st_mode": stat.S_IFREG | 0o444,
                "st_nlink": 1,
                "st_size": entry.layout.size,
                "st_blocks": -(-entry.stored // BLOCK),
                "st_blksize": PREFERRED_READ,
                **common,
            }

        @_translated(fuse_error)
        def access(self, path: str, mode: int) -> int:
            self._entry(path)
            if mode & os.W_OK:
                raise fuse_error(errno.EROFS)
            return 0

        @_translated(fuse_error)
        def opendir(self, path: str) -> int:
            if not isinstance(self._entry(path), Directory):
                raise fuse_error(errno.ENOTDIR)
            return 0

        def releasedir(self, path: str, fh: Any) -> int:
            return 0

        @_translated(fuse_error)
        def readdir(self, path: str, fh: Any) -> list[str]:
            entry = self._entry(path)
            if not isinstance(entry, Directory):
                raise fuse_error(errno.ENOTDIR)
            return [".", "..", *self._tree.names(entry)]

        def readlink(self, path: str) -> NoReturn:
            raise fuse_error(errno.EINVAL)

        def statfs(self, path: str) -> dict[str, int]:
            # Nothing is free, as nothing can be written; the block size is what reads come in.
            return {
                "f_bsize": 4096,
                "f_frsize": 4096,
                "f_blocks": 0,
                "f_bfree": 0,
                "f_bavail": 0,
                "f_files": 0,
                "f_ffree": 0,
                "f_favail": 0,
                "f_namemax": 255,
            }

        # -- extended attributes -------------------------------------------------------------------------------

        def _attributes(self, path: str) -> dict[str, bytes]:
            entry = self._entry(path)
            node = entry.node
            if node is None:
                return {}
            summary = array_facts(node) if isinstance(node, Array) else group_facts(node)
            if entry.complete:  # attributes that were not kept are larger than an extended attribute
                summary["attributes"] = json_safe(node.attrs.asdict())
            texts = {
                PREFIX + key: (value if isinstance(value, str) else json.dumps(value)).encode()
                for key, value in summary.items()
                if value is not None
            }
            return {key: text for key, text in texts.items() if len(text) <= MAX_ATTRIBUTE}

        @_translated(fuse_error)
        def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
            # The kernel asks for security attributes with every access; they need no look at the tree.
            found = self._attributes(path).get(name) if name.startswith(PREFIX) else None
            if found is None:
                raise fuse_error(errno.ENODATA)
            return found

        @_translated(fuse_error)
        def listxattr(self, path: str) -> list[str]:
            return sorted(self._attributes(path))

        # -- reading -------------------------------------------------------------------------------------------

        @_translated(fuse_error)
        def open(self, path: str, flags: int) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_CREAT):
                raise fuse_error(errno.EROFS)
            entry = self._entry(path)
            if not isinstance(entry, VirtualFile):
                raise fuse_error(errno.EISDIR)
            handle = next(self._handles)
            self._files[handle] = OpenFile(entry.layout, self._pool)
            return handle

        @_translated(fuse_error)
        def read(self, path: str, size: int, offset: int, fh: int) -> Any:
            file = self._files.get(fh)
            if file is None:
                entry = self._entry(path)
                if not isinstance(entry, VirtualFile):
                    raise fuse_error(errno.EISDIR)
                file = OpenFile(entry.layout, self._pool)
            try:
                buffer = file.read(offset, size)
            except fuse_error:
                raise
            except Exception as error:
                self._reports.say(path, error)
                raise fuse_error(errno.EIO) from error
            # mfusepy copies from the array; fusepy accepts only bytes.
            return buffer if binding.__name__ == "mfusepy" else bytes(buffer)

        def flush(self, path: str, fh: Any) -> int:
            return 0

        def fsync(self, path: str, datasync: int, fh: Any) -> int:
            return 0

        def release(self, path: str, fh: int) -> int:
            self._files.pop(fh, None)
            return 0

    def refuse(self: Any, *args: Any) -> NoReturn:
        raise fuse_error(errno.EROFS)

    for name in WRITING:
        setattr(ZarrOperations, name, refuse)
    return ZarrOperations()


class _Reports:
    """Logs each error once, however often the kernel comes back for it."""

    def __init__(self) -> None:
        self._said: set[int] = set()
        self._lock = threading.Lock()

    def say(self, what: str, error: Exception) -> None:
        """Log an error, with its traceback if it is none that was foreseen."""
        text = describe_error(error)
        with self._lock:
            if hash(text) in self._said:
                return
            if len(self._said) >= MAX_REPORTED:
                self._said.clear()
            self._said.add(hash(text))
        foreseen = isinstance(error, ZarrError | OSError | MemoryError)
        logger.error("%s: %s", what, text, exc_info=None if foreseen else error)


def error_number(error: Exception) -> int:
    """Return the number by which the kernel is told of an exception."""
    if isinstance(error, NodeNotFoundError):
        return errno.ENOENT
    if isinstance(error, ReadOnlyError):
        return errno.EROFS
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    known = {errno.EPERM: errno.EACCES} | {number: number for number in PASSED_ON}
    return known.get(error.errno or 0, errno.EIO) if isinstance(error, OSError) else errno.EIO


def _translated(fuse_error: Any) -> Callable[[F], F]:
    """Make an operation turn exceptions into error numbers, and log each once."""

    def decorate(operation: F) -> F:
        @functools.wraps(operation)
        def translated(self: Any, *args: Any) -> Any:
            try:
                return operation(self, *args)
            except fuse_error:
                raise
            except Exception as error:
                number = error_number(error)
                if number not in (errno.ENOENT, errno.EROFS):
                    self._reports.say(f"{operation.__name__} {args[0] if args else ''}", error)
                raise fuse_error(number) from error

        return translated  # type: ignore[return-value]

    return decorate
