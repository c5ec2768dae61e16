"""Parsing the attributes of a node to the model, for OME-NGFF 0.1 to 0.6. Invalid metadata never raises an error.

Invalid parts are ignored and recorded in ``Ngff.problems``. Conformance to the specification is checked by ``checks``.
The metadata is at the root of the attributes up to 0.4, and in the member ``ome`` from 0.5 on. Both are accepted for
all versions. What 0.6 adds is parsed by ``version_0_6``; an image has it if it has coordinate systems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from zarrfs.ngff.model import (
    PHYSICAL,
    Channel,
    CoordinateSystem,
    CoordinateTransformation,
    ImageLabel,
    Level,
    Multiscales,
    Ngff,
    Omero,
    Plate,
    PlateWell,
    Rgba,
    Well,
    WellImage,
    Window,
)
from zarrfs.ngff.orientation import with_exact_directions
from zarrfs.ngff.parse_axes import parse_axes
from zarrfs.ngff.reader import Reader, is_number
from zarrfs.ngff.version_0_6 import SYSTEMS, level_system, parse_scene, parse_systems, parse_transformations
from zarrfs.text import short_repr

__all__ = ["ome_attributes", "parse", "parse_image_label", "parse_omero", "parse_plate", "parse_well"]

OME_KEYS = (
    "multiscales",
    "omero",
    "labels",
    "image-label",
    "plate",
    "well",
    "bioformats2raw.layout",
    "series",
    "scene",
)
DRAFT_KEYS = ("collection",)
"""Keys of drafts later than 0.6."""

Scaling = tuple[tuple[float, ...], tuple[float, ...]]
"""A scale and a translation, with one entry per axis: ``translation + scale * index``."""


def ome_attributes(attributes: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the object within the attributes that contains the OME-NGFF metadata, and the JSON pointer to it."""
    ome = attributes.get("ome")
    if isinstance(ome, Mapping) and (
        ome.get("version") or any(key in ome for key in (*OME_KEYS, *DRAFT_KEYS))
    ):
        return ome, "/ome"
    return attributes, ""


def parse(attributes: Mapping[str, Any]) -> Ngff:
    """Return the model of the attributes of a node. It is falsy if there is no OME-NGFF metadata."""
    ome, pointer = ome_attributes(attributes)
    reader = Reader(ome, pointer, [])
    omero = reader.mapping("omero")
    image_label = reader.mapping("image-label")
    plate = reader.mapping("plate")
    well = reader.mapping("well")
    scene = reader.mapping("scene")
    multiscales = tuple(_multiscales(reader, attributes))
    version = _version(ome, pointer)
    return Ngff(
        version=version,
        multiscales=multiscales,
        omero=parse_omero(omero) if omero else None,
        labels=tuple(reader.strings("labels")) if _is_labels(ome) else None,
        image_label=parse_image_label(image_label) if image_label else None,
        plate=parse_plate(plate) if plate else None,
        well=parse_well(well) if well else None,
        series=_series(reader),
        scene=parse_scene(scene) if scene else None,
        draft=tuple(key for key in DRAFT_KEYS if key in ome),
        problems=tuple(reader.problems),
    )


def _version(ome: Mapping[str, Any], pointer: str) -> str | None:
    versioned_objects: list[Any] = [
        ome if pointer else None,
        ome.get("plate"),
        ome.get("well"),
        ome.get("image-label"),
    ]
    multiscales = ome.get("multiscales")
    if isinstance(multiscales, list):
        versioned_objects[1:1] = multiscales[:1]
    versioned_objects.append(ome.get("omero"))
    for versioned_object in versioned_objects:
        if isinstance(versioned_object, Mapping) and isinstance(versioned_object.get("version"), str):
            return str(versioned_object["version"])
    return None


def _is_labels(ome: Mapping[str, Any]) -> bool:
    labels = ome.get("labels")
    return isinstance(labels, list) and all(isinstance(path, str) for path in labels)


def _series(reader: Reader) -> tuple[str, ...] | None:
    if "bioformats2raw.layout" not in reader.document and not isinstance(reader.document.get("series"), list):
        return None
    return tuple(reader.strings("series"))


def _multiscales(reader: Reader, attributes: Mapping[str, Any]) -> Iterator[Multiscales]:
    for item in reader.mappings("multiscales"):
        systems, system_name, transformations = _systems(item)
        own_axes = next((system.axes for system in systems if system.name == system_name), ())
        axes = with_exact_directions(own_axes, attributes)
        unapplied: list[str] = []
        levels = tuple(_levels(item, len(axes) or None, unapplied))
        if not levels:
            item.note("datasets", "no dataset has a path: the image is ignored")
            continue
        metadata = item.document.get("metadata")
        yield Multiscales(
            name=item.string("name") or "",
            axes=axes,
            levels=levels,
            type=item.string("type"),
            metadata=metadata if isinstance(metadata, Mapping) else {},
            unapplied=tuple(dict.fromkeys(unapplied)),
            system_name=system_name,
            other_systems=tuple(system for system in systems if system.name != system_name),
            transformations=transformations,
        )


