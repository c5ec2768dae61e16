"""Reading one tile so that a broken chunk costs no more than its own pixels. Blocks; called by stream
workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import ChunkDecodeError
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import PlaneKey, TileKey

__all__ = ["ReadFailure", "read_tile"]

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True)
class ReadFailure:
    """What could not be read: a message for the user, and rectangles (top, left, bottom, right) of level
    pixels.
    """

    message: str
    failed: tuple[tuple[int, int, int, int], ...]
    error: BaseException


def read_tile(image: Image, key: TileKey) -> tuple[AnyArray | None, ReadFailure | None]:
    """Return the tile, and what of it failed. Chunks that fail are zero; a tile of which all failed is None.

    Raises nothing: whatever goes wrong below is reported as a failure, so that a worker never dies of it.
    """
    rows, columns = image.grid(key.plane.level, key.plane.displayed).rect(key.row, key.column)
    try:
        return image.read_region(key.plane, rows, columns), None
    except Exception as error:
        pieces = list(_chunk_pieces(image, key.plane, rows, columns))
        # A store that fails would fail for every piece again; only a broken chunk leaves the others readable.
        if len(pieces) == 1 or not isinstance(error, ChunkDecodeError):
            return None, _failure(error, [(rows, columns)])
        return _read_pieces(image, key.plane, rows, columns, pieces, error)


def _chunk_pieces(
    image: Image, plane: PlaneKey, rows: slice, columns: slice
) -> Iterator[tuple[slice, slice]]:
    """Cut a rectangle at chunk borders."""
    chunks = image.levels[plane.level].chunks
    height, width = (chunks[axis] for axis in plane.displayed)
    for top in range(rows.start, rows.stop, height):
        for left in range(columns.start, columns.stop, width):
            yield slice(top, min(top + height, rows.stop)), slice(left, min(left + width, columns.stop))


def _read_pieces(
    image: Image,
    plane: PlaneKey,
    rows: slice,
    columns: slice,
    pieces: list[tuple[slice, slice]],
    first_error: Exception,
) -> tuple[AnyArray | None, ReadFailure | None]:
    tile: AnyArray | None = None
    failed = []
    last_error: Exception = first_error
    for part in pieces:
        try:
            values = image.read_region(plane, *part)
        except Exception as error:
            failed.append(part)
            last_error = error
            continue
        if tile is None:
            shape = (rows.stop - rows.start, columns.stop - columns.start, *values.shape[2:])
            tile = np.zeros(shape, values.dtype)
        top, left = part[0].start - rows.start, part[1].start - columns.start
        tile[top : top + values.shape[0], left : left + values.shape[1]] = values
    return tile, _failure(last_error, failed) if failed else None


def _failure(error: Exception, parts: list[tuple[slice, slice]]) -> ReadFailure:
    message = str(error) or type(error).__name__
    return ReadFailure(message, tuple((r.start, c.start, r.stop, c.stop) for r, c in parts), error)
