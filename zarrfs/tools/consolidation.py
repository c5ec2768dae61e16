"""Consolidated metadata: writing it, and checking whether it is up to date.

v2: the document ``.zmetadata`` of the group. v3: the member ``consolidated_metadata`` of the group's ``zarr.json``, as
zarr-python writes it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats import v2, v3
from zarrfs.engine.formats.json_document import location, read_object, write_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.model import NodeSpec
from zarrfs.engine.nodes.consolidation_warnings import equivalent_specs, forget_warnings
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.open import Location, open_group
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["consolidate_metadata", "stale_consolidation"]

V2_DOCUMENTS = (".zgroup", ".zarray", ".zattrs")


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
    group = open_group(store, path, "r+", storage_options=storage_options, zarr_format=zarr_format)
    try:
        _consolidate(group)
        forget_warnings(group.store, group.path)
    finally:
        if not isinstance(store, Store | Mapping):
            group.store.close()  # completes a zip file
    return open_group(store, path, "r", storage_options=storage_options, zarr_format=zarr_format)


def _consolidate(group: Group) -> None:
    documents = dict(_documents(group))
    if group.zarr_format == 2:
        entries = {join(below, name): document for (below, name), document in documents.items()}
        write_object(group.store, join(group.path, ".zmetadata"), _zmetadata(entries))
        return
    key = join(group.path, "zarr.json")
    own = read_object(group.store, key) or {}
    entries = {below: document for (below, _), document in documents.items() if below}
    own["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": entries}
    write_object(group.store, key, own)


def _zmetadata(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_consolidated_format": 1, "metadata": dict(entries)}


def _documents(group: Group, known: Collection[str] = ()) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield ((path below the group, document name), document) for the group and all nodes below it. If the store cannot
    list, only the nodes at the paths ``known`` are read.
    """
    if group.zarr_format not in (2, 3):
        raise UnsupportedError(f"{group.store.url}: format {group.zarr_format} has no consolidated metadata")
    names = V2_DOCUMENTS if group.zarr_format == 2 else ("zarr.json",)
    paths = _paths(group, "") if group.store.listable or not known else (path for path in known if path)
    for below in ["", *paths]:
        for name in names:
            document = read_object(group.store, join(join(group.path, below), name))
            if document is not None:
                yield (below, name), _without_consolidated(document)


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
    if group.zarr_format not in (2, 3):
        return []
    problems = _differences(group)
    for below, node in group.walk():
        if isinstance(node, Group) and node.zarr_format == group.zarr_format:
            own = open_group(
                group.store, node.path
            )  # read from the store, not from the parent's consolidated metadata
            problems += [f"{problem} (consolidated metadata of {below})" for problem in _differences(own)]
    return problems


def _differences(group: Group) -> list[str]:
    try:
        consolidated = _consolidated_documents(group)
    except MetadataError as error:
        return [f"the consolidated metadata of {group.name} is invalid: {error}"]
    if consolidated is None:
        return []
    actual = {
        (below, name): document
        for (below, name), document in _documents(group, {below for below, _ in consolidated})
        if (below or group.zarr_format == 2) and not _is_empty(name, document)
    }
    names = {key: join(*key) if group.zarr_format == 2 else key[0] for key in {*consolidated, *actual}}
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
        if not _equivalent_documents(key[1], consolidated[key], actual[key])
    ]
    return [f"{name} {problem}" for name, problem in sorted(problems)]


def _consolidated_documents(group: Group) -> dict[tuple[str, str], dict[str, Any]] | None:
    """Return the consolidated documents by (path below the group, document name); None if there is no consolidated
    metadata. Raises MetadataError if it is invalid.
    """
    if group.zarr_format == 2:
        key = join(group.path, ".zmetadata")
        section = read_object(group.store, key)
        if section is None:
            return None
    else:
        key = join(group.path, "zarr.json")
        section = (read_object(group.store, key) or {}).get("consolidated_metadata")
        if not isinstance(section, Mapping):
            return None
    where = f"{location(group.store, key)}: /metadata"
    consolidated = {}
    for key_in_document, entry in expect_object(section.get("metadata"), where).items():
        path, _, name = (
            key_in_document.rpartition("/")
            if group.zarr_format == 2
            else (key_in_document.strip("/"), "", "zarr.json")
        )
        document = _without_consolidated(expect_object(entry, f"{where}/{key_in_document}"))
        if not _is_empty(name, document):
            consolidated[path, name] = document
    return consolidated


def _is_empty(name: str, document: Mapping[str, Any]) -> bool:
    """Return whether a document is equivalent to a missing one: empty v2 attributes."""
    return name == ".zattrs" and not document


def _without_consolidated(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "consolidated_metadata"}


def _equivalent_documents(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two documents are equivalent. Implementations may omit members with default values."""
    # Comparison as JSON text, because NaN must equal NaN.
    if json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        return True
    if name not in (".zarray", "zarr.json"):
        return False
    try:
        return equivalent_specs(_parsed(name, one), _parsed(name, other))
    except MetadataError:
        return False


def _parsed(name: str, document: Mapping[str, Any]) -> NodeSpec:
    if name == ".zarray":
        return v2.parse_array(document, {}, name, allow_pickle=True)
    return v3.parse_node(document, name)
