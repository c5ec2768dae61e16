"""Lookup of paths of the mount: directories and virtual files. This module is independent of FUSE.

A group is a directory. An array ``img`` is presented as the files ``img.npy``, ``img.raw`` and ``img.json`` in the
directory of its parent group. Each directory contains ``.group.json``. A member that cannot be opened is presented as
``NAME.error.txt``, which contains the error message; the other members are not affected. If a group and a view have
the same name, the name refers to the group. A view may also be a directory (``img.planes/``).

Metadata of nodes is cached in an LRU cache whose size is bounded in bytes.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats.api import read_node
from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group, make_node
from zarrfs.engine.stores.base import Usage
from zarrfs.errors import KeyNameError, MetadataError, StoreError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.content import BytesSegment, VirtualFileContent
from zarrfs.mount.held import json_memory_nbytes
from zarrfs.mount.views.base import fixed_size_refusal
from zarrfs.mount.views.json import JsonView, group_json
from zarrfs.mount.views.raw import RawView
from zarrfs.mount.views.registry import (
    DirectoryView,
    PresentedArray,
    View,
    directory_view_of_name,
    listed_views,
    make_content,
    refusal,
    views_of_name,
)
from zarrfs.mount.virtual_directories import VirtualDirectory
from zarrfs.ngff.geometry import Ancestor, Geometry, array_geometry
from zarrfs.ngff.members import member_names
from zarrfs.ngff.model import Ngff
from zarrfs.ngff.parse import parse

__all__ = ["MAX_CACHED_ATTRIBUTES_NBYTES", "MAX_METADATA_NBYTES", "Directory", "Entry", "Tree", "VirtualFile"]

GROUP_DOCUMENT = ".group.json"
ERROR_SUFFIX = ".error.txt"

REVALIDATION_SECONDS = 1.0
"""Cached metadata of a node is used for this time without a request to the store."""

USAGE_REFRESH_FACTOR = 20.0
"""The stored size of an array is determined again after this multiple of the duration of the last determination."""

MAX_METADATA_NBYTES = 128 << 20
"""The default memory limit of the metadata cache. It holds metadata and the in-memory content of virtual files."""

MAX_CACHED_ATTRIBUTES_NBYTES = 2 << 20
"""A node whose documents occupy more bytes of memory than this is cached without its user attributes. They are read
again when the content of a file depends on them. Their text exceeds the maximum size of an extended attribute.
"""

NODE_NBYTES = 16 << 10
"""The memory that a node with small documents occupies, without its JSON values."""

RECORD_NBYTES = 512
"""The memory that a record without a node, or one more file of a record, occupies."""

MAX_ANCESTORS = 3
"""The metadata of an image is looked up in at most this many of the groups that contain an array. A level of a
multiscale image is usually a member of the image, or of a group of the level.
"""

MISSING_STAMPS = (None,) * len(METADATA_NAMES)

MAX_NAME_NBYTES = 255
MAX_REPORTED_NAMES = 10_000


@dataclass(frozen=True)
class Directory:
    """A group, the root, or a directory that presents an array.

    Attributes:
        node: the group; the root may be an array.
        modified: the time of the last change in seconds since the epoch, or None if it is unknown.
        has_attributes: whether ``node`` has its user attributes. Large attributes are not cached.
        files: the files of a directory that presents an array, else None.
    """

    node: Group | Array
    modified: float | None = None
    has_attributes: bool = True
    files: VirtualDirectory | None = None


@dataclass(frozen=True)
class VirtualFile:
    """A file whose bytes are computed when they are read.

    Attributes:
        content: the bytes of the file.
        stored_nbytes: the number of bytes that count as the size of the file on disk. The stored size of an array
            counts for one of its files, the .raw file if there is one; the others count what they contain in memory.
        modified: the time of the last change of its data in seconds since the epoch, or None if it is unknown.
        node: the array or group that the file presents, or None if the node could not be opened.
        has_attributes: whether ``node`` has its user attributes. Large attributes are not cached.
    """

    content: VirtualFileContent
    stored_nbytes: int
    modified: float | None
    node: Array | Group | None
    has_attributes: bool = True


Entry = Directory | VirtualFile


@dataclass(frozen=True)
class _BrokenNode:
    """A node that cannot be opened, with the reason. ``errno`` is None if its metadata is invalid.

    The exception itself is not stored because its traceback would keep the document in memory.
    """

    reason: str
    errno: int | None = None

    def error(self) -> StoreError:
        return StoreError(self.reason, self.errno)


_Node = Array | Group | _BrokenNode | None


@dataclass(frozen=True)
class _CachedContent:
    """The content of a virtual file, and the geometry that it depends on, or None if it does not depend on it."""

    content: VirtualFileContent
    geometry: Geometry | None = None


@dataclass(frozen=True)
class _CachedDirectory:
    """The files of a directory that presents an array, and the geometry that they depend on."""

    files: VirtualDirectory
    geometry: Geometry


@dataclass
class _NodeRecord:
    """The cached state of the node at a path.

    Attributes:
        path: the path relative to the root of the mount.
        node: the node, the reason why it cannot be opened, or None if there is no node.
        validated: the time of the last comparison with the store.
        nbytes: the memory that the record occupies.
        stamps: the stamps of its documents, taken before the documents were read. None if the store has no stamps.
        has_attributes: whether ``node`` has its user attributes.
        contents: the contents of its virtual files by suffix.
        directories: the directories that present the array by suffix.
        geometry: the geometry of an array, with the groups by whose metadata it was determined.
        ngff: the OME-NGFF metadata of a group, if they have been parsed and are cached.
        usage: the stored size, if it has been determined.
        usage_expires: the time at which ``usage`` expires.
    """

    path: str
    node: _Node
    validated: float
    nbytes: int
    stamps: Hashable | None = None
    has_attributes: bool = True
    contents: dict[str, _CachedContent] = field(default_factory=dict)
    directories: dict[str, _CachedDirectory] = field(default_factory=dict)
    geometry: tuple[tuple[Group, ...], Geometry] | None = None
    ngff: Ngff | None = None
    usage: Usage | None = None
    usage_expires: float = 0.0


class Tree:
    """The directories and files that present a node and its members. All methods are thread-safe.

    ``root_name`` is the name of the root if it is an array without a name. ``views`` are the views that listings
    contain; see ``listed_views``. ``immutable`` disables revalidation.
    ``max_metadata`` is the memory limit of the metadata cache in bytes.
    """

    def __init__(
        self,
        root: Array | Group,
        root_name: str = "array",
        *,
        views: Collection[str] | None = None,
        immutable: bool = False,
        max_metadata: int = MAX_METADATA_NBYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root_name = root.basename or root_name
        self._listed_views = listed_views(views)
        self._immutable = immutable
        self._clock = clock
        self._cache = ChunkCache(max_metadata)
        self._root = self._make_record("", root)
        self._reported_names: set[str] = set()

    @property
    def root(self) -> Array | Group:
        """The node that the mount presents. It lacks its user attributes if they are too large to be cached."""
        assert isinstance(self._root.node, Array | Group)
        return self._root.node

    @property
    def cached_nbytes(self) -> int:
        """The number of bytes that the metadata cache occupies."""
        return self._cache.nbytes

    def invalidate(self) -> None:
        """Forget all cached metadata, because the mount itself changed the store."""
        root = self.root
        root.refresh()
        self._root = self._make_record("", root)
        self._cache = ChunkCache(self._cache.capacity)

    def array_names(self, path: str) -> list[str]:
        """Return the names of the listed files of the array at a path relative to the root."""
        record = self._get_record(path)
        array = record.node
        if not isinstance(array, Array):
            return []
        return self._view_names(record, array, path.rpartition("/")[2] or self._root_name)

    # -- nodes -------------------------------------------------------------------------------------------------

    def _get_record(self, path: str) -> _NodeRecord:
        """Return the record of a path relative to the root. It is revalidated after ``REVALIDATION_SECONDS``."""
        if not path:
            return self._root
        now = self._clock()
        record: _NodeRecord | None = self._cache.get(path, None)
        if record is not None and (self._immutable or now - record.validated < REVALIDATION_SECONDS):
            return record
        stamps = self._stamps(path)
        unchanged = record is not None and stamps is not None and record.stamps == stamps
        if record is not None and unchanged and not isinstance(record.node, _BrokenNode):
            record.validated = now
            return record
        reopened = self._make_record(path, self._open(path), stamps)
        if record is not None and _equivalent(record, reopened):
            # The chunk cache holds chunks of the previous node object.
            record.validated, record.stamps = now, stamps
            return record
        self._cache.put(path, None, reopened, reopened.nbytes)
        return reopened

    def _stamps(self, path: str) -> Hashable | None:
        """Return a value that changes if a metadata document at the path changes, or None if it is not available.

        High-latency stores are excluded: there a stamp costs as much as reading the document.
        """
        store = self.root.store
        if store.concurrency > 1:
            return None
        prefix = "/".join(part for part in (self.root.path, path) if part)
        try:
            stamps = tuple(store.stamp(f"{prefix}/{name}") for name in METADATA_NAMES)
        except Exception:  # opening the node reports the error
            return None
        return None if stamps == MISSING_STAMPS else stamps

    def _open(self, path: str) -> _Node:
        root = self.root
        if isinstance(root, Array):
            return None
        try:
            node: Array | Group | None = root.get(path)
        except KeyNameError:
            return None
        except MetadataError as error:
            return _BrokenNode(describe_error(error))
        except OSError as error:
            denied = error.errno in (errno.EACCES, errno.EPERM)
            return _BrokenNode(describe_error(error), errno.EACCES if denied else errno.EIO)
        except MemoryError:
            return _BrokenNode("there is not enough memory to read its metadata", errno.ENOMEM)
        except Exception as error:
            # An error in one member must not make the other members inaccessible.
            if not isinstance(error, ZarrError):
                logger.exception("%s: unexpected error while opening the node", path)
            return _BrokenNode(describe_error(error), errno.EIO)
        return node

    def _make_record(self, path: str, node: _Node, stamps: Hashable | None = None) -> _NodeRecord:
        """Return a record of a node. Large documents and user attributes are not retained."""
        now = self._clock()
        if node is None:
            return _NodeRecord(path, None, now, RECORD_NBYTES, stamps)
        if isinstance(node, _BrokenNode):
            return _NodeRecord(path, node, now, RECORD_NBYTES + 4 * len(node.reason), stamps)
        spec: ArraySpec | GroupSpec = node.spec
        document = {key: value for key, value in spec.document.items() if key != "attributes"}
        document_nbytes = json_memory_nbytes(document, self._cache.capacity)
        nbytes = document_nbytes + json_memory_nbytes(spec.attributes, MAX_CACHED_ATTRIBUTES_NBYTES)
        if nbytes <= MAX_CACHED_ATTRIBUTES_NBYTES:
            return _NodeRecord(path, node, now, NODE_NBYTES + nbytes, stamps)
        reduced: ArraySpec | GroupSpec
        if isinstance(spec, ArraySpec):
            # The specification still contains the parsed values, such as a long list of chunk lengths.
            reduced, nbytes = replace(spec, document={}, attributes={}), document_nbytes
        else:
            consolidated = spec.consolidated if not path else None
            reduced, nbytes = replace(spec, document={}, attributes={}, consolidated=consolidated), 0
        reduced_node = make_node(node.store, node.path, reduced, node._cache, True, node.access)
        return _NodeRecord(path, reduced_node, now, NODE_NBYTES + nbytes, stamps, has_attributes=False)

    def _node_with_attributes(self, record: _NodeRecord) -> Array | Group:
        """Return the node with its user attributes. They are read from the store if they are not cached."""
        node = record.node
        assert isinstance(node, Array | Group)
        if record.has_attributes:
            return node
        spec = read_node(node.store, node.path, **node.access.reading)
        if spec is None:
            raise StoreError(f"{node.store.url}: {node.name} has been deleted", errno.ENOENT)
        return make_node(node.store, node.path, spec, node._cache, True, node.access)

    # -- geometry ----------------------------------------------------------------------------------------------

    def _present(self, record: _NodeRecord, array: Array, stem: str) -> PresentedArray:
        return PresentedArray(array, stem, lambda: self._geometry(record))

    def _geometry(self, record: _NodeRecord) -> Geometry:
        """Return the geometry of an array by its metadata and those of the groups that contain it."""
        records = self._ancestors(record.path)
        groups = tuple(group for _, group in records)
        cached = record.geometry
        # Groups at the same path are equal whatever their attributes are; a changed group is another object.
        if cached is not None and [*map(id, cached[0])] == [*map(id, groups)]:
            return cached[1]
        ancestors = []
        for ancestor, _ in records:
            attributes, ngff = self._image_metadata(ancestor)
            ancestors.append(Ancestor(record.path.removeprefix(ancestor.path).strip("/"), attributes, ngff))
        spec = self._node_with_attributes(record).spec
        assert isinstance(spec, ArraySpec)
        geometry = array_geometry(spec, ancestors)
        record.geometry = groups, geometry
        return geometry

    def _ancestors(self, path: str) -> list[tuple[_NodeRecord, Group]]:
        """Return the groups that contain the node at a path, the nearest one first, at most ``MAX_ANCESTORS``.

        A group without permission to read its metadata is omitted. Raises StoreError if one cannot be read for another
        reason.
        """
        ancestors: list[tuple[_NodeRecord, Group]] = []
        while path and len(ancestors) < MAX_ANCESTORS:
            path = path.rpartition("/")[0]
            record = self._get_record(path)
            if isinstance(record.node, _BrokenNode) and record.node.errno not in (None, errno.EACCES):
                raise record.node.error()
            if isinstance(record.node, Group):
                ancestors.append((record, record.node))
        return ancestors

    def _image_metadata(self, record: _NodeRecord) -> tuple[Mapping[str, Any], Ngff]:
        """Return the attributes of a group and the OME-NGFF metadata in them. Raises StoreError."""
        attributes = self._node_with_attributes(record).spec.attributes
        if record.ngff is not None:
            return attributes, record.ngff
        ngff = parse(attributes)
        if record.has_attributes:
            if ngff:
                self._grow(record, json_memory_nbytes(attributes, MAX_CACHED_ATTRIBUTES_NBYTES))
            record.ngff = ngff
        return attributes, ngff

    # -- sizes -------------------------------------------------------------------------------------------------

    def _usage(self, record: _NodeRecord) -> Usage:
        """Return the stored size of the node. The result is cached for a time that grows with its computation time."""
        now = self._clock()
        if record.usage is not None and (self._immutable or now < record.usage_expires):
            return record.usage
        node = record.node
        nbytes = node.nbytes if isinstance(node, Array) else 0
        if not isinstance(node, Array) or not node.store.listable or node.store.concurrency > 1:
            # Listing all keys of a high-latency store is too expensive for getattr.
            record.usage, record.usage_expires = Usage(0, nbytes, None), float("inf")
            return record.usage
        try:
            record.usage = node.usage()
        except Exception as error:
            # The array may still be readable; only its stored size is unknown.
            if record.usage is None:
                logger.warning(
                    "%s: its stored size cannot be determined: %s", node.name, describe_error(error)
                )
            record.usage = Usage(0, nbytes, None)
        elapsed = self._clock() - now
        record.usage_expires = now + elapsed + max(REVALIDATION_SECONDS, USAGE_REFRESH_FACTOR * elapsed)
        return record.usage

    # -- lookup ------------------------------------------------------------------------------------------------

    def lookup(self, path: str) -> Entry | None:
        """Return the entry at a path of the mount (``/a/b.npy``), or None if there is no entry.

        Raises StoreError, with an error number, if the store cannot be read.
        """
        normalized = path.strip("/")
        if not normalized:
            return Directory(self.root, has_attributes=self._root.has_attributes)
        parent, _, name = normalized.rpartition("/")
        if isinstance(self.root, Array):
            return self._member_view("", name, None) if not parent else self._file_in_view(parent, name)
        parent_record = self._get_record(parent)
        if isinstance(parent_record.node, _BrokenNode) and parent_record.node.errno is not None:
            raise parent_record.node.error()
        if not isinstance(parent_record.node, Group):
            return self._file_in_view(parent, name)
        if name == GROUP_DOCUMENT:
            return self._group_document(parent_record)
        record = self._get_record(normalized)
        if isinstance(record.node, Group):
            return Directory(record.node, has_attributes=record.has_attributes)
        if name.endswith(ERROR_SUFFIX):
            member = self._get_record(normalized.removesuffix(ERROR_SUFFIX)).node
            if isinstance(member, _BrokenNode):
                text = f"{member.reason}\n".encode()
                return VirtualFile(VirtualFileContent([BytesSegment(text)]), len(text), None, None)
        return self._member_view(parent, name, record.node)

    def _group_document(self, record: _NodeRecord) -> VirtualFile:
        assert isinstance(record.node, Group)
        cached = record.contents.get(GROUP_DOCUMENT)
        if cached is None:
            group = self._node_with_attributes(record)
            assert isinstance(group, Group)
            cached = _CachedContent(VirtualFileContent([BytesSegment(group_json(group))]))
            self._cache_content(record, GROUP_DOCUMENT, cached)
        content = cached.content
        return VirtualFile(content, content.size, None, record.node, record.has_attributes)

    def _member_view(self, parent: str, name: str, node: _Node) -> Entry | None:
        """Return the entry ``name`` if it is a view of a member. ``node`` is the node whose name is ``name``."""
        candidates = [node]
        for view, stem in views_of_name(name):
            record = self._member_record(parent, stem)
            if record is None:
                continue
            file = self._view_file(record, stem, view)
            if file is not None:
                return file
            candidates.append(record.node)
        found = directory_view_of_name(name)
        if found is not None:
            record = self._member_record(parent, found[1])
            if record is not None:
                directory = self._view_directory(record, found[1], found[0])
                if directory is not None:
                    return directory
                candidates.append(record.node)
        for candidate in candidates:
            # The file may exist, but the store cannot be read.
            if isinstance(candidate, _BrokenNode) and candidate.errno is not None:
                raise candidate.error()
        return None

    def _member_record(self, parent: str, stem: str) -> _NodeRecord | None:
        """Return the record of a member of a group, or of the root if that is an array with this name."""
        if isinstance(self.root, Array):
            return self._root if stem == self._root_name else None
        return self._get_record(f"{parent}/{stem}" if parent else stem)

    def _view_directory(self, record: _NodeRecord, stem: str, view: DirectoryView) -> Directory | None:
        """Return the directory in which a view presents an array named ``stem``, or None if it cannot."""
        array = record.node
        if not isinstance(array, Array):
            return None
        cached = record.directories.get(view.suffix)
        if cached is None or cached.geometry != self._geometry(record):
            presented = self._present(record, array, stem)
            if refusal(view, presented) is not None:
                return None
            cached = _CachedDirectory(view.directory(presented), presented.geometry)
            if view.suffix not in record.directories:
                self._grow(record, RECORD_NBYTES)
            record.directories[view.suffix] = cached
        return Directory(array, self._usage(record).modified, record.has_attributes, cached.files)

    def _file_in_view(self, parent: str, name: str) -> VirtualFile | None:
        """Return the file ``name`` of a directory that presents an array, or None if there is none."""
        if directory_view_of_name(parent.rpartition("/")[2]) is None:
            return None
        entry = self.lookup(parent)
        if not isinstance(entry, Directory) or entry.files is None:
            return None
        content = entry.files.find(name)
        if content is None:
            return None
        return VirtualFile(content, content.memory_nbytes, entry.modified, entry.node, entry.has_attributes)

    def _view_file(self, record: _NodeRecord, stem: str, view: View) -> VirtualFile | None:
        """Return the file in which a view presents an array named ``stem``, or None if it cannot."""
        array = record.node
        if not isinstance(array, Array):
            return None
        content = self._view_content(record, array, view, stem)
        if content is None:
            return None
        usage = self._usage(record)
        counted = usage.nbytes if view.suffix == self._counted_suffix(array) else content.memory_nbytes
        return VirtualFile(content, counted, usage.modified, array, record.has_attributes)

    def _counted_suffix(self, array: Array) -> str:
        """Return the suffix of the file for which the stored size of an array counts."""
        return RawView.suffix if fixed_size_refusal(array) is None else JsonView.suffix

    def _view_content(
        self, record: _NodeRecord, array: Array, view: View, stem: str
    ) -> VirtualFileContent | None:
        cached = record.contents.get(view.suffix)
        if cached is not None and (cached.geometry is None or cached.geometry == self._geometry(record)):
            return cached.content
        presented = self._present(record, array, stem)
        if refusal(view, presented) is not None:
            return None
        source = self._node_with_attributes(record) if view.needs_attributes else array
        assert isinstance(source, Array)
        presented.array = source
        content = make_content(view, presented)
        if not view.depends_on_elements and (source is array or content.in_memory):
            geometry = presented.geometry if presented.uses_geometry else None
            self._cache_content(record, view.suffix, _CachedContent(content, geometry))
        return content

    def _cache_content(self, record: _NodeRecord, suffix: str, cached: _CachedContent) -> None:
        is_new = suffix not in record.contents
        nbytes = cached.content.memory_nbytes + (RECORD_NBYTES if is_new else 0)
        if record.nbytes + nbytes > self._cache.capacity // 2:
            return
        record.contents[suffix] = cached
        self._grow(record, nbytes)

    def _grow(self, record: _NodeRecord, nbytes: int) -> None:
        """Count memory that a record occupies in addition."""
        record.nbytes += nbytes
        if record is not self._root:
            self._cache.put(record.path, None, record, record.nbytes)

    # -- listing -----------------------------------------------------------------------------------------------

    def list_names(self, directory: Directory) -> list[str]:
        """Return the names in a directory, sorted. Raises StoreError if the store cannot list the group."""
        node = directory.node
        if directory.files is not None:
            return directory.files.names()
        if isinstance(node, Array):
            return sorted(self._view_names(self._root, node, self._root_name))
        base = self._relative_path(node)
        if not directory.has_attributes and not node.store.listable:
            # The attributes may contain the names of the members.
            reread = self._node_with_attributes(self._get_record(base))
            node = reread if isinstance(reread, Group) else node
        names = {GROUP_DOCUMENT}
        views: set[str] = set()
        for name in member_names(node):
            record = self._get_record(f"{base}/{name}" if base else name)
            member = record.node
            if isinstance(member, Group):
                names.add(name)
            elif isinstance(member, Array):
                views.update(self._view_names(record, member, name))
            elif isinstance(member, _BrokenNode):
                names.add(name + ERROR_SUFFIX)
        return sorted(name for name in names | views if self._has_valid_length(name))

    def _relative_path(self, node: Group) -> str:
        return node.path[len(self.root.path) :].strip("/") if self.root.path else node.path

    def _view_names(self, record: _NodeRecord, array: Array, stem: str) -> list[str]:
        presented = self._present(record, array, stem)
        return [stem + view.suffix for view in self._listed_views if refusal(view, presented) is None]

    def _has_valid_length(self, name: str) -> bool:
        length = len(name.encode("utf-8", "surrogateescape"))
        if length <= MAX_NAME_NBYTES:
            return True
        if name not in self._reported_names:
            if len(self._reported_names) >= MAX_REPORTED_NAMES:
                self._reported_names.clear()
            self._reported_names.add(name)
            logger.warning(
                "%r is not listed: its name has %d bytes, expected at most %d", name, length, MAX_NAME_NBYTES
            )
        return False


def _equivalent(old: _NodeRecord, new: _NodeRecord) -> bool:
    """Whether the metadata of two records is equal, so that the old node remains valid."""
    if not (old.has_attributes and new.has_attributes):
        return False  # the documents are not in memory and cannot be compared
    if isinstance(old.node, Array | Group) and isinstance(new.node, Array | Group):
        before, after = old.node.spec, new.node.spec
        return (
            type(before) is type(after)
            and before.document == after.document
            and before.attributes == after.attributes
        )
    return old.node == new.node
