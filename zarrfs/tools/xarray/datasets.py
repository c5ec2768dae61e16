"""The nodes of a hierarchy as xarray variables: which arrays belong to the dataset of a node, and their dimensions."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
from xarray import Variable
from xarray.backends.common import NONE_VAR_NAME

from zarrfs.api.open import open
from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.parallel import for_each
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeNotFoundError, NodeTypeError, ZarrError
from zarrfs.tools.xarray.ome import ImageLevel, level_variables, multiscale_levels
from zarrfs.tools.xarray.variables import make_variable, named_dimensions, visible_attributes

__all__ = ["ReadingOptions", "VariableOptions", "node_variables", "open_node", "tree_nodes"]

DEFAULT_NAME = "array"
"""The name of the variable of a single array that has no name."""


class ReadingOptions(TypedDict, total=False):
    """Options of ``zarrfs.open`` that the engine passes on. See there."""

    allow_external: bool
    access: ReadWriteOptions


@dataclass(frozen=True)
class VariableOptions:
    """How arrays become variables.

    Attributes:
        mask: whether the fill value is the missing value; None for the convention of the format.
        dropped: the names of arrays that are left out. Their metadata may be invalid.
    """

    mask: bool | None = None
    dropped: Collection[str] = ()


def open_node(
    location: Any,
    group: str | None,
    storage_options: dict[str, Any] | None,
    consolidated: bool | None,
    zarr_format: int | None,
    **options: Unpack[ReadingOptions],
) -> Array | Group:
    """Open a node. The root is opened first, because it has the consolidated metadata."""
    path = (group or "").strip("/")
    node: Array | Group
    try:
        node = open(location, mode="r", storage_options=storage_options, **options)
    except NodeNotFoundError:
        if not path or consolidated:
            raise
        # A group without a parent node.
        node = open(location, path, mode="r", storage_options=storage_options, **options)
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


def node_variables(node: Array | Group, location: Any, options: VariableOptions) -> dict[str, Variable]:
    """Return the variables of the dataset of a node. Raises ZarrError for a member that cannot be read."""
    if isinstance(node, Array):
        return array_variables(node, location, options.mask)
    levels = multiscale_levels(node)
    excluded = {level.path for level in levels}
    arrays = {
        name: member
        for name, member in _members(node, {*excluded, *options.dropped})
        if isinstance(member, Array)
    }
    finest = next((level for level in levels if level.path not in options.dropped), None)
    variables = {} if finest is None else level_variables(_level_array(node, finest), finest, options.mask)
    return {**variables, **group_variables(arrays, options.mask)}


def array_variables(array: Array, location: Any, mask: bool | None) -> dict[str, Variable]:
    """Return the variable of a single array, and coordinates if it is a level of an OME-Zarr image."""
    parent, _, name = array.path.rpartition("/")
    image: Any = (array.store, parent)
    if not name and isinstance(location, str | os.PathLike):
        outer, _, name = os.fspath(location).rstrip("/").rpartition("/")
        image = (outer, "")
    for level in _levels_in(*image) if name and image[0] else ():
        if level.path == name:
            return level_variables(array, level, mask)
    dimensions = named_dimensions(array) or tuple(f"dim_{number}" for number in range(array.ndim))
    return {name.partition(".")[0] or DEFAULT_NAME: make_variable(array, dimensions, mask)}


def _levels_in(location: Any, path: str) -> tuple[ImageLevel, ...]:
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


def _level_array(group: Group, level: ImageLevel) -> Array:
    """Return the array of a level. Raises ZarrError: another level in its place would have other coordinates."""
    try:
        array = group[level.path]
    except (MetadataError, NodeNotFoundError) as error:
        raise _unreadable(level.path, error) from error
    if not isinstance(array, Array):
        raise NodeTypeError(f"{group.store.url}: {array.name}, a level of the image, is a group")
    return array


def _members(group: Group, skipped: Collection[str]) -> Iterator[tuple[str, Array | Group]]:
    """Yield (name, node) of each member. Those in ``skipped`` are not read.

    Raises ZarrError for a member that cannot be read: without it the dataset would be silently incomplete.
    """
    names = group.names()
    if NONE_VAR_NAME not in names:
        # xarray stores the variable None under this name. It is reserved in format 3, so that it is not listed.
        names.append(NONE_VAR_NAME)
    for name in names:
        if name in skipped:
            continue
        try:
            node = group.get(name)
        except MetadataError as error:
            raise _unreadable(name, error) from error
        if node is not None:
            yield name, node


def _unreadable(name: str, error: MetadataError | NodeNotFoundError) -> ZarrError:
    """Return the error for a member that cannot be read."""
    return type(error)(f"{name!r} cannot be opened, and drop_variables={name!r} leaves it out: {error}")


def group_variables(arrays: Mapping[str, Array], mask: bool | None) -> dict[str, Variable]:
    """Return the variables of the arrays of a group. Raises MetadataError for an array without dimension names."""
    variables = {}
    coordinates = _read_coordinates(arrays)
    for name, array in arrays.items():
        dimensions = named_dimensions(array)
        if dimensions is None:
            raise MetadataError(
                f"{array.store.url}: {array.name} has no dimension names, which xarray needs in a group: "
                "expected dimension_names (v3) or the attribute _ARRAY_DIMENSIONS (v2), "
                f"found {array.dimension_names}; open the array alone with group={array.path!r}"
            )
        variables[name] = make_variable(array, dimensions, mask, coordinates.get(name))
    return variables


def _read_coordinates(arrays: Mapping[str, Array]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values of the coordinates along dimensions on servers, which are requested at the same time.

    xarray reads them one after another when it makes the indexes of a dataset. What cannot be read is left out: then
    xarray raises the error.
    """
    values: dict[str, np.ndarray[Any, Any]] = {}

    def read(name: str) -> None:
        with suppress(ZarrError, OSError, MemoryError):
            values[name] = arrays[name][...]

    names = [
        name for name, array in arrays.items() if array.store.is_remote and named_dimensions(array) == (name,)
    ]
    if len(names) > 1:
        for_each(read, names, arrays[names[0]].store.concurrency)
    return values


def tree_nodes(
    top: Array | Group, location: Any, options: VariableOptions
) -> Iterable[tuple[str, dict[str, Variable], dict[str, Any]]]:
    """Yield (path, variables, attributes) of each dataset of a tree, parents first.

    Raises ZarrError for a member that cannot be read, unless it is dropped.
    """
    if isinstance(top, Array):
        yield "", array_variables(top, location, options.mask), visible_attributes(top.attrs)
        return
    pending = [("", top)]
    while pending:
        path, group = pending.pop()
        levels = multiscale_levels(group)
        members = dict(_members(group, {level.path for level in levels} | _dropped_arrays(group, options)))
        arrays = {name: member for name, member in members.items() if isinstance(member, Array)}
        yield path, group_variables(arrays, options.mask), visible_attributes(group.attrs)
        for level in levels:
            if level.path not in options.dropped:
                array = _level_array(group, level)
                variables = level_variables(array, level, options.mask)
                yield _joined(path, level.path), variables, visible_attributes(array.attrs)
        groups = [
            (_joined(path, name), member) for name, member in members.items() if isinstance(member, Group)
        ]
        pending += reversed(groups)


def _dropped_arrays(group: Group, options: VariableOptions) -> set[str]:
    """Return the dropped names that are not those of a group: variables are dropped, and groups are not."""
    dropped = set()
    for name in options.dropped:
        try:
            if not isinstance(group.get(name), Group):
                dropped.add(name)
        except MetadataError:
            dropped.add(name)
    return dropped


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
