"""The graph of coordinate systems of a group, with what it needs from the store: images, matrices and vector fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.errors import MetadataError, ZarrError
from zarrfs.ngff.coordinate_graphs import CoordinateGraph, Problem, coordinate_graph, joined_path
from zarrfs.ngff.load import Node, load
from zarrfs.ngff.model import CoordinateTransformation, Multiscales, Ngff
from zarrfs.ngff.transformations import (
    Affine,
    Bijection,
    ByDimension,
    Matrix,
    Rotation,
    Sequence,
    Transformation,
    VectorField,
)
from zarrfs.ngff.vector_fields import FieldValues
from zarrfs.text import short_repr

__all__ = ["load_graph", "with_parameters"]

MAX_MATRIX_AXES = 64
"""The number of rows and columns of a matrix that is read from an array."""

FIELD_AXES = ("displacement", "coordinate")
"""The types of the axis with the components of vectors."""


def load_graph(node: Node) -> CoordinateGraph:
    """Return the graph of the coordinate systems of a group. Reads from the store.

    The graph contains the images and the scene of the group, and the images to which their transformations refer. What
    does not exist or is not valid is in ``problems``; the rest can be used.
    """
    ngff = load(node)
    problems: list[Problem] = []
    images = [("", _complete(node, "", image, problems)) for image in ngff.multiscales]
    scene = ngff.scene
    if scene is not None:
        edges = tuple(_complete_edges(node, "", scene.transformations, problems))
        scene = replace(scene, transformations=edges)
    for path, place in _image_paths(ngff, problems).items():
        try:
            member = node[path]  # type: ignore[index]
            found = load(member).multiscales
        except (ZarrError, KeyError, TypeError) as error:
            problems.append(Problem(place, f"the image {short_repr(path)} cannot be read: {error}"))
            continue
        if not found:
            message = f"{short_repr(path)} is not an image: it has no 'multiscales' metadata"
            problems.append(Problem(place, message))
        images += [(path, _complete(node, path, image, problems)) for image in found]
    graph = coordinate_graph(images, scene)
    return replace(graph, problems=(*problems, *graph.problems))


def _image_paths(ngff: Ngff, problems: list[Problem]) -> dict[str, str]:
    """Return the paths of the groups to which the transformations of a group refer, with the place of a reference."""
    edges = [edge for image in ngff.multiscales for edge in image.transformations]
    edges += ngff.scene.transformations if ngff.scene is not None else ()
    paths: dict[str, str] = {}
    for edge in edges:
        for key, reference in (("input", edge.input), ("output", edge.output)):
            try:
                path = joined_path("", reference.path)
            except MetadataError as error:
                problems.append(Problem(edge.pointer, str(error)))
                continue
            if path and reference.name:
                paths.setdefault(path, f"{edge.pointer}/{key}/path")
    return paths


def _complete(node: Any, path: str, image: Multiscales, problems: list[Problem]) -> Multiscales:
    return replace(image, transformations=tuple(_complete_edges(node, path, image.transformations, problems)))


def _complete_edges(
    node: Any, base: str, edges: tuple[CoordinateTransformation, ...], problems: list[Problem]
) -> Iterator[CoordinateTransformation]:
    """Yield transformations with their parameters. Those whose parameters cannot be read are a problem."""
    for edge in edges:
        try:
            yield replace(edge, transformation=with_parameters(edge.transformation, node, base))
        except ZarrError as error:
            problems.append(Problem(f"{base}{edge.pointer}", str(error)))


def with_parameters(transformation: Transformation, node: Any, base: str = "") -> Transformation:
    """Return a transformation with the matrices and vector fields that are stored in arrays.

    ``base`` is the path of the group whose metadata contain it, relative to the group ``node``. The elements of vector
    fields are read when points are transformed. Raises ZarrError if parameters do not exist or are not valid.
    """
    if next(transformation.paths(), None) is None:
        return transformation
    if isinstance(transformation, Sequence):
        return Sequence(tuple(with_parameters(step, node, base) for step in transformation.steps))
    if isinstance(transformation, Bijection):
        forward, backward = (
            with_parameters(part, node, base) for part in (transformation.forward, transformation.backward)
        )
        return Bijection(forward, backward)
    if isinstance(transformation, ByDimension):
        parts = (
            replace(part, transformation=with_parameters(part.transformation, node, base))
            for part in transformation.parts
        )
        return ByDimension(tuple(parts))
    if isinstance(transformation, VectorField):
        return replace(transformation, values=_field(node, joined_path(base, transformation.path)))
    if isinstance(transformation, Affine | Rotation) and transformation.path is not None:
        return replace(transformation, rows=_matrix(node, joined_path(base, transformation.path)))
    return transformation


def _member(node: Any, path: str) -> Any:
    try:
        return node[path]
    except (KeyError, TypeError):
        raise MetadataError(f"{short_repr(path)} does not exist in the store") from None


def _matrix(node: Any, path: str) -> Matrix:
    array = _member(node, path)
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) != 2 or not all(1 <= size <= MAX_MATRIX_AXES for size in shape):
        found = "a group" if shape is None else f"an array of shape {shape}"
        raise MetadataError(f"expected a matrix in {short_repr(path)}, found {found}")
    if array.dtype.kind not in "iuf":
        raise MetadataError(
            f"expected a matrix of numbers in {short_repr(path)}, found data type {array.dtype}"
        )
    values = np.asarray(array[...], np.float64)
    if not np.all(np.isfinite(values)):
        raise MetadataError(f"the matrix in {short_repr(path)} contains numbers that are not finite")
    return tuple(tuple(float(value) for value in row) for row in values)


def _field(node: Any, path: str) -> FieldValues:
    group = _member(node, path)
    images = load(group).multiscales
    if not images or hasattr(group, "dtype"):
        raise MetadataError(f"the vector field {short_repr(path)} is not a multiscale image")
    image = images[0]
    axes = [number for number, axis in enumerate(image.axes) if axis.type in FIELD_AXES]
    if len(axes) != 1:
        raise MetadataError(
            f"the vector field {short_repr(path)} needs one axis of type 'displacement' or 'coordinate', "
            f"found {len(axes)}"
        )
    level = image.levels[0]
    array = _member(group, level.path.strip("/"))
    rank = len(image.axes)
    if not hasattr(array, "dtype") or len(array.shape) != rank or array.dtype.kind not in "iuf":
        raise MetadataError(
            f"the vector field {short_repr(path)} has {rank} axes, which do not fit {level.path!r}"
        )
    scale, translation = level.scale, level.translation or (0.0,) * rank
    others = [number for number in range(rank) if number != axes[0]]
    if scale is None or any(scale[number] == 0 for number in others):
        raise MetadataError(f"the positions of the vector field {short_repr(path)} are not known")
    return FieldValues(
        array.__getitem__,
        tuple(array.shape),
        axes[0],
        tuple(scale[number] for number in others),
        tuple(translation[number] for number in others),
    )
