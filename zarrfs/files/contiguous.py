"""Regions of an array that is stored contiguously in a file, read with ``pread``."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ContiguousValues", "file_stamp", "path_stamp"]


def file_stamp(fd: int) -> tuple[int, int, int]:
    """Return an object that changes whenever an open file is changed."""
    status = os.fstat(fd)
    return status.st_mtime_ns, status.st_size, status.st_ino


def path_stamp(path: str) -> tuple[int, int, int] | None:
    """Return the ``file_stamp`` of the file at a path; None if it does not exist any more."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class ContiguousValues:
    """Values in C order, or in Fortran order, from an offset of an open file. Safe to use from several threads."""

    def __init__(
        self, fd: int, offset: int, shape: Sequence[int], dtype: np.dtype[Any], fortran: bool = False
    ) -> None:
        self._fd, self._offset, self._dtype = fd, offset, dtype
        self._shape = tuple(shape)[::-1] if fortran else tuple(shape)
        self._is_fortran = fortran

    @property
    def nbytes(self) -> int:
        """The size of all values in bytes."""
        return math.prod(self._shape) * self._dtype.itemsize

    def read(self, region: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return the values of a region. Raises OSError, also if the file is too short."""
        if self._is_fortran:
            return self._read(region[::-1]).T
        return self._read(region)

    def _read(self, region: tuple[slice, ...]) -> npt.NDArray[Any]:
        shape = tuple(part.stop - part.start for part in region)
        out = np.empty(shape, self._dtype)
        # The trailing dimensions that are read completely are contiguous, together with the one before them.
        first = len(shape)
        while first > 0 and shape[first - 1] == self._shape[first - 1]:
            first -= 1
        leading = max(0, first - 1)
        strides = [
            math.prod(self._shape[number + 1 :]) * self._dtype.itemsize for number in range(len(self._shape))
        ]
        length = math.prod(shape[leading:]) * self._dtype.itemsize
        for index in itertools.product(*(range(count) for count in shape[:leading])):
            at = self._offset + sum(
                (region[number].start + (index[number] if number < leading else 0)) * strides[number]
                for number in range(len(shape))
            )
            data = os.pread(self._fd, length, at)
            if len(data) != length:
                raise OSError(0, f"the file ends after {at + len(data)} bytes; expected {at + length}")
            out[index] = np.frombuffer(data, self._dtype).reshape(shape[leading:])
        return out
