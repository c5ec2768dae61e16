"""Linked panes, which display orthogonal planes through one point: their axes and viewports. Pure functions."""

from __future__ import annotations

from dataclasses import replace

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings, Projection, Viewport

__all__ = ["complementary_slab", "depth_axis", "linked_axes", "linked_orientations", "linked_viewport"]

AxisPair = tuple[int, int]
"""(row axis, column axis)"""

Orientation = tuple[int, bool]
"""(clockwise quarter turns, mirrored before)"""

SLAB_THICKNESS = 10.0
"""Slices of level 0."""


def depth_axis(image: Image, displayed: AxisPair) -> int | None:
    """Return the third axis of linked panes: the last spatial axis that is not displayed, otherwise the last other
    axis. Axes of length 1 are ignored. None if there is no such axis.
    """
    candidates = [axis for axis in image.slider_axes if axis not in displayed and image.shape[axis] > 1]
    spatial = [axis for axis in candidates if image.axes[axis].type == "space"]
    return next(iter((spatial or candidates)[::-1]), None)


def linked_axes(image: Image, displayed: AxisPair, turns: int = 0) -> tuple[AxisPair, AxisPair] | None:
    """Return the axes of the right pane and of the bottom pane, or None if there is no third axis.

    ``turns`` are the quarter turns of the main pane. The right pane has the vertical axis of the main pane as rows, the
    bottom pane has its horizontal axis as columns.
    """
    depth = depth_axis(image, displayed)
    if depth is None:
        return None
    vertical, horizontal = displayed[::-1] if turns % 2 else displayed
    return (vertical, depth), (depth, horizontal)


def linked_orientations(turns: int, mirrored: bool) -> tuple[Orientation, Orientation]:
    """Return the orientations (quarter turns, mirrored) of the right pane and the bottom pane, given that of the main
    pane. Positions along a common axis increase in the same direction; the depth increases to the right and down.
    """
    row, column = (0, 1), (-1 if mirrored else 1, 0)
    for _ in range(turns % 4):
        row, column = (-row[1], row[0]), (-column[1], column[0])
    is_reversed_down = row[1] < 0 or column[1] < 0
    is_reversed_across = row[0] < 0 or column[0] < 0
    return (2, True) if is_reversed_down else (0, False), (0, is_reversed_across)


def complementary_slab(image: Image, settings: DisplaySettings) -> DisplaySettings:
    """Return the settings of the fourth pane: a maximum projection of a slab around the slice.

    If the settings already has a projection, the result displays its slice without a projection.
    """
    if settings.projection is not None:
        return replace(settings, projection=None)
    depth = depth_axis(image, settings.displayed)
    if depth is None:
        return settings
    return replace(settings, projection=Projection(depth, "max", SLAB_THICKNESS))


def linked_viewport(
    image: Image,
    leader_axes: AxisPair,
    leader: Viewport,
    follower_axes: AxisPair,
    follower: Viewport,
) -> Viewport:
    """Return the viewport of a follower pane after the leader's viewport has changed.

    The result has the leader's zoom, and the leader's centre along the axis that both panes display.
    """
    if follower_axes == leader_axes:
        return replace(leader, width=follower.width, height=follower.height)
    shared = next((axis for axis in follower_axes if axis in leader_axes), None)
    if shared is None:
        return follower
    leader_side, follower_side = leader_axes.index(shared), follower_axes.index(shared)
    scale = leader.zooms[leader_side]
    aspect = pixel_aspect(image, follower_axes)
    center = list(follower.center)
    center[follower_side] = leader.center[leader_side]
    return replace(
        follower,
        center=(center[0], center[1]),
        zoom=scale if follower_side == 1 else scale / aspect,
        aspect=aspect,
    )
