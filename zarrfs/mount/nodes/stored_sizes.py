"""The stored sizes of arrays: the bytes that their chunks occupy, and the time of the last change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.stores.base import Usage
from zarrfs.errors import describe_error
from zarrfs.logs import logger
from zarrfs.mount.nodes.node_records import NodeRecord

__all__ = ["StoredSizes"]

REFRESH_FACTOR = 20.0
"""A stored size whose determination is slow is determined again after this multiple of its duration."""

MAX_FOREGROUND_SECONDS = 0.05
"""A stored size whose last determination took longer is determined again in the background."""


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
        self._refreshing: set[int] = set()

    def get(self, record: NodeRecord) -> Usage:
        """Return the stored size of a node: that of at most ``refresh_seconds`` ago, unless ``is_exact`` is False."""
        if record.usage is not None and (self._immutable or self._clock() < record.usage_expires):
            return record.usage
        node = record.node
        if not isinstance(node, Array) or not node.store.listable or node.store.concurrency > 1:
            # Listing all keys of a high-latency store is too expensive for getattr.
            nbytes = node.nbytes if isinstance(node, Array) else 0
            record.usage, record.usage_expires = Usage(0, nbytes, None), float("inf")
            return record.usage
        if record.usage is None or record.usage_seconds <= MAX_FOREGROUND_SECONDS:
            return self._determine(record, node)
        self._refresh(record, node)
        return record.usage

    def is_exact(self, record: NodeRecord) -> bool:
        """Return whether a changed chunk would have changed the stored size that ``get`` has returned just now.

        It is False for arrays of very many chunks, and for stores that do not tell when a value was modified.
        """
        if self._immutable:
            return True
        return (
            record.usage is not None
            and record.usage.modified is not None
            and record.usage_seconds <= MAX_FOREGROUND_SECONDS
        )

    def _determine(self, record: NodeRecord, array: Array) -> Usage:
        start = self._clock()
        try:
            usage = array.usage()
        except Exception as error:
            # The array may still be readable; only its stored size is unknown.
            if record.usage is None:
                logger.warning(
                    "%s: its stored size cannot be determined: %s", array.name, describe_error(error)
                )
            usage = Usage(0, array.nbytes, None)
        elapsed = self._clock() - start
        record.usage, record.usage_seconds = usage, elapsed
        # The size of an array tells whether the kernel may keep pages if it is determined in the foreground.
        pause = 0.0 if elapsed <= MAX_FOREGROUND_SECONDS else (REFRESH_FACTOR + 1) * elapsed
        record.usage_expires = start + max(self._refresh_seconds, pause)
        return usage

    def _refresh(self, record: NodeRecord, array: Array) -> None:
        """Determine a stored size in the background, once at a time."""
        with self._lock:
            if id(record) in self._refreshing:
                return
            self._refreshing.add(id(record))

        def refresh() -> None:
            try:
                self._determine(record, array)
            finally:
                with self._lock:
                    self._refreshing.discard(id(record))

        threading.Thread(target=refresh, name="zarrfs-stored-size", daemon=True).start()
