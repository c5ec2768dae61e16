"""What OME-Zarr 0.6 adds to the metadata: coordinate systems, transformations between them, and scenes.

The version is a release candidate, 0.6rc0 of July 2026. This module contains the names of its members and their
meaning; ``checks.schema_0_6`` contains the rules for valid documents. Invalid parts are ignored and noted. The strings
of earlier drafts as references to coordinate systems are accepted. See
https://ngff.openmicroscopy.org/latest/#coord-trafo-md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.ngff.model import CoordinateSystem, CoordinateTransformation, Scene, SystemReference
from zarrfs.ngff.parse_axes import parse_axes
from zarrfs.ngff.reader import Reader, is_number
from zarrfs.ngff.transformations import (
    Affine,
    Bijection,
    ByDimension,
    DimensionPart,
    Identity,
    MapAxis,
    Matrix,
    ProjectAxis,
    Rotation,
    Scale,
    Sequence,
    Transformation,
    Translation,
    VectorField,
)
from zarrfs.text import short_repr

__all__ = [
    "SYSTEMS",
    "TRANSFORMATIONS",
    "VERSION_0_6",
    "axes_of",
    "level_system",
    "parse_scene",
    "parse_systems",
    "parse_transformation",
    "parse_transformations",
    "transformation_document",
    "with_systems_of",
]

VERSION_0_6 = "0.6rc0"
"""The text of the member ``version``."""

SYSTEMS, TRANSFORMATIONS = "coordinateSystems", "coordinateTransformations"

MAX_DEPTH = 16
"""How deeply transformations may contain each other."""

MAX_AXES = 64
"""The number of axes of a matrix."""


def parse_scene(scene: Reader) -> Scene:
    """Return the model of the object ``scene``."""
    return Scene(parse_systems(scene), parse_transformations(scene))


def parse_systems(item: Reader) -> tuple[CoordinateSystem, ...]:
    """Return the coordinate systems of an image or of a scene. If a name is repeated, the first one is used."""
    systems: dict[str, CoordinateSystem] = {}
    for number, reader in enumerate(item.mappings(SYSTEMS)):
        name = reader.string("name")
        if not name:
            reader.note("name", "no name: the coordinate system cannot be referred to")
            name = f"system {number}"
        if name in systems:
            reader.note("name", f"the name {short_repr(name)} is repeated: ignored")
            continue
        systems[name] = CoordinateSystem(name, parse_axes(reader))
    return tuple(systems.values())


def axes_of(item: Mapping[str, Any]) -> list[Any]:
    """Return the stored axes of an image of any version: since 0.6 those of the coordinate system of its levels."""
    if "axes" in item or SYSTEMS not in item:
        axes = item.get("axes")
        return axes if isinstance(axes, list) else []
    systems = list(Reader(item, "", []).mappings(SYSTEMS))
    datasets = Reader(item, "", []).mappings("datasets")
    names = [name for dataset in datasets if (name := level_system(dataset)) is not None]
    named = [system for system in systems if system.document.get("name") in names] or systems
    axes = named[0].document.get("axes") if named else None
    return axes if isinstance(axes, list) else []


def level_system(dataset: Reader) -> str | None:
    """Return the name of the coordinate system to which the transformation of a level leads, None without one."""
    for reader in dataset.mappings(TRANSFORMATIONS):
        target = _reference(reader, "output")
        if target is not None:
            return target.name
    return None


def parse_transformations(item: Reader) -> tuple[CoordinateTransformation, ...]:
    """Return the transformations between coordinate systems of an image or a scene."""
    found = []
    for reader in item.mappings(TRANSFORMATIONS):
        source, target = _reference(reader, "input"), _reference(reader, "output")
        transformation = parse_transformation(reader)
        if source is None or target is None or transformation is None:
            continue
        name = reader.document.get("name")
        name = name if isinstance(name, str) else None
        found.append(CoordinateTransformation(source, target, transformation, name, reader.pointer))
    return tuple(found)


def _reference(reader: Reader, key: str) -> SystemReference | None:
    value = reader.document.get(key)
    if isinstance(value, str):
        return SystemReference("", value)
    name, path = (value.get("name"), value.get("path")) if isinstance(value, Mapping) else (None, None)
    name, path = (text if isinstance(text, str) else "" for text in (name, path))
    if name or path:
        return SystemReference(path.strip("/"), name)
    reader.note(key, f"expected a reference to a coordinate system, found {short_repr(value)}: ignored")
    return None


def parse_transformation(reader: Reader, depth: int = 0) -> Transformation | None:
    """Return the transformation that an object describes; None, with a note, if it is not valid."""
    kind = reader.document.get("type")
    if depth > MAX_DEPTH:
        reader.note("type", "transformations are nested too deeply: ignored")
        return None
    if kind == "identity":
        return Identity()
    if kind in ("scale", "translation"):
        numbers = _numbers(reader, kind)
        if numbers is None:
            return None
        return Scale(numbers) if kind == "scale" else Translation(numbers)
    if kind in ("affine", "rotation"):
        rows, path = _matrix(reader, kind)
        if rows is None and path is None:
            return None
        return Affine(rows, path) if kind == "affine" else Rotation(rows, path)
    if kind == "mapAxis":
        axes = _indices(reader, "mapAxis")
        return None if axes is None else MapAxis(axes)
    if kind == "projectAxis":
        dropped, created = (
            _indices(reader, key) if key in reader.document else ()
            for key in ("droppedInputs", "createdOutputs")
        )
        return None if dropped is None or created is None else ProjectAxis(dropped, created)
    if kind == "sequence":
        return _sequence(reader, depth)
    if kind == "bijection":
        return _bijection(reader, depth)
    if kind == "byDimension":
        return _by_dimension(reader, depth)
    if kind in ("displacements", "coordinates"):
        path = reader.string("path")
        if not path:
            reader.note("path", "the path of the vector field is missing: ignored")
            return None
        method = reader.document.get("interpolation")
        return VectorField(path, kind == "displacements", method if isinstance(method, str) else "linear")
    reader.note("type", f"transformation {short_repr(kind)} is not supported: ignored")
    return None


def _sequence(reader: Reader, depth: int) -> Transformation | None:
    steps = [parse_transformation(step, depth + 1) for step in reader.mappings("transformations")]
    known = tuple(step for step in steps if step is not None)
    if not steps or len(known) < len(steps):
        reader.note("transformations", "a transformation of the sequence is missing or invalid: ignored")
        return None
    return Sequence(known)


def _bijection(reader: Reader, depth: int) -> Transformation | None:
    parts = [
        None if part is None else parse_transformation(part, depth + 1)
        for part in (reader.mapping("forward"), reader.mapping("inverse"))
    ]
    forward, backward = parts
    if forward is None or backward is None:
        reader.note("type", "a bijection needs the valid members 'forward' and 'inverse': ignored")
        return None
    return Bijection(forward, backward)


def _by_dimension(reader: Reader, depth: int) -> Transformation | None:
    parts = []
    for item in reader.mappings("transformations"):
        # Earlier drafts, and an example of 0.6rc0, have the members of the transformation in the item itself.
        inner = item.mapping("transformation") if "transformation" in item.document else item
        transformation = None if inner is None else parse_transformation(inner, depth + 1)
        inputs, outputs = _indices(item, "inputAxes"), _indices(item, "outputAxes")
        if transformation is None or inputs is None or outputs is None:
            reader.note("transformations", "a part of the transformation is invalid: ignored")
            return None
        parts.append(DimensionPart(transformation, inputs, outputs))
    return ByDimension(tuple(parts)) if parts else None


def _numbers(reader: Reader, key: str) -> tuple[float, ...] | None:
    values = reader.document.get(key)
    if not isinstance(values, list) or not values or not all(map(is_number, values)):
        reader.note(key, f"expected a list of finite numbers, found {short_repr(values)}: ignored")
        return None
    return tuple(float(value) for value in values)


def _indices(reader: Reader, key: str) -> tuple[int, ...] | None:
    values = reader.document.get(key)
    if not isinstance(values, list) or not all(is_number(value) and value == int(value) for value in values):
        reader.note(key, f"expected a list of numbers of axes, found {short_repr(values)}: ignored")
        return None
    return tuple(int(value) for value in values)


def _matrix(reader: Reader, key: str) -> tuple[Matrix | None, str | None]:
    """Return the rows of a matrix, or the path of the array that contains it; neither if both are invalid."""
    rows, path = reader.document.get(key), reader.document.get("path")
    if rows is None and isinstance(path, str) and path:
        return None, path
    width = len(rows[0]) if isinstance(rows, list) and rows and isinstance(rows[0], list) else 0
    if (
        not isinstance(rows, list)
        or not 1 <= width <= MAX_AXES
        or len(rows) > MAX_AXES
        or not all(isinstance(row, list) and len(row) == width and all(map(is_number, row)) for row in rows)
    ):
        found = short_repr(rows)
        reader.note(key, f"expected rows of finite numbers, of the same length, found {found}: ignored")
        return None, None
    return tuple(tuple(float(value) for value in row) for row in rows), None


def with_systems_of(attributes: Mapping[str, Any], previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an image with the coordinate systems and transformations of the image that it replaces,
    whose metadata are ``previous``. The axes of the levels are the new ones; their system keeps its name.
    """
    images = previous.get("multiscales")
    old = images[0] if isinstance(images, list) and images else None
    if not isinstance(old, Mapping) or not isinstance(old.get(SYSTEMS), list):
        return dict(attributes)
    new = dict(attributes["ome"]["multiscales"][0])
    names = [name for item in Reader(old, "", []).mappings("datasets") if (name := level_system(item))]
    if names:
        new[SYSTEMS] = [{**new[SYSTEMS][0], "name": names[0]}]
        new["datasets"] = [
            {
                **dataset,
                TRANSFORMATIONS: [
                    {**step, "output": {"name": names[0]}} for step in dataset[TRANSFORMATIONS]
                ],
            }
            for dataset in new["datasets"]
        ]
        new[SYSTEMS] += [
            system
            for system in old[SYSTEMS]
            if isinstance(system, Mapping) and system.get("name") != names[0]
        ]
        if TRANSFORMATIONS in old:
            new[TRANSFORMATIONS] = old[TRANSFORMATIONS]
    return {**attributes, "ome": {**attributes["ome"], "multiscales": [new]}}


