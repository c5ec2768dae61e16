"""Locks of values that are read, changed and written: of the documents of a store, and of local files and directories.

The locks of files and directories create no file: they are those of the open file or directory (flock). They end with
the process that holds them. File systems without such locks, such as NFS for directories, exclude only the threads of
this process.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from zarrfs.engine.stores.base import Store
from zarrfs.errors import ConflictError, StoreError

__all__ = ["locked_directory", "locked_documents", "locked_file", "repeated_after_conflicts"]

T = TypeVar("T")

MAX_CONFLICTS = 50
"""How often a change is repeated because another writer was faster."""

CONFLICT_SECONDS = 0.005
MAX_CONFLICT_SECONDS = 0.5
"""The first delay before a change is repeated, and the longest one. Writers that meet do not meet again then."""

MAX_LOCK_ATTEMPTS = 1000
"""How often a file is locked again because it was replaced. Where files have no constant inode number, each attempt
fails; they are not locked.
"""

_document_locks: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
"""The lock of each metadata document that is being changed, by its URL. Each document has its own lock, unlike chunks,
because the holder of a document's lock goes on to lock chunks.
"""

_tables_lock = threading.Lock()


@contextmanager
def locked_documents(store: Store, *keys: str) -> Iterator[None]:
    """Lock the metadata documents with these keys for the duration of the block.

    The locks exclude other threads of this process, and the processes that the store's ``lock`` excludes. The keys are
    locked in the order given; all callers lock the documents of a node in the order of ``document_keys``, and no
    documents of two nodes at a time, which prevents deadlocks.
    """
    with ExitStack() as locks:
        for key in keys:
            # The lock of a store can be one for several documents. Waiting for it while a lock of one of them is held
            # would be a deadlock.
            locks.enter_context(store.lock(key))
            with _tables_lock:
                document_lock = _document_locks.setdefault(f"{store.url}/{key}", threading.RLock())
            locks.enter_context(document_lock)
        yield


def repeated_after_conflicts(change: Callable[[], T]) -> T:
    """Return the result of ``change()``, which reads values, changes and writes them while it holds their locks.

    Object stores cannot exclude other writers. If one of them was faster, ``change`` has written nothing and is called
    again. Raises ConflictError after ``MAX_CONFLICTS`` attempts.
    """
    for attempt in range(MAX_CONFLICTS - 1):
        try:
            return change()
        except ConflictError:
            import random  # `import zarrfs` loads few modules

            time.sleep(random.random() * min(MAX_CONFLICT_SECONDS, CONFLICT_SECONDS * 2**attempt))
    return change()


class _DirectoryLock:
    """The lock of a directory in this process. ``depth`` is how often the thread that holds it has entered it."""

    def __init__(self) -> None:
        self.thread_lock = threading.RLock()
        self.depth = 0


_directory_locks: WeakValueDictionary[tuple[int, int], _DirectoryLock] = WeakValueDictionary()
"""The locks that are in use, by device and inode. A second descriptor of a directory would wait for the first one."""


@contextmanager
def locked_directory(open_directory: Callable[[], int | None]) -> Iterator[None]:
    """Hold the lock of a directory. A thread can hold it several times. Waits without a time limit.

    ``open_directory`` returns a descriptor, which this function closes, or None for a missing directory; it raises
    StoreError if the directory cannot be opened. Such a directory is not locked.
    """
    fd = None
    with suppress(StoreError):
        fd = open_directory()
    if fd is None:
        yield
        return
    try:
        with _locked_descriptor(fd):
            yield
    finally:
        os.close(fd)


@contextmanager
def _locked_descriptor(fd: int) -> Iterator[None]:
    status = os.fstat(fd)
    with _tables_lock:
        lock = _directory_locks.setdefault((status.st_dev, status.st_ino), _DirectoryLock())
    with lock.thread_lock:
        is_first = not lock.depth
        lock.depth += 1
        try:
            if is_first:
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            lock.depth -= 1
            if is_first:
                # Unlocked explicitly: a process that was forked in between has the directory open too.
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_UN)


@contextmanager
def locked_file(path: str, open_file: Callable[[], int]) -> Iterator[bool]:
    """Hold the lock of the file at ``path``. The value is True if it is missing, so that there is nothing to lock.

    Only the holder replaces or deletes the file, and nobody replaces a file that was missing (see
    ``local.files.create_file``). Waits without a time limit. ``open_file`` returns a descriptor for reading, which this
    function closes, or raises OSError. What cannot be opened or is no regular file is not locked.
    """
    fd, is_missing = _lock_file(path, open_file)
    try:
        yield is_missing
    finally:
        if fd is not None:
            # Unlocked explicitly: a process that was forked in between has the file open too.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def _lock_file(path: str, open_file: Callable[[], int]) -> tuple[int | None, bool]:
    """Return the descriptor of a locked file, or None, and whether the file is missing."""
    for _ in range(MAX_LOCK_ATTEMPTS):
        try:
            fd = open_file()
        except OSError as error:
            return None, isinstance(error, FileNotFoundError)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                os.close(fd)
                return None, False
            fcntl.flock(fd, fcntl.LOCK_EX)
            current = os.stat(path)
            if current.st_ino == status.st_ino and current.st_dev == status.st_dev:
                return fd, False
        except FileNotFoundError:
            pass
        except OSError:
            return fd, False
        except BaseException:
            os.close(fd)
            raise
        # Another process replaced or deleted the file while this one waited.
        os.close(fd)
    return None, False


def _forget_locks() -> None:
    """Forget the locks in a forked process: it does not hold those that the threads of its parent held."""
    global _tables_lock
    _directory_locks.clear()
    _document_locks.clear()
    _tables_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_locks)
