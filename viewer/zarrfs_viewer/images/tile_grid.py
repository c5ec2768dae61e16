"""Tile geometry: how a plane of a pyramid level is cut into tiles, and in which order tiles are fetched.

A tile is a whole number of chunks along both displayed axes, so that no chunk is decoded for the sake of two
tiles. Pure; reading is in ``dataset`` and ``streaming``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

__all__ = ["ALL", "PlaneKey", "Rank", "Slab", "TileGrid", "TileKey", "TileRequest", "request_order"]

ALL = -1
"""In ``PlaneKey.indices``: this axis is read whole (the samples of RGB)."""

TILE_TARGET = 256
"""Chunks smaller than this are grouped until a tile is about this long: a Python-level read costs ~50 us, so
tiles of single 16-pixel chunks would spend their time there."""


class Slab(NamedTuple):
    """A range of planes along one axis, projected: ``stop`` is exclusive, in pixels of the plane's level."""

    axis: int
    start: int
    stop: int
    mode: Literal["max", "mean"]


class PlaneKey(NamedTuple):
    """One 2-D plane of one level of one image.

    ``image`` is ``Image.uid``; ``displayed`` the (row, column) axes; ``index`` has one entry per axis: the
    index in this level, 0 at the displayed axes, ``ALL`` at the axis of RGB samples.
    """

    image: int
    level: int
    displayed: tuple[int, int]
    indices: tuple[int, ...]
    slab: Slab | None = None


class TileKey(NamedTuple):
    """One tile of a plane, by its place in the plane's ``TileGrid``."""

    plane: PlaneKey
    row: int
    column: int


class Rank(IntEnum):
    """Why a tile is wanted; a smaller rank is fetched first."""

    VISIBLE = 0
    PREFETCH = 1
    RECENT = 2


@dataclass(frozen=True, slots=True)
class TileRequest:
    """A tile wanted, with what decides when. ``distance`` is from the viewport's centre, in device pixels."""

    key: TileKey
    rank: Rank = Rank.VISIBLE
    distance: float = 0.0

    @property
    def order(self) -> tuple[int, int, float]:
        """The sort key: rank first, then coarser levels, then nearer the centre."""
        return int(self.rank), -self.key.plane.level, self.distance


@dataclass(frozen=True)
class TileGrid:
    """How a plane of ``shape`` (rows, columns) is cut: tiles of ``tile`` pixels, those at the end cut
    short.
    """

    shape: tuple[int, int]
    tile: tuple[int, int]

    @classmethod
    def for_plane(cls, shape: tuple[int, int], chunk: tuple[int, int], target: int = TILE_TARGET) -> TileGrid:
        """Cut into tiles of whole chunks: as many per side as stay within ``target`` pixels, at least one."""
        rows, columns = (max(1, target // max(1, length)) * max(1, length) for length in chunk)
        return cls(shape, (rows, columns))

    @property
    def counts(self) -> tuple[int, int]:
        """Number of tiles along (rows, columns)."""
        return -(-self.shape[0] // self.tile[0]), -(-self.shape[1] // self.tile[1])

    def rect(self, row: int, column: int) -> tuple[slice, slice]:
        """Return what the tile covers, in pixels of the level."""
        top, left = row * self.tile[0], column * self.tile[1]
        return (
            slice(top, min(top + self.tile[0], self.shape[0])),
            slice(left, min(left + self.tile[1], self.shape[1])),
        )

    def within(self, top: float, left: float, bottom: float, right: float) -> Iterator[tuple[int, int]]:
        """Yield (row, column) of the tiles that a rectangle touches, given in pixels of the level where pixel
        ``i`` covers ``[i - 0.5, i + 0.5)``; nothing where it lies outside the plane.
        """
        rows = _span(top, bottom, self.shape[0], self.tile[0])
        columns = _span(left, right, self.shape[1], self.tile[1])
        for row in rows:
            for column in columns:
                yield row, column


def _span(start: float, stop: float, length: int, step: int) -> range:
    first = max(0, int(start + 0.5) if start > -0.5 else 0)
    last = min(length - 1, int(stop + 0.5) if stop > -0.5 else -1)
    if first > last:
        return range(0)
    return range(first // step, last // step + 1)


def request_order(requests: list[TileRequest]) -> list[TileRequest]:
    """Sort: visible before prefetch before recent, coarser level first, then centre first. Stable."""
    return sorted(requests, key=lambda request: request.order)
