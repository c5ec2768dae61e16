"""Protocols of arrays and groups for functions on nodes.

The node classes import these functions, so the functions cannot import the node classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes.attributes import Attributes

__all__ = ["ArrayNode", "GroupNode"]


class Named(Protocol):
    """A node with a path and attributes."""

    @property
    def name(self) -> str: ...
    @property
    def zarr_format(self) -> int | str: ...
    @property
    def attrs(self) -> Attributes: ...


class ArrayNode(Named, Protocol):
    """An array with its metadata."""

    @property
    def spec(self) -> ArraySpec: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]: ...
    @property
    def shards(self) -> tuple[int, ...] | None: ...
    @property
    def order(self) -> str: ...
    @property
    def dimension_names(self) -> tuple[str | None, ...] | None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def nchunks(self) -> int: ...
    @property
    def nchunks_initialized(self) -> int: ...
    def nbytes_stored(self) -> int: ...


class GroupNode(Named, Protocol):
    """A group with its members."""

    @property
    def spec(self) -> GroupSpec: ...
    def members(self) -> Sequence[tuple[str, Any]]: ...
    def tree(self, expand: bool | None = None, level: int | None = None) -> Any: ...
    def walk(self) -> Iterator[tuple[str, Any]]: ...
