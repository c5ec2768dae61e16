"""Arrays and groups as files and directories: geometry, and the contents of views, cached with the nodes."""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.json_memory import json_memory_nbytes
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import StoreError
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.json_view import JsonView, group_json
from zarrfs.files.raw.view import FortranRawView, RawView
from zarrfs.files.tiff.planes_view import PlaneDirectory
from zarrfs.files.view import fixed_size_unsupported_reason
from zarrfs.files.views import PLANES, PlanesView, PresentedArray, View, make_content, unsupported_reason
from zarrfs.mount.tree.entries import Directory, VirtualFile
from zarrfs.mount.tree.long_names import reference_name
from zarrfs.mount.tree.node_cache import NodeCache
from zarrfs.mount.tree.node_records import (
    CONTENT_NBYTES,
    MAX_CACHED_ATTRIBUTES_NBYTES,
    BrokenNode,
    NodeRecord,
)
from zarrfs.ngff.geometry import Ancestor, Geometry, array_geometry
from zarrfs.ngff.model import Ngff
from zarrfs.ngff.parse import parse

__all__ = ["GROUP_DOCUMENT", "MemberGeometries", "Presentation"]

GROUP_DOCUMENT = ".group.json"

MAX_ANCESTORS = 3
"""The metadata of an image is looked up in at most this many of the groups that contain an array. A level of a
multiscale image is usually a member of the image, or of a group of the level.
"""

COUNTED_SUFFIX, GEOMETRY, NGFF, PLANE_FILES = "counted suffix", "geometry", "ngff", "plane files"
MEMBER_GEOMETRIES = "member geometries"
"""Keys of ``NodeRecord.details``."""


@dataclass(frozen=True)
class _CachedContent:
    """The content of a virtual file, and the geometry that it depends on, or None if it does not depend on it."""

    content: VirtualFileContent
    geometry: Geometry | None = None


@dataclass(frozen=True)
class _CachedDirectory:
    """The files of a directory that presents an array, and the geometry that they depend on."""

    files: PlaneDirectory
    geometry: Geometry


class MemberGeometries:
    """The geometries of arrays in a group, without opening the arrays.

    ``ancestors`` are the groups that contain the arrays, the nearest one first: their paths, attributes and OME-NGFF
    metadata.

    Attributes:
        depend_on_names: whether arrays with equal specifications can have different geometries: those of images.
        kinds: what a user of the geometries has determined with them, by the identity of the template.
    """

    def __init__(self, path: str, ancestors: Sequence[tuple[str, Mapping[str, Any], Ngff]]) -> None:
        self.depend_on_names = any(ngff.multiscales for _, _, ngff in ancestors)
        self.kinds: dict[int, Any] = {}
        self._path = path
        self._ancestors = ancestors

    def get(self, name: str, template: ArraySpec) -> Geometry:
        """Return the geometry of the array ``name``, which has none of the ``GEOMETRY_ATTRIBUTES``.

        ``template`` is its specification, whose attributes are not used.
        """
        path = f"{self._path}/{name}"
        ancestors = [
            Ancestor(path.removeprefix(ancestor).strip("/"), attributes, ngff)
            for ancestor, attributes, ngff in self._ancestors
        ]
        return array_geometry(template, ancestors)


