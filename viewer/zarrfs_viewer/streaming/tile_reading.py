"""Reading of one tile in which single chunks may fail. Blocks; called by the streamer's worker threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import ChunkDecodeError
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import PlaneKey, TileKey

__all__ = ["ReadFailure", "read_intact", "read_parts", "read_tile"]

AnyArray = npt.NDArray[Any]


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
    try:
        if keeps_chunks and not is_visible:
            image.cache_on_next_read(key)
        values = image.read_region(key.plane, rows, columns)
        if keeps_chunks and is_visible:
            image.cache_on_next_read(key)
        return values, None
    except Exception as error:
        regions = list(_chunk_regions(image, key.plane, rows, columns))
        # Other chunks are readable only if a single chunk is corrupt. A failing store would fail for every chunk.
        if len(regions) == 1 or not isinstance(error, ChunkDecodeError):
            return None, _failure(error, [(rows, columns)])
        return _read_chunks(image, key.plane, rows, columns, regions, error)


def read_parts(
    image: Image, plane: PlaneKey, rows: slice, columns: slice
) -> Iterator[tuple[tuple[slice, slice], AnyArray | None]]:
    """Yield ((rows, columns), values) of a region of a plane: the region, or if it has corrupt chunks, its part of each
    chunk. The values are None for a corrupt chunk. Blocks. Raises ZarrError for other errors.
    """
    values = _read_unless_corrupt(image, plane, rows, columns)
    if values is not None:
        yield (rows, columns), values
        return
    regions = list(_chunk_regions(image, plane, rows, columns))
    for region in regions:
        yield region, None if len(regions) == 1 else _read_unless_corrupt(image, plane, *region)


def _read_unless_corrupt(image: Image, plane: PlaneKey, rows: slice, columns: slice) -> AnyArray | None:
    try:
        return image.read_region(plane, rows, columns)
    except ChunkDecodeError:
        return None


def read_intact(image: Image, plane: PlaneKey, rows: slice, columns: slice) -> list[AnyArray]:
    """Return the values of a region of a plane: as one array, or those of the chunks that are not corrupt, one array
    each. Blocks. Raises ZarrError if nothing can be read.
    """
    intact = [values for _, values in read_parts(image, plane, rows, columns) if values is not None]
    return intact or [image.read_region(plane, rows, columns)]  # the read raises the error of the chunk


def _chunk_regions(
    image: Image, plane: PlaneKey, rows: slice, columns: slice
) -> Iterator[tuple[slice, slice]]:
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


def _read_chunks(
    image: Image,
    plane: PlaneKey,
    rows: slice,
    columns: slice,
    regions: list[tuple[slice, slice]],
    first_error: Exception,
) -> tuple[AnyArray | None, ReadFailure | None]:
    tile: AnyArray | None = None
    failed = []
    last_error: Exception = first_error
    for region in regions:
        try:
            values = image.read_region(plane, *region)
        except Exception as error:
            failed.append(region)
            last_error = error
            continue
        if tile is None:
            shape = (rows.stop - rows.start, columns.stop - columns.start, *values.shape[2:])
            tile = np.zeros(shape, values.dtype)
        top, left = region[0].start - rows.start, region[1].start - columns.start
        tile[top : top + values.shape[0], left : left + values.shape[1]] = values
    return tile, _failure(last_error, failed) if failed else None


def _failure(error: Exception, regions: list[tuple[slice, slice]]) -> ReadFailure:
    message = str(error) or type(error).__name__
    return ReadFailure(message, tuple((r.start, c.start, r.stop, c.stop) for r, c in regions), error)
