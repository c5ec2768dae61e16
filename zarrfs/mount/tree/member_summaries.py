"""The files of the arrays in a group, with their sizes, determined without opening each array.

Groups of thousands of arrays usually have few different documents. Which files an array has, and most of their sizes,
depend only on the template of the array (``array_template``) and its geometry: arrays for which these are equal are of
one kind. The first array of a kind is opened. Of the others only the documents and the stored sizes are read, by one
native call for many members of a listing or for the member that is looked up. Sizes that differ among the arrays of a
kind are determined by opening the array, and are kept in a compact form as long as its documents are unchanged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats.api import array_template
from zarrfs.engine.formats.json_document import default_limit, read_document
from zarrfs.engine.group.group import Group
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.native.members import ScannedMember, scan_members
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import ZarrError
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.json_view import JsonSize, JsonView
from zarrfs.files.view import has_ordinary_name
from zarrfs.files.views import (
    PlanesView,
    View,
    are_all_built_in,
    overlapping_suffixes,
    unsupported_reason,
    views_of_name,
)
from zarrfs.mount.tree.entries import Entry, FileSummary, ListedEntry
from zarrfs.mount.tree.node_cache import NodeCache
from zarrfs.mount.tree.node_records import NodeRecord
from zarrfs.mount.tree.presentation import MemberGeometries, Presentation
from zarrfs.ngff.geometry import GEOMETRY_ATTRIBUTES, Geometry

__all__ = ["MemberSummaries", "ScannedMembers"]

MAX_KINDS = 256

MAX_DOCUMENT_NBYTES = 16 << 10
"""An array with a larger document is opened. The text of the .json file of the others is indented, as it is small."""

MAX_RECENT = 1024
"""The maximum number of files whose summaries are kept for the next look-ups, which are those of the same array."""

OWN_SIZES_SHARE = 4
"""Sizes that differ among the arrays of a kind occupy at most this part of the memory for metadata."""

OWN_SIZES_NBYTES = 400
"""The memory that the sizes of one array occupy, without the path and the sizes."""

SIZES = Struct("=2q")
"""The size of a file and the number of its bytes that are in memory."""

V3_DOCUMENT, V2_ARRAY, V2_GROUP, V2_ATTRIBUTES = "zarr.json", ".zarray", ".zgroup", ".zattrs"

NO_ACCESS = (0, 0, 0)
"""The mode, the user and the group of a document that is not a file."""

SHARED_PARTS = (
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "fill_value",
    "dimension_names",
    "shape",
    "order",
    "zarr_format",
)
"""The parts that the specifications of arrays of one template share."""


class _File(NamedTuple):
    """A file, or directory, that presents each array of a kind.

    Attributes:
        view: its view.
        suffix: the suffix of the view.
        is_directory: whether it is a directory.
        is_summarized: whether its sizes can be determined without looking it up.
        overlaps: whether the suffix ends with that of another view, so that the file can be one of another array.
        nbytes, memory_nbytes: the size of the file, and how many of these bytes are in memory. None if they differ.
        json_size: how the size of a .json file depends on the array, None for other files.
        own: the position among the files whose sizes are determined by opening the array, else None.
        counts_stored: whether the stored size of the array counts for this file.
    """

    view: View | PlanesView
    suffix: str
    is_directory: bool
    is_summarized: bool
    overlaps: bool
    nbytes: int | None
    memory_nbytes: int
    json_size: JsonSize | None
    own: int | None
    counts_stored: bool


class _ArrayKind(NamedTuple):
    """Arrays with the same template, whose attributes do not determine their geometry, and with the same geometry."""

    template: ArraySpec
    geometry: Geometry
    files: tuple[_File, ...]


class _Member(NamedTuple):
    """An array that was scanned.

    Attributes:
        path: its path relative to the root.
        name: its name.
        group: its group.
        kind: its kind.
        scanned: its documents and its stored size.
        attributes: its attributes.
        scanned_at, generation: when this was determined, and how often ``rescan`` had been called.
    """

    path: str
    name: str
    group: Group
    kind: _ArrayKind
    scanned: ScannedMember
    attributes: Mapping[str, Any]
    scanned_at: float
    generation: int


class MemberSummaries:
    """Determines the listed files of arrays. Thread-safe.

    ``views`` are the views that listings contain, ``find`` returns the entry of a view of a member by the path of the
    group, the name of the member and the suffix of the view. ``with_permissions`` is whether the permissions of the
    documents have to be known.
    """

    def __init__(
        self,
        nodes: NodeCache,
        presentation: Presentation,
        views: Sequence[View | PlanesView],
        find: Callable[[str, str, str], Entry | None],
        clock: Callable[[], float] = time.monotonic,
        *,
        with_permissions: bool = False,
    ) -> None:
        self._with_permissions = with_permissions
        self._nodes = nodes
        self._presentation = presentation
        self._views = tuple(views)
        self._listed_suffixes = frozenset(view.suffix for view in views)
        self._find = find
        self._clock = clock
        self._generation = 0
        self._kinds: dict[tuple[int, Geometry], _ArrayKind] = {}
        self._recent: dict[str, Callable[[], FileSummary | None]] = {}
        self._own_sizes = ChunkCache(nodes.capacity // OWN_SIZES_SHARE)
        self._is_possible = are_all_built_in()

    def rescan(self) -> None:
        """Invalidate all sizes that have been determined."""
        self._generation += 1
        self._recent.clear()

    def scan(
        self, parent: NodeRecord, path: str, names: Sequence[str], *, with_usage: bool = True
    ) -> ScannedMembers | None:
        """Read the documents and stored sizes of the members ``names`` of the group at a path, the node of a record.

        Without ``with_usage`` the stored sizes are not determined, so that the entries have no sizes. None if the
        members have to be opened. Raises StoreError if the metadata of a group above cannot be read.
        """
        group = parent.node
        if (
            not self._is_possible
            or not isinstance(group, Group)
            or not _is_scannable(group, needs_permissions=self._with_permissions)
        ):
            return None
        geometries = self._presentation.member_geometries(parent)
        scanned_at, generation = self._clock(), self._generation
        scanned = _scan_group(group, names, with_usage=with_usage)
        if scanned is None:
            return None
        members = dict(zip(names, scanned, strict=True))
        return ScannedMembers(self, group, geometries, path, members, scanned_at, generation)

    def find(self, path: str, file_name: str) -> FileSummary | None:
        """Return the sizes of a file of the group at a path, or None if it has to be looked up.

        Only files of groups that have been listed recently are found: the name of a file may be that of a member.
        Raises StoreError if the metadata of a group above cannot be read.
        """
        file_path = f"{path}/{file_name}"
        recent = self._recent.pop(file_path, None)
        summary = None if recent is None else recent()
        if summary is not None or not self._is_possible:
            return summary
        parent = self._nodes.get(path)
        names = self._nodes.recent_names(parent)
        if names is None or file_name in names:
            return None
        stems = [
            stem
            for view, stem in views_of_name(file_name)
            if stem in names and view.suffix in self._listed_suffixes
        ]
        # An array that has been opened is read, or cannot be summarized.
        if len(stems) != 1 or self._nodes.peek(f"{path}/{stems[0]}".lstrip("/")) is not None:
            return None
        scanned = self.scan(parent, path, stems)
        entries = None if scanned is None else scanned.entries(stems[0], names)
        if entries is None:
            return None
        if len(self._recent) >= MAX_RECENT:
            self._recent.clear()
        for entry in entries:
            if entry.name == file_name:
                summary = None if entry.summarize is None else entry.summarize()
            elif entry.summarize is not None:
                self._recent[f"{path}/{entry.name}"] = entry.summarize
        return summary

    def find_entry(self, path: str, name: str, suffix: str) -> Entry | None:
        """Return the entry of a view of a member. Raises StoreError."""
        return self._find(path, name, suffix)

    def kind(self, template: ArraySpec, geometry: Geometry) -> _ArrayKind | None:
        """Return the kind of the arrays with a template and a geometry; None if none of them has been opened."""
        return self._kinds.get((id(template), geometry))

    def add_kind(self, template: ArraySpec, record: NodeRecord, name: str) -> None:
        """Record the kind of the array of a record, if it has the template and no attributes of its own geometry."""
        array = record.node
        if (
            not isinstance(array, Array)
            or not record.has_attributes
            or not _has_template(array.spec, template)
        ):
            return
        if not GEOMETRY_ATTRIBUTES.isdisjoint(array.spec.attributes):
            return
        presented = self._presentation.present(record, array, name)
        if not has_ordinary_name(name, presented.geometry):
            return
        counted_suffix = self._presentation.counted_suffix(record, array)
        files: list[_File] = []
        own = 0
        for view in self._views:
            if unsupported_reason(view, presented) is not None:
                continue
            nbytes, memory_nbytes, json_size, position = None, 0, None, None
            if isinstance(view, JsonView):
                json_size = view.size(presented)
            elif isinstance(view, View) and view.has_shared_size:
                content = self._presentation.content(record, array, view, name)
                nbytes, memory_nbytes = content.size, content.memory_nbytes
            elif isinstance(view, View) and not view.depends_on_elements:
                position, own = own, own + 1
            is_directory = isinstance(view, PlanesView)
            files.append(
                _File(
                    view,
                    view.suffix,
                    is_directory,
                    not self._with_permissions
                    if isinstance(view, PlanesView)
                    else not view.depends_on_elements,
                    view.suffix in overlapping_suffixes(),
                    nbytes,
                    memory_nbytes,
                    json_size,
                    position,
                    view.suffix == counted_suffix,
                )
            )
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        geometry = presented.geometry
        self._kinds[(id(template), geometry)] = _ArrayKind(template, geometry, tuple(files))

    def summarize(self, member: _Member, file: _File) -> FileSummary | None:
        """Return the sizes of a file of an array; None if they are too old or cannot be determined."""
        if member.generation != self._generation or self._clock() - member.scanned_at >= REVALIDATION_SECONDS:
            return None
        usage = member.scanned.usage
        assert usage is not None
        nbytes, memory_nbytes = file.nbytes, file.memory_nbytes
        if file.json_size is not None:
            # The group may have any path in the store.
            nbytes = memory_nbytes = file.json_size.nbytes(
                f"{member.group.name.rstrip('/')}/{member.name}", member.name, member.attributes
            )
        elif file.own is not None:
            sizes = self._sizes_of(member)
            if sizes is None:
                return None
            nbytes, memory_nbytes = SIZES.unpack_from(sizes, file.own * SIZES.size)
        return FileSummary(
            nbytes,
            usage.nbytes if file.counts_stored else memory_nbytes,
            usage.modified,
            member.group.store,
            f"{member.group.path}/{member.name}".lstrip("/"),
            member.scanned.access if self._with_permissions else None,
        )

    def _sizes_of(self, member: _Member) -> bytes | None:
        """Return the sizes that differ among the arrays of a kind, None if they cannot be determined."""
        scanned, kind = member.scanned, member.kind
        stamp = hash((scanned.document, scanned.attributes)), kind.geometry
        found: bytes | None = self._own_sizes.get(member.path, stamp)
        if found is not None:
            return found
        record = self._nodes.get(member.path, is_listed=True)
        array = record.node
        # The node may be older or newer than the documents that were scanned.
        if not isinstance(array, Array) or not record.has_attributes:
            return None
        if not _has_template(array.spec, kind.template) or array.spec.attributes != member.attributes:
            return None
        if self._presentation.present(record, array, member.name).geometry != kind.geometry:
            return None
        sizes = bytearray()
        try:
            for file in kind.files:
                if file.own is not None:
                    assert isinstance(file.view, View)
                    content = self._presentation.content(record, array, file.view, member.name)
                    sizes += SIZES.pack(content.size, content.memory_nbytes)
        except (ZarrError, OSError, MemoryError):  # looking up the file reports the error
            return None
        found = bytes(sizes)
        self._own_sizes.put(member.path, stamp, found, OWN_SIZES_NBYTES + len(member.path) + len(found))
        return found


class ScannedMembers:
    """The documents and stored sizes of some members of a group."""

    def __init__(
        self,
        summaries: MemberSummaries,
        group: Group,
        geometries: MemberGeometries,
        path: str,
        members: Mapping[str, ScannedMember | None],
        scanned_at: float,
        generation: int,
    ) -> None:
        self._summaries = summaries
        self._group = group
        self._geometries = geometries
        self._path = path
        self._members = members
        self._scanned_at = scanned_at
        self._generation = generation

    def entries(self, name: str, member_names: Collection[str]) -> list[ListedEntry] | None:
        """Return the listed files of a member, None if it has to be opened. ``member_names`` are those of the group."""
        scanned = self._members.get(name)
        found = None if scanned is None else _template_of(scanned)
        if scanned is None or found is None:
            return None
        template, attributes = found
        if not GEOMETRY_ATTRIBUTES.isdisjoint(attributes):
            return None
        kind = self._kind(name, template)
        if kind is None or not has_ordinary_name(name, kind.geometry):
            return None
        path = f"{self._path}/{name}" if self._path else name
        member = _Member(
            path, name, self._group, kind, scanned, attributes, self._scanned_at, self._generation
        )
        has_usage = scanned.usage is not None
        entries = []
        for file in kind.files:
            file_name = name + file.suffix
            if file_name in member_names or (file.overlaps and _is_ambiguous(file_name, name, member_names)):
                return None
            entries.append(
                ListedEntry(
                    file_name,
                    file.is_directory,
                    partial(self._summaries.find_entry, self._path, name, file.suffix),
                    partial(self._summaries.summarize, member, file)
                    if has_usage and file.is_summarized
                    else None,
                )
            )
        return entries

    def add_kind(self, name: str, record: NodeRecord) -> None:
        """Record the kind of a member that had to be opened, the node of ``record``."""
        scanned = self._members.get(name)
        found = None if scanned is None else _template_of(scanned)
        if found is None:
            return
        try:
            if self._kind(name, found[0]) is None:
                self._summaries.add_kind(found[0], record, name)
        except (ZarrError, OSError):  # the files of the array have the error
            return

    def _kind(self, name: str, template: ArraySpec) -> _ArrayKind | None:
        known: _ArrayKind | None = self._geometries.kinds.get(id(template))
        if known is not None:
            return known
        kind = self._summaries.kind(template, self._geometries.get(name, template))
        if kind is not None and not self._geometries.depend_on_names:
            if len(self._geometries.kinds) >= MAX_KINDS:
                self._geometries.kinds.clear()
            self._geometries.kinds[id(template)] = kind
        return kind


def _is_ambiguous(file_name: str, name: str, member_names: Collection[str]) -> bool:
    """Return whether a file of the member ``name`` could be one of another member."""
    return any(stem != name and stem in member_names for _, stem in views_of_name(file_name))


def _has_template(spec: ArraySpec, template: ArraySpec) -> bool:
    """Return whether a specification has been made of a template, whose parts it then shares."""
    return all(
        getattr(spec, part) is getattr(template, part) or getattr(spec, part) == getattr(template, part)
        for part in SHARED_PARTS
    )


def _template_of(member: ScannedMember) -> tuple[ArraySpec, Mapping[str, Any]] | None:
    try:
        return array_template(member.document, member.zarr_format, member.attributes)
    except ZarrError:  # opening the array reports the error
        return None


def _is_scannable(group: Group, *, needs_permissions: bool) -> bool:
    """Return whether the documents of the members of a group can be read without opening the members.

    With ``needs_permissions`` the permissions of the documents have to be known, which only files have.

    Members of stores with a high latency are opened, many at the same time: the request for a document takes longer
    than everything else, and a file that is read soon afterwards needs no second request. Members that consolidated
    metadata list are opened without any request.
    """
    store = group.store
    if group.uses_consolidated or not store.listable or store.is_remote:
        return False
    return type(store) is LocalStore or not needs_permissions


def _scan_group(group: Group, names: Sequence[str], *, with_usage: bool) -> list[ScannedMember | None] | None:
    """Return the arrays ``names`` in a group, None for each member that has to be opened.

    Without ``with_usage`` the stored sizes are not determined. None if the group cannot be read: opening the members
    reports the error.
    """
    store, limit = group.store, group.access.max_document
    limit = min(default_limit() if limit is None else limit, MAX_DOCUMENT_NBYTES)
    try:
        if type(store) is not LocalStore:
            return [_scan(store, group.path, name, limit, with_usage) for name in names]
        directory = store.open_directory(group.path)
        if directory is None:
            return None
        try:
            return scan_members(directory, names, limit, with_usage=with_usage)
        finally:
            os.close(directory)
    except (ZarrError, OSError, MemoryError):
        return None


def _scan(store: Store, path: str, name: str, limit: int, with_usage: bool) -> ScannedMember | None:
    """Read the documents and the stored size of a member of any store; None if it has to be opened."""
    prefix = f"{path}/{name}" if path else name

    def read(name: str) -> bytes | None:
        return read_document(store, f"{prefix}/{name}", lambda data, *_: bytes(data), limit)

    try:
        document, array = read(V3_DOCUMENT), read(V2_ARRAY)
        # A node with documents of both formats causes a warning.
        if (document is None) == (array is None) or store.exists(f"{prefix}/{V2_GROUP}"):
            return None
        attributes = None if array is None else read(V2_ATTRIBUTES)
        usage = store.usage(prefix) if with_usage else None
    except Exception:  # opening the member reports the error
        return None
    if document is not None:
        return ScannedMember(3, document, None, usage, NO_ACCESS)
    assert array is not None
    return ScannedMember(2, array, attributes, usage, NO_ACCESS)
