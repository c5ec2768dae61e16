"""The nodes that a mount presents: opening and revalidation, in bounded memory.

A node is compared with the store at most once per ``REVALIDATION_SECONDS``. The metadata of nodes are held in an LRU
cache whose size is bounded in bytes. The root is never evicted.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Hashable

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats.api import read_node
from zarrfs.engine.group.group import Group, make_node
from zarrfs.engine.stores.base import Listing
from zarrfs.errors import StoreError
from zarrfs.files.content.freshness import REVALIDATION_SECONDS, renew_array_stamp, stamp_before_reading
from zarrfs.mount.tree.document_stamps import document_stamps
from zarrfs.mount.tree.member_lists import MemberLists
from zarrfs.mount.tree.node_opening import open_member
from zarrfs.mount.tree.node_records import (
    RECORD_NBYTES,
    BrokenNode,
    Node,
    NodeRecord,
    equivalent,
    make_record,
)
from zarrfs.mount.tree.root_node import RootNode
from zarrfs.mount.tree.stored_sizes import StoredSizes

__all__ = ["MAX_METADATA_NBYTES", "REMOTE_REVALIDATION_SECONDS", "NodeCache"]

REMOTE_REVALIDATION_SECONDS = 10.0
"""The time for which metadata of stores whose requests have a high latency are used, unless another time is given,
instead of ``REVALIDATION_SECONDS``.
"""

MAX_METADATA_NBYTES = 128 << 20
"""The default memory limit of the metadata cache. It holds metadata and the in-memory content of virtual files."""


class NodeCache:
    """The nodes below a root by their path relative to it. Thread-safe.

    ``immutable`` disables revalidation, ``max_nbytes`` bounds the memory of the metadata. ``refresh_seconds`` is the
    time for which a node is used without a comparison with the store; None for the default of the kind of store.

    Attributes:
        sizes: the stored sizes of the nodes.
    """

    def __init__(
        self,
        root: Array | Group,
        *,
        immutable: bool = False,
        max_nbytes: int = MAX_METADATA_NBYTES,
        refresh_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if refresh_seconds is None:
            is_remote = root.store.is_remote
            refresh_seconds = REMOTE_REVALIDATION_SECONDS if is_remote else REVALIDATION_SECONDS
        self._clock = clock
        self._cache = ChunkCache(max_nbytes)
        self._root = RootNode(
            root,
            self._cache.clear,
            immutable=immutable,
            refresh_seconds=refresh_seconds,
            max_document_nbytes=max_nbytes,
            clock=clock,
        )
        self._members = MemberLists(
            self.grow, immutable=immutable, refresh_seconds=refresh_seconds, clock=clock
        )
        self.sizes = StoredSizes(immutable=immutable, refresh_seconds=refresh_seconds, clock=clock)
        self._immutable = immutable

    @property
    def root(self) -> NodeRecord:
        """The record of the root. It is revalidated.

        Raises StoreError if the root has been deleted or cannot be read.
        """
        return self._root.revalidated()

    @property
    def nbytes(self) -> int:
        """The number of bytes that the cached metadata occupy."""
        return self._cache.nbytes

    @property
    def capacity(self) -> int:
        """The memory limit in bytes."""
        return self._cache.capacity

    def rescan(self) -> None:
        """Compare all nodes with the store at their next use, and drop what was computed from them."""
        self._cache.clear()
        self._root.rescan()

    def close(self) -> None:
        """Close the stores that the cache has opened."""
        self._root.close()

    def get(self, path: str, *, is_listed: bool = False) -> NodeRecord:
        """Return the record of a path relative to the root, compared with the store if that is due.

        ``is_listed`` is whether the parent group has just been listed and has a member of this name.
        """
        if not path:
            return self.root
        record: NodeRecord | None = self._cache.get(path, None)
        if record is not None and self._root.is_current(record):
            return record
        now = self._clock()
        root = self.root.node
        if not isinstance(root, Group):
            return NodeRecord(path, None, now, RECORD_NBYTES)
        if record is None and not is_listed and self.is_absent(path):
            # Not cached: programs look up many names that do not exist.
            return NodeRecord(path, None, now, RECORD_NBYTES)
        known = record.node if record is not None else None
        zarr_format = known.zarr_format if isinstance(known, Array | Group) else None
        stamps = document_stamps(root.store, f"{root.path}/{path}" if root.path else path, zarr_format)
        unchanged = record is not None and stamps is not None and record.stamps == stamps
        if record is not None and unchanged and not isinstance(record.node, BrokenNode):
            record.validated = now
            return record
        stamp = stamp_before_reading(known)
        reopened = self._make_record(path, open_member(root, path), stamps)
        if reopened.node is None:
            self._count_miss(path)
        if record is not None and equivalent(record, reopened):
            # The chunk cache holds chunks of the previous node object.
            record.validated, record.stamps = now, stamps
            renew_array_stamp(known, stamp)
            return record
        self._cache.put(path, None, reopened, reopened.nbytes)
        return reopened

    def expire(self, path: str) -> None:
        """Compare the node at a path with the store at its next use."""
        record = self._cached(path)
        if record is not None:
            record.validated = float("-inf")

    def is_unchanged(self, record: NodeRecord) -> bool:
        """Return whether the documents of a node are unchanged since it was opened, as far as this is known."""
        node = record.node
        if self._immutable or record.stamps is None or not isinstance(node, Array | Group):
            return True
        return document_stamps(node.store, node.path, node.zarr_format) == record.stamps

    def peek(self, path: str) -> NodeRecord | None:
        """Return the record of a path if it is cached and needs no revalidation, else None."""
        record = self._cached(path)
        return record if record is not None and self._root.is_current(record) else None

    def grow(self, record: NodeRecord, nbytes: int) -> None:
        """Count memory that a record occupies in addition."""
        record.nbytes += nbytes
        if record.path:
            self._cache.put(record.path, None, record, record.nbytes)

    def with_attributes(self, record: NodeRecord) -> Array | Group:
        """Return the node with its user attributes. They are read from the store if they are not cached."""
        node = record.node
        assert isinstance(node, Array | Group)
        if record.has_attributes:
            return node
        spec = read_node(node.store, node.path, **node.access.reading)
        if spec is None:
            raise StoreError(f"{node.store.url}: {node.name} has been deleted", errno.ENOENT)
        return make_node(node.store, node.path, spec, node._cache, True, node.access)

    def member_names(self, record: NodeRecord) -> list[str]:
        """Return the sorted names that may be members of a group. Raises StoreError if a store cannot list it."""
        return self.list_group(record)[0]

    def list_group(self, record: NodeRecord) -> tuple[list[str], Listing]:
        """Return the names that ``member_names`` returns, and those that the store lists in the group."""
        node = record.node
        assert isinstance(node, Group)
        if not record.has_attributes and not node.store.listable:
            # The attributes may contain the names of the members.
            reread = self.with_attributes(record)
            node = reread if isinstance(reread, Group) else node
        return self._members.names(record, node)

    def recent_names(self, record: NodeRecord) -> frozenset[str] | None:
        """Return the names of the members of a group, and of other files in it, if it has been listed recently and has
        not changed since. Else None; also if the store cannot list all members.
        """
        return self._members.recent_names(record)

    def _cached(self, path: str) -> NodeRecord | None:
        record: NodeRecord | None = self._cache.get(path, None) if path else self._root.record
        return record

    def is_absent(self, path: str) -> bool:
        """Return whether a recent listing of the parent group shows that there is no node at a path."""
        parent, _, name = path.rpartition("/")
        return self._members.is_absent(self._cached(parent), name)

    def _count_miss(self, path: str) -> None:
        record = self._cached(path.rpartition("/")[0])
        if record is not None:
            record.misses += 1

    def _make_record(self, path: str, node: Node, stamps: Hashable | None = None) -> NodeRecord:
        return make_record(path, node, self._clock(), stamps, self._cache.capacity)
