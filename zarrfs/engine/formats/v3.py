"""Zarr v3.1: ``zarr.json``. Core specification, "Metadata" and "Extensions"."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from zarrfs.engine.codecs.registry import check_element_type
from zarrfs.engine.dtypes import ELEMENT_TYPES
from zarrfs.engine.formats.array_templates import ArrayTemplates
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.byte_order import check_endian
from zarrfs.engine.formats.consolidated import inline_consolidated
from zarrfs.engine.formats.draft2019 import is_bootstrap
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import (
    location,
    parse_pairs,
    parse_shared,
    read_document,
    read_object,
    value_of_pairs,
    write_object,
)
from zarrfs.engine.formats.paths import check_node_name, join, paths_above
from zarrfs.engine.formats.v3_arrays import (
    array_document,
    attributes_of,
    check_unknown_keys,
    dimension_units,
    node_type,
    parse_array,
    unknown_keys,
)
from zarrfs.engine.json_checks import (
    unexpected_value,
)
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Buffer, Listing, Store
from zarrfs.errors import KeyNameError, MetadataError
from zarrfs.logs import logger

__all__ = ["V3Format", "array_template", "group_document", "parse_group", "parse_node"]

KEY = "zarr.json"

CONSOLIDATED = "consolidated_metadata"

MAX_COMPARED_NBYTES = 16 << 10
"""The bytes of larger documents are parsed once only: not compared with those of arrays that were read before."""

_GROUP_KEYS = ("zarr_format", "node_type", "attributes", CONSOLIDATED)


def _with_attributes(spec: ArraySpec, attributes: Mapping[str, Any]) -> ArraySpec:
    units = dimension_units(attributes, len(spec.shape))
    document = dict(spec.document)
    if "attributes" in document:
        document["attributes"] = dict(attributes)
    return replace(spec, attributes=dict(attributes), dimension_units=units, document=document)


_templates = ArrayTemplates(_with_attributes)


def parse_node(document: Mapping[str, Any], where: str) -> NodeSpec:
    """Return the node that a ``zarr.json`` describes. ``where`` is the document's location. Raises MetadataError."""
    if node_type(document, where) == "array":
        return parse_array(document, where)
    return parse_group(document, where)


def parse_group(document: Mapping[str, Any], where: str) -> GroupSpec:
    """Return the group that a ``zarr.json`` describes. Raises MetadataError."""
    if node_type(document, where) != "group":
        raise unexpected_value(f"{where}: /node_type", '"group"', document["node_type"])
    check_unknown_keys(document, _GROUP_KEYS, where, "group")
    return GroupSpec(
        zarr_format=3,
        attributes=attributes_of(document, where),
        consolidated=inline_consolidated(document.get(CONSOLIDATED), where, _parse_known, _templates.match),
        document=dict(document),
    )


def group_document(spec: GroupSpec) -> dict[str, Any]:
    """Return the ``zarr.json`` of a group. Unknown keys of the parsed document are preserved."""
    document: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": dict(spec.attributes)}
    consolidated = {key: spec.document[key] for key in (CONSOLIDATED,) if key in spec.document}
    return document | consolidated | unknown_keys(spec, _GROUP_KEYS)


def _warn_of_invalid_name(path: str, where: str) -> None:
    """Log a warning for an existing node whose name is not valid. It is read nevertheless."""
    try:
        check_node_name(path.rpartition("/")[2] or "root")
    except KeyNameError as error:
        logger.warning("%s: %s; the node is read nevertheless", where, error)


def array_template(data: Buffer) -> tuple[ArraySpec, Mapping[str, Any]] | None:
    """Return the template of an array that the bytes of a ``zarr.json`` match, and the attributes of the array.

    None if no such array has been interpreted. Raises MetadataError if the bytes are not valid.
    """
    document = parse_pairs(data, KEY)
    return _templates.match_pairs(document, KEY) if isinstance(document, tuple) else None


def _parse_document(data: Buffer, where: str, limit: int) -> NodeSpec | None:
    """Return the node that the bytes of a ``zarr.json`` describe, or None for the document of another format."""
    document: Any = None
    if len(data) <= min(limit, MAX_COMPARED_NBYTES):
        with suppress(MetadataError):  # which is raised again below, with its position in the document
            pairs = parse_pairs(data, where)
            known = _templates.match_pairs(pairs, where) if isinstance(pairs, tuple) else None
            if known is not None:
                return _with_attributes(*known)
            document = value_of_pairs(pairs, where)
    if not isinstance(document, dict):
        document = parse_shared(data, where, limit)
    return None if is_bootstrap(document) else _parse_known(document, where)


def _parse_known(document: Mapping[str, Any], where: str) -> NodeSpec:
    """Return the node that a ``zarr.json`` describes, as ``parse_node``. Equal documents are interpreted once."""
    known = _templates.find(document)
    if known is not None:
        return known
    spec = parse_node(document, where)
    if isinstance(spec, ArraySpec):
        _templates.add(document, _with_attributes(spec, {}))
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
        determining_documents=(KEY,),
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

    def child_names(
        self, store: Store, path: str, spec: GroupSpec, listing: Listing | None = None
    ) -> list[str]:
        """Return the prefixes that may be members. Names that begin with ``__`` are reserved (v3 "Node names")."""
        names = super().child_names(store, path, spec, listing)
        return [name for name in names if not name.startswith("__")]

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
