"""Zarr v3.1: ``zarr.json``. Core specification, "Metadata" and "Extensions"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from zarrfs.engine.chunking.chunk_grids import chunk_grid_from_json, chunk_grid_to_json
from zarrfs.engine.chunking.chunk_key_encodings import (
    chunk_key_encoding_from_json,
    chunk_key_encoding_to_json,
)
from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.registry import check_element_type, codec_from_json, codec_to_json, codecs_from_json
from zarrfs.engine.dtypes import ELEMENT_TYPES, data_type_from_v3, data_type_to_v3, fill_from_v3, fill_to_v3
from zarrfs.engine.formats.array_templates import ArrayTemplates
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.byte_order import check_endian, with_endian
from zarrfs.engine.formats.consolidated import inline_consolidated
from zarrfs.engine.formats.draft2019 import is_bootstrap
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import (
    location,
    parse_object,
    read_document,
    read_object,
    write_object,
)
from zarrfs.engine.formats.paths import check_node_name, join, paths_above
from zarrfs.engine.json_checks import (
    describe_json,
    expect_list,
    expect_object,
    expect_shape,
    expect_string,
    unexpected_value,
)
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Buffer, Store
from zarrfs.errors import KeyNameError, MetadataError, UnsupportedError
from zarrfs.logs import logger

__all__ = [
    "ARRAY_KEYS",
    "V3Format",
    "array_document",
    "array_template",
    "group_document",
    "parse_array",
    "parse_group",
    "parse_node",
]

KEY = "zarr.json"

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
CONSOLIDATED = "consolidated_metadata"

_GROUP_KEYS = ("zarr_format", "node_type", "attributes", CONSOLIDATED)

_UNITS = "dimension_units"
"""The attribute in which TensorStore stores the units of the dimensions."""


# -- documents to the model ----------------------------------------------------------------------------------


def node_type(document: Mapping[str, Any], where: str) -> NodeKind:
    """Return whether a ``zarr.json`` describes an array or a group. Raises MetadataError."""
    version = document.get("zarr_format")
    if isinstance(version, bool) or version != 3 or not isinstance(version, int):
        raise unexpected_value(f"{where}: /zarr_format", "3 in a zarr.json", version)
    kind = expect_string(document.get("node_type"), f"{where}: /node_type", ("array", "group"))
    return "array" if kind == "array" else "group"


def parse_node(document: Mapping[str, Any], where: str) -> NodeSpec:
    """Return the node that a ``zarr.json`` describes. ``where`` is the document's location. Raises MetadataError."""
    if node_type(document, where) == "array":
        return parse_array(document, where)
    return parse_group(document, where)


def parse_array(document: Mapping[str, Any], where: str) -> ArraySpec:
    """Return the array that a ``zarr.json`` describes.

    Raises MetadataError that names the invalid key, and UnsupportedError for unsupported extensions.
    """
    if node_type(document, where) != "array":
        raise unexpected_value(f"{where}: /node_type", '"array"', document["node_type"])
    for key in _REQUIRED_ARRAY_KEYS:
        if key not in document:
            raise MetadataError(f'{where}: the key "{key}" is missing; an array needs it')
    _check_unknown(document, ARRAY_KEYS, where, "array")
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
    attributes = _attributes(document, where)
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


def parse_group(document: Mapping[str, Any], where: str) -> GroupSpec:
    """Return the group that a ``zarr.json`` describes. Raises MetadataError."""
    if node_type(document, where) != "group":
        raise unexpected_value(f"{where}: /node_type", '"group"', document["node_type"])
    _check_unknown(document, _GROUP_KEYS, where, "group")
    return GroupSpec(
        zarr_format=3,
        attributes=_attributes(document, where),
        consolidated=inline_consolidated(document.get(CONSOLIDATED), where, _parse_listed),
        document=dict(document),
    )


def _check_unknown(document: Mapping[str, Any], known: tuple[str, ...], where: str, kind: NodeKind) -> None:
    for key, value in document.items():
        if key in known:
            continue
        if not (isinstance(value, Mapping) and value.get("must_understand") is False):
            raise UnsupportedError(
                f'{where}: the {kind} has the key "{key}", which is not supported and does not have '
                '"must_understand": false; a newer version may be required'
            )


def _attributes(document: Mapping[str, Any], where: str) -> dict[str, Any]:
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


# -- the model to documents ----------------------------------------------------------------------------------


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
    return document | _unknown_keys(spec, ARRAY_KEYS)


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


def group_document(spec: GroupSpec) -> dict[str, Any]:
    """Return the ``zarr.json`` of a group. Unknown keys of the parsed document are preserved."""
    document: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": dict(spec.attributes)}
    consolidated = {key: spec.document[key] for key in (CONSOLIDATED,) if key in spec.document}
    return document | consolidated | _unknown_keys(spec, _GROUP_KEYS)


