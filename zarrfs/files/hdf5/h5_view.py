""".h5: an HDF5 file with one dataset, which has the name of the array.

User attributes are attributes of the dataset. Names of dimensions are dimension labels. A dimension with a known
position has a dimension scale, and ``element_size_um`` contains the distances between elements in micrometres, as
written by the HDF5 plugin of ImageJ.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from zarrfs.files.content.content import ArraySegment, VirtualFileContent
from zarrfs.files.hdf5.layout import (
    MAX_HDF5_RANK,
    attribute_values,
    datatype_unsupported_reason,
    hdf5_content,
    is_valid_name,
    library_unsupported_reason,
)
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason
from zarrfs.ngff.geometry import ArrayAxis, Geometry

__all__ = ["H5View", "axis_positions", "has_position"]

MAX_SCALE_LENGTH = 1 << 16
"""Longer dimensions have no dimension scale, because its values would be in memory."""

RESERVED_ATTRIBUTES = frozenset(("CLASS", "NAME", "DIMENSION_LIST", "DIMENSION_LABELS", "REFERENCE_LIST"))
"""The attributes in which HDF5 stores dimension scales."""


class H5View(View):
    """An HDF5 file with one contiguous dataset."""

    suffix: ClassVar[str] = ".h5"

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = fixed_size_unsupported_reason(array) or datatype_unsupported_reason(array.dtype)
        if unsupported_reason is None and array.ndim > MAX_HDF5_RANK:
            return f"its {array.ndim} dimensions exceed the maximum of HDF5 ({MAX_HDF5_RANK})"
        return unsupported_reason or library_unsupported_reason()

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, geometry = presented.array, presented.geometry
        attributes = {
            name: value for name, value in array.attrs.asdict().items() if name not in RESERVED_ATTRIBUTES
        }

        def describe(h5: Any, dataset: Any) -> None:
            for name, value in attribute_values(attributes):
                dataset.attrs[name] = value
            sizes = _element_size(geometry)
            if sizes is not None and "element_size_um" not in attributes:
                dataset.attrs["element_size_um"] = sizes
            for number, axis in enumerate(geometry.axes):
                _describe_axis(h5, dataset, number, axis)

        return hdf5_content(presented.name, array.shape, array.dtype, ArraySegment(array), describe)


def _describe_axis(h5: Any, dataset: Any, number: int, axis: ArrayAxis) -> None:
    dimension = dataset.dims[number]
    if axis.name is None or not is_valid_name(axis.name):
        return
    dimension.label = axis.name
    positions = axis_positions(axis, dataset.shape[number])
    if positions is None:
        return
    name = axis.name.replace("/", "_")
    while name in h5 or name in ("", "."):
        name += "_axis"
    scale = h5.create_dataset(name, data=positions)
    if axis.unit is not None:
        scale.attrs["units"] = axis.unit
    scale.make_scale(axis.name)
    dimension.attach_scale(scale)


def axis_positions(axis: ArrayAxis, length: int) -> np.ndarray[Any, Any] | None:
    """Return the positions of the elements along an axis, or None if they are unknown, too many, or not finite."""
    if not has_position(axis) or not 0 < length <= MAX_SCALE_LENGTH:
        return None
    with np.errstate(over="ignore"):
        positions = axis.translation + axis.scale * np.arange(length)
    return positions if np.isfinite(positions).all() else None


def has_position(axis: ArrayAxis) -> bool:
    """Whether the metadata of the array define the position of the elements along the axis."""
    return axis.unit is not None or axis.scale != 1 or axis.translation != 0


def _element_size(geometry: Geometry) -> np.ndarray[Any, Any] | None:
    """Return the distances along z, y and x in micrometres, or None if they are unknown."""
    dimensions = [geometry.find(role) for role in ("z", "y", "x")]
    known = [dimension for dimension in dimensions if dimension is not None]
    grid = geometry.physical_grid(known, "micrometer")
    if grid.unit is None or dimensions[1] is None or dimensions[2] is None:
        return None
    sizes = dict(zip(known, grid.scale, strict=True))
    return np.array([1.0 if dimension is None else sizes[dimension] for dimension in dimensions])
