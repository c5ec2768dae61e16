"""The position of the elements of an array in the coordinate system of medical images.

The components are left, posterior, superior (LPS), as in DICOM, ITK and most formats of medical images. NIfTI has the
opposite signs of the first two (RAS). If all spatial axes state an anatomical orientation, the coordinates of OME-NGFF
are converted to this system. Otherwise they are its coordinates x, y and z, which is how ITK regards images without an
orientation: an image is then displayed with x to the right and y downwards. The coordinates are those of the scene if
the image is in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zarrfs.ngff.geometry import SPACE_ROLES, ArrayAxis, Geometry, SpatialAffine
from zarrfs.ngff.orientation import Vector, direction_of
from zarrfs.ngff.units import convert

__all__ = ["SPACE_ROLES", "SpatialFrame", "spatial_frame"]

IDENTITY: tuple[Vector, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class SpatialFrame:
    """The axes x, y and z in LPS coordinates. An axis that the array lacks has the distance 1.

    The position of the element (i, j, k) is ``origin + i * scale[0] * directions[0] + j * scale[1] * directions[1] +
    k * scale[2] * directions[2]``.

    Attributes:
        directions: the unit vector along which the coordinates of each axis increase.
        scale: the distance of the elements along each axis. A negative one means the opposite direction.
        origin: the position of the centre of the first element.
        unit: ``millimeter``, or None if the unit of the numbers is not known.
        is_anatomical: whether the axes state their orientation.
    """

    directions: tuple[Vector, ...]
    scale: tuple[float, ...]
    origin: Vector
    unit: str | None
    is_anatomical: bool


def spatial_frame(geometry: Geometry) -> SpatialFrame:
    """Return where the elements of an array are."""
    frame = None if geometry.affine is None else _affine_frame(geometry, geometry.affine)
    return frame or _parallel_frame(geometry)


def _affine_frame(geometry: Geometry, affine: SpatialAffine) -> SpatialFrame | None:
    """Return the frame of an image whose axes are not parallel to those of its coordinate system.

    None if two axes of the image have the same direction in it.
    """
    rows = np.array(affine.rows)
    units = [axis.unit for axis in affine.axes if axis is not None and axis.unit is not None]
    common = units[0] if len(set(units)) == 1 else None
    factors = [
        1.0 if axis is None else convert(1.0, axis.unit or common, "millimeter") for axis in affine.axes
    ]
    unit = None if None in factors else "millimeter"
    if unit is not None:
        rows = rows * np.array(factors, np.float64)[:, np.newaxis]
    known = _directions(affine.axes)
    world: npt.NDArray[np.float64] = np.array(known or IDENTITY).T @ rows
    vectors: list[Vector | None] = []
    scale = []
    for column, role in enumerate(SPACE_ROLES):
        length = float(np.linalg.norm(world[:, column]))
        if geometry.find(role) is None:
            vectors.append(None)
            scale.append(1.0)
        elif not length or not np.isfinite(length):
            return None
        else:
            x, y, z = (float(part) + 0.0 for part in world[:, column] / length)
            vectors.append((x, y, z))
            scale.append(length)
    directions = _completed(vectors)
    if directions is None:
        return None
    x, y, z = (float(part) + 0.0 for part in world[:, 3])
    return SpatialFrame(directions, tuple(scale), (x, y, z), unit, known is not None)


def _parallel_frame(geometry: Geometry) -> SpatialFrame:
    dimensions = [geometry.find(role) for role in SPACE_ROLES]
    present = [i for i in dimensions if i is not None]
    grid = geometry.physical_grid(present, "millimeter")
    scale = tuple(1.0 if i is None else grid.scale[present.index(i)] for i in dimensions)
    translation = tuple(0.0 if i is None else grid.translation[present.index(i)] for i in dimensions)
    known = _directions([None if i is None else geometry.axes[i] for i in dimensions])
    directions = known or IDENTITY
    x, y, z = (
        sum(vector[row] * position for vector, position in zip(directions, translation, strict=True)) + 0.0
        for row in range(3)
    )
    return SpatialFrame(directions, scale, (x, y, z), grid.unit, known is not None)


def _directions(axes: Sequence[ArrayAxis | None]) -> tuple[Vector, ...] | None:
    """Return the LPS directions of the axes, or None if an existing one has none, or if they are in one plane."""
    vectors: list[Vector | None] = []
    for axis in axes:
        vector = None if axis is None else direction_of(axis)
        if axis is not None and vector is None:
            return None
        # The addition avoids negative zeros.
        vectors.append(None if vector is None else (0.0 - vector[0], 0.0 - vector[1], vector[2] + 0.0))
    return _completed(vectors)


def _completed(vectors: list[Vector | None]) -> tuple[Vector, ...] | None:
    """Return three vectors, of which missing ones are perpendicular to the others. None if all are missing, or if those
    that are not are in one plane.
    """
    known = [vector for vector in vectors if vector is not None]
    if not known or np.linalg.matrix_rank(np.array(known)) < len(known):
        return None
    for number, vector in enumerate(vectors):
        if vector is None:
            vectors[number] = _perpendicular([item for item in vectors if item is not None])
    return tuple(vector for vector in vectors if vector is not None)


def _perpendicular(vectors: Sequence[Vector]) -> Vector:
    """Return a unit vector that is perpendicular to one or two others: a world axis if possible."""
    for row, unit in enumerate(IDENTITY):
        if all(vector[row] == 0 for vector in vectors):
            return unit
    matrix = np.array(vectors)
    second = matrix[1] if len(matrix) > 1 else np.eye(3)[np.abs(matrix[0]).argmin()]
    product = np.cross(matrix[0], second)
    x, y, z = (float(part) for part in product / np.linalg.norm(product))
    return (x, y, z)
