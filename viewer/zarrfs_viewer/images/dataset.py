"""Opening a location as a dataset: images, label images, plates, wells and series.

The functions block on the store; call them from a worker thread. The returned values are frozen. Chunks are not
read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import zarrfs
from zarrfs.errors import NodeNotFoundError, StoreError, UnsupportedError, ZarrError
from zarrfs.ngff import Ngff, Plate, SystemReference, load
from zarrfs.ngff.members import member_names
from zarrfs_viewer.images.coordinates import Coordinates, Extent, load_coordinates, scene_paths
from zarrfs_viewer.images.image import Image, ImageEntry, ImageLevel
from zarrfs_viewer.images.n5_pyramid import image_metadata
from zarrfs_viewer.images.open_image import image_from_array, image_from_multiscales, is_among_labels
from zarrfs_viewer.images.reading import SourceArray
from zarrfs_viewer.images.values import is_displayable
from zarrfs_viewer.locations import display_name
from zarrfs_viewer.state.view_state import DisplaySettings, LabelsSettings

__all__ = [
    "Dataset",
    "DatasetKind",
    "Field",
    "Image",
    "ImageEntry",
    "ImageLevel",
    "SourceArray",
    "describe",
    "describe_member",
    "initial_settings",
    "open_dataset",
]

DatasetKind = Literal[
    "image", "labels", "plate", "well", "series", "scene", "group", "array", "undisplayable"
]

DECLARED = sys.maxsize
"""The size of images that metadata declare: they are larger than any array without metadata."""
MAX_MEMBERS_INSPECTED = 64
"""At most this number of members of a group without OME-NGFF metadata is examined for images."""


@dataclass(frozen=True)
class Field:
    """One field of view of a well. ``path`` is relative to the dataset; ``acquisition`` is None if undeclared."""

    path: str
    acquisition: int | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """The contents of a location.

    ``node`` is the Array or Group. ``images`` has one entry for an image, several for a series, a well or a scene, and
    none for a plate; the images of a plate are listed by ``fields``. ``problems`` are sentences that state what
    cannot be displayed and why. ``attributes`` are set for every kind. ``coordinates`` are the coordinate systems if
    there are several, and ``system`` is the one in which images are opened, by default the first one.
    """

    location: str
    path: str
    kind: DatasetKind
    name: str
    node: Any = None
    images: tuple[ImageEntry, ...] = ()
    plate: Plate | None = None
    version: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    coordinates: Coordinates | None = None
    system: SystemReference | None = None

    @property
    def shown_system(self) -> SystemReference | None:
        """The coordinate system in which images are opened; None if there is nothing to choose."""
        return self.system if self.coordinates is None or self.system is not None else self.coordinates.shown

    @property
    def is_array(self) -> bool:
        """Whether the location is an array, and not a group."""
        return hasattr(self.node, "dtype")

    def open_image(self, path: str | None = None, as_labels: bool = False, is_layer: bool = False) -> Image:
        """Open the image of an entry, by default of the largest one, in the coordinate system ``shown_system``. Blocks.
        Raises ZarrError.

        ``path`` can be any path below the dataset of an array, a multiscale image or a label image. ``PATH#2``
        is the third multiscale image of a group. Integers are a label image if ``as_labels`` is set, and below a
        group ``labels`` or with this name. With ``is_layer`` an image that is resampled has additional finer levels.
        """
        if path is None:
            if not self.images:
                reason = " ".join(self.problems) or f"it is a {self.kind}"
                raise UnsupportedError(f"{self.location}: no image can be displayed: {reason}")
            if self.kind == "scene":
                return self._open_first(as_labels)
            path = max(self.images, key=lambda entry: entry.size).path
        inner, _, number = path.partition("#")
        node = _member(self.node, inner)
        name = inner.rpartition("/")[2] or self.name
        as_labels = as_labels or is_among_labels(self.location, _join(self.path, inner))
        if hasattr(node, "dtype"):
            return image_from_array(node, name, path, as_labels)
        ngff = image_metadata(node)
        index = int(number) if number.isdigit() else 0
        if index >= len(ngff.multiscales):
            raise NodeNotFoundError(
                f"{self.location}: {path or 'the group'!r} has no image: {_no_image_reason(ngff, node)}"
            )
        image = image_from_multiscales(node, ngff, index, name, path, as_labels)
        if self.coordinates is None:
            return image
        return self.coordinates.placed(image, path, self.shown_system, is_layer)

    def _open_first(self, as_labels: bool) -> Image:
        """Return the first image that can be opened."""
        failure: ZarrError | None = None
        for entry in self.images:
            try:
                return self.open_image(entry.path, as_labels)
            except ZarrError as error:
                failure = failure or error
        raise failure or UnsupportedError(f"{self.location}: the scene has no images")

    def extent(self, path: str) -> Extent:
        """Return the box of an image of a scene in the coordinate system ``shown_system``. Blocks. Raises ZarrError."""
        if self.coordinates is None:
            raise UnsupportedError(f"{self.location}: it has no coordinate systems")
        if path not in self.coordinates.finest:
            self.open_image(path)  # raises the reason
            raise NodeNotFoundError(f"{self.location}: {path!r} is not an image of the scene")
        array = _member(self.node, self.coordinates.finest[path])
        return self.coordinates.extent(path, tuple(array.shape), self.shown_system)

    def open_labels(
        self, image: Image, on_problem: Callable[[str], object] | None = None
    ) -> tuple[Image, ...]:
        """Open the label images of an image, in the order of ``image.labels``. Blocks.

        A label image that cannot be opened is omitted; ``on_problem`` is called with the reason.
        """
        opened = []
        for entry in image.labels:
            try:
                opened.append(self.open_image(_join(image.path.partition("#")[0], entry.path)))
            except ZarrError as error:
                if on_problem is not None:
                    on_problem(f"label image {entry.name!r} cannot be displayed: {error}")
        return tuple(opened)

    def fields(self, well: str) -> tuple[Field, ...]:
        """Return the fields of the well at a path of a plate. Reads one metadata document. Blocks. Raises
        ZarrError.
        """
        metadata = load(_member(self.node, well)).well
        if metadata is None:
            raise NodeNotFoundError(
                f"{self.location}: {well!r} has no well metadata, so its fields are not known"
            )
        return tuple(Field(_join(well, image.path), image.acquisition) for image in metadata.images)


def open_dataset(location: Any, path: str = "") -> Dataset:
    """Open a location (path, URL or store) and describe it. Raises ZarrError if no node can be opened.

    A node that is not an image is not an error; see ``kind`` and ``problems`` of the result.
    """
    return describe(zarrfs.open(location, path), str(location), path)


def describe_member(node: Any, location: str, path: str) -> Dataset:
    """Return the dataset of the member of an open node at a path, or of the node itself. Blocks. Raises ZarrError."""
    return describe(node[path] if path else node, location, path)


def describe(node: Any, location: str = "", path: str = "") -> Dataset:
    """Return the dataset of an opened node."""
    name = display_name(path or location)
    if hasattr(node, "dtype"):
        return _describe_array(node, location, path, name)
    ngff = image_metadata(node)
    problems = list(ngff.problems)
    kind: DatasetKind = "group"
    images: tuple[ImageEntry, ...] = ()
    if ngff.plate is not None:
        kind = "plate"
    elif ngff.multiscales:
        kind = "labels" if ngff.image_label is not None else "image"
        images = _multiscale_entries(ngff, name, "")
    elif ngff.scene is not None:
        kind = "scene"
        images = tuple(ImageEntry(path, path) for path in scene_paths(node.attrs))
    elif ngff.well is not None:
        kind = "well"
        images = tuple(ImageEntry(f"Field {image.path}", image.path) for image in ngff.well.images)
    elif ngff.series is not None:
        kind = "series"
        images = tuple(ImageEntry(f"Series {series}" if series else name, series) for series in ngff.series)
    elif ngff.labels is not None:
        images = tuple(ImageEntry(label, label, "labels") for label in ngff.labels)
    else:
        images = _member_entries(node)
    if ngff.draft:
        problems.append(
            f"it uses {', '.join(ngff.draft)} of a draft later than OME-NGFF 0.6: "
            "only the parts that 0.6 defines are displayed"
        )
    coordinates = None if kind == "plate" else load_coordinates(node, ngff)
    if kind != "plate" and not images:
        kind = "undisplayable" if ngff else "group"
        problems.append(_no_image_reason(ngff, node))
    return Dataset(
        location,
        path,
        kind,
        name,
        node,
        images,
        ngff.plate,
        ngff.version,
        dict(node.attrs),
        tuple(problems),
        coordinates,
    )


def _describe_array(array: Any, location: str, path: str, name: str) -> Dataset:
    attributes = dict(getattr(array, "attrs", {}))
    try:
        image_from_array(array, name)
    except UnsupportedError as error:
        return Dataset(
            location, path, "undisplayable", name, array, attributes=attributes, problems=(str(error),)
        )
    return Dataset(location, path, "array", name, array, (ImageEntry(name, ""),), attributes=attributes)


def _multiscale_entries(ngff: Ngff, name: str, path: str) -> tuple[ImageEntry, ...]:
    kind: Literal["image", "labels"] = "labels" if ngff.image_label is not None else "image"
    return tuple(
        ImageEntry(multiscales.name or name, f"{path}#{number}" if number else path, kind, DECLARED)
        for number, multiscales in enumerate(ngff.multiscales)
    )


def _member_entries(group: Any) -> tuple[ImageEntry, ...]:
    """Return the images among the members of a group without OME-NGFF metadata: the direct ones, and in files of other
    formats, such as HDF5, also those of its groups.

    Arrays of rank 0 and 1, such as coordinates, are listed only if there is nothing else.
    """
    entries: list[ImageEntry] = []
    flat: list[ImageEntry] = []
    for path, node in _members(group, _is_in_file(group)):
        if hasattr(node, "dtype"):
            if is_displayable(node.dtype) and 0 not in node.shape:
                size = math.prod(node.shape)
                (entries if len(node.shape) > 1 else flat).append(ImageEntry(path, path, size=size))
        else:
            entries.extend(_multiscale_entries(image_metadata(node), path, path))
    return tuple(entries or flat)


def _members(group: Any, with_inner: bool) -> Iterator[tuple[str, Any]]:
    """Yield (path, node) of at most ``MAX_MEMBERS_INSPECTED`` members that can be opened, of the direct ones or of all.
    Members of images are omitted.
    """
    count = 0
    pending = [("", group, name) for name in reversed(member_names(group)[:MAX_MEMBERS_INSPECTED])]
    while pending and count < MAX_MEMBERS_INSPECTED:
        path, parent, name = pending.pop()
        count += 1
        try:
            node = parent[name]
        except (ZarrError, KeyError):
            continue  # the hierarchy shows the reason
        path = _join(path, name)
        yield path, node
        if with_inner and not hasattr(node, "dtype") and not image_metadata(node).multiscales:
            pending += [(path, node, inner) for inner in reversed(member_names(node)[:MAX_MEMBERS_INSPECTED])]


def _is_in_file(group: Any) -> bool:
    """Return whether a group is in a file of another format, whose members are opened without requests."""
    from zarrfs.files.foreign_store import ForeignStore  # the engine takes long to import

    return isinstance(getattr(group, "store", None), ForeignStore)


def _no_image_reason(ngff: Ngff, node: Any) -> str:
    if ngff.draft:
        return "its images are described in a way that only drafts later than OME-NGFF 0.6 define"
    if ngff.plate is not None:
        return "it is a plate: choose a well"
    if ngff.well is not None or ngff.series is not None:
        return "its metadata list no image"
    if ngff:
        return "its metadata list no image that can be opened"
    try:
        node.names()
    except StoreError:
        return (
            "The members of this group are unknown: its server does not list them. Open the URL of an array."
        )
    return "This group contains no image of its own. Double-click an array in the hierarchy."


def _member(node: Any, path: str) -> Any:
    path = path.strip("/")
    if not path:
        return node
    try:
        return node[path]
    except ZarrError:
        raise
    except (KeyError, IndexError, TypeError) as error:
        raise NodeNotFoundError(f"member {path!r} does not exist") from error


def _join(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def initial_settings(image: Image, labels: int | None = None) -> DisplaySettings:
    """Return the initial settings of an image: its default axes, position and channels, and its overlays.

    ``labels`` is the number of label images, by default the number that the image lists. A label image is its
    own first overlay and is opaque.
    """
    count = len(image.labels) if labels is None else labels
    own = (LabelsSettings(index=0, opacity=1.0),) if image.kind == "labels" else ()
    return DisplaySettings(
        displayed=image.default_displayed,
        position=image.default_position,
        channels=image.channels,
        labels=own + tuple(LabelsSettings(index=len(own) + number) for number in range(count)),
    )
