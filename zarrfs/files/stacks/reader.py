"""Files that contain the planes or volumes of one image: a stack with positions by name, or the files of an OME-TIFF.

A file is opened when its values are read, so that the memory and the descriptors of a stack do not grow with the number
of its files.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrfs
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import LocationError, LocationNotFoundError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import path_stamp
from zarrfs.files.foreign_array import ForeignArray
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis, image_axes, image_nodes
from zarrfs.files.stacks.names import StackLayout, natural_order, stack_layout
from zarrfs.ngff.parse import parse

__all__ = ["DEFAULT_NAMES", "STACK_SUFFIXES", "files_of_directory", "open_image_stack"]

STACK_SUFFIXES = ((".tif", ".tiff"), (".png",), (".jpg", ".jpeg"))
"""The suffixes of the files that are found in a directory. Those of one group are of one format."""

DEFAULT_NAMES = "tczyx"
"""The names of the dimensions of an array without metadata are the last ones of these."""

UNNAMED = ("q", "i")
"""The names of the dimension of the pages of a TIFF file that does not state their meaning."""

MAX_OPEN_FILES = 8

Opener = Callable[[str], Any]


@dataclass(frozen=True)
class _Image:
    """The image of one file, with the channel metadata and the colours of labels of OME-NGFF, or None.

    The file is open while ``store`` is referred to.
    """

    store: ForeignStore
    array: ForeignArray
    axes: tuple[ImageAxis, ...]
    omero: dict[str, Any] | None = None
    label: dict[str, Any] | None = None


def files_of_directory(directory: str) -> list[str]:
    """Return the image files of a directory: TIFF, PNG or JPEG. Hidden files are ignored.

    Raises LocationNotFoundError if there are none, and UnsupportedError if they have several formats.
    """
    try:
        names = [entry.name for entry in os.scandir(directory) if entry.name[0] != "." and entry.is_file()]
    except OSError as error:
        raise LocationError(f"{directory} cannot be listed: {error.strerror or error}") from error
    found = [[name for name in names if name.lower().endswith(suffixes)] for suffixes in STACK_SUFFIXES]
    kinds = [files for files in found if files]
    if not kinds:
        raise LocationNotFoundError(
            f"{directory} contains neither a Zarr hierarchy nor TIFF, PNG or JPEG files; name the files of "
            f"subdirectories with a pattern, such as {directory}/*/*.tif"
        )
    if len(kinds) > 1:
        raise UnsupportedError(
            f"{directory} contains files of several formats, such as {min(kinds[0])} and {min(kinds[1])}; select those "
            f"of the stack with a pattern, such as {directory}/*{os.path.splitext(kinds[0][0])[1]}"
        )
    return sorted((os.path.join(directory, name) for name in kinds[0]), key=natural_order)


def open_image_stack(
    paths: Sequence[str], opener: Opener, pattern: str | None = None, how_to_name: str = "pattern"
) -> ForeignStore:
    """Return a store with the image that several files contain. ``opener`` opens one of them.

    The positions of the files along t, c and z are those in their names, see ``stack_names``; these axes precede those
    of the files. If the first file is an OME-TIFF that states which files contain the parts of its images, these are
    the images instead, and ``pattern`` is not used. ``description`` of the store states what was recognized.

    Raises LocationError for damaged and missing files, UnsupportedError for files that differ or whose names are not
    clear, and OptionError for a pattern that is not valid.
    """
    first: ForeignStore = opener(paths[0])
    if len(first.files) > 1 and pattern is None:
        _check_set(first, paths)
        return first
    directory = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    by_name = {os.path.relpath(path, directory).replace(os.sep, "/"): path for path in paths}
    layout = stack_layout(list(by_name), pattern, how_to_name)
    files = [by_name[name] for name in layout.files]
    image, channels = _check_equal(files, opener, layout)
    taken = {axis.name for axis in image.axes} & set(layout.axes)
    if taken:
        axis = min(taken)
        raise UnsupportedError(
            f"{files[0]}: both the file and its name have positions along {axis}, by the pattern {layout.pattern}; "
            f"correct {how_to_name}"
        )
    store = ForeignStore(
        f"file://{os.path.abspath(files[0])}",
        _nodes(image, files, opener, layout, channels),
        lambda: path_stamp(files[0]),
        lambda: None,
    )
    store.ignored_metadata = first.ignored_metadata
    store.description = str(layout)
    return store


def _check_set(store: ForeignStore, paths: Sequence[str]) -> None:
    """Raise UnsupportedError if some of the files do not belong to the images of an OME-TIFF."""
    members = {os.path.realpath(file) for file in store.files}
    others = [path for path in paths if os.path.realpath(path) not in members]
    if others:
        raise UnsupportedError(
            f"{others[0]} does not belong to the OME-TIFF of {paths[0]}, whose images are in {len(members)} files; "
            "import the files of each image, or one of them, without the others"
        )


def _check_equal(
    files: Sequence[str], opener: Opener, layout: StackLayout
) -> tuple[_Image, list[dict[str, Any]]]:
    """Return the image of the first file, and the metadata of each channel, from its first file.

    Raises UnsupportedError if the images of the files differ in their shape, data type or axes.
    """
    first: _Image | None = None
    channels: list[dict[str, Any]] = []
    for position, file in zip(np.ndindex(*layout.shape), files, strict=True):
        image = _image_of(opener(file), file, layout.axes)
        if first is None:
            first = image
        expected, found = _described(first), _described(image)
        if found != expected:
            raise UnsupportedError(f"{file} differs from {files[0]}: found {found}, expected {expected}")
        if not any(at for axis, at in zip(layout.axes, position, strict=True) if axis != "c"):
            listed = (image.omero or {}).get("channels")
            channels.append(dict(listed[0]) if isinstance(listed, list) and len(listed) == 1 else {})
    if first is None:
        raise LocationNotFoundError("a stack has at least one file")
    return first, channels


def _described(image: _Image) -> str:
    names = "".join(axis.name for axis in image.axes)
    return f"shape {image.array.shape}, data type {image.array.dtype.name}, axes {names}"


def _image_of(store: Any, file: str, outer: str) -> _Image:
    """Return the one image of a file, without its axes of length 1 that are axes of the stack (``outer``)."""
    if not isinstance(store, ForeignStore):
        raise UnsupportedError(f"{file} is not an image file; a stack consists of image files")
    node = zarrfs.open(store, mode="r", cache_size=0)
    if isinstance(node, Array):
        axes = [ImageAxis(name) for name in DEFAULT_NAMES[-node.ndim :]]
        return _without(_Image(store, store.arrays[""], tuple(axes)), outer)
    images = parse(node.attrs).multiscales if isinstance(node, Group) else ()
    if len(images) != 1:
        raise UnsupportedError(f"{file} does not contain exactly one image, as the files of a stack do")
    array = store.arrays.get(images[0].levels[0].path)
    if array is None:
        raise UnsupportedError(f"{file} contains no image that can be read")
    axes = image_axes(images[0], len(array.shape))
    names = [axis.name for axis in axes]
    free = [name for name in "zt" if name not in outer and name not in names]
    axes = [axis._replace(name=free.pop(0)) if axis.name in UNNAMED and free else axis for axis in axes]
    ome = node.attrs.get("ome", {})
    return _without(_Image(store, array, tuple(axes), ome.get("omero"), ome.get("image-label")), outer)


def _without(image: _Image, outer: str) -> _Image:
    """Return an image without its axes of length 1 that are axes of the stack."""
    whole = image.array
    kept = [
        number for number, axis in enumerate(image.axes) if axis.name not in outer or whole.shape[number] != 1
    ]
    if len(kept) == len(image.axes):
        return image
    dropped = tuple(number for number in range(len(image.axes)) if number not in kept)

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        full = [slice(0, 1)] * len(image.axes)
        for number, part in zip(kept, region, strict=True):
            full[number] = part
        return whole.read(tuple(full)).squeeze(dropped)

    array = ForeignArray(
        tuple(whole.shape[number] for number in kept),
        tuple(whole.chunks[number] for number in kept),
        whole.dtype,
        read,
    )
    return replace(image, array=array, axes=tuple(image.axes[number] for number in kept))


def _nodes(
    image: _Image, files: list[str], opener: Opener, layout: StackLayout, channels: list[dict[str, Any]]
) -> dict[str, Any]:
    count = len(layout.shape)
    reader = _StackReader(files, opener, layout, image)
    array = ForeignArray(
        (*layout.shape, *image.array.shape),
        (*(1 for _ in layout.shape), *image.array.chunks),
        image.array.dtype,
        reader.read,
        stamp=lambda coordinates: path_stamp(reader.file(coordinates[:count])),
    )
    axes = [*map(ImageAxis, layout.axes), *image.axes]
    title = os.path.splitext(os.path.basename(files[0]))[0].removesuffix(".ome")
    nodes: dict[str, Any] = {**image_nodes(array, axes, title)}
    omero = image.omero
    if "c" in layout.axes:
        names = [re.sub(r"^\d+[ _-]?", "", text) for text in layout.values[layout.axes.index("c")]]
        named = [
            {**channel, "label": name} if name else channel
            for channel, name in zip(channels, names, strict=True)
        ]
        omero = {"channels": named} if any(named) else None
    if omero is not None:
        nodes[""]["ome"]["omero"] = omero
    if image.label is not None:
        nodes[""]["ome"]["image-label"] = image.label
    return nodes


class _StackReader:
    """Reads regions of a stack. Few files are open at a time. Safe to use from several threads."""

    def __init__(self, files: list[str], opener: Opener, layout: StackLayout, image: _Image) -> None:
        self._files, self._opener, self._layout, self._image = files, opener, layout, image
        self._opened: OrderedDict[tuple[str, Any], _Image] = OrderedDict()
        self._lock = threading.Lock()

    def file(self, position: Sequence[int]) -> str:
        """Return the path of the file at a position along the axes of the stack."""
        return self._files[int(np.ravel_multi_index(tuple(position), self._layout.shape))]

    def read(self, region: tuple[slice, ...]) -> npt.NDArray[Any]:
        outer, inner = region[: len(self._layout.shape)], region[len(self._layout.shape) :]
        out = np.empty([part.stop - part.start for part in region], self._image.array.dtype)
        for index in np.ndindex(*out.shape[: len(outer)]):
            file = self.file([part.start + at for part, at in zip(outer, index, strict=True)])
            image = self._open(file)
            out[index] = image.array.read(inner)
        return out

    def _open(self, file: str) -> _Image:
        version = file, path_stamp(file)
        with self._lock:
            image = self._opened.get(version)
            if image is not None:
                self._opened.move_to_end(version)
                return image
        try:
            image = _image_of(self._opener(file), file, self._layout.axes)
        except ZarrError as error:
            raise OSError(0, f"{error}") from error
        expected, found = _described(self._image), _described(image)
        if found != expected:
            raise OSError(0, f"{file} has changed: found {found}, expected {expected}")
        with self._lock:
            self._opened[version] = image
            # The last user of a file closes it: its store is finalized.
            while len(self._opened) > MAX_OPEN_FILES:
                self._opened.popitem(last=False)
        return image
