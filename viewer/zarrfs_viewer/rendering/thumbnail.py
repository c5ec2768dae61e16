"""Small pictures of images, for choosing among series and for plates. Reads the coarsest level that
serves.
"""

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
    """Return a picture of about ``size`` pixels along its longer side (less for a small image), at the
    image's default position. Blocks: call it from a worker. Raises ZarrError.
    """
    rows, columns = (image.shape[axis] for axis in image.default_displayed)
    aspect = pixel_aspect(image, image.default_displayed)
    viewport = fit(size, size, rows, columns, aspect)
    state = resolve(initial_intent(image, 0), image, viewport)
    target = {layer.planes[-1] for layer in state.layers}
    tiles = {
        request.key: image.read_tile(request.key) for request in state.tiles if request.key.plane in target
    }
    frame = FrameRenderer().render(state, tiles.get, settled=True)
    if frame is None:
        raise RuntimeError("a settled frame is never None")
    return frame.pixels
