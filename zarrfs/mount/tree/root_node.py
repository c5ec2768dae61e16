"""The root of a mount: its revalidation, and the replacement of a zip file that contains it."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Hashable

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import ZarrError, describe_error
from zarrfs.files.content.freshness import renew_array_stamp, stamp_before_reading
from zarrfs.mount.tree.document_stamps import document_stamps
from zarrfs.mount.tree.node_opening import reopen
from zarrfs.mount.tree.node_records import BrokenNode, Node, NodeRecord, equivalent, make_record

__all__ = ["RootNode"]

LAST = "last"
"""The kind of detail of a broken root: the node that was opened before."""


class RootNode:
    """The record of the root, which is never evicted from memory. Thread-safe.

    ``immutable`` disables revalidation. If the root is in a zip file and the file is replaced, it is opened again, and
    ``forget`` is called, which drops everything that is cached of the members. ``close`` closes the stores that were
    opened in this way.
    """

    def __init__(
        self,
        node: Array | Group,
        forget: Callable[[], None],
        *,
        immutable: bool,
        refresh_seconds: float,
        max_document_nbytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._forget = forget
        self._immutable = immutable
        self._refresh_seconds = refresh_seconds
        self._max_document_nbytes = max_document_nbytes
        self._clock = clock
        self._lock = threading.RLock()  # A handler of signals may call ``rescan`` at any time.
        self._original_store = node.store
        self._archive_identity = _archive_identity(node.store)
        self._record = self._make_record(node, document_stamps(node.store, node.path, node.zarr_format))

    @property
    def record(self) -> NodeRecord:
        """The record without revalidation."""
        return self._record

    @property
    def store(self) -> Store:
        """The store that contains the root."""
        node = self._record.node
        return node.store if isinstance(node, Array | Group) else self._original_store

    def is_current(self, record: NodeRecord) -> bool:
        """Return whether a record of the root or of another node needs no revalidation."""
        return self._immutable or self._clock() - record.validated < self._refresh_seconds

    def revalidated(self) -> NodeRecord:
        """Return the record, compared with the store if that is due.

        Raises StoreError if the root has been deleted or cannot be read.
        """
        record = self._record
        # While one thread waits for a server, the others use the cached record.
        if not self.is_current(record) and self._lock.acquire(blocking=not self.store.is_remote):
            try:
                self._revalidate()
            finally:
                self._lock.release()
            record = self._record
        if isinstance(record.node, BrokenNode):
            raise record.node.error()
        return record

    def rescan(self) -> None:
        """Compare the root with the store at its next use, and drop what was computed from it."""
        with self._lock:
            root = self._record
            # The node itself may have been changed, so that it is equal to what the store has.
            details = {LAST: root.details[LAST]} if LAST in root.details else {}
            self._record = NodeRecord(
                "", root.node, float("-inf"), root.nbytes, root.stamps, root.has_attributes, details=details
            )

    def close(self) -> None:
        """Close the store that was opened because an archive had been replaced."""
        store = self.store
        if store is not self._original_store:
            store.close()

    def _make_record(self, node: Node, stamps: Hashable | None = None) -> NodeRecord:
        return make_record("", node, self._clock(), stamps, self._max_document_nbytes)

    def _revalidate(self) -> None:
        record, now = self._record, self._clock()
        if self.is_current(record):
            return
        node = record.details.get(LAST) if isinstance(record.node, BrokenNode) else record.node
        assert isinstance(node, Array | Group)
        is_remote = node.store.is_remote
        identity = _archive_identity(self._original_store)
        if identity != self._archive_identity:
            self._replace_archive(node, identity)
            return
        stamps = document_stamps(node.store, node.path, node.zarr_format)
        if node is record.node and stamps is not None and stamps == record.stamps:
            record.validated = now
            return
        stamp = stamp_before_reading(node)
        reopened = self._make_record(reopen(node.store, node), stamps)
        if is_remote and isinstance(reopened.node, BrokenNode) and reopened.node.errno != errno.ESTALE:
            record.validated = now  # The server may be available again soon.
            return
        if isinstance(reopened.node, BrokenNode):
            reopened.details[LAST] = node
        if equivalent(record, reopened):
            record.validated, record.stamps = now, stamps
            renew_array_stamp(node, stamp)
        else:
            self._record = reopened

    def _replace_archive(self, node: Array | Group, identity: Hashable | None) -> None:
        """Open a zip file again that has been replaced, and drop everything that was known about the old one."""
        store = self._original_store
        assert isinstance(store, ZipStore)
        old = node.store
        try:
            opened = ZipStore(store.path, "r")
        except (ZarrError, OSError) as error:
            # It may be incomplete. It is opened again when it changes, or at the next revalidation.
            broken = BrokenNode(f"{store.url}: {describe_error(error)}", errno.EIO)
            self._record = self._make_record(broken)
            self._record.details[LAST] = node
            self._forget()
            return
        self._archive_identity = identity
        reopened = self._make_record(reopen(opened, node))
        if isinstance(reopened.node, BrokenNode):
            opened.close()
            reopened.details[LAST] = node
        elif old is not store:
            old.close()  # The original store is closed by its owner.
        self._record = reopened
        self._forget()


def _archive_identity(store: Store) -> Hashable | None:
    """Return a value that changes when the file of an archive is replaced, or None for other stores."""
    if not isinstance(store, ZipStore):
        return None
    try:
        status = os.stat(store.path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
