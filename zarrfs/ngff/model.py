"""The model of OME-NGFF metadata of all versions (0.1 to 0.6). Parsing is in ``parse``, checking in ``checks``.

The terms are those of the specification, https://ngff.openmicroscopy.org.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zarrfs.ngff.orientation import Vector
from zarrfs.ngff.transformations import Transformation

__all__ = [
    "Axis",
    "Channel",
    "CoordinateSystem",
    "CoordinateTransformation",
    "ImageLabel",
    "Level",
    "Multiscales",
    "Ngff",
    "Omero",
    "Plate",
    "PlateWell",
    "Rgba",
    "Scene",
    "SystemReference",
    "Well",
    "WellImage",
    "Window",
]

Rgba = tuple[int, int, int, int]


@dataclass(frozen=True)
class Axis:
    """One axis. ``type`` is ``space``, ``time``, ``channel``, another string, or None if it is unknown.

    ``orientation`` is the anatomical direction in which its coordinates increase, such as ``left-to-right`` (RFC-4).
    ``direction`` is the exact direction in anatomical space if it differs; see ``orientation.py``. ``discrete`` is
    whether there are no positions between the elements, None if it is not stated.
    """

    name: str
    type: str | None = None
    unit: str | None = None
    orientation: str | None = None
    direction: Vector | None = None
    discrete: bool | None = None
    long_name: str | None = None


@dataclass(frozen=True)
class CoordinateSystem:
    """The axes of points, and a name that is unique in its document."""

    name: str
    axes: tuple[Axis, ...]


class SystemReference(NamedTuple):
    """Which coordinate system is meant.

    Attributes:
        path: the path of the group whose metadata define the system, relative to the group of the reference. With an
            empty ``name`` it is the path of an array, and the system is that of its indices.
        name: the name of the system.
    """

    path: str = ""
    name: str = ""

    def __str__(self) -> str:
        if not self.name:
            return f"the indices of the array {self.path!r}"
        return f"{self.name!r} of {self.path!r}" if self.path else repr(self.name)


@dataclass(frozen=True)
class CoordinateTransformation:
    """A transformation between two coordinate systems. ``pointer`` is the JSON pointer of its place in the document."""

    input: SystemReference
    output: SystemReference
    transformation: Transformation
    name: str | None = None
    pointer: str = field(default="", compare=False)


PHYSICAL = "physical"
"""The name of the coordinate system of an image whose metadata do not name it (before 0.6)."""


@dataclass(frozen=True)
class Level:
    """One dataset of a multiscale image. ``scale`` and ``translation`` have one entry per axis and include the
    transformations of the whole multiscale image. They are None if the document has none (before 0.4).
    """

    path: str
    scale: tuple[float, ...] | None = None
    translation: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Multiscales:
    """One multiscale image, finest level first.

    Attributes:
        name: the name of the image; empty if it has none.
        axes: the axes of the levels, and of the coordinate system to which their scales and translations lead, which
            the specification calls intrinsic. Empty if the document has none (0.1, 0.2).
        levels: the resolution levels.
        unapplied: the types of the transformations, such as ``rotation``, that the scales and translations of the
            levels do not include although they should.
        system_name: the name of the intrinsic coordinate system.
        other_systems: the other coordinate systems of the document.
        transformations: the transformations between the coordinate systems of the document.
    """

    name: str
    axes: tuple[Axis, ...]
    levels: tuple[Level, ...]
    type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unapplied: tuple[str, ...] = ()
    system_name: str = PHYSICAL
    other_systems: tuple[CoordinateSystem, ...] = ()
    transformations: tuple[CoordinateTransformation, ...] = ()


@dataclass(frozen=True)
class Scene:
    """Several images whose positions are known. The first coordinate system is the one to display, if there is one."""

    systems: tuple[CoordinateSystem, ...]
    transformations: tuple[CoordinateTransformation, ...]


@dataclass(frozen=True)
class Window:
    """The contrast limits of a channel: ``start`` and ``end`` within the range ``min`` to ``max``."""

    start: float
    end: float
    min: float
    max: float


@dataclass(frozen=True)
class Channel:
    """The rendering settings of a channel. Missing members are None or have defaults."""

    label: str | None = None
    color: tuple[int, int, int] | None = None
    window: Window | None = None
    active: bool = True
    inverted: bool = False


@dataclass(frozen=True)
class Omero:
    """The ``omero`` object: rendering settings."""

    channels: tuple[Channel, ...] = ()
    default_t: int | None = None
    default_z: int | None = None
    model: str | None = None


@dataclass(frozen=True)
class ImageLabel:
    """The colours and properties of labels. If a label is repeated, the last entry is used."""

    colors: Mapping[int, Rgba] = field(default_factory=dict)
    properties: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    source: str = "../../"


@dataclass(frozen=True)
class PlateWell:
    """A well: its path below the plate, and its row and column."""

    path: str
    row: int
    column: int


@dataclass(frozen=True)
class Plate:
    """A plate. ``acquisitions`` maps ids to names."""

    name: str | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    wells: tuple[PlateWell, ...]
    acquisitions: Mapping[int, str] = field(default_factory=dict)
    field_count: int | None = None


@dataclass(frozen=True)
class WellImage:
    """A field of view: its path below the well, and its acquisition."""

    path: str
    acquisition: int | None = None


@dataclass(frozen=True)
class Well:
    """The fields of view of a well."""

    images: tuple[WellImage, ...]


@dataclass(frozen=True)
class Ngff:
    """The OME-NGFF metadata of one group. Missing parts are None or empty.

    ``version`` is the declared version or None. ``series`` is the list of image paths of a bioformats2raw root; None if
    the group is not such a root, and empty if the images are the members ``0``, ``1``, ... ``draft`` names unsupported
    members of drafts later than 0.6. ``problems`` describes invalid parts, which were ignored or corrected.
    """

    version: str | None = None
    multiscales: tuple[Multiscales, ...] = ()
    omero: Omero | None = None
    labels: tuple[str, ...] | None = None
    image_label: ImageLabel | None = None
    plate: Plate | None = None
    well: Well | None = None
    series: tuple[str, ...] | None = None
    scene: Scene | None = None
    draft: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the group has OME-NGFF metadata."""
        return bool(
            self.version
            or self.multiscales
            or self.labels is not None
            or self.image_label
            or self.plate
            or self.well
            or self.series is not None
            or self.scene
            or self.draft
        )
