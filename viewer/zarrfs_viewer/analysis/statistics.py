"""Statistics of values that are added in blocks. The memory does not depend on the number of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RunningStatistics", "Summary", "table_value"]

MAX_MEDIAN_VALUES = 1 << 24
"""The maximum number of values that are stored for the median. When it is exceeded, every second value is dropped."""


@dataclass(frozen=True)
class Summary:
    """The statistics. Those of no values are NaN, except for the counts and the sum, which are 0."""

    count: int
    nans: int
    mean: float
    std: float
    minimum: float
    maximum: float
    median: float
    sum: float

    def moments(self) -> dict[str, float]:
        """Return all statistics except the counts, by name."""
        names = ("mean", "std", "minimum", "maximum", "median", "sum")
        return {name: getattr(self, name) for name in names}


class RunningStatistics:
    """An accumulator of real values. NaNs are counted and otherwise ignored.

    The mean and the standard deviation of blocks are merged with the method of Chan, Golub and LeVeque, which is
    accurate for values with a large offset.
    """

    def __init__(self) -> None:
        self._count = self._nans = 0
        self._mean = self._squares = 0.0
        self._sum: float | int = 0
        self._minimum, self._maximum = math.inf, -math.inf
        self._sample: list[npt.NDArray[Any]] = []
        self._sample_count = 0
        self._stride = 1
        self._phase = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add values of any shape."""
        flat = values.reshape(-1)
        if flat.dtype.kind == "f":
            is_nan = np.isnan(flat)
            if is_nan.any():
                self._nans += int(is_nan.sum())
                flat = flat[~is_nan]
        if not flat.size:
            return
        self._sum += flat.sum(dtype=np.float64).item() if flat.dtype.kind == "f" else _exact_sum(flat)
        self._minimum = min(self._minimum, flat.min().item())
        self._maximum = max(self._maximum, flat.max().item())
        with np.errstate(invalid="ignore", over="ignore"):  # infinite values result in NaN
            mean = float(flat.mean(dtype=np.float64))
            squares = float(((flat.astype(np.float64) - mean) ** 2).sum())
        total = self._count + flat.size
        difference = mean - self._mean
        self._squares += squares + difference**2 * self._count * flat.size / total
        self._mean += difference * flat.size / total
        self._count = total
        self._add_to_sample(flat)

    def _add_to_sample(self, flat: npt.NDArray[Any]) -> None:
        """Store every ``stride``-th value for the median."""
        sampled = flat[self._phase :: self._stride]
        self._phase = (self._phase - flat.size) % self._stride
        self._sample.append(sampled.copy())
        self._sample_count += sampled.size
        while self._sample_count > MAX_MEDIAN_VALUES:
            self._sample = [np.concatenate(self._sample)[::2]]
            self._sample_count = self._sample[0].size
            self._phase += self._stride * (self._phase % 2)
            self._stride *= 2

    def result(self) -> Summary:
        """Return the statistics of all added values."""
        if not self._count:
            return Summary(0, self._nans, math.nan, math.nan, math.nan, math.nan, math.nan, 0.0)
        median = float(np.median(np.concatenate(self._sample)))
        deviation = math.sqrt(self._squares / self._count) if math.isfinite(self._squares) else math.nan
        return Summary(
            self._count,
            self._nans,
            self._mean,
            deviation,
            self._minimum,
            self._maximum,
            median,
            self._sum,
        )


def _exact_sum(flat: npt.NDArray[Any]) -> int:
    """Return the sum of integers or bools. The halves of 64-bit integers are added separately, to avoid overflow."""
    if flat.dtype.itemsize < 8 or flat.dtype.kind == "b":
        return int(flat.sum(dtype=np.int64))
    low = int((flat & flat.dtype.type(0xFFFFFFFF)).sum(dtype=np.uint64))
    high = int((flat >> flat.dtype.type(32)).sum(dtype=np.int64))
    return (high << 32) + low


PHYSICAL = ("area", "length")
"""Quantities that are computed from the size of a pixel, which has few significant digits."""


def table_value(name: str, value: Any) -> Any:
    """Return the value of a quantity as it is written to a table: 2590.8 for an area of 2590.8000000000006."""
    if value is None:
        return ""
    return float(f"{value:.12g}") if name in PHYSICAL else value
