"""The arrays that a location denotes, with the geometry that the groups above them define."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import zarrfs
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import OptionError, StoreError, UnsupportedError, ZarrError
from zarrfs.files.view import PresentedArray
from zarrfs.ngff.coordinate_graphs import compose
from zarrfs.ngff.geometry import Ancestor, Geometry, array_geometry, geometry_in_system
from zarrfs.ngff.model import SystemReference
from zarrfs.ngff.parse import parse
from zarrfs.ngff.stored_graphs import load_graph
from zarrfs.tools.member_arrays import only_array

__all__ = ["presented_array"]

MAX_ANCESTORS = 4
"""The number of groups above an array that are searched for its metadata."""


def presented_array(
    node: Array | Group, level: int, name: str, coordinate_system: str | None = None
) -> PresentedArray:
    """Return the array at a node, named ``name``: the array itself, a level of an image, or the only array of a group.

    Its positions are those in the coordinate system of this name, of the image or of the scene that contains it.

    Raises OptionError if the image has no such level or coordinate system, UnsupportedError if positions in it cannot
    be stated, and NodeTypeError for another group.
    """
    if isinstance(node, Array):
        if level:
            raise OptionError(f"{node.store.url}: {node.name} is an array and has no level {level}")
        return _presented(node, name, coordinate_system)
    images = parse(node.attrs).multiscales
    if images and images[0].levels:
        levels = images[0].levels
        if level >= len(levels):
            raise OptionError(
                f"{node.store.url}: the image has the levels 0 to {len(levels) - 1}, not {level}"
            )
        member = node[levels[level].path]
        if isinstance(member, Array):
            return _presented(member, name, coordinate_system)
    return _presented(only_array(node)[1], name, coordinate_system)


def _presented(array: Array, name: str, coordinate_system: str | None) -> PresentedArray:
    if coordinate_system is None:
        return PresentedArray(array, name, lambda: array_geometry(array.spec, _ancestors(array)))
    geometry = _geometry_in(array, coordinate_system)
    return PresentedArray(array, name, lambda: geometry)


def _geometry_in(array: Array, name: str) -> Geometry:
    """Return the geometry of an array in the coordinate system of a name. The image is searched before the scene."""
    known: list[str] = []
    for path, group in _groups(array):
        graph = load_graph(group)
        known += [reference.name for reference in graph.systems if reference.name]
        found = [reference for reference in graph.systems if reference.name == name]
        found = [reference for reference in found if not reference.path] or found
        if SystemReference(path) not in graph.systems or not found:
            continue
        if len(found) > 1:
            raise OptionError(
                f"coordinate_system: {', '.join(map(str, found[:4]))} have this name: expected one that the scene or "
                "the image has once"
            )
        composed = compose(graph, SystemReference(path), found[0])
        geometry = None
        if composed.matrix is not None:
            geometry = geometry_in_system(
                array_geometry(array.spec, _ancestors(array)), composed.output, np.array(composed.matrix)
            )
        if geometry is None:
            reason = "not affine" if composed.matrix is None else "one of spatial and other axes together"
            raise UnsupportedError(
                f"the transformation to the coordinate system {name!r} is {reason}: a file cannot state it"
            )
        return geometry
    existing = ", ".join(map(repr, dict.fromkeys(known))) or "none"
    raise OptionError(f"coordinate_system: there is no {name!r} (existing: {existing})")


def _ancestors(array: Array) -> Iterator[Ancestor]:
    """Yield the groups that contain an array, the nearest one first, with their metadata."""
    for path, group in _groups(array):
        attributes = group.attrs.asdict()
        yield Ancestor(path, attributes, parse(attributes))


def _groups(array: Array) -> Iterator[tuple[str, Group]]:
    """Yield the groups that contain an array, the nearest one first, and the path of the array relative to each."""
    path = array.path
    count = 0
    while path and count < MAX_ANCESTORS:
        parent = path.rpartition("/")[0]
        group = _group(array.store, parent)
        if group is not None:
            yield array.path.removeprefix(parent).strip("/"), group
        path, count = parent, count + 1
    yield from _directories(array, MAX_ANCESTORS - count)


def _directories(array: Array, limit: int) -> Iterator[tuple[str, Group]]:
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
        yield inner, group


def _group(store: Any, path: str) -> Group | None:
    """Return a group, or None if there is none. Raises StoreError if the store cannot be read."""
    try:
        node = zarrfs.open(store, path, mode="r")
    except StoreError:
        raise
    except ZarrError:
        return None
    return node if isinstance(node, Group) else None
