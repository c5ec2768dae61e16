"""Images with axes, voxel sizes, positions and units, for the tests of the views."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from tests.files.views.presented import NUMBERS as ALL_NUMBERS
from tests.files.views.presented import sample, view_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.view import PresentedArray
from zarrfs.ngff.geometry import Ancestor, Geometry, array_geometry
from zarrfs.ngff.parse import parse

__all__ = [
    "IMAGES",
    "ITK_VIEWS",
    "MILLIMETERS",
    "NUMBERS",
    "ORIGIN",
    "POSITIONS",
    "SCALE",
    "SIZE",
    "image_attributes",
    "image_geometry",
    "make_image",
    "transposed",
    "write",
]

SIZE = {"x": 6, "y": 5, "z": 4, "t": 3, "c": 2, "q": 2, "r": 3}
SCALE = {"x": 0.5, "y": -0.25, "z": 2.0, "t": 1.5}
"""The distances, in micrometres and seconds. The direction of y is opposite to the positions."""
ORIGIN = {"x": 10.0, "y": 20.0, "z": -30.0, "t": 5.0}

UNITS = {"x": "micrometer", "y": "micrometer", "z": "micrometer", "t": "second"}
TYPES = {"x": "space", "y": "space", "z": "space", "t": "time", "c": "channel"}


IMAGES = ("zyx", "yx", "xyz", "czyx", "tczyx", "ctzyx", "zcyxt", "yxc", "tyxc", "qzyx", "qrzyx", "x")
"""The axes of images. The letters q and r are axes of another type."""

NUMBERS = tuple(dtype for dtype in ALL_NUMBERS if dtype[1:] != "f2")
"""The dtypes of numbers that the formats of medical imaging have."""

ITK_VIEWS = (".nhdr", ".nrrd", ".mhd", ".mha", ".nii")

MILLIMETERS = {name: abs(SCALE[name]) / 1000 for name in "xyz"} | {"t": SCALE["t"]}
"""The distances that ITK reports. Lengths are in millimetres, times in seconds."""

POSITIONS = {name: ORIGIN[name] / 1000 for name in "xyz"} | {"t": ORIGIN["t"]}


def image_attributes(
    axes: str, units: Mapping[str, str] = UNITS, labels: tuple[str, ...] = (), path: str = "0"
) -> dict[str, Any]:
    """Return the OME-NGFF 0.4 attributes of an image with one level, whose axes have the letters ``axes``."""
    described = [
        {"name": name, "type": TYPES.get(name, "other")} | ({"unit": units[name]} if name in units else {})
        for name in axes
    ]
    transformations = [
        {"type": "scale", "scale": [SCALE.get(name, 1.0) for name in axes]},
        {"type": "translation", "translation": [ORIGIN.get(name, 0.0) for name in axes]},
    ]
    dataset = {"path": path, "coordinateTransformations": transformations}
    attributes: dict[str, Any] = {
        "multiscales": [{"version": "0.4", "axes": described, "datasets": [dataset]}]
    }
    if labels:
        attributes["omero"] = {"channels": [{"label": label} for label in labels]}
    return attributes


def image_geometry(array: zarrfs.Array, axes: str, **options: Any) -> Callable[[], Geometry]:
    """Return a function that returns the geometry of an array that is the level of such an image."""
    attributes = image_attributes(axes, **options)
    return lambda: array_geometry(array.spec, [Ancestor("0", attributes, parse(attributes))])


def make_image(
    axes: str, dtype: Any = "<u2", shape: tuple[int, ...] | None = None, **options: Any
) -> tuple[PresentedArray, np.ndarray[Any, Any]]:
    """Return an image with the given axes, and its elements. By default its lengths are ``SIZE``."""
    shape = tuple(SIZE.get(name, 2) for name in axes) if shape is None else shape
    data = sample(dtype, shape, seed=math.prod(shape))
    chunks = tuple(max(1, n // 2 + 1) for n in shape)
    array = zarrfs.create_array(MemoryStore(), "img", data=data, chunks=chunks, zarr_format=2)
    return PresentedArray(array, "img", image_geometry(array, axes, **options)), data


def write(presented: PresentedArray, directory: Path, *suffixes: str) -> None:
    """Write views of an image to files in a directory."""
    for suffix in suffixes:
        view = view_of(suffix)
        assert view.unsupported_reason(presented) is None
        content = view.content(presented)
        (directory / f"img{suffix}").write_bytes(content.read(0, content.size))


def transposed(data: np.ndarray[Any, Any], axes: str, order: str) -> np.ndarray[Any, Any]:
    """Return the elements with the axes in another order. Axes that are missing get the length 1."""
    present = [axes.index(name) for name in order if name in axes]
    omitted = [axis for axis in range(data.ndim) if axis not in present]
    assert all(data.shape[axis] == 1 for axis in omitted)
    moved = data.transpose(*omitted, *present)[(0,) * len(omitted)]
    return moved[tuple(slice(None) if name in axes else np.newaxis for name in order)]