def _systems(
    item: Reader,
) -> tuple[tuple[CoordinateSystem, ...], str, tuple[CoordinateTransformation, ...]]:
    """Return the coordinate systems of an image, the name of the one of its levels, and the transformations between
    them. Before 0.6 there is one system, which has no name.
    """
    if "axes" in item.document or SYSTEMS not in item.document:
        return (CoordinateSystem(PHYSICAL, parse_axes(item)),), PHYSICAL, ()
    systems = parse_systems(item)
    names = [system.name for system in systems]
    outputs = (level_system(dataset) for dataset in item.mappings("datasets"))
    name = next((name for name in outputs if name in names), names[0] if names else PHYSICAL)
    return systems, name, parse_transformations(item)


def _levels(item: Reader, rank: int | None, unapplied: list[str]) -> Iterator[Level]:
    # Since 0.6 the transformations of the whole image lead to other coordinate systems.
    outer = None if SYSTEMS in item.document else _scaling(item, rank, unapplied)
    for dataset in item.mappings("datasets"):
        path = dataset.string("path")
        if path is None:
            dataset.note("path", "no path: the level is ignored")
            continue
        inner = _scaling(dataset, rank, unapplied)
        if inner is None:
            yield Level(path, *(outer or (None, None)))
            continue
        scale, translation = inner
        if outer is not None and len(outer[0]) == len(scale):
            translation = tuple(o * t + s for o, t, s in zip(outer[0], translation, outer[1], strict=True))
            scale = tuple(o * s for o, s in zip(outer[0], scale, strict=True))
        yield Level(path, scale, translation)


def _scaling(item: Reader, rank: int | None, unapplied: list[str]) -> Scaling | None:
    """Return the scale and translation of the composed ``coordinateTransformations``; None if there are none.

    The types of transformations that are not scales and translations are added to ``unapplied``.
    """
    composed: Scaling | None = None
    for step in _steps(item, 0):
        kind = step.string("type")
        if kind in ("scale", "translation"):
            values = _numbers(step, kind, rank)
            if values is None:
                continue
            rank = rank or len(values)
            neutral = (float(kind == "translation"),) * rank
            part = (values, (0.0,) * rank) if kind == "scale" else (neutral, values)
        elif kind in ("affine", "rotation"):
            matrix = _diagonal_matrix(step.document.get(kind), rank, has_offset=kind == "affine")
            if matrix is None:
                step.note("type", f"transformation {short_repr(kind)} is not supported: ignored")
                unapplied.append(kind)
                continue
            part = matrix
            rank = rank or len(part[0])
        elif kind == "identity":
            if rank is None:
                continue
            part = (1.0,) * rank, (0.0,) * rank
        else:
            step.note("type", f"transformation {short_repr(kind)} is not supported: ignored")
            unapplied.append(kind or "without a type")
            continue
        scale, translation = composed or ((1.0,) * rank, (0.0,) * rank)
        composed = (
            tuple(a * b for a, b in zip(scale, part[0], strict=True)),
            tuple(a * b + c for a, b, c in zip(translation, part[0], part[1], strict=True)),
        )
    return composed


def _diagonal_matrix(rows: Any, rank: int | None, has_offset: bool) -> Scaling | None:
    """Return a matrix as a scale and a translation, or None if the matrix is not valid or not diagonal.

    With ``has_offset`` the last column is the translation (``affine`` of OME-NGFF 0.6).
    """
    if not isinstance(rows, list) or not rows or (rank is not None and len(rows) != rank):
        return None
    width = len(rows) + has_offset
    if not all(isinstance(row, list) and len(row) == width and all(map(is_number, row)) for row in rows):
        return None
    if any(value for i, row in enumerate(rows) for j, value in enumerate(row[: len(rows)]) if i != j):
        return None
    scale = tuple(float(row[number]) for number, row in enumerate(rows))
    if 0 in scale:
        return None
    return scale, tuple(float(row[-1]) if has_offset else 0.0 for row in rows)


def _steps(item: Reader, depth: int) -> Iterator[Reader]:
    key = "transformations" if depth else "coordinateTransformations"
    for step in item.mappings(key):
        if step.document.get("type") == "sequence" and depth < 4:
            yield from _steps(step, depth + 1)
        else:
            yield step


def _numbers(step: Reader, key: str, rank: int | None) -> tuple[float, ...] | None:
    values = step.document.get(key)
    if not isinstance(values, list) or not values or not all(is_number(value) for value in values):
        step.note(key, f"expected a list of finite numbers, found {short_repr(values)}: ignored")
        return None
    if rank is not None and len(values) != rank:
        step.note(key, f"expected {rank} numbers, one per axis, found {len(values)}: ignored")
        return None
    if key == "scale" and 0 in values:
        step.note(key, "a scale of 0 is replaced with 1")
        return tuple(float(value) or 1.0 for value in values)
    return tuple(float(value) for value in values)


def parse_omero(omero: Reader) -> Omero:
    """Return the model of an ``omero`` object."""
    rdefs = omero.mapping("rdefs")
    return Omero(
        channels=tuple(_channel(channel) for channel in omero.mappings("channels")),
        default_t=rdefs.integer("defaultT") if rdefs else None,
        default_z=rdefs.integer("defaultZ") if rdefs else None,
        model=rdefs.string("model") if rdefs else None,
    )


