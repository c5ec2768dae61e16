"""Operations on subtrees of a hierarchy: deleting and moving a node with everything below it, and drawing the
hierarchy as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.base import NodeKeys
from zarrfs.engine.hierarchy.protocols import GroupNode
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import DOCUMENT_NAMES, Store
from zarrfs.errors import StoreError
from zarrfs.text import safe_text

__all__ = [
    "Tree",
    "copy_keys",
    "delete_keys",
    "delete_node",
    "documents_first",
    "draw_tree",
    "move_node",
    "tree",
]


def documents_first(keys: Iterable[str], *, only_documents: bool = False) -> list[str]:
    """Return the keys of a hierarchy in the order in which they are deleted: documents, those of groups before those of
    their members, and then chunks. They are written in the reverse order.

    If the process is killed in between, no array with missing chunks remains.
    """
    documents, others = [], []
    for key in keys:
        # Those of the draft of 2019 are below meta/root.
        if key.rpartition("/")[2] in DOCUMENT_NAMES or "/meta/root" in f"/{key}":
            documents.append(key)
        elif not only_documents:
            others.append(key)
    documents.sort(key=lambda key: (key.rpartition("/")[2] not in DOCUMENT_NAMES, key.count("/")))
    return documents + others


def delete_node(store: Store, path: str) -> None:
    """Delete a node and everything below it, at all keys that its format uses.

    Metadata documents are deleted first, so that an interruption does not leave an array with missing chunks.
    """
    keys = formats.node_keys(store, path)[0]
    documents = formats.node_document_keys(store, path)
    is_group = formats.read_kind(store, path) == "group"
    for key in documents:
        store.delete(key)
    delete_keys(store, keys, has_members=is_group)


def delete_keys(store: Store, node_keys: NodeKeys, *, has_members: bool) -> None:
    """Delete what a node consists of, the documents of its members first."""
    for key in node_keys.keys:
        store.delete(key)
    for prefix in node_keys.prefixes if has_members else ():
        for key in documents_first(store.list_prefix(prefix), only_documents=True):
            store.delete(key)
    for prefix in node_keys.prefixes:
        store.delete_prefix(prefix)


def move_node(store: Store, source: str, target: str) -> None:
    """Move a node and everything below it from path ``source`` to path ``target``, which must be empty.

    If the store cannot rename, everything is copied before the old keys are deleted, which needs space for both. The
    documents are written last and deleted first, so that an interruption leaves complete arrays at both paths.
    """
    old, new = formats.node_keys(store, source, target)
    if not store.renames:
        _move_keys(store, old, new)
        return
    documents = {key: value for key in old.keys if (value := store.get(key)) is not None}
    for key in documents:
        store.delete(key)
    for old_prefix, new_prefix in zip(old.prefixes, new.prefixes, strict=True):
        store.move_prefix(old_prefix, new_prefix)
    for old_key, new_key in zip(old.keys, new.keys, strict=True):
        if old_key in documents:
            store.set(new_key, documents[old_key])


def _move_keys(store: Store, old: NodeKeys, new: NodeKeys) -> None:
    """Copy all keys of a node, and delete the old ones. If copying fails, the copies are deleted."""
    names = dict(zip(old.keys, new.keys, strict=True))
    for old_prefix, new_prefix in zip(old.prefixes, new.prefixes, strict=True):
        start = len(old_prefix)
        names |= {
            key: f"{new_prefix}/{key[start:].lstrip('/')}".lstrip("/")
            for key in store.list_prefix(old_prefix)
        }
    try:
        copy_keys(store, names)
    except BaseException:
        for key in documents_first(names.values()):
            store.delete(key)
        raise
    for key in documents_first(names):
        store.delete(key)


def copy_keys(store: Store, names: Mapping[str, str]) -> None:
    """Copy values to other keys, documents last unless the store needs them first."""
    keys = documents_first(names)
    for key in keys if store.documents_before_chunks else reversed(keys):
        value = store.get(key)
        if value is not None:
            store.set(names[key], value)


class Tree(str):
    """A hierarchy drawn as text, one line per node. Its ``repr`` is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


ArrayTexts = dict[int, tuple[ArraySpec, str]]
"""The texts of arrays by the identities of their templates, which are referenced so that the identities are unique."""


def draw_tree(group: GroupNode, level: int | None = None, max_nodes: int | None = None) -> Tree:
    """Return the hierarchy below a group as text: one line per node, with shape and dtype of arrays.

    ``level`` is the maximum number of levels, ``max_nodes`` the maximum number of nodes; None for all. Raises
    ValueError for a negative one.
    """
    for name, limit in (("level", level), ("max_nodes", max_nodes)):
        if limit is not None and limit < 0:
            raise ValueError(f"{name} must be at least 0, or None for all; found {limit}")
    remaining = _tree_lines(group, "", level, {})
    lines = list(remaining if max_nodes is None else islice(remaining, max_nodes))
    if max_nodes is not None and len(lines) == max_nodes and next(remaining, None) is not None:
        lines.append(f"... only {max_nodes} nodes are drawn; tree(max_nodes=None) draws all")
    return Tree("\n".join([group.name, *lines]))


def tree(grp: Any, expand: bool | None = None, level: int | None = None) -> Tree:
    """Return the hierarchy below a group as text, one line per node. See ``Group.tree``."""
    text: Tree = grp.tree(expand, level)
    return text


def _tree_lines(group: GroupNode, indent: str, level: int | None, texts: ArrayTexts) -> Iterator[str]:
    if level is not None and level <= 0:
        return
    entries = _tree_entries(group, texts)
    entry = next(entries, None)
    while entry is not None:
        name, member = entry
        entry = next(entries, None)
        line = f"{indent}{'└── ' if entry is None else '├── '}{safe_text(name)}"
        if isinstance(member, str):
            yield f"{line} {member}"
            continue
        yield line
        inner_indent = indent + ("    " if entry is None else "│   ")
        try:
            yield from _tree_lines(member, inner_indent, None if level is None else level - 1, texts)
        except StoreError as error:
            yield f"{inner_indent}└── cannot be listed: {error}"


def _tree_entries(group: GroupNode, texts: ArrayTexts) -> Iterator[tuple[str, str | GroupNode]]:
    """Yield the name of each member, and the text of an array, or the group. Members are opened when they are drawn."""
    template_of = group.array_templates()
    for name in group.names():
        found = texts.get(id(template_of(name)))
        if found is not None:
            yield name, found[1]
            continue
        for _, node in group.members_named([name]):
            # A group is a mapping. Both node classes import this module, so they cannot be imported here.
            if isinstance(node, Mapping):
                yield name, cast(GroupNode, node)
                continue
            text = f"{node.shape} {node.dtype}"
            template = template_of(name)
            if template is not None:
                texts[id(template)] = template, text
            yield name, text
