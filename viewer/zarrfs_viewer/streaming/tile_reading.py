"""Reading of one tile in which single chunks may fail. Blocks; called by the streamer's worker threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import ChunkDecodeError, ServerError, StoreError, ZarrError
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import PlaneKey, TileKey

__all__ = ["ReadFailure", "is_of_chunk", "read_intact", "read_parts", "read_tile"]

AnyArray = npt.NDArray[Any]
Region = tuple[slice, slice]

MAX_STORE_FAILURES = 2
"""After this number of chunks in succession that the store could not read, the others of the tile are not tried: each
may take long, for instance on a damaged disk."""


@dataclass(frozen=True)
class ReadFailure:
    """The failed part of a tile: a message for the user, the last error, and the failed rectangles (top, left,
    bottom, right) in pixels of the plane.
    """

    message: str
    failed: tuple[tuple[int, int, int, int], ...]
    error: BaseException


def read_tile(
    image: Image, key: TileKey, keeps_chunks: bool = False, is_visible: bool = False
) -> tuple[AnyArray | None, ReadFailure | None]:
    """Return the tile and the failed part of it. Failed chunks are zero. The tile is None if all of it failed.

    With ``keeps_chunks`` the chunks are decoded completely and cached: by this read, or, if the tile is visible and its
    values are needed soon, by the next read of a part of them. Every exception is returned as a failure, so that it
    does not end the worker thread.
    """
    rows, columns = image.rect(key)
    tile: AnyArray | None = None
    failed: list[Region] = []
    last_error: Exception | None = None
    try:
        if keeps_chunks and not is_visible:
            image.cache_on_next_read(key)
        for region, values in read_parts(image, key.plane, rows, columns):
            if isinstance(values, Exception):
                failed.append(region)
                last_error = values
            elif region == (rows, columns):
                tile = values
            else:
                if tile is None:
                    shape = (rows.stop - rows.start, columns.stop - columns.start, *values.shape[2:])
                    tile = np.zeros(shape, values.dtype)
                top, left = region[0].start - rows.start, region[1].start - columns.start
                tile[top : top + values.shape[0], left : left + values.shape[1]] = values
        if last_error is None and keeps_chunks and is_visible:
            image.cache_on_next_read(key)
    except Exception as error:
        return None, _failure(error, [(rows, columns)])
    if last_error is None:
        return tile, None
    return tile, _failure(last_error, failed if tile is not None else [(rows, columns)])


def read_parts(
    image: Image, plane: PlaneKey, rows: slice, columns: slice
) -> Iterator[tuple[Region, AnyArray | Exception]]:
    """Yield ((rows, columns), values) of a region of a plane: the region, or if one of its chunks cannot be read, its
    part of each chunk. In the place of the values of such a chunk is the error. Blocks.

    Raises the error if it is not that of a chunk: other reads from the store would fail, too.
    """
    values = _read_unless_unreadable(image, plane, rows, columns)
    regions = [] if isinstance(values, np.ndarray) else list(_chunk_regions(image, plane, rows, columns))
    if len(regions) < 2:
        yield (rows, columns), values
        return
    failures = 0  # of the store, in succession
    for region in regions:
        if failures < MAX_STORE_FAILURES:
            values = _read_unless_unreadable(image, plane, *region)
            is_failure = isinstance(values, Exception) and not isinstance(values, ChunkDecodeError)
            failures = failures + 1 if is_failure else 0
        yield region, values


def _read_unless_unreadable(
    image: Image, plane: PlaneKey, rows: slice, columns: slice
) -> AnyArray | Exception:
    """Return the values, or the error if a chunk is corrupt or the store cannot read it."""
    try:
        return image.read_region(plane, rows, columns)
    except ZarrError as error:
        if not is_of_chunk(error):
            raise
        return error


def is_of_chunk(error: BaseException) -> bool:
    """Return whether an error is that of a chunk: it is corrupt, or the store cannot read it. The error of a server is
    that of the store, and all reads fail.
    """
    return isinstance(error, ChunkDecodeError | StoreError) and not isinstance(error, ServerError)


def read_intact(image: Image, plane: PlaneKey, rows: slice, columns: slice) -> tuple[list[AnyArray], int]:
    """Return the values of a region of a plane, as one array, or those of the chunks that can be read, one array each;
    and the number of pixels that cannot be read. Blocks. Raises ZarrError if nothing can be read.
    """
    intact, unreadable = [], 0
    error: Exception | None = None
    for (part_rows, part_columns), values in read_parts(image, plane, rows, columns):
        if isinstance(values, Exception):
            error = values
            unreadable += (part_rows.stop - part_rows.start) * (part_columns.stop - part_columns.start)
        else:
            intact.append(values)
    if error is not None and not intact:
        raise error
    return intact, unreadable


def _chunk_regions(image: Image, plane: PlaneKey, rows: slice, columns: slice) -> Iterator[Region]:
    """Yield the parts of a rectangle that belong to different chunks."""
    chunks = image.levels[plane.level].chunks
    height, width = (chunks[axis] for axis in plane.displayed)
    yield from product(
        _chunk_parts(rows, height, plane.steps[0]), _chunk_parts(columns, width, plane.steps[1])
    )


def _chunk_parts(part: slice, length: int, step: int) -> Iterator[slice]:
    """Yield the parts of a range of pixels that belong to different chunks of a length. Pixels of the range are
    ``step`` pixels of the level apart.
    """
    start = part.start
    while start < part.stop:
        next_chunk = (start * step // length + 1) * length
        stop = min(-(-next_chunk // step), part.stop)
        yield slice(start, stop)
        start = stop


def _failure(error: Exception, regions: list[Region]) -> ReadFailure:
    message = str(error) or type(error).__name__
    return ReadFailure(message, tuple((r.start, c.start, r.stop, c.stop) for r, c in regions), error)
