"""Editing the attributes of a node: apply changes, check the result, show the difference, and write it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.attributes import ChangedAttributesError
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, ReadOnlyError
from zarrfs.ngff import Message, check_node, parse
from zarrfs.tools.editing.dimension_names import NameChange, changed_dimension_names
from zarrfs.tools.editing.saving import update_consolidated_above, write_attributes

__all__ = ["Edit", "EditReport", "edit"]

Edit = Callable[[Mapping[str, Any], Array | Group], Mapping[str, Any]]
"""A function that receives attributes and the node, and returns changed attributes. It does not modify its arguments.
"""


@dataclass(frozen=True)
class EditReport:
    """The result of an edit.

    Attributes:
        diff: the lines of unified diffs of the attributes as JSON, and of the dimension names of arrays. Empty if
            nothing has changed.
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
    If the edits change the names of the axes of an OME-NGFF image, the dimension names of its levels change too; those
    of its labels do not. ``dry_run`` writes nothing. Each document is replaced atomically. Edits by other programs in
    the meantime are kept: the edits are applied to the attributes that are stored when they are written. Then the
    entries of the nodes in consolidated metadata of the groups above are replaced.

    Raises MetadataError for a refused edit, the errors of the edits, and those of opening and writing.
    """
    node = open_node(store, path, "r" if dry_run else "r+", storage_options=storage_options)
    # Closing the store completes a zip file.
    with nullcontext() if isinstance(store, Store | Mapping) else node.store:
        formats.check_writable(node.spec)
        if node.read_only and not dry_run:
            raise ReadOnlyError(f"{node.store.url} can only be read, so its metadata cannot be edited")
        while True:
            report, names, before, after = _planned(node, edits, check)
            if not report.diff or dry_run:
                return report
            try:
                write_attributes(node, before, after, names)
                break
            except ChangedAttributesError:
                node.refresh()
        paths = (node.path, *(change.array.path for change in names))
        consolidated = update_consolidated_above(store, node, paths, storage_options)
        return replace(report, written=True, consolidated=consolidated)


def _planned(
    node: Array | Group, edits: Sequence[Edit], check: bool
) -> tuple[EditReport, Sequence[NameChange], dict[str, Any], Mapping[str, Any]]:
    """Return the report of edits that are not written yet, the new dimension names of arrays, and the attributes before
    and after the edits. Raises MetadataError for a refused edit.
    """
    before = node.attrs.asdict()
    after: Mapping[str, Any] = before
    for apply in edits:
        after = apply(after, node)
    names = changed_dimension_names(node, before, after)
    messages = _new_messages(node, before, after, names) if check else ()
    refused = [message for message in messages if message.is_error]
    if refused:
        problems = "; ".join(f"{message.pointer or '/'}: {message.message}" for message in refused[:5])
        where = f"{node.store.url}/{node.path}".rstrip("/")
        raise MetadataError(f"{where}: the edit would make the OME-NGFF metadata invalid: {problems}")
    diff = _difference(before, after)
    for change in names:
        name = change.array.path.removeprefix(node.path).lstrip("/")
        diff += _difference({"dimension_names": change.old}, {"dimension_names": change.new}, f" {name}")
    return EditReport(tuple(diff), messages, False), names, before, after


class _EditedNode:
    """A node with other attributes."""

    def __init__(self, node: Array | Group, attributes: Mapping[str, Any]) -> None:
        self._node = node
        self.attrs = attributes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)


class _EditedArray(_EditedNode):
    """An array with other dimension names."""

    def __init__(self, node: Array, names: tuple[str | None, ...] | None) -> None:
        super().__init__(node, node.attrs)
        self.dimension_names = names


class _EditedGroup(_EditedNode):
    """A group with other attributes, and with other dimension names of its arrays."""

    def __init__(self, node: Group, attributes: Mapping[str, Any], names: Sequence[NameChange]) -> None:
        super().__init__(node, attributes)
        self._names = {change.array.path: change.new for change in names}

    def __getitem__(self, path: str) -> Any:
        member = self._node[path]
        if isinstance(member, Array) and member.path in self._names:
            return _EditedArray(member, self._names[member.path])
        return member


def _edited(
    node: Array | Group, attributes: Mapping[str, Any], names: Sequence[NameChange] = ()
) -> _EditedNode:
    if isinstance(node, Group):
        return _EditedGroup(node, attributes, names)
    return _EditedNode(node, attributes)


def _new_messages(
    node: Array | Group, before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[NameChange]
) -> tuple[Message, ...]:
    if not parse(after):
        return ()
    known = set(check_node(_edited(node, before)).messages) if parse(before) else set()
    return tuple(item for item in check_node(_edited(node, after, names)).messages if item not in known)


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], name: str = "") -> list[str]:
    stored, edited = (
        json.dumps(values, indent=2, ensure_ascii=False).splitlines() for values in (before, after)
    )
    return list(difflib.unified_diff(stored, edited, f"stored{name}", f"edited{name}", lineterm=""))
