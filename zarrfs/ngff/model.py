"""OME-NGFF documents of every version as one frozen model. No parsing (``parse``), no checks (``check``), no
I/O.

After OME-NGFF 0.1 to 0.5, https://ngff.openmicroscopy.org; words are the specification's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Axis",
    "Channel",
    "ImageLabel",
    "Level",
    "Multiscales",
    "Ngff",
    "Omero",
    "Plate",
    "PlateWell",
    "Rgba",
    "Well",
    "WellImage",
    "Window",
]

Rgba = tuple[int, int, int, int]


@dataclass(frozen=True)
class Axis:
    """One axis. ``type`` is ``space``, ``time``, ``channel``, another string, or None where nothing is
    known.
    """

    name: str
    type: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Level:
    """One dataset of a pyramid. ``scale`` and ``translation`` are None where the document declares none
    (before 0.4); else they have one entry per axis, and include the transforms of the whole multiscale.
    """

    path: str
    scale: tuple[float, ...] | None = None
    translation: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Multiscales:
    """One pyramid, finest level first. ``axes`` is empty where the document has none (0.1, 0.2)."""

    name: str
    axes: tuple[Axis, ...]
    levels: tuple[Level, ...]
    type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """A channel's contrast: ``start`` to ``end`` is shown, ``min`` to ``max`` is possible."""

    start: float
    end: float
    min: float
    max: float


@dataclass(frozen=True)
class Channel:
    """How one channel wants to be shown. Missing parts are None or the defaults."""

    label: str | None = None
    color: tuple[int, int, int] | None = None
    window: Window | None = None
    active: bool = True
    inverted: bool = False


@dataclass(frozen=True)
class Omero:
    """The ``omero`` block: rendering hints."""

    channels: tuple[Channel, ...] = ()
    default_t: int | None = None
    default_z: int | None = None
    model: str | None = None


@dataclass(frozen=True)
class ImageLabel:
    """What a label image says of its labels. Of repeated colours the last one counts."""

    colors: Mapping[int, Rgba] = field(default_factory=dict)
    properties: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    source: str = "../../"


@dataclass(frozen=True)
class PlateWell:
    """A well by its path below the plate, and its place in the grid."""

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
    """A field of view by its path below the well."""

    path: str
    acquisition: int | None = None


@dataclass(frozen=True)
class Well:
    """A well's fields of view."""

    images: tuple[WellImage, ...]


@dataclass(frozen=True)
class Ngff:
    """All that OME-NGFF metadata says of one group. Parts that are absent are None or empty.

    ``version`` is the declared one, None where none is. ``series`` is the list of image paths of a
    bioformats2raw root (None: not such a root; empty: none found, the children ``0``, ``1``, ... are meant).
    ``draft`` names what belongs to a draft later than 0.5 and is not understood. ``problems`` are sentences
    about what was tolerated.
    """

    version: str | None = None
    multiscales: tuple[Multiscales, ...] = ()
    omero: Omero | None = None
    labels: tuple[str, ...] | None = None
    image_label: ImageLabel | None = None
    plate: Plate | None = None
    well: Well | None = None
    series: tuple[str, ...] | None = None
    draft: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True where there is any OME-NGFF metadata at all."""
        return bool(
            self.version
            or self.multiscales
            or self.labels is not None
            or self.image_label
            or self.plate
            or self.well
            or self.series is not None
            or self.draft
        )
