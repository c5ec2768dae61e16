"""Locks for keys, so that concurrent writes to different parts of a chunk do not lose data.

Threads of one process are always synchronized, for all stores. Processes are synchronized if the store is a local
directory (``locks.locked_file``), or if they share a ``ProcessSynchronizer``, which zarr-python 2 and network file
systems need. The names are those of zarr-python 2.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from zarrfs.engine.stores.base import Store, check_key
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError

__all__ = [
    "ProcessSynchronizer",
    "SynchronizedStore",
    "Synchronizer",
    "ThreadSynchronizer",
]


class Synchronizer(Protocol):
    """Provides a lock for each key."""

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return a context manager that holds the lock of a key. It is not reentrant."""


class ThreadSynchronizer:
    """Does nothing, because threads are always synchronized. For compatibility with zarr-python 2."""

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return nullcontext()


class ProcessSynchronizer:
    """Locks by files in a directory that all writers share, on one machine or on a file system with locks.

    Linux only. It can be pickled and used after a fork. The layout is that of zarr-python 2, so processes of both
    exclude each other: one file per key, with the name of the key, and a record lock on the whole file. The files are
    not deleted. The directory must differ from the directory of the data.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fspath(path))
        if not hasattr(fcntl, "F_OFD_SETLKW"):
            raise StoreError(
                "ProcessSynchronizer needs open file description locks, which only Linux supports"
            )
        try:
            Path(self.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be used for locks: {error.strerror}") from error

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        path = os.path.join(self.path, *check_key(key).split("/"))
        try:
            file = _open_lock_file(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be used as a lock: {error.strerror}") from error
        try:
            _set_lock(file, path, fcntl.F_WRLCK)
            try:
                yield
            finally:
                # Unlocked explicitly: a process that was forked in between has the file open too.
                _set_lock(file, path, fcntl.F_UNLCK)
        finally:
            os.close(file)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessSynchronizer, (self.path,)


def _open_lock_file(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)


def _set_lock(file: int, path: str, kind: int) -> None:
    """Lock or unlock a file. Waits without a time limit.

    The lock belongs to the open file description, not to the process as with ``fcntl.lockf``. Therefore threads
    exclude each other too, and the kernel does not report a deadlock when two threads wait for two processes. Both
    kinds of locks exclude each other.
    """
    try:
        # struct flock: kind, whence, start, length (0: to the end), process (must be 0), padding
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW, struct.pack("hhqqi0q", kind, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        raise StoreError(f"{path} cannot be locked: {error.strerror}") from error


class SynchronizedStore(WrapperStore):
    """A store whose ``lock`` uses a synchronizer."""

    def __init__(self, store: Store, synchronizer: Synchronizer) -> None:
        super().__init__(store)
        self.synchronizer = synchronizer
        self.synchronized = True

    @contextmanager
    def lock(self, key: str) -> Iterator[Any]:
        # In this order, because the lock of the store can be one for several keys.
        with self.store.lock(key) as is_missing, self.synchronizer.lock(key):
            yield is_missing
