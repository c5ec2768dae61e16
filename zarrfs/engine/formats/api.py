"""Detection of a node's format, and the functions by which the engine reads and writes metadata in any format.

The rest of the engine does not distinguish formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from zarrfs.engine.dtypes import DataType
from zarrfs.engine.formats import draft2019, v2, v3, v3_arrays
from zarrfs.engine.formats.base import Format, NodeKeys, NodeKind
from zarrfs.engine.formats.consolidation import Consolidation, V2Consolidation, V3Consolidation
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import convert_unexpected_errors, document_limit, location
from zarrfs.engine.formats.paths import is_node_name, join
from zarrfs.engine.formats.registry import (
    FORMATS_BELOW_PATHS,
    WRITABLE_FORMATS,
    all_formats,
    check_format,
    format_named,
)
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Buffer, Listing, Store
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.logs import logger

__all__ = [
    "WRITABLE_FORMATS",
    "array_from_document",
    "array_template",
    "check_document_files",
    "check_format",
    "check_path",
    "check_writable",
    "child_names",
    "chunk_prefix",
    "consolidating_paths",
    "consolidation",
    "copy_root_document",
    "document_keys",
    "features",
    "has_root_document",
    "is_consolidated",
    "is_document_name",
    "new_fill_value",
    "node_document_keys",
    "node_keys",
    "own_document",
    "read_kind",
    "read_node",
    "resized",
    "with_prescribed_encoding",
    "writable_format",
    "write_attributes",
    "write_node",
]

Spec = TypeVar("Spec", ArraySpec, GroupSpec)

_CONSOLIDATIONS: dict[int | str, Consolidation] = {3: V3Consolidation(), 2: V2Consolidation()}


def features(zarr_format: int | str) -> FormatFeatures:
    """Return what a format can store. Raises UnsupportedError for an unknown format."""
    try:
        return format_named(zarr_format).features
    except UnsupportedError:
        check_format(zarr_format)  # its message lists the formats of new nodes
        raise


def writable_format(zarr_format: int | str) -> int | str:
    """Return the format of new nodes next to nodes of this format: the format itself if it can be written."""
    other = features(zarr_format).writable_format
    return zarr_format if other is None else other


def new_fill_value(value: Any, data_type: DataType, zarr_format: int | str) -> Any:
    """Return the fill value of a new array for an option, None included."""
    return format_named(zarr_format).new_fill_value(value, data_type)


def array_from_document(document: Mapping[str, Any], where: str) -> ArraySpec:
    """Return the array that a metadata document of zarr-python describes, whose attributes are a member of it.

    ``where`` names the document in messages. Raises MetadataError.
    """
    if document.get("zarr_format") == 2:
        array = {key: value for key, value in document.items() if key != "attributes"}
        return v2.parse_array(array, document.get("attributes", {}), where)
    return v3_arrays.parse_array(document, where)


def array_template(
    document: Buffer, zarr_format: int = 3, attributes: Buffer | None = None
) -> tuple[ArraySpec, Mapping[str, Any]] | None:
    """Return the template of an array that its documents match, and the attributes of the array.

    ``document`` are the bytes of a ``zarr.json``, or those of a ``.zarray`` with the ``.zattrs`` as ``attributes``. The
    template is the specification without the attributes and without the units that are among them. It is the same
    object for all arrays that differ in their attributes only. None if no such array has been opened before.
    """
    return v2.array_template(document, attributes) if zarr_format == 2 else v3.array_template(document)


def consolidation(zarr_format: int | str) -> Consolidation | None:
    """Return how the format consolidates metadata, or None if it does not."""
    return _CONSOLIDATIONS.get(zarr_format)


def own_document(spec: GroupSpec) -> dict[str, Any]:
    """Return the document of a group without consolidated metadata."""
    found = consolidation(spec.zarr_format)
    return dict(spec.document) if found is None else found.own_part(spec.document)


def read_node(
    store: Store,
    path: str,
    *,
    allow_pickle: bool = False,
    use_consolidated: bool = True,
    max_document: int | None = None,
    parent_format: int | str | None = None,
) -> NodeSpec | None:
    """Return the node at the path, or None if there is no node of any format. Raises MetadataError.

    If the node has metadata of both v3 and v2, v3 is used and a warning is logged. A document of more than
    ``max_document`` bytes is refused without being read; None means the default limit. ``parent_format`` is the format
    of the group of which the node is a member, if it is known.
    """
    with document_limit(max_document):
        return _read_node(store, path, allow_pickle, use_consolidated, parent_format)


def _read_node(
    store: Store, path: str, allow_pickle: bool, use_consolidated: bool, parent_format: int | str | None
) -> NodeSpec | None:
    for zarr_format, format_ in _formats_at(store, path, parent_format, is_member=parent_format is not None):
        with convert_unexpected_errors(location(store, path)):
            spec = format_.read(store, path, allow_pickle, use_consolidated)
        if spec is None:
            continue
        if zarr_format == 3 and not store.is_remote and format_named(2).kind(store, path) is not None:
            logger.warning(
                "%s: %r has metadata of both Zarr v3 and v2; v3 is used. Remove zarr.json, or .zarray and .zgroup",
                store.url,
                path or "/",
            )
        return spec
    return None


def _formats_at(
    store: Store, path: str, expected: int | str | None, *, is_member: bool = False
) -> Iterator[tuple[int | str, Format]]:
    """Yield the formats that the node at the path may have, in the order in which they are tried.

    If there is no node of the ``expected`` format, the store is asked whether there is anything below the path. A node
    that would be a member of a group of this format is described nowhere else.
    """
    is_empty = False
    for zarr_format, format_ in all_formats():
        if not is_empty or zarr_format not in FORMATS_BELOW_PATHS:
            yield zarr_format, format_
        if zarr_format == expected and zarr_format in FORMATS_BELOW_PATHS:
            is_empty = store.is_empty(path)
            if is_empty and is_member:
                return


def read_kind(store: Store, path: str, expected_format: int | str | None = None) -> NodeKind | None:
    """Return whether the node at the path is an array or a group, or None if there is no node. Raises MetadataError.

    ``expected_format`` is the format that it probably has if there is a node.
    """
    kinds = (format_.kind(store, path) for _, format_ in _formats_at(store, path, expected_format))
    return next((kind for kind in kinds if kind is not None), None)


def check_writable(spec: NodeSpec) -> None:
    """Raise UnsupportedError if the format of ``spec`` cannot represent it. Writes nothing."""
    format_named(spec.zarr_format).check(spec)


def check_path(store: Store, path: str, zarr_format: int | str) -> None:
    """Raise KeyNameError if the format does not allow a new node at the path. Writes nothing."""
    format_named(zarr_format).check_path(store, path)


def with_prescribed_encoding(spec: ArraySpec) -> ArraySpec:
    """Return the spec of a new array with the chunk key encoding and codecs that its format prescribes.

    N5 prescribes blocks of reversed dimensions. The compressor is unchanged.
    """
    return format_named(spec.zarr_format).with_prescribed_encoding(spec)


def write_node(store: Store, path: str, spec: Spec) -> Spec:
    """Write the node's documents and return ``spec`` with them. The caller writes the groups above the node."""
    return cast(Spec, format_named(spec.zarr_format).write(store, path, spec))


