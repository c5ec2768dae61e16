"""Lookup tables from data values to colours, and the small indices that reach into them.

Values of 8 and 16 bits index a table directly, one entry per possible value: exact. All others are first
scaled to an index of ``INDEX_BITS`` bits, with one more entry for not-a-number. Gamma, inversion and colour
map are in the table, so that a frame costs one gather per channel.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.values import data_limits
from zarrfs_viewer.state.colormaps import lookup
from zarrfs_viewer.state.view_state import ChannelSettings, Rgb

__all__ = ["INDEX_BITS", "NAN_COLOR", "Transfer", "scaled_index", "transfer_table"]

INDEX_BITS = 14
"""16384 steps, so that steep colour maps and the sum of many channels stay within a grey level of plain arithmetic;
the table (128 KiB) still fits the second-level cache."""
NAN_COLOR: Rgb = (96, 0, 96)
"""How not-a-number is drawn, unlike any value of the usual colour maps."""
MIN_GAMMA, MAX_GAMMA = 0.05, 20.0

TOP = (1 << INDEX_BITS) - 1
FINE = 1 << 14
"""Colours are interpolated between the 256 of a map, so that sums of many channels stay smooth."""


class Transfer:
    """How values of one data type become colours: the limits, and how an index is got from them.

    ``roots`` square roots are taken of the scaled value before it becomes an index: gamma below 1 is steep at
    its foot, where evenly spaced indices would be too coarse.
    """

    __slots__ = ("direct", "dtype", "high", "low", "power", "roots")

    def __init__(self, dtype: np.dtype[Any], channel: ChannelSettings) -> None:
        low, high = channel.limits if channel.limits is not None else data_limits(dtype)
        if channel.component == "phase" and channel.limits is None:
            low, high = -math.pi, math.pi
        self.dtype = dtype
        self.low, self.high = min(low, high), max(low, high)
        self.direct = dtype.kind in "biu" and dtype.itemsize <= 2
        gamma = channel.gamma if math.isfinite(channel.gamma) else 1.0
        gamma = min(max(gamma, MIN_GAMMA), MAX_GAMMA)
        self.roots = 0 if self.direct else max(0, math.ceil(-math.log2(gamma)))
        self.power = gamma * 2**self.roots

    def index(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the index of each value into the table of ``transfer_table``."""
        if self.direct:
            return values.view(np.uint8 if values.dtype.itemsize == 1 else np.uint16)
        return scaled_index(values, self.low, self.high, self.roots)

    def positions(self) -> npt.NDArray[np.float64]:
        """Return for each index where its value lies between the limits, 0 to 1, gamma applied. NaN has
        none.
        """
        if not self.direct:
            even: npt.NDArray[np.float64] = np.arange(TOP + 1) / TOP
            return np.asarray(even**self.power)
        bits = 8 * self.dtype.itemsize
        values = np.arange(1 << bits).astype(np.float64)
        if self.dtype.kind == "i":
            values[1 << (bits - 1) :] -= 1 << bits
        width = self.high - self.low
        scaled: npt.NDArray[np.float64] = (
            (values - self.low) / width if width > 0 else np.where(values > self.low, 1.0, 0.0)
        )
        np.clip(scaled, 0.0, 1.0, out=scaled)
        if self.power != 1:
            scaled **= self.power
        return scaled


def scaled_index(values: npt.NDArray[Any], low: float, high: float, roots: int = 0) -> npt.NDArray[np.uint16]:
    """Return 0 at ``low`` and below to ``TOP`` at ``high`` and above; ``TOP + 1`` for not-a-number."""
    scaled = _scaled(values, low, high)
    for _ in range(roots):
        np.sqrt(scaled, out=scaled)
    scaled *= TOP
    scaled += 0.5
    with np.errstate(invalid="ignore"):
        index = scaled.astype(np.uint16)
    if values.dtype.kind == "f":
        nans = np.isnan(values)
        if nans.any():
            index[nans] = TOP + 1
    return index


def _scaled(values: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[Any]:
    """Return where values lie between the limits, clipped to 0..1: a new array of floats."""
    if values.dtype.kind in "iu":
        return _scaled_integers(values, low, high)
    low, high = max(low, -8e307), min(high, 8e307)
    width = high - low
    magnitude = max(abs(low), abs(high))
    # float32 is twice as fast; it will not do where the difference would overflow or cancel.
    narrow = values.dtype == np.float32 and 1e-30 < width < 1e30 and width > 1e-3 * magnitude
    kind = np.float32 if narrow else np.float64
    if width < 1e-300:
        return (values > low).astype(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: npt.NDArray[Any] = np.subtract(values, kind(low), dtype=kind)
        scaled *= kind(1 / width)
    return np.clip(scaled, 0, 1, out=scaled)


def _scaled_integers(values: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[Any]:
    """As above; the difference is taken in integers, so that 64-bit values keep all their bits."""
    info = np.iinfo(values.dtype)
    base = min(max(math.floor(low), int(info.min)), int(info.max))
    top = min(max(math.ceil(high), int(info.min)), int(info.max))
    width = high - low
    if width <= 0:
        return (values > base).astype(np.float64)
    clipped = np.clip(values, base, top)
    # Two's complement: the difference of clipped values is right in unsigned numbers, whatever the signs.
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    above = clipped.view(unsigned) - np.array(base, values.dtype).view(unsigned)
    scaled: npt.NDArray[Any] = above.astype(np.float64)
    scaled -= low - base
    scaled /= width
    return np.clip(scaled, 0.0, 1.0, out=scaled)


@lru_cache(maxsize=64)
def _colors(colormap: str, invert: bool) -> npt.NDArray[np.float64]:
    """Return ``FINE + 1`` colours (RGB, 0 to 255) evenly over the range."""
    # The ends of hilo are marks for what lies outside the limits: they must not bleed inwards.
    table = lookup("gray" if colormap == "hilo" else colormap).astype(np.float64)
    positions = np.linspace(0, 255, FINE + 1)
    colors = np.stack([np.interp(positions, np.arange(256), table[:, part]) for part in range(3)], axis=1)
    if colormap == "hilo":
        colors[0], colors[-1] = lookup(colormap)[0], lookup(colormap)[-1]
    return colors[::-1] if invert else colors


def transfer_table(dtype: np.dtype[Any], channel: ChannelSettings, shift: int) -> npt.NDArray[np.uint64]:
    """Return the colour of each index as four lanes of 16 bits, blue lowest, then green, red and 0; each is
    the colour from 0 to 255 times ``2 ** shift``. Made anew when settings change, which costs about 1 ms.
    """
    return _table(
        dtype.str,
        channel.limits,
        channel.component,
        channel.gamma,
        channel.colormap,
        channel.invert,
        shift,
    )


@lru_cache(maxsize=32)
def _table(
    dtype: str, limits: Any, component: Any, gamma: float, colormap: str, invert: bool, shift: int
) -> npt.NDArray[np.uint64]:
    settings = ChannelSettings(limits=limits, gamma=gamma, component=component)
    transfer = Transfer(np.dtype(dtype), settings)
    lanes = _lanes(_colors(colormap, invert), shift)
    entries = lanes[(transfer.positions() * FINE + 0.5).astype(np.intp)]
    if not transfer.direct:
        entries = np.append(entries, _lanes(np.array([NAN_COLOR], np.float64), shift))
    return entries


def _lanes(colors: npt.NDArray[np.float64], shift: int) -> npt.NDArray[np.uint64]:
    red, green, blue = ((colors[:, part] * (1 << shift) + 0.5).astype(np.uint64) for part in range(3))
    return red << np.uint64(32) | green << np.uint64(16) | blue
