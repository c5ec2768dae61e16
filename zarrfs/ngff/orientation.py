"""The orientation of spatial axes relative to the body of a subject.

An axis states it in the member ``orientation`` (RFC-4 of OME-NGFF, https://ngff.openmicroscopy.org/rfc/4), which names
the direction in which its coordinates increase: ``{"type": "anatomical", "value": "left-to-right"}``. Directions in
anatomical space are vectors with the components right, anterior, superior (RAS), as in NIfTI.

Axes that are not parallel to those of the body have the nearest orientation. Their exact directions are in the
attribute ``anatomical_directions`` of the group of the image, or of an array without such a group::

    {"space": "right-anterior-superior", "axes": ["z", "y", "x"], "directions": [[0, 0.1, 0.99], ...]}

There is one direction for each spatial axis: a point is the sum of the directions, each multiplied by the coordinate
along its axis (scale x index + translation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from zarrfs.ngff.reader import is_number

__all__ = [
    "ANATOMICAL_DIRECTIONS",
    "ORIENTATIONS",
    "OrientedAxis",
    "Vector",
    "direction_of",
    "directions_attribute",
    "nearest_orientations",
    "orientation_document",
    "parse_orientation",
    "with_exact_directions",
]

ANATOMICAL_DIRECTIONS = "anatomical_directions"
"""The name of the attribute."""

SPACE = "right-anterior-superior"

Vector = tuple[float, float, float]
"""A direction or position with the components right, anterior, superior."""

WORLD_ORIENTATIONS = {
    "left-to-right": (1.0, 0.0, 0.0),
    "right-to-left": (-1.0, 0.0, 0.0),
    "posterior-to-anterior": (0.0, 1.0, 0.0),
    "anterior-to-posterior": (0.0, -1.0, 0.0),
    "inferior-to-superior": (0.0, 0.0, 1.0),
    "superior-to-inferior": (0.0, 0.0, -1.0),
}
"""The orientations that have a direction in the space of NIfTI and DICOM."""

ENDS = (
    *(("proximal", "distal"), ("dorsal", "palmar"), ("dorsal", "plantar"), ("rostral", "caudal")),
    *(("cranial", "caudal"), ("dorsal", "ventral"), ("superficial", "deep"), ("apical", "basal")),
    ("apex", "base"),
)
"""The ends of axes whose direction depends on the species or on the organ, so that it is not known here."""

ORIENTATIONS = (
    *WORLD_ORIENTATIONS,
    *(f"{start}-to-{end}" for pair in ENDS for start, end in (pair, pair[::-1])),
)
"""The values that RFC-4 defines."""

MAX_DEVIATION = 1e-6
"""Directions that differ from an orientation by less than this have exactly this orientation, because the numbers of
NIfTI-1 are float32.
"""


class OrientedAxis(Protocol):
    """An axis with its name, its orientation, and its exact direction if that is not the one of the orientation."""

    @property
    def name(self) -> str | None: ...

    @property
    def orientation(self) -> str | None: ...

    @property
    def direction(self) -> Vector | None: ...


class _DataclassAxis(OrientedAxis, Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Axis = TypeVar("Axis", bound=_DataclassAxis)


class Orientation(NamedTuple):
    """The nearest orientation of a direction, and the direction if it differs from it."""

    value: str
    direction: Vector | None


def parse_orientation(axis: Mapping[str, Any]) -> str | None:
    """Return the anatomical orientation that the document of an axis states, or None."""
    document = axis.get("orientation")
    if not isinstance(document, Mapping) or document.get("type") != "anatomical":
        return None
    value = document.get("value")
    return value if isinstance(value, str) and value in ORIENTATIONS else None


def orientation_document(value: str) -> dict[str, str]:
    """Return the member ``orientation`` of the document of an axis."""
    return {"type": "anatomical", "value": value}


def direction_of(axis: OrientedAxis) -> Vector | None:
    """Return the direction of an axis in anatomical space, a unit vector, or None if it is not known."""
    if axis.direction is not None or axis.orientation is None:
        return axis.direction
    return WORLD_ORIENTATIONS.get(axis.orientation)


def nearest_orientations(directions: Sequence[Vector]) -> list[Orientation]:
    """Return the orientations of up to three directions, unit vectors. No two have the same world axis."""

    best = max(permutations(range(3), len(directions)), key=lambda axes: _alignment(directions, axes))
    found = []
    for vector, axis in zip(directions, best, strict=True):
        sign = -1.0 if vector[axis] < 0 else 1.0
        value, nearest = next(
            (value, unit) for value, unit in WORLD_ORIENTATIONS.items() if unit[axis] == sign
        )
        found.append(Orientation(value, None if _is_close(vector, nearest) else vector))
    return found


def directions_attribute(axes: Sequence[OrientedAxis]) -> dict[str, Any]:
    """Return the attributes that state the exact directions of axes; none if their orientations state them."""
    oriented = [(axis.name, direction_of(axis)) for axis in axes if direction_of(axis) is not None]
    if all(axis.direction is None for axis in axes):
        return {}
    names, directions = zip(*oriented, strict=True)
    value = {"space": SPACE, "axes": list(names), "directions": [list(vector) for vector in directions]}
    return {ANATOMICAL_DIRECTIONS: value}


def with_exact_directions(axes: Sequence[Axis], attributes: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes with the directions that the attribute states.

    The attribute is ignored if it is not valid or does not fit the axes: their names and orientations may have been
    changed by software that does not know it.
    """
    value = attributes.get(ANATOMICAL_DIRECTIONS)
    oriented = [axis for axis in axes if axis.orientation is not None]
    if not isinstance(value, Mapping) or value.get("space") != SPACE or not 0 < len(oriented) <= 3:
        return tuple(axes)
    directions = value.get("directions")
    if value.get("axes") != [axis.name for axis in oriented] or not isinstance(directions, list):
        return tuple(axes)
    vectors = [vector for item in directions if (vector := _unit_vector(item)) is not None]
    if not len(vectors) == len(directions) == len(oriented) or _volume(vectors) <= MAX_DEVIATION:
        return tuple(axes)
    stated = [WORLD_ORIENTATIONS.get(axis.orientation or "") for axis in oriented]
    if not _are_nearest(vectors, stated):
        return tuple(axes)
    found = iter(zip(vectors, stated, strict=True))
    return tuple(axis if axis.orientation is None else _directed(axis, *next(found)) for axis in axes)


