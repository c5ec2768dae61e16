"""Reading the OME-NGFF model of a node, including metadata of its members where needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from zarrfs.errors import ZarrError
from zarrfs.ngff.model import Ngff
from zarrfs.ngff.parse import parse

__all__ = ["Node", "load"]


class Node(Protocol):
    """A group or array, or another object with attributes. Groups also have ``__getitem__`` for their members."""

    @property
    def attrs(self) -> Mapping[str, Any]: ...


def load(node: Node) -> Ngff:
    """Return the OME-NGFF model of a node. Reads from the store.

    The list of series of a bioformats2raw root is read from its member ``OME``. If that is missing, ``series`` is the
    members ``0``, ``1``, ... that exist, up to the first missing one.
    """
    ngff = parse(node.attrs)
    if ngff.series != () or ngff.plate is not None or not hasattr(node, "__getitem__"):
        return ngff
    listed = _listed_series(node)
    return replace(ngff, series=listed if listed else _counted_series(node))


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
