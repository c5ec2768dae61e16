"""The nodes of a hierarchy as xarray variables: which arrays belong to the dataset of a node, and their dimensions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from xarray import Variable

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.open import open
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeNotFoundError, ZarrError
from zarrfs.tools.xarray.ome import LevelArray, level_variables, multiscale_levels
from zarrfs.tools.xarray.variables import make_variable, named_dimensions, visible_attributes

__all__ = ["node_variables", "open_node", "tree_nodes"]

DEFAULT_NAME = "array"
"""The name of the variable of a single array that has no name."""


def open_node(
    location: Any,
    group: str | None,
    storage_options: dict[str, Any] | None,
    consolidated: bool | None,
    zarr_format: int | None,
) -> Array | Group:
    """Open a node. The root is opened first, because it has the consolidated metadata."""
    path = (group or "").strip("/")
    node: Array | Group
    try:
        node = open(location, storage_options=storage_options)
    except NodeNotFoundError:
        if not path or consolidated:
            raise
        node = open(location, path, storage_options=storage_options)  # a group without a parent node
        path = ""
    try:
        return _member(node, path, consolidated, zarr_format)
    except BaseException:
        if not isinstance(location, Store):
            node.store.close()
        raise


def _member(
    node: Array | Group, path: str, consolidated: bool | None, zarr_format: int | None
) -> Array | Group:
    if isinstance(node, Group) and consolidated is not None:
        if consolidated and node.spec.consolidated is None:
            raise MetadataError(
                f"{node.store.url}: no consolidated metadata found, which consolidated=True requires; create it with "
                "zarrfs consolidate, or use consolidated=None"
            )
        if not consolidated:
            spec = replace(node.spec, consolidated=None)
            node = Group(node.store, node.path, spec, node._cache, node.read_only, node._access)
    if path:
        if not isinstance(node, Group):
            raise NodeNotFoundError(f"{node.store.url}: {node.name} is an array and has no member {path!r}")
        node = node[path]
    if zarr_format is not None and node.zarr_format != zarr_format:
        raise MetadataError(
            f"{node.store.url}: {node.name} has Zarr format {node.zarr_format}, expected zarr_format={zarr_format}"
        )
    return node


def node_variables(node: Array | Group, location: Any, mask: bool | None) -> dict[str, Variable]:
    """Return the variables of the dataset of a node."""
    if isinstance(node, Array):
        return array_variables(node, location, mask)
    levels = multiscale_levels(node)
    if levels:
        others = group_variables(node, {level.path for level in levels}, mask)
        return {**level_variables(levels[0], mask), **others}
    return group_variables(node, set(), mask)


def array_variables(array: Array, location: Any, mask: bool | None) -> dict[str, Variable]:
    """Return the variable of a single array, and coordinates if it is a level of an OME-Zarr image."""
    parent, _, name = array.path.rpartition("/")
    image: Any = (array.store, parent)
    if not name and isinstance(location, str | os.PathLike):
        outer, _, name = os.fspath(location).rstrip("/").rpartition("/")
        image = (outer, "")
    for level in _levels_in(*image) if name and image[0] else ():
        if level.path == name:
            return level_variables(replace(level, array=array), mask)
    dimensions = named_dimensions(array) or tuple(f"dim_{number}" for number in range(array.ndim))
    return {name.partition(".")[0] or DEFAULT_NAME: make_variable(array, dimensions, mask)}


def _levels_in(location: Any, path: str) -> tuple[LevelArray, ...]:
    """Return the levels of the image at a location; empty if there is no image."""
    try:
        node = open(location, path)
    except ZarrError:
        return ()
    try:
        return multiscale_levels(node) if isinstance(node, Group) else ()
    finally:
        if not isinstance(location, Store):
            node.store.close()


def group_variables(group: Group, excluded: set[str], mask: bool | None) -> dict[str, Variable]:
    """Return the variables of the arrays in a group. Raises MetadataError for an array without dimension names."""
    variables = {}
    for name, array in group.arrays():
        if name in excluded:
            continue
        dimensions = named_dimensions(array)
        if dimensions is None:
            raise MetadataError(
                f"{array.store.url}: {array.name} has no dimension names, which xarray needs in a group: "
                "expected dimension_names (v3) or the attribute _ARRAY_DIMENSIONS (v2), "
                f"found {array.dimension_names}; open the array alone with group={array.path!r}"
            )
        variables[name] = make_variable(array, dimensions, mask)
    return variables


def tree_nodes(
    top: Array | Group, location: Any, mask: bool | None
) -> Iterable[tuple[str, dict[str, Variable], dict[str, Any]]]:
    """Yield (path, variables, attributes) of each dataset of a tree, parents first."""
    if isinstance(top, Array):
        yield "", array_variables(top, location, mask), visible_attributes(top.attrs)
        return
    below = ((path, node) for path, node in top.walk() if isinstance(node, Group))
    for path, group in (("", top), *below):
        levels = multiscale_levels(group)
        excluded = {level.path for level in levels}
        yield path, group_variables(group, excluded, mask), visible_attributes(group.attrs)
        for level in levels:
            inner = "/".join(part for part in (path, level.path) if part)
            yield inner, level_variables(level, mask), visible_attributes(level.array.attrs)
