"""Array documents of the editor's draft of 19 June 2019, "Array metadata", and of the drafts after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.chunks.chunk_grids import RegularGrid, check_chunk_shape
from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding, Coords, Separator, V2Keys
from zarrfs.engine.dtypes import DataType, data_type_from_numpy, data_type_from_v2, fill_from_v2, fill_to_v2
from zarrfs.engine.formats.byte_order import stored_data_type
from zarrfs.engine.formats.dimension_names import attributes_with_names, dimension_names_from_attributes
from zarrfs.engine.formats.v2_codecs import chain_from_v2, chain_to_v2
from zarrfs.engine.json_checks import (
    check_keys,
    expect_list,
    expect_object,
    expect_shape,
    expect_string,
    unexpected_value,
)
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import MAX_VALUE, safe_text

__all__ = ["DraftKeys", "array_document", "check_extensions", "parse_array"]

EXTENSIONS = "http://purl.org/zarr/spec/protocol/extensions"
CODECS = "http://purl.org/zarr/spec/codec"
LATER_CODECS = "https://purl.org/zarr/spec/codec"

_REQUIRED_KEYS = ("shape", "data_type", "chunk_grid", "chunk_memory_layout", "fill_value")
_CORE_TYPES = re.compile("bool|[iu]1|[<>]([iu][248]|f[248])")
_KNOWN_TYPE_EXTENSIONS = re.compile(
    "datetime|complex|fixed-?(length|width)|string|bytes|raw|quad", re.IGNORECASE
)
"""Extensions with such a URI write types in NumPy's notation, as the example in the draft does."""

_CODEC = re.compile(r"https?://purl\.org/zarr/spec/codec/([a-z0-9_-]+)(/[0-9.]+)?/?")
_KNOWN_CODECS = ("blosc", "gzip", "zlib", "zstd", "lz4", "bz2", "lzma")


@dataclass(frozen=True)
class DraftKeys(ChunkKeyEncoding):
    """The chunk keys of later drafts, ``c1/23/45``. There is no separator after the ``c``."""

    name: ClassVar[str] = "draft"
    separator: Separator = "/"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        check_keys(configuration, where, ("separator",))
        return cls(_separator(configuration.get("separator", "/"), f"{where}/separator"))

    def configuration(self) -> dict[str, Any]:
        return {"separator": self.separator}

    def encode(self, coords: Coords) -> str:
        return "c" + self.separator.join(map(str, coords))

    def decode(self, key: str) -> Coords | None:
        if key == "c":
            return ()
        return V2Keys(self.separator).decode(key[1:]) if key.startswith("c") else None


def _separator(value: Any, where: str) -> Separator:
    return "/" if expect_string(value, where, (".", "/")) == "/" else "."


def check_extensions(value: Any, where: str) -> None:
    """Raise UnsupportedError for an extension that must be understood, and MetadataError for an invalid list.

    No extensions are supported.
    """
    for index, entry in enumerate(expect_list(value, where, "a list of extensions")):
        pointer = f"{where}/{index}"
        extension = expect_object(entry, pointer, 'an object with "extension" and "must_understand"')
        uri = expect_string(extension.get("extension"), f"{pointer}/extension")
        must_understand = extension.get("must_understand")
        if not isinstance(must_understand, bool):
            raise unexpected_value(f"{pointer}/must_understand", "true or false", must_understand)
        if must_understand:
            raise UnsupportedError(
                f"{pointer}: the extension {safe_text(uri, MAX_VALUE)} must be understood, but is not supported"
            )


# -- documents to the model --------------------------------------------------------------------------------


def parse_array(document: Mapping[str, Any], where: str, *, is_later: bool = False) -> ArraySpec:
    """Return the array of an ``.array`` document. ``is_later`` is for the drafts after that of 2019.

    Unknown keys are ignored, as the draft allows. Raises MetadataError that names the invalid key, and
    UnsupportedError for unsupported extensions and codecs.
    """
    for key in _REQUIRED_KEYS:
        if key not in document:
            raise MetadataError(f'{where}: the key "{key}" is missing; an array needs it')
    shape = expect_shape(document["shape"], f"{where}: /shape")
    chunks, separator = _chunk_grid(
        document["chunk_grid"], shape, f"{where}: /chunk_grid", "/" if is_later else "."
    )
    data_type = _data_type(document["data_type"], f"{where}: /data_type")
    memory_layout = document["chunk_memory_layout"]
    if isinstance(memory_layout, Mapping):
        raise UnsupportedError(
            f"{where}: /chunk_memory_layout: the extension "
            f"{safe_text(str(memory_layout.get('extension')), MAX_VALUE)} is not supported"
        )
    order = expect_string(memory_layout, f"{where}: /chunk_memory_layout", ("C", "F"))
    check_extensions(document.get("extensions", []), f"{where}: /extensions")
    codecs = chain_from_v2(
        dtype=data_type.numpy,
        is_object=False,
        order=order,
        filters=None,
        compressor=_compressor(document.get("compressor"), f"{where}: /compressor"),
        ndim=len(shape),
        where=where,
    )
    attributes = dict(expect_object(document.get("attributes", {}), f"{where}: /attributes"))
    return ArraySpec(
        zarr_format="draft2019",
        shape=shape,
        data_type=data_type,
        chunk_grid=RegularGrid(chunks),
        chunk_key_encoding=DraftKeys(separator) if is_later else V2Keys(separator),
        codecs=codecs,
        fill_value=fill_from_v2(
            data_type, document["fill_value"], f"{where}: /fill_value", numbers_as_text=False
        ),
        dimension_names=dimension_names_from_attributes(attributes, len(shape)),
        attributes=attributes,
        order="F" if order == "F" else "C",
        document=dict(document),
    )


