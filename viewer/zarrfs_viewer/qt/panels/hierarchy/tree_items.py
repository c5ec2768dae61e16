"""The items of the hierarchy: one per open location and per node, and the description of each node.

Listing a group yields names only. A node is opened when its row becomes visible, by ``describe``, which blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import zarrfs
from zarrfs.errors import ZarrError
from zarrfs.ngff import Ngff
from zarrfs.ngff.members import member_names
from zarrfs_viewer.analysis.readout import format_bytes
from zarrfs_viewer.images.n5_pyramid import image_metadata
from zarrfs_viewer.images.open_image import can_be_labels

__all__ = [
    "Description",
    "HierarchyItem",
    "NodeKind",
    "children_of",
    "describe",
    "describe_item",
    "shape_text",
]

NodeKind = Literal[
    "array", "level", "group", "image", "labels", "plate", "well", "series", "error", "unknown"
]


@dataclass(frozen=True)
class Description:
    """The description of a node.

    ``summary`` is one short line, such as ``256x2048x2048 uint16``. ``details`` are the lines of the tooltip.
    ``levels`` are the paths of the pyramid levels below an image. ``can_be_labels`` is set for arrays and images of
    integers.
    """

    node: zarrfs.Array | zarrfs.Group | None = None
    kind: NodeKind = "unknown"
    summary: str = ""
    details: str = ""
    levels: tuple[str, ...] = ()
    error: str = ""
    can_be_labels: bool = False


@dataclass(eq=False)
class HierarchyItem:
    """A row of the tree.

    ``children`` is None until the members have been listed; ``shown`` are those that the search does not hide.
    ``description`` is None until the node has been opened. ``row`` is the index in ``shown`` of the parent, -1 if the
    item is hidden. ``number`` orders the open locations.
    """

    name: str
    location: str
    path: str = ""
    parent: HierarchyItem | None = None
    description: Description | None = None
    children: list[HierarchyItem] | None = None
    shown: list[HierarchyItem] = field(default_factory=list)
    row: int = -1
    number: int = 0
    is_loading: bool = False

    @property
    def node(self) -> zarrfs.Array | zarrfs.Group | None:
        """The open node; None if it has not been opened or cannot be read."""
        return self.description.node if self.description is not None else None

    @property
    def kind(self) -> NodeKind:
        """The kind of the node, ``unknown`` until it has been opened."""
        return self.description.kind if self.description is not None else "unknown"

    @property
    def error(self) -> str:
        """The reason why the node cannot be read, or an empty text."""
        return self.description.error if self.description is not None else ""

    @property
    def is_group(self) -> bool:
        # An empty tree does not import the engine.
        return self.node is not None and isinstance(self.node, zarrfs.Group)


def children_of(item: HierarchyItem) -> list[HierarchyItem]:
    """Return the items of the members of a group, without opening them. Blocks. Raises ZarrError."""
    group = item.node
    if not isinstance(group, zarrfs.Group):
        return []
    return [
        HierarchyItem(name, item.location, f"{item.path}/{name}".strip("/"), item)
        for name in member_names(group)
    ]


def describe_item(item: HierarchyItem) -> Description:
    """Open the node of an item and return its description. An error is part of the result. Blocks."""
    parent = item.parent.description if item.parent is not None else None
    group = parent.node if parent is not None else None
    if not isinstance(group, zarrfs.Group):
        return Description(kind="error", error="the group that contains this node is not open")
    try:
        node = group[item.name]
    except KeyError:
        return Description(kind="error", error=f"{item.path} does not exist any more")
    except ZarrError as error:
        return Description(kind="error", error=str(error))
    return describe(node, parent is not None and item.name in parent.levels)


def describe(node: zarrfs.Array | zarrfs.Group, is_level: bool = False) -> Description:
    """Return the description of an open node. Blocks: of an image the first level is opened."""
    if isinstance(node, zarrfs.Array):
        size = "" if node.dtype.hasobject else f", {format_bytes(node.nbytes)}"
        details = f"array of {_product(node.shape) or 'one value'}, {node.spec.data_type.name}{size}"
        if node.shape:
            details += f"\nchunks of {_product(node.chunks)}"
        kind: NodeKind = "level" if is_level else "array"
        return Description(node, kind, shape_text(node), details, can_be_labels=can_be_labels(node.dtype))
    try:
        ngff = image_metadata(node)
        kind, summary, first = _group_summary(node, ngff)
    except ZarrError as error:
        return Description(node, "group", details=str(error))
    levels = ngff.multiscales[0].levels if ngff.multiscales else ()
    details = "group" if kind == "group" else f"{kind}: {summary}"
    return Description(
        node,
        kind,
        summary,
        details,
        tuple(level.path.strip("/") for level in levels),
        can_be_labels=first is not None and can_be_labels(first.dtype),
    )


def _group_summary(group: zarrfs.Group, ngff: Ngff) -> tuple[NodeKind, str, zarrfs.Array | None]:
    """Return the kind and the summary of a group, and the first level of an image."""
    if ngff.plate is not None:
        return "plate", f"plate {len(ngff.plate.rows)}x{len(ngff.plate.columns)}", None
    if ngff.multiscales:
        kind: NodeKind = "labels" if ngff.image_label is not None else "image"
        levels = ngff.multiscales[0].levels
        try:
            first = group[levels[0].path.strip("/")]
        except (KeyError, ZarrError):
            return kind, "", None
        count = f", {len(levels)} levels" if len(levels) > 1 else ""
        array = first if isinstance(first, zarrfs.Array) else None
        return kind, (shape_text(array) if array is not None else "") + count, array
    if ngff.well is not None:
        fields = len(ngff.well.images)
        return "well", f"well, {fields} field{'s' if fields != 1 else ''}", None
    if ngff.series is not None:
        return "series", f"{len(ngff.series)} series" if ngff.series else "series", None
    if ngff.labels is not None:
        return "group", f"{len(ngff.labels)} label image{'s' if len(ngff.labels) != 1 else ''}", None
    return "group", "", None


def shape_text(array: Any) -> str:
    """Return the shape and the data type of an array as a short text, such as ``256x2048x2048 uint16``."""
    name: str = array.spec.data_type.name
    if array.dtype.kind in "SUVmM" and array.dtype.names is None:
        name = array.dtype.str.lstrip("<>|")  # S12, U10, M8[D]; shorter than the names of Zarr
    return f"{'x'.join(map(str, array.shape)) or 'scalar'} {name}"


def _product(lengths: Iterable[object]) -> str:
    return " x ".join(map(str, lengths))
