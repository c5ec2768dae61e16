"""Histograms and automatic contrast limits. Pure; the planes come from the coarsest level that serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from viewer.image import Image
from viewer.state import ChannelSettings, ViewIntent

__all__ = ["Histogram", "auto_limits", "channel_values", "histogram"]


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts per bin; ``edges`` has one more entry. ``nans`` are counted apart, infinities left out."""

    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.float64]
    nans: int = 0

    def heights(self, logarithmic: bool = False) -> npt.NDArray[np.float64]:
        """Return what to draw, 0 to 1: counts, or log(1 + counts), over their largest."""
        raise NotImplementedError


def histogram(
    values: npt.NDArray[Any], bins: int = 256, limits: tuple[float, float] | None = None
) -> Histogram:
    """Count values in ``bins`` bins over ``limits`` (by default their finite range)."""
    raise NotImplementedError


def auto_limits(values: npt.NDArray[Any], low: float = 0.1, high: float = 99.9) -> tuple[float, float]:
    """Return contrast limits that single hot or dead pixels cannot spoil: percentiles of the finite values,
    with ``low < high`` always. Integers keep a width of at least 1."""
    raise NotImplementedError


def channel_values(
    image: Image,
    channel: ChannelSettings,
    intent: ViewIntent,
    volume: bool = False,
    max_pixels: int = 1 << 22,
) -> npt.NDArray[Any]:
    """Read values of one channel for a histogram, flat: the displayed slice, or with ``volume`` the whole stack at
    the same time point, from the finest level that has at most ``max_pixels``. Blocks: call it from a worker."""
    raise NotImplementedError
