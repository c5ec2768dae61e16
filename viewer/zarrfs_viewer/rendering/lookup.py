"""Lookup tables from data values to colours, and the indices of values in these tables.

Values of 8 and 16 bits are indices of a table with one entry per value, which is exact. All other values are
scaled to an index of ``INDEX_BITS`` bits, and the table has one additional entry for NaN. Gamma, inversion and
colour map are part of the table, so that drawing a frame needs one gather per channel.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.values import data_limits, unsigned_offsets
from zarrfs_viewer.state.colormaps import lookup
from zarrfs_viewer.state.view_state import ChannelSettings, Rgb

__all__ = ["INDEX_BITS", "NAN_COLOR", "Transfer", "scaled_index", "transfer_table"]

INDEX_BITS = 14
"""With 16384 steps, the sum of many channels with steep colour maps differs from exact arithmetic by at most one gray
level. The table (128 KiB) fits the L2 cache."""
NAN_COLOR: Rgb = (96, 0, 96)
"""The colour of NaN. It does not occur in the common colour maps."""
MIN_GAMMA, MAX_GAMMA = 0.05, 20.0

MAX_INDEX = (1 << INDEX_BITS) - 1
INTERPOLATED_COLORS = 1 << 14
"""The number of intervals to which the 256 colours of a map are interpolated, so that sums of channels are smooth."""


class Transfer:
    """The mapping of values of one data type to table indices, for given limits and gamma.

    ``roots`` is the number of square roots applied to the scaled value before it is converted to an index. A gamma
    below 1 is steep near the lower limit, where evenly spaced indices would be too coarse.
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
        """Return the position of each index between the limits, 0 to 1, after gamma. The index of NaN is not
        included.
        """
        if not self.direct:
            even: npt.NDArray[np.float64] = np.arange(MAX_INDEX + 1) / MAX_INDEX
            return np.asarray(even**self.power)
        bits = 8 * self.dtype.itemsize
        values = np.arange(1 << bits).astype(np.float64)
        if self.dtype.kind == "i":
            values[1 << (bits - 1) :] -= 1 << bits
        low, width = float(self.low), float(self.high - self.low)
        scaled: npt.NDArray[np.float64] = (
            (values - low) / width if width > 0 else np.where(values > low, 1.0, 0.0)
        )
        np.clip(scaled, 0.0, 1.0, out=scaled)
        if self.power != 1:
            scaled **= self.power
        return scaled


def scaled_index(values: npt.NDArray[Any], low: float, high: float, roots: int = 0) -> npt.NDArray[np.uint16]:
    """Return an index from 0 for values up to ``low`` to ``MAX_INDEX`` for values from ``high``.

    The index of NaN is ``MAX_INDEX + 1``.
    """
    scaled = _scaled(values, low, high)
    for _ in range(roots):
        np.sqrt(scaled, out=scaled)
    scaled *= MAX_INDEX
    scaled += 0.5
    with np.errstate(invalid="ignore"):
        index = scaled.astype(np.uint16)
    if values.dtype.kind == "f":
        nans = np.isnan(values)
        if nans.any():
            index[nans] = MAX_INDEX + 1
    return index


def _scaled(values: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[Any]:
    """Return the position of values between the limits, clipped to 0 .. 1, as a new array of floats."""
    if values.dtype.kind in "iu":
        return _scaled_integers(values, low, high)
    low, high = max(low, -8e307), min(high, 8e307)
    width = high - low
    magnitude = max(abs(low), abs(high))
    # float32 is twice as fast. It is not used where the difference could overflow or lose precision.
    use_float32 = values.dtype == np.float32 and 1e-30 < width < 1e30 and width > 1e-3 * magnitude
    dtype = np.float32 if use_float32 else np.float64
    if width < 1e-300:
        return (values > low).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: npt.NDArray[Any] = np.subtract(values, dtype(low), dtype=dtype)
        scaled *= dtype(1 / width)
    return np.clip(scaled, 0, 1, out=scaled)


def _scaled_integers(values: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[Any]:
    """Return the same for integers. The difference is computed with integers, so that 64-bit values are exact."""
    info = np.iinfo(values.dtype)
    base = min(max(math.floor(low), int(info.min)), int(info.max))
    top = min(max(math.ceil(high), int(info.min)), int(info.max))
    width = high - low
    if width <= 0:
        return (values > base).astype(np.float64)
    clipped = np.clip(values, base, top)
    scaled: npt.NDArray[Any] = unsigned_offsets(clipped, base).astype(np.float64)
    scaled -= float(low - base)
    scaled /= float(width)
    return np.clip(scaled, 0.0, 1.0, out=scaled)


@lru_cache(maxsize=64)
def _colors(colormap: str, invert: bool) -> npt.NDArray[np.float64]:
    """Return ``INTERPOLATED_COLORS + 1`` evenly spaced colours of a map (RGB, 0 to 255)."""
    # The end colours of hilo mark values outside of the limits. They are not interpolated.
    table = lookup("gray" if colormap == "hilo" else colormap).astype(np.float64)
    positions = np.linspace(0, 255, INTERPOLATED_COLORS + 1)
    colors = np.stack([np.interp(positions, np.arange(256), table[:, part]) for part in range(3)], axis=1)
    if colormap == "hilo":
        colors[0], colors[-1] = lookup(colormap)[0], lookup(colormap)[-1]
    return colors[::-1] if invert else colors


def transfer_table(dtype: np.dtype[Any], channel: ChannelSettings, shift: int) -> npt.NDArray[np.uint64]:
    """Return the colour of each index as four 16-bit lanes: blue in the lowest bits, then green, red and 0.

    A lane is the colour from 0 to 255 times ``2 ** shift``. Tables are cached; computing one takes about 1 ms.
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
    entries = lanes[(transfer.positions() * INTERPOLATED_COLORS + 0.5).astype(np.intp)]
    if not transfer.direct:
        entries = np.append(entries, _lanes(np.array([NAN_COLOR], np.float64), shift))
    return entries


def _lanes(colors: npt.NDArray[np.float64], shift: int) -> npt.NDArray[np.uint64]:
    red, green, blue = ((colors[:, part] * (1 << shift) + 0.5).astype(np.uint64) for part in range(3))
    return red << np.uint64(32) | green << np.uint64(16) | blue
