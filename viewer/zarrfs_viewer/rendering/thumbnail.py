"""Thumbnails of images, for series and plates."""

from __future__ import annotations

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.display.resolve import resolve
from zarrfs_viewer.images.dataset import initial_intent
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.renderer import FrameRenderer
from zarrfs_viewer.state.view_state import fit

__all__ = ["thumbnail"]


def thumbnail(image: Image, size: int = 128) -> Pixels:
    """Return a picture of an image at its default position, with about ``size`` pixels along the longer side.

    The picture of an image with fewer pixels is smaller. The coarsest sufficient level is read. Blocks; call it
    from a worker thread. Raises ZarrError.
    """
    rows, columns = (image.shape[axis] for axis in image.default_displayed)
    aspect = pixel_aspect(image, image.default_displayed)
    viewport = fit(size, size, rows, columns, aspect)
    state = resolve(initial_intent(image, 0), image, viewport)
    target_planes = {layer.planes[-1] for layer in state.layers}
    tiles = {
        request.key: image.read_tile(request.key)
        for request in state.tiles
        if request.key.plane in target_planes
    }
    frame = FrameRenderer().render(state, tiles.get, settled=True)
    if frame is None:
        raise RuntimeError("a settled frame is never None")
    return frame.pixels