def _chunk_grid(
    value: Any, shape: tuple[int, ...], where: str, separator: Separator
) -> tuple[tuple[int, ...], Separator]:
    grid = expect_object(value, where, 'an object with "type" and "chunk_shape"')
    if "extension" in grid:
        raise UnsupportedError(
            f"{where}: the extension {safe_text(str(grid['extension']), MAX_VALUE)} is not supported"
        )
    expect_string(grid.get("type"), f"{where}/type", ("regular",))
    chunks = expect_shape(grid.get("chunk_shape"), f"{where}/chunk_shape")
    check_chunk_shape(chunks, shape, f"{where}/chunk_shape")
    return chunks, _separator(grid.get("separator", separator), f"{where}/separator")


def _data_type(value: Any, where: str) -> DataType:
    if isinstance(value, str):
        return data_type_from_v2("|b1" if value == "bool" else value, where)
    extension = expect_object(value, where, "the name of a data type, or an object of an extension")
    uri = expect_string(extension.get("extension"), f"{where}/extension")
    if "type" not in extension:
        raise MetadataError(f'{where}: the key "type" is missing')
    if _KNOWN_TYPE_EXTENSIONS.search(uri):
        data_type = data_type_from_v2(extension["type"], f"{where}/type")
        if not data_type.numpy.hasobject:
            return data_type
    if extension.get("fallback") is not None:
        return _data_type(expect_string(extension["fallback"], f"{where}/fallback"), f"{where}/fallback")
    raise UnsupportedError(
        f"{where}: the extension {safe_text(uri, MAX_VALUE)} is not supported, and it has no fallback"
    )


def _compressor(value: Any, where: str) -> dict[str, Any] | None:
    """Return the v2 ``compressor`` for a codec URI and its configuration."""
    if value is None:
        return None
    entry = expect_object(value, where, 'an object with "codec", a URI')
    uri = expect_string(entry.get("codec"), f"{where}/codec")
    match = _CODEC.fullmatch(uri)
    if match is None or match[1] not in _KNOWN_CODECS:
        raise UnsupportedError(
            f"{where}/codec: {safe_text(uri, MAX_VALUE)} is not supported; expected {CODECS}/ followed by one of "
            f"{', '.join(_KNOWN_CODECS)}"
        )
    return {"id": match[1], **expect_object(entry.get("configuration", {}), f"{where}/configuration")}


# -- the model to documents --------------------------------------------------------------------------------


def array_document(spec: ArraySpec, *, is_later: bool = False) -> dict[str, Any]:
    """Return the ``.array`` document of an array.

    Raises UnsupportedError for features that the draft does not have: filters, shards, irregular chunks.
    """
    if not isinstance(spec.chunk_grid, RegularGrid):
        raise UnsupportedError(
            f'the draft2019 format has regular chunks only, not the chunk grid "{spec.chunk_grid.name}"'
        )
    separator = getattr(spec.chunk_key_encoding, "separator", None)
    if not isinstance(spec.chunk_key_encoding, V2Keys | DraftKeys) or separator is None:
        raise UnsupportedError(
            f'the draft2019 format does not support the chunk key encoding "{spec.chunk_key_encoding.name}"'
        )
    order, filters, compressor = chain_to_v2(spec.codecs)
    if filters is not None:
        raise UnsupportedError(
            f"the draft2019 format has one compressor and no filters; found {filters[0]['id']!r}"
        )
    document: dict[str, Any] = {
        "shape": list(spec.shape),
        "data_type": _data_type_to_json(stored_data_type(spec)),
        "chunk_grid": {
            "type": "regular",
            "chunk_shape": list(spec.chunk_grid.chunk_shape),
            "separator": separator,
        },
        "chunk_memory_layout": order if len(spec.shape) > 1 else spec.order,
        "fill_value": fill_to_v2(spec.data_type, spec.fill_value),
        "extensions": spec.document.get("extensions", []),
        "attributes": attributes_with_names(spec),
    }
    if compressor is not None:
        name = compressor.pop("id")
        codec = f"{LATER_CODECS}/{name}/1.0" if is_later else f"{CODECS}/{name}"
        document["compressor"] = {"codec": codec, "configuration": compressor}
    return document


def _data_type_to_json(data_type: DataType) -> Any:
    dtype = data_type.numpy
    text = "bool" if dtype.kind == "b" else dtype.str.lstrip("|")
    if data_type_from_numpy(dtype).name != data_type.name:
        raise UnsupportedError(
            f"the draft2019 format has no data type for {data_type.name}; use zarr_format=3"
        )
    if dtype.names is None and dtype.isbuiltin != 2 and _CORE_TYPES.fullmatch(text):
        return text
    if dtype.kind in "mM":
        fallback = np.dtype("i8").newbyteorder(dtype.byteorder).str
        return {"extension": f"{EXTENSIONS}/datetime-dtypes/1.0", "type": dtype.str, "fallback": fallback}
    if dtype.kind == "c" and dtype.isbuiltin != 2:
        return {"extension": f"{EXTENSIONS}/complex-dtypes/1.0", "type": dtype.str}
    raise UnsupportedError(f"the draft2019 format has no data type for {data_type.name}; use zarr_format=3")
