"""Consolidated metadata: the documents of a hierarchy in one document.

In v2 it is ``.zmetadata``; in v3 it is ``consolidated_metadata`` in the ``zarr.json`` of a group, as zarr-python
writes it. It may be out of date, incomplete or invalid. If it does not contain a node, the caller reads the store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from zarrfs.engine.codecs import registry
from zarrfs.engine.formats.json_document import (
    convert_unexpected_errors,
    current_limit,
    document_limit,
)
from zarrfs.engine.formats.repeated_objects import copied
from zarrfs.engine.json_checks import describe_json, expect_object
from zarrfs.engine.model import ArraySpec, GroupSpec, ListedNodes, NodeSpec
from zarrfs.errors import MetadataError
from zarrfs.logs import logger

__all__ = ["Consolidated", "documents_by_path", "inline_consolidated"]


class Consolidated(ListedNodes):
    """The nodes of consolidated metadata by path relative to its group.

    Each node is parsed when it is accessed, so an invalid node does not affect the others. ``load`` returns a mapping
    from paths to the values that ``parse`` takes; it is called once, at the first access. A group in the mapping has
    the part of the mapping below it as its own consolidated metadata. ``match`` returns the template of the array that
    a value describes, or None; see ``template``. Paths for which ``is_reserved`` is true are found but not listed, like
    the nodes of a store with such names.
    """

    def __init__(
        self,
        load: Callable[[], Mapping[str, Any]],
        parse: Callable[[str, Any], NodeSpec],
        match: Callable[[Any], ArraySpec | None] = lambda entry: None,
        is_reserved: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._load = load
        self._parse = parse
        self._match = match
        self._is_reserved = is_reserved
        self._entries: Mapping[str, Any] | None = None
        self._sorted: list[str] | None = None
        # By the identity of the entry, because entries with equal texts are one object.
        self._matched: dict[tuple[int, int], ArraySpec] = {}
        # The limit that applies at construction also applies to the later read.
        self._limit = current_limit()

    def _loaded(self) -> Mapping[str, Any]:
        if self._entries is None:
            try:
                with document_limit(self._limit):
                    self._entries = self._load()
            except MetadataError as error:
                logger.warning("consolidated metadata is invalid and is ignored: %s", error)
                self._entries = {}
        return self._entries

    def __getitem__(self, path: str) -> NodeSpec:
        """Return the node. Raises KeyError if it is not listed, MetadataError if it is invalid."""
        # Entries with equal texts are one object.
        entry = copied(self._loaded()[path])
        with convert_unexpected_errors(path):
            spec = self._parse(path, entry)
        return replace(spec, consolidated=self.below(path)) if isinstance(spec, GroupSpec) else spec

    def template(self, path: str) -> ArraySpec | None:
        entry = self._loaded().get(path)
        if entry is None:
            return None
        registrations = registry.registrations()
        found = self._matched.get((id(entry), registrations))
        if found is None:
            found = self._match(entry)
            if found is not None:
                self._matched[id(entry), registrations] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return (path for path in self._loaded() if not self._is_reserved(path))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, path: object) -> bool:
        return path in self._loaded()

    def below(self, path: str) -> Consolidated:
        """Return the nodes below the group at ``path``, by path relative to that group."""
        prefix = path + "/"

        def load() -> Mapping[str, Any]:
            # Searching all keys for each group would take quadratic time.
            entries = self._loaded()
            if self._sorted is None:
                self._sorted = sorted(entries)
            first = bisect_left(self._sorted, prefix)
            end = bisect_left(self._sorted, path + chr(ord("/") + 1))
            return {key[len(prefix) :]: entries[key] for key in self._sorted[first:end]}

        return Consolidated(
            load, lambda inner, entry: self._parse(prefix + inner, entry), self._match, self._is_reserved
        )


def inline_consolidated(
    value: Any,
    where: str,
    parse_node: Callable[[Mapping[str, Any], str], NodeSpec],
    match: Callable[[Mapping[str, Any]], ArraySpec | None],
) -> Consolidated | None:
    """Return the nodes of a v3 group's ``consolidated_metadata``, or None if it is missing or cannot be used.

    An object of an unsupported ``kind`` is ignored with a warning, because consolidated metadata is optional.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or value.get("kind", "inline") != "inline":
        logger.warning(
            '%s: /consolidated_metadata is ignored: expected an object of the kind "inline", found %s',
            *(where, describe_json(value.get("kind") if isinstance(value, Mapping) else value)),
        )
        return None
    entries = value.get("metadata")
    if not isinstance(entries, Mapping) or not all(
        type(entry) is dict or isinstance(entry, Mapping) for entry in entries.values()
    ):
        logger.warning(
            "%s: /consolidated_metadata/metadata is not an object of objects and is ignored", where
        )
        return None
    documents: Mapping[str, Any] = entries

    def parse(path: str, entry: Any) -> NodeSpec:
        return parse_node(entry, f"{where}: /consolidated_metadata/metadata/{path.replace('/', '~1')}")

    def load() -> dict[str, Any]:
        return {path.strip("/"): entry for path, entry in documents.items()}

    def is_reserved(path: str) -> bool:
        """Return whether a name begins with ``__`` (v3 "Node names")."""
        return "__" in path and any(name.startswith("__") for name in path.split("/"))

    return Consolidated(load, parse, match, is_reserved)


def documents_by_path(document: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a ``.zmetadata`` by node path and document name.

    Paths with attributes only are left out. Raises MetadataError.
    """
    entries = expect_object(document.get("metadata"), f"{where}: /metadata")
    nodes: dict[str, dict[str, Any]] = {}
    for key, entry in entries.items():
        path, _, name = key.rpartition("/")
        nodes.setdefault(path, {})[name] = entry
    return {path: entry for path, entry in nodes.items() if ".zarray" in entry or ".zgroup" in entry}
