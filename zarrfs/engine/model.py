"""The one internal form into which every on-disk format is translated: frozen, and free of any format's words.

Nothing above ``formats/`` asks for a version to decide anything; ``zarr_format`` is there to be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from zarrfs.engine.chunking.chunk_grids import ChunkGrid
    from zarrfs.engine.chunking.chunk_key_encodings import ChunkKeyEncoding
    from zarrfs.engine.codecs.base import Codec
    from zarrfs.engine.dtypes import DataType

__all__ = ["ArraySpec", "GroupSpec", "NodeSpec"]


@dataclass(frozen=True)
class ArraySpec:
    """All that a metadata document says of an array.

    ``codecs`` is the whole chain in encoding order: array->array, one array->bytes, bytes->bytes. ``fill_value`` is
    a NumPy scalar of ``data_type.numpy`` (any object for object dtypes), or None where the document leaves it
    undefined (v2 ``null``). ``zarr_format`` is the version, or the name of a format that has none (``"n5"``).
    ``document`` is what was parsed, kept so that rewriting attributes loses nothing.
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


@dataclass(frozen=True)
class GroupSpec:
    """All that a metadata document says of a group.

    ``consolidated`` holds the documents of all nodes below, by path relative to this group, where the group
    carries consolidated metadata; None where it does not.
    """

    zarr_format: int | str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    consolidated: Mapping[str, NodeSpec] | None = None
    document: Mapping[str, Any] = field(default_factory=dict)


NodeSpec = ArraySpec | GroupSpec
