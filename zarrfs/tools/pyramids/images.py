"""The image that a pyramid is built from: its array, its group, and what the metadata state about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.group.group import Group
from zarrfs.engine.model import GroupSpec
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.ngff.geometry import Ancestor, Geometry, array_geometry
from zarrfs.ngff.model import Ngff
from zarrfs.ngff.parse import parse
from zarrfs.tools.member_arrays import only_array
from zarrfs.tools.pyramids.downsampling import Method

__all__ = ["SourceImage", "source_image"]


@dataclass(frozen=True)
class SourceImage:
    """An array and its image.

    Attributes:
        array: the array of level 0.
        group_path: the path of the group of the image in the store, or None if there is none.
        array_path: the path of the array relative to the group.
        attributes: the attributes of the group.
        geometry: the axes of the array.
        levels: the paths of all levels that the metadata of the group list, relative to the group.
        is_labels: whether the elements are labels (integers that name objects).
    """

    array: Array
    group_path: str | None
    array_path: str
    attributes: Mapping[str, Any]
    geometry: Geometry
    levels: tuple[str, ...]
    is_labels: bool

    @property
    def default_method(self) -> Method:
        """The method if none is given: mode for labels and booleans, mean for numbers, nearest for other types."""
        kind = self.array.dtype.kind
        if kind not in "biufc":
            return "nearest"
        return "mode" if self.is_labels or kind == "b" else "mean"


def source_image(node: Array | Group) -> SourceImage:
    """Return the image at a node: an array, an OME-NGFF image, or a group with exactly one array.

    Raises NodeTypeError for other groups, UnsupportedError for data types without elements of a fixed size, and the
    errors of reading metadata.
    """
    if isinstance(node, Group):
        image = _image_of_group(node)
    else:
        parent, _, name = node.path.rpartition("/")
        spec = formats.read_node(node.store, parent) if node.path else None
        if isinstance(spec, GroupSpec):
            image = _image(node, parent, name, spec.attributes, parse(spec.attributes))
        else:
            image = _image(node, None, name, {}, Ngff())
    if image.array.dtype.hasobject:
        raise UnsupportedError(
            f"{image.array.name}: a pyramid of data type {image.array.dtype} is not supported"
        )
    return image


def _image_of_group(group: Group) -> SourceImage:
    ngff = parse(group.attrs)
    if ngff.multiscales and ngff.multiscales[0].levels:
        path = ngff.multiscales[0].levels[0].path.strip("/")
        array = group[path]
        if not isinstance(array, Array):
            raise MetadataError(f"{group.name}: level 0 of the image, {path!r}, is a group")
        return _image(array, group.path, path, group.attrs, ngff)
    name, array = only_array(group)
    return _image(array, group.path, name, group.attrs, ngff)


def _image(
    array: Array, group_path: str | None, name: str, attributes: Mapping[str, Any], ngff: Ngff
) -> SourceImage:
    levels = ngff.multiscales[0].levels if ngff.multiscales else ()
    place = f"{array.store.url}/{array.path}".split("/")
    is_integer = array.dtype.kind in "iu"
    return SourceImage(
        array,
        group_path,
        name,
        dict(attributes),
        array_geometry(array.spec, [Ancestor(name, attributes, ngff)]),
        tuple(level.path.strip("/") for level in levels),
        is_integer and (ngff.image_label is not None or "labels" in place),
    )
