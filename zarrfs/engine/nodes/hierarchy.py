"""Operations on subtrees of a hierarchy: deleting, moving and replacing a node with everything below it, and drawing
the hierarchy as text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.base import NodeKeys
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes.protocols import GroupNode
from zarrfs.engine.stores.base import DOCUMENT_NAMES, Store, Usage
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.errors import StoreError
from zarrfs.text import safe_text

__all__ = ["Tree", "delete_node", "draw_tree", "move_node", "replacing", "tree"]


def documents_first(keys: Iterable[str], *, only_documents: bool = False) -> list[str]:
    """Return the keys of a hierarchy in the order in which they are deleted: documents, those of groups before those of
    their members, and then chunks. They are written in the reverse order.

    A process that is killed in between then leaves no array with missing chunks.
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
    _delete(store, keys, has_members=is_group)


def _delete(store: Store, node_keys: NodeKeys, *, has_members: bool) -> None:
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
        _copy_keys(store, names)
    except BaseException:
        for key in documents_first(names.values()):
            store.delete(key)
        raise
    for key in documents_first(names):
        store.delete(key)


def _copy_keys(store: Store, names: Mapping[str, str]) -> None:
    """Copy values to other keys, documents last."""
    for key in reversed(documents_first(names)):
        value = store.get(key)
        if value is not None:
            store.set(names[key], value)


STAGING = ".zarrfs-copy-"
"""The beginning of the names of staging prefixes, below which replacements of nodes are written."""

MAX_COPIED_KEYS = 1000
MAX_COPIED_NBYTES = 256 << 20
"""A node that is replaced in a store that cannot rename is copied aside first if it has at most so many keys and bytes,
so that it can be restored. A larger node is deleted first.
"""


class StagingStore(PrefixStore):
    """A staging prefix of a store. Messages contain the URL of the store, without the prefix."""

    @property
    def url(self) -> str:
        return self.store.url


@contextmanager
def replacing(store: Store, path: str) -> Iterator[Store]:
    """Replace the node at ``path``: yield a staging store in which the caller creates the new node at the same path.

    If the block succeeds, the old node is moved aside, the new node is moved to its path, and the old one is deleted
    with everything below it. If the block or a step of the exchange raises an exception, the new node is deleted and
    the old one is at its path as before.

    In a store that cannot rename, a node with more than ``MAX_COPIED_KEYS`` keys or ``MAX_COPIED_NBYTES`` bytes is not
    moved aside. Raises StoreError if the new node cannot be moved in this case, or if the old one cannot be restored.
    The message names the prefixes below which the nodes are.
    """
    staging = f"{STAGING}{os.urandom(4).hex()}"
    staging_store = StagingStore(store, f"{staging}/new")
    try:
        if path:
            formats.copy_root_document(store, staging_store)
        yield staging_store
    except BaseException:
        store.delete_prefix(staging)
        raise
    old = formats.node_keys(store, path)[0]
    new = formats.node_keys(staging_store, path)[0]
    if store.renames:
        _exchange(store, path, old, new, staging_store, staging)
    elif _can_be_copied(store, old, staging):
        _exchange_copies(store, path, old, new, staging_store, staging)
    else:
        _delete_and_move(store, path, old, new, staging_store, staging)
    store.delete_prefix(staging)


def _can_be_copied(store: Store, old: NodeKeys, staging: str) -> bool:
    """Return whether the old node, without the staged one, is within the limits for copying it aside."""
    usages = [store.usage(prefix) for prefix in old.prefixes]
    staged = store.usage(staging) if "" in old.prefixes else Usage(0, 0, None)
    keys = sum(usage.keys for usage in usages) - staged.keys
    nbytes = sum(usage.nbytes for usage in usages) - staged.nbytes
    return keys <= MAX_COPIED_KEYS and nbytes <= MAX_COPIED_NBYTES


