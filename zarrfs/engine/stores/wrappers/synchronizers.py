"""Taking turns at a key, so that two who change parts of one chunk both keep what they wrote.

Threads of one process always take turns, whatever the store. Processes do where they share a ``ProcessSynchronizer``.
The names are those of zarr-python 2.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from zarrfs.engine.stores.base import Buffer, Store, check_key
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError

__all__ = ["ProcessSynchronizer", "SynchronizedStore", "Synchronizer", "ThreadSynchronizer"]


class Synchronizer(Protocol):
    """Gives the lock of a key."""

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return a context in which nobody else is in that of the same key. It is entered once at a time."""


class ThreadSynchronizer:
    """Nothing more than there is anyway: threads take turns by themselves."""

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return nullcontext()


class ProcessSynchronizer:
    """Locks by files in a directory that all writers see, on one machine or on a file system with locks. Linux only.
    It may be pickled, and survives a fork.

    The layout is that of zarr-python 2, whose processes take turns with ours: a file for each key, named as the key,
    with a record lock of the whole file. The files stay. The directory is to be another than that of the data.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fspath(path))
        if not hasattr(fcntl, "F_OFD_SETLKW"):
            raise StoreError("a ProcessSynchronizer needs the locks of open files, which Linux has")
        try:
            Path(self.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path} cannot hold locks: {error.strerror}") from error

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        path = os.path.join(self.path, *check_key(key).split("/"))
        try:
            file = _open(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be used as a lock: {error.strerror}") from error
        try:
            _set_lock(file, path, fcntl.F_WRLCK)
            try:
                yield
            finally:
                # Said, and not left to closing: a process that was forked meanwhile has the open file too.
                _set_lock(file, path, fcntl.F_UNLCK)
        finally:
            os.close(file)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessSynchronizer, (self.path,)


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)


def _set_lock(file: int, path: str, kind: int) -> None:
    """Lock or unlock a whole file, waiting as long as it takes.

    The lock is the open file's, not the process's as those of ``fcntl.lockf`` are: threads exclude each other too, and
    the kernel does not take two threads that wait for two processes for a deadlock. Both kinds exclude each other.
    """
    try:
        # struct flock: kind, whence, start, length (0: to the end), process (must be 0), padding
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW, struct.pack("hhqqi0q", kind, os.SEEK_SET, 0, 0, 0))
    except OSError as error:
        raise StoreError(f"{path} cannot be locked: {error.strerror}") from error


class SynchronizedStore(WrapperStore):
    """A store whose writers take turns by a synchronizer."""

    def __init__(self, store: Store, synchronizer: Synchronizer) -> None:
        super().__init__(store)
        self.synchronizer = synchronizer
        self.synchronized = True

    def get_within(self, key: str, most: int | None) -> Buffer | None:
        return self.store.get_within(key, most)

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        with self.synchronizer.lock(key), self.store.lock(key):
            yield
