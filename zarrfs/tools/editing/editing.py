"""Editing the attributes of a node: apply changes, check the result, show the difference, and write it."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import without_warnings_of_changes
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.open import Location
from zarrfs.engine.open import open as open_node
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.errors import MetadataError, ZarrError
from zarrfs.ngff import Message, check_node, parse
from zarrfs.tools.consolidation import update_consolidated

__all__ = ["Edit", "EditReport", "edit"]

Edit = Callable[[Mapping[str, Any], Array | Group], Mapping[str, Any]]
"""A function that receives attributes and the node, and returns changed attributes. It does not modify its arguments.
"""


@dataclass(frozen=True)
class EditReport:
    """The result of an edit.

    Attributes:
        diff: the lines of a unified diff of the attributes as JSON. Empty if nothing has changed.
        messages: the messages of the OME-NGFF check that the attributes did not have before.
        written: whether the attributes were written.
        consolidated: the URLs of the groups whose consolidated metadata were updated.
    """

    diff: tuple[str, ...]
    messages: tuple[Message, ...]
    written: bool
    consolidated: tuple[str, ...] = ()


def edit(
    store: Location,
    edits: Sequence[Edit],
    path: str | None = "",
    *,
    dry_run: bool = False,
    check: bool = True,
    storage_options: dict[str, Any] | None = None,
) -> EditReport:
    """Apply edits to the attributes of a group or array, one after the other, and write the result once.

    If the attributes contain OME-NGFF metadata, they are checked before they are written: an edit that would add
    violations of the JSON schema is refused. Other new messages are returned. ``check=False`` skips this.
    ``dry_run`` writes nothing. The document is replaced atomically. Then the entries of the node in consolidated
    metadata of the groups above are replaced.

    Raises MetadataError for a refused edit, the errors of the edits, and those of opening and writing.
    """
    node = open_node(store, path, "r" if dry_run else "r+", storage_options=storage_options)
    try:
        before = node.attrs.asdict()
        after: Mapping[str, Any] = before
        for change in edits:
            after = change(after, node)
        messages = _new_messages(node, before, after) if check else ()
        refused = [message for message in messages if message.tier == "schema"]
        if refused:
            problems = "; ".join(f"{message.pointer or '/'}: {message.message}" for message in refused[:5])
            where = f"{node.store.url}/{node.path}".rstrip("/")
            raise MetadataError(f"{where}: the edit would make the OME-NGFF metadata invalid: {problems}")
        diff = tuple(_difference(before, after))
        if not diff or dry_run:
            return EditReport(diff, messages, False)
        with without_warnings_of_changes():
            node.attrs.put(after)
        return EditReport(diff, messages, True, _update_consolidated(store, node, storage_options))
    finally:
        if not isinstance(store, Store | Mapping):
            node.store.close()  # completes a zip file


def _update_consolidated(
    location: Location, node: Array | Group, storage_options: dict[str, Any] | None
) -> tuple[str, ...]:
    """Update the consolidated metadata that contain a node, also above its location. Return the URLs of the groups."""
    top, path = _outermost_group(location, node, storage_options)
    store = node.store if top is None else top.store
    try:
        groups = update_consolidated(store, path, node.zarr_format)
        return tuple(f"{store.url}/{group}".rstrip("/") for group in groups)
    finally:
        if top is not None:
            top.close()


def _outermost_group(
    location: Location, node: Array | Group, storage_options: dict[str, Any] | None
) -> tuple[Group | None, str]:
    """Return the highest group of the hierarchy above a location that is a directory or URL, and the path of the node
    in it; None and the path in its store if there is no group above.
    """
    top, below = None, node.path
    if below or not isinstance(location, str | os.PathLike):
        return top, below
    above = os.fspath(node.store.root if isinstance(node.store, LocalStore) else location)
    while True:
        above, _, name = above.rstrip("/").rpartition("/")
        if not name or not above.strip("/") or above.endswith(":/"):
            return top, below
        try:
            group = open_node(above, mode="r+", storage_options=storage_options)
        except ZarrError:
            return top, below
        if not isinstance(group, Group) or group.path:
            group.close()
            return top, below
        if top is not None:
            top.close()
        top, below = group, f"{name}/{below}".rstrip("/")


class _EditedNode:
    """A node with other attributes."""

    def __init__(self, node: Array | Group, attributes: Mapping[str, Any]) -> None:
        self._node = node
        self.attrs = attributes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


class _EditedGroup(_EditedNode):
    """A group with other attributes."""

    def __getitem__(self, path: str) -> Any:
        return self._node[path]


def _edited(node: Array | Group, attributes: Mapping[str, Any]) -> _EditedNode:
    return (_EditedGroup if isinstance(node, Group) else _EditedNode)(node, attributes)


def _new_messages(
    node: Array | Group, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[Message, ...]:
    if not parse(after):
        return ()
    known = set(check_node(_edited(node, before)).messages) if parse(before) else set()
    return tuple(item for item in check_node(_edited(node, after)).messages if item not in known)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    stored, edited = (
        json.dumps(values, indent=2, ensure_ascii=False).splitlines() for values in (before, after)
    )
    return list(difflib.unified_diff(stored, edited, "stored", "edited", lineterm=""))
