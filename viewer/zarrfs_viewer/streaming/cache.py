"""An LRU cache of tiles that is bounded in bytes. Not thread-safe: the caller holds a lock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.tile_grid import TileKey

__all__ = ["TileCache"]


class TileCache:
    """Tiles by key.

    A tile for which ``is_visible`` returns True is never evicted, even if the cache exceeds ``budget`` bytes.
    """

    def __init__(self, budget: int, is_visible: Callable[[TileKey], bool]) -> None:
        self.budget = budget
        self.nbytes = 0
        self._is_visible = is_visible
        self._tiles: OrderedDict[TileKey, npt.NDArray[Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tiles)

    def __contains__(self, key: TileKey) -> bool:
        return key in self._tiles

    def get(self, key: TileKey) -> npt.NDArray[Any] | None:
        """Return the tile, or None, and mark it as most recently used."""
        tile = self._tiles.get(key)
        if tile is not None:
            self._tiles.move_to_end(key)
        return tile

    def put(self, key: TileKey, tile: npt.NDArray[Any]) -> None:
        """Add a tile. The cache takes ownership of the array and makes it read-only, because it is shared."""
        self.discard(key)
        if tile.base is not None:  # a view would keep its base in memory, which is not counted
            tile = np.array(tile)
        tile.flags.writeable = False
        self._tiles[key] = tile
        self.nbytes += tile.nbytes
        self._evict()

    def discard(self, key: TileKey) -> None:
        """Remove a tile if it is in the cache."""
        tile = self._tiles.pop(key, None)
        if tile is not None:
            self.nbytes -= tile.nbytes

    def discard_image(self, uid: int) -> None:
        """Remove all tiles of an image."""
        for key in [key for key in self._tiles if key.plane.image == uid]:
            self.discard(key)

    def _evict(self) -> None:
        """Remove the least recently used tiles until the cache is within the budget."""
        if self.nbytes <= self.budget:
            return
        for key in list(self._tiles):
            if not self._is_visible(key):
                self.discard(key)
                if self.nbytes <= self.budget:
                    return

    def clear(self) -> None:
        """Remove all tiles."""
        self._tiles.clear()
        self.nbytes = 0