def transformation_document(transformation: Transformation) -> dict[str, Any]:
    """Return the object that describes a transformation."""
    document: dict[str, Any] = {"type": transformation.kind}
    if isinstance(transformation, Scale):
        document["scale"] = list(transformation.factors)
    elif isinstance(transformation, Translation):
        document["translation"] = list(transformation.offsets)
    elif isinstance(transformation, Affine | Rotation):
        if transformation.path is not None:
            document["path"] = transformation.path
        else:
            document[transformation.kind] = [list(row) for row in transformation.rows or ()]
    elif isinstance(transformation, MapAxis):
        document["mapAxis"] = list(transformation.axes)
    elif isinstance(transformation, ProjectAxis):
        members = (("droppedInputs", transformation.dropped), ("createdOutputs", transformation.created))
        document |= {key: list(axes) for key, axes in members if axes}
    elif isinstance(transformation, Sequence):
        document["transformations"] = [transformation_document(step) for step in transformation.steps]
    elif isinstance(transformation, Bijection):
        document["forward"] = transformation_document(transformation.forward)
        document["inverse"] = transformation_document(transformation.backward)
    elif isinstance(transformation, ByDimension):
        document["transformations"] = [
            {
                "transformation": transformation_document(part.transformation),
                "inputAxes": list(part.inputs),
                "outputAxes": list(part.outputs),
            }
            for part in transformation.parts
        ]
    elif isinstance(transformation, VectorField):
        document |= {"path": transformation.path, "interpolation": transformation.interpolation}
    return document
