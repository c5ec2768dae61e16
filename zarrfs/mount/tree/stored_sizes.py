"""The stored sizes of arrays: the bytes that their chunks occupy, and the time of the last change."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from zarrfs.engine.array.array import Array
from zarrfs.engine.native.members import scan_members
from zarrfs.engine.stores.base import Usage
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import describe_error
from zarrfs.logs import logger
from zarrfs.mount.tree.node_records import NodeRecord

__all__ = ["StoredSizes"]

U = TypeVar("U", Usage, Usage | None)

REFRESH_FACTOR = 20.0
"""A stored size whose determination is slow is determined again after this multiple of its duration."""

MAX_FOREGROUND_SECONDS = 0.05
"""A stored size whose last determination took longer is determined again in the background."""

MAX_FOREGROUND_ENTRIES = 2000
"""The stored size of a local array with more files and directories is determined in the background."""

MAX_FIRST_SECONDS = 0.5
"""The first look-up waits at most this time for the background thread. After that the size of the elements is returned
instead.
"""

MAX_DOCUMENT_NBYTES = 1 << 20


class StoredSizes:
    """Determines stored sizes and keeps them in the records of the nodes. Thread-safe.

    ``refresh_seconds`` is the minimum time after which a size is determined again, ``immutable`` disables this.
    """

    def __init__(
        self,
        *,
        immutable: bool,
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._immutable = immutable
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._refreshing: dict[int, threading.Event] = {}

    def get(self, record: NodeRecord) -> Usage:
        """Return the stored size of a node: that of at most ``refresh_seconds`` ago, or an older one if determining it
        takes long.
        """
        if record.usage is not None and (self._immutable or self._clock() < record.usage_expires):
            return record.usage
        node = record.node
        if not isinstance(node, Array) or not node.store.listable or node.store.is_remote:
            # Listing all keys of a high-latency store is too expensive for getattr.
            nbytes = node.nbytes if isinstance(node, Array) else 0
            record.usage, record.usage_expires = Usage(0, nbytes, None), float("inf")
            return record.usage
        if record.usage is None:
            return self._first(record, node)
        if record.usage_seconds <= MAX_FOREGROUND_SECONDS:
            return self._determine(record, node, node.usage)
        self._refresh(record, node)
        return record.usage

    def _first(self, record: NodeRecord, array: Array) -> Usage:
        """Determine a stored size that is not known yet. That of very many chunks is determined in the background."""
        store = array.store
        if type(store) is not LocalStore:
            return self._determine(record, array, array.usage)
        unknown = Usage(0, array.nbytes, None)
        if id(record) in self._refreshing:
            return unknown
        usage = self._determine(record, array, lambda: store.usage_within(array.path, MAX_FOREGROUND_ENTRIES))
        if usage is not None:
            return usage
        self._refresh(record, array).wait(MAX_FIRST_SECONDS)
        # This size is not cached: the next look-up uses the size that has been determined by then.
        return record.usage or unknown

    def is_exact(self, record: NodeRecord) -> bool:
        """Return whether a changed chunk would have changed the stored size that ``get`` has returned just now.

        It is False for arrays of very many chunks, and for stores that do not report when a value was modified.
        """
        if self._immutable:
            return True
        return (
            record.usage is not None
            and record.usage.modified is not None
            and record.usage_seconds <= MAX_FOREGROUND_SECONDS
        )

    def _determine(self, record: NodeRecord, array: Array, find: Callable[[], U]) -> U | Usage:
        """Return the stored size that ``find`` returns, and keep it unless it is None."""
        start = self._clock()
        usage: U | Usage
        try:
            usage = find()
        except Exception as error:
            # The array may still be readable; only its stored size is unknown.
            if record.usage is None:
                logger.warning(
                    "%s: its stored size cannot be determined: %s", array.name, describe_error(error)
                )
            usage = Usage(0, array.nbytes, None)
        if usage is None:
            return usage
        elapsed = self._clock() - start
        record.usage, record.usage_seconds = usage, elapsed
        # A size that takes long to determine is refreshed less often. All other sizes have to be current, because they
        # also determine whether the kernel may keep cached pages.
        pause = 0.0 if elapsed <= MAX_FOREGROUND_SECONDS else (REFRESH_FACTOR + 1) * elapsed
        record.usage_expires = start + max(self._refresh_seconds, pause)
        return usage

    def _refresh(self, record: NodeRecord, array: Array) -> threading.Event:
        """Determine a stored size in the background, once at a time. Return an event that is set when it is known."""
        with self._lock:
            known = self._refreshing.get(id(record))
            if known is not None:
                return known
            done = self._refreshing[id(record)] = threading.Event()

        def refresh() -> None:
            try:
                self._determine(record, array, lambda: _large_usage(array))
            finally:
                with self._lock:
                    self._refreshing.pop(id(record), None)
                done.set()

        threading.Thread(target=refresh, name="zarrfs-stored-size", daemon=True).start()
        return done


def _large_usage(array: Array) -> Usage:
    """Return the stored size of an array of very many chunks, if possible without the interpreter lock."""
    store = array.store
    if type(store) is LocalStore and array.path:
        parent, _, name = array.path.rpartition("/")
        directory = store.open_directory(parent)
        if directory is not None:
            try:
                (member,) = scan_members(directory, [name], MAX_DOCUMENT_NBYTES, sys.maxsize)
            finally:
                os.close(directory)
            if member is not None and member.usage is not None:
                return member.usage
    return array.usage()
