"""Zarr v1, for reading: one array in a store, its metadata under ``meta`` and ``attrs``.

There are no groups. An array that is to be changed is converted to a newer format first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.engine.chunking.chunk_grids import RegularGrid, check_chunk_shape
from zarrfs.engine.chunking.chunk_key_encodings import V2Keys
from zarrfs.engine.dtypes import data_type_from_v2, fill_from_v2
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.json_document import MAX_NODE_DOCUMENT, location, read_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.formats.v2_codecs import chain_from_v2
from zarrfs.engine.json_checks import expect_object, expect_shape, expect_string, fail
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["V1Format", "parse_array"]

ARRAY_KEY = "meta"
ATTRIBUTES_KEY = "attrs"

_REQUIRED_KEYS = ("shape", "chunks", "dtype", "compression", "compression_opts", "fill_value", "order")
_LEVELS = ("zlib", "bz2")
_OBJECTS = ("blosc", "lzma")


def parse_array(document: Mapping[str, Any], attributes: Mapping[str, Any], where: str) -> ArraySpec:
    """Return the array that a ``meta`` and its ``attrs`` describe.

    Raises MetadataError that names the key, UnsupportedError for compression that is not known here.
    """
    if document.get("zarr_format") != 1 or isinstance(document["zarr_format"], bool | float):
        raise fail(f"{where}: /zarr_format", "1", document.get("zarr_format"))
    for key in _REQUIRED_KEYS:
        if key not in document:
            raise MetadataError(f'{where}: the key "{key}" is missing; an array needs it')
    shape = expect_shape(document["shape"], f"{where}: /shape")
    chunks = expect_shape(document["chunks"], f"{where}: /chunks")
    check_chunk_shape(chunks, shape, f"{where}: /chunks")
    data_type = data_type_from_v2(document["dtype"], f"{where}: /dtype")
    if data_type.numpy.hasobject:
        raise UnsupportedError(f"{where}: /dtype: Zarr v1 says nothing of how Python objects are stored")
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
    """Return the v2 ``compressor`` that undoes this v1 compression."""
    if name is None or name == "none":
        return None
    expect_string(name, f"{where}: /compression")
    if name in _LEVELS:
        if options is None:
            return {"id": name}
        if isinstance(options, bool) or not isinstance(options, int):
            raise fail(f"{where}: /compression_opts", f"the level of {name}, an integer, or null", options)
        return {"id": name, "level": options}
    if name in _OBJECTS:
        return {
            "id": name,
            **(expect_object(options, f"{where}: /compression_opts") if options is not None else {}),
        }
    raise UnsupportedError(
        f'{where}: /compression: "{name}" is no compression of Zarr v1 that is known here; known are '
        f"{', '.join((*_LEVELS, *_OBJECTS))} and none"
    )


class V1Format(Format):
    """Zarr v1 in a store, read-only."""

    def _is_here(self, store: Store, path: str) -> bool:
        # Both names are ordinary words, and the specification demands both keys.
        return store.exists(join(path, ARRAY_KEY)) and store.exists(join(path, ATTRIBUTES_KEY))

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        if not self._is_here(store, path):
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
            "Zarr v1 is read, not written; migrate the array to zarr_format 2 or 3 to change it"
        )

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        return spec

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return (join(path, ARRAY_KEY), join(path, ATTRIBUTES_KEY))

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        return spec
