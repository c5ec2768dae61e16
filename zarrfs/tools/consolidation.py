"""Consolidated metadata: writing them, and finding out whether they are out of date.

v2: ``.zmetadata`` beside the group's documents. v3: ``consolidated_metadata`` inline in the group's ``zarr.json``, as
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
    """Write the documents of all nodes below a group into one, and return the group, opened for reading. Its
    ``spec.consolidated`` holds the nodes by path.

    Raises UnsupportedError for a format that has no consolidated metadata.
    """
    group = open_group(store, path, "r+", storage_options=storage_options, zarr_format=zarr_format)
    try:
        _consolidate(group)
        forget_warnings(group.store, group.path)
    finally:
        if not isinstance(store, Store | Mapping):
            group.store.close()  # of a zip file, it is complete only then
    return open_group(store, path, "r", storage_options=storage_options, zarr_format=zarr_format)


def _consolidate(group: Group) -> None:
    documents = dict(_documents(group))
    if group.zarr_format == 2:
        entries = {join(below, name): document for (below, name), document in documents.items()}
        write_object(group.store, join(group.path, ".zmetadata"), _v2(entries))
        return
    key = join(group.path, "zarr.json")
    own = read_object(group.store, key) or {}
    entries = {below: document for (below, _), document in documents.items() if below}
    own["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": entries}
    write_object(group.store, key, own)


def _v2(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_consolidated_format": 1, "metadata": dict(entries)}


def _documents(group: Group, known: Collection[str] = ()) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield ((path below the group, name), document) of all nodes, the group's own included. Where the store cannot
    list, of the nodes at the paths that are ``known``.
    """
    if group.zarr_format not in (2, 3):
        raise UnsupportedError(f"{group.store.url}: format {group.zarr_format} has no consolidated metadata")
    names = V2_DOCUMENTS if group.zarr_format == 2 else ("zarr.json",)
    below_it = _paths(group, "") if group.store.listable or not known else (path for path in known if path)
    for below in ["", *below_it]:
        for name in names:
            document = read_object(group.store, join(join(group.path, below), name))
            if document is not None:
                yield (below, name), _plain(document)


def _paths(group: Group, below: str) -> Iterator[str]:
    """Yield the paths of all nodes below a group, as the store has them, not as consolidated metadata say."""
    for name in formats.child_names(group.store, join(group.path, below), group.spec):
        path = join(below, name)
        kind = formats.read_kind(group.store, join(group.path, path))
        if kind is not None:
            yield path
        if kind == "group":
            yield from _paths(group, path)


def stale_consolidation(group: Group) -> list[str]:
    """Return what is out of date in the consolidated metadata of a group, and of groups below it that have their own: a
    sentence for each document that is missing from them, in them without being there, or there with another meaning.
    Nothing where they are up to date, or where there are none. ``consolidate_metadata`` puts them right.

    Reads every document below. In a store that cannot list (a web server) what is missing cannot be found.
    """
    if group.zarr_format not in (2, 3):
        return []
    problems = _stale(group)
    for below, node in group.walk():
        if isinstance(node, Group) and node.zarr_format == group.zarr_format:
            own = open_group(group.store, node.path)  # not as the group's consolidated metadata have it
            problems += [f"{problem}, of {below}" for problem in _stale(own)]
    return problems


def _stale(group: Group) -> list[str]:
    try:
        listed = _listed(group)
    except MetadataError as error:
        return [f"the consolidated metadata of {group.name} are broken: {error}"]
    if listed is None:
        return []
    actual = {
        (below, name): document
        for (below, name), document in _documents(group, {below for below, _ in listed})
        if (below or group.zarr_format == 2) and not _is_nothing(name, document)
    }
    names = {key: join(*key) if group.zarr_format == 2 else key[0] for key in {*listed, *actual}}
    problems = [
        (names[key], "is in the consolidated metadata, but not there") for key in set(listed) - set(actual)
    ]
    problems += [
        (names[key], "is there, but not in the consolidated metadata") for key in set(actual) - set(listed)
    ]
    problems += [
        (names[key], "differs from its consolidated metadata")
        for key in set(actual) & set(listed)
        if not _alike(key[1], listed[key], actual[key])
    ]
    return [f"{name} {what}" for name, what in sorted(problems)]


def _listed(group: Group) -> dict[tuple[str, str], dict[str, Any]] | None:
    """Return the documents that are consolidated by (path below the group, name); None where none are. Raises
    MetadataError where they cannot be read.
    """
    if group.zarr_format == 2:
        key = join(group.path, ".zmetadata")
        found = read_object(group.store, key)
        if found is None:
            return None
    else:
        key = join(group.path, "zarr.json")
        found = (read_object(group.store, key) or {}).get("consolidated_metadata")
        if not isinstance(found, Mapping):
            return None
    where = f"{location(group.store, key)}: /metadata"
    listed = {}
    for place, entry in expect_object(found.get("metadata"), where).items():
        path, _, name = (
            place.rpartition("/") if group.zarr_format == 2 else (place.strip("/"), "", "zarr.json")
        )
        document = _plain(expect_object(entry, f"{where}/{place}"))
        if not _is_nothing(name, document):
            listed[path, name] = document
    return listed


def _is_nothing(name: str, document: Mapping[str, Any]) -> bool:
    """Whether a document says no more than if it were not there."""
    return name == ".zattrs" and not document


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "consolidated_metadata"}


def _alike(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two documents say the same: implementations leave out what goes without saying, or do not."""
    # Not by equality: NaN is to be the same as NaN.
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
