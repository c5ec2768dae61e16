"""Values that a header describes. Another part of the file, or another file, contains them, possibly compressed."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, ZarrError
from zarrfs.files.contiguous import ContiguousValues

__all__ = ["spooled", "stored_values"]

BLOCK_NBYTES = 1 << 20

MIN_FREE_NBYTES = 1 << 28
"""The space that temporary files leave free on their volume."""


def stored_values(
    path: str, offset: int, shape: Sequence[int], dtype: np.dtype[Any], compression: str | None = None
) -> tuple[ContiguousValues, int]:
    """Return the values in a file, in C order of ``shape`` from ``offset``, and the descriptor to close.

    ``compression`` is ``gzip``, ``zlib`` or ``bzip2``. Compressed values are written to a temporary file, because their
    parts cannot be read separately. An offset of -1 means that the values are the end of the file.

    Raises LocationError if the file is too short or damaged.
    """
    if any(length < 0 for length in shape):
        raise LocationError(f"{path}: the shape {tuple(shape)} is not valid; expected lengths of at least 0")
    nbytes = math.prod(shape) * dtype.itemsize
    try:
        fd = open_regular_file(path)
    except (OSError, ValueError) as error:  # the name is a text of the header, and can contain NUL
        reason = error if isinstance(error, ZarrError | ValueError) else error.strerror
        raise LocationError(f"{path}: the file of the values cannot be opened: {reason}") from error
    try:
        size = os.fstat(fd).st_size
        if not -1 <= offset <= size:
            raise LocationError(f"{path}: the values begin at {offset}; expected an offset from 0 to {size}")
        if compression is not None:
            plain = _decompressed(fd, max(offset, 0), nbytes, compression, path)
            os.close(fd)
            fd, offset = plain, 0
        elif offset < 0:
            offset = size - nbytes
        available = os.fstat(fd).st_size - offset
        if offset < 0 or available < nbytes:
            raise LocationError(
                f"{path}: expected {nbytes} bytes of values for the shape {tuple(shape)}, found {max(0, available)}"
            )
    except BaseException:
        os.close(fd)
        raise
    return ContiguousValues(fd, offset, shape, dtype), fd


def _decompressed(fd: int, offset: int, nbytes: int, compression: str, path: str) -> int:
    """Return the descriptor of an unnamed file with the first ``nbytes`` bytes of the compressed data."""
    import bz2
    import gzip

    openers: dict[str, Callable[[BinaryIO], Any]] = {"gzip": gzip.open, "zlib": _Zlib, "bzip2": bz2.open}
    with os.fdopen(os.dup(fd), "rb") as stream:
        stream.seek(offset)
        try:
            with openers[compression](stream) as source:
                plain = spooled(source, nbytes)
                try:
                    source.read(1)  # This compares the checksum after the data.
                except BaseException:
                    os.close(plain)
                    raise
                return plain
        except LocationError as error:
            raise LocationError(f"{path}: {error}") from error
        except (OSError, EOFError, zlib.error) as error:
            raise LocationError(f"{path}: the compressed values cannot be decoded: {error}") from error


def spooled(stream: Any, nbytes: int) -> int:
    """Return the descriptor of an unnamed temporary file with the first ``nbytes`` bytes of a stream, or all of fewer.

    ``stream`` has the method ``read``. The descriptor is at the start of the file. Raises LocationError if the volume
    of the temporary files has not enough free space: a small compressed file can contain any number of bytes.
    """
    import shutil  # with tempfile a megabyte of modules that other values do not need
    import tempfile

    with tempfile.TemporaryFile() as file:
        free = max(0, shutil.disk_usage(file.fileno()).free - MIN_FREE_NBYTES)
        if nbytes > free:
            raise LocationError(
                f"the decompressed values have {nbytes:,} bytes, but only {free:,} bytes are free for temporary "
                f"files; set TMPDIR to a directory with more free space"
            )
        remaining = nbytes
        while remaining > 0 and (data := stream.read(min(remaining, BLOCK_NBYTES))):
            file.write(data)
            remaining -= len(data)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return os.dup(file.fileno())


class _Zlib:
    """A zlib stream with the interface of a file."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = zlib.decompressobj()

    def __enter__(self) -> _Zlib:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; an empty string at the end."""
        while not self._decoder.eof:
            data = self._decoder.unconsumed_tail or self._stream.read(BLOCK_NBYTES)
            if not data:
                raise EOFError("the zlib stream ends early")
            decoded = self._decoder.decompress(data, size)
            if decoded:
                return decoded
        return b""
