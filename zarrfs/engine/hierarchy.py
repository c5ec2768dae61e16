"""Whole branches of a hierarchy at once: copying and deleting keys, and the tree as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from zarrfs.engine.formats import detect
from zarrfs.engine.formats.base import Branch
from zarrfs.engine.stores.base import Store

if TYPE_CHECKING:
    from zarrfs.engine.group import Group

__all__ = ["copy_keys", "delete_node", "move_node", "tree_text"]


def copy_keys(source: Store, source_path: str, target: Store, target_path: str) -> int:
    """Copy every key below a path, unchanged, to below another; return how many there were."""
    count = 0
    cut = len(source_path) + 1 if source_path else 0
    for key in list(source.list_prefix(source_path)):
        value = source.get(key)
        if value is not None:
            target.set(f"{target_path}/{key[cut:]}" if target_path else key[cut:], value)
            count += 1
    return count


def delete_node(store: Store, path: str) -> None:
    """Delete a node and everything below it, wherever its format keeps it."""
    _delete(store, detect.branches(store, path)[0])


def _delete(store: Store, branch: Branch) -> None:
    for key in branch.keys:
        store.delete(key)
    for prefix in branch.prefixes:
        store.delete_prefix(prefix)


def move_node(store: Store, source: str, target: str) -> None:
    """Give a node and everything below it another path, at which there is nothing. The old one is deleted last."""
    old, new = detect.branches(store, source, target)
    for prefix, goal in zip(old.prefixes, new.prefixes, strict=True):
        copy_keys(store, prefix, store, goal)
    for key, goal in zip(old.keys, new.keys, strict=True):
        value = store.get(key)
        if value is not None:
            store.set(goal, value)
    _delete(store, old)


def tree_text(group: Group, depth: int | None = None) -> str:
    """Draw the hierarchy below a group: a line per node, arrays with shape and dtype."""
    return "\n".join([group.name, *_branch(group, "", depth)])


def _branch(group: Group, indent: str, depth: int | None) -> Iterator[str]:
    if depth is not None and depth <= 0:
        return
    members = list(group.members())
    for position, (name, node) in enumerate(members):
        last = position == len(members) - 1
        branch = f"{indent}{'└── ' if last else '├── '}{name}"
        # Told apart by what they can do: both classes import this module.
        if isinstance(node, Mapping):
            yield branch
            yield from _branch(
                node, indent + ("    " if last else "│   "), None if depth is None else depth - 1
            )
        else:
            yield f"{branch} {node.shape} {node.dtype}"
