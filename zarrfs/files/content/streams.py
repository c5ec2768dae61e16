"""Flat byte streams of virtual files that are read in blocks: the elements of an array in some order, possibly with
the bytes of each element reversed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from math import prod
from typing import Any, Protocol

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.indexing.flat_ranges import FlatOrder, flat_axes
from zarrfs.engine.read.cached_stream import CachedStream
from zarrfs.engine.read.flat_blocks import (
    FlatBlockGrid,
    Window,
    box_version,
    flat_block_grid,
    flat_version,
    strided_window,
)
from zarrfs.engine.read.flat_reading import read_flat_box
from zarrfs.errors import StoreError, ZarrError
from zarrfs.files.content.freshness import REVALIDATION_SECONDS, array_stamp

__all__ = ["ArrayStream", "ByteSwappedStream", "Bytes", "FlatStream", "SignFlippedStream"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

SIGN_BIT = 0x80

MAX_LISTED_CHUNKS = 100_000
"""Of an array with more stored chunks it is not determined where chunks are missing. Listing so many takes a tenth of a
second in a directory, and 100 requests in an object store.
"""


class FlatStream(Protocol):
    """A stream of bytes of known size that can be read at any offset. Thread-safe.

    The methods that read fill ``out``, a one-dimensional array of uint8, with the bytes from ``start``. The range lies
    in the stream. All except ``read_into`` raise StoreError with ESTALE if the metadata have changed since the stream
    was created: the missing chunks of a removed array would read as the fill value.

    Attributes:
        nbytes: the size of the stream.
    """

    nbytes: int

    def grid(self, max_block_nbytes: int) -> FlatBlockGrid:
        """Return the division of the stream into blocks of at most ``max_block_nbytes`` bytes."""

    def read_into(self, start: int, out: Bytes) -> None:
        """Read the current bytes of a range."""

    def read_part(self, start: int, out: Bytes) -> None:
        """Read a range of which other parts of the same chunks will probably be read.

        The chunks are copied from the cache, compared with the store at most once per ``REVALIDATION_SECONDS``. Chunks
        that can only be decoded as a whole are kept in the cache, if they fit.
        """

    def read_block(self, start: int, out: Bytes, *, holds_whole_chunks: bool) -> None:
        """Read the current bytes of a block.

        If blocks do not hold whole chunks, the next ones contain other parts of the same chunks, which are therefore
        decoded as a whole and kept in the cache, if they fit. Otherwise no chunk enters the cache.
        """

    @property
    def has_high_latency(self) -> bool:
        """Whether reading the stream sends requests to a server."""

    def window(self, start: int, nbytes: int, stride: int, max_nbytes: int) -> Window | None:
        """Return a window of at most ``max_nbytes`` bytes for a strided access; see ``strided_window``."""

    def read_window(self, window: Window, out: Bytes) -> None:
        """Fill ``out`` with a window. Its chunks enter the cache of chunks, if they fit."""

    def window_version(self, window: Window) -> Hashable | None:
        """Return a value that changes when the bytes of a window change, or None where that is unknown."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension of the array, from the slowest to the fastest one in the stream."""

    def version(self, start: int, stop: int) -> Hashable | None:
        """Return a value that changes when the bytes of the range change, or None where that is unknown."""

    def stored_ranges(self) -> list[tuple[int, int]] | None:
        """Return ranges (start, stop), in ascending order, outside of which all bytes are 0 now, because the chunks are
        missing. None if that is unknown.
        """


