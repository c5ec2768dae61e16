"""Whole branches of a hierarchy at once: deleting, moving and replacing them, and the tree as text."""

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
    """Delete a node and everything below it, wherever its format keeps it. Its documents go first: who is interrupted
    leaves no array of which some chunks are missing.
    """
    branch = formats.node_keys(store, path)[0]
    for key in formats.own_documents(store, path):
        store.delete(key)
    _delete(store, branch)


def _delete(store: Store, branch: NodeKeys) -> None:
    for key in branch.keys:
        store.delete(key)
    for prefix in branch.prefixes:
        store.delete_prefix(prefix)


def move_node(store: Store, source: str, target: str) -> None:
    """Give a node and everything below it another path, at which there is nothing. Its documents come last, so that
    it is at neither place while it moves.
    """
    old, new = formats.node_keys(store, source, target)
    documents = {key: value for key in old.keys if (value := store.get(key)) is not None}
    for key in documents:
        store.delete(key)
    for prefix, goal in zip(old.prefixes, new.prefixes, strict=True):
        store.move_prefix(prefix, goal)
    for key, goal in zip(old.keys, new.keys, strict=True):
        if key in documents:
            store.set(goal, documents[key])


STAGING = ".zarrfs-copy-"
"""What the names of prefixes begin with below which a replacement is made ready."""


class StagingStore(PrefixStore):
    """The prefix of a store in which a replacement is made ready. Messages name the store itself."""

    @property
    def url(self) -> str:
        return self.store.url


@contextmanager
def replacing(store: Store, path: str) -> Iterator[Store]:
    """Yield a store to make a node in, at the same path, that is to replace the one at ``path`` of ``store``.

    When the block ends well the old node is deleted, with everything below it, and the new one takes its place; when
    it fails, the new one is deleted and the old one is as it was.
    """
    staging = f"{STAGING}{os.urandom(4).hex()}"
    aside = StagingStore(store, staging)
    try:
        if path:
            formats.copy_root_document(store, aside)
        yield aside
    except BaseException:
        store.delete_prefix(staging)
        raise
    try:
        _take_place(store, path, aside, staging)
    except StoreError as error:
        raise StoreError(
            f"{store.url}: {path or '/'!r} could not be replaced, and may be incomplete now: {error}; what was to take "
            f"its place is complete below {staging!r}",
            error.errno,
        ) from error


def _take_place(store: Store, path: str, aside: Store, staging: str) -> None:
    """Delete the node at the path, and move there what was made ready. Documents come last."""
    new = formats.node_keys(aside, path)[0]
    if path:
        delete_node(store, path)
    else:
        for key in [key for key in store.list_prefix() if not key.startswith(f"{staging}/")]:
            store.delete(key)
    for prefix in new.prefixes:
        store.move_prefix(f"{staging}/{prefix}".rstrip("/"), prefix)
    for key in new.keys:
        value = aside.get(key)
        if value is not None:
            store.set(key, value)
    store.delete_prefix(staging)


class Tree(str):
    """A hierarchy drawn as text, a line for each node. It shows itself as that text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def draw_tree(group: GroupNode, level: int | None = None, max_nodes: int | None = None) -> Tree:
    """Draw the hierarchy below a group: a line per node, arrays with shape and dtype.

    ``level`` levels of it, and ``max_nodes`` nodes; None for all.
    """
    for name, limit in (("level", level), ("max_nodes", max_nodes)):
        if limit is not None and limit < 0:
            raise ValueError(f"{name} must be at least 0, or None for all; found {limit}")
    lines = _branch(group, "", level)
    drawn = list(lines if max_nodes is None else islice(lines, max_nodes))
    if max_nodes is not None and len(drawn) == max_nodes and next(lines, None) is not None:
        drawn.append(f"... only {max_nodes} nodes are drawn; tree(max_nodes=None) draws all")
    return Tree("\n".join([group.name, *drawn]))


def tree(grp: Any, expand: bool | None = None, level: int | None = None) -> Tree:
    """Return the hierarchy below a group as text that shows itself drawn; arguments as ``Group.tree``."""
    drawn: Tree = grp.tree(expand, level)
    return drawn


def _branch(group: GroupNode, indent: str, level: int | None) -> Iterator[str]:
    if level is not None and level <= 0:
        return
    members = group.members()
    for position, (name, node) in enumerate(members):
        last = position == len(members) - 1
        branch = f"{indent}{'└── ' if last else '├── '}{safe_text(name)}"
        # A group is a mapping. Both node classes import this module, so they cannot be imported here.
        if isinstance(node, Mapping):
            yield branch
            below = indent + ("    " if last else "│   ")
            try:
                yield from _branch(cast(GroupNode, node), below, None if level is None else level - 1)
            except StoreError as error:
                yield f"{below}└── cannot be listed: {error}"
        else:
            yield f"{branch} {node.shape} {node.dtype}"
