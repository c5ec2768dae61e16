"""From a location to what can be shown: images, their labels, plates, wells and series.

Everything here blocks on the store: call it from a worker thread. Values are frozen; arrays stay lazy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from viewer.state import ChannelSettings, ViewIntent
from viewer.tiles import PlaneKey, TileGrid, TileKey
from zarrfs.ngff import Axis, ImageLabel, Plate

__all__ = [
    "Dataset",
    "DatasetKind",
    "Field",
    "Image",
    "ImageEntry",
    "ImageLevel",
    "SourceArray",
    "initial_intent",
    "open_dataset",
]

DatasetKind = Literal["image", "labels", "plate", "well", "series", "group", "array", "unshowable"]


class SourceArray(Protocol):
    """What is needed of an array; ``zarrfs.Array`` has it, and so has a test double."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> tuple[int, ...]: ...
    def __getitem__(self, selection: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class ImageLevel:
    """One pyramid level. ``scale`` and ``translation`` lead from its pixel indices to physical units:
    ``physical = translation + scale * index``. Rank is at least two (smaller arrays are lifted).
    """

    path: str
    array: SourceArray
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of what is decoded as one: the inner chunk where the array is sharded."""
        return self.array.chunks


@dataclass(frozen=True, eq=False)
class Image:
    """One thing that can be shown as a picture, with its pyramid (level 0 is the finest).

    ``uid`` is unique in the process. ``channel_axis`` is None where there is none; ``rgb_axis`` is set where the
    samples of one pixel lie along an axis and are shown as RGB(A). ``channels`` are the settings to begin with
    (``limits`` None: auto-contrast is to choose). ``labels`` name its label images. ``notes`` say what was odd.
    """

    uid: int
    name: str
    path: str
    kind: Literal["image", "labels"]
    axes: tuple[Axis, ...]
    levels: tuple[ImageLevel, ...]
    channels: tuple[ChannelSettings, ...]
    channel_axis: int | None = None
    rgb_axis: int | None = None
    default_position: tuple[float, ...] = ()
    default_displayed: tuple[int, int] = (0, 1)
    labels: tuple[ImageEntry, ...] = ()
    image_label: ImageLabel | None = None
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of level 0."""
        return self.levels[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.levels[0].array.dtype

    @property
    def slider_axes(self) -> tuple[int, ...]:
        """Axes that can carry a slider or be displayed: all but those of channels and RGB samples."""
        raise NotImplementedError

    def to_physical(self, axis: int, value: float) -> float:
        """Return the physical coordinate of a data coordinate (in ``axes[axis].unit``)."""
        raise NotImplementedError

    def to_level(self, level: int, axis: int, value: float) -> float:
        """Return where a data coordinate lies among the pixels of a level (not rounded, not clipped)."""
        raise NotImplementedError

    def from_level(self, level: int, axis: int, value: float) -> float:
        """Return the data coordinate of a (fractional) pixel index of a level."""
        raise NotImplementedError

    def grid(self, level: int, displayed: tuple[int, int]) -> TileGrid:
        """Return how planes of that level are cut into tiles."""
        raise NotImplementedError

    def read_tile(self, key: TileKey) -> np.ndarray[Any, Any]:
        """Read one tile: (rows, columns), or (rows, columns, samples) for RGB; native byte order, C-contiguous,
        owned by the caller. Blocks. Raises ZarrError.
        """
        raise NotImplementedError

    def read_plane(self, plane: PlaneKey) -> np.ndarray[Any, Any]:
        """Read a whole plane, laid out as in ``read_tile``. Blocks."""
        raise NotImplementedError


@dataclass(frozen=True)
class ImageEntry:
    """An image that can be opened: ``path`` within the dataset, for ``Dataset.open_image``."""

    name: str
    path: str
    kind: Literal["image", "labels"] = "image"


@dataclass(frozen=True)
class Field:
    """One field of view of a well: ``path`` within the dataset; ``acquisition`` where the plate tells them apart."""

    path: str
    acquisition: int | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a location holds.

    ``node`` is the engine's Array or Group, None where nothing could be opened at all. ``images`` are what to
    choose among (one for a plain image, several for a series; for a plate they come from ``fields``).
    ``problems`` say, in sentences, what cannot be shown and why; ``attributes`` can be shown in any case.
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
        """Open an image by its entry's path (by default the first). Blocks. Raises ZarrError saying why not."""
        raise NotImplementedError

    def open_labels(self, image: Image) -> tuple[Image, ...]:
        """Open the label images of an image, in the order of ``image.labels``; those that cannot be opened are
        left out. Blocks."""
        raise NotImplementedError

    def fields(self, well: str) -> tuple[Field, ...]:
        """Return the fields of the well at that path of a plate (one metadata read). Blocks."""
        raise NotImplementedError


def open_dataset(location: str, path: str = "") -> Dataset:
    """Find out what is at a location. Never raises for what is merely not an image: ``kind`` and ``problems`` say.

    Raises ZarrError where nothing can be opened at all.
    """
    raise NotImplementedError


def initial_intent(image: Image, labels: int = 0) -> ViewIntent:
    """Return how an image is shown at first: its default axes, position, channels, and ``labels`` overlays."""
    raise NotImplementedError
