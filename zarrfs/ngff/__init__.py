"""OME-NGFF 0.1 to 0.5: a model of the metadata with a parser, and an offline check. Independent of Qt and FUSE."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrfs.ngff.load import load
from zarrfs.ngff.members import member_names
from zarrfs.ngff.model import (
    Axis,
    Channel,
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
from zarrfs.ngff.parse import ome_attributes, parse

if TYPE_CHECKING:
    from zarrfs.ngff.checks import Message, Report, Tier, check_attributes, check_node

__all__ = [
    "Axis",
    "Channel",
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
    "Tier",
    "Well",
    "WellImage",
    "Window",
    "check_attributes",
    "check_node",
    "load",
    "member_names",
    "ome_attributes",
    "parse",
]

_CHECKS = ("Message", "Report", "Tier", "check_attributes", "check_node")
"""Names that are imported on first use: reading metadata needs no checks."""


def __getattr__(name: str) -> Any:
    if name in _CHECKS:
        return getattr(import_module("zarrfs.ngff.checks"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
