"""Measuring: what is below the pointer, profiles along lines, statistics of regions, scale bars.

Positions are data coordinates (see ``state``). Functions that read block: call them from a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from viewer.image import Image
from viewer.resolve import DisplayState
from viewer.state import ViewIntent
from viewer.streaming import TileStreamer

__all__ = [
    "Profile",
    "Readout",
    "Roi",
    "RoiStatistics",
    "ScaleBar",
    "line_profile",
    "readout",
    "roi_statistics",
    "scale_bar",
    "statistics_csv",
]


@dataclass(frozen=True)
class Readout:
    """What is at one point. ``pixel`` is the index per axis in ``level``; ``physical`` has (axis, value,
    unit); ``values`` are (label, value) per shown channel, value None while not loaded; ``labels`` are (name,
    label, properties); ``chunk`` is the store key of the chunk, None where it is not known.
    """

    pixel: tuple[int, ...]
    physical: tuple[tuple[str, float, str | None], ...]
    level: int
    values: tuple[tuple[str, Any], ...]
    labels: tuple[tuple[str, int, dict[str, Any]], ...]
    chunk: str | None

    def text(self) -> str:
        """Return one line for the status bar."""
        raise NotImplementedError


def readout(state: DisplayState, streamer: TileStreamer, row: float, column: float) -> Readout | None:
    """Return what is at a point of the displayed plane, from tiles that are loaded; never reads. None
    outside.
    """
    raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Profile:
    """Values along a line: ``distance`` in ``unit`` (pixels where None), one row of ``values`` per
    channel.
    """

    distance: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    channels: tuple[str, ...]
    unit: str | None

    def csv(self) -> str:
        raise NotImplementedError


def line_profile(
    image: Image, intent: ViewIntent, start: tuple[float, float], end: tuple[float, float], level: int = 0
) -> Profile:
    """Sample all channels of the displayed plane along a line between two (row, column) points, linearly
    interpolated, one sample per pixel of the level. Blocks."""
    raise NotImplementedError


@dataclass(frozen=True)
class Roi:
    """A region of the displayed plane: the box (top, left, bottom, right) or the ellipse inscribed in it."""

    shape: Literal["rectangle", "ellipse"]
    rect: tuple[float, float, float, float]


@dataclass(frozen=True)
class RoiStatistics:
    """Statistics of one channel in one region. ``area`` in ``unit`` squared (pixels where None); ``nans`` are
    not in the statistics, which are NaN where nothing is left."""

    channel: str
    count: int
    nans: int
    area: float
    unit: str | None
    mean: float
    std: float
    minimum: float
    maximum: float
    median: float
    sum: float


def roi_statistics(image: Image, intent: ViewIntent, roi: Roi, level: int = 0) -> Iterator[RoiStatistics]:
    """Yield the statistics per channel, tile by tile so that a large region takes little memory. Blocks."""
    raise NotImplementedError


def statistics_csv(statistics: Sequence[RoiStatistics]) -> str:
    """Return a CSV table with a header row."""
    raise NotImplementedError


@dataclass(frozen=True)
class ScaleBar:
    """A bar: its length in device pixels, and what to write below it."""

    pixels: float
    text: str


def scale_bar(image: Image, state_axis: int, zoom: float, target: float = 120.0) -> ScaleBar:
    """Return a bar of a round length (1, 2 or 5 times a power of ten) that comes closest below ``target``
    device pixels; ``zoom`` is device pixels per data pixel along ``state_axis``. Units are scaled (1500 um is
    1.5 mm).
    """
    raise NotImplementedError
