"""The xarray engine ``zarrfs``: ``xarray.open_dataset(location, engine="zarrfs")``. Needs ``xarray``.

A group's arrays become lazy variables, as xarray's own Zarr engine reads them; decoding by the CF conventions is left
to xarray. The conventions are those of the "Zarr Encoding Specification" in xarray's documentation. OME-Zarr images,
whose levels differ in shape and may have no dimension names of their own, are in ``xarray_ome``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from xarray import Dataset, DataTree, Variable
from xarray.backends import AbstractDataStore, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.open import open
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeNotFoundError, ZarrError
from zarrfs.tools.xarray.ome import LevelArray, level_variables, multiscale_levels
from zarrfs.tools.xarray.variables import make_variable, named_dimensions, visible_attributes

__all__ = ["ZarrfsBackend", "ZarrfsDataStore"]

DEFAULT_NAME = "array"
"""The variable of a single array that has no name."""


class ZarrfsDataStore(AbstractDataStore):
    """Variables and attributes as xarray takes them; ``close`` is called once."""

    def __init__(
        self, variables: Mapping[str, Variable], attributes: Mapping[str, Any], close: Callable[[], None]
    ) -> None:
        self._variables = dict(variables)
        self._attributes = dict(attributes)
        self._close: Callable[[], None] | None = close

    def get_variables(self) -> dict[str, Variable]:
        return self._variables

    def get_attrs(self) -> dict[str, Any]:
        return self._attributes

    def get_dimensions(self) -> dict[str, int]:
        return {
            str(name): size for variable in self._variables.values() for name, size in variable.sizes.items()
        }

    def close(self) -> None:
        close, self._close = self._close, None
        if close is not None:
            close()


class SharedStore:
    """Closes a store when all who share it have released it."""

    def __init__(self, store: Store, owned: bool) -> None:
        self._store = store
        self._owned = owned
        self._users = 0
        self._lock = threading.Lock()

    def use(self) -> Callable[[], None]:
        """Return a function that releases the store; calling it again does nothing."""
        with self._lock:
            self._users += 1
        used = [True]

        def release() -> None:
            with self._lock:
                if not used:
                    return
                used.clear()
                self._users -= 1
                last = self._users == 0
            if last and self._owned:
                self._store.close()

        return release


class ZarrfsBackend(BackendEntrypoint):
    """The entry point of xarray."""

    description = "Open Zarr of every version, OME-Zarr, N5 and what it is stored in, by zarrfs"
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        consolidated: bool | None = None,
        storage_options: dict[str, Any] | None = None,
        zarr_format: int | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
    ) -> Dataset:
        """Open a group, or a single array, as a dataset, lazily. Of an OME-Zarr image it is the finest level.

        Args:
            group: the path of the node below the location.
            consolidated: False ignores consolidated metadata; True demands that there are some. By default they are
                used where the store is remote.
            zarr_format: demands this version of Zarr.
            use_zarr_fill_value_as_mask: whether the fill value means missing; by default in version 2 only.
        """
        node = open_node(filename_or_obj, group, storage_options, consolidated, zarr_format)
        shared = SharedStore(node.store, not isinstance(filename_or_obj, Store))
        release = shared.use()
        try:
            variables = node_variables(node, filename_or_obj, use_zarr_fill_value_as_mask)
            store = ZarrfsDataStore(variables, visible_attributes(node.attrs), release)
            return decoded(
                store,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
        except BaseException:
            release()
            raise

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        consolidated: bool | None = None,
        storage_options: dict[str, Any] | None = None,
        zarr_format: int | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
    ) -> dict[str, Dataset]:
        """Open a group and all below it, by path. Each level of an OME-Zarr image is a dataset of its own.

        Paths begin with ``/``; with ``group`` they are relative to it, and its own is ``.``.
        """
        top = open_node(filename_or_obj, group, storage_options, consolidated, zarr_format)
        shared = SharedStore(top.store, not isinstance(filename_or_obj, Store))
        found: dict[str, Dataset] = {}
        guard = shared.use()
        try:
            for path, variables, attributes in tree_nodes(top, filename_or_obj, use_zarr_fill_value_as_mask):
                name = (path or ".") if group else f"/{path}"
                found[name] = decoded(
                    ZarrfsDataStore(variables, attributes, shared.use()),
                    mask_and_scale=mask_and_scale,
                    decode_times=decode_times,
                    concat_characters=concat_characters,
                    decode_coords=decode_coords,
                    drop_variables=drop_variables,
                    use_cftime=use_cftime,
                    decode_timedelta=decode_timedelta,
                )
        except BaseException:
            for dataset in found.values():
                dataset.close()
            raise
        finally:
            guard()
        return found

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        consolidated: bool | None = None,
        storage_options: dict[str, Any] | None = None,
        zarr_format: int | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
    ) -> DataTree:
        """Open a group and all below it as a tree."""
        datasets = self.open_groups_as_dict(
            filename_or_obj,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
            group=group,
            consolidated=consolidated,
            storage_options=storage_options,
            zarr_format=zarr_format,
            use_zarr_fill_value_as_mask=use_zarr_fill_value_as_mask,
        )
        try:
            tree: DataTree = DataTree.from_dict(datasets)
        except BaseException:
            for dataset in datasets.values():
                dataset.close()
            raise
        for path, dataset in datasets.items():
            tree[path].set_close(dataset.close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Say yes to what is named like Zarr or N5."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        name = os.fspath(filename_or_obj).rstrip("/").lower()
        return name.endswith((".zarr", ".zarr.zip", ".n5"))


def open_node(
    location: Any,
    group: str | None,
    storage_options: dict[str, Any] | None,
    consolidated: bool | None,
    zarr_format: int | None,
) -> Array | Group:
    """Open the node that is asked for; the root is opened first, because it has the consolidated metadata."""
    path = (group or "").strip("/")
    node: Array | Group
    try:
        node = open(location, storage_options=storage_options)
    except NodeNotFoundError:
        if not path or consolidated:
            raise
        node = open(location, path, storage_options=storage_options)  # a group without a node above it
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
                f"{node.store.url}: there are no consolidated metadata, which consolidated=True demands; zarrfs "
                "consolidate makes them, consolidated=None does without"
            )
        if not consolidated:
            spec = replace(node.spec, consolidated=None)
            node = Group(node.store, node.path, spec, node._cache, node.read_only, node._access)
    if path:
        if not isinstance(node, Group):
            raise NodeNotFoundError(f"{node.store.url}: {node.name} is an array; there is no {path!r} in it")
        node = node[path]
    if zarr_format is not None and node.zarr_format != zarr_format:
        raise MetadataError(
            f"{node.store.url}: {node.name} has Zarr format {node.zarr_format}, zarr_format={zarr_format} was demanded"
        )
    return node


def node_variables(node: Array | Group, location: Any, mask: bool | None) -> dict[str, Variable]:
    """Return the variables of the dataset that a node is."""
    if isinstance(node, Array):
        return array_variables(node, location, mask)
    levels = multiscale_levels(node)
    if levels:
        others = group_variables(node, {level.path for level in levels}, mask)
        return {**level_variables(levels[0], mask), **others}
    return group_variables(node, set(), mask)


def array_variables(array: Array, location: Any, mask: bool | None) -> dict[str, Variable]:
    """Return the variable of a single array, with coordinates if it is a level of an OME-Zarr image."""
    parent, _, name = array.path.rpartition("/")
    above: Any = (array.store, parent)
    if not name and isinstance(location, str | os.PathLike):
        outer, _, name = os.fspath(location).rstrip("/").rpartition("/")
        above = (outer, "")
    for level in _levels_in(*above) if name and above[0] else ():
        if level.path == name:
            return level_variables(replace(level, array=array), mask)
    dimensions = named_dimensions(array) or tuple(f"dim_{number}" for number in range(array.ndim))
    return {name.partition(".")[0] or DEFAULT_NAME: make_variable(array, dimensions, mask)}


def _levels_in(location: Any, path: str) -> tuple[LevelArray, ...]:
    """Return the levels of the image at a place, none where there is no image."""
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
    """Return the arrays directly in a group. Raises MetadataError for one without names of its dimensions."""
    variables = {}
    for name, array in group.arrays():
        if name in excluded:
            continue
        dimensions = named_dimensions(array)
        if dimensions is None:
            raise MetadataError(
                f"{array.store.url}: {array.name} has no names of its dimensions, which xarray needs in a group: "
                "expected dimension_names (v3) or the attribute _ARRAY_DIMENSIONS (v2), "
                f"found {array.dimension_names}; the array alone can be opened with group={array.path!r}"
            )
        variables[name] = make_variable(array, dimensions, mask)
    return variables


def tree_nodes(
    top: Array | Group, location: Any, mask: bool | None
) -> Iterable[tuple[str, dict[str, Variable], dict[str, Any]]]:
    """Yield path, variables and attributes of each dataset of a tree, the top first."""
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


def decoded(store: ZarrfsDataStore, **decoding: Any) -> Dataset:
    """Return a dataset, decoded by the CF conventions. The store is closed if that fails."""
    try:
        return StoreBackendEntrypoint().open_dataset(store, **decoding)
    except BaseException:
        store.close()
        raise
