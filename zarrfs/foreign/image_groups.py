"""The metadata of an image with named axes as OME-NGFF attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from zarrfs.foreign.presented_store import PresentedArray
from zarrfs.ngff.geometry import axis_type

__all__ = ["ImageAxis", "image_nodes"]


class ImageAxis(NamedTuple):
    """One dimension: its name, the distance of its elements, their unit, and the position of the first element."""

    name: str
    scale: float = 1.0
    unit: str | None = None
    origin: float = 0.0


def image_nodes(
    array: PresentedArray, axes: Sequence[ImageAxis], name: str
) -> dict[str, PresentedArray | dict[str, Any]]:
    """Return the nodes of an OME-NGFF 0.5 image with one level, ``0``. ``axes`` are those of the array."""
    listed: list[dict[str, Any]] = []
    for axis in axes:
        entry = {"name": axis.name, "type": axis_type(axis.name), "unit": axis.unit}
        listed.append({key: value for key, value in entry.items() if value is not None})
    steps: list[dict[str, Any]] = [{"type": "scale", "scale": [axis.scale for axis in axes]}]
    if any(axis.origin for axis in axes):
        steps.append({"type": "translation", "translation": [axis.origin for axis in axes]})
    datasets = [{"path": "0", "coordinateTransformations": steps}]
    multiscales = {"name": name, "axes": listed, "datasets": datasets}
    return {"": {"ome": {"version": "0.5", "multiscales": [multiscales]}}, "0": array}
