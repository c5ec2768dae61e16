"""Zarr v1, read-only: one array in a store, with its metadata in ``meta`` and ``attrs``.

Zarr v1 has no groups. An array must be converted to a newer format before it can be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.engine.chunks.chunk_grids import RegularGrid, check_chunk_shape
from zarrfs.engine.chunks.chunk_key_encodings import V2Keys
from zarrfs.engine.dtypes import data_type_from_v2, fill_from_v2
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.features import ZARR_DOCUMENTS, FormatFeatures
from zarrfs.engine.formats.json_document import MAX_NODE_DOCUMENT, location, read_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.formats.v2_codecs import chain_from_v2
from zarrfs.engine.json_checks import expect_object, expect_shape, expect_string, unexpected_value
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import MAX_VALUE, safe_text

__all__ = ["V1Format", "parse_array"]

ARRAY_KEY = "meta"
ATTRIBUTES_KEY = "attrs"

_REQUIRED_KEYS = ("shape", "chunks", "dtype", "compression", "compression_opts", "fill_value", "order")
_LEVEL_CODECS = ("zlib", "bz2")
_OPTIONS_CODECS = ("blosc", "lzma")


def parse_array(document: Mapping[str, Any], attributes: Mapping[str, Any], where: str) -> ArraySpec:
    """Return the array that a ``meta`` and its ``attrs`` describe.

    Raises MetadataError that names the invalid key, and UnsupportedError for unsupported compression.
    """
    if document.get("zarr_format") != 1 or isinstance(document["zarr_format"], bool | float):
        raise unexpected_value(f"{where}: /zarr_format", "1", document.get("zarr_format"))
    for key in _REQUIRED_KEYS:
        if key not in document:
            raise MetadataError(f'{where}: the key "{key}" is missing; an array needs it')
    shape = expect_shape(document["shape"], f"{where}: /shape")
    chunks = expect_shape(document["chunks"], f"{where}: /chunks")
    check_chunk_shape(chunks, shape, f"{where}: /chunks")
    data_type = data_type_from_v2(document["dtype"], f"{where}: /dtype")
    if data_type.numpy.hasobject:
        raise UnsupportedError(f"{where}: /dtype: Zarr v1 does not specify how Python objects are stored")
    order = expect_string(document["order"], f"{where}: /order", ("C", "F"))
    codecs = chain_from_v2(
        dtype=data_type.numpy,
        is_object=False,
        order=order,
        filters=None,
        compressor=_compressor(document["compression"], document["compression_opts"], where),
        ndim=len(shape),
        where=where,
    )
    return ArraySpec(
        zarr_format=1,
        shape=shape,
        data_type=data_type,
        chunk_grid=RegularGrid(chunks),
        chunk_key_encoding=V2Keys("."),
        codecs=codecs,
        fill_value=fill_from_v2(data_type, document["fill_value"], f"{where}: /fill_value"),
        attributes=dict(attributes),
        order="F" if order == "F" else "C",
        document=dict(document),
    )


def _compressor(name: Any, options: Any, where: str) -> dict[str, Any] | None:
    """Return the v2 ``compressor`` that is equivalent to a v1 compression."""
    if name is None or name == "none":
        return None
    expect_string(name, f"{where}: /compression")
    if name in _LEVEL_CODECS:
        if options is None:
            return {"id": name}
        if isinstance(options, bool) or not isinstance(options, int):
            raise unexpected_value(
                f"{where}: /compression_opts", f"the level of {name}, an integer, or null", options
            )
        return {"id": name, "level": options}
    if name in _OPTIONS_CODECS:
        return {
            "id": name,
            **(expect_object(options, f"{where}: /compression_opts") if options is not None else {}),
        }
    raise UnsupportedError(
        f'{where}: /compression: "{safe_text(name, MAX_VALUE)}" is not supported; expected one of '
        f"{', '.join((*_LEVEL_CODECS, *_OPTIONS_CODECS))}, or none"
    )


class V1Format(Format):
    """The Zarr v1 format, read-only."""

    features = FormatFeatures(
        writable=False,
        writable_format=2,
        zarr_chunks=True,
        filters=True,
        default_separator=".",
        fill_is_missing=True,
        document_names=(*ZARR_DOCUMENTS, ARRAY_KEY, ATTRIBUTES_KEY),
        migrations=(2, 3),
        migrated_documents=(ARRAY_KEY, ATTRIBUTES_KEY),
    )

    def _has_documents(self, store: Store, path: str) -> bool:
        # Both keys are required: they are common words, and the specification requires both.
        return store.exists(join(path, ARRAY_KEY)) and store.exists(join(path, ATTRIBUTES_KEY))

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        if not self._has_documents(store, path):
            return None
        key = join(path, ARRAY_KEY)
        document = read_object(store, key, MAX_NODE_DOCUMENT)
        if document is None or "zarr_format" not in document:
            return None
        return parse_array(
            document, read_object(store, join(path, ATTRIBUTES_KEY)) or {}, location(store, key)
        )

    def kind(self, store: Store, path: str) -> NodeKind | None:
        return "array" if self.read(store, path, False, False) is not None else None

    def check(self, spec: NodeSpec) -> None:
        raise UnsupportedError(
            "Zarr v1 arrays are read-only; migrate the array to zarr_format 2 or 3 to change it"
        )

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        return spec

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return (join(path, ARRAY_KEY), join(path, ATTRIBUTES_KEY))

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        return spec
