"""Taking turns at a key, so that two who change parts of one chunk both keep what they wrote.

Threads of one process always take turns, whatever the store. Processes do where they share a ``ProcessSynchronizer``.
The names are those of zarr-python 2.
"""

from __future__ import annotations

import os
import zlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.keyvalue import load_library
from zarrfs.engine.stores.wrappers import WrapperStore
from zarrfs.errors import StoreError

__all__ = ["ProcessSynchronizer", "SynchronizedStore", "Synchronizer", "ThreadSynchronizer"]

STRIPES = 256
"""So many lock files; keys share them by their hash."""


class Synchronizer(Protocol):
    """Gives the lock of a key."""

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return a context in which nobody else is in that of the same key. It is entered once at a time."""


class ThreadSynchronizer:
    """Nothing more than there is anyway: threads take turns by themselves."""

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return nullcontext()


class ProcessSynchronizer:
    """Locks by files in a directory that all writers see, on one machine or on a file system with locks. Needs
    ``filelock``. It may be pickled, and survives a fork.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._filelock = load_library("filelock", "locks", "a ProcessSynchronizer")
        try:
            Path(self.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path} cannot hold locks: {error.strerror}") from error

    def lock(self, key: str) -> AbstractContextManager[Any]:
        name = f"{zlib.crc32(key.encode()) % STRIPES:02x}.lock"
        # A lock object of its own for each turn: the operating system tells even threads of one process apart by it.
        lock: AbstractContextManager[Any] = self._filelock.FileLock(os.path.join(self.path, name))
        return lock

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessSynchronizer, (self.path,)


class SynchronizedStore(WrapperStore):
    """A store whose writers take turns by a synchronizer."""

    def __init__(self, store: Store, synchronizer: Synchronizer) -> None:
        super().__init__(store)
        self.synchronizer = synchronizer

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return self.synchronizer.lock(key)
