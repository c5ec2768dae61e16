"""A byte-bounded cache of tiles, least recently used out first. Not thread-safe: its owner holds a lock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.tile_grid import TileKey

__all__ = ["TileCache"]


class TileCache:
    """Tiles by key. What ``is_shown`` says is on a screen stays, even where that exceeds the budget."""

    def __init__(self, budget: int, is_shown: Callable[[TileKey], bool]) -> None:
        self.budget = budget
        self.nbytes = 0
        self._is_shown = is_shown
        self._tiles: OrderedDict[TileKey, npt.NDArray[Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tiles)

    def __contains__(self, key: TileKey) -> bool:
        return key in self._tiles

    def get(self, key: TileKey) -> npt.NDArray[Any] | None:
        """Return the tile and count it as used."""
        tile = self._tiles.get(key)
        if tile is not None:
            self._tiles.move_to_end(key)
        return tile

    def put(self, key: TileKey, tile: npt.NDArray[Any]) -> None:
        """Keep a tile; it becomes read-only, as it is shared from now on."""
        self.discard(key)
        if tile.base is not None:  # a view would keep all of its base alive, uncounted
            tile = np.array(tile)
        tile.flags.writeable = False
        self._tiles[key] = tile
        self.nbytes += tile.nbytes
        self.shrink()

    def discard(self, key: TileKey) -> None:
        """Drop a tile if it is there."""
        tile = self._tiles.pop(key, None)
        if tile is not None:
            self.nbytes -= tile.nbytes

    def discard_image(self, uid: int) -> None:
        """Drop all tiles of an image."""
        for key in [key for key in self._tiles if key.plane.image == uid]:
            self.discard(key)

    def shrink(self) -> None:
        """Drop what has not been used for longest until the budget is kept."""
        if self.nbytes <= self.budget:
            return
        for key in list(self._tiles):
            if not self._is_shown(key):
                self.discard(key)
                if self.nbytes <= self.budget:
                    return

    def clear(self) -> None:
        """Drop everything."""
        self._tiles.clear()
        self.nbytes = 0
