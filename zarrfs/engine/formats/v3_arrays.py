"""Zarr v3.1: the ``zarr.json`` of arrays. Core specification, "Metadata" and "Extensions"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from zarrfs.engine.chunks.chunk_grids import chunk_grid_from_json, chunk_grid_to_json
from zarrfs.engine.chunks.chunk_key_encodings import (
    chunk_key_encoding_from_json,
    chunk_key_encoding_to_json,
)
from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.registry import check_element_type, codec_from_json, codec_to_json, codecs_from_json
from zarrfs.engine.dtypes import ELEMENT_TYPES, data_type_from_v3, data_type_to_v3, fill_from_v3, fill_to_v3
from zarrfs.engine.formats.base import NodeKind
from zarrfs.engine.formats.byte_order import check_endian, with_endian
from zarrfs.engine.json_checks import (
    describe_json,
    expect_list,
    expect_object,
    expect_shape,
    expect_string,
    unexpected_value,
)
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import MAX_VALUE, safe_text

__all__ = [
    "ARRAY_KEYS",
    "array_document",
    "attributes_of",
    "check_unknown_keys",
    "dimension_units",
    "node_type",
    "parse_array",
    "unknown_keys",
    "with_units",
]

ARRAY_KEYS = (
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
)
_REQUIRED_ARRAY_KEYS = ARRAY_KEYS[:8]

_UNITS = "dimension_units"
"""The attribute in which TensorStore stores the units of the dimensions."""


def node_type(document: Mapping[str, Any], where: str) -> NodeKind:
    """Return whether a ``zarr.json`` describes an array or a group. Raises MetadataError."""
    version = document.get("zarr_format")
    if isinstance(version, bool) or version != 3 or not isinstance(version, int):
        raise unexpected_value(f"{where}: /zarr_format", "3 in a zarr.json", version)
    kind = expect_string(document.get("node_type"), f"{where}: /node_type", ("array", "group"))
    return "array" if kind == "array" else "group"


def parse_array(document: Mapping[str, Any], where: str) -> ArraySpec:
    """Return the array that a ``zarr.json`` describes.

    Raises MetadataError that names the invalid key, and UnsupportedError for unsupported extensions.
    """
    if node_type(document, where) != "array":
        raise unexpected_value(f"{where}: /node_type", '"array"', document["node_type"])
    for key in _REQUIRED_ARRAY_KEYS:
        if key not in document:
            raise MetadataError(f'{where}: the key "{key}" is missing; an array needs it')
    check_unknown_keys(document, ARRAY_KEYS, where, "array")
    shape = expect_shape(document["shape"], f"{where}: /shape")
    data_type = data_type_from_v3(document["data_type"], f"{where}: /data_type")
    grid = chunk_grid_from_json(document["chunk_grid"], shape, f"{where}: /chunk_grid")
    keys = chunk_key_encoding_from_json(document["chunk_key_encoding"], f"{where}: /chunk_key_encoding")
    fill = fill_from_v3(data_type, document["fill_value"], f"{where}: /fill_value")
    codec_list = expect_list(document["codecs"], f"{where}: /codecs", "a list of codecs")
    if not codec_list:
        raise MetadataError(
            f"{where}: /codecs: expected at least one codec, from array to bytes; found an empty list"
        )
    if data_type.name == "struct":
        codec_list = with_endian(codec_list, data_type.numpy, f"{where}: /codecs")
    check_endian(codec_list, data_type.numpy, f"{where}: /codecs")
    codecs = codecs_from_json(codec_list, f"{where}: /codecs")
    check_element_type(codecs, ELEMENT_TYPES.get(data_type.name), f"{where}: /codecs")
    _check_transformers(document.get("storage_transformers"), f"{where}: /storage_transformers")
    attributes = attributes_of(document, where)
    return ArraySpec(
        zarr_format=3,
        shape=shape,
        data_type=data_type,
        chunk_grid=grid,
        chunk_key_encoding=keys,
        codecs=codecs,
        fill_value=fill,
        dimension_names=_names(document.get("dimension_names"), len(shape), f"{where}: /dimension_names"),
        dimension_units=dimension_units(attributes, len(shape)),
        attributes=attributes,
        order=_order(codecs, len(shape)),
        document=dict(document),
    )


def check_unknown_keys(
    document: Mapping[str, Any], known: tuple[str, ...], where: str, kind: NodeKind
) -> None:
    """Raise UnsupportedError for a member of a document that is not known and must be understood."""
    for key, value in document.items():
        if key in known:
            continue
        if not (isinstance(value, Mapping) and value.get("must_understand") is False):
            raise UnsupportedError(
                f'{where}: the {kind} has the key "{safe_text(key, MAX_VALUE)}", which is not supported and does not '
                'have "must_understand": false; a newer version may be required'
            )


def attributes_of(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the attributes of a node. Raises MetadataError."""
    return dict(expect_object(document.get("attributes", {}), f"{where}: /attributes"))


