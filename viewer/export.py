"""Writing what is seen to files: PNG of the picture; TIFF, npy or OME-Zarr of the values. Blocks: use a
worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from viewer.compose import Pixels
from viewer.image import Image
from viewer.state import ViewIntent

__all__ = [
    "ExportRegion",
    "export_npy",
    "export_ome_zarr",
    "export_tiff",
    "read_region",
    "render_region",
    "write_png",
]

Progress = Callable[[float], bool]
"""Told how much is done, 0 to 1; returns False to stop."""


@dataclass(frozen=True)
class ExportRegion:
    """What to export: pixel ranges of one level, one slice per axis of the image (start, stop given, step
    1).
    """

    image: Image
    level: int
    slices: tuple[slice, ...]

    @classmethod
    def visible(
        cls, image: Image, intent: ViewIntent, rect: tuple[float, float, float, float], level: int
    ) -> ExportRegion:
        """The region of a rectangle in data coordinates at the displayed slice, all channels."""
        raise NotImplementedError


def write_png(file: Path, pixels: Pixels) -> None:
    """Write a picture as an 8-bit RGB PNG; no library is needed."""
    raise NotImplementedError


def render_region(region: ExportRegion, intent: ViewIntent) -> Pixels:
    """Draw the region's displayed plane with the intent's channels, one pixel per level pixel."""
    raise NotImplementedError


def read_region(region: ExportRegion) -> npt.NDArray[Any]:
    """Read the values, all axes kept."""
    raise NotImplementedError


def export_npy(region: ExportRegion, file: Path, progress: Progress | None = None) -> None:
    """Write the values as .npy."""
    raise NotImplementedError


def export_tiff(region: ExportRegion, file: Path, progress: Progress | None = None) -> None:
    """Write the values as TIFF with axes and physical size (ImageJ or OME where they fit). Needs
    ``tifffile``.
    """
    raise NotImplementedError


def export_ome_zarr(region: ExportRegion, directory: Path, progress: Progress | None = None) -> None:
    """Write the values as an OME-Zarr 0.5 image of one level, scale and translation kept."""
    raise NotImplementedError
