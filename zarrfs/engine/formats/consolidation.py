"""Writing consolidated metadata, and comparing it with the documents of the nodes. See ``consolidated.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from zarrfs.engine.formats import v2, v3
from zarrfs.engine.formats.json_document import location, read_object, write_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.model import NodeSpec
from zarrfs.engine.stores.base import Store

__all__ = ["Consolidation", "DocumentName", "V2Consolidation", "V3Consolidation"]


class DocumentName(NamedTuple):
    """A document of a node: the path of the node below the consolidating group, and the name of the document."""

    below: str
    name: str


class Consolidation(ABC):
    """How a format stores the documents of a hierarchy in one document."""

    names: ClassVar[tuple[str, ...]]
    """The names of the documents of a node."""
    contains_root: ClassVar[bool]
    """Whether the documents of the consolidating group are included."""

    @abstractmethod
    def document_key(self, path: str) -> str:
        """Return the key of the document that contains the consolidated metadata of the group at the path."""

    @abstractmethod
    def read(self, store: Store, path: str) -> dict[DocumentName, dict[str, Any]] | None:
        """Return the consolidated documents of the group at the path; None if there are none. Raises MetadataError."""

    @abstractmethod
    def write(self, store: Store, path: str, documents: Mapping[DocumentName, Mapping[str, Any]]) -> None:
        """Write the consolidated metadata of the group at the path."""

    @abstractmethod
    def update(
        self, store: Store, path: str, documents: Mapping[DocumentName, Mapping[str, Any] | None]
    ) -> None:
        """Replace entries of the consolidated metadata of the group at the path, and leave the others as they are.

        None removes an entry. Without consolidated metadata nothing is written. Raises MetadataError if they are
        invalid.
        """

    @abstractmethod
    def parse(self, name: str, document: Mapping[str, Any]) -> NodeSpec | None:
        """Return the node that a document describes, or None for a document of attributes. Raises MetadataError."""

    def key(self, document: DocumentName) -> str:
        """Return the name of a document in the consolidated metadata."""
        return join(*document)

    def is_empty(self, name: str, document: Mapping[str, Any]) -> bool:
        """Return whether a document is equivalent to a missing one."""
        return False

    def own_part(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document of a node without the consolidated metadata in it.

        zarr-python 3 writes an empty one in the documents of groups of v2, too.
        """
        return {key: value for key, value in document.items() if key != v3.CONSOLIDATED}


class V2Consolidation(Consolidation):
    """The document ``.zmetadata``."""

    names = (v2.GROUP_KEY, v2.ARRAY_KEY, v2.ATTRIBUTES_KEY)
    contains_root = True

    def document_key(self, path: str) -> str:
        return join(path, v2.CONSOLIDATED_KEY)

    def read(self, store: Store, path: str) -> dict[DocumentName, dict[str, Any]] | None:
        key = self.document_key(path)
        section = read_object(store, key)
        if section is None:
            return None
        where = f"{location(store, key)}: /metadata"
        entries = expect_object(section.get("metadata"), where).items()
        documents: dict[DocumentName, dict[str, Any]] = {}
        for name, entry in entries:
            below, _, document_name = name.rpartition("/")
            document = self.own_part(expect_object(entry, f"{where}/{name}"))
            documents[DocumentName(below, document_name)] = document
        return documents

    def write(self, store: Store, path: str, documents: Mapping[DocumentName, Mapping[str, Any]]) -> None:
        entries = {self.key(name): document for name, document in documents.items()}
        write_object(store, self.document_key(path), {"zarr_consolidated_format": 1, "metadata": entries})

    def update(
        self, store: Store, path: str, documents: Mapping[DocumentName, Mapping[str, Any] | None]
    ) -> None:
        key = self.document_key(path)
        section = read_object(store, key)
        if section is None:
            return
        entries = expect_object(section.get("metadata"), f"{location(store, key)}: /metadata")
        changes = {self.key(name): document for name, document in documents.items()}
        write_object(store, key, section | {"metadata": _replaced(entries, changes)})

    def parse(self, name: str, document: Mapping[str, Any]) -> NodeSpec | None:
        return v2.parse_array(document, {}, name, allow_pickle=True) if name == v2.ARRAY_KEY else None

    def is_empty(self, name: str, document: Mapping[str, Any]) -> bool:
        return name == v2.ATTRIBUTES_KEY and not document


class V3Consolidation(Consolidation):
    """The member ``consolidated_metadata`` of the group's ``zarr.json``, as zarr-python writes it."""

    names = (v3.KEY,)
    contains_root = False

    def document_key(self, path: str) -> str:
        return join(path, v3.KEY)

    def read(self, store: Store, path: str) -> dict[DocumentName, dict[str, Any]] | None:
        key = self.document_key(path)
        section = (read_object(store, key) or {}).get(v3.CONSOLIDATED)
        if not isinstance(section, Mapping):
            return None
        where = f"{location(store, key)}: /metadata"
        return {
            DocumentName(below.strip("/"), v3.KEY): self.own_part(expect_object(entry, f"{where}/{below}"))
            for below, entry in expect_object(section.get("metadata"), where).items()
        }

    def write(self, store: Store, path: str, documents: Mapping[DocumentName, Mapping[str, Any]]) -> None:
        key = self.document_key(path)
        document = read_object(store, key) or {}
        entries = {self.key(name): document for name, document in documents.items()}
        document[v3.CONSOLIDATED] = {"kind": "inline", "must_understand": False, "metadata": entries}
        write_object(store, key, document)

    def update(
        self, store: Store, path: str, documents: Mapping[DocumentName, Mapping[str, Any] | None]
    ) -> None:
        key = self.document_key(path)
        document = read_object(store, key) or {}
        section = document.get(v3.CONSOLIDATED)
        if not isinstance(section, Mapping):
            return
        entries = expect_object(section.get("metadata"), f"{location(store, key)}: /metadata")
        changes = {self.key(name): entry for name, entry in documents.items()}
        document[v3.CONSOLIDATED] = {**section, "metadata": _replaced(entries, changes)}
        write_object(store, key, document)

    def parse(self, name: str, document: Mapping[str, Any]) -> NodeSpec | None:
        return v3.parse_node(document, name)

    def key(self, document: DocumentName) -> str:
        return document.below


def _replaced(entries: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return entries with changes. The members of an entry that consolidated metadata add to a document are kept."""
    replaced = dict(entries)
    for name, document in changes.items():
        old = replaced.pop(name, None)
        if document is not None:
            added = old.get(v3.CONSOLIDATED) if isinstance(old, Mapping) else None
            replaced[name] = {**document} if added is None else {**document, v3.CONSOLIDATED: added}
    return replaced
