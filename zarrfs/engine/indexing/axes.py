"""The division of one dimension into chunks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from zarrfs.engine.indexing.normalized import Indices

__all__ = ["Axis", "RegularAxis"]


class Axis(Protocol):
    """The division of one dimension into chunks."""

    @property
    def length(self) -> int:
        """The length of the dimension."""

    def locate(self, indices: Indices) -> Indices:
        """Return the number of the chunk that contains each index."""

    def find(self, index: int) -> int:
        """Return the number of the chunk that contains the index."""

    def begin(self, chunk: int) -> int:
        """Return the first index of the chunk."""

    def size(self, chunk: int) -> int:
        """Return the length of the chunk in this dimension, including any part beyond the array."""


class RegularAxis(NamedTuple):
    """A dimension with chunks of equal length."""

    length: int
    chunk: int

    def locate(self, indices: Indices) -> Indices:
        return indices // self.chunk

    def find(self, index: int) -> int:
        return index // self.chunk

    def begin(self, chunk: int) -> int:
        return chunk * self.chunk

    def size(self, chunk: int) -> int:
        return self.chunk
