"""Lookup of paths of the mount: directories and virtual files. This module is independent of FUSE.

A group is a directory. An array ``img`` is presented as the files ``img.npy``, ``img.raw`` and ``img.json`` in the
directory of its parent group. Each directory contains ``.group.json``. A member that cannot be opened is presented as
``NAME.error.txt``, which contains the error message; the other members are not affected. If a group and a view have
the same name, the name refers to the group. A view may also be a directory (``img.planes/``). Files that other programs
have stored in groups are presented too, unless a group or a view has the same name.

Metadata of nodes is cached in an LRU cache whose size is bounded in bytes.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Literal

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import StoreError
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.views import array_of_planes, listed_views, views_of_name
from zarrfs.mount.tree.entries import Directory, Entry, FileSummary, ListedEntry, VirtualFile
from zarrfs.mount.tree.foreign_files import ForeignFiles
from zarrfs.mount.tree.group_listing import ERROR_SUFFIX, GroupListing, error_file
from zarrfs.mount.tree.long_names import find_shortened, is_shortened
from zarrfs.mount.tree.member_summaries import MemberSummaries
from zarrfs.mount.tree.node_cache import MAX_METADATA_NBYTES, NodeCache
from zarrfs.mount.tree.node_records import BrokenNode, Node, NodeRecord, same_data
from zarrfs.mount.tree.presentation import GROUP_DOCUMENT, Presentation

__all__ = ["Tree"]


class ContentRefresher:
    """Returns the current content of an open file; see ``Tree.follow``. Thread-safe."""

    def __init__(self, tree: Tree, path: str, opened: VirtualFile) -> None:
        self._tree = tree
        self._path = path
        self._current = opened

    def __call__(self, is_changed: bool) -> VirtualFileContent:
        self._current = current = self._tree.follow(self._path, self._current, is_changed)
        return current.content


class Tree:
    """The directories and files that present a node and its members. All methods are thread-safe.

    ``root_name`` is the name of the root if it is an array without a name. ``views`` and ``order`` select
    the views that listings contain; see ``listed_views``. ``immutable`` disables revalidation.
    ``max_metadata`` is the memory limit of the metadata cache in bytes, ``refresh_seconds`` the time for which metadata
    are used without a comparison with the store; see ``NodeCache``. With ``summarizes_arrays`` listings determine the
    files of arrays without opening each array, so that their entries have no nodes; with ``with_permissions`` they have
    the permissions of the metadata documents.
    """

    def __init__(
        self,
        root: Array | Group,
        root_name: str = "array",
        *,
        views: Collection[str] | None = None,
        order: Literal["C", "F"] = "C",
        immutable: bool = False,
        summarizes_arrays: bool = True,
        with_permissions: bool = False,
        max_metadata: int = MAX_METADATA_NBYTES,
        refresh_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root_name = root.basename or root_name
        self._listed_views = listed_views(views, order)
        self._nodes = NodeCache(
            root,
            immutable=immutable,
            max_nbytes=max_metadata,
            refresh_seconds=refresh_seconds,
            clock=clock,
        )
        self._presentation = Presentation(self._nodes, self._listed_views)
        summaries = None
        if summarizes_arrays:
            summaries = MemberSummaries(
                self._nodes,
                self._presentation,
                self._listed_views,
                self._file_of_member,
                clock,
                with_permissions=with_permissions,
            )
        self._foreign = ForeignFiles(self._nodes, self._find_presented, with_permissions=with_permissions)
        self._listing = GroupListing(
            self._nodes, self._presentation, self._listed_views, self._foreign, summaries
        )

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
        return [entry.name for entry in self._listing.array(record, array, stem)]

    def rescan(self) -> None:
        """Compare all nodes with the store at their next use, for example because the mount changed the store."""
        self._nodes.rescan()
        self._listing.rescan()

    def drop_summaries(self) -> None:
        """Invalidate the sizes that ``summarize`` returns."""
        self._listing.rescan()

    def close(self) -> None:
        """Close the stores that were opened because the original one was replaced."""
        self._nodes.close()

    # -- lookup ------------------------------------------------------------------------------------------------

    def lookup(self, path: str) -> Entry | None:
        """Return the entry at a path of the mount (``/a/b.npy``), or None if there is no entry.

        Raises StoreError, with an error number, if the store cannot be read.
        """
        normalized = path.strip("/")
        if "~" in normalized:
            normalized = self._full_names(normalized)
        if not normalized:
            root = self._nodes.root
            assert isinstance(root.node, Array | Group)
            return Directory(root.node, has_attributes=root.has_attributes)
        if isinstance(self.root, Array):
            parent, _, name = normalized.rpartition("/")
            return self._member_view("", name, None) if not parent else self._file_in_view(parent, name)
        return self._find_presented(normalized) or self._foreign.find(normalized)

    def _find_presented(self, path: str) -> Entry | None:
        """Return the entry at a path relative to the root, a group, that presents a node, or None."""
        parent, _, name = path.rpartition("/")
        parent_record = self._nodes.get(parent)
        if isinstance(parent_record.node, BrokenNode) and parent_record.node.errno is not None:
            raise parent_record.node.error()
        if not isinstance(parent_record.node, Group):
            return self._file_in_view(parent, name)
        if name == GROUP_DOCUMENT:
            return self._presentation.group_document(parent_record)
        record = self._nodes.get(path)
        if isinstance(record.node, Group):
            return Directory(record.node, has_attributes=record.has_attributes)
        if name.endswith(ERROR_SUFFIX):
            member = self._member_record(parent, name.removesuffix(ERROR_SUFFIX))
            error = None if member is None else error_file(member)
            if error is not None:
                return error
        return self._member_view(parent, name, record.node)

    def summarize(self, path: str) -> FileSummary | None:
        """Return the sizes of a file that are known without opening its array, or None. Raises StoreError."""
        parent, _, name = path.strip("/").rpartition("/")
        return self._listing.find_summary(parent, name)

    def follow(self, path: str, opened: VirtualFile, is_changed: bool = False) -> VirtualFile:
        """Return the current entry of a file that was opened: the same one, or another one with the same bytes.

        With ``is_changed`` the metadata are compared with the store now. Raises StoreError with ESTALE if the file has
        another size, other metadata or does not exist any more. A program that reads an open file would otherwise
        receive parts of two versions, or a part of the file as the whole.
        """
        if opened.is_foreign and not is_changed:
            return opened  # Each read compares its version with the store.
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

    def follower(self, path: str, opened: VirtualFile) -> ContentRefresher:
        """Return a function that returns the current content of a file that was opened; see ``follow``."""
        return ContentRefresher(self, path, opened)

    def _member_view(self, parent: str, name: str, node: Node) -> Entry | None:
        """Return the entry ``name`` if it is a view of a member. ``node`` is the node whose name is ``name``."""
        candidates = [node]
        for view, stem in views_of_name(name):
            record = self._member_record(parent, stem)
            if record is None:
                continue
            file = self._presentation.file(record, stem, view)
            if file is not None:
                return file
            candidates.append(record.node)
        array_name = array_of_planes(name)
        if array_name is not None:
            record = self._member_record(parent, array_name)
            if record is not None:
                directory = self._presentation.planes(record, array_name)
                if directory is not None:
                    return directory
                candidates.append(record.node)
        for candidate in candidates:
            # The file may exist, but the store cannot be read.
            if isinstance(candidate, BrokenNode) and candidate.errno is not None:
                raise candidate.error()
        return None

    def _file_of_member(self, parent: str, stem: str, suffix: str) -> Entry | None:
        """Return the entry of a view of a member of a group, by the suffix of the view."""
        return self.lookup(f"{parent}/{stem}{suffix}")

    def _member_record(self, parent: str, stem: str) -> NodeRecord | None:
        """Return the record of a member of a group, or of the root if that is an array with this name."""
        if isinstance(self.root, Array):
            return self._nodes.root if stem == self._root_name else None
        return self._nodes.get(f"{parent}/{self._full_name(parent, stem)}".lstrip("/"))

    def _full_names(self, path: str) -> str:
        """Return a path with the names of groups in place of shortened ones."""
        found = ""
        for name in path.split("/"):
            found = f"{found}/{self._full_name(found, name)}".lstrip("/")
        return found

    def _full_name(self, parent: str, name: str) -> str:
        """Return the name of the member of a group whose shortened name is ``name``; ``name`` if there is none."""
        if not is_shortened(name):
            return name
        record = self._nodes.get(parent)
        if not isinstance(record.node, Group):
            return name
        return find_shortened(name, self._nodes.member_names(record)) or name

    def _file_in_view(self, parent: str, name: str) -> VirtualFile | None:
        """Return the file ``name`` of a directory that presents an array, or None if there is none."""
        if array_of_planes(parent.rpartition("/")[2]) is None:
            return None
        entry = self.lookup(parent)
        return _file_of(entry, name) if isinstance(entry, Directory) else None

    # -- listing -----------------------------------------------------------------------------------------------

    def list_entries(
        self, directory: Directory, needs_sizes: Callable[[int], bool] = lambda _: True
    ) -> Iterator[ListedEntry]:
        """Yield the entries of a directory, in no particular order.

        Members are opened while the entries are consumed. ``needs_sizes(member_count)`` is called during the listing
        and returns whether the sizes of the next files will probably be used. Raises StoreError, before the first
        entry, if the store cannot list the group.
        """
        node = directory.node
        if directory.foreign_path is not None:
            yield from self._foreign.entries(directory.foreign_path)
        elif directory.files is not None:
            for name in directory.files.names():
                yield ListedEntry(name, False, partial(_file_of, directory, name))
        elif isinstance(node, Array):
            yield from self._listing.array(self._nodes.root, node, self._root_name)
        else:
            assert node is not None
            top = self.root.path
            path = node.path[len(top) :].strip("/") if top else node.path
            yield from self._listing.group(path, needs_sizes)


def _file_of(directory: Directory, name: str) -> VirtualFile | None:
    """Return the file ``name`` of a directory that presents an array, or None if there is none."""
    content = None if directory.files is None else directory.files.find(name)
    if content is None:
        return None
    return VirtualFile(
        content,
        content.memory_nbytes,
        directory.modified,
        directory.node,
        directory.has_attributes,
        directory.record_path,
    )


def _same_bytes(opened: VirtualFile, current: VirtualFile) -> bool:
    if opened.content is current.content:
        return True
    if isinstance(opened.node, Array):
        is_same = isinstance(current.node, Array) and same_data(opened.node, current.node)
    else:
        is_same = opened.content.in_memory and current.content.in_memory
    return is_same and opened.content.has_same_layout(current.content)