def write_attributes(store: Store, path: str, spec: Spec) -> Spec:
    """Write the attributes of ``spec``, an existing node; return the updated ``spec``."""
    return cast(Spec, format_named(spec.zarr_format).write_attributes(store, path, spec))


def child_names(store: Store, path: str, spec: GroupSpec, listing: Listing | None = None) -> list[str]:
    """Return the names below the group that may be nodes, without checking each of them.

    Needs one listing, or none with the ``listing`` of the path of the group.
    """
    found = format_named(spec.zarr_format).child_names(store, path, spec, listing)
    return list(filter(is_node_name, found))


def is_document_name(name: str, zarr_format: int | str) -> bool:
    """Return whether a name in the directory of a node is reserved for metadata documents."""
    return name in features(zarr_format).document_names


def consolidating_paths(path: str, zarr_format: int | str) -> list[str]:
    """Return the paths of the groups whose consolidated metadata, if any, contains the node at the path."""
    return format_named(zarr_format).consolidating_paths(path)


def is_consolidated(store: Store, path: str, zarr_format: int | str) -> bool:
    """Return whether the group at the path has consolidated metadata."""
    return format_named(zarr_format).is_consolidated(store, path)


def chunk_prefix(spec: ArraySpec, path: str) -> str:
    """Return the prefix of the chunk keys of the array at the path: empty, or ending with a slash."""
    return format_named(spec.zarr_format).chunk_prefix(path, spec)


def document_keys(store: Store, path: str, spec: NodeSpec) -> tuple[str, ...]:
    """Return the keys of a node's own documents, attributes last. The documents need not exist."""
    return format_named(spec.zarr_format).document_keys(
        store, path, "array" if isinstance(spec, ArraySpec) else "group"
    )


def node_document_keys(store: Store, path: str) -> tuple[str, ...]:
    """Return the keys of the documents of the node at the path, or no keys if there is no node.

    The documents need not all exist.
    """
    for _, format_ in all_formats():
        kind = format_.kind(store, path)
        if kind is not None:
            return format_.document_keys(store, path, kind)
    return ()


def check_document_files(store: Store, path: str) -> None:
    """Raise MetadataError if there is no node at the path because something else than a file has the name of its
    document: a directory, or a link without a target.
    """
    for name in ("zarr.json", ".zarray", ".zgroup", "attributes.json"):
        key = join(path, name)
        if store.is_irregular(key):
            raise MetadataError(f"{store.url}/{key} is not a regular file; expected a metadata document")


def node_keys(store: Store, *paths: str) -> list[NodeKeys]:
    """Return where the nodes at the paths, and all nodes below them, are stored.

    The format is that of the node at the first path.
    """
    format_ = next((known for _, known in all_formats() if known.kind(store, paths[0]) is not None), None)
    return [NodeKeys((), (path,)) if format_ is None else format_.node_keys(store, path) for path in paths]


def stored_keys(store: Store, path: str, spec: NodeSpec) -> NodeKeys:
    """Return where the node with this metadata, and all nodes below it, are stored."""
    return format_named(spec.zarr_format).node_keys(store, path)


def has_root_document(store: Store) -> bool:
    """Return whether the nodes of a store are described by a document at its root, and have no directories of their
    own. Raises MetadataError for an invalid document.
    """
    return draft2019.bootstrap_document(store) is not None


def copy_root_document(source: Store, target: Store) -> None:
    """Copy the hierarchy's root document to another store, if the format has one.

    The root document of the draft of 2019 states how the nodes below it are stored.
    """
    draft2019.copy_bootstrap(source, target)


def resized(spec: ArraySpec, shape: tuple[int, ...]) -> ArraySpec:
    """Return the spec of the array resized to ``shape``, which has the same rank."""
    return replace(spec, shape=shape, chunk_grid=spec.chunk_grid.resized(shape))
