"""Consolidated metadata: the documents of a whole hierarchy in one. v2 ``.zmetadata``; v3 inline
``consolidated_metadata`` of a group's ``zarr.json``, as zarr-python writes it.

They may be out of date, incomplete or broken: whoever asks the mapping and gets nothing asks the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from zarrfs.engine.formats.json_document import current_limit, document_limit, unforeseen_errors
from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.model import GroupSpec, NodeSpec
from zarrfs.errors import MetadataError
from zarrfs.logs import logger

__all__ = ["Consolidated", "documents_by_path", "inline_consolidated"]


class Consolidated(Mapping[str, NodeSpec]):
    """Nodes by path relative to a group, each parsed when asked for, so that a broken one breaks no other.

    ``load`` returns the paths and what ``parse`` needs of each; it is called once, when first needed. A
    group in it carries the part of the mapping that is below it.
    """

    def __init__(self, load: Callable[[], Mapping[str, Any]], parse: Callable[[str, Any], NodeSpec]) -> None:
        self._load = load
        self._parse = parse
        self._entries: Mapping[str, Any] | None = None
        # What is read later is held to the limit that holds now.
        self._limit = current_limit()

    def _loaded(self) -> Mapping[str, Any]:
        if self._entries is None:
            try:
                with document_limit(self._limit):
                    self._entries = self._load()
            except MetadataError as error:
                logger.warning("consolidated metadata are ignored, because they are broken: %s", error)
                self._entries = {}
        return self._entries

    def __getitem__(self, path: str) -> NodeSpec:
        """Return the node. Raises KeyError when it is not listed, MetadataError when it is broken."""
        entry = self._loaded()[path]
        with unforeseen_errors(path):
            spec = self._parse(path, entry)
        return replace(spec, consolidated=self.below(path)) if isinstance(spec, GroupSpec) else spec

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())

    def __contains__(self, path: object) -> bool:
        return path in self._loaded()

    def below(self, path: str) -> Consolidated:
        """Return the part below the group at ``path``, by path relative to it."""
        prefix = path + "/"

        def load() -> Mapping[str, Any]:
            return {
                key[len(prefix) :]: entry for key, entry in self._loaded().items() if key.startswith(prefix)
            }

        return Consolidated(load, lambda inner, entry: self._parse(prefix + inner, entry))


def inline_consolidated(
    value: Any, where: str, parse_node: Callable[[Mapping[str, Any], str], NodeSpec]
) -> Consolidated | None:
    """Return the nodes of a v3 group's ``consolidated_metadata``, or None where it has none that can be used.

    null, and an object of a kind that is not known but need not be understood, count as none.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or value.get("kind", "inline") != "inline":
        logger.warning("%s: /consolidated_metadata is of no kind that is known here, and ignored", where)
        return None
    entries = value.get("metadata")
    if not isinstance(entries, Mapping) or not all(isinstance(entry, Mapping) for entry in entries.values()):
        logger.warning("%s: /consolidated_metadata/metadata is no object of objects, and ignored", where)
        return None
    documents: Mapping[str, Any] = entries

    def parse(path: str, entry: Any) -> NodeSpec:
        return parse_node(entry, f"{where}: /consolidated_metadata/metadata/{path.replace('/', '~1')}")

    def load() -> dict[str, Any]:
        # Names in "__" are no members, v3 "Node names": listed or not, the store is asked for them.
        stripped = {path.strip("/"): entry for path, entry in documents.items()}
        return {
            path: entry
            for path, entry in stripped.items()
            if not any(name.startswith("__") for name in path.split("/"))
        }

    return Consolidated(load, parse)


def documents_by_path(document: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a ``.zmetadata`` by path and by name, for the paths that have a node.

    Raises MetadataError. Documents that stand alone (attributes without a node) are left out.
    """
    entries = expect_object(document.get("metadata"), f"{where}: /metadata")
    nodes: dict[str, dict[str, Any]] = {}
    for key, entry in entries.items():
        path, _, name = key.rpartition("/")
        nodes.setdefault(path, {})[name] = entry
    return {path: entry for path, entry in nodes.items() if ".zarray" in entry or ".zgroup" in entry}