def _exchange(
    store: Store, path: str, old: NodeKeys, new: NodeKeys, staging_store: StagingStore, staging: str
) -> None:
    """Rename the old node aside and the new one to its path. If a step fails, the old node is restored."""
    aside = f"{staging}/old"
    is_aside = False
    documents = {key: bytes(value) for key in old.keys if (value := store.get(key)) is not None}
    try:
        for key in documents:
            store.delete(key)
        for prefix in old.prefixes:
            store.move_prefix(prefix, f"{aside}/{prefix}".rstrip("/"))
        is_aside = True
        for prefix in new.prefixes:
            store.move_prefix(f"{staging_store.prefix}/{prefix}".rstrip("/"), prefix)
        for key in new.keys:
            value = staging_store.get(key)
            if value is not None:
                store.set(key, value)
    except BaseException as error:
        try:
            if is_aside:
                _delete_except(store, new, staging)
            for prefix in old.prefixes:
                store.move_prefix(f"{aside}/{prefix}".rstrip("/"), prefix)
            for key, value in documents.items():
                store.set(key, value)
            store.delete_prefix(staging)
        except StoreError as second:
            raise _not_restored_error(store, path, error, second, staging_store, aside) from error
        raise


def _exchange_copies(
    store: Store, path: str, old: NodeKeys, new: NodeKeys, staging_store: StagingStore, staging: str
) -> None:
    """Copy the old node aside, delete it, and copy the new one to its path. If a step fails, the old node is restored.

    At each time an array is complete, or it does not exist.
    """
    aside = f"{staging}/old"
    listed = [key for prefix in old.prefixes for key in store.list_prefix(prefix)]
    keys = [key for key in dict.fromkeys((*old.keys, *listed)) if not key.startswith(f"{staging}/")]
    try:
        _copy_keys(store, {key: f"{aside}/{key}" for key in keys})
    except BaseException:
        store.delete_prefix(staging)
        raise
    try:
        for key in documents_first(keys):
            store.delete(key)
        _copy_from_staging(store, new, staging_store)
    except BaseException as error:
        try:
            _delete_except(store, new, staging)
            _copy_keys(store, {f"{aside}/{key}": key for key in keys})
            store.delete_prefix(staging)
        except StoreError as second:
            raise _not_restored_error(store, path, error, second, staging_store, aside) from error
        raise


def _not_restored_error(
    store: Store, path: str, error: BaseException, second: StoreError, staging_store: StagingStore, aside: str
) -> StoreError:
    return StoreError(
        f"{store.url}: {path or '/'!r} could not be replaced ({error}) and could not be restored ({second}); "
        f"what is left of the old node is below {aside!r}, and of the replacement below {staging_store.prefix!r}",
        second.errno,
    )


def _delete_and_move(
    store: Store, path: str, old: NodeKeys, new: NodeKeys, staging_store: StagingStore, staging: str
) -> None:
    """Delete the old node, its documents first, and copy the new one to its path."""
    try:
        for key in formats.node_document_keys(store, path):
            store.delete(key)
        _delete_except(store, old, staging)
        _copy_from_staging(store, new, staging_store)
    except StoreError as error:
        raise StoreError(
            f"{store.url}: {path or '/'!r} could not be replaced and may be incomplete: {error}; the complete "
            f"replacement is below {staging_store.prefix!r}",
            error.errno,
        ) from error


def _delete_except(store: Store, node_keys: NodeKeys, staging: str) -> None:
    """Delete what a node consists of, but not what is below the staging prefix."""
    if "" not in node_keys.prefixes:
        _delete(store, node_keys, has_members=True)
        return
    for key in documents_first(store.list_prefix()):
        if not key.startswith(f"{staging}/"):
            store.delete(key)


def _copy_from_staging(store: Store, new: NodeKeys, staging_store: StagingStore) -> None:
    """Copy the staged node, which stays complete, to its path, where nothing is. Documents are written last."""
    listed = [key for prefix in new.prefixes for key in staging_store.list_prefix(prefix)]
    _copy_keys(store, {f"{staging_store.prefix}/{key}": key for key in dict.fromkeys((*listed, *new.keys))})


class Tree(str):
    """A hierarchy drawn as text, one line per node. Its ``repr`` is the text itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


KnownArrays = dict[int, tuple[ArraySpec, str]]
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


def _tree_lines(group: GroupNode, indent: str, level: int | None, known: KnownArrays) -> Iterator[str]:
    if level is not None and level <= 0:
        return
    entries = _tree_entries(group, known)
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
            yield from _tree_lines(member, inner_indent, None if level is None else level - 1, known)
        except StoreError as error:
            yield f"{inner_indent}└── cannot be listed: {error}"


def _tree_entries(group: GroupNode, known: KnownArrays) -> Iterator[tuple[str, str | GroupNode]]:
    """Yield the name of each member, and the text of an array, or the group. Members are opened when they are drawn."""
    template_of = group.array_templates()
    for name in group.names():
        found = known.get(id(template_of(name)))
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
                known[id(template)] = template, text
            yield name, text
