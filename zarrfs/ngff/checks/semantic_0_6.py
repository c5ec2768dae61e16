"""The semantic tier for what OME-Zarr 0.6 adds, without the store: references and transformations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zarrfs.errors import MetadataError
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.coordinate_graphs import CoordinateGraph, coordinate_graph, unconnected, unsuitable_reason
from zarrfs.ngff.model import CoordinateSystem, CoordinateTransformation, Ngff, SystemReference
from zarrfs.ngff.transformations import (
    Affine,
    Bijection,
    ByDimension,
    Rotation,
    Sequence,
    Transformation,
    is_singular,
)
from zarrfs.ngff.units import convert
from zarrfs.ngff.version_0_6 import SYSTEMS, TRANSFORMATIONS
from zarrfs.text import short_repr

__all__ = ["axis_findings", "semantic_0_6_findings", "unconnected_findings"]

Systems = Mapping[SystemReference, CoordinateSystem]

MAX_DEVIATION = 1e-3
"""How much the two parts of a bijection may differ from inverse functions, relative to the numbers of its matrices."""


def semantic_0_6_findings(document: Mapping[str, Any], ngff: Ngff) -> Iterator[Finding]:
    """Yield the violations of the text of OME-Zarr 0.6rc0 within a document, whose model is ``ngff``."""
    for number, item in _objects(document.get("multiscales")):
        yield from _names(item, pointer("multiscales", number))
        yield from _levels(item, pointer("multiscales", number))
    scene = document.get("scene")
    if isinstance(scene, Mapping):
        yield from _names(scene, "/scene")
    graph = coordinate_graph([("", image) for image in ngff.multiscales], ngff.scene)
    edges = [edge for image in ngff.multiscales for edge in image.transformations]
    for edge in edges:
        yield from _edge(edge, graph.systems)
    for edge in ngff.scene.transformations if ngff.scene else ():
        yield from _edge(edge, graph.systems)
    for image in ngff.multiscales:
        yield from _links(image.transformations, image.system_name)
    if ngff.multiscales and len(graph.transformations) == len(edges) + sum(
        len(image.levels) for image in ngff.multiscales
    ):
        yield from unconnected_findings(graph, "/multiscales")


def unconnected_findings(graph: CoordinateGraph, location: str) -> Iterator[Finding]:
    """Yield the coordinate systems that no transformations connect with the others."""
    for reference in unconnected(graph):
        yield Finding(
            location, f"no transformation connects the coordinate system {reference} with the others"
        )


def _objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, Mapping):
            yield number, item


def _names(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, system in _objects(item.get(SYSTEMS)):
        name = system.get("name")
        if isinstance(name, str) and name in seen:
            yield Finding(
                location + pointer(SYSTEMS, number, "name"),
                f"the names of coordinate systems must be unique, but {short_repr(name)} occurs more than once",
            )
        elif isinstance(name, str):
            seen.add(name)


def _levels(item: Mapping[str, Any], location: str) -> Iterator[Finding]:
    """Check the references of the levels, and the order of scale and translation."""
    names = {system.get("name") for _, system in _objects(item.get(SYSTEMS)) if _is_text(system.get("name"))}
    outputs: dict[str, int] = {}
    for number, dataset in _objects(item.get("datasets")):
        for position, step in _objects(dataset.get(TRANSFORMATIONS)):
            place = location + pointer("datasets", number, TRANSFORMATIONS, position)
            source, target = step.get("input"), step.get("output")
            path = source.get("path") if isinstance(source, Mapping) else None
            if _is_text(path) and _is_text(dataset.get("path")) and path != dataset["path"]:
                yield Finding(
                    place + "/input/path",
                    f"the input must be the path of the level, {short_repr(dataset['path'])}, found {short_repr(path)}",
                )
            name = target.get("name") if isinstance(target, Mapping) else None
            if isinstance(name, str):
                outputs.setdefault(name, number)
                if name not in names:
                    yield Finding(
                        place + "/output/name",
                        f"the coordinate system {short_repr(name)} does not exist",
                    )
            kinds = [part.get("type") for _, part in _objects(step.get("transformations"))]
            if kinds == ["translation", "scale"]:
                yield Finding(place + "/transformations", "the translation must come after the scale")
    if len(outputs) > 1:
        found = ", ".join(map(short_repr, outputs))
        yield Finding(
            location + "/datasets",
            f"the transformations of all levels must lead to the same coordinate system, found {found}",
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _links(edges: tuple[CoordinateTransformation, ...], intrinsic: str) -> Iterator[Finding]:
    """Check that the transformations of an image begin or end at the coordinate system of its levels."""
    own = SystemReference("", intrinsic)
    for edge in edges:
        if own not in (edge.input, edge.output):
            yield Finding(
                _place(edge),
                f"input or output must be the coordinate system of the levels, {short_repr(intrinsic)}",
            )
        if edge.input.path or edge.output.path:
            kinds = {step.kind for step in _parts(edge.transformation)}
            if not kinds <= {"identity", "scale", "translation", "sequence"}:
                yield Finding(
                    _place(edge) + "/type",
                    "the transformation between an image and its label image must be an identity, a scale or a "
                    f"translation, found {short_repr(edge.transformation.kind)}",
                )


def _edge(edge: CoordinateTransformation, systems: Systems) -> Iterator[Finding]:
    yield from _transformation(edge.transformation, _place(edge))
    # What other groups or arrays contain is not known here.
    if edge.input.path or edge.output.path or next(edge.transformation.paths(), None) is not None:
        return
    reason = unsuitable_reason(edge, systems)
    if reason is not None:
        yield Finding(_place(edge), reason)
    else:
        yield from axis_findings(edge, systems)


def _transformation(transformation: Transformation, place: str) -> Iterator[Finding]:
    """Yield what is wrong with a transformation itself."""
    for part in _parts(transformation):
        try:
            if isinstance(part, Rotation) and not part.is_orthonormal():
                yield Finding(place, "the matrix of a rotation must be orthonormal, with determinant 1")
            if isinstance(part, Affine) and _is_singular(part):
                yield Finding(place, "the matrix is singular: the transformation has no inverse")
            if isinstance(part, Bijection):
                yield from _bijection(part, place)
        except MetadataError:
            continue  # a matrix that is stored in an array


def _is_singular(part: Affine) -> bool:
    rows = part.rows
    return rows is not None and len(rows) + 1 == len(rows[0]) and is_singular(np.array(rows)[:, :-1])


def _bijection(part: Bijection, place: str) -> Iterator[Finding]:
    rank = next(
        (
            rank
            for rank in range(1, 6)
            if _matrix(part.forward, rank) is not None and _matrix(part.backward, rank) is not None
        ),
        None,
    )
    if rank is None:
        return
    matrix = Sequence((part.forward, part.backward)).matrix(rank)
    forward = part.forward.matrix(rank)
    if matrix is None or forward is None:
        return
    size = max(1.0, float(np.abs(forward).max()))
    if np.abs(matrix - np.eye(rank, rank + 1)).max() > MAX_DEVIATION * size:
        yield Finding(place, "the parts 'forward' and 'inverse' are not inverse functions")


def _matrix(transformation: Transformation, rank: int) -> Any:
    try:
        return transformation.matrix(rank)
    except MetadataError:
        return None


def axis_findings(edge: CoordinateTransformation, systems: Systems) -> Iterator[Finding]:
    """Yield what is wrong with the units and types of the axes that a transformation between systems connects."""
    inputs, outputs = systems[edge.input].axes, systems[edge.output].axes
    matrix = _matrix(edge.transformation, len(inputs))
    if matrix is None or matrix.shape != (len(outputs), len(inputs) + 1):
        return
    for row, target in zip(matrix, outputs, strict=True):
        used = [(float(row[i]), axis) for i, axis in enumerate(inputs) if row[i]]
        for _, source in used:
            if source.discrete is False and target.discrete:
                yield Finding(
                    _place(edge),
                    f"the discrete axis {short_repr(target.name)} depends on {short_repr(source.name)}, which is not "
                    "discrete",
                )
        units = {source.unit for _, source in used if source.unit is not None}
        if len(units) > 1:
            found = ", ".join(sorted(map(short_repr, units)))
            yield Finding(
                _place(edge), f"axis {short_repr(target.name)} depends on axes with different units: {found}"
            )
        elif len(used) == 1 and target.unit is not None and used[0][1].unit not in (None, target.unit):
            factor, source = used[0]
            expected = convert(1.0, source.unit, target.unit)
            if expected is None:
                yield Finding(
                    _place(edge),
                    f"axis {short_repr(target.name)} has the unit {short_repr(target.unit)}, and its input "
                    f"{short_repr(source.name)} has {short_repr(source.unit)}, which cannot be converted to it",
                )
            elif abs(factor) == 1:
                yield Finding(
                    _place(edge),
                    f"axis {short_repr(target.name)} has the unit {short_repr(target.unit)}, and its input "
                    f"{short_repr(source.name)} has {short_repr(source.unit)}: expected the factor {expected:g}, "
                    "found 1",
                )


def _parts(transformation: Transformation) -> Iterator[Transformation]:
    """Yield a transformation and all that it contains."""
    yield transformation
    if isinstance(transformation, Sequence):
        inner: tuple[Transformation, ...] = transformation.steps
    elif isinstance(transformation, Bijection):
        inner = (transformation.forward, transformation.backward)
    elif isinstance(transformation, ByDimension):
        inner = tuple(part.transformation for part in transformation.parts)
    else:
        inner = ()
    for part in inner:
        yield from _parts(part)


def _place(edge: CoordinateTransformation) -> str:
    return edge.pointer.removeprefix("/ome")
