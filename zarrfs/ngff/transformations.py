"""Coordinate transformations: functions from the points of one coordinate system to those of another.

The types are those of OME-Zarr 0.6. Scales and translations of earlier versions are the same ones. A transformation is
immutable. It does not know its coordinate systems: the number of input axes is an argument where it matters. See
https://ngff.openmicroscopy.org/latest/#trafo-types-md

Parameters that a document stores in an array are unknown (None) until they are read; see ``coordinate_graphs.py``. All
methods raise MetadataError if a transformation does not fit a number of axes, or if its parameters are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from zarrfs.errors import MetadataError
from zarrfs.ngff.vector_fields import FieldValues

__all__ = [
    "Affine",
    "Bijection",
    "ByDimension",
    "DimensionPart",
    "Identity",
    "MapAxis",
    "Matrix",
    "ProjectAxis",
    "Rotation",
    "Scale",
    "Sequence",
    "Transformation",
    "Translation",
    "VectorField",
    "is_singular",
    "sequence",
    "simplified",
]

Matrix = tuple[tuple[float, ...], ...]
"""The rows of a matrix."""

Points = npt.NDArray[np.float64]
"""An array of points, of shape (number, axes)."""

MAX_CONDITION = 1e12
"""A square matrix is singular if its condition number, with columns of length 1, is larger than this."""

MAX_DEVIATION = 1e-4
"""How much the product of a rotation and its transpose differs from the identity at most. Writers store few digits."""


class Transformation:
    """A function of points."""

    kind: str
    """The value of the member ``type`` in documents."""

    def output_rank(self, rank: int) -> int:
        """Return the number of output axes for a number of input axes."""
        raise NotImplementedError

    def matrix(self, rank: int) -> Points | None:
        """Return the affine matrix, of shape (output axes, input axes + 1); None if the function is not affine."""
        raise NotImplementedError

    def inverse(self) -> Transformation | None:
        """Return the inverse, None if there is none in closed form."""
        raise NotImplementedError

    def apply(self, points: npt.ArrayLike) -> Points:
        """Return the images of points of shape (number, input axes)."""
        array = np.asarray(points, np.float64)
        if array.ndim != 2:
            raise MetadataError(f"expected points of shape (number, axes), found shape {array.shape}")
        matrix = self.matrix(array.shape[1])
        if matrix is None:
            return self._map(array)
        return array @ matrix[:, :-1].T + matrix[:, -1]

    def _map(self, points: Points) -> Points:
        """Map points by a function that is not affine."""
        raise NotImplementedError

    def paths(self) -> Iterator[str]:
        """Yield the paths of the arrays and groups with parameters that have not been read."""
        return iter(())

    def _refuse(self, found: str, rank: int) -> NoReturn:
        axes = f"{rank} {'axis' if rank == 1 else 'axes'}"
        raise MetadataError(f"transformation {self.kind!r}: {found}, but its input has {axes}")


@dataclass(frozen=True)
class Identity(Transformation):
    """The function that changes nothing."""

    kind = "identity"

    def output_rank(self, rank: int) -> int:
        return rank

    def matrix(self, rank: int) -> Points:
        return np.eye(rank, rank + 1)

    def inverse(self) -> Transformation:
        return self


@dataclass(frozen=True)
class Scale(Transformation):
    """Each coordinate is multiplied by a factor."""

    factors: tuple[float, ...]
    kind = "scale"

    def output_rank(self, rank: int) -> int:
        if len(self.factors) != rank:
            self._refuse(f"it has {len(self.factors)} numbers", rank)
        return rank

    def matrix(self, rank: int) -> Points:
        self.output_rank(rank)
        return np.hstack([np.diag(self.factors), np.zeros((rank, 1))])

    def inverse(self) -> Transformation | None:
        return None if 0 in self.factors else Scale(tuple(1 / factor for factor in self.factors))


@dataclass(frozen=True)
class Translation(Transformation):
    """An offset is added to each coordinate."""

    offsets: tuple[float, ...]
    kind = "translation"

    def output_rank(self, rank: int) -> int:
        if len(self.offsets) != rank:
            self._refuse(f"it has {len(self.offsets)} numbers", rank)
        return rank

    def matrix(self, rank: int) -> Points:
        self.output_rank(rank)
        return np.column_stack([np.eye(rank), self.offsets])

    def inverse(self) -> Transformation:
        return Translation(tuple(0.0 - offset for offset in self.offsets))


@dataclass(frozen=True)
class MapAxis(Transformation):
    """A permutation: output axis ``i`` is the input axis ``axes[i]``."""

    axes: tuple[int, ...]
    kind = "mapAxis"

    def output_rank(self, rank: int) -> int:
        if sorted(self.axes) != list(range(rank)):
            self._refuse(f"{list(self.axes)} is not a permutation of 0 to {rank - 1}", rank)
        return rank

    def matrix(self, rank: int) -> Points:
        self.output_rank(rank)
        return np.eye(rank, rank + 1)[list(self.axes)]

    def inverse(self) -> Transformation:
        return MapAxis(tuple(self.axes.index(number) for number in range(len(self.axes))))


@dataclass(frozen=True)
class ProjectAxis(Transformation):
    """Input axes are dropped; then axes with the coordinate 0 are inserted. ``created`` are indices of the output."""

    dropped: tuple[int, ...] = ()
    created: tuple[int, ...] = ()
    kind = "projectAxis"

    def output_rank(self, rank: int) -> int:
        if any(not 0 <= number < rank for number in self.dropped) or len({*self.dropped}) < len(self.dropped):
            self._refuse(f"it drops the axes {list(self.dropped)}", rank)
        size = rank - len(self.dropped) + len(self.created)
        if any(not 0 <= number < size for number in self.created) or len({*self.created}) < len(self.created):
            self._refuse(f"it creates the axes {list(self.created)} of {size} output axes", rank)
        return size

    def matrix(self, rank: int) -> Points:
        matrix = np.zeros((self.output_rank(rank), rank + 1))
        kept = [number for number in range(rank) if number not in self.dropped]
        rows = [number for number in range(len(matrix)) if number not in self.created]
        matrix[rows, kept] = 1
        return matrix

    def inverse(self) -> Transformation | None:
        return None if self.dropped or self.created else self


@dataclass(frozen=True)
class Affine(Transformation):
    """A matrix with as many rows as output axes; the last column is the translation. ``path`` is that of its array."""

    rows: Matrix | None
    path: str | None = None
    kind = "affine"

    def output_rank(self, rank: int) -> int:
        rows = self._rows()
        if any(len(row) != rank + 1 for row in rows):
            self._refuse(f"the rows of its matrix have {len(rows[0])} numbers", rank)
        return len(rows)

    def matrix(self, rank: int) -> Points:
        self.output_rank(rank)
        return np.array(self._rows(), np.float64)

    def inverse(self) -> Transformation | None:
        matrix = np.array(self._rows(), np.float64)
        square = matrix[:, :-1]
        if is_singular(square):
            return None
        inverted = np.linalg.inv(square)
        return Affine(_rows_of(np.column_stack([inverted, -inverted @ matrix[:, -1]])))

    def paths(self) -> Iterator[str]:
        return iter(() if self.rows is not None or self.path is None else (self.path,))

    def _rows(self) -> Matrix:
        return _known_rows(self)


@dataclass(frozen=True)
class Rotation(Transformation):
    """A matrix with orthonormal rows. ``path`` is the path of its array."""

    rows: Matrix | None
    path: str | None = None
    kind = "rotation"

    def output_rank(self, rank: int) -> int:
        rows = _known_rows(self)
        if len(rows) != rank or any(len(row) != rank for row in rows):
            self._refuse(f"its matrix has the shape ({len(rows)}, {len(rows[0])})", rank)
        return rank

    def matrix(self, rank: int) -> Points:
        self.output_rank(rank)
        return np.column_stack([np.array(_known_rows(self), np.float64), np.zeros(rank)])

    def inverse(self) -> Transformation | None:
        matrix = np.array(_known_rows(self), np.float64)
        return None if is_singular(matrix) else Rotation(_rows_of(np.linalg.inv(matrix)))

    def is_orthonormal(self) -> bool:
        """Return whether the matrix is a rotation: orthonormal, with the determinant 1."""
        matrix = np.array(_known_rows(self), np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            return False
        deviation = np.abs(matrix @ matrix.T - np.eye(len(matrix))).max()
        return bool(deviation <= MAX_DEVIATION and np.linalg.det(matrix) > 0)

    def paths(self) -> Iterator[str]:
        return iter(() if self.rows is not None or self.path is None else (self.path,))


@dataclass(frozen=True)
class Sequence(Transformation):
    """Transformations that are applied one after the other, the first one first."""

    steps: tuple[Transformation, ...]
    kind = "sequence"

    def output_rank(self, rank: int) -> int:
        for step in self.steps:
            rank = step.output_rank(rank)
        return rank

    def matrix(self, rank: int) -> Points | None:
        composed = np.eye(rank, rank + 1)
        for step in self.steps:
            matrix = step.matrix(len(composed))
            if matrix is None:
                return None
            composed = matrix[:, :-1] @ composed
            composed[:, -1] += matrix[:, -1]
        return composed

    def inverse(self) -> Transformation | None:
        inverses = [step.inverse() for step in reversed(self.steps)]
        known = tuple(step for step in inverses if step is not None)
        return Sequence(known) if len(known) == len(inverses) else None

    def _map(self, points: Points) -> Points:
        for step in self.steps:
            points = step.apply(points)
        return points

    def paths(self) -> Iterator[str]:
        for step in self.steps:
            yield from step.paths()


@dataclass(frozen=True)
class Bijection(Transformation):
    """A transformation whose inverse is stated."""

    forward: Transformation
    backward: Transformation
    kind = "bijection"

    def output_rank(self, rank: int) -> int:
        size = self.forward.output_rank(rank)
        found = self.backward.output_rank(size)
        if found != rank or size != rank:
            self._refuse(f"its forward part has {size} output axes, its inverse {found}", rank)
        return size

    def matrix(self, rank: int) -> Points | None:
        return self.forward.matrix(rank)

    def inverse(self) -> Transformation:
        return Bijection(self.backward, self.forward)

    def _map(self, points: Points) -> Points:
        return self.forward.apply(points)

    def paths(self) -> Iterator[str]:
        yield from self.forward.paths()
        yield from self.backward.paths()


@dataclass(frozen=True)
class DimensionPart:
    """A transformation of some axes: its inputs and outputs are axes of the whole transformation."""

    transformation: Transformation
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ByDimension(Transformation):
    """Transformations of some axes each. Each output axis belongs to exactly one of them."""

    parts: tuple[DimensionPart, ...]
    kind = "byDimension"

    def output_rank(self, rank: int) -> int:
        outputs = sorted(number for part in self.parts for number in part.outputs)
        if outputs != list(range(len(outputs))):
            self._refuse(f"its output axes {outputs} are not 0 to {len(outputs) - 1}, each once", rank)
        for part in self.parts:
            if any(not 0 <= number < rank for number in part.inputs):
                self._refuse(f"it has the input axes {list(part.inputs)}", rank)
            found = part.transformation.output_rank(len(part.inputs))
            if found != len(part.outputs):
                self._refuse(f"a part with {found} output axes has the axes {list(part.outputs)}", rank)
        return len(outputs)

    def matrix(self, rank: int) -> Points | None:
        matrix = np.zeros((self.output_rank(rank), rank + 1))
        for part in self.parts:
            block = part.transformation.matrix(len(part.inputs))
            if block is None:
                return None
            for column, number in enumerate((*part.inputs, rank)):
                matrix[list(part.outputs), number] += block[:, column]
        return matrix

    def inverse(self) -> Transformation | None:
        inputs = [number for part in self.parts for number in part.inputs]
        if sorted(inputs) != list(range(sum(len(part.outputs) for part in self.parts))):
            return None
        parts = []
        for part in self.parts:
            inverse = part.transformation.inverse()
            if inverse is None:
                return None
            parts.append(DimensionPart(inverse, part.outputs, part.inputs))
        return ByDimension(tuple(parts))

    def _map(self, points: Points) -> Points:
        result = np.empty((len(points), self.output_rank(points.shape[1])))
        for part in self.parts:
            result[:, list(part.outputs)] = part.transformation.apply(points[:, list(part.inputs)])
        return result

    def paths(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.transformation.paths()


@dataclass(frozen=True)
class VectorField(Transformation):
    """Coordinates, or displacements, that are stored for the points of a regular grid. There is no inverse.

    Attributes:
        path: the path of the multiscale image with the vectors.
        is_displacement: whether the vectors are added to the points; otherwise they are the coordinates.
        interpolation: ``nearest``, ``linear`` or another method between grid points, which is applied as ``linear``.
        values: the vectors, None until they are read.
    """

    path: str
    is_displacement: bool
    interpolation: str = "linear"
    values: FieldValues | None = None

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "displacements" if self.is_displacement else "coordinates"

    def output_rank(self, rank: int) -> int:
        if self.values is None:
            # The length of its vectors is known when it has been read.
            return rank
        if self.values.rank != rank or (self.is_displacement and self.values.length != rank):
            found = f"its field has {self.values.rank} axes with vectors of {self.values.length} numbers"
            self._refuse(found, rank)
        return self.values.length

    def matrix(self, rank: int) -> None:
        self.output_rank(rank)

    def inverse(self) -> None:
        return None

    def _map(self, points: Points) -> Points:
        if self.values is None:
            raise MetadataError(f"the parameters of the transformation in {self.path!r} have not been read")
        vectors = self.values.at(points, nearest=self.interpolation == "nearest")
        return points + vectors if self.is_displacement else vectors

    def paths(self) -> Iterator[str]:
        return iter(() if self.values is not None else (self.path,))


def sequence(steps: tuple[Transformation, ...]) -> Transformation:
    """Return a sequence of transformations; the only one itself, and the identity if there is none."""
    return steps[0] if len(steps) == 1 else Sequence(steps) if steps else Identity()


def simplified(rows: Matrix) -> Transformation:
    """Return the least expressive transformation with an affine matrix: an identity, a translation, a scale, both, or
    an affine transformation, as the specification recommends.
    """
    matrix = np.array(rows, np.float64)
    square, offsets = matrix[:, :-1], tuple(float(value) for value in matrix[:, -1])
    factors = tuple(float(value) for value in square.diagonal())
    if square.shape[0] != square.shape[1] or np.any(square != np.diag(factors)) or min(factors) <= 0:
        return Affine(_rows_of(matrix))
    steps: list[Transformation] = []
    if any(factor != 1 for factor in factors):
        steps.append(Scale(factors))
    if any(offsets):
        steps.append(Translation(offsets))
    return sequence(tuple(steps))


def is_singular(matrix: npt.NDArray[Any]) -> bool:
    """Return whether a matrix has no inverse: it is not square, or its columns are, nearly, not independent."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        return True
    lengths = np.linalg.norm(matrix, axis=0)
    if not np.all(np.isfinite(lengths)) or 0 in lengths:
        return True
    return bool(np.linalg.cond(matrix / lengths) > MAX_CONDITION)


def _rows_of(matrix: npt.NDArray[Any]) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in matrix)


def _known_rows(transformation: Affine | Rotation) -> Matrix:
    if transformation.rows is None:
        where = f" in {transformation.path!r}" if transformation.path else ""
        raise MetadataError(f"the matrix of the transformation{where} has not been read")
    return transformation.rows
