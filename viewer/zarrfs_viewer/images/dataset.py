"""From a location to what can be shown: images, their labels, plates, wells and series.

Everything here blocks on the store: call it from a worker thread. Values are frozen; arrays stay lazy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import zarrfs
from zarrfs.errors import NodeNotFoundError, UnsupportedError, ZarrError
from zarrfs.ngff import Ngff, Plate, load
from zarrfs_viewer.images.image import Image, ImageEntry, ImageLevel
from zarrfs_viewer.images.open_image import image_from_array, image_from_multiscales
from zarrfs_viewer.images.reading import SourceArray
from zarrfs_viewer.images.values import is_showable
from zarrfs_viewer.state.view_state import LabelsSettings, ViewIntent

__all__ = [
    "Dataset",
    "DatasetKind",
    "Field",
    "Image",
    "ImageEntry",
    "ImageLevel",
    "SourceArray",
    "describe",
    "initial_intent",
    "open_dataset",
]

DatasetKind = Literal["image", "labels", "plate", "well", "series", "group", "array", "unshowable"]

MAX_MEMBERS_INSPECTED = 64
"""Of a group without OME-NGFF metadata, so many members are looked at in search of something to show."""


@dataclass(frozen=True)
class Field:
    """One field of view of a well: ``path`` within the dataset; ``acquisition`` where the plate tells them
    apart.
    """

    path: str
    acquisition: int | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a location holds.

    ``node`` is the engine's Array or Group. ``images`` are what to choose among: one for a plain image,
    several for a series or a well, none for a plate, whose images come from ``fields``. ``problems`` say, in
    sentences, what cannot be shown and why; ``attributes`` can be shown in any case.
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

    def open_image(self, path: str | None = None) -> Image:
        """Open an image by its entry's path (by default the first). Blocks. Raises ZarrError saying why not.

        Any path below the dataset will do, of an array, a multiscale or a label image. ``PATH#2`` is the
        third multiscale of a group.
        """
        if path is None:
            if not self.images:
                reason = " ".join(self.problems) or f"it is a {self.kind}"
                raise UnsupportedError(f"{self.location}: there is no image to show: {reason}")
            path = self.images[0].path
        inner, _, number = path.partition("#")
        node = _member(self.node, inner)
        name = inner.rpartition("/")[2] or self.name
        if hasattr(node, "dtype"):
            return image_from_array(node, name, path)
        ngff = load(node)
        index = int(number) if number.isdigit() else 0
        if index >= len(ngff.multiscales):
            raise NodeNotFoundError(
                f"{self.location}: {path or 'the group'!r} has no image: {_why_not(ngff)}"
            )
        return image_from_multiscales(node, ngff, index, name, path)

    def open_labels(
        self, image: Image, on_problem: Callable[[str], object] | None = None
    ) -> tuple[Image, ...]:
        """Open the label images of an image, in the order of ``image.labels``; those that cannot be opened are
        left out, and ``on_problem`` is told why. Blocks.
        """
        opened = []
        for entry in image.labels:
            try:
                opened.append(self.open_image(_join(image.path.partition("#")[0], entry.path)))
            except ZarrError as error:
                if on_problem is not None:
                    on_problem(f"labels {entry.name!r} cannot be shown: {error}")
        return tuple(opened)

    def fields(self, well: str) -> tuple[Field, ...]:
        """Return the fields of the well at that path of a plate (one metadata read). Blocks. Raises
        ZarrError.
        """
        found = load(_member(self.node, well)).well
        if found is None:
            raise NodeNotFoundError(
                f"{self.location}: {well!r} has no well metadata, so its fields are not known"
            )
        return tuple(Field(_join(well, image.path), image.acquisition) for image in found.images)


def open_dataset(location: Any, path: str = "") -> Dataset:
    """Find out what is at a location (path, URL, or store). Never raises for what is merely not an image:
    ``kind`` and ``problems`` say. Raises ZarrError where nothing can be opened at all.
    """
    return describe(zarrfs.open(location, path), str(location), path)


def describe(node: Any, location: str = "", path: str = "") -> Dataset:
    """Find out what an opened node is."""
    name = (path or location).rstrip("/").rpartition("/")[2]
    if hasattr(node, "dtype"):
        return _describe_array(node, location, path, name)
    ngff = load(node)
    problems = list(ngff.problems)
    kind: DatasetKind = "group"
    images: tuple[ImageEntry, ...] = ()
    if ngff.plate is not None:
        kind = "plate"
    elif ngff.multiscales:
        kind = "labels" if ngff.image_label is not None else "image"
        images = _multiscale_entries(ngff, name, "")
    elif ngff.well is not None:
        kind = "well"
        images = tuple(ImageEntry(f"Field {image.path}", image.path) for image in ngff.well.images)
    elif ngff.series is not None:
        kind = "series"
        images = tuple(ImageEntry(f"Series {series}" if series else name, series) for series in ngff.series)
    elif ngff.labels is not None:
        images = tuple(ImageEntry(label, label, "labels") for label in ngff.labels)
    else:
        images = _plain_members(node)
    if ngff.draft:
        problems.append(
            f"it uses {', '.join(ngff.draft)} of a draft later than OME-NGFF 0.5: "
            "shown is what 0.5 has in common with it"
        )
    if kind != "plate" and not images:
        kind = "unshowable" if ngff else "group"
        problems.append(_why_not(ngff))
    return Dataset(
        location, path, kind, name, node, images, ngff.plate, ngff.version, dict(node.attrs), tuple(problems)
    )


def _describe_array(array: Any, location: str, path: str, name: str) -> Dataset:
    attributes = dict(getattr(array, "attrs", {}))
    try:
        image_from_array(array, name)
    except UnsupportedError as error:
        return Dataset(
            location, path, "unshowable", name, array, attributes=attributes, problems=(str(error),)
        )
    return Dataset(location, path, "array", name, array, (ImageEntry(name, ""),), attributes=attributes)


def _multiscale_entries(ngff: Ngff, name: str, path: str) -> tuple[ImageEntry, ...]:
    kind: Literal["image", "labels"] = "labels" if ngff.image_label is not None else "image"
    return tuple(
        ImageEntry(multiscales.name or name, f"{path}#{number}" if number else path, kind)
        for number, multiscales in enumerate(ngff.multiscales)
    )


def _plain_members(group: Any) -> tuple[ImageEntry, ...]:
    """Return what can be shown directly below a group without OME-NGFF metadata."""
    entries: list[ImageEntry] = []
    for number, (name, node) in enumerate(group.members()):
        if number == MAX_MEMBERS_INSPECTED:
            break
        if hasattr(node, "dtype"):
            if is_showable(node.dtype) and 0 not in node.shape:
                entries.append(ImageEntry(name, name))
        else:
            entries.extend(_multiscale_entries(load(node), name, name))
    return tuple(entries)


def _why_not(ngff: Ngff) -> str:
    if ngff.draft:
        return "its images are described in a way that only drafts later than OME-NGFF 0.5 know"
    if ngff.plate is not None:
        return "it is a plate: choose a well"
    if ngff.well is not None or ngff.series is not None:
        return "no image is listed in it"
    if ngff:
        return "its metadata list nothing that could be opened"
    return "it is a group without image metadata, and no array directly in it can be drawn"


def _member(node: Any, path: str) -> Any:
    path = path.strip("/")
    if not path:
        return node
    try:
        return node[path]
    except ZarrError:
        raise
    except (KeyError, IndexError, TypeError) as error:
        raise NodeNotFoundError(f"there is no member {path!r}") from error


def _join(*parts: str) -> str:
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def initial_intent(image: Image, labels: int | None = None) -> ViewIntent:
    """Return how an image is shown at first: its default axes, position and channels, and its ``labels``
    overlays (by default as many as it names; a label image is its own first overlay, opaque).
    """
    count = len(image.labels) if labels is None else labels
    own = (LabelsSettings(index=0, opacity=1.0),) if image.kind == "labels" else ()
    return ViewIntent(
        displayed=image.default_displayed,
        position=image.default_position,
        channels=image.channels,
        labels=own + tuple(LabelsSettings(index=len(own) + number) for number in range(count)),
    )
