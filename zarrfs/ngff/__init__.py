"""OME-NGFF 0.1 to 0.5: documents to one frozen model, and an offline check. Knows nothing of Qt or FUSE."""

from zarrfs.ngff.load import load
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
    "load",
    "ome_attributes",
    "parse",
]
