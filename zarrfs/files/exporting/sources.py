"""The arrays that a location denotes, with the geometry that the groups above them define."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import zarrfs
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import OptionError, StoreError, ZarrError
from zarrfs.files.view import PresentedArray
from zarrfs.ngff.geometry import Ancestor, array_geometry
from zarrfs.ngff.parse import parse
from zarrfs.tools.member_arrays import only_array

__all__ = ["presented_array"]

MAX_ANCESTORS = 4
"""The number of groups above an array that are searched for its metadata."""


def presented_array(node: Array | Group, level: int, name: str) -> PresentedArray:
    """Return the array at a node, named ``name``: the array itself, a level of an image, or the only array of a group.

    Raises OptionError if the image has no such level, and NodeTypeError for another group.
    """
    if isinstance(node, Array):
        if level:
            raise OptionError(f"{node.store.url}: {node.name} is an array and has no level {level}")
        return _presented(node, name)
    images = parse(node.attrs).multiscales
    if images and images[0].levels:
        levels = images[0].levels
        if level >= len(levels):
            raise OptionError(
                f"{node.store.url}: the image has the levels 0 to {len(levels) - 1}, not {level}"
            )
        member = node[levels[level].path]
        if isinstance(member, Array):
            return _presented(member, name)
    return _presented(only_array(node)[1], name)


def _presented(array: Array, name: str) -> PresentedArray:
    return PresentedArray(array, name, lambda: array_geometry(array.spec, _ancestors(array)))


def _ancestors(array: Array) -> Iterator[Ancestor]:
    """Yield the groups that contain an array, the nearest one first."""
    path = array.path
    count = 0
    while path and count < MAX_ANCESTORS:
        parent = path.rpartition("/")[0]
        group = _group(array.store, parent)
        if group is not None:
            yield Ancestor(array.path.removeprefix(parent).strip("/"), group, parse(group))
        path, count = parent, count + 1
    yield from _directories(array, MAX_ANCESTORS - count)


def _directories(array: Array, limit: int) -> Iterator[Ancestor]:
    """Yield the groups in the directories above a local store, whose root may be inside of a hierarchy."""
    folder, inner = array.store.directory, array.path
    if folder is None:
        return
    for _ in range(limit):
        folder, name = os.path.split(os.path.abspath(folder))
        if not name:
            return
        inner = f"{name}/{inner}".rstrip("/")
        group = _group(folder, "")
        if group is None:
            return
        yield Ancestor(inner, group, parse(group))


def _group(store: Any, path: str) -> dict[str, Any] | None:
    """Return the attributes of a group, or None if there is none. Raises StoreError if the store cannot be read."""
    try:
        node = zarrfs.open(store, path, mode="r")
    except StoreError:
        raise
    except ZarrError:
        return None
    return node.attrs.asdict() if isinstance(node, Group) else None
