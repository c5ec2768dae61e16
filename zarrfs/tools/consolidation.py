"""Consolidated metadata: writing them, and finding out whether they are out of date.

v2: ``.zmetadata`` beside the group's documents. v3: ``consolidated_metadata`` inline in the group's ``zarr.json``, as
zarr-python writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.engine.formats import detect
from zarrfs.engine.formats.json_document import read_object, write_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group import Group
from zarrfs.engine.open import Location, open_group
from zarrfs.engine.stores.base import Store
from zarrfs.errors import UnsupportedError

__all__ = ["consolidate_metadata", "stale_entries"]

V2_DOCUMENTS = (".zgroup", ".zarray", ".zattrs")


def consolidate_metadata(
    location: Location, path: str = "", *, storage_options: dict[str, Any] | None = None
) -> int:
    """Write the documents of all nodes below a group into one; return how many nodes there are below it.

    Raises UnsupportedError for a format that has no consolidated metadata.
    """
    group = open_group(location, path, "r+", storage_options=storage_options)
    try:
        return _consolidate(group)
    finally:
        if not isinstance(location, Store | Mapping):
            group.store.close()  # of a zip file, it is complete only then


def _consolidate(group: Group) -> int:
    documents = dict(_documents(group))
    if group.zarr_format == 2:
        entries = {join(below, name): document for (below, name), document in documents.items()}
        write_object(group.store, join(group.path, ".zmetadata"), _v2(entries))
        return len({below for below, _ in documents} - {""})
    key = join(group.path, "zarr.json")
    own = read_object(group.store, key) or {}
    entries = {below: document for (below, _), document in documents.items() if below}
    own["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": entries}
    write_object(group.store, key, own)
    return len(entries)


def _v2(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_consolidated_format": 1, "metadata": dict(entries)}


def _documents(group: Group) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield ((path below the group, name), document) of all nodes, the group's own included."""
    if group.zarr_format not in (2, 3):
        raise UnsupportedError(f"{group.store.url}: format {group.zarr_format} has no consolidated metadata")
    names = V2_DOCUMENTS if group.zarr_format == 2 else ("zarr.json",)
    for below in ["", *_paths(group, "")]:
        for name in names:
            document = read_object(group.store, join(join(group.path, below), name))
            if document is not None:
                yield (below, name), {k: v for k, v in document.items() if k != "consolidated_metadata"}


def _paths(group: Group, below: str) -> Iterator[str]:
    """Yield the paths of all nodes below a group, as the store has them, not as consolidated metadata say."""
    for name in detect.child_names(group.store, join(group.path, below), group.spec):
        path = join(below, name)
        kind = detect.read_kind(group.store, join(group.path, path))
        if kind is not None:
            yield path
        if kind == "group":
            yield from _paths(group, path)


def stale_entries(group: Group) -> list[str]:
    """Return what is wrong with a group's consolidated metadata, a sentence each; nothing where they are up to date or
    absent. Reads every document below.
    """
    if group.zarr_format == 2:
        found = read_object(group.store, join(group.path, ".zmetadata"))
        if found is None:
            return []
        listed = dict(found.get("metadata") or {})
        actual = {join(below, name): document for (below, name), document in _documents(group)}
    else:
        own = (read_object(group.store, join(group.path, "zarr.json")) or {}).get("consolidated_metadata")
        if not isinstance(own, Mapping):
            return []
        listed = {path.strip("/"): dict(entry) for path, entry in (own.get("metadata") or {}).items()}
        for entry in listed.values():
            entry.pop("consolidated_metadata", None)
        actual = {below: document for (below, _), document in _documents(group) if below}
    problems = [f"{key} is listed but not there" for key in sorted(set(listed) - set(actual))]
    problems += [f"{key} is there but not listed" for key in sorted(set(actual) - set(listed))]
    problems += [
        f"{key} is listed with other contents"
        for key in sorted(actual)
        if key in listed and actual[key] != listed[key]
    ]
    return problems