def _unknown_keys(spec: NodeSpec, known: tuple[str, ...]) -> dict[str, Any]:
    if spec.document.get("zarr_format") != 3:
        return {}
    return {key: value for key, value in spec.document.items() if key not in known}


def _warn_of_invalid_name(path: str, where: str) -> None:
    """Log a warning for an existing node whose name is not valid. It is read nevertheless."""
    try:
        check_node_name(path.rpartition("/")[2] or "root")
    except KeyNameError as error:
        logger.warning("%s: %s; the node is read nevertheless", where, error)


def _with_attributes(spec: ArraySpec, attributes: dict[str, Any]) -> ArraySpec:
    units = dimension_units(attributes, len(spec.shape))
    document = {**spec.document, "attributes": attributes}
    return replace(spec, attributes=dict(attributes), dimension_units=units, document=document)


_templates = ArrayTemplates(_with_attributes)


def array_template(data: Buffer) -> tuple[ArraySpec, Mapping[str, Any]] | None:
    """Return the template of an array that the bytes of a ``zarr.json`` match, and the attributes of the array."""
    return _templates.match(data)


def _parse_document(data: Buffer, where: str, limit: int) -> NodeSpec | None:
    """Return the node that the bytes of a ``zarr.json`` describe, or None for the document of another format."""
    known = _templates.find(data)
    if known is not None:
        return known
    document = parse_object(data, where, limit)
    if is_bootstrap(document):
        return None
    spec = parse_node(document, where)
    if isinstance(spec, ArraySpec):
        _templates.add(data, document, spec)
    return spec


def _parse_listed(document: Mapping[str, Any], where: str) -> NodeSpec:
    """Return the node that a document in consolidated metadata describes, as ``parse_node``."""
    known = _templates.find_parsed(document)
    if known is not None:
        return known
    spec = parse_node(document, where)
    if isinstance(spec, ArraySpec):
        _templates.add_parsed(document, spec)
    return spec


class V3Format(Format):
    """The Zarr v3.1 format."""

    features = FormatFeatures(
        zarr_chunks=True,
        codec_chain=True,
        sharding=True,
        chunk_grids=True,
        key_encodings=True,
        dimension_names=True,
        dimension_units=True,
    )

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        key = join(path, KEY)
        spec = read_document(store, key, _parse_document)
        if spec is None:
            return None
        _warn_of_invalid_name(path, location(store, key))
        return (
            replace(spec, consolidated=None) if isinstance(spec, GroupSpec) and not use_consolidated else spec
        )

    def consolidating_paths(self, path: str) -> list[str]:
        return paths_above(path)  # not the group itself: its zarr.json contains its own attributes only once

    def is_consolidated(self, store: Store, path: str) -> bool:
        return isinstance((read_object(store, join(path, KEY)) or {}).get(CONSOLIDATED), Mapping)

    def kind(self, store: Store, path: str) -> NodeKind | None:
        key = join(path, KEY)
        document = read_object(store, key)
        if document is None or is_bootstrap(document):
            return None
        return node_type(document, location(store, key))

    def check(self, spec: NodeSpec) -> None:
        if isinstance(spec, ArraySpec):
            document = array_document(spec)
            check_element_type(spec.codecs, ELEMENT_TYPES.get(spec.data_type.name), "codecs")
            if spec.data_type.name != "struct":
                check_endian(document["codecs"], spec.data_type.numpy, "codecs")

    def check_path(self, store: Store, path: str) -> None:
        for name in path.split("/") if path else ():
            check_node_name(name)

    def child_names(self, store: Store, path: str, spec: GroupSpec) -> list[str]:
        """Return the prefixes that may be members. Names that begin with ``__`` are reserved (v3 "Node names")."""
        return [name for name in store.list_dir(path).prefixes if not name.startswith("__")]

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        document = array_document(spec) if isinstance(spec, ArraySpec) else group_document(spec)
        written = write_object(store, join(path, KEY), document)
        # The attributes include the units of dimensions, so a later change of an attribute preserves them.
        return replace(spec, document=written, attributes=written["attributes"])

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return (join(path, KEY),)

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        key = join(path, KEY)
        # The stored document may be newer than the opened one: another process may have resized the array.
        document = read_object(store, key) or spec.document
        written = write_object(store, key, {**document, "attributes": dict(spec.attributes)})
        attributes = written["attributes"]
        if isinstance(spec, ArraySpec):
            units = dimension_units(attributes, len(spec.shape))
            return replace(spec, document=written, attributes=attributes, dimension_units=units)
        return replace(spec, document=written, attributes=attributes)
