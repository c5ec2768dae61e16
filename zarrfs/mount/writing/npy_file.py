"""Reading of a complete NumPy file as an array that is mapped into memory."""

from __future__ import annotations

import io
from math import prod
from typing import Any

import numpy as np

from zarrfs.mount.writing.pending import PendingFile

__all__ = ["IncompleteNpyError", "NpyError", "read_npy"]

MAX_HEADER_NBYTES = 1 << 20


class NpyError(Exception):
    """The bytes are not a NumPy file."""


class IncompleteNpyError(NpyError):
    """The file has a valid header and fewer bytes than the header requires."""


def read_npy(file: PendingFile) -> np.ndarray[Any, Any]:
    """Return the array of a NumPy file. Its memory is a mapping of the file. Raises NpyError."""
    stream = io.BytesIO(file.read(0, MAX_HEADER_NBYTES))
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream, MAX_HEADER_NBYTES)
        elif version in ((2, 0), (3, 0)):
            # Version 3.0 differs from 2.0 by the encoding of the header, which NumPy detects only in this function.
            read_header: Any = np.lib.format._read_array_header  # type: ignore[attr-defined]
            shape, is_fortran, dtype = read_header(stream, version, max_header_size=MAX_HEADER_NBYTES)
        else:
            raise NpyError(f"expected version 1.0, 2.0 or 3.0 of the format, found {version[0]}.{version[1]}")
    except (ValueError, TypeError, SyntaxError) as error:
        raise NpyError(f"it has no valid header of a NumPy file: {error}") from error
    if dtype.hasobject:
        raise NpyError("its elements are Python objects, which would have to be unpickled")
    expected = stream.tell() + prod(shape) * dtype.itemsize
    if file.size < expected:
        raise IncompleteNpyError(f"it has {file.size} bytes, expected {expected} by its header")
    if file.size > expected:
        raise NpyError(f"it has {file.size} bytes, expected {expected} by its header")
    return file.mapped(dtype, stream.tell(), shape, "F" if is_fortran else "C")
