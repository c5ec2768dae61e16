""".nhdr: an NRRD header that refers to the .raw file. .nrrd: the same with the elements in one file, x first.

Specification: https://teem.sourceforge.net/nrrd/format.html. The channel axis has the kind ``list``, which ITK reads as
the components of each pixel. All other axes are axes of space, because ITK requires as many of these as there are axes
other than the channel axis. A complex number is two floating-point numbers along a first axis of the kind ``complex``.
Images with three spatial axes have the space ``left-posterior-superior``, as those that ITK writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from zarrfs.files.byte_order import byte_order
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.pixel_grids import (
    PixelGrid,
    WorldFrame,
    image_unsupported_reason,
    ordered_grid,
    stored_grid,
)
from zarrfs.files.raw.view import RawView, raw_reference_unsupported_reason
from zarrfs.files.view import PresentedArray, View

__all__ = ["DetachedNrrdView", "NrrdView"]

MAX_AXES = 8
"""NRRD supports 16 axes, and 8 axes of space (NRRD_SPACE_DIM_MAX)."""

TYPES = {
    "bool": "uint8",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
    "complex64": "float",
    "complex128": "double",
}
"""The NRRD type of each NumPy dtype."""

KINDS = {"space": "domain", "time": "time", "channel": "list", "other": "domain"}


class DetachedNrrdView(View):
    """An NRRD header of the .raw file. Its axes are the dimensions of the array, the last one first."""

    suffix: ClassVar[str] = ".nhdr"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        reason = image_unsupported_reason(
            presented, TYPES, "NRRD", MAX_AXES
        ) or raw_reference_unsupported_reason(presented)
        if reason is None and not presented.name.isascii():
            return "the header would have to contain the name of the array, and NRRD headers are ASCII"
        if reason is None and ":" in presented.name:
            return "the header would have to contain the name of the array, in which a colon has a special meaning"
        return reason

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        header = _header(presented.array.dtype, stored_grid(presented), presented.name + RawView.suffix)
        return VirtualFileContent([BytesSegment(header)])


class NrrdView(View):
    """An NRRD file. Its axes are x, y, z, t, c and others."""

    suffix: ClassVar[str] = ".nrrd"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return image_unsupported_reason(presented, TYPES, "NRRD", MAX_AXES)

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        grid = ordered_grid(presented)
        header = _header(presented.array.dtype, grid, None)
        return VirtualFileContent([BytesSegment(header), ArraySegment(presented.array, grid.order)])


def _header(dtype: np.dtype[Any], grid: PixelGrid, data_file: str | None) -> bytes:
    axes = grid.axes
    if dtype.kind == "c":
        # The two parts of a number are its components. ITK supports one axis of components only.
        axes = tuple(replace(axis, kind="other") if axis.kind == "channel" else axis for axis in axes)
    domain = [axis for axis in axes if axis.kind != "channel"]
    sizes = [axis.size for axis in axes]
    kinds = [KINDS[axis.kind] for axis in axes]
    labels = [axis.label for axis in axes]
    world = grid.world(domain)
    vectors = iter(world.directions)
    # The vector from one pixel to the next one along an axis.
    directions = [
        "none" if axis.kind == "channel" else _vector([axis.scale * part for part in next(vectors)])
        for axis in axes
    ]
    if dtype.kind == "c":
        sizes.insert(0, 2)
        kinds.insert(0, "complex")
        labels.insert(0, "")
        directions.insert(0, "none")
    fields = {
        "type": TYPES[dtype.name],
        "dimension": str(len(sizes)),
        "sizes": " ".join(map(str, sizes)),
        "encoding": "raw",
        "endian": byte_order(dtype) or "little",
        "kinds": " ".join(kinds),
        "labels": " ".join(map(_quoted, labels)),
        **_space(world),
        "space directions": " ".join(directions),
        "space origin": _vector(world.origin),
        "space units": " ".join(map(_quoted, world.units)),
    }
    if data_file is not None:
        fields["data file"] = data_file
    text = "NRRD0005\n" + "".join(f"{key}: {value}\n" for key, value in fields.items())
    # An empty line separates the header from the data.
    return (text if data_file is not None else text + "\n").encode()


def _space(world: WorldFrame) -> dict[str, str]:
    """Return the field that states the meaning or the number of the world axes."""
    if not world.has_patient_space:
        return {"space dimension": str(len(world.origin))}
    return {"space": "left-posterior-superior-time" if world.has_time else "left-posterior-superior"}


def _vector(numbers: Sequence[float]) -> str:
    return f"({','.join(repr(number + 0.0) for number in numbers)})"  # not -0.0


def _quoted(text: str) -> str:
    if not text.isascii():  # NRRD headers are ASCII
        return '""'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
