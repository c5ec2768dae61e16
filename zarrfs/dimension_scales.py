"""Dimension scales without values in HDF5 files: netCDF dimensions that are not variables. h5py is imported on use."""

from __future__ import annotations

from typing import Any

from zarrfs.engine.codecs.libraries import import_library

__all__ = ["NO_VARIABLE", "create_empty_scale"]

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
