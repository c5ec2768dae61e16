"""Tile geometry: the tiles of a plane of a pyramid level, and the order in which tiles are fetched.

A tile is a whole number of chunks along both displayed axes, so that two tiles of a plane never share a chunk. The
exceptions are very large chunks, and planes that are sampled with steps that do not divide the chunks. Pure functions;
reading is in ``images.reading`` and ``streaming``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

__all__ = ["ALL", "PlaneKey", "Rank", "Slab", "TileGrid", "TileKey", "TileRequest", "request_order"]

ALL = -1
"""In ``PlaneKey.indices``: the whole axis is read (RGB samples)."""

TARGET_TILE_LENGTH = 256
"""Smaller chunks are grouped to tiles of about this length in pixels. One read costs about 50 us of Python code,
which would dominate the time of tiles of a single 16-pixel chunk."""

TARGET_SAMPLES = 64
"""The tiles of a sampled plane have about this number of samples along each axis, unless they would be shorter than
``TARGET_TILE_LENGTH``. With fewer samples, drawing them takes long; with more, a read decodes many chunks, and it
cannot be cancelled."""

MAX_TILE_LENGTH = 4096
MAX_TILE_NBYTES = 32 << 20
"""Chunks that are longer or larger are divided into several tiles. A tile is held as a whole while a part of it is
visible: the corners of four chunks would fill the memory."""


class Slab(NamedTuple):
    """A range of planes along one axis that is projected. ``start`` and the exclusive ``stop`` are pixels of the
    plane's level.
    """

    axis: int
    start: int
    stop: int
    mode: Literal["max", "mean"]


class PlaneKey(NamedTuple):
    """One 2-D plane of one level of one image.

    ``image`` is ``Image.uid``. ``displayed`` is (row axis, column axis). ``indices`` has one entry per axis: the
    index in this level, 0 for the displayed axes, ``ALL`` for the axis of RGB samples. Only every ``steps[0]``-th row
    and every ``steps[1]``-th column is read: pixel (r, c) of the plane is pixel (r * steps[0], c * steps[1]) of the
    level.
    """

    image: int
    level: int
    displayed: tuple[int, int]
    indices: tuple[int, ...]
    slab: Slab | None = None
    steps: tuple[int, int] = (1, 1)


class TileKey(NamedTuple):
    """One tile of a plane, by its coordinates in the plane's ``TileGrid``."""

    plane: PlaneKey
    row: int
    column: int


class Rank(IntEnum):
    """The reason for a tile request. Smaller ranks are fetched first."""

    VISIBLE = 0
    PREFETCH = 1
    RECENT = 2


@dataclass(frozen=True, slots=True)
class TileRequest:
    """A request for a tile with its priority. ``distance`` is from the viewport's centre, in device pixels.

    With ``keeps_chunks`` the whole chunks of the tile enter the cache, because other planes of these chunks follow. A
    prefetched tile does this with its read; a visible tile leaves it to the next read, because decoding a part of a
    chunk is faster.
    """

    key: TileKey
    rank: Rank = Rank.VISIBLE
    distance: float = 0.0
    keeps_chunks: bool = False

    @property
    def order(self) -> tuple[int, int, float]:
        """The sort key: rank, then coarser levels first, then the distance."""
        return int(self.rank), -self.key.plane.level, self.distance


@dataclass(frozen=True)
class TileGrid:
    """A plane of ``shape`` (rows, columns) in tiles of ``tile`` (rows, columns). The last tiles may be smaller.

    Rows and columns are pixels of the plane, of which a sampled plane has fewer than its level.
    """

    shape: tuple[int, int]
    tile: tuple[int, int]

    @classmethod
    def for_plane(
        cls,
        shape: tuple[int, int],
        chunk: tuple[int, int],
        steps: tuple[int, int] = (1, 1),
        itemsize: int = 1,
    ) -> TileGrid:
        """Return the grid of a plane of every ``steps``-th pixel of a level with this shape and these chunks.

        Tiles are whole chunks: at most ``TARGET_TILE_LENGTH`` pixels or ``TARGET_SAMPLES`` samples long, but at least
        one chunk. Chunks above ``MAX_TILE_LENGTH`` and ``MAX_TILE_NBYTES`` are divided. A pixel has ``itemsize`` bytes.
        """
        lengths = []
        for length, step in zip(chunk, steps, strict=True):
            target = max(TARGET_TILE_LENGTH, TARGET_SAMPLES * step) if step > 1 else TARGET_TILE_LENGTH
            lengths.append(-(-max(1, target // max(1, length)) * max(1, length) // step))
        while max(lengths) > MAX_TILE_LENGTH or math.prod(lengths) * itemsize > MAX_TILE_NBYTES:
            longer = int(lengths[1] > lengths[0])
            lengths[longer] = -(-lengths[longer] // 2)
        rows, columns = (-(-length // step) for length, step in zip(shape, steps, strict=True))
        return cls((rows, columns), (lengths[0], lengths[1]))

    @property
    def counts(self) -> tuple[int, int]:
        """The number of tiles along (rows, columns)."""
        return -(-self.shape[0] // self.tile[0]), -(-self.shape[1] // self.tile[1])

    def rect(self, row: int, column: int) -> tuple[slice, slice]:
        """Return the rows and columns of the level that a tile covers."""
        top, left = row * self.tile[0], column * self.tile[1]
        return (
            slice(top, min(top + self.tile[0], self.shape[0])),
            slice(left, min(left + self.tile[1], self.shape[1])),
        )

    def within(self, top: float, left: float, bottom: float, right: float) -> Iterator[tuple[int, int]]:
        """Yield (row, column) of the tiles that intersect a rectangle, which may extend beyond the plane.

        The rectangle is in pixels of the plane: pixel ``i`` covers ``[i - 0.5, i + 0.5)``.
        """
        rows, columns = self._tiles_within(top, left, bottom, right)
        for row in rows:
            for column in columns:
                yield row, column

    def pixels_within(self, top: float, left: float, bottom: float, right: float) -> int:
        """Return the number of pixels of the tiles that ``within`` yields, without enumerating them."""
        total = 1
        for tiles, length, tile in zip(
            self._tiles_within(top, left, bottom, right), self.shape, self.tile, strict=True
        ):
            total *= max(0, min(tiles.stop * tile, length) - tiles.start * tile)
        return total

    def _tiles_within(self, top: float, left: float, bottom: float, right: float) -> tuple[range, range]:
        return (
            _tile_range(top, bottom, self.shape[0], self.tile[0]),
            _tile_range(left, right, self.shape[1], self.tile[1]),
        )


def _tile_range(start: float, stop: float, length: int, step: int) -> range:
    first = max(0, int(start + 0.5) if start > -0.5 else 0)
    last = min(length - 1, int(stop + 0.5) if stop > -0.5 else -1)
    if first > last:
        return range(0)
    return range(first // step, last // step + 1)


def request_order(requests: list[TileRequest]) -> list[TileRequest]:
    """Return the requests sorted by ``TileRequest.order``. The sort is stable."""
    return sorted(requests, key=lambda request: request.order)
