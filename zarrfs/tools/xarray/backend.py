"""The xarray engine ``zarrfs``: ``xarray.open_dataset(location, engine="zarrfs")``. Needs ``xarray``.

The arrays of a group are opened as lazy variables, like those of xarray's own Zarr engine; xarray decodes them by
the CF conventions. See "Zarr Encoding Specification" in xarray's documentation. OME-Zarr images, whose levels have
different shapes and may lack dimension names, are in ``ome``.
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
"""The name of the variable of a single array that has no name."""


class ZarrfsDataStore(AbstractDataStore):
    """The variables and attributes of a dataset. ``close`` is called at most once."""

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
    """Closes a store when all users have released it. Thread-safe."""

    def __init__(self, store: Store, owned: bool) -> None:
        self._store = store
        self._owned = owned
        self._users = 0
        self._lock = threading.Lock()

    def use(self) -> Callable[[], None]:
        """Register a user. Return a function that releases the store; further calls of it do nothing."""
        with self._lock:
            self._users += 1
        active = [True]

        def release() -> None:
            with self._lock:
                if not active:
                    return
                active.clear()
                self._users -= 1
                last = self._users == 0
            if last and self._owned:
                self._store.close()

        return release


class ZarrfsBackend(BackendEntrypoint):
    """The xarray backend entry point."""

    description = "Open Zarr (all versions), OME-Zarr and N5 in any store that zarrfs supports"
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
        """Open a group or a single array lazily as a dataset. For an OME-Zarr image, open the finest level.

        Args:
            group: the path of the node below the location.
            consolidated: False ignores consolidated metadata; True requires it. By default it is used for remote
                stores.
            zarr_format: the required Zarr format.
            use_zarr_fill_value_as_mask: whether the fill value is the missing value; by default in format 2 only.
        """
        node = open_node(filename_or_obj, group, storage_options, consolidated, zarr_format)
        shared_store = SharedStore(node.store, not isinstance(filename_or_obj, Store))
        release = shared_store.use()
        try:
            variables = node_variables(node, filename_or_obj, use_zarr_fill_value_as_mask)
            store = ZarrfsDataStore(variables, visible_attributes(node.attrs), release)
            return decode_dataset(
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
        """Open a group and all groups below it; return datasets by path. Each level of an OME-Zarr image is a dataset.

        Paths begin with ``/``. With ``group`` they are relative to it, and that of the group itself is ``.``.
        """
        top = open_node(filename_or_obj, group, storage_options, consolidated, zarr_format)
        shared_store = SharedStore(top.store, not isinstance(filename_or_obj, Store))
        datasets: dict[str, Dataset] = {}
        release = shared_store.use()
        try:
            for path, variables, attributes in tree_nodes(top, filename_or_obj, use_zarr_fill_value_as_mask):
                name = (path or ".") if group else f"/{path}"
                datasets[name] = decode_dataset(
                    ZarrfsDataStore(variables, attributes, shared_store.use()),
                    mask_and_scale=mask_and_scale,
                    decode_times=decode_times,
                    concat_characters=concat_characters,
                    decode_coords=decode_coords,
                    drop_variables=drop_variables,
                    use_cftime=use_cftime,
                    decode_timedelta=decode_timedelta,
                )
        except BaseException:
            for dataset in datasets.values():
                dataset.close()
            raise
        finally:
            release()
        return datasets

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
        """Open a group and all groups below it as a tree."""
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
        """Return whether the location has a suffix of Zarr or N5."""
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


def decode_dataset(store: ZarrfsDataStore, **decoding: Any) -> Dataset:
    """Return the dataset of a store, decoded by the CF conventions. The store is closed on failure."""
    try:
        return StoreBackendEntrypoint().open_dataset(store, **decoding)
    except BaseException:
        store.close()
        raise
