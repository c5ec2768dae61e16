"""The Zarr v3.0 core protocol of the editor's draft of 19 June 2019.

A bootstrap document ``zarr.json`` is at the root, array and group documents are below ``meta/root``, and chunks are
below ``data``. Groups are implied by the nodes below them. In later drafts, which zarr-python 2 wrote experimentally,
document keys have a suffix (``metadata_key_suffix``) and chunk keys have the prefix ``c`` below ``data/root``. Such
hierarchies are read, and new nodes in them use the same keys. Array documents are in ``draft2019_arrays.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding, Separator, V2Keys
from zarrfs.engine.formats.base import Format, NodeKeys, NodeKind
from zarrfs.engine.formats.dimension_names import attributes_with_names, dimension_names_from_attributes
from zarrfs.engine.formats.draft2019_arrays import DraftKeys, array_document, check_extensions, parse_array
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import DocumentTooLargeError, location, read_object, write_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.json_checks import expect_object, expect_string
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Listing, Store
from zarrfs.errors import KeyNameError, MetadataError, UnsupportedError
from zarrfs.text import MAX_VALUE, safe_text

__all__ = [
    "NAME",
    "Bootstrap",
    "Draft2019Format",
    "bootstrap_document",
    "copy_bootstrap",
    "is_bootstrap",
    "parse_bootstrap",
    "parse_group",
]

NAME = "draft2019"
PROTOCOL = "https://purl.org/zarr/spec/protocol/core/3.0"
JSON_TYPE = "application/json"
KEY = "zarr.json"

MAX_BOOTSTRAP = 64 << 10
"""The maximum size of a bootstrap document in bytes. A larger ``zarr.json`` is a Zarr v3.1 document."""

_VERSION = re.compile(r".*/(\d+)\.\d+/?", re.ASCII)
_NODE_NAME = re.compile("[A-Za-z0-9._-]{1,255}", re.ASCII)


@dataclass(frozen=True)
class Bootstrap:
    """The content of the bootstrap document: the suffix of document keys, which is empty in the draft of 2019."""

    suffix: str = ""

    def key(self, path: str, kind: NodeKind) -> str:
        """Return the key of a node's document."""
        return f"{join('meta/root', path) if path else 'meta/root'}.{kind}{self.suffix}"

    def chunk_key_encoding(self, encoding: ChunkKeyEncoding) -> ChunkKeyEncoding:
        """Return the chunk key encoding of this hierarchy with the separator of ``encoding``."""
        separator: Separator = "/" if encoding.configuration().get("separator") == "/" else "."
        return DraftKeys(separator) if self.suffix else V2Keys(separator)

    def chunk_prefix(self, path: str) -> str:
        """Return the prefix of the chunk keys of the array at the path."""
        return "/".join(part for part in ("data", "root" if self.suffix else "", path) if part) + "/"


BOOTSTRAP_DOCUMENT = {"zarr_format": PROTOCOL, "metadata_encoding": JSON_TYPE, "extensions": []}


def is_bootstrap(document: Mapping[str, Any]) -> bool:
    """Return whether a ``zarr.json`` is a bootstrap document, that is, its ``zarr_format`` is a URI."""
    version = document.get("zarr_format")
    return isinstance(version, str) and "://" in version


def parse_bootstrap(document: Mapping[str, Any], where: str) -> Bootstrap:
    """Return the parsed bootstrap document.

    Raises MetadataError if it is invalid, and UnsupportedError for another major version, another encoding, and
    extensions that must be understood.
    """
    version = expect_string(document.get("zarr_format"), f"{where}: /zarr_format")
    match = _VERSION.fullmatch(version)
    if match is None or match[1] != "3":
        raise UnsupportedError(
            f'{where}: /zarr_format: expected "{PROTOCOL}", found "{safe_text(version, MAX_VALUE)}"'
        )
    encoding = expect_string(document.get("metadata_encoding"), f"{where}: /metadata_encoding")
    if encoding not in (JSON_TYPE, PROTOCOL):
        raise UnsupportedError(
            f'{where}: /metadata_encoding: expected "{JSON_TYPE}", found "{safe_text(encoding, MAX_VALUE)}"'
        )
    suffix = expect_string(document.get("metadata_key_suffix", ""), f"{where}: /metadata_key_suffix")
    if suffix not in ("", ".json"):
        raise UnsupportedError(
            f'{where}: /metadata_key_suffix: expected ".json" or nothing, found "{safe_text(suffix, MAX_VALUE)}"'
        )
    check_extensions(document.get("extensions", []), f"{where}: /extensions")
    return Bootstrap(suffix)


def parse_group(document: Mapping[str, Any], where: str) -> GroupSpec:
    """Return the group of a ``.group`` document. Raises MetadataError."""
    check_extensions(document.get("extensions", []), f"{where}: /extensions")
    attributes = expect_object(document.get("attributes", {}), f"{where}: /attributes")
    return GroupSpec(NAME, dict(attributes), None, dict(document))


def group_document(spec: GroupSpec) -> dict[str, Any]:
    """Return the ``.group`` document of a group."""
    return {"extensions": spec.document.get("extensions", []), "attributes": dict(spec.attributes)}


def bootstrap_document(store: Store) -> dict[str, Any] | None:
    """Return the bootstrap document of a store, or None if it has none. Raises MetadataError for invalid JSON."""
    try:
        document = read_object(store, KEY, MAX_BOOTSTRAP)
    except DocumentTooLargeError:
        return None
    return document if document is not None and is_bootstrap(document) else None


