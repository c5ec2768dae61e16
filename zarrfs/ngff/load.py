"""A node of a store -> the model, reading what belongs to it from its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from zarrfs.errors import ZarrError
from zarrfs.ngff.model import Ngff
from zarrfs.ngff.parse import parse

__all__ = ["Node", "load"]


class Node(Protocol):
    """A group or an array of the engine, or anything else with attributes; members are looked up in
    groups.
    """

    @property
    def attrs(self) -> Mapping[str, Any]: ...


def load(node: Node) -> Ngff:
    """Return what OME-NGFF metadata say of a node.

    The ``OME`` member of a bioformats2raw root is read for its list of series; where that is missing,
    ``series`` is the members ``0``, ``1``, ... that exist, counted up to the first gap. Blocks on the store.
    """
    found = parse(node.attrs)
    if found.series != () or found.plate is not None or not hasattr(node, "__getitem__"):
        return found
    listed = _listed_series(node)
    return replace(found, series=listed if listed else _counted_series(node))


def _listed_series(group: Any) -> tuple[str, ...]:
    try:
        return parse(group["OME"].attrs).series or ()
    except (ZarrError, KeyError):
        return ()


def _counted_series(group: Any) -> tuple[str, ...]:
    names: list[str] = []
    while True:
        try:
            group[str(len(names))]
        except (ZarrError, KeyError):
            return tuple(names)
        names.append(str(len(names)))
