"""The nodes that a mount presents: opening, revalidation, stored sizes, and the names of members, in bounded memory.

A node is compared with the store at most once per ``REVALIDATION_SECONDS``. The metadata of nodes are held in an LRU
cache whose size is bounded in bytes. The root is never evicted.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats.api import read_node
from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group, make_node
from zarrfs.engine.nodes.node import difference
from zarrfs.engine.stores.base import Store, Usage
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import KeyNameError, MetadataError, StoreError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.held import json_memory_nbytes
from zarrfs.ngff.members import member_names

__all__ = [
    "MAX_CACHED_ATTRIBUTES_NBYTES",
    "MAX_METADATA_NBYTES",
    "RECORD_NBYTES",
    "REVALIDATION_SECONDS",
    "BrokenNode",
    "Node",
    "NodeCache",
    "NodeRecord",
    "same_data",
]

REVALIDATION_SECONDS = 1.0
"""Cached metadata of a node is used for this time without a request to the store."""

USAGE_REFRESH_FACTOR = 20.0
"""The stored size of an array is determined again after this multiple of the duration of the last determination."""

MAX_LISTING_SECONDS = 0.1
"""A listing that takes longer is not repeated to find out that a name does not exist."""

MIN_MISSES = 16
"""After this many names that do not exist, the members of a group are listed."""

SLOW_LISTING = -1_000_000
"""The number of misses of a group whose listing takes too long, so that it is not repeated soon."""

MAX_METADATA_NBYTES = 128 << 20
"""The default memory limit of the metadata cache. It holds metadata and the in-memory content of virtual files."""

MAX_CACHED_ATTRIBUTES_NBYTES = 2 << 20
"""A node whose documents occupy more bytes of memory than this is cached without its user attributes. They are read
again when the content of a file depends on them. Their text exceeds the maximum size of an extended attribute.
"""

NODE_NBYTES = 8 << 10
"""The memory that a node with small documents occupies, without its JSON values."""

RECORD_NBYTES = 512
"""The memory that a record without a node, or one more file of a record, occupies."""

NAME_NBYTES = 150
"""The memory that a name of a member in a cached listing occupies."""

LAST = "last"
"""The kind of detail of a broken root: the node that was opened before."""

STAMPED_NAMES: dict[int | str, tuple[str, ...]] = {
    3: ("zarr.json",),
    2: ("zarr.json", ".zarray", ".zgroup", ".zattrs"),
}
"""By format, the documents that determine a node: its own, and those of the formats that take precedence. For other
formats, all documents.
"""


@dataclass(frozen=True)
class BrokenNode:
    """A node that cannot be opened, with the reason. ``errno`` is None if its metadata is invalid.

    The exception itself is not stored because its traceback would keep the document in memory.
    """

    reason: str
    errno: int | None = None

    def error(self) -> StoreError:
        return StoreError(self.reason, self.errno)


Node = Array | Group | BrokenNode | None


@dataclass
class NodeRecord:
    """The cached state of the node at a path.

    Attributes:
        path: the path relative to the root of the mount.
        node: the node, the reason why it cannot be opened, or None if there is no node.
        validated: the time of the last comparison with the store.
        nbytes: the memory that the record occupies.
        stamps: the stamps of its documents, taken before the documents were read. None if the store has no stamps.
        has_attributes: whether ``node`` has its user attributes.
        contents: the contents of its virtual files by suffix. The cache of nodes does not use them.
        details: other data that belong to this state of the node, by kind.
        usage: the stored size, if it has been determined.
        usage_seconds: the time that it took to determine it.
        usage_expires: the time at which ``usage`` expires.
        members: the names that may be members of a group, if they have been listed.
        members_expire: the time at which ``members`` expire.
        misses: the number of names that were looked up without success since the last listing.
    """

    path: str
    node: Node
    validated: float
    nbytes: int
    stamps: Hashable | None = None
    has_attributes: bool = True
    contents: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    usage_seconds: float = 0.0
    usage_expires: float = 0.0
    members: frozenset[str] | None = None
    members_expire: float = 0.0
    misses: int = 0


class NodeCache:
    """The nodes below a root by their path relative to it. Thread-safe.

    ``immutable`` disables revalidation, ``max_nbytes`` bounds the memory of the metadata. If the root is in a zip file
    and the file is replaced, it is opened again. ``close`` closes the stores that were opened in this way.
    """

    def __init__(
        self,
        root: Array | Group,
        *,
        immutable: bool = False,
        max_nbytes: int = MAX_METADATA_NBYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._immutable = immutable
        self._clock = clock
        self._cache = ChunkCache(max_nbytes)
        self._root_lock = threading.RLock()  # A handler of signals may call ``rescan`` at any time.
        self._original_store = root.store
        self._archive_identity = _archive_identity(root.store)
        self._root = self._make_record("", root, self._stamps(root.store, root.path, root.zarr_format))

    @property
    def root(self) -> NodeRecord:
        """The record of the root. It is revalidated.

        Raises StoreError if the root has been deleted or cannot be read.
        """
        record = self._root
        if self._immutable or self._clock() - record.validated < REVALIDATION_SECONDS:
            if isinstance(record.node, BrokenNode):
                raise record.node.error()
            return record
        with self._root_lock:
            self._revalidate_root()
            record = self._root
        if isinstance(record.node, BrokenNode):
            raise record.node.error()
        return record

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
        with self._root_lock:
            root = self._root
            # The node itself may have been changed, so that it is equal to what the store has.
            details = {LAST: root.details[LAST]} if LAST in root.details else {}
            self._root = NodeRecord(
                "", root.node, float("-inf"), root.nbytes, root.stamps, root.has_attributes, details=details
            )

    def close(self) -> None:
        """Close the stores that the cache has opened."""
        store = self._store
        if store is not self._original_store:
            store.close()

    # -- nodes -------------------------------------------------------------------------------------------------

    def get(self, path: str) -> NodeRecord:
        """Return the record of a path relative to the root. It is revalidated after ``REVALIDATION_SECONDS``."""
        if not path:
            return self.root
        now = self._clock()
        record: NodeRecord | None = self._cache.get(path, None)
        if record is not None and (self._immutable or now - record.validated < REVALIDATION_SECONDS):
            return record
        root = self.root.node
        if not isinstance(root, Group):
            return NodeRecord(path, None, now, RECORD_NBYTES)
        if record is None and self._is_absent(path):
            # Not cached: programs look for many names that do not exist.
            return NodeRecord(path, None, now, RECORD_NBYTES)
        known = record.node if record is not None else None
        zarr_format = known.zarr_format if isinstance(known, Array | Group) else None
        stamps = self._stamps(root.store, _join(root.path, path), zarr_format)
        unchanged = record is not None and stamps is not None and record.stamps == stamps
        if record is not None and unchanged and not isinstance(record.node, BrokenNode):
            record.validated = now
            return record
        reopened = self._make_record(path, _open_member(root, path), stamps)
        if reopened.node is None:
            self._count_miss(path)
        if record is not None and _equivalent(record, reopened):
            # The chunk cache holds chunks of the previous node object.
            record.validated, record.stamps = now, stamps
            return record
        self._cache.put(path, None, reopened, reopened.nbytes)
        return reopened

    def expire(self, path: str) -> None:
        """Compare the node at a path with the store at its next use."""
        record: NodeRecord | None = self._cache.get(path, None) if path else self._root
        if record is not None:
            record.validated = float("-inf")

    def is_unchanged(self, record: NodeRecord) -> bool:
        """Return whether the documents of a node are the ones that it was opened with, as far as this is known."""
        node = record.node
        if self._immutable or record.stamps is None or not isinstance(node, Array | Group):
            return True
        return self._stamps(node.store, node.path, node.zarr_format) == record.stamps

    def peek(self, path: str) -> NodeRecord | None:
        """Return the record of a path if it is cached and needs no revalidation, else None."""
        record: NodeRecord | None = self._cache.get(path, None) if path else self._root
        if record is not None and (
            self._immutable or self._clock() - record.validated < REVALIDATION_SECONDS
        ):
            return record
        return None

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

    @property
    def _store(self) -> Store:
        node = self._root.node
        return node.store if isinstance(node, Array | Group) else self._original_store

    def _revalidate_root(self) -> None:
        record, now = self._root, self._clock()
        if now - record.validated < REVALIDATION_SECONDS:
            return
        node = record.details.get(LAST) if isinstance(record.node, BrokenNode) else record.node
        assert isinstance(node, Array | Group)
        is_remote = node.store.concurrency > 1
        if is_remote and record.validated != float("-inf"):
            # Reading the document each second would delay every operation. ``rescan`` reads it.
            record.validated = now
            return
        identity = _archive_identity(self._original_store)
        if identity != self._archive_identity:
            self._replace_archive(node, identity)
            return
        stamps = self._stamps(node.store, node.path, node.zarr_format)
        if node is record.node and stamps is not None and stamps == record.stamps:
            record.validated = now
            return
        reopened = self._make_record("", _reopen(node.store, node), stamps)
        if is_remote and isinstance(reopened.node, BrokenNode) and reopened.node.errno != errno.ESTALE:
            record.validated = now  # The server may be available again soon.
            return
        if isinstance(reopened.node, BrokenNode):
            reopened.details[LAST] = node
        if _equivalent(record, reopened):
            record.validated, record.stamps = now, stamps
        else:
            self._root = reopened

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
            self._root = self._make_record("", broken)
            self._root.details[LAST] = node
            self._cache.clear()
            return
        self._archive_identity = identity
        reopened = self._make_record("", _reopen(opened, node))
        if isinstance(reopened.node, BrokenNode):
            opened.close()
            reopened.details[LAST] = node
        elif old is not store:
            old.close()  # The original store is closed by its owner.
        self._root = reopened
        self._cache.clear()

    def _stamps(self, store: Store, path: str, zarr_format: int | str | None) -> Hashable | None:
        """Return a value that changes if a metadata document at the path changes, or None if it is not available.

        High-latency stores are excluded: there a stamp costs as much as reading the document.
        """
        if store.concurrency > 1:
            return None
        prefix = f"{path}/" if path else ""
        try:
            if zarr_format is None:
                stamp = store.stamp(prefix + "zarr.json")
                if stamp is not None:
                    return (stamp,)
                names: tuple[str, ...] = tuple(METADATA_NAMES)
            else:
                names = STAMPED_NAMES.get(zarr_format, tuple(METADATA_NAMES))
            stamps = tuple([store.stamp(prefix + name) for name in names])
        except Exception:  # opening the node reports the error
            return None
        if all(stamp is None for stamp in stamps):
            return None
        # As many stamps as a node of unknown format has.
        return stamps[:1] if stamps[0] is not None else stamps + (None,) * (len(METADATA_NAMES) - len(stamps))

    def _make_record(self, path: str, node: Node, stamps: Hashable | None = None) -> NodeRecord:
        """Return a record of a node. Large documents and user attributes are not retained."""
        now = self._clock()
        if node is None:
            return NodeRecord(path, None, now, RECORD_NBYTES, stamps)
        if isinstance(node, BrokenNode):
            return NodeRecord(path, node, now, RECORD_NBYTES + 4 * len(node.reason), stamps)
        spec: ArraySpec | GroupSpec = node.spec
        document = {key: value for key, value in spec.document.items() if key != "attributes"}
        document_nbytes = json_memory_nbytes(document, self._cache.capacity)
        nbytes = document_nbytes + json_memory_nbytes(spec.attributes, MAX_CACHED_ATTRIBUTES_NBYTES)
        if nbytes <= MAX_CACHED_ATTRIBUTES_NBYTES:
            return NodeRecord(path, node, now, NODE_NBYTES + nbytes, stamps)
        reduced: ArraySpec | GroupSpec
        if isinstance(spec, ArraySpec):
            # The specification still contains the parsed values, such as a long list of chunk lengths.
            reduced, nbytes = replace(spec, document={}, attributes={}), document_nbytes
        else:
            consolidated = spec.consolidated if not path else None
            reduced, nbytes = replace(spec, document={}, attributes={}, consolidated=consolidated), 0
        reduced_node = make_node(node.store, node.path, reduced, node._cache, True, node.access)
        return NodeRecord(path, reduced_node, now, NODE_NBYTES + nbytes, stamps, has_attributes=False)

    # -- members -----------------------------------------------------------------------------------------------

    def member_names(self, record: NodeRecord) -> list[str]:
        """Return the sorted names that may be members of a group. Raises StoreError if a store cannot list it."""
        node = record.node
        assert isinstance(node, Group)
        if not record.has_attributes and not node.store.listable:
            # The attributes may contain the names of the members.
            reread = self.with_attributes(record)
            node = reread if isinstance(reread, Group) else node
        start = self._clock()
        names = member_names(node)
        elapsed = self._clock() - start
        if elapsed <= MAX_LISTING_SECONDS and self._lists_all_members(node):
            if record.members is None:
                self.grow(record, NAME_NBYTES * len(names))
            record.members, record.members_expire = frozenset(names), start + REVALIDATION_SECONDS
        return names

    def _is_absent(self, path: str) -> bool:
        """Return whether a recent listing of the parent group shows that there is no node at a path."""
        parent, _, name = path.rpartition("/")
        record = self._root if not parent else self._cache.get(parent, None)
        if record is None or not isinstance(record.node, Group) or not self._lists_all_members(record.node):
            return False
        if record.members is not None and (self._immutable or self._clock() < record.members_expire):
            return name not in record.members
        if record.misses < MIN_MISSES:
            return False
        # Programs look for many names that do not exist. One listing is cheaper than a request for each.
        record.misses = 0
        try:
            self.member_names(record)
        except (ZarrError, OSError):
            return False
        if record.members is None:
            record.misses = SLOW_LISTING
            return False
        return name not in record.members

    def _count_miss(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        record = self._root if not parent else self._cache.get(parent, None)
        if record is not None:
            record.misses += 1

    @staticmethod
    def _lists_all_members(node: Group) -> bool:
        """Whether a name that is not in a listing is not a member. Consolidated metadata can be incomplete."""
        return node.store.listable and node.store.concurrency == 1 and not node._consolidated

    # -- sizes -------------------------------------------------------------------------------------------------

    def usage(self, record: NodeRecord) -> Usage:
        """Return the stored size of the node. The result is cached for a time that grows with its computation time."""
        now = self._clock()
        if record.usage is not None and (self._immutable or now < record.usage_expires):
            return record.usage
        node = record.node
        nbytes = node.nbytes if isinstance(node, Array) else 0
        if not isinstance(node, Array) or not node.store.listable or node.store.concurrency > 1:
            # Listing all keys of a high-latency store is too expensive for getattr.
            record.usage, record.usage_expires = Usage(0, nbytes, None), float("inf")
            return record.usage
        try:
            record.usage = node.usage()
        except Exception as error:
            # The array may still be readable; only its stored size is unknown.
            if record.usage is None:
                logger.warning(
                    "%s: its stored size cannot be determined: %s", node.name, describe_error(error)
                )
            record.usage = Usage(0, nbytes, None)
        elapsed = self._clock() - now
        record.usage_seconds = elapsed
        record.usage_expires = now + elapsed + max(REVALIDATION_SECONDS, USAGE_REFRESH_FACTOR * elapsed)
        return record.usage


def same_data(old: Array, new: Array) -> bool:
    """Return whether two array objects present the same elements, apart from the shape and changes of the chunks."""
    return old is new or (
        old.store is new.store and old.path == new.path and difference(old.spec, new.spec) is None
    )


def _join(base: str, path: str) -> str:
    return f"{base}/{path}" if base else path


def _open_member(root: Group, path: str) -> Node:
    try:
        node: Array | Group | None = root.get(path)
    except KeyNameError:
        return None
    except Exception as error:
        return _broken(path, error)
    return node


def _reopen(store: Store, node: Array | Group) -> Node:
    """Return the node with the metadata that the store has now, or the reason why it cannot be opened."""
    try:
        spec = read_node(store, node.path, **node.access.reading)
        if spec is None:
            what = "the store" if not node.path else node.name
            return BrokenNode(f"{store.url}: {what} has been deleted since it was mounted", errno.ESTALE)
        return make_node(store, node.path, spec, node._cache, node.read_only, node.access)
    except Exception as error:
        return _broken(node.path, error)


def _broken(path: str, error: Exception) -> BrokenNode:
    if isinstance(error, MetadataError):
        return BrokenNode(describe_error(error))
    if isinstance(error, OSError):
        denied = error.errno in (errno.EACCES, errno.EPERM)
        return BrokenNode(describe_error(error), errno.EACCES if denied else errno.EIO)
    if isinstance(error, MemoryError):
        return BrokenNode("there is not enough memory to read its metadata", errno.ENOMEM)
    # An error in one member must not make the other members inaccessible.
    if not isinstance(error, ZarrError):
        logger.error("%s: unexpected error while opening the node", path, exc_info=error)
    return BrokenNode(describe_error(error), errno.EIO)


def _equivalent(old: NodeRecord, new: NodeRecord) -> bool:
    """Whether the metadata of two records is equal, so that the old node remains valid."""
    if not (old.has_attributes and new.has_attributes):
        return False  # the documents are not in memory and cannot be compared
    if isinstance(old.node, Array | Group) and isinstance(new.node, Array | Group):
        before, after = old.node.spec, new.node.spec
        return (
            type(before) is type(after)
            and before.document == after.document
            and before.attributes == after.attributes
        )
    return old.node == new.node


def _archive_identity(store: Store) -> Hashable | None:
    """Return a value that changes when the file of an archive is replaced, or None for other stores."""
    if not isinstance(store, ZipStore):
        return None
    try:
        status = os.stat(store.path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
