"""The unlimited (record) dimensions of netCDF-4.

A dataset of a netCDF-4 file can be shorter along an unlimited dimension than the dimension itself, which is as long as
the longest of its variables. The elements beyond the dataset have its fill value. See "Variables with unlimited
dimensions" of netCDF-4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zarrfs.files.hdf5.objects import ERRORS

__all__ = ["UNLIMITED", "RecordDimensions", "has_record_dimensions", "unlimited_names"]

UNLIMITED = "zarrfs_unlimited_dimensions"
"""The attribute of a group with the names of its unlimited dimensions, because Zarr has none."""

DIMENSION_ID = "_Netcdf4Dimid"

MAX_EXAMINED = 100
"""The maximum number of members of the root group that are examined to recognize netCDF."""


class RecordDimensions:
    """The lengths of the unlimited dimensions of a file, by the addresses of their scales."""

    def __init__(self, h5py: Any, datasets: Iterable[Any]) -> None:
        self._h5py = h5py
        self._lengths: dict[tuple[int, int], int] = {}
        self._names: dict[str, set[str]] = {}
        for dataset in datasets:
            for number, scale in self._record_scales(dataset):
                key = self._address(scale)
                length = max(dataset.shape[number], scale.shape[0])
                self._lengths[key] = max(length, self._lengths.get(key, 0))
                group, _, name = scale.name.strip("/").rpartition("/")
                self._names.setdefault(group, set()).add(name)

    def shape(self, dataset: Any) -> tuple[int, ...]:
        """Return the shape of a dataset as a variable: along unlimited dimensions the length of the dimension."""
        shape = list(dataset.shape)
        if self._lengths:
            for number, scale in self._record_scales(dataset):
                shape[number] = max(shape[number], self._lengths.get(self._address(scale), 0))
        return tuple(shape)

    def attributes(self, group: str) -> dict[str, Any]:
        """Return the attribute with the unlimited dimensions of the group at a path; empty if it has none."""
        names = self._names.get(group.strip("/"))
        return {UNLIMITED: sorted(names)} if names else {}

    def _record_scales(self, dataset: Any) -> Iterator[tuple[int, Any]]:
        """Yield the number and the scale of each unlimited dimension of a dataset."""
        try:
            if dataset.shape is None or None not in dataset.maxshape:
                return
            if dataset.is_scale and len(dataset.shape) == 1 and DIMENSION_ID in dataset.attrs:
                yield 0, dataset
                return
            for number, dimension in enumerate(dataset.dims):
                if dataset.maxshape[number] is None and len(dimension):
                    scale = dimension[0]
                    if scale.maxshape == (None,) and DIMENSION_ID in scale.attrs:
                        yield number, scale
        except ERRORS:
            return  # a damaged attribute: the dimensions are those of HDF5

    def _address(self, item: Any) -> tuple[int, int]:
        info = self._h5py.h5o.get_info(item.id)
        return int(info.fileno), int(info.addr)


def has_record_dimensions(h5py: Any, root: Any) -> bool:
    """Return whether a file was written by netCDF-4, so that it may have unlimited dimensions."""
    try:
        if "_NCProperties" in root.attrs:
            return True
        for _, name in zip(range(MAX_EXAMINED), root, strict=False):
            link = root.get(name, getlink=True)
            if isinstance(link, h5py.HardLink) and DIMENSION_ID in root[name].attrs:
                return True
    except ERRORS:
        return False
    return False


def unlimited_names(attributes: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the unlimited dimensions that the attributes of a group state."""
    names = attributes.get(UNLIMITED)
    return (
        frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
    )
