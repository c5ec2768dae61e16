"""Chunk grids: the division of an array's index space into chunks.

Zarr v3 "Chunk grids": ``regular`` from the core specification, ``rectilinear`` from the zarr-extensions registry.
Other grids are registered with the entry point group ``zarrfs.chunk_grids`` (name of the grid -> subclass of
ChunkGrid). A grid provides an ``Axis`` for each dimension; ``indexing/projections.py`` projects selections onto it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.indexing.axes import Axis, RegularAxis
from zarrfs.engine.indexing.normalized import Indices
from zarrfs.engine.json_checks import (
    MAX_LENGTH,
    check_keys,
    expect_integer,
    expect_list,
    expect_shape,
    expect_string,
    named_configuration,
    unexpected_value,
)
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.plugins import find_plugin
from zarrfs.text import MAX_VALUE, safe_text

__all__ = [
    "ENTRY_POINTS",
    "ChunkGrid",
    "RectilinearGrid",
    "RegularGrid",
    "check_chunk_shape",
    "chunk_grid_from_json",
    "chunk_grid_to_json",
]

ENTRY_POINTS = "zarrfs.chunk_grids"


class ChunkGrid(ABC):
    """A tiling of an array's index space by boxes. Immutable, hashable and thread-safe."""

    name: ClassVar[str]
    chunk_shape: tuple[int, ...] | None
    """The shape of every chunk, or None if the shapes differ."""

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        """Create the grid from its v3 ``configuration``. Raises MetadataError that names the invalid key."""

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the v3 ``configuration`` object of the grid."""

    @abstractmethod
    def axis(self, axis: int, length: int) -> Axis:
        """Return the division into chunks of dimension ``axis`` of an array with this length."""

    @abstractmethod
    def check(self, shape: Sequence[int], where: str) -> None:
        """Raise MetadataError if the grid is not valid for an array of this shape (wrong rank or lengths)."""

    def grid_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the number of chunks along each dimension of an array of this shape."""
        axes = [self.axis(axis, length) for axis, length in enumerate(shape)]
        return tuple(axis.find(axis.length - 1) + 1 if axis.length else 0 for axis in axes)

    def resized(self, shape: Sequence[int]) -> Self:
        """Return the grid for the array after it is resized to this shape.

        The default is the same grid, which is valid unless the grid depends on the shape of the array.
        """
        return self


@dataclass(frozen=True)
class RegularGrid(ChunkGrid):
    """A grid in which all chunks have the same shape. Chunks at the upper edges may extend beyond the array."""

    name: ClassVar[str] = "regular"
    chunk_shape: tuple[int, ...]

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        check_keys(configuration, where, ("chunk_shape",))
        if "chunk_shape" not in configuration:
            raise MetadataError(f'{where}: a regular chunk grid requires "chunk_shape", a list of integers')
        return cls(expect_shape(configuration["chunk_shape"], f"{where}/chunk_shape"))

    def configuration(self) -> dict[str, Any]:
        return {"chunk_shape": list(self.chunk_shape)}

    def axis(self, axis: int, length: int) -> Axis:
        return RegularAxis(length, max(1, self.chunk_shape[axis]))

    def resized(self, shape: Sequence[int]) -> Self:
        """Return the same grid, with chunk lengths of 0 replaced by the new length of the dimension.

        Only a dimension of length 0 may have chunks of length 0.
        """
        if 0 not in self.chunk_shape:
            return self
        pairs = zip(self.chunk_shape, shape, strict=True)
        return replace(self, chunk_shape=tuple(chunk or length for chunk, length in pairs))

    def check(self, shape: Sequence[int], where: str) -> None:
        check_chunk_shape(self.chunk_shape, shape, f"{where}/configuration/chunk_shape")


def check_chunk_shape(chunk_shape: Sequence[int], shape: Sequence[int], where: str) -> None:
    """Raise MetadataError unless chunks of ``chunk_shape`` can tile an array of ``shape``."""
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


Run = tuple[int, int]
"""A chunk length, and the number of consecutive chunks with this length."""


