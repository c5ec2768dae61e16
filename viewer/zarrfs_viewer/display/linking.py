"""Panes that show the same point from three sides: which axes each shows, and how their windows follow. Pure."""

from __future__ import annotations

from dataclasses import replace

from zarrfs_viewer.display.levels import pixel_aspect
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import Viewport

__all__ = ["depth_axis", "linked_axes", "linked_viewport"]

Pair = tuple[int, int]


def depth_axis(image: Image, displayed: Pair) -> int | None:
    """Return the axis that a linked view is cut along: the last spatial one that is not displayed, else the last
    other one; None where none is longer than one.
    """
    left = [axis for axis in image.slider_axes if axis not in displayed and image.shape[axis] > 1]
    spatial = [axis for axis in left if image.axes[axis].type == "space"]
    return next(iter((spatial or left)[::-1]), None)


def linked_axes(image: Image, displayed: Pair) -> tuple[Pair, Pair] | None:
    """Return what the pane at the right and the one below show: (row axis, column axis) each. Rows run on into the
    right one, columns into the one below. None where there is no third axis.
    """
    depth = depth_axis(image, displayed)
    if depth is None:
        return None
    rows, columns = displayed
    return (rows, depth), (depth, columns)


def linked_viewport(
    image: Image, leader: Pair, leading: Viewport, follower: Pair, following: Viewport
) -> Viewport:
    """Return the follower's window after the leader's has changed: the same scale, and the same centre along the
    axis that both show.
    """
    shared = next((axis for axis in follower if axis in leader), None)
    if shared is None:
        return following
    side, own = leader.index(shared), follower.index(shared)
    scale = leading.zooms[side]
    aspect = pixel_aspect(image, follower)
    center = list(following.center)
    center[own] = leading.center[side]
    return replace(
        following,
        center=(center[0], center[1]),
        zoom=scale if own == 1 else scale / aspect,
        aspect=aspect,
    )