def _channel(channel: Reader) -> Channel:
    label = channel.document.get("label")
    return Channel(
        label=None if label is None else str(label),
        color=_color(channel),
        window=_window(channel.mapping("window")),
        active=channel.boolean("active", True),
        inverted=channel.boolean("inverted", False),
    )


def _color(channel: Reader) -> tuple[int, int, int] | None:
    text = channel.string("color")
    if text is None:
        return None
    digits = text.strip().removeprefix("#")
    if len(digits) == 8:  # some writers append the alpha channel
        digits = digits[:6]
    try:
        if len(digits) != 6:
            raise ValueError(digits)
        red, green, blue = bytes.fromhex(digits)
    except ValueError:
        channel.note("color", f"expected 6 hexadecimal digits, found {short_repr(text)}: ignored")
        return None
    return red, green, blue


def _window(window: Reader | None) -> Window | None:
    if window is None:
        return None
    low, high = window.number("min"), window.number("max")
    start, end = window.number("start"), window.number("end")
    start = low if start is None else start
    end = high if end is None else end
    if start is None or end is None:
        return None
    if start > end:
        window.note("start", f"start {start} is greater than end {end}: swapped")
        start, end = end, start
    low = start if low is None else min(low, start)
    high = end if high is None else max(high, end)
    return Window(float(start), float(end), float(low), float(high))


def parse_image_label(image_label: Reader) -> ImageLabel:
    """Return the model of an ``image-label`` object. If a label is repeated, the last entry is used."""
    colors: dict[int, Rgba] = {}
    for item in image_label.mappings("colors"):
        value, rgba = item.integer("label-value"), _rgba(item)
        if value is not None and rgba is not None:
            colors[value] = rgba
    properties: dict[int, Mapping[str, Any]] = {}
    for item in image_label.mappings("properties"):
        value = item.integer("label-value")
        if value is not None:
            properties[value] = {key: entry for key, entry in item.document.items() if key != "label-value"}
    source = image_label.mapping("source")
    return ImageLabel(colors, properties, (source.string("image") if source else None) or "../../")


def _rgba(item: Reader) -> Rgba | None:
    values = item.document.get("rgba")
    if values is None:
        return None
    has_valid_length = isinstance(values, list) and len(values) in (3, 4)
    if not has_valid_length or not all(isinstance(v, int) and 0 <= v <= 255 for v in values):
        item.note("rgba", f"expected four integers from 0 to 255, found {short_repr(values)}: ignored")
        return None
    red, green, blue, alpha = (*values, 255)[:4]
    return int(red), int(green), int(blue), int(alpha)


def parse_plate(plate: Reader) -> Plate:
    """Return the model of a ``plate`` object. Row and column names that occur only in well paths are added."""
    rows = _Names(row.string("name") or "" for row in plate.mappings("rows"))
    columns = _Names(column.string("name") or "" for column in plate.mappings("columns"))
    wells = tuple(_wells(plate, rows, columns))
    acquisitions = {}
    for item in plate.mappings("acquisitions"):
        number = item.integer("id")
        if number is not None:
            acquisitions[number] = item.string("name") or f"acquisition {number}"
    return Plate(
        plate.string("name"),
        tuple(rows.names),
        tuple(columns.names),
        wells,
        acquisitions,
        plate.integer("field_count"),
    )


class _Names:
    """Names with their positions. If a name is repeated, its first position is used."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._positions: dict[str, int] = {}
        for position, name in enumerate(self.names):
            self._positions.setdefault(name, position)

    def position(self, name: str) -> int:
        """Return the position of a name. A new name is appended."""
        if name not in self._positions:
            self._positions[name] = len(self.names)
            self.names.append(name)
        return self._positions[name]


def _wells(plate: Reader, rows: _Names, columns: _Names) -> Iterator[PlateWell]:
    for well in plate.mappings("wells"):
        path = well.string("path")
        if path is None:
            well.note("path", "no path: the well is ignored")
            continue
        row_name, _, column_name = path.strip("/").partition("/")
        row = _grid_index(well, "rowIndex", row_name, rows)
        column = _grid_index(well, "columnIndex", column_name, columns)
        yield PlateWell(path, row, column)


def _grid_index(well: Reader, key: str, name: str, names: _Names) -> int:
    index = well.integer(key)
    if index is not None and 0 <= index < len(names.names):
        return index
    if index is not None:
        well.note(
            key,
            f"expected 0 to {len(names.names) - 1}, found {index}: the name {short_repr(name)} of the path is used",
        )
    # 0.1 has no indices, and some writers omit rows and columns as well.
    return names.position(name)


def parse_well(well: Reader) -> Well:
    """Return the model of a ``well`` object."""
    images = []
    for item in well.mappings("images"):
        path = item.string("path")
        if path is None:
            item.note("path", "no path: the field is ignored")
        else:
            images.append(WellImage(path, item.integer("acquisition")))
    return Well(tuple(images))
