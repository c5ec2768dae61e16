"""Statistics of values that come in pieces, in memory that does not grow with them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RunningStatistics", "Summary"]

MEDIAN_VALUES = 1 << 24
"""So many values are kept for the median; beyond, every second one, and so on."""


@dataclass(frozen=True)
class Summary:
    """The result. NaN where there were no values."""

    count: int
    nans: int
    mean: float
    std: float
    minimum: float
    maximum: float
    median: float
    sum: float

    def moments(self) -> dict[str, float]:
        """Return all but the counts, by name."""
        names = ("mean", "std", "minimum", "maximum", "median", "sum")
        return {name: getattr(self, name) for name in names}


class RunningStatistics:
    """Add real values, then ask for the result. NaNs are counted apart.

    Mean and deviation are merged from those of the pieces (Chan, Golub and LeVeque), so that a large offset
    costs no digits.
    """

    def __init__(self) -> None:
        self._count = self._nans = 0
        self._mean = self._squares = 0.0
        self._sum: float | int = 0
        self._minimum, self._maximum = math.inf, -math.inf
        self._kept: list[npt.NDArray[Any]] = []
        self._kept_count = 0
        self._stride = 1
        self._phase = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add values of any shape."""
        flat = values.reshape(-1)
        if flat.dtype.kind == "f":
            missing = np.isnan(flat)
            if missing.any():
                self._nans += int(missing.sum())
                flat = flat[~missing]
        if not flat.size:
            return
        self._sum += flat.sum(dtype=np.float64).item() if flat.dtype.kind == "f" else _exact_sum(flat)
        self._minimum = min(self._minimum, flat.min().item())
        self._maximum = max(self._maximum, flat.max().item())
        with np.errstate(
            invalid="ignore", over="ignore"
        ):  # infinities make the moments NaN, as they should be
            mean = float(flat.mean(dtype=np.float64))
            squares = float(((flat.astype(np.float64) - mean) ** 2).sum())
        total = self._count + flat.size
        difference = mean - self._mean
        self._squares += squares + difference**2 * self._count * flat.size / total
        self._mean += difference * flat.size / total
        self._count = total
        self._keep(flat)

    def _keep(self, flat: npt.NDArray[Any]) -> None:
        chosen = flat[self._phase :: self._stride]
        self._phase = (self._phase - flat.size) % self._stride
        self._kept.append(chosen.copy())
        self._kept_count += chosen.size
        while self._kept_count > MEDIAN_VALUES:
            self._kept = [np.concatenate(self._kept)[::2]]
            self._kept_count = self._kept[0].size
            self._phase += self._stride * (self._phase % 2)
            self._stride *= 2

    def result(self) -> Summary:
        """Return the statistics of all that was added."""
        if not self._count:
            return Summary(0, self._nans, math.nan, math.nan, math.nan, math.nan, math.nan, 0.0)
        median = float(np.median(np.concatenate(self._kept)))
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
    """Return the sum of integers or bools; of 64-bit ones in two halves, so that it cannot wrap around."""
    if flat.dtype.itemsize < 8 or flat.dtype.kind == "b":
        return int(flat.sum(dtype=np.int64))
    low = int((flat & flat.dtype.type(0xFFFFFFFF)).sum(dtype=np.uint64))
    high = int((flat >> flat.dtype.type(32)).sum(dtype=np.int64))
    return (high << 32) + low