class ArrayStream:
    """The elements of an array in C or F order, or with the dimensions in another order (see ``FlatOrder``)."""

    def __init__(self, array: Array, order: FlatOrder = "C") -> None:
        self._array = array
        self._order = order
        self.nbytes = array.nbytes
        self._stamp = array_stamp(array)

    @cached_property
    def _cached(self) -> CachedStream:
        # Created on first use: most files are listed and never read.
        max_age = None if self._array.storage.access.assumes_unchanged_data else REVALIDATION_SECONDS
        return CachedStream(self._array.storage, self._order, max_age, self._check_metadata)

    def grid(self, max_block_nbytes: int) -> FlatBlockGrid:
        return flat_block_grid(self._array.storage, self._order, max_block_nbytes)

    def _check_metadata(self) -> None:
        if self._array.storage.access.assumes_unchanged_data:
            return
        # A document that was missing at the beginning cannot have been replaced.
        if self._stamp is not None and self._stamp.value is not None and not self._stamp.is_current:
            raise StoreError(
                f"{self._array.store.url}: the metadata of {self._array.name} have changed since the file was opened; "
                "open it again",
                errno.ESTALE,
            )

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self._array.storage.spec.shape
        return tuple(shape[axis] for axis in flat_axes(self._order, len(shape)))

    def read_into(self, start: int, out: Bytes) -> None:
        self._array.read_bytes_into(start, out, self._order)

    def read_part(self, start: int, out: Bytes) -> None:
        if self._cached.copy(start, out):
            return
        if self._cached.decodes_whole_chunks:
            self._cached.cache_on_next_read(start, out.size)
        with self._checking_metadata():
            self._array.read_bytes_into(start, out, self._order)

    def read_block(self, start: int, out: Bytes, *, holds_whole_chunks: bool) -> None:
        if not holds_whole_chunks:
            self._cached.cache_on_next_read(start, out.size)
        with self._checking_metadata():
            self._array.read_bytes_into(start, out, self._order, keep_chunks=not holds_whole_chunks)

    @contextmanager
    def _checking_metadata(self) -> Iterator[None]:
        """Compare the metadata after bytes have been read from the store."""
        try:
            yield
        except ZarrError:
            # A chunk of another data type or shape cannot be decoded.
            self._check_metadata()
            raise
        self._check_metadata()

    @property
    def has_high_latency(self) -> bool:
        return self._array.store.is_remote

    def window(self, start: int, nbytes: int, stride: int, max_nbytes: int) -> Window | None:
        return strided_window(self._array.storage, self._order, start, nbytes, stride, max_nbytes)

    def read_window(self, window: Window, out: Bytes) -> None:
        # The version of the window was determined just now. Older chunks would belong to another version.
        if self._cached.copy_box(window.box, out):
            return
        self._cached.cache_box_on_next_read(window.box)
        storage = self._array.storage
        box = [slice(low, high) for low, high in window.box]
        with self._checking_metadata():
            read_flat_box(storage, box, out.view(storage.dtype), flat_axes(self._order, len(box)))

    def window_version(self, window: Window) -> Hashable | None:
        return box_version(self._array.storage, window.box, self._order)

    def version(self, start: int, stop: int) -> Hashable | None:
        return flat_version(self._array.storage, start, stop - start, self._order)

    def stored_ranges(self) -> list[tuple[int, int]] | None:
        storage = self._array.storage
        shape, grid = storage.spec.shape, storage.grid_shape
        if (
            not shape
            or not storage.store.listable
            or not storage.access.fill_missing
            or storage.dtype.hasobject
        ):
            return None
        if np.array(storage.effective_fill_value, storage.dtype).tobytes().strip(b"\0"):
            return None
        # A chunk is located along the slowest dimensions: those with chunks of length 1, and the next one. Its elements
        # lie in the range of the stream that has its indices along these dimensions.
        axes = flat_axes(self._order, len(shape))
        depth = next((n for n, axis in enumerate(axes[:-1]) if grid[axis] != shape[axis]), len(axes) - 1)
        *outer, axis = axes[: depth + 1]
        stride = storage.dtype.itemsize * prod(shape[other] for other in axes[depth + 1 :])
        places = set()
        for count, coords in enumerate(storage.stored_chunks()):
            if count == MAX_LISTED_CHUNKS:
                return None
            places.add(tuple(coords[each] for each in (*outer, axis)))
        ranges: list[tuple[int, int]] = []
        division = storage.axes[axis]
        for *indices, chunk in sorted(places):
            line = 0
            for other, index in zip(outer, indices, strict=True):
                line = line * shape[other] + index
            begin = division.begin(chunk)
            start = (line * shape[axis] + begin) * stride
            stop = (line * shape[axis] + min(begin + division.size(chunk), shape[axis])) * stride
            if ranges and ranges[-1][1] == start:
                start = ranges.pop()[0]
            ranges.append((start, stop))
        return ranges


class DerivedStream:
    """A stream whose bytes are computed from groups of ``width`` bytes of another stream. A base class."""

    def __init__(self, stream: FlatStream, width: int) -> None:
        self._stream = stream
        self._width = width
        self.nbytes = stream.nbytes

    def grid(self, max_block_nbytes: int) -> FlatBlockGrid:
        return self._stream.grid(max_block_nbytes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._stream.shape

    def version(self, start: int, stop: int) -> Hashable | None:
        return self._stream.version(start, stop)

    def stored_ranges(self) -> list[tuple[int, int]] | None:
        return None

    @property
    def has_high_latency(self) -> bool:
        return self._stream.has_high_latency

    def window(self, start: int, nbytes: int, stride: int, max_nbytes: int) -> Window | None:
        return self._stream.window(start, nbytes, stride, max_nbytes)

    def read_window(self, window: Window, out: Bytes) -> None:
        # A window consists of whole elements.
        self._derive(0, out, lambda _, raw: self._stream.read_window(window, raw))

    def window_version(self, window: Window) -> Hashable | None:
        return self._stream.window_version(window)

    def read_into(self, start: int, out: Bytes) -> None:
        self._derive(start, out, self._stream.read_into)

    def read_part(self, start: int, out: Bytes) -> None:
        self._derive(start, out, self._stream.read_part)

    def read_block(self, start: int, out: Bytes, *, holds_whole_chunks: bool) -> None:
        self._derive(start, out, partial(self._stream.read_block, holds_whole_chunks=holds_whole_chunks))

    def _derive(self, start: int, out: Bytes, read: Callable[[int, Bytes], None]) -> None:
        """Fill ``out`` from the bytes that ``read`` reads of the other stream."""
        raise NotImplementedError


class ByteSwappedStream(DerivedStream):
    """Another stream in which the bytes of each group of ``width`` bytes are reversed."""

    def stored_ranges(self) -> list[tuple[int, int]] | None:
        return self._stream.stored_ranges()

    def _derive(self, start: int, out: Bytes, read: Callable[[int, Bytes], None]) -> None:
        width = self._width
        skip = start % width
        stop = -(-(start + out.size) // width) * width
        is_aligned = skip == 0 and stop - start == out.size
        raw = out if is_aligned else np.empty(stop - start + skip, np.uint8)
        read(start - skip, raw)
        if width in (2, 4, 8):
            raw.view(f"u{width}").byteswap(inplace=True)
        else:
            groups = raw.reshape(-1, width)
            groups[...] = groups[:, ::-1].copy()
        if not is_aligned:
            out[...] = raw[skip : skip + out.size]


class SignFlippedStream(DerivedStream):
    """A stream of big-endian integers of ``width`` bytes whose highest bits are inverted.

    This converts unsigned integers to signed ones by subtracting half of the range, and signed to unsigned ones by
    adding it.
    """

    def _derive(self, start: int, out: Bytes, read: Callable[[int, Bytes], None]) -> None:
        read(start, out)
        out[-start % self._width :: self._width] ^= SIGN_BIT
