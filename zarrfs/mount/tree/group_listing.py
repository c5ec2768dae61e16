"""Listings of the directories of groups. Members are opened while a listing is consumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.parallel import for_each
from zarrfs.engine.stores.base import Listing
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.views import (
    PlanesView,
    View,
    array_of_planes,
    overlapping_suffixes,
    unsupported_reason,
    views_of_name,
)
from zarrfs.mount.tree.entries import Directory, Entry, FileSummary, ListedEntry, VirtualFile
from zarrfs.mount.tree.foreign_files import ForeignFiles
from zarrfs.mount.tree.long_names import file_name, reference_name
from zarrfs.mount.tree.member_summaries import MemberSummaries
from zarrfs.mount.tree.node_cache import NodeCache
from zarrfs.mount.tree.node_records import BrokenNode, NodeRecord
from zarrfs.mount.tree.presentation import GROUP_DOCUMENT, Presentation

__all__ = ["ERROR_SUFFIX", "GroupListing", "error_file"]

ERROR_SUFFIX = ".error.txt"

MEMBERS_PER_BATCH = 64
"""The number of members that are examined together, and opened at the same time if each needs requests to a server."""


class GroupListing:
    """Lists groups and arrays. ``views`` are the views that listings contain. Thread-safe."""

    def __init__(
        self,
        nodes: NodeCache,
        presentation: Presentation,
        views: Sequence[View | PlanesView],
        foreign: ForeignFiles,
        summaries: MemberSummaries | None = None,
    ) -> None:
        """``summaries`` determines the files of arrays without opening each of them; None opens all members."""
        self._nodes = nodes
        self._presentation = presentation
        self._views = views
        self._foreign = foreign
        self._summaries = summaries

    def find_summary(self, path: str, file_name: str) -> FileSummary | None:
        """Return the sizes of a file of the group at a path, None if it has to be looked up. Raises StoreError."""
        return None if self._summaries is None else self._summaries.find(path, file_name)

    def rescan(self) -> None:
        """Invalidate the sizes that were determined for listings and look-ups."""
        if self._summaries is not None:
            self._summaries.rescan()

    def group(self, path: str, needs_sizes: Callable[[int], bool]) -> Iterator[ListedEntry]:
        """Yield the entries of the group at a path relative to the root, in the order of the members.

        ``needs_sizes(member_count)`` is called during the listing and returns whether the sizes of the next files will
        probably be used.

        Raises StoreError, before the first entry, if the store cannot list the group, and later if its server fails.
        """
        parent = self._nodes.get(path)
        names, listing = self._nodes.list_group(parent)
        member_names = frozenset(names)
        others: list[str] = []
        yield ListedEntry(GROUP_DOCUMENT, False, partial(self._presentation.group_document, parent))
        for start in range(0, len(names), MEMBERS_PER_BATCH):
            part = names[start : start + MEMBERS_PER_BATCH]
            scanned = None
            if self._summaries is not None:
                scanned = self._summaries.scan(parent, path, part, with_usage=needs_sizes(len(names)))
            if scanned is None:
                for name, record in self._members(parent, path, part):
                    if record.node is None:
                        others.append(name)
                    yield from self._entries(path, name, record, member_names)
                continue
            for name in part:
                entries = scanned.entries(name, member_names)
                if entries is None:
                    record = self._nodes.get(f"{path}/{name}" if path else name, is_listed=True)
                    if record.node is None:
                        others.append(name)
                    yield from self._entries(path, name, record, member_names)
                    scanned.add_kind(name, record)
                else:
                    yield from entries
        yield from self._foreign_entries(parent, path, listing, member_names, others)

    def _foreign_entries(
        self,
        parent: NodeRecord,
        path: str,
        listing: Listing,
        member_names: frozenset[str],
        others: Sequence[str],
    ) -> Iterator[ListedEntry]:
        """Yield the files of other programs in a group, except those with the names of other entries.

        ``others`` are those of the ``member_names`` that turned out not to be nodes.
        """
        base = f"{path}/" if path else ""
        # Consolidated metadata can lack a member.
        unknown = [name for name in listing.prefixes if name not in member_names]
        prefixes = [*others, *(name for name in unknown if self._nodes.get(base + name).node is None)]
        group = parent.node
        assert isinstance(group, Group)
        for entry in self._foreign.in_group(group, path, Listing(listing.keys, prefixes)):
            if not self._is_presented(path, entry.name, member_names):
                yield entry

    def _is_presented(self, path: str, name: str, member_names: frozenset[str]) -> bool:
        """Return whether a name is that of another entry of the group than a file of another program."""
        if name == GROUP_DOCUMENT:
            return True
        stems = [stem for _, stem in views_of_name(name)]
        planes = array_of_planes(name)
        if planes is not None:
            stems.append(planes)
        if name.endswith(ERROR_SUFFIX):
            stems.append(name.removesuffix(ERROR_SUFFIX))
        if member_names.isdisjoint(stems):
            return False
        return self._foreign.find_presented(f"{path}/{name}".lstrip("/")) is not None

    def _entries(
        self, path: str, name: str, record: NodeRecord, member_names: frozenset[str]
    ) -> Iterator[ListedEntry]:
        """Yield the entries of a member that has been opened. Raises StoreError if its server has failed."""
        member = record.node
        if isinstance(member, BrokenNode) and member.is_unreachable:
            raise member.error()  # a file with the reason in place of its files would be copied without an error
        if isinstance(member, Group):
            yield ListedEntry(file_name(name, ""), True, partial(_directory, record))
        elif isinstance(member, BrokenNode):
            yield ListedEntry(file_name(name, ERROR_SUFFIX), False, partial(error_file, record))
        elif isinstance(member, Array):
            for view, entry in self._views_of(record, member, name):
                if not self._is_other(path, name, view.suffix, entry.name, member_names):
                    yield entry

    def array(self, record: NodeRecord, array: Array, stem: str) -> Iterator[ListedEntry]:
        """Yield the listed views of an array, the node of a record, whose files are named after ``stem``."""
        return (entry for _, entry in self._views_of(record, array, stem))

    def _views_of(
        self, record: NodeRecord, array: Array, stem: str
    ) -> Iterator[tuple[View | PlanesView, ListedEntry]]:
        presented = self._presentation.present(record, array, reference_name(stem))
        for view in self._views:
            if unsupported_reason(view, presented) is not None:
                continue
            name = file_name(stem, view.suffix)
            if isinstance(view, PlanesView):
                yield view, ListedEntry(name, True, partial(self._presentation.planes, record, stem))
            else:
                yield (
                    view,
                    ListedEntry(name, False, partial(self._presentation.file, record, stem, view, True)),
                )

    def _members(
        self, parent: NodeRecord, path: str, names: Sequence[str]
    ) -> Iterator[tuple[str, NodeRecord]]:
        base = f"{path}/" if path else ""
        group = parent.node
        assert isinstance(group, Group)
        concurrency = min(group.store.concurrency, MEMBERS_PER_BATCH)
        if concurrency == 1:
            for name in names:
                yield name, self._nodes.get(base + name, is_listed=True)
            return
        records: dict[str, NodeRecord] = {}

        def open_member(name: str) -> None:
            records[name] = self._nodes.get(base + name, is_listed=True)

        for_each(open_member, names, concurrency)
        yield from ((name, records[name]) for name in names)

    def _is_other(self, path: str, stem: str, suffix: str, name: str, member_names: frozenset[str]) -> bool:
        """Return whether the file name of a view of the member ``stem`` belongs to another member.

        The name of a group takes precedence over that of a file, and a longer name of an array over a shorter one.
        """
        base = f"{path}/" if path else ""
        if name in member_names and isinstance(self._nodes.get(base + name).node, Group):
            return True
        if suffix not in overlapping_suffixes():
            return False
        for view, other in views_of_name(name):
            if len(other) <= len(stem):
                return False
            if other in member_names:
                record = self._nodes.get(base + other)
                if isinstance(record.node, Array):
                    presented = self._presentation.present(record, record.node, reference_name(other))
                    return unsupported_reason(view, presented) is None
        return False


def _directory(record: NodeRecord) -> Directory:
    assert isinstance(record.node, Group)
    return Directory(record.node, has_attributes=record.has_attributes)


def error_file(record: NodeRecord) -> Entry | None:
    """Return the file that describes why a node cannot be opened, or None if it can be opened."""
    if not isinstance(record.node, BrokenNode):
        return None
    text = f"{record.node.reason}\n".encode()
    return VirtualFile(VirtualFileContent([BytesSegment(text)]), len(text), None, None)
