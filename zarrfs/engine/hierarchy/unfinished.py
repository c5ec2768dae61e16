"""The attribute of a node that a command is writing: a copy, an import or a pyramid that is not complete.

A command sets the attribute when it creates the node at its destination, and removes it at the end, both with one
change of a metadata document. So it remains if the command fails or is killed. Other programs ignore it, as any
attribute. The members below the node have no attribute of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from os.path import dirname
from typing import Any

from zarrfs.engine.formats import api as formats
from zarrfs.engine.hierarchy.node import StoredNode
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import ZarrError

__all__ = ["UNFINISHED", "is_unfinished", "unfinished_note"]

UNFINISHED = "zarrfs_unfinished"
"""The name of the attribute. Its value is an object that describes what is written."""

NOTE = (
    "the command that writes it has not completed: it was interrupted, it failed, or it is running; repeat it with "
    "--if-exists resume or replace, or delete what was written"
)


def is_unfinished(attributes: Mapping[str, Any]) -> bool:
    """Return whether the attributes of a node state that a command has not completed it."""
    return UNFINISHED in attributes


def unfinished_note(node: StoredNode[Any]) -> str | None:
    """Return a sentence about the node if it, or a group above it, is not complete, and None otherwise.

    Reads the documents of the groups above it: in its store, and in the directories above a local store. If the store
    is on a server, only that of the root, because each group needs requests.
    """
    if is_unfinished(node.attrs):
        return f"unfinished: {NOTE}"
    store, path = node.store, node.path
    try:
        while path:
            path = path.rpartition("/")[0] if not store.is_remote else ""
            if _marks(store, path):
                return f"unfinished: it belongs to {store.url}{f'/{path}' if path else ''}; {NOTE}"
        root = store.directory or ""
        while root and dirname(root) != root:
            root = dirname(root)
            with LocalStore(root, read_only=True) as above:
                if formats.read_kind(above, "") is None:
                    break
                if _marks(above, ""):
                    return f"unfinished: it belongs to {root}; {NOTE}"
    except (ZarrError, OSError):
        return None  # what is above the node is of no use, and does not concern it
    return None


def _marks(store: Store, path: str) -> bool:
    spec = formats.read_node(store, path, use_consolidated=False)
    return spec is not None and is_unfinished(spec.attributes)