def _directed(axis: Axis, vector: Vector, stated: Vector | None) -> Axis:
    is_exact = stated is not None and _is_close(vector, stated)
    return replace(axis, direction=None if is_exact else vector)


def _is_close(vector: Vector, other: Vector) -> bool:
    return all(abs(a - b) <= MAX_DEVIATION for a, b in zip(vector, other, strict=True))


def _alignment(vectors: Sequence[Vector], axes: Sequence[int]) -> float:
    return sum(abs(vector[axis]) for vector, axis in zip(vectors, axes, strict=True))


def _are_nearest(vectors: Sequence[Vector], stated: Sequence[Vector | None]) -> bool:
    """Return whether ``stated`` are the nearest orientations of the vectors. Several can be equally near."""
    known = [unit for unit in stated if unit is not None]
    if len({unit.index(max(unit, key=abs)) for unit in known}) < len(vectors):
        return False
    found = sum(
        a * b for vector, unit in zip(vectors, known, strict=True) for a, b in zip(vector, unit, strict=True)
    )
    best = max(_alignment(vectors, axes) for axes in permutations(range(3), len(vectors)))
    return found >= best - MAX_DEVIATION


def _unit_vector(value: object) -> Vector | None:
    if not isinstance(value, list) or len(value) != 3 or not all(map(is_number, value)):
        return None
    x, y, z = (float(number) for number in value)
    length = math.hypot(x, y, z)
    return (x, y, z) if abs(length - 1) <= 1e-3 else None


def _volume(vectors: Sequence[Vector]) -> float:
    """Return the volume of the parallelepiped of three unit vectors, the area of two, and the length of one."""
    matrix = np.array(vectors)
    return math.sqrt(max(0.0, float(np.linalg.det(matrix @ matrix.T))))
