"""What the formats can store, so that the code outside of this package does not distinguish formats."""

from __future__ import annotations

from dataclasses import dataclass

from zarrfs.engine.chunks.chunk_key_encodings import Separator

__all__ = ["ZARR_DOCUMENTS", "FormatFeatures"]

ZARR_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
"""The names of the documents of Zarr v2 and v3."""


@dataclass(frozen=True, kw_only=True)
class FormatFeatures:
    """What a format can store, and the conventions of its metadata."""

    title: str = ""
    """The name of the format for users. If it is empty, the name consists of Zarr and the ``zarr_format``."""
    writable: bool = True
    writable_format: int | str | None = None
    """The ``zarr_format`` in which new nodes and copies of nodes of a format that is not writable are created."""

    zarr_chunks: bool = False
    """Whether chunks have the encoding of Zarr v1 to v3, so that they can be copied between formats unchanged."""
    codec_chain: bool = False
    """Whether any chain of codecs can be stored."""
    filters: bool = False
    """Whether codecs are stored as filters and a compressor of numcodecs."""
    sharding: bool = False
    chunk_grids: bool = False
    """Whether other chunk grids than the regular one can be stored."""
    key_encodings: bool = False
    """Whether any chunk key encoding can be stored."""
    default_separator: Separator = "/"
    byte_order: bool = False
    """Whether the byte order of elements is part of the data type."""

    memory_order: bool = True
    """Whether the order of the elements within a chunk can be chosen."""
    fill_value: bool = True
    """Whether a fill value other than zero can be stored."""
    fill_is_missing: bool = False
    """Whether xarray treats the fill value as the missing value. Otherwise an attribute contains the missing value."""

    dimension_names: bool = False
    """Whether dimension names have a field of their own, and are not only attributes."""
    dimension_units: bool = False
    name_attributes: tuple[str, ...] = ()
    unit_attributes: tuple[str, ...] = ()
    """The attributes in which names and units of dimensions are stored; invalid in other formats."""

    document_names: tuple[str, ...] = ZARR_DOCUMENTS
    """The names that are reserved for documents in the directory of a node: those of this format, and those of Zarr v2
    and v3, because a node can have documents of several formats.
    """
    root_prefixes: tuple[str, ...] = ()
    """The prefixes in the root of the store below which the keys of all nodes are. If it is empty, the keys of a node
    are below its path.
    """

    migrations: tuple[int | str, ...] = ()
    """The formats whose documents can describe the chunks of this format, so that a node can be migrated in place."""
    migrated_documents: tuple[str, ...] = ()
    """The names of the documents that are superfluous after a migration."""
    determining_documents: tuple[str, ...] = ()
    """The names of the documents that determine a node: its own, and those of formats that take precedence, in this
    order. Empty if these can be the documents of any format.
    """
