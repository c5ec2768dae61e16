"""Registration of an overlay with the front image: axes by name, positions by physical coordinates.

Pure functions. Mappings are affine per axis, as (factor, offset): ``pixel = factor * data_coordinate + offset``.
"""

from __future__ import annotations

from dataclasses import replace

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings, Projection

__all__ = ["level_map", "match_axes", "translate_settings"]


def match_axes(front: Image, other: Image) -> tuple[int | None, ...]:
    """Return for each axis of ``other`` the axis of ``front`` with the same name, or None.

    If fewer than two names match, the axes are matched by position, from the last axis.
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
    """Return the mapping of data coordinates of ``front`` to pixels of a level of ``other``."""
    target = other.levels[level]
    scale, translation = target.scale[axis], target.translation[axis]
    base = other.levels[0] if _coincide(front, other, front_axis, axis) else front.levels[0]
    base_axis = axis if base is other.levels[0] else front_axis
    return base.scale[base_axis] / scale, (base.translation[base_axis] - translation) / scale


def _coincide(front: Image, other: Image, front_axis: int, axis: int) -> bool:
    """Return whether pixels are matched by index: the lengths are equal, and one image declares no scale."""
    if front is other:
        return True
    if front.is_placed and other.is_placed:
        return False
    first, second = front.levels[0], other.levels[0]
    identity = (1.0, 0.0)
    first_transform = (first.scale[front_axis], first.translation[front_axis])
    second_transform = (second.scale[axis], second.translation[axis])
    has_equal_lengths = first.shape[front_axis] == second.shape[axis]
    return has_equal_lengths and identity in (first_transform, second_transform)


def translate_settings(settings: DisplaySettings, front: Image, other: Image) -> DisplaySettings | None:
    """Return the settings in the axes and data coordinates of ``other``, or None if it lacks a displayed axis.

    Axes that only ``other`` has are at its default position. Channels are not translated.
    """
    if front is other:
        return settings
    matched = match_axes(front, other)
    try:
        displayed = matched.index(settings.displayed[0]), matched.index(settings.displayed[1])
    except ValueError:
        return None
    position = list(other.default_position)
    for axis, front_axis in enumerate(matched):
        if front_axis is not None:
            factor, offset = level_map(front, other, 0, front_axis, axis)
            position[axis] = factor * settings.position[front_axis] + offset
    return replace(
        settings,
        displayed=displayed,
        position=tuple(position),
        projection=_translate_projection(settings.projection, front, other, matched),
    )


def _translate_projection(
    projection: Projection | None, front: Image, other: Image, matched: tuple[int | None, ...]
) -> Projection | None:
    """Return the projection in the axes of ``other``.

    The mode for label images is always ``max``, because the mean of labels is not a label.
    """
    if projection is None or projection.axis not in matched:
        return None
    axis = matched.index(projection.axis)
    factor, _ = level_map(front, other, 0, projection.axis, axis)
    mode = "max" if other.kind == "labels" else projection.mode
    return Projection(axis, mode, projection.thickness * abs(factor))
