"""Consolidated metadata: writing it, and checking whether it is up to date.

v2: the document ``.zmetadata`` of the group. v3: the member ``consolidated_metadata`` of the group's ``zarr.json``, as
zarr-python writes it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

from zarrfs.api.open import Location, open_group
from zarrfs.api.open import open as open_node
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.consolidation import Consolidation, DocumentName
from zarrfs.engine.formats.json_document import read_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.consolidation_warnings import equivalent_specs, forget_warnings
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locks import locked_documents, repeated_after_conflicts
from zarrfs.errors import MetadataError, NodeTypeError, UnsupportedError
from zarrfs.logs import logger

__all__ = [
    "consolidate_group",
    "consolidate_metadata",
    "group_to_consolidate",
    "stale_consolidation",
    "update_consolidated",
]


def consolidate_metadata(
    store: Location,
    path: str | None = "",
    zarr_format: int | str | None = None,
    *,
    storage_options: dict[str, Any] | None = None,
) -> Group:
    """Write the metadata documents of all nodes below a group into one document, and return the group, opened
        read-only. Its ``spec.consolidated`` has the nodes by path.

    Raises UnsupportedError for a format that has no consolidated metadata.
    """
    group = group_to_consolidate(store, path, "r+", storage_options=storage_options, zarr_format=zarr_format)
    # Closing the store completes a zip file.
    with nullcontext() if isinstance(store, Store | Mapping) else group.store:
        consolidate_group(group)
    return open_group(store, path, "r", storage_options=storage_options, zarr_format=zarr_format)


def group_to_consolidate(
    store: Location,
    path: str | None = "",
    mode: Literal["r", "r+"] = "r",
    *,
    storage_options: dict[str, Any] | None = None,
    zarr_format: int | str | None = None,
) -> Group:
    """Open a group. Raises NodeTypeError for an array."""
    node = open_node(store, path, mode, storage_options=storage_options, zarr_format=zarr_format)
    if isinstance(node, Group):
        return node
    where = f"{node.store.url}{node.name}".rstrip("/")
    node.close()
    raise NodeTypeError(
        f"{where} is an array; consolidated metadata belong to a group and contain the metadata of its members: give "
        "the location of a group"
    )


def consolidate_group(group: Group) -> None:
    """Write the consolidated metadata of a group. Raises UnsupportedError for a format that has none."""
    consolidation = formats.consolidation(group.zarr_format)
    if consolidation is None:
        raise UnsupportedError(f"{group.store.url}: format {group.zarr_format} has no consolidated metadata")

    def write() -> None:
        with locked_documents(group.store, consolidation.document_key(group.path)):
            consolidation.write(group.store, group.path, dict(_documents(group, consolidation)))

    repeated_after_conflicts(write)
    forget_warnings(group.store, group.path)


def update_consolidated(store: Store, path: str, zarr_format: int | str) -> list[str]:
    """Replace the documents of a node in the consolidated metadata of the groups that contain them. Returns the paths
    of these groups.

    Call this after the documents of the node were written. Invalid consolidated metadata stay as they are, with a
    warning. Other nodes are neither read nor changed. Concurrent calls for different nodes keep all changes: in threads
    of this process, and in processes that the store's ``lock`` excludes.
    """
    consolidation = formats.consolidation(zarr_format)
    if consolidation is None:
        return []
    updated = []
    for group in formats.consolidating_paths(path, zarr_format):
        below = path.removeprefix(group).strip("/")
        if not formats.is_consolidated(store, group, zarr_format) or not (
            below or consolidation.contains_root
        ):
            continue
        if repeated_after_conflicts(partial(_update_group, store, group, path, below, consolidation)):
            updated.append(group)
    return updated


def _update_group(store: Store, group: str, path: str, below: str, consolidation: Consolidation) -> bool:
    """Replace the documents of the node at ``path`` in the consolidated metadata of a group. Return False if these are
    invalid.
    """
    # Read while the consolidated metadata are locked: of several writers, the last one writes the newest documents.
    with locked_documents(store, consolidation.document_key(group)):
        documents: dict[DocumentName, dict[str, Any] | None] = {}
        for name in consolidation.names:
            document = read_object(store, join(path, name))
            documents[DocumentName(below, name)] = (
                None if document is None else consolidation.own_part(document)
            )
        try:
            consolidation.update(store, group, documents)
        except MetadataError as error:
            logger.warning("the consolidated metadata of %s are not updated: %s", group or "/", error)
            return False
    return True


def _documents(
    group: Group, consolidation: Consolidation, known_paths: Collection[str] = ()
) -> Iterator[tuple[DocumentName, dict[str, Any]]]:
    """Yield the documents of the nodes below the group, and of the group itself if they are consolidated. If the store
    cannot list, only the nodes at the paths ``known_paths`` are read.
    """
    is_listed = group.store.listable or not known_paths
    paths = _paths(group, "") if is_listed else (path for path in known_paths if path)
    for below in [*([""] if consolidation.contains_root else []), *paths]:
        for name in consolidation.names:
            document = read_object(group.store, join(join(group.path, below), name))
            if document is not None:
                yield DocumentName(below, name), consolidation.own_part(document)


def _paths(group: Group, below: str) -> Iterator[str]:
    """Yield the paths of all nodes below a group, from the store rather than from consolidated metadata."""
    for name in formats.child_names(group.store, join(group.path, below), group.spec):
        path = join(below, name)
        kind = formats.read_kind(group.store, join(group.path, path))
        if kind is not None:
            yield path
        if kind == "group":
            yield from _paths(group, path)


def stale_consolidation(group: Group) -> list[str]:
    """Return the differences between the consolidated metadata of a group and the documents of its nodes: a sentence
    for each document that is missing from the consolidated metadata, that does not exist in the store, or that differs.
    Groups below with consolidated metadata of their own are included. The list is empty if there are no differences or
    no consolidated metadata. ``consolidate_metadata`` brings the metadata up to date.

    Reads all documents below the group. In a store that cannot list (a web server), documents that are missing from the
    consolidated metadata are not found.
    """
    consolidation = formats.consolidation(group.zarr_format)
    if consolidation is None:
        return []
    problems = _differences(group, consolidation)
    for below, node in group.walk():
        if isinstance(node, Group) and node.zarr_format == group.zarr_format:
            # Read from the store, not from the parent's consolidated metadata.
            own = _differences(open_group(group.store, node.path), consolidation)
            problems += [f"{problem} (consolidated metadata of {below})" for problem in own]
    return problems


def _differences(group: Group, consolidation: Consolidation) -> list[str]:
    try:
        consolidated = consolidation.read(group.store, group.path)
    except MetadataError as error:
        return [f"the consolidated metadata of {group.name} is invalid: {error}"]
    if consolidated is None:
        return []
    actual = dict(_documents(group, consolidation, {below for below, _ in consolidated}))
    consolidated, actual = (
        {
            key: document
            for key, document in documents.items()
            if not consolidation.is_empty(key.name, document)
        }
        for documents in (consolidated, actual)
    )
    names = {key: consolidation.key(key) for key in {*consolidated, *actual}}
    problems = [
        (names[key], "is in the consolidated metadata but not in the store")
        for key in set(consolidated) - set(actual)
    ]
    problems += [
        (names[key], "exists but is missing from the consolidated metadata")
        for key in set(actual) - set(consolidated)
    ]
    problems += [
        (names[key], "differs from its consolidated metadata")
        for key in set(actual) & set(consolidated)
        if not _equivalent_documents(consolidation, key.name, consolidated[key], actual[key])
    ]
    return [f"{name} {problem}" for name, problem in sorted(problems)]


def _equivalent_documents(
    consolidation: Consolidation, name: str, one: Mapping[str, Any], other: Mapping[str, Any]
) -> bool:
    """Return whether two documents are equivalent. Implementations may omit members with default values."""
    # Comparison as JSON text, because NaN must equal NaN.
    if json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        return True
    try:
        first, second = consolidation.parse(name, one), consolidation.parse(name, other)
    except MetadataError:
        return False
    return first is not None and second is not None and equivalent_specs(first, second)
