"""The slice positions to prefetch, predicted from the movement of a slider. Pure functions."""

from __future__ import annotations

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["moved_axis", "next_positions"]

MAX_STEPS_AHEAD = 3
"""The number of slices that are prefetched while a slider moves. At rest, one slice on each side is prefetched."""


def moved_axis(settings: DisplaySettings, before: DisplaySettings) -> tuple[int, float] | None:
    """Return (axis, distance) of the slice that moved, or None if no slice or several slices moved."""
    moves = [
        (axis, new - old)
        for axis, (new, old) in enumerate(zip(settings.position, before.position, strict=True))
        if axis not in settings.displayed and new != old
    ]
    return moves[0] if len(moves) == 1 else None


def next_positions(
    image: Image,
    level: int,
    settings: DisplaySettings,
    before: DisplaySettings | None = None,
    next_chunk: bool = True,
) -> list[tuple[float, ...]]:
    """Return the positions to prefetch, the most likely first. All are within the image.

    If one slider moved: the next steps of the same size, then with ``next_chunk`` the first slice of the next chunk in
    that direction, so that the chunk is decoded and cached before the slider reaches it. At rest: one step in both
    directions along the spatial axis that is not displayed, otherwise along the time axis.
    """
    move = moved_axis(settings, before) if before is not None else None
    if move is None:
        axis = _resting_axis(image, settings)
        if axis is None:
            return []
        step = max(1.0, image.downsampling(level, axis))
        values = [settings.position[axis] + step, settings.position[axis] - step]
    else:
        axis, step = move
        min_step = max(1.0, image.downsampling(level, axis))
        step = max(abs(step), min_step) * (1 if step > 0 else -1)
        values = [settings.position[axis] + step * ahead for ahead in range(1, MAX_STEPS_AHEAD + 1)]
        if next_chunk:
            values += _next_chunk(image, level, axis, settings.position[axis], step)
    length = image.shape[axis]
    inside = [value for value in dict.fromkeys(values) if -0.5 <= value <= length - 0.5]
    return [_replace_entry(settings.position, axis, value) for value in inside]


def _resting_axis(image: Image, settings: DisplaySettings) -> int | None:
    sliders = [a for a in image.slider_axes if a not in settings.displayed and image.shape[a] > 1]
    by_type = {image.axes[axis].type: axis for axis in sliders}
    return by_type.get("space", by_type.get("time", sliders[-1] if sliders else None))


def _next_chunk(image: Image, level: int, axis: int, position: float, step: float) -> list[float]:
    """Return a list with the data coordinate of the first slice of the next chunk. It is empty at the end of the image,
    and if steps are longer than a quarter of a chunk.
    """
    depth, length = image.levels[level].chunks[axis], image.levels[level].shape[axis]
    if abs(step) > max(1.0, depth * image.downsampling(level, axis) / 4):
        return []
    chunk = image.level_index(level, axis, position) // depth
    first = (chunk + 1) * depth if step > 0 else chunk * depth - 1
    return [image.from_level(level, axis, first)] if 0 <= first < length else []


def _replace_entry(position: tuple[float, ...], axis: int, value: float) -> tuple[float, ...]:
    return (*position[:axis], value, *position[axis + 1 :])
