"""Archives that are being written: their state, which all stores of this process that write to one file share."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress

from zarrfs.engine.stores.temporary_files import remove_abandoned
from zarrfs.engine.stores.zip.archive import ArchiveState
from zarrfs.engine.stores.zip.directory import ArchiveFile, Member, Members
from zarrfs.engine.stores.zip.spool import Spool

__all__ = [
    "WriterState",
    "file_identity",
    "find_writer",
    "is_being_written",
    "register_writer",
    "writers_lock",
]


class WriterState(ArchiveState):
    """An archive that is being written. All stores of this process that write to one file share it.

    Attributes:
        target_path: the path of the file, with symbolic links resolved.
        process_id: the id of the writing process.
        lock: held while the state changes.
        file: the file of the existing archive; None for a new one.
        spool: the temporary file for new values; None until the first value is set.
        write_count: the number of values that were written.
        identity: the identity of the file when it was opened or completed.
        is_dirty: whether there are changes that the archive does not contain yet.
        durable: whether one of the stores requires fsync.
    """

    def __init__(self, target_path: str) -> None:
        super().__init__()
        self.target_path = target_path
        self.process_id = os.getpid()
        self.lock = threading.RLock()
        self.file: ArchiveFile | None = None
        self.spool: Spool | None = None
        self.write_count = 0
        self.identity: tuple[int, ...] | None = None
        self.is_dirty = False
        self.durable = False

    def __del__(self) -> None:
        # The last store of this state was closed. It has completed the archive, or discarded its changes, or failed.
        if self.spool is not None and self.process_id == os.getpid():
            self.spool.discard()

    def clear(self) -> None:
        """Remove all members."""
        with self.lock:
            if self.spool is not None:
                self.spool.discard()
            self.members, self.spool, self.file = Members(), None, None
            self.is_dirty = True

    def get_spool(self) -> Spool:
        """Return the temporary file for new values. Creates it if needed."""
        if self.spool is None:
            directory = os.path.dirname(self.target_path)
            remove_abandoned(directory)
            old = self.members.directory
            self.spool = Spool(directory, self.file, 0 if old is None else old.end)
        return self.spool

    def replace_member(self, key: str, member: Member | None) -> None:
        """Set or, with None, delete a member. The caller holds the lock."""
        old = self.members.get(key)
        self.members.set(key, member)
        if old is not None and self.spool is not None:
            self.spool.drop(old)
        self.is_dirty = True

    def compact(self) -> None:
        """Remove the unused bytes of the temporary file if they are many. Without space on the disk they remain."""
        spool = self.spool
        if spool is None or not spool.needs_compaction:
            return
        with suppress(OSError):
            self.spool, moved = spool.compacted(self.members)
            for member in moved:
                self.members.set(member.name.decode(), member)
            spool.discard()


_writers: weakref.WeakValueDictionary[str, WriterState] = weakref.WeakValueDictionary()
"""The writers by the real path of the archive. An entry exists as long as a store uses it."""

writers_lock = threading.RLock()
"""Held while a writer is looked up or created. It is never acquired while the lock of a writer is held."""


def find_writer(target_path: str) -> WriterState | None:
    """Return the state of an archive that stores of this process write to, by its real path, or None."""
    return _writers.get(target_path)


def register_writer(writer: WriterState) -> None:
    """Make a state available to other stores of this process. The caller holds ``writers_lock``."""
    _writers[writer.target_path] = writer


def is_being_written(path: str) -> bool:
    """Return whether a store of this process has the archive open for writing. The file need not exist yet."""
    writer = _writers.get(os.path.realpath(path))
    return writer is not None and writer.process_id == os.getpid()


def file_identity(path: str) -> tuple[int, ...] | None:
    """Return values that change when the file is replaced or modified; None if the file does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


_forking_writers: list[WriterState] = []


def _before_fork() -> None:
    writers_lock.acquire()
    _forking_writers[:] = list(_writers.values())
    for writer in _forking_writers:
        writer.lock.acquire()


def _after_fork() -> None:
    while _forking_writers:
        _forking_writers.pop().lock.release()
    writers_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
