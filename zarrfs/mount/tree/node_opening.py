"""Opening of the nodes that a mount presents. An error becomes a BrokenNode."""

from __future__ import annotations

import errno

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats.api import read_node
from zarrfs.engine.group.group import Group, make_node
from zarrfs.engine.stores.base import Store
from zarrfs.errors import KeyNameError, MetadataError, ServerError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.tree.node_records import BrokenNode, Node

__all__ = ["open_member", "reopen"]


def open_member(root: Group, path: str) -> Node:
    try:
        if "\\" in path:
            return _open_exactly(root, f"{root.path}/{path}".lstrip("/"))
        node: Array | Group | None = root.get(path)
    except KeyNameError:
        return None
    except Exception as error:
        return _broken(path, error)
    return node


def _open_exactly(root: Group, path: str) -> Array | Group | None:
    """Open a node whose name contains a backslash, which is a separator in the paths that ``Group`` accepts."""
    spec = read_node(root.store, path, **root.access.reading)
    if spec is None:
        return None
    return make_node(root.store, path, spec, root._cache, root.read_only, root.access)


def reopen(store: Store, node: Array | Group) -> Node:
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
        return BrokenNode(
            describe_error(error), errno.EACCES if denied else errno.EIO, isinstance(error, ServerError)
        )
    if isinstance(error, MemoryError):
        return BrokenNode("there is not enough memory to read its metadata", errno.ENOMEM)
    # An error in one member must not make the other members inaccessible.
    if not isinstance(error, ZarrError):
        logger.error("%s: unexpected error while opening the node", path, exc_info=error)
    return BrokenNode(describe_error(error), errno.EIO)
