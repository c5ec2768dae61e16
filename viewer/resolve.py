"""From intent, image and window to one frozen display state: which level, which planes, which tiles. Pure.

Nothing is read here. The pipeline asks again whenever intent or window change, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viewer.dataset import Image
from viewer.state import ChannelSettings, LabelsSettings, ViewIntent, Viewport
from viewer.tiles import PlaneKey, TileRequest

__all__ = ["DisplayState", "FrameGrid", "Layer", "choose_level", "pixel_aspect", "resolve"]


@dataclass(frozen=True)
class FrameGrid:
    """The pixel grid of a frame: pixels of the target level, every ``stride``-th of them.

    Frame pixel (r, c) shows level pixel (top + r * stride[0], left + c * stride[1]). ``rect`` is the covered area in
    data coordinates (top, left, bottom, right edges): where the frame is to be drawn.
    """

    level: int
    top: int
    left: int
    shape: tuple[int, int]
    stride: tuple[int, int]
    rect: tuple[float, float, float, float]


@dataclass(frozen=True)
class Layer:
    """One thing drawn: a channel of the image, or a labels overlay.

    ``planes`` are its planes from the coarsest level in use to the target level (the last); each names level and
    slice through that level's own physical transform. Exactly one of ``channel`` and ``labels`` is set.
    """

    image: Image
    planes: tuple[PlaneKey, ...]
    channel: ChannelSettings | None = None
    labels: LabelsSettings | None = None


@dataclass(frozen=True)
class DisplayState:
    """What is to be on the screen. ``tiles`` (wanted now) and ``prefetch`` are in request order.

    ``level`` is the target level of the image in front.
    """

    intent: ViewIntent
    viewport: Viewport
    level: int
    grid: FrameGrid
    layers: tuple[Layer, ...]
    tiles: tuple[TileRequest, ...]
    prefetch: tuple[TileRequest, ...] = ()


def pixel_aspect(image: Image, displayed: tuple[int, int]) -> float:
    """Return how much taller than wide a data pixel is drawn: the ratio of the physical scales where both axes are
    of space and share a unit, else 1 (seconds and micrometres have no common measure).
    """
    raise NotImplementedError


def choose_level(
    image: Image, viewport: Viewport, displayed: tuple[int, int], previous: int | None = None
) -> int:
    """Return the level whose pixels come closest to device pixels; ``previous`` is kept until another is clearly
    better (hysteresis), so that zooming to and fro over a border does not flicker.
    """
    raise NotImplementedError


def resolve(
    intent: ViewIntent,
    image: Image,
    viewport: Viewport,
    overlays: Sequence[Image] = (),
    previous: DisplayState | None = None,
) -> DisplayState:
    """Return what to draw and fetch. ``overlays`` are the label images that ``intent.labels[].index`` counts.

    ``previous`` gives hysteresis of the level and, where a slider moved, the direction to prefetch.
    """
    raise NotImplementedError
