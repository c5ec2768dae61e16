"""Dimension names of the levels of an OME-NGFF image whose axes are renamed.

OME-NGFF 0.5 requires that they are the names of the axes. Arrays of format 2 can have them in the attribute of xarray.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.dimension_names import DIMENSIONS
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.locks import locked_documents
from zarrfs.errors import MetadataError, NodeNotFoundError
from zarrfs.ngff import parse

__all__ = ["NameChange", "changed_dimension_names"]

Names = tuple[str | None, ...] | None


@dataclass(frozen=True)
class NameChange:
    """The dimension names of an array before and after a change."""

    array: Array
    old: Names
    new: Names

    def write(self) -> None:
        """Write the new names. The document is replaced atomically."""
        self._write(self.new)

    def undo(self) -> None:
        """Write the old names."""
        self._write(self.old)

    def _write(self, names: Names) -> None:
        array, store = self.array, self.array.store
        with locked_documents(store, *formats.document_keys(store, array.path, array.spec)):
            array.refresh()
            attributes = dict(array.spec.attributes)
            if DIMENSIONS in attributes and names is not None:
                attributes[DIMENSIONS] = list(names)
            formats.write_node(
                store, array.path, replace(array.spec, dimension_names=names, attributes=attributes)
            )


def changed_dimension_names(
    node: Array | Group, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[NameChange, ...]:
    """Return the changes of dimension names that changes of the attributes of an OME-NGFF image require.

    These are changes of its levels if the names of its axes differ. Levels that cannot be opened are left out.
    """
    if not isinstance(node, Group):
        return ()
    changes: dict[str, NameChange] = {}
    for old, new in zip(parse(before).multiscales, parse(after).multiscales, strict=False):
        names = tuple(axis.name for axis in new.axes)
        if names == tuple(axis.name for axis in old.axes):
            continue
        for level in new.levels:
            try:
                array = node[level.path]
            except (MetadataError, NodeNotFoundError):
                continue
            if isinstance(array, Array) and _has_names(array, after) and array.ndim == len(names):
                changes[array.path] = NameChange(array, array.dimension_names, names)
    return tuple(change for change in changes.values() if change.old != change.new)


def _has_names(array: Array, attributes: Mapping[str, Any]) -> bool:
    required = "ome" in attributes and formats.features(array.zarr_format).dimension_names
    return required or array.dimension_names is not None
