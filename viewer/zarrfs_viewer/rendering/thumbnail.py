"""Thumbnails of images, for series and plates, and contrast limits that several thumbnails share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.display.resolve import DisplayState, resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.values import component
from zarrfs_viewer.rendering.compose import OPAQUE, Pixels, compose
from zarrfs_viewer.rendering.contrast import auto_limits
from zarrfs_viewer.rendering.renderer import Frame, complete_frame
from zarrfs_viewer.rendering.sampling import sample_plane
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings, fit, with_limits

__all__ = ["Limits", "ThumbnailValues", "own_limits", "read_thumbnail", "shared_limits", "thumbnail"]

Limits = tuple[tuple[float, float] | None, ...]
"""The contrast limits of each channel; None where those of the image are used."""


@dataclass(frozen=True, eq=False)
class ThumbnailValues:
    """The values of the channels of an image on the grid of a thumbnail: other settings need no further reads.

    ``channels`` are the settings of the image, with limits. An image without channels, or of colours, has ``picture``.
    """

    channels: tuple[ChannelSettings, ...]
    planes: tuple[npt.NDArray[Any], ...]
    picture: Pixels | None = None

    def pixels(self, channels: Sequence[ChannelSettings]) -> Pixels:
        """Return the picture with the settings of the channels. Those that the image does not have are ignored."""
        if self.picture is not None:
            return self.picture
        numbers = {(channel.index, channel.field): number for number, channel in enumerate(self.channels)}
        solo = [channel for channel in channels if channel.solo]
        drawn = [
            (self.planes[numbers[channel.index, channel.field]], channel)
            for channel in solo or [channel for channel in channels if channel.visible]
            if (channel.index, channel.field) in numbers
        ]
        if not drawn:
            return np.full(self.planes[0].shape, OPAQUE, np.uint32)
        return compose([plane for plane, _ in drawn], [channel for _, channel in drawn])


def read_thumbnail(image: Image, size: int = 128, limits: Limits = ()) -> ThumbnailValues:
    """Return the values of a thumbnail of all channels; see ``thumbnail``. Blocks. Raises ZarrError."""
    if image.rgb_axis is not None or not image.channels:
        return ThumbnailValues((), (), thumbnail(image, size, limits))
    settings = with_limits(initial_settings(image, 0), limits)
    all_visible = tuple(replace(channel, visible=True, solo=False) for channel in settings.channels)
    state = _state(image, size, replace(settings, channels=all_visible))
    channels, planes = [], []
    for layer, channel in zip(state.layers, settings.channels, strict=True):
        plane = layer.planes[-1]
        paint = sample_plane(image, image, plane, settings.displayed, state.grid, image.read_tile)
        buffer, _ = paint(None)
        values = np.zeros(state.grid.shape, image.dtype) if buffer is None else buffer.values
        planes.append(values)
        own = channel.limits or auto_limits(component(values, channel.component, channel.field))
        channels.append(replace(channel, limits=own))
    return ThumbnailValues(tuple(channels), tuple(planes))


def thumbnail(image: Image, size: int = 128, limits: Limits = ()) -> Pixels:
    """Return a picture of an image at its default position, with about ``size`` pixels along the longer side.

    The picture of an image with fewer pixels is smaller. The coarsest sufficient level is read. Blocks; call it
    from a worker thread. Raises ZarrError. ``limits`` replace the contrast limits of the metadata and automatic ones.
    """
    return _frame(image, size, limits).pixels


def own_limits(image: Image, size: int = 128) -> Limits:
    """Return the contrast limits of an image, by its metadata or automatic ones. Blocks. Raises ZarrError."""
    drawn = {(channel.index, channel.field): channel.limits for channel in _frame(image, size, ()).channels}
    return tuple(drawn.get((channel.index, channel.field)) for channel in image.channels)


def shared_limits(images: Iterable[Limits]) -> Limits:
    """Return limits that include those of all images. Images with another number of channels are ignored."""
    shared: Limits = ()
    for limits in images:
        if not shared:
            shared = limits
        elif len(limits) == len(shared):
            shared = tuple(_union(a, b) for a, b in zip(shared, limits, strict=True))
    return shared


def _union(a: tuple[float, float] | None, b: tuple[float, float] | None) -> tuple[float, float] | None:
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])


def _frame(image: Image, size: int, limits: Limits) -> Frame:
    return complete_frame(_state(image, size, with_limits(initial_settings(image, 0), limits)))


def _state(image: Image, size: int, settings: DisplaySettings) -> DisplayState:
    rows, columns = (image.shape[axis] for axis in image.default_displayed)
    aspect = pixel_aspect(image, image.default_displayed)
    return resolve(settings, image, fit(size, size, rows, columns, aspect))