def _check_transformers(value: Any, where: str) -> None:
    """Raise UnsupportedError for a storage transformer that must be understood. None are supported."""
    if value is None:
        return
    for transformer in expect_list(value, where, "a list of storage transformers"):
        if not (isinstance(transformer, Mapping) and transformer.get("must_understand") is False):
            raise UnsupportedError(
                f"{where}: storage transformers are not supported, found {describe_json(transformer)}"
            )


def _names(value: Any, ndim: int, where: str) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    names = expect_list(value, where, "a list of strings or nulls")
    if len(names) != ndim:
        raise MetadataError(f"{where}: expected {ndim} names, one for each dimension, found {len(names)}")
    return tuple(
        None if name is None else expect_string(name, f"{where}/{i}") for i, name in enumerate(names)
    )


def dimension_units(attributes: Mapping[str, Any], ndim: int) -> tuple[str | None, ...] | None:
    """Return the units in the attribute ``dimension_units``, or None if it is missing or not valid for the rank."""
    units = attributes.get(_UNITS)
    if not isinstance(units, list) or len(units) != ndim:
        return None
    if not all(unit is None or isinstance(unit, str) for unit in units):
        return None
    return tuple(units)


def _order(codecs: tuple[Codec, ...], ndim: int) -> Literal["C", "F"]:
    first = codecs[0]
    reverse = first.name == "transpose" and list(first.configuration()["order"]) == list(range(ndim))[::-1]
    return "F" if reverse and ndim > 1 else "C"


def array_document(spec: ArraySpec) -> dict[str, Any]:
    """Return the ``zarr.json`` of an array. Unknown keys of the parsed document are preserved.

    Raises UnsupportedError for features that v3 does not have, such as an undefined fill value.
    """
    data_type = data_type_to_v3(spec.data_type)
    if spec.fill_value is None:
        raise UnsupportedError("a Zarr v3 array must have a fill value; specify fill_value")
    document: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(spec.shape),
        "data_type": data_type,
        "chunk_grid": chunk_grid_to_json(spec.chunk_grid),
        "chunk_key_encoding": chunk_key_encoding_to_json(spec.chunk_key_encoding),
        "fill_value": fill_to_v3(spec.data_type, spec.fill_value),
        "codecs": _codec_list(spec),
    }
    if spec.document.get("zarr_format") == 3 and spec.document.get("storage_transformers"):
        document["storage_transformers"] = spec.document["storage_transformers"]
    if spec.dimension_names is not None:
        document["dimension_names"] = list(spec.dimension_names)
    document["attributes"] = with_units(spec)
    return document | unknown_keys(spec, ARRAY_KEYS)


def _codec_list(spec: ArraySpec) -> list[Any]:
    """Return the ``codecs`` of the array.

    Codecs of the parsed document that were ignored because of ``must_understand: false`` are preserved.
    """
    current = [codec_to_json(codec) for codec in spec.codecs]
    listed = spec.document.get("codecs", ()) if spec.document.get("zarr_format") == 3 else ()
    if not any(isinstance(entry, Mapping) and entry.get("must_understand") is False for entry in listed):
        return current
    parsed = [codec_from_json(entry, "codecs") for entry in listed]
    if tuple(codec for codec in parsed if codec is not None) != spec.codecs:
        return current
    remaining = iter(current)
    return [entry if codec is None else next(remaining) for entry, codec in zip(listed, parsed, strict=True)]


def with_units(spec: ArraySpec) -> dict[str, Any]:
    """Return the attributes, including the units of the dimensions if there are any."""
    attributes = dict(spec.attributes)
    if spec.dimension_units is not None and _UNITS not in attributes:
        attributes[_UNITS] = list(spec.dimension_units)
    return attributes


def unknown_keys(spec: NodeSpec, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the members of the parsed document that zarrfs does not know. They are preserved."""
    if spec.document.get("zarr_format") != 3:
        return {}
    return {key: value for key, value in spec.document.items() if key not in known}
