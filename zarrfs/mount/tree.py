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
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.errors import StoreError
from zarrfs.logs import logger
from zarrfs.mount.content import BytesSegment, VirtualFileContent
from zarrfs.mount.held import json_memory_nbytes
from zarrfs.mount.node_cache import (
    MAX_CACHED_ATTRIBUTES_NBYTES,
    MAX_METADATA_NBYTES,
    RECORD_NBYTES,
    BrokenNode,
    Node,
    NodeCache,
    NodeRecord,
    same_data,
)
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
from zarrfs.ngff.model import Ngff
from zarrfs.ngff.parse import parse

__all__ = ["Directory", "Entry", "Tree", "VirtualFile"]

GROUP_DOCUMENT = ".group.json"
ERROR_SUFFIX = ".error.txt"

MAX_ANCESTORS = 3
"""The metadata of an image is looked up in at most this many of the groups that contain an array. A level of a
multiscale image is usually a member of the image, or of a group of the level.
"""

DIRECTORIES, GEOMETRY, NGFF = "directories", "geometry", "ngff"
"""Keys of ``NodeRecord.details``."""

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
        record_path: the path of that array relative to the root.
    """

    node: Group | Array
    modified: float | None = None
    has_attributes: bool = True
    files: VirtualDirectory | None = None
    record_path: str | None = None


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
        record_path: the path of the node relative to the root, or None if the node could not be opened.
    """

    content: VirtualFileContent
    stored_nbytes: int
    modified: float | None
    node: Array | Group | None
    has_attributes: bool = True
    record_path: str | None = None


