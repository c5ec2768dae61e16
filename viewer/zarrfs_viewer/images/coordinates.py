"""The coordinate systems of an image or a scene, and images placed in one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.ngff import (
    Axis,
    Composition,
    CoordinateGraph,
    Multiscales,
    Ngff,
    SystemReference,
    compose,
    load_graph,
    ome_attributes,
)
from zarrfs.ngff.coordinate_graphs import joined_path
from zarrfs.ngff.transformations import (
    Bijection,
    ByDimension,
    Identity,
    Matrix,
    Sequence,
    Transformation,
    VectorField,
)
from zarrfs.text import short_repr
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.placement import placed

__all__ = ["Coordinates", "Extent", "load_coordinates", "scene_paths"]

Extent = Mapping[str, tuple[float, float]]
"""The ends of the box of an image along the axes of a system, by their names."""


@dataclass(frozen=True)
class Coordinates:
    """The coordinate systems of the images of a group.

    Attributes:
        graph: the systems and the transformations between them.
        intrinsic: the reference of the intrinsic system of each image, by the path for ``Dataset.open_image``.
        finest: the path of the array of the finest level of each image, in the same way.
        reasons: why a transformation of an image, by its path, is not part of the graph.
    """

    graph: CoordinateGraph
    intrinsic: Mapping[str, SystemReference]
    finest: Mapping[str, str]
    reasons: Mapping[str, str]

    @property
    def systems(self) -> tuple[SystemReference, ...]:
        """The systems that can be shown: those that have a name, the recommended one first."""
        named = [reference for reference in self.graph.systems if reference.name]
        shown = self.graph.shown
        return tuple(sorted(named, key=lambda reference: reference != shown))

    @property
    def shown(self) -> SystemReference | None:
        """The system that is shown at first."""
        return next(iter(self.systems), None)

    def matrix(self, path: str, system: SystemReference) -> tuple[Composition, Matrix, tuple[str, ...]]:
        """Return the transformation of the image at a path to a system, its affine matrix, and what is not applied.

        Raises ZarrError if there is none.
        """
        if path not in self.intrinsic:
            reason = self.reasons.get(path)
            raise MetadataError(reason or f"the image {short_repr(path)} has no coordinate system")
        try:
            composition = compose(self.graph, self.intrinsic[path], system)
        except MetadataError:
            if path in self.reasons:
                raise MetadataError(self.reasons[path]) from None
            raise
        if composition.matrix is not None:
            return composition, _finite(composition.matrix), ()
        fields = tuple(_fields(composition.transformation))
        matrix = _without_fields(composition.transformation).matrix(len(composition.input.axes))
        if matrix is None:
            names = ", ".join(short_repr(field.path) for field in fields)
            raise UnsupportedError(
                f"the transformation to {system} is not affine: it takes coordinates from {names}, which the viewer "
                "does not apply"
            )
        rows = tuple(tuple(float(value) for value in row) for row in matrix)
        return composition, _finite(rows), tuple(field.path for field in fields)

    def placed(
        self, image: Image, path: str, system: SystemReference | None = None, is_oversampled: bool = False
    ) -> Image:
        """Return an image in a system, by default in the first one. Raises ZarrError if that is impossible."""
        system = self.shown if system is None else system
        if system is None:
            return image
        is_known = path in self.intrinsic
        parent = path if is_known else _parent(path)
        composition, matrix, unapplied = self.matrix(parent, system)
        axes = composition.output.axes
        if not is_known:
            axes, matrix = _for_axes(image, composition, matrix)
        result = placed(image, axes, matrix, is_oversampled)
        if not unapplied:
            return result
        names = ", ".join(map(short_repr, unapplied))
        note = (
            f"{image.name} is displayed without the displacements {names}: its positions are those of the other "
            "transformations."
        )
        return replace(result, notes=(*image.notes, note))

    def extent(self, path: str, shape: tuple[int, ...], system: SystemReference | None = None) -> Extent:
        """Return the box of the image at a path, whose finest level has a shape, in a system. Raises ZarrError."""
        system = self.shown if system is None else system
        if system is None:
            return {}
        composition, rows, _ = self.matrix(path, system)
        array = SystemReference(self.finest[path])
        to_intrinsic = compose(self.graph, array, self.intrinsic[path]).matrix
        if to_intrinsic is None or len(to_intrinsic[0]) != len(shape) + 1:
            raise MetadataError(f"{path}: the axes do not fit an array of {len(shape)} dimensions")
        inner, outer = np.array(to_intrinsic, np.float64), np.array(rows, np.float64)
        square, offset = outer[:, :-1] @ inner[:, :-1], outer[:, :-1] @ inner[:, -1] + outer[:, -1]
        start = offset - square.sum(axis=1) / 2  # the corner of the first pixel
        sides = square * np.array(shape)
        low, high = start + np.minimum(sides, 0).sum(axis=1), start + np.maximum(sides, 0).sum(axis=1)
        return {
            axis.name: (float(low[number]), float(high[number]))
            for number, axis in enumerate(composition.output.axes)
            if square[number].any()
        }


def load_coordinates(node: Any, ngff: Ngff) -> Coordinates | None:
    """Return the coordinate systems of the images of a group; None if there is nothing to choose. Blocks.

    ``ngff`` are the metadata of the group.
    """
    if ngff.scene is None and not any(map(_has_choice, ngff.multiscales)):
        return None
    graph = load_graph(node)
    intrinsic: dict[str, SystemReference] = {}
    finest: dict[str, str] = {}
    found: dict[str, list[SystemReference]] = {}
    for edge in graph.transformations:
        systems = found.setdefault(edge.output.path, [])
        if not edge.input.name and edge.output not in systems:  # from the indices of a level
            number = len(systems)
            systems.append(edge.output)
            path = f"{edge.output.path}#{number}" if number else edge.output.path
            intrinsic[path], finest[path] = edge.output, edge.input.path
    reasons: dict[str, str] = {}
    problems = (*ngff.problems, *map(str, graph.problems))
    for place, path in _scene_references(node.attrs):
        for problem in problems:
            if problem.startswith((f"{place}/", f"{place}:")):
                reasons.setdefault(path, problem)
    return Coordinates(graph, intrinsic, finest, reasons)


def scene_paths(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths of the images of a scene, in the order of its attributes, also of those that are not valid."""
    return tuple(dict.fromkeys(path for _, path in _scene_references(attributes)))


