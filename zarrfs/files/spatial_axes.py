"""Scale, position and orientation of spatial axes from the affine transformation in the header of a file."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zarrfs.files.image_groups import ImageAxis
from zarrfs.ngff.orientation import nearest_orientations

__all__ = ["LPS_TO_RAS", "is_outside_plane", "is_plain", "oriented_axes", "plane_normal"]

LPS_TO_RAS = np.array([-1.0, -1.0, 1.0])
"""The signs that convert left, posterior, superior to right, anterior, superior, and back."""

MIN_VOLUME = 1e-6
"""The smallest volume of the unit vectors of axes that are not in one plane."""

MAX_ROUNDING = 1e-6
"""Relative differences of this size are rounding errors of float32."""


def oriented_axes(
    axes: Sequence[ImageAxis], vectors: npt.NDArray[np.float64], origin: npt.NDArray[np.float64]
) -> list[ImageAxis] | None:
    """Return spatial axes with the scale, position and orientation that an affine transformation states.

    ``vectors`` has a row for each of up to three axes: the vector from one element to the next one, with the components
    right, anterior, superior. ``origin`` is the position of the first element. The component of the position that is
    perpendicular to all axes of an image with fewer than three is omitted. The scale of an axis is replaced if it
    differs from the length of the vector by more than rounding.

    Returns None if the numbers are not finite or the vectors are in one plane: they describe no image then.
    """
    if not (np.isfinite(vectors).all() and np.isfinite(origin).all()):
        return None
    lengths = _lengths(vectors)
    if not ((lengths > 0) & np.isfinite(lengths)).all():
        return None
    units = vectors / lengths[:, np.newaxis]
    if float(np.linalg.det(units @ units.T)) < MIN_VOLUME**2:
        return None
    orientations = nearest_orientations([(float(x), float(y), float(z)) for x, y, z in units])
    if all(item.direction is None for item in orientations):
        # The directions are exact: the positions are numbers of the header, apart from their sign.
        units = np.round(units)
    with np.errstate(all="ignore"):
        positions = np.linalg.lstsq(units.T, origin, rcond=None)[0] if np.any(units % 1) else units @ origin
    if not np.isfinite(positions).all():
        return None
    return [
        axis._replace(
            scale=axis.scale if abs(axis.scale - length) <= MAX_ROUNDING * length else float(length),
            origin=float(position) + 0.0,  # not -0.0
            orientation=orientation.value,
            direction=orientation.direction,
        )
        for axis, length, position, orientation in zip(axes, lengths, positions, orientations, strict=True)
    ]


def is_outside_plane(vectors: npt.NDArray[np.float64], origin: npt.NDArray[np.float64]) -> bool:
    """Return whether a position is outside the plane through 0 that two vectors span, by more than rounding.

    ``vectors`` has a row for each vector.
    """
    if not (np.isfinite(vectors).all() and np.isfinite(origin).all()):
        return False
    with np.errstate(all="ignore"):
        units = vectors / _lengths(vectors)[:, np.newaxis]
        normal = np.cross(*units)
        distance = abs(float(normal @ origin)) / math.hypot(*normal)
    return bool(distance > MAX_ROUNDING * math.hypot(*origin))


def plane_normal(vectors: npt.NDArray[np.float64], length: float) -> npt.NDArray[np.float64]:
    """Return the vector of a length that is perpendicular to two vectors, the rows of ``vectors``."""
    with np.errstate(all="ignore"):
        normal = np.cross(*(vectors / _lengths(vectors)[:, np.newaxis]))
        result: npt.NDArray[np.float64] = normal * (length / math.hypot(*normal))
    return result


def is_plain(vectors: npt.NDArray[np.float64]) -> bool:
    """Return whether the axes are those of the coordinate system, in this order and in these directions."""
    lengths = _lengths(vectors)
    return bool(
        (lengths > 0).all()
        and np.allclose(vectors / lengths[:, np.newaxis], np.eye(3)[: len(vectors)], 0, MAX_ROUNDING)
    )


def _lengths(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the length of each row. The squares of its numbers need not be representable."""
    return np.array([math.hypot(*row) for row in vectors.tolist()])
