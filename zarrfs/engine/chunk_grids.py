"""Chunk grids: how the index space of an array is cut into chunks.

Zarr v3 "Chunk grids": ``regular`` of the core, ``rectilinear`` of the zarr-extensions registry. Others
register by the entry point group ``zarrfs.chunk_grids`` (name of the grid -> subclass of ChunkGrid). What a
selection needs of which chunk is worked out in ``indexing.py`` from the ``Axis`` that a grid gives for each
dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self

from zarrfs.engine.indexing import Axis, RegularAxis
from zarrfs.engine.json_checks import check_keys, expect_shape, named_configuration
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["ENTRY_POINTS", "ChunkGrid", "RegularGrid", "chunk_grid_from_json", "chunk_grid_to_json"]

ENTRY_POINTS = "zarrfs.chunk_grids"


class ChunkGrid(ABC):
    """A tiling of an array's index space by boxes. Immutable, hashable, shared by threads."""

    name: ClassVar[str]
    chunk_shape: tuple[int, ...] | None
    """The shape of every chunk, or None where they differ."""

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        """Make the grid from its v3 ``configuration``. Raises MetadataError that names the bad key."""

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the v3 ``configuration`` object that makes an equal grid."""

    @abstractmethod
    def axis(self, axis: int, length: int) -> Axis:
        """Return how dimension ``axis`` of an array of that length is cut."""

    @abstractmethod
    def check(self, shape: Sequence[int], where: str) -> None:
        """Raise MetadataError if an array of this shape cannot have this grid (wrong rank, lengths that
        differ).
        """

    def grid_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the number of chunks along each dimension of an array of this shape."""
        axes = [self.axis(axis, length) for axis, length in enumerate(shape)]
        return tuple(axis.find(axis.length - 1) + 1 if axis.length else 0 for axis in axes)

    def resized(self, shape: Sequence[int]) -> Self:
        """Return the grid that the array has after it was resized to this shape: the same, unless lengths of
        the array are part of the grid.
        """
        return self


@dataclass(frozen=True)
class RegularGrid(ChunkGrid):
    """All chunks have one shape; those at the upper edges overhang the array."""

    name: ClassVar[str] = "regular"
    chunk_shape: tuple[int, ...]

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        check_keys(configuration, where, ("chunk_shape",))
        if "chunk_shape" not in configuration:
            raise MetadataError(f'{where}: a regular chunk grid needs "chunk_shape", a list of integers')
        return cls(expect_shape(configuration["chunk_shape"], f"{where}/chunk_shape"))

    def configuration(self) -> dict[str, Any]:
        return {"chunk_shape": list(self.chunk_shape)}

    def axis(self, axis: int, length: int) -> Axis:
        return RegularAxis(length, max(1, self.chunk_shape[axis]))

    def check(self, shape: Sequence[int], where: str) -> None:
        check_chunk_shape(self.chunk_shape, shape, f"{where}/configuration/chunk_shape")


def check_chunk_shape(chunk_shape: Sequence[int], shape: Sequence[int], where: str) -> None:
    """Raise MetadataError unless chunks of that shape can tile an array of this shape."""
    if len(chunk_shape) != len(shape):
        raise MetadataError(
            f"{where}: expected {len(shape)} lengths, one for each dimension of the array, "
            f"found {len(chunk_shape)}"
        )
    for axis, (chunk, length) in enumerate(zip(chunk_shape, shape, strict=True)):
        if chunk == 0 and length != 0:
            raise MetadataError(
                f"{where}/{axis}: expected a chunk length of at least 1, found 0; only a dimension of length "
                f"0 may have chunks of length 0, and this one has length {length}"
            )


_GRIDS: dict[str, type[ChunkGrid]] = {"regular": RegularGrid}


def _grid_class(name: str, where: str) -> type[ChunkGrid]:
    if name not in _GRIDS:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            _GRIDS[name] = entry.load()
    if name not in _GRIDS:
        known = ", ".join(f'"{known}"' for known in sorted(_GRIDS))
        raise UnsupportedError(
            f'{where}: the chunk grid "{name}" is not known here; known are {known}, and what is installed '
            f"for the entry point group {ENTRY_POINTS}"
        )
    return _GRIDS[name]


def chunk_grid_from_json(value: Any, shape: Sequence[int], where: str) -> ChunkGrid:
    """Return the grid that a v3 document's ``chunk_grid`` asks for, checked against the array's shape.

    Raises UnsupportedError for one that is not known, MetadataError for a broken one.
    """
    name, configuration = named_configuration(value, where, "chunk grid")
    grid = _grid_class(name, where).from_configuration(configuration, f"{where}/configuration")
    grid.check(shape, where)
    return grid


def chunk_grid_to_json(grid: ChunkGrid) -> dict[str, Any]:
    """Return the v3 object that makes an equal grid."""
    return {"name": grid.name, "configuration": grid.configuration()}
