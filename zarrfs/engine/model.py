"""The internal metadata model, to and from which all on-disk formats are translated. Immutable.

No code outside of ``formats/`` depends on the format; ``zarr_format`` is for display and for writing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from zarrfs.engine.chunks.chunk_grids import ChunkGrid
    from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding
    from zarrfs.engine.codecs.base import Codec
    from zarrfs.engine.dtypes import DataType

__all__ = ["ArraySpec", "GroupSpec", "ListedNodes", "NodeSpec"]


@dataclass(frozen=True)
class ArraySpec:
    """The metadata of an array.

    ``codecs`` is the complete chain in encoding order: array->array, one array->bytes, bytes->bytes. ``fill_value`` is
    a NumPy scalar of ``data_type.numpy`` (any object for object dtypes), or None if it is undefined (``null`` in v2).
    ``zarr_format`` is the version, or the name of a format without a version (``"n5"``). ``document`` is the parsed
    document, retained so that unknown keys are preserved when it is rewritten.
    """

    zarr_format: int | str
    shape: tuple[int, ...]
    data_type: DataType
    chunk_grid: ChunkGrid
    chunk_key_encoding: ChunkKeyEncoding
    codecs: tuple[Codec, ...]
    fill_value: Any
    dimension_names: tuple[str | None, ...] | None = None
    dimension_units: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    order: Literal["C", "F"] = "C"
    document: Mapping[str, Any] = field(default_factory=dict)


class ListedNodes(Mapping[str, "NodeSpec"]):
    """The nodes of consolidated metadata by path relative to its group."""

    @abstractmethod
    def template(self, path: str) -> ArraySpec | None:
        """Return the metadata of an array without what depends on its attributes. It is the same object for all arrays
        that differ in their attributes only.

        None if no such array has been parsed before, and if no array is listed at the path.
        """


@dataclass(frozen=True)
class GroupSpec:
    """The metadata of a group.

    ``consolidated`` has the nodes of the group's consolidated metadata, or is None if the group has none.
    """

    zarr_format: int | str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    consolidated: ListedNodes | None = None
    document: Mapping[str, Any] = field(default_factory=dict)


NodeSpec = ArraySpec | GroupSpec