def _scene_references(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the places of transformations of a scene, and the path of each image to which they refer."""
    ome, pointer = ome_attributes(attributes)
    scene = ome.get("scene")
    edges = scene.get("coordinateTransformations") if isinstance(scene, Mapping) else None
    for number, edge in enumerate(edges if isinstance(edges, list) else ()):
        for key in ("input", "output"):
            reference = edge.get(key) if isinstance(edge, Mapping) else None
            path = reference.get("path") if isinstance(reference, Mapping) else None
            if isinstance(path, str) and isinstance(reference, Mapping) and reference.get("name"):
                with suppress(MetadataError):  # a path that leaves the hierarchy is a problem of the graph
                    inner = joined_path("", path)
                    if inner:
                        yield f"{pointer}/scene/coordinateTransformations/{number}", inner


def _has_choice(image: Multiscales) -> bool:
    return bool(image.other_systems or image.transformations)


def _fields(transformation: Transformation) -> Iterator[VectorField]:
    """Yield the vector fields of a transformation."""
    if isinstance(transformation, VectorField):
        yield transformation
    for part in _parts(transformation):
        yield from _fields(part)


def _parts(transformation: Transformation) -> tuple[Transformation, ...]:
    if isinstance(transformation, Sequence):
        return transformation.steps
    if isinstance(transformation, Bijection):
        return (transformation.forward,)
    if isinstance(transformation, ByDimension):
        return tuple(part.transformation for part in transformation.parts)
    return ()


def _without_fields(transformation: Transformation) -> Transformation:
    """Return a transformation without its displacements. Fields of coordinates remain."""
    if isinstance(transformation, VectorField) and transformation.is_displacement:
        return Identity()
    if isinstance(transformation, Sequence):
        return Sequence(tuple(map(_without_fields, transformation.steps)))
    if isinstance(transformation, Bijection):
        return _without_fields(transformation.forward)
    if isinstance(transformation, ByDimension):
        parts = (
            replace(part, transformation=_without_fields(part.transformation))
            for part in transformation.parts
        )
        return ByDimension(tuple(parts))
    return transformation


def _parent(path: str) -> str:
    """Return the path of the image to which a label image belongs; the path itself if it is none."""
    before, separator, _ = f"/{path}".rpartition("/labels/")
    return before.strip("/") if separator else path


def _for_axes(image: Image, composition: Composition, matrix: Matrix) -> tuple[tuple[Axis, ...], Matrix]:
    """Return the part of the transformation of an image for its label image, which may lack some of its axes."""
    names = [axis.name for axis in composition.input.axes]
    if not {axis.name for axis in image.axes if axis.name} <= set(names):
        raise UnsupportedError(f"{image.name} has other axes than its image")
    columns = [names.index(axis.name) for axis in image.axes if axis.name]
    full = np.array(matrix, np.float64)
    rows = [row for row in range(len(full)) if full[row, columns].any()]
    part = full[np.ix_(rows, [*columns, -1])]
    axes = tuple(composition.output.axes[row] for row in rows)
    return axes, tuple(tuple(float(value) for value in row) for row in part)


def _finite(matrix: Matrix) -> Matrix:
    if not np.all(np.isfinite(matrix)):
        raise MetadataError("the transformation contains numbers that are not finite")
    return matrix
