"""Which format a node is in, and the doors through which the engine reads and writes metadata.

Above this module nobody asks for a format.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from zarrfs.engine.formats import draft2019, n5
from zarrfs.engine.formats.base import Format, NodeKeys, NodeKind
from zarrfs.engine.formats.json_document import document_limit, location, unforeseen_errors
from zarrfs.engine.formats.v1 import V1Format
from zarrfs.engine.formats.v2 import V2Format
from zarrfs.engine.formats.v3 import V3Format
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import UnsupportedError
from zarrfs.logs import logger

__all__ = [
    "adapted",
    "check_path",
    "check_writable",
    "child_names",
    "chunk_prefix",
    "consolidating_paths",
    "copy_root_document",
    "document_keys",
    "is_consolidated",
    "node_keys",
    "own_documents",
    "read_kind",
    "read_node",
    "resized",
    "write_attributes",
    "write_node",
]

Spec = TypeVar("Spec", ArraySpec, GroupSpec)

_FORMATS: dict[int | str, Format] = {
    3: V3Format(),
    2: V2Format(),
    n5.NAME: n5.N5Format(),
    1: V1Format(),
    draft2019.NAME: draft2019.Draft2019Format(),
}
"""By the ``zarr_format`` of their nodes, in the order in which they are looked for."""


def read_node(
    store: Store,
    path: str,
    *,
    allow_pickle: bool = False,
    use_consolidated: bool = True,
    max_document: int | None = None,
) -> NodeSpec | None:
    """Return what is at the path, or None when there is no node of any format. Raises MetadataError.

    Where v3 and v2 both claim the node v3 is taken, with a warning. A document of more than ``max_document`` bytes is
    refused without reading it; None takes the default.
    """
    with document_limit(max_document):
        return _read_node(store, path, allow_pickle, use_consolidated)


def _read_node(store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
    for number, known in _FORMATS.items():
        with unforeseen_errors(location(store, path)):
            spec = known.read(store, path, allow_pickle, use_consolidated)
        if spec is None:
            continue
        if number == 3 and store.concurrency == 1 and _FORMATS[2].kind(store, path) is not None:
            logger.warning(
                "%s: %r has metadata of Zarr v3 and of v2; v3 is taken. Remove zarr.json, or .zarray and .zgroup",
                store.url,
                path or "/",
            )
        return spec
    return None


def read_kind(store: Store, path: str) -> NodeKind | None:
    """Return whether an array or a group is at the path, or None. Raises MetadataError."""
    kinds = (known.kind(store, path) for known in _FORMATS.values())
    return next((kind for kind in kinds if kind is not None), None)


def _format(spec: NodeSpec) -> Format:
    found = _FORMATS.get(spec.zarr_format)
    if found is None:
        raise UnsupportedError(
            f"zarr_format {spec.zarr_format!r} is not known; expected one of {list(_FORMATS)}"
        )
    return found


def check_writable(spec: NodeSpec) -> None:
    """Raise UnsupportedError if the format of ``spec`` cannot say what it asks for. Writes nothing."""
    _format(spec).check(spec)


def check_path(store: Store, path: str, zarr_format: int | str) -> None:
    """Raise KeyNameError if the format does not allow a new node at the path. Writes nothing."""
    _FORMATS[zarr_format].check_path(store, path)


def adapted(spec: ArraySpec) -> ArraySpec:
    """Return the spec of an array that is to be created, with the chunk keys and codecs that its format
    has no choice in (N5: blocks of reversed dimensions). The compressor stays.
    """
    return _format(spec).adapted(spec)


def write_node(store: Store, path: str, spec: Spec) -> Spec:
    """Write the node's documents; return ``spec`` with them. Nodes above it are the caller's to write."""
    return cast(Spec, _format(spec).write(store, path, spec))


def write_attributes(store: Store, path: str, spec: Spec) -> Spec:
    """Write the attributes of ``spec``, a node that is there; return ``spec`` as it then is."""
    return cast(Spec, _format(spec).write_attributes(store, path, spec))


def child_names(store: Store, path: str, spec: GroupSpec) -> list[str]:
    """Return the names below the group that may be nodes, without looking whether they are. Costs a
    listing.
    """
    return _format(spec).child_names(store, path, spec)


def consolidating_paths(path: str, zarr_format: int | str) -> list[str]:
    """Return the paths of the groups whose consolidated metadata mention the node at the path, if they have any."""
    return _FORMATS[zarr_format].consolidating_paths(path)


def is_consolidated(store: Store, path: str, zarr_format: int | str) -> bool:
    """Tell whether the group at the path carries consolidated metadata."""
    return _FORMATS[zarr_format].is_consolidated(store, path)


def chunk_prefix(spec: ArraySpec, path: str) -> str:
    """Return what stands before the chunk keys of the array at the path: empty, or ending with a slash."""
    return _format(spec).chunk_prefix(path, spec)


def document_keys(store: Store, path: str, spec: NodeSpec) -> tuple[str, ...]:
    """Return the keys of a node's own documents, attributes last, whether they are there or not."""
    return _format(spec).document_keys(store, path, "array" if isinstance(spec, ArraySpec) else "group")


def own_documents(store: Store, path: str) -> tuple[str, ...]:
    """Return the keys of the documents of what is at the path, whether all are there or not; none for no node."""
    for known in _FORMATS.values():
        kind = known.kind(store, path)
        if kind is not None:
            return known.document_keys(store, path, kind)
    return ()


def node_keys(store: Store, *paths: str) -> list[NodeKeys]:
    """Return where nodes at the paths and all below them are stored, in the format of what is at the first path."""
    found = next((known for known in _FORMATS.values() if known.kind(store, paths[0]) is not None), None)
    return [NodeKeys((), (path,)) if found is None else found.branch(store, path) for path in paths]


def copy_root_document(source: Store, target: Store) -> None:
    """Write the document at the root that says how nodes below are stored to another store, if a format has one."""
    draft2019.copy_bootstrap(source, target)


def resized(spec: ArraySpec, shape: tuple[int, ...]) -> ArraySpec:
    """Return the spec of the array with another shape of the same rank."""
    return replace(spec, shape=shape, chunk_grid=spec.chunk_grid.resized(shape))