def copy_bootstrap(source: Store, target: Store) -> None:
    """Write the bootstrap document of ``source``, if it has one, to ``target``."""
    document = bootstrap_document(source)
    if document is not None:
        write_object(target, KEY, document)


class Draft2019Format(Format):
    """A hierarchy of the draft. Its root is the root of the store."""

    features = FormatFeatures(
        title="Zarr v3, draft of 2019",
        default_separator=".",
        byte_order=True,
        root_prefixes=("meta", "data"),
    )

    def _bootstrap(self, store: Store) -> Bootstrap | None:
        document = bootstrap_document(store)
        return None if document is None else parse_bootstrap(document, location(store, KEY))

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        bootstrap = self._bootstrap(store)
        if bootstrap is None:
            return None
        key = bootstrap.key(path, "array")
        document = read_object(store, key)
        if document is not None:
            return parse_array(document, location(store, key), is_later=bool(bootstrap.suffix))
        key = bootstrap.key(path, "group")
        document = read_object(store, key)
        if document is not None:
            return parse_group(document, location(store, key))
        return GroupSpec(NAME) if self._is_implied(store, path) else None

    def _is_implied(self, store: Store, path: str) -> bool:
        """Return whether the path has nodes below it. The root is always a group."""
        if not path:
            return True
        if not store.listable:
            return False
        listing = store.list_dir(join("meta/root", path))
        return bool(listing.keys or listing.prefixes)

    def kind(self, store: Store, path: str) -> NodeKind | None:
        bootstrap = self._bootstrap(store)
        if bootstrap is None:
            return None
        if store.exists(bootstrap.key(path, "array")):
            return "array"
        is_group = store.exists(bootstrap.key(path, "group")) or self._is_implied(store, path)
        return "group" if is_group else None

    def check(self, spec: NodeSpec) -> None:
        if isinstance(spec, ArraySpec):
            array_document(spec)

    def with_prescribed_encoding(self, spec: ArraySpec) -> ArraySpec:
        return replace(spec, chunk_key_encoding=Bootstrap().chunk_key_encoding(spec.chunk_key_encoding))

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        bootstrap = self._bootstrap(store)
        if bootstrap is None:
            if store.exists(KEY):
                raise MetadataError(
                    f"{location(store, KEY)} belongs to another format; a draft2019 hierarchy must be at the root "
                    "of its own store"
                )
            write_object(store, KEY, BOOTSTRAP_DOCUMENT)
            bootstrap = Bootstrap()
        self.check_path(store, path)
        if isinstance(spec, ArraySpec):
            spec = replace(spec, chunk_key_encoding=bootstrap.chunk_key_encoding(spec.chunk_key_encoding))
            document = array_document(spec, is_later=bool(bootstrap.suffix))
            written = write_object(store, bootstrap.key(path, "array"), document)
        else:
            written = write_object(store, bootstrap.key(path, "group"), group_document(spec))
        return replace(spec, document=written)

    def check_path(self, store: Store, path: str) -> None:
        """Check the characters and length of each name, and that no sibling has the same name in another case."""
        names = path.split("/") if path else []
        for name in names:
            if not _NODE_NAME.fullmatch(name) or not name.strip("."):
                raise KeyNameError(
                    f"{name!r} is not a valid node name in this draft: expected 1 to 255 characters of a-z, A-Z, 0-9, "
                    "'-', '_' and '.', not all periods"
                )
        if not store.listable:
            return
        for depth, name in enumerate(names):
            for sibling in self.child_names(store, "/".join(names[:depth]), GroupSpec(NAME)):
                if sibling != name and sibling.lower() == name.lower():
                    raise KeyNameError(
                        f"{path!r}: a node named {sibling!r} already exists, and names in this draft are "
                        "case-insensitive"
                    )

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        bootstrap = self._bootstrap(store) or Bootstrap()
        key = bootstrap.key(path, "array" if isinstance(spec, ArraySpec) else "group")
        document = read_object(store, key) or spec.document or {"extensions": []}
        written = write_object(store, key, {**document, "attributes": attributes_with_names(spec)})
        attributes = written["attributes"]
        if isinstance(spec, ArraySpec):
            names = dimension_names_from_attributes(attributes, len(spec.shape))
            return replace(spec, document=written, attributes=attributes, dimension_names=names)
        return replace(spec, document=written, attributes=attributes)

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return ((self._bootstrap(store) or Bootstrap()).key(path, kind),)

    def node_keys(self, store: Store, path: str) -> NodeKeys:
        bootstrap = self._bootstrap(store)
        if bootstrap is None or not path:
            return super().node_keys(store, path)
        keys = (bootstrap.key(path, "array"), bootstrap.key(path, "group"))
        return NodeKeys(keys, (join("meta/root", path), bootstrap.chunk_prefix(path).rstrip("/")))

    def child_names(
        self, store: Store, path: str, spec: GroupSpec, listing: Listing | None = None
    ) -> list[str]:
        # The nodes are not where their paths are.
        bootstrap = self._bootstrap(store) or Bootstrap()
        listing = store.list_dir(join("meta/root", path) if path else "meta/root")
        names = set(listing.prefixes)
        for kind in ("array", "group"):
            suffix = f".{kind}{bootstrap.suffix}"
            names |= {key[: -len(suffix)] for key in listing.keys if key.endswith(suffix) and key != suffix}
        return sorted(names)

    def chunk_prefix(self, path: str, spec: ArraySpec) -> str:
        is_later = isinstance(spec.chunk_key_encoding, DraftKeys)
        return Bootstrap(".json" if is_later else "").chunk_prefix(path)