class Presentation:
    """Presents the nodes of a cache. Thread-safe. ``views`` are the views that listings contain."""

    def __init__(self, nodes: NodeCache, views: Collection[View | PlanesView]) -> None:
        self._nodes = nodes
        suffixes = {view.suffix for view in views}
        is_fortran = FortranRawView.suffix in suffixes and RawView.suffix not in suffixes
        self._elements_suffix = FortranRawView.suffix if is_fortran else RawView.suffix

    def present(self, record: NodeRecord, array: Array, stem: str) -> PresentedArray:
        """Return what views need to present an array, which is the node of a record, named ``stem``."""
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

    def member_geometries(self, parent: NodeRecord) -> MemberGeometries:
        """Return what determines the geometries of arrays in a group, the node of a record.

        Raises StoreError as ``PresentedArray.geometry`` does.
        """
        path = parent.path
        records = self._ancestors(f"{path}/" if path else "member")
        groups = tuple(group for _, group in records)
        cached: tuple[tuple[Group, ...], MemberGeometries] | None = parent.details.get(MEMBER_GEOMETRIES)
        # As in _geometry.
        if cached is not None and [*map(id, cached[0])] == [*map(id, groups)]:
            return cached[1]
        ancestors = [(record.path, *self._image_metadata(record)) for record, _ in records]
        geometries = MemberGeometries(path, ancestors)
        parent.details[MEMBER_GEOMETRIES] = groups, geometries
        return geometries

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

    # -- files and directories ----------------------------------------------------------------------------------

    def group_document(self, record: NodeRecord) -> VirtualFile:
        assert isinstance(record.node, Group)
        cached = record.contents.get(GROUP_DOCUMENT)
        if cached is None:
            group = self._nodes.with_attributes(record)
            assert isinstance(group, Group)
            cached = _CachedContent(VirtualFileContent([BytesSegment(group_json(group))]))
            self._cache_content(record, GROUP_DOCUMENT, cached)
        content = cached.content
        return VirtualFile(content, content.size, None, record.node, record.has_attributes, record.path)

    def planes(self, record: NodeRecord, stem: str) -> Directory | None:
        """Return the directory of the planes of an array named ``stem``, or None if it has none."""
        array = record.node
        if not isinstance(array, Array):
            return None
        cached: _CachedDirectory | None = record.details.get(PLANE_FILES)
        if cached is None or cached.geometry != self._geometry(record):
            presented = self.present(record, array, reference_name(stem))
            if unsupported_reason(PLANES, presented) is not None:
                return None
            cached = _CachedDirectory(PLANES.directory(presented), presented.geometry)
            if PLANE_FILES not in record.details:
                self._nodes.grow(record, CONTENT_NBYTES)
            record.details[PLANE_FILES] = cached
        modified = self._nodes.sizes.get(record).modified
        return Directory(array, modified, record.has_attributes, cached.files, record.path)

    def file(
        self, record: NodeRecord, stem: str, view: View, is_accepted: bool = False
    ) -> VirtualFile | None:
        """Return the file in which a view presents an array named ``stem``, or None if it cannot.

        ``is_accepted`` is whether the view is known to be able to present the array.
        """
        array = record.node
        if not isinstance(array, Array):
            return None
        content = self._view_content(record, array, view, stem, is_accepted)
        if content is None:
            return None
        usage = self._nodes.sizes.get(record)
        counted = usage.nbytes if view.suffix == self.counted_suffix(record, array) else content.memory_nbytes
        version = usage if self._nodes.sizes.is_exact(record) else None
        return VirtualFile(
            content, counted, usage.modified, array, record.has_attributes, record.path, version
        )

    def counted_suffix(self, record: NodeRecord, array: Array) -> str:
        """Return the suffix of the file for which the stored size of an array counts."""
        found: str | None = record.details.get(COUNTED_SUFFIX)
        if found is None:
            found = self._elements_suffix if fixed_size_unsupported_reason(array) is None else JsonView.suffix
            record.details[COUNTED_SUFFIX] = found
        return found

    def content(self, record: NodeRecord, array: Array, view: View, stem: str) -> VirtualFileContent:
        """Return the bytes of the file in which a view presents an array, the node of a record. The view must be able
        to present it. Raises StoreError.
        """
        content = self._view_content(record, array, view, stem, True)
        assert content is not None
        return content

    def _view_content(
        self, record: NodeRecord, array: Array, view: View, stem: str, is_accepted: bool
    ) -> VirtualFileContent | None:
        cached: _CachedContent | None = record.contents.get(view.suffix)
        if cached is not None and (cached.geometry is None or cached.geometry == self._geometry(record)):
            return cached.content
        presented = self.present(record, array, reference_name(stem))
        if not is_accepted and unsupported_reason(view, presented) is not None:
            return None
        source = self._nodes.with_attributes(record) if view.needs_attributes else array
        assert isinstance(source, Array)
        presented.array = source
        content = make_content(view, presented)
        if (view.depends_on_elements or source is not array) and not self._nodes.is_unchanged(record):
            # The content would combine old metadata with new chunks.
            self._nodes.expire(record.path)
            raise StoreError(f"{array.name} is being changed", errno.ESTALE)
        if not view.depends_on_elements and (source is array or content.in_memory):
            geometry = presented.geometry if presented.uses_geometry else None
            self._cache_content(record, view.suffix, _CachedContent(content, geometry))
        return content

    def _cache_content(self, record: NodeRecord, suffix: str, cached: _CachedContent) -> None:
        is_new = suffix not in record.contents
        nbytes = cached.content.memory_nbytes + (CONTENT_NBYTES if is_new else 0)
        if record.nbytes + nbytes > self._nodes.capacity // 2:
            return
        record.contents[suffix] = cached
        self._nodes.grow(record, nbytes)
