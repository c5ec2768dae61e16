"""NumPy files (.npy) as arrays."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import ContiguousValues, file_stamp
from zarrfs.files.foreign_array import ForeignArray, is_presentable, plane_chunks
from zarrfs.files.foreign_store import ForeignStore

__all__ = ["array_of_npy", "open_npy"]

MAX_RANK = 32


def open_npy(path: str) -> ForeignStore:
    """Return a store with the array of a .npy file at its root. The format is described in ``numpy.lib.format``.

    Raises LocationError if the file is damaged, and UnsupportedError if its data type is not numeric.
    """
    fd = open_regular_file(path)
    try:
        array = array_of_npy(fd, path)
        return ForeignStore(f"file://{path}", {"": array}, lambda: file_stamp(fd), lambda: os.close(fd))
    except BaseException:
        os.close(fd)
        raise


def array_of_npy(fd: int, path: str) -> ForeignArray:
    """Return the array of an open .npy file. Raises as ``open_npy``; ``path`` is named in messages."""
    values, array = _array(fd, path)
    size = os.fstat(fd).st_size
    if values.nbytes > size:
        raise LocationError(
            f"{path} has {size} bytes; expected more than {values.nbytes} for the shape {array.shape}"
        )
    return array


def _array(fd: int, path: str) -> tuple[ContiguousValues, ForeignArray]:
    with os.fdopen(os.dup(fd), "rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
            header: Any = read.get(version[0])
            if header is None:
                raise UnsupportedError(f"{path}: version {version} of the npy format is not supported")
            shape, fortran, dtype = header(stream)
        except ZarrError:
            raise
        except Exception as error:  # numpy evaluates the header as Python, which raises errors of many kinds
            raise LocationError(f"{path} is not a valid npy file: {error}") from error
        offset = stream.tell()
    if not is_presentable(dtype):
        raise UnsupportedError(f"{path} has data type {dtype}; expected numbers")
    if len(shape) > MAX_RANK or any(length < 0 for length in shape):
        raise LocationError(f"{path}: the shape {shape} is not valid")
    values = ContiguousValues(fd, offset, shape, dtype, fortran)
    chunks = (
        plane_chunks(shape[::-1], dtype.itemsize)[::-1] if fortran else plane_chunks(shape, dtype.itemsize)
    )
    return values, ForeignArray(shape, chunks, dtype, values.read)