Entry = Directory | VirtualFile


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
        self._nodes = NodeCache(root, immutable=immutable, max_nbytes=max_metadata, clock=clock)
        self._reported_names: set[str] = set()

    @property
    def root(self) -> Array | Group:
        """The node that the mount presents. It lacks its user attributes if they are too large to be cached.

        Raises StoreError if it has been deleted or cannot be read.
        """
        node = self._nodes.root.node
        assert isinstance(node, Array | Group)
        return node

    @property
    def cached_nbytes(self) -> int:
        """The number of bytes that the metadata cache occupies."""
        return self._nodes.nbytes

    def array_names(self, path: str) -> list[str]:
        """Return the names of the listed files of the array at a path relative to the root."""
        record = self._nodes.get(path)
        array = record.node
        if not isinstance(array, Array):
            return []
        stem = path.rpartition("/")[2] or self._root_name
        return [name for name, _ in self._view_entries(record, array, stem)]

    # -- geometry ----------------------------------------------------------------------------------------------

    def _present(self, record: NodeRecord, array: Array, stem: str) -> PresentedArray:
        return PresentedArray(array, stem, lambda: self._geometry(record))

    def _geometry(self, record: NodeRecord) -> Geometry:
        """Return the geometry of an array by its metadata and those of the groups that contain it."""
        records = self._ancestors(record.path)
        groups = tuple(group for _, group in records)
        cached: tuple[tuple[Group, ...], Geometry] | None = record.details.get(GEOMETRY)
        # Groups at the same path are equal whatever their attributes are; a changed group is another object.
        if cached is not None and [*map(id, cached[0])] == [*map(id, groups)]:
            return cached[1]
        ancestors = []
        for ancestor, _ in records:
            attributes, ngff = self._image_metadata(ancestor)
            ancestors.append(Ancestor(record.path.removeprefix(ancestor.path).strip("/"), attributes, ngff))
        spec = self._nodes.with_attributes(record).spec
        assert isinstance(spec, ArraySpec)
        geometry = array_geometry(spec, ancestors)
        record.details[GEOMETRY] = groups, geometry
        return geometry

    def _ancestors(self, path: str) -> list[tuple[NodeRecord, Group]]:
        """Return the groups that contain the node at a path, the nearest one first, at most ``MAX_ANCESTORS``.

        A group without permission to read its metadata is omitted. Raises StoreError if one cannot be read for another
        reason.
        """
        ancestors: list[tuple[NodeRecord, Group]] = []
        while path and len(ancestors) < MAX_ANCESTORS:
            path = path.rpartition("/")[0]
            record = self._nodes.get(path)
            if isinstance(record.node, BrokenNode) and record.node.errno not in (None, errno.EACCES):
                raise record.node.error()
            if isinstance(record.node, Group):
                ancestors.append((record, record.node))
        return ancestors

    def _image_metadata(self, record: NodeRecord) -> tuple[Mapping[str, Any], Ngff]:
        """Return the attributes of a group and the OME-NGFF metadata in them. Raises StoreError."""
        attributes = self._nodes.with_attributes(record).spec.attributes
        cached: Ngff | None = record.details.get(NGFF)
        if cached is not None:
            return attributes, cached
        ngff = parse(attributes)
        if record.has_attributes:
            if ngff:
                self._nodes.grow(record, json_memory_nbytes(attributes, MAX_CACHED_ATTRIBUTES_NBYTES))
            record.details[NGFF] = ngff
        return attributes, ngff

    def rescan(self) -> None:
        """Compare all nodes with the store at their next use, for example because the mount changed the store."""
        self._nodes.rescan()

    def close(self) -> None:
        """Close the stores that were opened because the original one was replaced."""
        self._nodes.close()

    # -- lookup ------------------------------------------------------------------------------------------------

    def lookup(self, path: str) -> Entry | None:
        """Return the entry at a path of the mount (``/a/b.npy``), or None if there is no entry.

        Raises StoreError, with an error number, if the store cannot be read.
        """
        normalized = path.strip("/")
        if not normalized:
            root = self._nodes.root
            assert isinstance(root.node, Array | Group)
            return Directory(root.node, has_attributes=root.has_attributes)
        parent, _, name = normalized.rpartition("/")
        if isinstance(self.root, Array):
            return self._member_view("", name, None) if not parent else self._file_in_view(parent, name)
        parent_record = self._nodes.get(parent)
        if isinstance(parent_record.node, BrokenNode) and parent_record.node.errno is not None:
            raise parent_record.node.error()
        if not isinstance(parent_record.node, Group):
            return self._file_in_view(parent, name)
        if name == GROUP_DOCUMENT:
            return self._group_document(parent_record)
        record = self._nodes.get(normalized)
        if isinstance(record.node, Group):
            return Directory(record.node, has_attributes=record.has_attributes)
        if name.endswith(ERROR_SUFFIX):
            member = self._nodes.get(normalized.removesuffix(ERROR_SUFFIX)).node
            if isinstance(member, BrokenNode):
                text = f"{member.reason}\n".encode()
                return VirtualFile(VirtualFileContent([BytesSegment(text)]), len(text), None, None)
        return self._member_view(parent, name, record.node)

    def follow(self, path: str, opened: VirtualFile, is_changed: bool = False) -> VirtualFile:
        """Return the current entry of a file that was opened: the same one, or another one with the same bytes.

        With ``is_changed`` the metadata are compared with the store now. Raises StoreError with ESTALE if the file has
        another size, other metadata or does not exist any more. A program that reads an open file would otherwise
        receive parts of two versions, or a part of the file as the whole.
        """
        record = None if opened.record_path is None else self._nodes.peek(opened.record_path)
        if record is not None and record.node is opened.node and not is_changed:
            return opened
        if is_changed and opened.record_path is not None:
            self._nodes.expire(opened.record_path)
        entry = self.lookup(path)
        if isinstance(entry, VirtualFile) and _same_bytes(opened, entry):
            return entry
        change = "has been deleted" if entry is None else "has changed"
        raise StoreError(f"{path} {change} since it was opened; open it again", errno.ESTALE)

    def follower(self, path: str, opened: VirtualFile) -> Callable[[bool], VirtualFileContent]:
        """Return a function that returns the current content of a file that was opened; see ``follow``."""
        current = opened

        def follow(is_changed: bool) -> VirtualFileContent:
            nonlocal current
            current = self.follow(path, current, is_changed)
            return current.content

        return follow

    def _group_document(self, record: NodeRecord) -> VirtualFile:
        assert isinstance(record.node, Group)
        cached = record.contents.get(GROUP_DOCUMENT)
        if cached is None:
            group = self._nodes.with_attributes(record)
            assert isinstance(group, Group)
            cached = _CachedContent(VirtualFileContent([BytesSegment(group_json(group))]))
            self._cache_content(record, GROUP_DOCUMENT, cached)
        content = cached.content
        return VirtualFile(content, content.size, None, record.node, record.has_attributes, record.path)

    def _member_view(self, parent: str, name: str, node: Node) -> Entry | None:
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
            if isinstance(candidate, BrokenNode) and candidate.errno is not None:
                raise candidate.error()
        return None

    def _member_record(self, parent: str, stem: str) -> NodeRecord | None:
        """Return the record of a member of a group, or of the root if that is an array with this name."""
        if isinstance(self.root, Array):
            return self._nodes.root if stem == self._root_name else None
        return self._nodes.get(f"{parent}/{stem}" if parent else stem)

    def _view_directory(self, record: NodeRecord, stem: str, view: DirectoryView) -> Directory | None:
        """Return the directory in which a view presents an array named ``stem``, or None if it cannot."""
        array = record.node
        if not isinstance(array, Array):
            return None
        directories: dict[str, _CachedDirectory] = record.details.setdefault(DIRECTORIES, {})
        cached = directories.get(view.suffix)
        if cached is None or cached.geometry != self._geometry(record):
            presented = self._present(record, array, stem)
            if refusal(view, presented) is not None:
                return None
            cached = _CachedDirectory(view.directory(presented), presented.geometry)
            if view.suffix not in directories:
                self._nodes.grow(record, RECORD_NBYTES)
            directories[view.suffix] = cached
        modified = self._nodes.usage(record).modified
        return Directory(array, modified, record.has_attributes, cached.files, record.path)

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
        node, size = entry.node, content.memory_nbytes
        return VirtualFile(content, size, entry.modified, node, entry.has_attributes, entry.record_path)

    def _view_file(self, record: NodeRecord, stem: str, view: View) -> VirtualFile | None:
        """Return the file in which a view presents an array named ``stem``, or None if it cannot."""
        array = record.node
        if not isinstance(array, Array):
            return None
        content = self._view_content(record, array, view, stem)
        if content is None:
            return None
        usage = self._nodes.usage(record)
        counted = usage.nbytes if view.suffix == self._counted_suffix(array) else content.memory_nbytes
        return VirtualFile(content, counted, usage.modified, array, record.has_attributes, record.path)

    def _counted_suffix(self, array: Array) -> str:
        """Return the suffix of the file for which the stored size of an array counts."""
        return RawView.suffix if fixed_size_refusal(array) is None else JsonView.suffix

    def _view_content(
        self, record: NodeRecord, array: Array, view: View, stem: str
    ) -> VirtualFileContent | None:
        cached: _CachedContent | None = record.contents.get(view.suffix)
        if cached is not None and (cached.geometry is None or cached.geometry == self._geometry(record)):
            return cached.content
        presented = self._present(record, array, stem)
        if refusal(view, presented) is not None:
            return None
        source = self._nodes.with_attributes(record) if view.needs_attributes else array
        assert isinstance(source, Array)
        presented.array = source
        content = make_content(view, presented)
        if not self._nodes.is_unchanged(record):
            # The content would combine old metadata with new chunks.
            self._nodes.expire(record.path)
            raise StoreError(f"{array.name} is being changed", errno.ESTALE)
        if not view.depends_on_elements and (source is array or content.in_memory):
            geometry = presented.geometry if presented.uses_geometry else None
            self._cache_content(record, view.suffix, _CachedContent(content, geometry))
        return content

    def _cache_content(self, record: NodeRecord, suffix: str, cached: _CachedContent) -> None:
        is_new = suffix not in record.contents
        nbytes = cached.content.memory_nbytes + (RECORD_NBYTES if is_new else 0)
        if record.nbytes + nbytes > self._nodes.capacity // 2:
            return
        record.contents[suffix] = cached
        self._nodes.grow(record, nbytes)

    # -- listing -----------------------------------------------------------------------------------------------

    def list_names(self, directory: Directory) -> list[str]:
        """Return the names in a directory, sorted. Raises StoreError if the store cannot list the group."""
        return [name for name, _ in self.list_entries(directory)]

    def list_entries(self, directory: Directory) -> list[tuple[str, bool]]:
        """Return (name, whether it is a directory) of the entries of a directory, sorted.

        Raises StoreError if the store cannot list the group.
        """
        node = directory.node
        if directory.files is not None:
            return [(name, False) for name in directory.files.names()]
        if isinstance(node, Array):
            return sorted(self._view_entries(self._nodes.root, node, self._root_name))
        base = self._relative_path(node)
        entries = {GROUP_DOCUMENT: False}
        groups: list[str] = []
        for name in self._nodes.member_names(self._nodes.get(base)):
            record = self._nodes.get(f"{base}/{name}" if base else name)
            member = record.node
            if isinstance(member, Group):
                groups.append(name)
            elif isinstance(member, Array):
                entries.update(self._view_entries(record, member, name))
            elif isinstance(member, BrokenNode):
                entries[name + ERROR_SUFFIX] = False
        # The name of a group takes precedence over that of a file.
        entries |= dict.fromkeys(groups, True)
        return sorted(entry for entry in entries.items() if self._has_valid_length(entry[0]))

    def _relative_path(self, node: Group) -> str:
        return node.path[len(self.root.path) :].strip("/") if self.root.path else node.path

    def _view_entries(self, record: NodeRecord, array: Array, stem: str) -> list[tuple[str, bool]]:
        """Return (name, whether it is a directory) of the listed views of an array."""
        presented = self._present(record, array, stem)
        return [
            (stem + view.suffix, isinstance(view, DirectoryView))
            for view in self._listed_views
            if refusal(view, presented) is None
        ]

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


def _same_bytes(opened: VirtualFile, current: VirtualFile) -> bool:
    if opened.content is current.content:
        return True
    if isinstance(opened.node, Array):
        is_same = isinstance(current.node, Array) and same_data(opened.node, current.node)
    else:
        is_same = opened.content.in_memory and current.content.in_memory
    return is_same and opened.content.continues_as(current.content)
