"""Where one image lies on another: axes matched by name, positions by physical coordinates. Pure.

Every mapping is affine per axis, given as (factor, offset): ``pixel = factor * data_coordinate + offset``.
"""

from __future__ import annotations

from dataclasses import replace

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import Projection, ViewIntent

__all__ = ["level_map", "match_axes", "translate_intent"]


def match_axes(front: Image, other: Image) -> tuple[int | None, ...]:
    """Return for each axis of ``other`` the axis of ``front`` of the same name; of images without names that
    fit, the axes are matched from the last one.
    """
    if front is other:
        return tuple(range(len(front.axes)))
    names = {axis.name.lower(): number for number, axis in enumerate(front.axes)}
    matched = tuple(names.get(axis.name.lower()) for axis in other.axes)
    if sum(axis is not None for axis in matched) >= 2:
        return matched
    shift = len(front.axes) - len(other.axes)
    return tuple(number + shift if number + shift >= 0 else None for number in range(len(other.axes)))


def level_map(front: Image, other: Image, level: int, front_axis: int, axis: int) -> tuple[float, float]:
    """Return how a data coordinate of ``front`` becomes a pixel of a level of ``other``."""
    target = other.levels[level]
    scale, translation = target.scale[axis], target.translation[axis]
    base = other.levels[0] if _coincide(front, other, front_axis, axis) else front.levels[0]
    base_axis = axis if base is other.levels[0] else front_axis
    return base.scale[base_axis] / scale, (base.translation[base_axis] - translation) / scale


def _coincide(front: Image, other: Image, front_axis: int, axis: int) -> bool:
    """Whether pixels are to be matched one to one: same length, and one of the two declares no scale of its
    own.
    """
    if front is other:
        return True
    first, second = front.levels[0], other.levels[0]
    plain = (1.0, 0.0)
    declared = (first.scale[front_axis], first.translation[front_axis])
    theirs = (second.scale[axis], second.translation[axis])
    return first.shape[front_axis] == second.shape[axis] and plain in (declared, theirs)


def translate_intent(intent: ViewIntent, front: Image, other: Image) -> ViewIntent | None:
    """Return the intent in ``other``'s own axes and data coordinates; None where it lacks a displayed axis.

    Axes that only ``other`` has stay at its default position. Channels are not translated.
    """
    if front is other:
        return intent
    matched = match_axes(front, other)
    try:
        displayed = matched.index(intent.displayed[0]), matched.index(intent.displayed[1])
    except ValueError:
        return None
    position = list(other.default_position)
    for axis, front_axis in enumerate(matched):
        if front_axis is not None:
            factor, offset = level_map(front, other, 0, front_axis, axis)
            position[axis] = factor * intent.position[front_axis] + offset
    return replace(
        intent,
        displayed=displayed,
        position=tuple(position),
        projection=_translate_projection(intent.projection, front, other, matched),
    )


def _translate_projection(
    projection: Projection | None, front: Image, other: Image, matched: tuple[int | None, ...]
) -> Projection | None:
    """Return the slab in ``other``'s axes. Labels are always projected by maximum: a mean label means
    nothing.
    """
    if projection is None or projection.axis not in matched:
        return None
    axis = matched.index(projection.axis)
    factor, _ = level_map(front, other, 0, projection.axis, axis)
    mode = "max" if other.kind == "labels" else projection.mode
    return Projection(axis, mode, projection.thickness * abs(factor))
