"""Marking of the destination of a command until it is complete; see ``engine.nodes.unfinished``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.consolidation_warnings import without_warnings_of_changes
from zarrfs.engine.hierarchy.unfinished import UNFINISHED, is_unfinished, unfinished_note
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import NodeExistsError
from zarrfs.logs import logger

__all__ = ["check_not_unfinished", "mark_complete", "mark_existing", "marked", "warn_of_unfinished"]


def marked(spec: NodeSpec, description: dict[str, Any]) -> NodeSpec:
    """Return the spec of a new node with the attribute."""
    return replace(spec, attributes={**spec.attributes, UNFINISHED: description})


def mark_existing(store: Store, path: str, description: dict[str, Any]) -> None:
    """Set the attribute of an existing node."""
    node = _node(store, path)
    if node is not None:
        with without_warnings_of_changes():
            node.attrs[UNFINISHED] = description


def mark_complete(store: Store, path: str) -> None:
    """Remove the attribute, with one change of the document."""
    node = _node(store, path)
    if node is None or not is_unfinished(node.attrs):
        return
    with without_warnings_of_changes():
        del node.attrs[UNFINISHED]
    keys = formats.document_keys(store, path, node.spec)
    if not node.attrs and len(keys) > 1:
        store.delete(keys[-1])  # the document of attributes, which a copy without attributes does not have


def check_not_unfinished(store: Store, path: str) -> None:
    """Raise NodeExistsError if the node at the path is not complete: existing arrays of it cannot be skipped."""
    spec = formats.read_node(store, path, use_consolidated=False)
    if spec is not None and is_unfinished(spec.attributes):
        raise NodeExistsError(
            f"{store.url}: {path or '/'!r} is unfinished, so that its arrays cannot be skipped; use "
            "if_exists='resume' or if_exists='replace'"
        )


def warn_of_unfinished(node: Array | Group) -> None:
    """Log a warning if the source of a command is not complete."""
    note = unfinished_note(node)
    if note is not None:
        logger.warning("%s: %r, the source, is %s", node.store.url, node.path or "/", note)


def _node(store: Store, path: str) -> Array | Group | None:
    spec: NodeSpec | None = formats.read_node(store, path, use_consolidated=False)
    if spec is None:
        return None
    if isinstance(spec, ArraySpec):
        return Array(store, path, spec, ChunkCache(0), False)
    return Group(store, path, spec, ChunkCache(0), False)
