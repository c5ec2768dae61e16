"""Zarr v2: ``.zarray``, ``.zgroup``, ``.zattrs`` and ``.zmetadata`` in a store. ``v2_arrays`` parses ``.zarray``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zarrfs.engine.chunks.chunk_key_encodings import Separator, V2Keys
from zarrfs.engine.codecs.registry import check_element_type
from zarrfs.engine.dtypes import ELEMENT_TYPES, DataType
from zarrfs.engine.formats.array_templates import ArrayTemplates
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.consolidated import Consolidated, documents_by_path
from zarrfs.engine.formats.dimension_names import (
    DIMENSIONS,
    attributes_with_names,
    dimension_names_from_attributes,
)
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import (
    MAX_NODE_DOCUMENT,
    location,
    parse_pairs,
    parse_shared,
    read_document,
    read_object,
    write_object,
)
from zarrfs.engine.formats.paths import join, paths_above
from zarrfs.engine.formats.v2_arrays import array_document, check_units, check_version, parse_array
from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Buffer, Store
from zarrfs.logs import logger

__all__ = ["V2Format", "array_document", "array_template", "group_document", "parse_array", "parse_group"]

ARRAY_KEY = ".zarray"
GROUP_KEY = ".zgroup"
ATTRIBUTES_KEY = ".zattrs"
CONSOLIDATED_KEY = ".zmetadata"


def array_template(data: Buffer, attributes: Buffer | None) -> tuple[ArraySpec, Mapping[str, Any]] | None:
    """Return the template of an array that the bytes of a ``.zarray`` and a ``.zattrs`` match, and the attributes.

    None if no such array has been interpreted. Raises MetadataError if the bytes are not valid.
    """
    array = parse_pairs(data, ARRAY_KEY)
    members = () if attributes is None else parse_pairs(attributes, ATTRIBUTES_KEY)
    if not isinstance(array, tuple) or not isinstance(members, tuple):
        return None
    names = next((value for name, value in members if name == DIMENSIONS), None)
    document = _complete_document(array, names, members)
    return _templates.match_pairs(tuple(document.items()), ATTRIBUTES_KEY)


# -- documents -----------------------------------------------------------------------------------------------


def parse_group(document: Mapping[str, Any], attributes: Mapping[str, Any], where: str) -> GroupSpec:
    """Return the group that a ``.zgroup`` and its ``.zattrs`` describe. Raises MetadataError."""
    check_version(document, where)
    return GroupSpec(zarr_format=2, attributes=dict(attributes), document=dict(document))


def group_document(spec: GroupSpec) -> dict[str, Any]:
    """Return the ``.zgroup`` of a group."""
    parsed = dict(spec.document) if spec.document.get("zarr_format") == 2 else {}
    return {"zarr_format": 2, **parsed}


def attributes_document(spec: NodeSpec) -> dict[str, Any]:
    """Return the ``.zattrs`` of a node, including the names of its dimensions."""
    return attributes_with_names(spec)


def _with_attributes(spec: ArraySpec, attributes: dict[str, Any]) -> ArraySpec:
    return replace(spec, attributes=dict(attributes), document=dict(spec.document))


_templates = ArrayTemplates(_with_attributes)


def _complete_document(array: Any, names: Any, attributes: Any, allow_pickle: bool = False) -> dict[str, Any]:
    """Return all that an array depends on, apart from its keys, with the attributes as those of a document of v3.

    ``names`` are the names of the dimensions, which are among the attributes.
    """
    return {"array": array, "names": names, "pickle": allow_pickle, "attributes": attributes}


# -- in a store ----------------------------------------------------------------------------------------------


def probe_separator(store: Store, path: str, ndim: int) -> Separator:
    """Return the dimension separator of an array whose ``.zarray`` has no ``dimension_separator``.

    The default in the specification is ``"."``. Nested directories, written before the key was specified, are
    recognized with a warning.
    """
    if ndim < 2 or store.exists(join(path, ".".join(["0"] * ndim))):
        return "."
    if store.exists(join(path, "/".join(["0"] * ndim))):
        nested = True
    elif not store.listable or store.is_remote:
        nested = False
    else:
        listing = store.list_dir(path)
        dotted = any(key.replace(".", "").isdigit() for key in listing.keys)
        nested = not dotted and any(name.isdigit() for name in listing.prefixes)
    if nested:
        logger.warning(
            '%s: "dimension_separator" is missing, but the chunks are in nested directories; "/" is used',
            location(store, join(path, ARRAY_KEY)),
        )
    return "/" if nested else "."


class V2Format(Format):
    """The Zarr v2 format."""

    features = FormatFeatures(
        zarr_chunks=True,
        filters=True,
        default_separator=".",
        fill_is_missing=True,
        migrations=(3,),
        migrated_documents=(ARRAY_KEY, GROUP_KEY, ATTRIBUTES_KEY, CONSOLIDATED_KEY),
        determining_documents=("zarr.json", ARRAY_KEY, GROUP_KEY, ATTRIBUTES_KEY),
    )

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        array = self._stored_array(store, path, allow_pickle)
        if array is not None:
            return array
        key = join(path, GROUP_KEY)
        document = read_object(store, key, MAX_NODE_DOCUMENT)
        if document is None:
            return None
        group = parse_group(document, self._attributes(store, path), location(store, key))
        if use_consolidated and store.exists(join(path, CONSOLIDATED_KEY)):
            return replace(group, consolidated=self._consolidated(store, path, allow_pickle))
        return group

    def _stored_array(self, store: Store, path: str, allow_pickle: bool) -> ArraySpec | None:
        key = join(path, ARRAY_KEY)
        document = read_object(store, key, MAX_NODE_DOCUMENT)
        if document is None:
            return None
        attributes = self._attributes(store, path)
        return self._array(store, path, document, attributes, location(store, key), allow_pickle)

    def _attributes(self, store: Store, path: str) -> dict[str, Any]:
        return read_object(store, join(path, ATTRIBUTES_KEY)) or {}

    def _array(
        self,
        store: Store,
        path: str,
        document: Mapping[str, Any],
        attributes: Mapping[str, Any],
        where: str,
        allow_pickle: bool,
    ) -> ArraySpec:
        complete = _complete_document(document, attributes.get(DIMENSIONS), attributes, allow_pickle)
        known = _templates.find(complete)
        if known is not None:
            return known
        spec = parse_array(document, attributes, where, allow_pickle=allow_pickle)
        if document.get("dimension_separator") is None:
            # The array depends on the keys of its chunks as well.
            separator = probe_separator(store, path, len(spec.shape))
            return replace(spec, chunk_key_encoding=V2Keys(separator))
        _templates.add(complete, _with_attributes(spec, {}))
        return spec

    def _consolidated(self, store: Store, path: str, allow_pickle: bool) -> Consolidated:
        key = join(path, CONSOLIDATED_KEY)
        where = location(store, key)

        def load() -> dict[str, dict[str, Any]]:
            return documents_by_path(read_document(store, key, parse_shared) or {}, where)

        def match(documents: Mapping[str, Any]) -> ArraySpec | None:
            if ARRAY_KEY not in documents:
                return None
            attributes = documents.get(ATTRIBUTES_KEY, {})
            if not isinstance(attributes, Mapping):
                return None
            names = attributes.get(DIMENSIONS)
            return _templates.match(_complete_document(documents[ARRAY_KEY], names, attributes, allow_pickle))

        def parse(inner: str, documents: dict[str, Any]) -> NodeSpec:
            pointer = f"{where}: /metadata/{inner}"
            attributes = expect_object(documents.get(ATTRIBUTES_KEY, {}), f"{pointer}/{ATTRIBUTES_KEY}")
            if ARRAY_KEY in documents:
                array_where = f"{pointer}/{ARRAY_KEY}"
                array = expect_object(documents[ARRAY_KEY], array_where)
                return self._array(store, join(path, inner), array, attributes, array_where, allow_pickle)
            group = expect_object(documents[GROUP_KEY], f"{pointer}/{GROUP_KEY}")
            return parse_group(group, attributes, f"{pointer}/{GROUP_KEY}")

        return Consolidated(load, parse, match)

    def consolidating_paths(self, path: str) -> list[str]:
        return [path, *paths_above(path)]

    def is_consolidated(self, store: Store, path: str) -> bool:
        return store.exists(join(path, CONSOLIDATED_KEY))

    def kind(self, store: Store, path: str) -> NodeKind | None:
        if store.exists(join(path, ARRAY_KEY)):
            return "array"
        return "group" if store.exists(join(path, GROUP_KEY)) else None

    def new_fill_value(self, value: Any, data_type: DataType) -> Any:
        if value is None:
            return None
        if data_type.numpy.hasobject and type(value) is int and value == 0:
            # As zarr-python 2 writes it for variable-length elements; it means the default of the data type.
            return 0
        return super().new_fill_value(value, data_type)

    def check(self, spec: NodeSpec) -> None:
        if isinstance(spec, ArraySpec):
            array_document(spec)
            check_element_type(spec.codecs, ELEMENT_TYPES.get(spec.data_type.name), "filters")
            check_units(spec.data_type.numpy)

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        # The attributes first: a node exists when it has all of them, also if the process is killed in between.
        written = self.write_attributes(store, path, spec)
        if isinstance(spec, ArraySpec):
            document = write_object(store, join(path, ARRAY_KEY), array_document(spec))
        else:
            document = write_object(store, join(path, GROUP_KEY), group_document(spec))
        return replace(written, document=document)

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return join(path, ARRAY_KEY if kind == "array" else GROUP_KEY), join(path, ATTRIBUTES_KEY)

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        attributes = attributes_document(spec)
        key = join(path, ATTRIBUTES_KEY)
        if attributes or store.exists(key):
            attributes = write_object(store, key, attributes)
        if isinstance(spec, ArraySpec):
            names = dimension_names_from_attributes(attributes, len(spec.shape))
            return replace(spec, attributes=attributes, dimension_names=names)
        return replace(spec, attributes=attributes)
