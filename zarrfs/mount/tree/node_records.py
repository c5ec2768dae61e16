"""The cached state of a node that a mount presents, and the memory that it occupies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.group.group import Group, make_node
from zarrfs.engine.hierarchy.node import difference
from zarrfs.engine.json_memory import json_memory_nbytes
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.base import Usage
from zarrfs.errors import StoreError

__all__ = [
    "CONTENT_NBYTES",
    "MAX_CACHED_ATTRIBUTES_NBYTES",
    "NAME_NBYTES",
    "RECORD_NBYTES",
    "BrokenNode",
    "Node",
    "NodeRecord",
    "equivalent",
    "make_record",
    "same_data",
]

MAX_CACHED_ATTRIBUTES_NBYTES = 2 << 20
"""A node whose documents occupy more bytes of memory than this is cached without its user attributes. They are read
again when the content of a file depends on them. Their text exceeds the maximum size of an extended attribute.
"""

NODE_NBYTES = 8 << 10
"""The memory that a node with small documents occupies, without its JSON values."""

SHARING_NODE_NBYTES = 4 << 10
"""The memory of a node that shares the parts of its specification and its document with other arrays."""

MAX_SHARED_DOCUMENT_NBYTES = 64 << 10
"""Arrays with documents of at most this size in memory may share parts of them."""

RECORD_NBYTES = 512
"""The memory that a record without a node occupies."""

CONTENT_NBYTES = 1 << 10
"""The memory that the content of a virtual file occupies, without its bytes in memory."""

NAME_NBYTES = 150
"""The memory that a name of a member in a cached listing occupies."""


@dataclass(frozen=True)
class BrokenNode:
    """A node that cannot be opened, with the reason. ``errno`` is None if its metadata is invalid.
    ``is_unreachable`` is whether the server has failed, so that nothing is known about the node.

    The exception itself is not stored because its traceback would keep the document in memory.
    """

    reason: str
    errno: int | None = None
    is_unreachable: bool = False

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
        members: the names that may be members of a group, and those of other files, if they have been listed.
        members_stamp: the stamp of the listing; see ``Store.listing_stamp``.
        members_expire: the time at which ``members`` are compared with the store.
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
    members_stamp: Hashable | None = None
    members_expire: float = 0.0
    misses: int = 0


def make_record(
    path: str, node: Node, now: float, stamps: Hashable | None, max_document_nbytes: int
) -> NodeRecord:
    """Return a record of a node that was opened at the time ``now``.

    Large documents and user attributes are not retained. Counting the memory of a document stops at
    ``max_document_nbytes``.
    """
    if node is None:
        return NodeRecord(path, None, now, RECORD_NBYTES, stamps)
    if isinstance(node, BrokenNode):
        return NodeRecord(path, node, now, RECORD_NBYTES + 4 * len(node.reason), stamps)
    spec: ArraySpec | GroupSpec = node.spec
    document_nbytes, is_shared = _document_nbytes(spec, max_document_nbytes)
    nbytes = json_memory_nbytes(spec.attributes, MAX_SHARED_DOCUMENT_NBYTES) if is_shared else 0
    if is_shared and nbytes <= MAX_SHARED_DOCUMENT_NBYTES:
        return NodeRecord(path, node, now, SHARING_NODE_NBYTES + nbytes, stamps)
    nbytes = document_nbytes + json_memory_nbytes(spec.attributes, MAX_CACHED_ATTRIBUTES_NBYTES)
    if nbytes <= MAX_CACHED_ATTRIBUTES_NBYTES:
        return NodeRecord(path, node, now, NODE_NBYTES + nbytes, stamps)
    reduced: ArraySpec | GroupSpec
    if isinstance(spec, ArraySpec):
        # The specification still refers to parsed values, such as a long list of chunk lengths.
        reduced, nbytes = replace(spec, document={}, attributes={}), document_nbytes
    else:
        consolidated = spec.consolidated if not path else None
        reduced, nbytes = replace(spec, document={}, attributes={}, consolidated=consolidated), 0
    reduced_node = make_node(node.store, node.path, reduced, node._cache, True, node.access)
    return NodeRecord(path, reduced_node, now, NODE_NBYTES + nbytes, stamps, has_attributes=False)


_shared_nbytes: dict[int, tuple[tuple[Codec, ...], int]] = {}
"""The memory of documents of arrays whose specifications share their codecs, by the identity of the codecs."""

MAX_SHARED = 256


def _document_nbytes(spec: ArraySpec | GroupSpec, limit: int) -> tuple[int, bool]:
    """Return the approximate memory of the document of a node without the user attributes, and whether it is shared."""
    found = _shared_nbytes.get(id(spec.codecs)) if isinstance(spec, ArraySpec) else None
    if found is not None:
        return found[1], True
    document = {key: value for key, value in spec.document.items() if key != "attributes"}
    nbytes = json_memory_nbytes(document, limit)
    if isinstance(spec, ArraySpec) and nbytes < MAX_SHARED_DOCUMENT_NBYTES:
        if len(_shared_nbytes) >= MAX_SHARED:
            _shared_nbytes.clear()
        _shared_nbytes[id(spec.codecs)] = spec.codecs, nbytes
    return nbytes, False


def same_data(old: Array, new: Array) -> bool:
    """Return whether two array objects present the same elements, apart from the shape and changes of the chunks."""
    return old is new or (
        old.store is new.store and old.path == new.path and difference(old.spec, new.spec) is None
    )


def equivalent(old: NodeRecord, new: NodeRecord) -> bool:
    """Whether the metadata of two records is equal, so that the old node remains valid."""
    if not (old.has_attributes and new.has_attributes):
        return False  # the documents are not in memory and cannot be compared
    if isinstance(old.node, Array | Group) and isinstance(new.node, Array | Group):
        before, after = old.node.spec, new.node.spec
        # The members of a group can be known only by the consolidated metadata of a group that contains it.
        return (
            type(before) is type(after)
            and before.document == after.document
            and before.attributes == after.attributes
            and getattr(before, "consolidated", None) == getattr(after, "consolidated", None)
        )
    return old.node == new.node
