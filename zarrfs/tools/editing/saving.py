"""Saving edited attributes: with the dimension names that depend on them, and in the consolidated metadata."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.array.array import Array
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.consolidation_warnings import without_warnings_of_changes
from zarrfs.errors import ZarrError
from zarrfs.tools.consolidation import update_consolidated
from zarrfs.tools.editing.dimension_names import NameChange, changed_dimension_names

__all__ = ["save_attributes", "update_consolidated_above", "write_attributes"]


def save_attributes(
    location: str,
    path: str,
    expected: Mapping[str, Any],
    attributes: Mapping[str, Any],
    *,
    storage_options: dict[str, Any] | None = None,
) -> tuple[str, ...]:
    """Replace the attributes of a node. The dimension names of the levels of an OME-NGFF image, and the entries of the
    nodes in consolidated metadata of the groups above, follow.

    Returns the URLs of these groups. Raises ChangedAttributesError if the stored attributes are not the ``expected``
    ones any more, and the errors of opening and writing.
    """
    with open_node(location, path, "r+", storage_options=storage_options) as node:
        names = changed_dimension_names(node, expected, attributes)
        write_attributes(node, expected, attributes, names)
        paths = (node.path, *(change.array.path for change in names))
        return update_consolidated_above(location, node, paths, storage_options)


def write_attributes(
    node: Array | Group, before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[NameChange]
) -> None:
    """Write dimension names and then attributes. Raises ChangedAttributesError, and leaves all as it was, if the stored
    attributes are not those ``before`` any more.

    The attributes are last: if the program is killed before, the same edit completes the change.
    """
    written: list[NameChange] = []
    with without_warnings_of_changes():
        try:
            for change in names:
                written.append(change)
                change.write()
            node.attrs.put_if_unchanged(before, after)
        except BaseException:
            for change in written:
                with suppress(ZarrError):
                    change.undo()
            raise


def update_consolidated_above(
    location: Location, node: Array | Group, paths: Sequence[str], storage_options: dict[str, Any] | None
) -> tuple[str, ...]:
    """Update the consolidated metadata that contain the nodes at paths of the node's store, also above its location.
    Return the URLs of the groups.
    """
    top, node_path = _outermost_group(location, node, storage_options)
    store = node.store if top is None else top.store
    above = node_path.removesuffix(node.path).rstrip("/")
    try:
        groups: dict[str, None] = {}
        for path in paths:
            full_path = join(above, path) if path else above
            groups.update(dict.fromkeys(update_consolidated(store, full_path, node.zarr_format)))
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
    above = os.fspath(node.store.directory or location)
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
