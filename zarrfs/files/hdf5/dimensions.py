"""Dimension names in HDF5 files: dimension scales, which are the dimensions of netCDF-4, with and without values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrfs.libraries import import_library

__all__ = ["NO_VARIABLE", "RESERVED_ATTRIBUTES", "create_empty_scale", "write_dimensions"]

NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable.%10d"
"""The ``NAME`` of a dimension scale without values."""

UNLIMITED_CHUNK = 1024
"""The chunk length of a scale without values of an unlimited dimension. No chunk is written."""


def create_empty_scale(parent: Any, name: str, length: int, *, is_unlimited: bool = False) -> Any:
    """Create a dataset without values in a file or group, and return it. No space is allocated for its values.

    ``make_scale`` with ``NO_VARIABLE`` makes it a dimension scale.
    """
    h5py = import_library("h5py")
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if is_unlimited:
        creation.set_chunk((UNLIMITED_CHUNK,))
    else:
        creation.set_layout(h5py.h5d.CONTIGUOUS)
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    creation.set_obj_track_times(False)
    space = h5py.h5s.create_simple((length,), (h5py.h5s.UNLIMITED if is_unlimited else length,))
    dataset = h5py.Dataset(h5py.h5d.create(parent.id, None, h5py.h5t.IEEE_F32BE, space, creation))
    parent[name] = dataset
    return dataset


RESERVED_ATTRIBUTES = frozenset(
    (
        *("CLASS", "NAME", "DIMENSION_LIST", "DIMENSION_LABELS", "REFERENCE_LIST"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    )
)
"""The attributes in which HDF5 and netCDF store dimensions. Text in their place makes a file unreadable."""

MAX_NAME_NBYTES = 256
"""The maximum length of a name in netCDF (NC_MAX_NAME)."""


def write_dimensions(file: Any, names: Mapping[str, Sequence[str | None]], *, labels: bool) -> None:
    """Attach a dimension scale to each dimension of the datasets.

    If another scale of a different length, a dataset or a group has the name of a dimension, its scale gets another
    name, and the name becomes the label. If not all dimensions of a dataset are named, or netCDF does not allow a name,
    they get labels only.

    Args:
        names: the path of a dataset -> the names of its dimensions.
        labels: whether every dimension gets its name as a label. xarray shows labels as attributes.
    """
    scales = _Scales(file)
    coordinates = {path for path, found in names.items() if list(found) == [_split(path)[1]]}
    for path in coordinates:
        if _is_valid_name(_split(path)[1]):
            scales.add_coordinate(path)
    for path, found in names.items():
        dataset = file[path]
        is_scaled = all(map(_is_valid_name, found))
        for number, name in enumerate(found):
            scale_name = None
            if is_scaled and name is not None and path not in coordinates:
                scale = scales.find(path, name, number)
                dataset.dims[number].attach_scale(scale)
                scale_name = _split(scale.name)[1]
            elif path in coordinates:
                scale_name = name
            if name and "\0" not in name and (labels or name != scale_name):
                dataset.dims[number].label = name


class _Scales:
    """The dimension scales of a file, by the path of a group, the name of a dimension and its length."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._coordinates: dict[tuple[str, str], Any] = {}
        self._scales: dict[tuple[str, str, int], Any] = {}
        self._count = 0

    def add_coordinate(self, path: str) -> None:
        dataset, (group, name) = self._file[path], _split(path)
        self._make_scale(dataset, name)
        self._coordinates[group, name] = dataset

    def find(self, path: str, name: str, number: int) -> Any:
        """Return the scale of dimension ``number`` of a dataset: the coordinate of its group or of the nearest group
        above it with that name and length, else a scale without values in its group, which is created if there is none.
        """
        group = parent = _split(path)[0]
        length = self._file[path].shape[number]
        if (group, name, length) in self._scales:
            return self._scales[group, name, length]
        is_unlimited = self._file[path].maxshape[number] is None
        while (parent, name) not in self._coordinates and parent:
            parent = _split(parent)[0]
        coordinate = self._coordinates.get((parent, name))
        if coordinate is None or coordinate.shape[0] != length:
            # The name of a coordinate is not used again below it, because netCDF4 uses the nearest dimension with the
            # name.
            scale = self._create_scale(
                group, name, length, is_taken=coordinate is not None, is_unlimited=is_unlimited
            )
        else:
            scale = coordinate
        self._scales[group, name, length] = scale
        return scale

    def _create_scale(self, group: str, name: str, length: int, *, is_taken: bool, is_unlimited: bool) -> Any:
        members = self._file[group] if group else self._file
        free = f"{name}_{length}" if is_taken or name in members else name
        while free in members:
            free += "_"
        scale = create_empty_scale(members, free, length, is_unlimited=is_unlimited)
        self._make_scale(scale, NO_VARIABLE % length)
        return members[free]

    def _make_scale(self, dataset: Any, name: str) -> None:
        dataset.make_scale(name)
        dataset.attrs["_Netcdf4Dimid"] = np.int32(self._count)
        self._count += 1


def _split(path: str) -> tuple[str, str]:
    """Return the path of the group of an object, and its name."""
    group, _, name = path.strip("/").rpartition("/")
    return group, name


def _is_valid_name(name: str | None) -> bool:
    return (
        bool(name)
        and name is not None
        and name.isprintable()
        and name == name.strip()
        and "/" not in name
        and bool(name.strip("."))
        and len(name.encode()) <= MAX_NAME_NBYTES
    )
