"""Operations on subtrees of a hierarchy: deleting, moving and replacing a node with everything below it, and drawing
the hierarchy as text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.base import NodeKeys
from zarrfs.engine.nodes.protocols import GroupNode
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.errors import StoreError
from zarrfs.text import safe_text

__all__ = ["Tree", "delete_node", "draw_tree", "move_node", "replacing", "tree"]


def delete_node(store: Store, path: str) -> None:
    """Delete a node and everything below it, at all keys that its format uses.

    The metadata documents of the node are deleted first, so that an interruption does not leave an array with missing
    chunks.
    """
    keys = formats.node_keys(store, path)[0]
    for key in formats.node_document_keys(store, path):
        store.delete(key)
    _delete(store, keys)


def _delete(store: Store, node_keys: NodeKeys) -> None:
    for key in node_keys.keys:
        store.delete(key)
    for prefix in node_keys.prefixes:
        store.delete_prefix(prefix)


def move_node(store: Store, source: str, target: str) -> None:
    """Move a node and everything below it from path ``source`` to path ``target``, which must be empty.

    The metadata documents are deleted first and written last, so that the node exists at neither path during the move.
    """
    old, new = formats.node_keys(store, source, target)
    documents = {key: value for key in old.keys if (value := store.get(key)) is not None}
    for key in documents:
        store.delete(key)
    for old_prefix, new_prefix in zip(old.prefixes, new.prefixes, strict=True):
        store.move_prefix(old_prefix, new_prefix)
    for old_key, new_key in zip(old.keys, new.keys, strict=True):
        if old_key in documents:
            store.set(new_key, documents[old_key])


STAGING = ".zarrfs-copy-"
"""The beginning of the names of staging prefixes, below which replacements of nodes are written."""


class StagingStore(PrefixStore):
    """A staging prefix of a store. Messages contain the URL of the store, without the prefix."""

    @property
    def url(self) -> str:
        return self.store.url


@contextmanager
def replacing(store: Store, path: str) -> Iterator[Store]:
    """Replace the node at ``path``: yield a staging store in which the caller creates the new node at the same path.

    If the block succeeds, the new node is moved to the path of the old one, which is deleted with everything below it.
    If it raises an exception, the new node is deleted and the old one is unchanged. Raises StoreError if moving fails.
    The old node is then restored if the store can rename. Otherwise the new node is complete below the staging prefix,
    which the message names.
    """
    staging = f"{STAGING}{os.urandom(4).hex()}"
    staging_store = StagingStore(store, staging)
    try:
        if path:
            formats.copy_root_document(store, staging_store)
        yield staging_store
    except BaseException:
        store.delete_prefix(staging)
        raise
    new = formats.node_keys(staging_store, path)[0]
    if path and store.renames:
        _exchange(store, path, new, staging_store, staging)
        return
    try:
        if path:
            delete_node(store, path)
        else:
            for key in [key for key in store.list_prefix() if not key.startswith(f"{staging}/")]:
                store.delete(key)
        _move_from_staging(store, new, staging_store, staging)
    except StoreError as error:
        raise StoreError(
            f"{store.url}: {path or '/'!r} could not be replaced and may be incomplete: {error}; the complete "
            f"replacement is below {staging!r}",
            error.errno,
        ) from error
    store.delete_prefix(staging)


def _move_from_staging(store: Store, new: NodeKeys, staging_store: Store, staging: str) -> None:
    """Move the staged node to its path, where nothing is. Its documents are written last."""
    for prefix in new.prefixes:
        store.move_prefix(f"{staging}/{prefix}".rstrip("/"), prefix)
    for key in new.keys:
        value = staging_store.get(key)
        if value is not None:
            store.set(key, value)


def _exchange(store: Store, path: str, new: NodeKeys, staging_store: Store, staging: str) -> None:
    """Replace a node that is not the root in a store that renames. If a step fails, the old node is restored."""
    old = formats.node_keys(store, path)[0]
    aside = f"{staging}-old"
    documents = {key: bytes(value) for key in old.keys if (value := store.get(key)) is not None}
    is_aside = False
    try:
        for key in documents:
            store.delete(key)
        for prefix in old.prefixes:
            store.move_prefix(prefix, f"{aside}/{prefix}")
        is_aside = True
        _move_from_staging(store, new, staging_store, staging)
    except BaseException as error:
        try:
            if is_aside:
                _delete(store, new)
            for prefix in old.prefixes:
                store.move_prefix(f"{aside}/{prefix}", prefix)
            for key, value in documents.items():
                store.set(key, value)
            store.delete_prefix(staging)
        except StoreError as second:
            raise StoreError(
                f"{store.url}: {path!r} could not be replaced ({error}) and could not be restored ({second}); what is "
                f"left of the old node is below {aside!r}, and of the replacement below {staging!r}",
                second.errno,
            ) from error
        raise
    store.delete_prefix(aside)
    store.delete_prefix(staging)


class Tree(str):
    """A hierarchy drawn as text, one line per node. Its ``repr`` is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def draw_tree(group: GroupNode, level: int | None = None, max_nodes: int | None = None) -> Tree:
    """Return the hierarchy below a group as text: one line per node, with shape and dtype of arrays.

    ``level`` is the maximum number of levels, ``max_nodes`` the maximum number of nodes; None for all. Raises
    ValueError for a negative one.
    """
    for name, limit in (("level", level), ("max_nodes", max_nodes)):
        if limit is not None and limit < 0:
            raise ValueError(f"{name} must be at least 0, or None for all; found {limit}")
    remaining = _tree_lines(group, "", level)
    lines = list(remaining if max_nodes is None else islice(remaining, max_nodes))
    if max_nodes is not None and len(lines) == max_nodes and next(remaining, None) is not None:
        lines.append(f"... only {max_nodes} nodes are drawn; tree(max_nodes=None) draws all")
    return Tree("\n".join([group.name, *lines]))


def tree(grp: Any, expand: bool | None = None, level: int | None = None) -> Tree:
    """Return the hierarchy below a group as text, one line per node. See ``Group.tree``."""
    text: Tree = grp.tree(expand, level)
    return text


def _tree_lines(group: GroupNode, indent: str, level: int | None) -> Iterator[str]:
    if level is not None and level <= 0:
        return
    members = group.members()
    for position, (name, node) in enumerate(members):
        is_last = position == len(members) - 1
        line = f"{indent}{'└── ' if is_last else '├── '}{safe_text(name)}"
        # A group is a mapping. Both node classes import this module, so they cannot be imported here.
        if isinstance(node, Mapping):
            yield line
            inner_indent = indent + ("    " if is_last else "│   ")
            try:
                inner_level = None if level is None else level - 1
                yield from _tree_lines(cast(GroupNode, node), inner_indent, inner_level)
            except StoreError as error:
                yield f"{inner_indent}└── cannot be listed: {error}"
        else:
            yield f"{line} {node.shape} {node.dtype}"