@dataclass(frozen=True)
class RunsAxis:
    """A dimension that is divided into runs of chunks with equal length.

    Runs that begin beyond the array are left out. The memory use depends on the number of runs, not of chunks.
    ``starts`` has the first index of each run, ``chunks`` the number of its first chunk, and ``sizes`` the length of
    its chunks.
    """

    length: int
    starts: np.ndarray[Any, np.dtype[np.int64]]
    chunks: np.ndarray[Any, np.dtype[np.int64]]
    sizes: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def of_runs(cls, length: int, runs: Iterable[Run]) -> RunsAxis:
        """Return the axis for a dimension of this length."""
        starts, chunks, sizes = [0], [0], [1]
        start = chunk = 0
        for size, count in runs:
            if start >= length:
                break
            starts.append(start)
            chunks.append(chunk)
            sizes.append(size)
            count = min(count, -(-(length - start) // size))
            start += count * size
            chunk += count
        return cls(length, *(np.array(column[1:] or column, np.int64) for column in (starts, chunks, sizes)))

    def locate(self, indices: Indices) -> Indices:
        run = np.searchsorted(self.starts, indices, "right") - 1
        chunks: Indices = self.chunks[run] + (indices - self.starts[run]) // self.sizes[run]
        return chunks

    def find(self, index: int) -> int:
        return int(self.locate(np.array([index], np.int64))[0])

    def _run(self, chunk: int) -> int:
        return int(np.searchsorted(self.chunks, chunk, "right")) - 1

    def begin(self, chunk: int) -> int:
        run = self._run(chunk)
        return int(self.starts[run]) + (chunk - int(self.chunks[run])) * int(self.sizes[run])

    def size(self, chunk: int) -> int:
        return int(self.sizes[self._run(chunk)])


@dataclass(frozen=True)
class RectilinearGrid(ChunkGrid):
    """A grid with listed chunk lengths for each dimension: one length for all chunks, or runs of lengths.

    The listed lengths of a dimension sum to at least its length. Chunks beyond the array are not used.
    """

    name: ClassVar[str] = "rectilinear"
    edges: tuple[int | tuple[Run, ...], ...]
    chunk_shape: None = None

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        check_keys(configuration, where, ("kind", "chunk_shapes"))
        expect_string(configuration.get("kind"), f"{where}/kind", ("inline",))
        listed = expect_list(configuration.get("chunk_shapes"), f"{where}/chunk_shapes")
        return cls(tuple(_edges(entry, f"{where}/chunk_shapes/{i}") for i, entry in enumerate(listed)))

    def configuration(self) -> dict[str, Any]:
        return {"kind": "inline", "chunk_shapes": [_edges_to_json(entry) for entry in self.edges]}

    def axis(self, axis: int, length: int) -> Axis:
        edges = self.edges[axis]
        return RegularAxis(length, edges) if isinstance(edges, int) else RunsAxis.of_runs(length, edges)

    def check(self, shape: Sequence[int], where: str) -> None:
        pointer = f"{where}/configuration/chunk_shapes"
        if len(self.edges) != len(shape):
            raise MetadataError(
                f"{pointer}: expected the chunk lengths of the {len(shape)} dimensions of the array, "
                f"found {len(self.edges)}"
            )
        for axis, (edges, length) in enumerate(zip(self.edges, shape, strict=True)):
            if not isinstance(edges, int) and _total(edges) < length:
                raise MetadataError(
                    f"{pointer}/{axis}: the chunk lengths must sum to at least {length}, the length of the "
                    f"dimension; found {_total(edges)}"
                )

    def resized(self, shape: Sequence[int]) -> Self:
        """Return the grid with one more chunk at the end of each dimension that is now longer than its chunks."""
        grown = [
            edges
            if isinstance(edges, int) or _total(edges) >= length
            else (*edges, (length - _total(edges), 1))
            for edges, length in zip(self.edges, shape, strict=True)
        ]
        return replace(self, edges=tuple(grown))


def _total(runs: Iterable[Run]) -> int:
    return sum(size * count for size, count in runs)


def _edges(value: Any, where: str) -> int | tuple[Run, ...]:
    """Return the chunk lengths of one dimension, given as an integer or a list of integers and [length, count]."""
    if not isinstance(value, list | tuple):
        return expect_integer(value, where, 1, MAX_LENGTH)
    runs: list[Run] = []
    for index, entry in enumerate(value):
        if isinstance(entry, list | tuple):
            if len(entry) != 2:
                raise unexpected_value(f"{where}/{index}", "a chunk length, or a list [length, count]", entry)
            size, count = (
                expect_integer(part, f"{where}/{index}/{i}", 1, MAX_LENGTH) for i, part in enumerate(entry)
            )
            runs.append((size, count))
        else:
            runs.append((expect_integer(entry, f"{where}/{index}", 1, MAX_LENGTH), 1))
    return tuple(runs)


def _edges_to_json(edges: int | tuple[Run, ...]) -> Any:
    if isinstance(edges, int):
        return edges
    return [size if count == 1 else [size, count] for size, count in edges]


_GRIDS: dict[str, type[ChunkGrid]] = {"regular": RegularGrid, "rectilinear": RectilinearGrid}


def _grid_class(name: str, where: str) -> type[ChunkGrid]:
    if name not in _GRIDS:
        plugin = find_plugin(ENTRY_POINTS, name, type[ChunkGrid], MetadataError)
        if plugin is not None:
            _GRIDS[name] = plugin
    if name not in _GRIDS:
        names = ", ".join(f'"{known}"' for known in sorted(_GRIDS))
        raise UnsupportedError(
            f'{where}: the chunk grid "{safe_text(name, MAX_VALUE)}" is not supported; expected one of {names}, or '
            f"one that an installed package registers with the entry point group {ENTRY_POINTS}"
        )
    return _GRIDS[name]


def chunk_grid_from_json(value: Any, shape: Sequence[int], where: str) -> ChunkGrid:
    """Return the grid of the ``chunk_grid`` of a v3 document, checked against the array's shape.

    Raises UnsupportedError for an unsupported grid and MetadataError for invalid metadata.
    """
    name, configuration = named_configuration(value, where, "chunk grid")
    grid = _grid_class(name, where).from_configuration(configuration, f"{where}/configuration")
    grid.check(shape, where)
    return grid


def chunk_grid_to_json(grid: ChunkGrid) -> dict[str, Any]:
    """Return the v3 ``chunk_grid`` object of the grid."""
    return {"name": grid.name, "configuration": grid.configuration()}
