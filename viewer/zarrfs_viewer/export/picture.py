"""Rendering of a region or a view for export as a picture. The functions block; call them from a worker thread."""

from __future__ import annotations

from zarrfs_viewer.display.resolve import resolve
from zarrfs_viewer.export.writers import ExportRegion
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.renderer import Frame, complete_frame
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport, with_level_lock

__all__ = ["render_region", "render_view"]


def render_region(
    region: ExportRegion, settings: DisplaySettings, overlays: tuple[Image, ...] = ()
) -> Pixels:
    """Return the picture of a region's displayed plane, with one pixel per pixel of the level. Blocks. Raises
    ZarrError.
    """
    image, level = region.image, region.level
    row, column = (region.slices[axis] for axis in settings.displayed)
    edges = [
        image.from_level(level, axis, edge)
        for axis, span in zip(settings.displayed, (row, column), strict=True)
        for edge in (span.start, span.stop - 1)
    ]
    zooms = [1 / image.downsampling(level, axis) for axis in settings.displayed]
    height, width = row.stop - row.start, column.stop - column.start
    center = (edges[0] + edges[1]) / 2, (edges[2] + edges[3]) / 2
    # The viewport is slightly smaller than the region, so that rounding errors do not include adjacent pixels.
    viewport = Viewport(width, height, center, zooms[1] * (1 + 1e-6), zooms[0] / zooms[1])
    return render_view(image, with_level_lock(settings, level), viewport, overlays).pixels


def render_view(
    image: Image,
    settings: DisplaySettings,
    viewport: Viewport,
    overlays: tuple[Image, ...] = (),
    skip_corrupt: bool = False,
) -> Frame:
    """Return the complete frame of a viewport of any size, from the level that its zoom needs. Blocks. Raises
    ZarrError.

    With ``skip_corrupt`` corrupt chunks are hatched, and are reported in ``errors`` of the frame.
    """
    return complete_frame(resolve(settings, image, viewport, overlays), skip_corrupt)
