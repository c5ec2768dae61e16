"""The files of arrays in listings, determined from the documents of many arrays without opening each array.

Groups of thousands of arrays usually have few different documents. Their views and the sizes of the files depend
only on the document, the name and some attributes. The first array of a kind is opened. For the others, one call
compares the documents and determines the stored sizes of many arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats.api import array_template
from zarrfs.engine.group.group import Group
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.native.members import ScannedMember
from zarrfs.engine.stores.base import Usage
from zarrfs.errors import ZarrError
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.json_view import JsonLayout, JsonView
from zarrfs.files.view import has_ordinary_name
from zarrfs.files.views import PlanesView, View, are_all_built_in, overlapping_suffixes, unsupported_reason
from zarrfs.mount.tree.entries import Entry, FileSummary, ListedEntry
from zarrfs.mount.tree.member_scans import is_scannable, scan_group
from zarrfs.mount.tree.node_records import NodeRecord
from zarrfs.mount.tree.presentation import MemberGeometries, Presentation
from zarrfs.ngff.geometry import GEOMETRY_ATTRIBUTES, Geometry

__all__ = ["ArraySummaries", "ScannedGroup"]

MAX_KINDS = 256

SHARED_PARTS = (
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "fill_value",
    "dimension_names",
)
"""The parts that the specifications of arrays of one template share."""


class _FileKind(NamedTuple):
    """A file that presents each array of a kind.

    Attributes:
        suffix: the suffix of its view.
        layout: the layout of the text of a .json file, None for a file of constant size.
        nbytes, memory_nbytes: the size of the file, and how many of these bytes are in memory.
        counts_stored: whether the stored size of the array counts for this file.
    """

    suffix: str
    layout: JsonLayout | None
    nbytes: int
    memory_nbytes: int
    counts_stored: bool


class _ArrayKind(NamedTuple):
    """Arrays that differ in their names and in attributes that do not determine their geometry.

    Attributes:
        template: their common template, whose identity is a part of the key of the kind; see ``array_template``.
        files: the listed files of each array.
    """

    template: ArraySpec
    files: tuple[_FileKind, ...]


class ArraySummaries:
    """Determines the listed files of arrays. Thread-safe.

    ``views`` are the views that listings contain, ``find`` returns the entry of a view of a member by the path of the
    group, the name of the member and the view. ``with_permissions`` is whether the permissions of the documents have to
    be known.

    Attributes:
        generation: how often ``rescan`` was called.
    """

    def __init__(
        self,
        presentation: Presentation,
        views: Sequence[View | PlanesView],
        find: Callable[[str, str, str], Entry | None],
        clock: Callable[[], float] = time.monotonic,
        *,
        with_permissions: bool = False,
    ) -> None:
        self.with_permissions = with_permissions
        self.generation = 0
        self._presentation = presentation
        self._views = tuple(view for view in views if isinstance(view, View))
        self._find = find
        self._clock = clock
        self._kinds: dict[tuple[int, Geometry], _ArrayKind] = {}
        self._is_possible = (
            are_all_built_in()
            and len(self._views) == len(views)
            and all(view.has_shared_size or isinstance(view, JsonView) for view in self._views)
            and overlapping_suffixes().isdisjoint(view.suffix for view in self._views)
        )

    def scan(
        self, parent: NodeRecord, path: str, names: Sequence[str], *, with_usage: bool = True
    ) -> ScannedGroup | None:
        """Read the documents and stored sizes of the members ``names`` of the group at a path, the node of a record.

        Without ``with_usage`` the stored sizes are not determined, so that the entries have no sizes. None if the
        arrays of the group have to be opened. Raises StoreError if the metadata of a group above cannot be read.
        """
        group = parent.node
        if not self._is_possible or not isinstance(group, Group):
            return None
        if not is_scannable(group, needs_permissions=self.with_permissions):
            return None
        geometries = self._presentation.member_geometries(path)
        scanned_at = self._clock()
        members = scan_group(group, names, with_usage=with_usage)
        if members is None:
            return None
        arrays = dict(zip(names, members, strict=True))
        return ScannedGroup(self, group, geometries, path, arrays, scanned_at)

    def kind(self, template: ArraySpec, geometry: Geometry) -> _ArrayKind | None:
        """Return the properties that all arrays of a template with a geometry share; None if unknown."""
        return self._kinds.get((id(template), geometry))

    def add_kind(self, template: ArraySpec, record: NodeRecord, stem: str) -> None:
        """Record the properties that all arrays of a template share. They are those of the node of ``record``."""
        array = record.node
        if (
            not isinstance(array, Array)
            or not record.has_attributes
            or not _has_template(array.spec, template)
        ):
            return
        if not GEOMETRY_ATTRIBUTES.isdisjoint(array.spec.attributes):
            return
        presented = self._presentation.present(record, array, stem)
        geometry = presented.geometry
        if presented.shared_key()[0] is None:
            return
        files = []
        for view in self._views:
            if unsupported_reason(view, presented) is not None:
                continue
            counts_stored = view.suffix == self._presentation.counted_suffix(record, array)
            if isinstance(view, JsonView):
                layout = view.layout(presented)
                if layout is None:
                    return
                files.append(_FileKind(view.suffix, layout, 0, 0, counts_stored))
                continue
            file = self._presentation.file(record, stem, view, True)
            if file is None:
                return
            content = file.content
            files.append(_FileKind(view.suffix, None, content.size, content.memory_nbytes, counts_stored))
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        self._kinds[(id(template), geometry)] = _ArrayKind(template, tuple(files))

    def find(self, path: str, name: str, suffix: str) -> Entry | None:
        """Return the entry of a view of a member. Raises StoreError."""
        return self._find(path, name, suffix)

    def rescan(self) -> None:
        """Invalidate all sizes that have been determined."""
        self.generation += 1

    def is_current(self, scanned_at: float, generation: int) -> bool:
        """Return whether sizes that were determined at a time, in a generation, may be used."""
        return generation == self.generation and self._clock() - scanned_at < REVALIDATION_SECONDS


def _has_template(spec: ArraySpec, template: ArraySpec) -> bool:
    return (spec.shape, spec.order, spec.zarr_format) == (
        template.shape,
        template.order,
        template.zarr_format,
    ) and all(getattr(spec, part) is getattr(template, part) for part in SHARED_PARTS)


class ScannedGroup:
    """The documents and stored sizes of some members of a group."""

    def __init__(
        self,
        summaries: ArraySummaries,
        group: Group,
        geometries: MemberGeometries,
        path: str,
        members: Mapping[str, ScannedMember | None],
        scanned_at: float,
    ) -> None:
        self._summaries = summaries
        self._group = group
        self._prefix = f"{group.name.rstrip('/')}/"
        self._generation = summaries.generation
        self._shared_kinds: dict[int, tuple[_ArrayKind, Geometry]] = {}
        self._geometries = geometries
        self._path = path
        self._members = members
        self._scanned_at = scanned_at

    def entries(self, name: str, member_names: Collection[str]) -> list[ListedEntry] | None:
        """Return the listed files of a member, None if it has to be opened. ``member_names`` are those of the group."""
        member = self._members.get(name)
        found = None if member is None else _template_of(member)
        if member is None or found is None:
            return None
        template, attributes = found
        if not GEOMETRY_ATTRIBUTES.isdisjoint(attributes):
            return None
        found_kind = self._kind(name, template)
        if found_kind is None:
            return None
        kind, geometry = found_kind
        if not has_ordinary_name(name, geometry):
            return None
        entries = []
        for file in kind.files:
            file_name = name + file.suffix
            if file_name in member_names:
                return None
            entries.append(
                ListedEntry(
                    file_name,
                    False,
                    partial(self._summaries.find, self._path, name, file.suffix),
                    None
                    if member.usage is None
                    else partial(self._summarize, name, file, attributes, member.usage, member.access),
                )
            )
        return entries

    def _kind(self, name: str, template: ArraySpec) -> tuple[_ArrayKind, Geometry] | None:
        """Return the kind and the geometry of an array, None if the kind is not known."""
        known = self._shared_kinds.get(id(template))
        if known is not None:
            return known
        geometry = self._geometries.get(name, template)
        kind = self._summaries.kind(template, geometry)
        if kind is None:
            return None
        if not self._geometries.depend_on_names:
            self._shared_kinds[id(template)] = kind, geometry
        return kind, geometry

    def add_template(self, name: str, record: NodeRecord) -> None:
        """Use a member that had to be opened, the node of ``record``, as the template of the following members."""
        member = self._members.get(name)
        found = None if member is None else _template_of(member)
        if found is None:
            return
        try:
            if self._kind(name, found[0]) is None:
                self._summaries.add_kind(found[0], record, name)
        except (ZarrError, OSError):  # the files of the array have the error
            return

    def _summarize(
        self,
        name: str,
        file: _FileKind,
        attributes: Mapping[str, Any],
        usage: Usage,
        access: tuple[int, int, int],
    ) -> FileSummary | None:
        if not self._summaries.is_current(self._scanned_at, self._generation):
            return None
        nbytes, memory_nbytes = file.nbytes, file.memory_nbytes
        if file.layout is not None:
            text = file.layout.text(self._prefix + name, name, attributes)
            if text is None:
                return None
            nbytes = memory_nbytes = len(text)
        stored_nbytes = usage.nbytes if file.counts_stored else memory_nbytes
        return FileSummary(
            nbytes,
            stored_nbytes,
            usage.modified,
            self._group.store,
            f"{self._group.path}/{name}".lstrip("/"),
            access if self._summaries.with_permissions else None,
        )


def _template_of(member: ScannedMember) -> tuple[ArraySpec, Mapping[str, Any]] | None:
    return array_template(member.document, member.zarr_format, member.attributes)
