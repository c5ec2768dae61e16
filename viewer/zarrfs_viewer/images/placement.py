"""Images in a coordinate system: their levels, axes and positions after an affine transformation.

An axis-aligned transformation changes the scales and translations of the levels. Axes that a rotation or a shear mixes
are resampled when they are read. Pure functions; nothing is read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zarrfs.errors import UnsupportedError
from zarrfs.ngff import Axis
from zarrfs_viewer.images.axes import default_displayed
from zarrfs_viewer.images.image import Image, ImageLevel, next_uid
from zarrfs_viewer.images.resampling import ResampledArray

__all__ = ["placed"]

Floats = npt.NDArray[np.float64]

RELATIVE_TOLERANCE = 1e-9
"""Numbers of a matrix that are smaller than this, relative to the largest one of their column, are rounding errors."""

OVERSAMPLING = (8, 4, 2)
"""How much finer than its pyramid the additional levels of a resampled image are, so that the borders of its pixels are
exact when they are displayed large."""

MAX_LENGTH = 1 << 31
"""The maximum length of an axis of a resampled image in pixels."""


def placed(
    image: Image, axes: tuple[Axis, ...], matrix: npt.ArrayLike, is_oversampled: bool = False
) -> Image:
    """Return an image with positions in another coordinate system.

    ``axes`` are those of the system. ``matrix`` has a row for each of them, a column for each axis of the metadata of
    the image, and the translation as the last column. Axes of the image that do not contribute to a coordinate remain.
    With ``is_oversampled`` resampled axes get levels that are finer than the pixels of the image. Raises
    UnsupportedError if the image would be projected or is tilted against a system with more axes.
    """
    rows = np.asarray(matrix, np.float64)
    # Leading axes were added to arrays of fewer than two axes.
    missing = len(image.axes) - (rows.shape[1] - 1)
    if missing < 0 or len(rows) != len(axes):
        raise UnsupportedError(
            f"{image.name}: the transformation has {rows.shape[1] - 1} input axes, but the image has "
            f"{len(image.axes)} axes"
        )
    square = np.hstack([np.zeros((len(rows), missing)), rows[:, :-1]])
    offsets = rows[:, -1]
    largest = np.abs(square).max(axis=0, initial=0, keepdims=True)
    square[np.abs(square) <= RELATIVE_TOLERANCE * largest] = 0
    used = square != 0
    aligned = [
        (row, int(np.flatnonzero(used[row])[0]))
        for row in range(len(rows))
        if used[row].sum() == 1 and used[:, np.flatnonzero(used[row])[0]].sum() == 1
    ]
    aligned_rows, aligned_columns = {row for row, _ in aligned}, {column for _, column in aligned}
    mixed_rows = [row for row in range(len(rows)) if used[row].any() and row not in aligned_rows]
    mixed_columns = [
        column for column in range(len(image.axes)) if used[:, column].any() and column not in aligned_columns
    ]
    levels, new_axes = list(image.levels), list(image.axes)
    for row, column in aligned:
        factor, offset = float(square[row, column]), float(offsets[row])
        new_axes[column] = axes[row]
        levels = [_scaled(level, column, factor, offset) for level in levels]
    if mixed_columns:
        block = square[np.ix_(mixed_rows, mixed_columns)]
        _check_mixed(image, axes, block, mixed_rows, mixed_columns)
        for row, column in zip(mixed_rows, mixed_columns, strict=True):
            new_axes[column] = axes[row]
        levels = _resampled_levels(
            levels, tuple(mixed_columns), block, offsets[mixed_rows], image.kind == "labels", is_oversampled
        )
    result = replace(
        image, uid=next_uid(), axes=tuple(new_axes), levels=tuple(levels), is_placed=True, default_position=()
    )
    return _with_defaults(result, image, frozenset(mixed_columns))


def _check_mixed(
    image: Image, axes: tuple[Axis, ...], block: Floats, rows: list[int], columns: list[int]
) -> None:
    names = ", ".join(image.axes[column].name for column in columns)
    if len(rows) != len(columns) or np.linalg.matrix_rank(block) < len(rows):
        targets = ", ".join(axes[row].name for row in rows)
        raise UnsupportedError(
            f"{image.name}: its axes {names} are not displayed in the axes {targets}: the transformation has no inverse"
        )
    if {image.channel_axis, image.rgb_axis} & set(columns):
        raise UnsupportedError(
            f"{image.name}: the transformation mixes its channels with other axes ({names})"
        )


def _scaled(level: ImageLevel, axis: int, factor: float, offset: float) -> ImageLevel:
    scale, translation = list(level.scale), list(level.translation)
    scale[axis] *= factor
    translation[axis] = factor * translation[axis] + offset
    return replace(level, scale=tuple(scale), translation=tuple(translation))


def _resampled_levels(
    levels: list[ImageLevel],
    axes: tuple[int, ...],
    square: Floats,
    offsets: Floats,
    is_labels: bool,
    is_oversampled: bool,
) -> list[ImageLevel]:
    """Return levels whose arrays are resampled along axes. All begin at the same corner of the box of level 0."""
    picked = list(axes)
    finest = levels[0]
    scale, translation = np.array(finest.scale)[picked], np.array(finest.translation)[picked]
    lengths = np.array(finest.shape)[picked]
    sides = square * scale  # one column for each axis of the array
    corner = square @ translation + offsets - sides.sum(axis=1) / 2
    lows = corner + np.minimum(sides * lengths, 0).sum(axis=1)
    highs = corner + np.maximum(sides * lengths, 0).sum(axis=1)
    inverse = np.linalg.inv(square)
    results = []
    finer = [(finest, factor) for factor in (OVERSAMPLING if is_oversampled else ())]
    for level, factor in [*finer, *((level, 1) for level in levels)]:
        scale, translation = np.array(level.scale)[picked], np.array(level.translation)[picked]
        to_index = inverse / scale[:, None]
        spacing = 1 / np.linalg.norm(to_index, axis=0) / factor
        counts = np.ceil((highs - lows) / spacing - 1e-6)
        if not np.isfinite(counts).all() or counts.max() > MAX_LENGTH:
            raise UnsupportedError("the transformation enlarges the image too much")
        first = lows + spacing / 2
        matrix = np.column_stack([to_index * spacing, to_index @ (first - offsets) - translation / scale])
        new_lengths = tuple(max(1, int(count)) for count in counts)
        array = ResampledArray(level.array, axes, matrix, new_lengths, is_labels)
        new_scale, new_translation = list(level.scale), list(level.translation)
        for number, axis in enumerate(axes):
            new_scale[axis], new_translation[axis] = float(spacing[number]), float(first[number])
        results.append(ImageLevel(level.path, array, tuple(new_scale), tuple(new_translation)))
    return results


def _with_defaults(image: Image, source: Image, mixed: frozenset[int]) -> Image:
    """Return an image with the initial position of its source, in the middle along resampled axes."""
    position = tuple(
        float((length - 1) // 2) if axis in mixed else value
        for axis, (length, value) in enumerate(zip(image.shape, source.default_position, strict=True))
    )
    displayed = default_displayed(image.axes, (image.channel_axis, image.rgb_axis))
    return replace(image, default_position=position, default_displayed=displayed)
