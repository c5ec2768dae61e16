"""Files of elements without a header. Their shape and data type are given."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zarrfs.errors import OptionError
from zarrfs.files.contiguous import file_stamp
from zarrfs.files.foreign_array import ForeignArray, is_presentable, plane_chunks
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.stored_values import stored_values
from zarrfs.text import short_repr

__all__ = ["open_raw"]


def open_raw(path: str, shape: Sequence[int], dtype: npt.DTypeLike, offset: int = 0) -> ForeignStore:
    """Return a store with the array of a raw file, in C order, at its root.

    Raises OptionError for a data type that is not numeric or a shape with lengths below 1, and LocationError if the
    file is too short.
    """
    try:
        given = np.dtype(dtype)
    except TypeError as error:
        raise OptionError(
            f"dtype: expected a NumPy data type such as uint16 or >f4, found {short_repr(dtype)}"
        ) from error
    if not is_presentable(given):
        raise OptionError(f"dtype: expected numbers, found {given}")
    if not shape or min(shape) < 1:
        raise OptionError(f"shape: expected lengths of at least 1, found {tuple(shape)}")
    lengths = tuple(shape)
    values, fd = stored_values(path, offset, lengths, given)
    chunks = plane_chunks(lengths, given.itemsize)
    array = ForeignArray(lengths, chunks, given.newbyteorder("="), values.read)
    return ForeignStore(
        f"file://{os.path.abspath(path)}", {"": array}, lambda: file_stamp(fd), lambda: os.close(fd)
    )
