"""The xarray engine ``zarrfs``: ``xarray.open_dataset(location, engine="zarrfs")``. Needs ``xarray``.

The arrays of a group are opened as lazy variables, like those of xarray's own Zarr engine; xarray decodes them by
the CF conventions. See "Zarr Encoding Specification" in xarray's documentation. ``datasets`` selects the variables.
OME-Zarr images, whose levels have different shapes and may lack dimension names, are in ``ome``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack, cast

from xarray import Dataset, DataTree, Variable
from xarray.backends import AbstractDataStore, BackendEntrypoint
from xarray.backends.common import NONE_VAR_NAME
from xarray.backends.store import StoreBackendEntrypoint

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.array import Array
from zarrfs.engine.create.array_options import check_option_names, with_options_signature
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.base import Store
from zarrfs.tools.xarray.datasets import (
    ReadingOptions,
    VariableOptions,
    node_variables,
    open_node,
    tree_nodes,
)
from zarrfs.tools.xarray.variables import visible_attributes

__all__ = ["ZarrfsBackend", "ZarrfsDataStore"]


class DecodingOptions(TypedDict, total=False):
    """The options of ``xarray.open_dataset`` that select which CF conventions are decoded."""

    mask_and_scale: Any
    decode_times: Any
    concat_characters: Any
    decode_coords: Any
    drop_variables: str | Iterable[str] | None
    use_cftime: bool | None
    decode_timedelta: Any


class NodeOptions(TypedDict, total=False):
    """The options of this engine.

    Attributes:
        group: the path of the node below the location.
        consolidated: False ignores consolidated metadata; True requires it. By default it is used for remote stores.
        storage_options: the options of fsspec, for a URL.
        zarr_format: the required Zarr format.
        use_zarr_fill_value_as_mask: whether the fill value is the missing value; by default in format 2 only.
        allow_external: whether data outside the store may be read if the store refers to them.
        access: when metadata and chunks are compared with the store, and whether missing chunks are an error.
    """

    group: str | None
    consolidated: bool | None
    storage_options: dict[str, Any] | None
    zarr_format: int | None
    use_zarr_fill_value_as_mask: bool | None
    allow_external: bool
    access: ReadWriteOptions


class OpenOptions(DecodingOptions, NodeOptions, total=False):
    """All options of the engine."""


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
    """Closes a store when all users have released it. Thread-safe. A copy by pickle opens the store again."""

    def __init__(self, store: Store, owned: bool) -> None:
        self._store = store
        self._owned = owned
        self._users = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # The users of the copy are those that are copied with it.
        return SharedStore, (self._store, self._owned)

    def use(self) -> StoreUse:
        """Register a user."""
        with self._lock:
            self._users += 1
        return StoreUse(self)

    def release(self) -> None:
        """Remove a user."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last and self._owned:
            self._store.close()


class StoreUse:
    """One user of a shared store. A call releases the store; further calls do nothing."""

    def __init__(self, shared: SharedStore) -> None:
        self._shared = shared
        self._is_active = [True]

    def __call__(self) -> None:
        try:
            self._is_active.pop()  # atomic
        except IndexError:
            return
        self._shared.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return (SharedStore.use if self._is_active else StoreUse._released), (self._shared,)

    @classmethod
    def _released(cls, shared: SharedStore) -> StoreUse:
        use = cls(shared)
        use._is_active.clear()
        return use


class ZarrfsBackend(BackendEntrypoint):
    """The xarray backend entry point."""

    description = "Open Zarr (all versions), OME-Zarr and N5 in any store that zarrfs supports"
    supports_groups = True

    open_dataset_parameters = ("filename_or_obj", *OpenOptions.__annotations__)

    @with_options_signature(OpenOptions)
    def open_dataset(self, filename_or_obj: Any, **options: Unpack[OpenOptions]) -> Dataset:
        """Open a group or a single array lazily as a dataset. For an OME-Zarr image, open the finest level."""
        decoding, node_options = _split_options(options)
        node = _open_top_node(filename_or_obj, node_options)
        shared_store = SharedStore(node.store, not isinstance(filename_or_obj, Store))
        release = shared_store.use()
        try:
            variables = node_variables(node, filename_or_obj, _variable_options(options))
            store = ZarrfsDataStore(variables, visible_attributes(node.attrs), release)
            return decode_dataset(store, decoding)
        except BaseException:
            release()
            raise

    @with_options_signature(OpenOptions)
    def open_groups_as_dict(self, filename_or_obj: Any, **options: Unpack[OpenOptions]) -> dict[str, Dataset]:
        """Open a group and all groups below it; return datasets by path. Each level of an OME-Zarr image is a dataset.

        Paths begin with ``/``. With ``group`` they are relative to it, and that of the group itself is ``.``.
        """
        decoding, node_options = _split_options(options)
        group = node_options.get("group")
        top = _open_top_node(filename_or_obj, node_options)
        shared_store = SharedStore(top.store, not isinstance(filename_or_obj, Store))
        datasets: dict[str, Dataset] = {}
        release = shared_store.use()
        try:
            for path, variables, attributes in tree_nodes(top, filename_or_obj, _variable_options(options)):
                name = (path or ".") if group else f"/{path}"
                store = ZarrfsDataStore(variables, attributes, shared_store.use())
                datasets[name] = decode_dataset(store, decoding)
        except BaseException:
            for dataset in datasets.values():
                dataset.close()
            raise
        finally:
            release()
        return datasets

    @with_options_signature(OpenOptions)
    def open_datatree(self, filename_or_obj: Any, **options: Unpack[OpenOptions]) -> DataTree:
        """Open a group and all groups below it as a tree."""
        datasets = self.open_groups_as_dict(filename_or_obj, **options)
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


def _split_options(options: Mapping[str, Any]) -> tuple[DecodingOptions, NodeOptions]:
    """Return the options for decoding and those of this engine. Raises OptionError for an unknown option."""
    check_option_names("the xarray engine zarrfs", options, OpenOptions.__annotations__)
    decoding = {name: value for name, value in options.items() if name in DecodingOptions.__annotations__}
    node_options = {name: value for name, value in options.items() if name in NodeOptions.__annotations__}
    return cast(DecodingOptions, decoding), cast(NodeOptions, node_options)


def _variable_options(options: OpenOptions) -> VariableOptions:
    dropped = options.get("drop_variables") or ()
    names = (dropped,) if isinstance(dropped, str) else dropped
    return VariableOptions(
        options.get("use_zarr_fill_value_as_mask"),
        frozenset(NONE_VAR_NAME if name is None else name for name in names),
    )


def _open_top_node(location: Any, options: NodeOptions) -> Array | Group:
    reading: ReadingOptions = {}
    if "allow_external" in options:
        reading["allow_external"] = options["allow_external"]
    if "access" in options:
        reading["access"] = options["access"]
    return open_node(
        location,
        options.get("group"),
        options.get("storage_options"),
        options.get("consolidated"),
        options.get("zarr_format"),
        **reading,
    )


def decode_dataset(store: ZarrfsDataStore, options: DecodingOptions) -> Dataset:
    """Return the dataset of a store, decoded by the CF conventions. The store is closed on failure."""
    try:
        return StoreBackendEntrypoint().open_dataset(store, **options)
    except BaseException:
        store.close()
        raise
