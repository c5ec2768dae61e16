"""OME-NGFF 0.1 to 0.6: a model of the metadata with a parser, the transformations between coordinate systems, and an
offline check. Independent of Qt and FUSE.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrfs.ngff.load import load
from zarrfs.ngff.members import member_names
from zarrfs.ngff.model import (
    Axis,
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
    Scene,
    SystemReference,
    Well,
    WellImage,
    Window,
)
from zarrfs.ngff.parse import ome_attributes, parse

if TYPE_CHECKING:
    from zarrfs.ngff.checks import Message, Report, Tier, check_attributes, check_node
    from zarrfs.ngff.coordinate_graphs import Composition, CoordinateGraph, compose, coordinate_graph
    from zarrfs.ngff.stored_graphs import load_graph

__all__ = [
    "Axis",
    "Channel",
    "Composition",
    "CoordinateGraph",
    "CoordinateSystem",
    "CoordinateTransformation",
    "ImageLabel",
    "Level",
    "Message",
    "Multiscales",
    "Ngff",
    "Omero",
    "Plate",
    "PlateWell",
    "Report",
    "Rgba",
    "Scene",
    "SystemReference",
    "Tier",
    "Well",
    "WellImage",
    "Window",
    "check_attributes",
    "check_node",
    "compose",
    "coordinate_graph",
    "load",
    "load_graph",
    "member_names",
    "ome_attributes",
    "parse",
]

_LATER = {
    "zarrfs.ngff.checks": ("Message", "Report", "Tier", "check_attributes", "check_node"),
    "zarrfs.ngff.coordinate_graphs": ("Composition", "CoordinateGraph", "compose", "coordinate_graph"),
    "zarrfs.ngff.stored_graphs": ("load_graph",),
}
"""Modules whose names are imported on first use, because reading metadata does not need them."""


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
