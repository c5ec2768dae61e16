"""Which slices will be wanted next: those where the slider is going. Pure."""

from __future__ import annotations

from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import ViewIntent

__all__ = ["moved_axis", "next_positions"]

STEPS = 3
"""How many slices ahead are fetched while a slider moves; when it rests, one to either side."""


def moved_axis(intent: ViewIntent, before: ViewIntent) -> tuple[int, float] | None:
    """Return the one axis whose slice moved, and how far; None where none did, or several."""
    moves = [
        (axis, new - old)
        for axis, (new, old) in enumerate(zip(intent.position, before.position, strict=True))
        if axis not in intent.displayed and new != old
    ]
    return moves[0] if len(moves) == 1 else None


def next_positions(
    image: Image, level: int, intent: ViewIntent, before: ViewIntent | None = None
) -> list[tuple[float, ...]]:
    """Return the positions to fetch ahead, the most likely first; all within the image.

    In motion: the next steps at the speed of the last one, then the first two slices of the next chunk in
    that direction, so that its decoding is under way long before the border is reached (two, as it is the
    second look that makes the engine decode a chunk whole and keep it). At rest: a step either way along the
    axis of depth, else of time.
    """
    move = moved_axis(intent, before) if before is not None else None
    if move is None:
        axis = _resting_axis(image, intent)
        if axis is None:
            return []
        step = max(1.0, image.downsampling(level, axis))
        values = [intent.position[axis] + step, intent.position[axis] - step]
    else:
        axis, step = move
        least = max(1.0, image.downsampling(level, axis))
        step = max(abs(step), least) * (1 if step > 0 else -1)
        values = [intent.position[axis] + step * ahead for ahead in range(1, STEPS + 1)]
        values += _next_chunk(image, level, axis, intent.position[axis], step)
    length = image.shape[axis]
    inside = [value for value in dict.fromkeys(values) if -0.5 <= value <= length - 0.5]
    return [_with(intent.position, axis, value) for value in inside]


def _resting_axis(image: Image, intent: ViewIntent) -> int | None:
    sliders = [a for a in image.slider_axes if a not in intent.displayed and image.shape[a] > 1]
    by_type = {image.axes[axis].type: axis for axis in sliders}
    return by_type.get("space", by_type.get("time", sliders[-1] if sliders else None))


def _next_chunk(image: Image, level: int, axis: int, position: float, step: float) -> list[float]:
    """Return the data coordinates of the two nearest slices of the next chunk; none where there is no such
    chunk, or where steps are so long that they hardly look twice at one.
    """
    depth, length = image.levels[level].chunks[axis], image.levels[level].shape[axis]
    if abs(step) > max(1.0, depth * image.downsampling(level, axis) / 4):
        return []
    chunk = image.level_index(level, axis, position) // depth
    first, onwards = ((chunk + 1) * depth, 1) if step > 0 else (chunk * depth - 1, -1)
    return [image.from_level(level, axis, i) for i in (first, first + onwards) if 0 <= i < length]


def _with(position: tuple[float, ...], axis: int, value: float) -> tuple[float, ...]:
    return (*position[:axis], value, *position[axis + 1 :])
