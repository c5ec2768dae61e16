"""Thumbnails of images, for series and plates, and contrast limits that several thumbnails share."""

from __future__ import annotations

from collections.abc import Iterable

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.display.resolve import resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.renderer import Frame, complete_frame
from zarrfs_viewer.state.view_state import fit, with_limits

__all__ = ["Limits", "own_limits", "shared_limits", "thumbnail"]

Limits = tuple[tuple[float, float] | None, ...]
"""The contrast limits of each channel; None where those of the image are used."""


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
    rows, columns = (image.shape[axis] for axis in image.default_displayed)
    aspect = pixel_aspect(image, image.default_displayed)
    viewport = fit(size, size, rows, columns, aspect)
    settings = with_limits(initial_settings(image, 0), limits)
    return complete_frame(resolve(settings, image, viewport))
