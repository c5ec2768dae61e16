"""The xarray engine ``zarrfs``: ``xarray.open_dataset(location, engine="zarrfs")``. Needs ``xarray``.

Here: a group's arrays as lazy variables. Dimension names are those of the arrays (v3 ``dimension_names``, v2
``_ARRAY_DIMENSIONS``); what CF says of attributes is left to xarray. Conventions: the "Zarr Encoding Specification" of
xarray's documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from zarrfs.engine.array import Array
from zarrfs.engine.group import Group
from zarrfs.engine.open import open_group
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, ZarrError

__all__ = ["ZarrfsBackend", "ZarrfsDataStore"]

DIMENSIONS = "_ARRAY_DIMENSIONS"
FILL = "_FillValue"


class LazyArray(BackendArray):
    """An array that is read when it is indexed, and no more of it than is asked for."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        array = self.array
        if isinstance(key, indexing.VectorizedIndexer):
            read = array.get_coordinate_selection
            support = indexing.IndexingSupport.VECTORIZED
        elif isinstance(key, indexing.OuterIndexer):
            read = array.get_orthogonal_selection
            support = indexing.IndexingSupport.OUTER
        else:
            read = array.get_basic_selection
            support = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(
            key, array.shape, support, lambda raw: np.asarray(read(raw))
        )


class ZarrfsDataStore(AbstractDataStore):
    """A group as xarray sees it: variables, attributes, dimensions. It closes the group's store if ``owned``."""

    def __init__(self, group: Group, owned: bool = True) -> None:
        self.group = group
        self._owned = owned

    def get_variables(self) -> dict[str, Variable]:
        return {name: _variable(array) for name, array in self.group.arrays()}

    def get_attrs(self) -> dict[str, Any]:
        return dict(self.group.attrs)

    def get_dimensions(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for _, array in self.group.arrays():
            sizes.update(zip(_dimensions(array), array.shape, strict=True))
        return sizes

    def close(self) -> None:
        if self._owned:
            self.group.store.close()


def _dimensions(array: Array) -> tuple[str, ...]:
    names = array.dimension_names
    if names is None or any(name is None for name in names):
        raise MetadataError(
            f"{array.store.url}: {array.name} has no names of its dimensions, which xarray needs: expected "
            f"dimension_names (v3) or the attribute {DIMENSIONS} (v2), found {names}"
        )
    return tuple(str(name) for name in names)


def _variable(array: Array) -> Variable:
    attributes = {key: value for key, value in array.attrs.items() if key != DIMENSIONS}
    dimensions = _dimensions(array)
    if array.zarr_format == 2 and array.spec.fill_value is not None and not array.dtype.hasobject:
        attributes[FILL] = array.fill_value
    elif FILL in attributes and not array.dtype.hasobject:
        attributes[FILL] = FillValueCoder.decode(attributes[FILL], array.dtype)
    chunks = tuple(side if isinstance(side, int) else max(side) for side in array.chunks)
    encoding = {
        "chunks": chunks,
        "preferred_chunks": dict(zip(dimensions, chunks, strict=True)),
        "shards": array.shards,
    }
    return Variable(dimensions, indexing.LazilyIndexedArray(LazyArray(array)), attributes, encoding)


class ZarrfsBackend(BackendEntrypoint):
    """The entry point of xarray."""

    description = "Open Zarr of every version, N5 and what it is stored in, by zarrfs"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group", "storage_options")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        storage_options: dict[str, Any] | None = None,
    ) -> Dataset:
        """Open a group as a dataset, lazily. ``group`` is its path below the location."""
        found = open_group(filename_or_obj, group or "", storage_options=storage_options)
        store = ZarrfsDataStore(found, not isinstance(filename_or_obj, Store))
        return _decoded(
            store,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        group: str | None = None,
        storage_options: dict[str, Any] | None = None,
        **decoding: Any,
    ) -> dict[str, Dataset]:
        """Open a group and all below it, by path."""
        top = open_group(filename_or_obj, group or "", storage_options=storage_options)
        groups = {"/": top} | {f"/{path}": node for path, node in top.walk() if isinstance(node, Group)}
        return {path: _decoded(ZarrfsDataStore(node, False), **decoding) for path, node in groups.items()}

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> Any:
        """Open a group and all below it as a tree."""
        from xarray import DataTree

        return DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Say yes to what is named like Zarr or N5."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        name = os.fspath(filename_or_obj).rstrip("/").lower()
        return name.endswith((".zarr", ".zarr.zip", ".n5"))


def _decoded(store: ZarrfsDataStore, **decoding: Any) -> Dataset:
    try:
        return StoreBackendEntrypoint().open_dataset(store, **decoding)
    except ZarrError:
        store.close()
        raise
