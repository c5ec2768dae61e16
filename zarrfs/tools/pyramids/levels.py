"""The resolution levels of a pyramid: factors, shapes, and physical positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt

from zarrfs.errors import OptionError
from zarrfs.ngff.geometry import ArrayAxis
from zarrfs.tools.pyramids.downsampling import Method

__all__ = ["Factors", "PyramidLevel", "level_paths", "plan_levels"]

Factors = Sequence[int] | Sequence[Sequence[int]] | None
"""The downsampling factors of each dimension: for all levels, or one sequence for each level. None chooses them."""

MAX_LEVELS = 32

MAX_VOXEL_SIZE_RATIO = sqrt(2)
"""A dimension is downsampled unless its voxel size exceeds the smallest one by more than this factor."""


@dataclass(frozen=True)
class PyramidLevel:
    """One level.

    Attributes:
        shape: the shape of the array.
        factors: the downsampling factors relative to the previous level; 1 for the first level.
        scale: the distance between two elements along each dimension.
        translation: the position of the centre of the first element.
    """

    shape: tuple[int, ...]
    factors: tuple[int, ...]
    scale: tuple[float, ...]
    translation: tuple[float, ...]


def plan_levels(
    shape: Sequence[int],
    axes: Sequence[ArrayAxis],
    method: Method,
    factors: Factors = None,
    count: int | None = None,
    max_length: int = 256,
) -> list[PyramidLevel]:
    """Return the levels of a pyramid, level 0 first.

    Without ``factors``, the spatial dimensions with the smallest voxel size are halved, so that anisotropic images
    become isotropic first. Without ``count`` (the number of levels, including level 0), levels are added until all
    spatial dimensions have at most ``max_length`` elements, or for each item of ``factors`` if it lists the levels.

    Raises OptionError for factors or counts that do not fit the array.
    """
    listed = _listed_factors(factors, len(shape))
    if count is not None and not 1 <= count <= MAX_LEVELS:
        raise OptionError(f"levels: expected 1 to {MAX_LEVELS}, found {count}")
    if isinstance(listed, list) and count is not None and count != len(listed) + 1:
        raise OptionError(f"levels: the factors describe {len(listed) + 1} levels, found {count}")
    level = PyramidLevel(
        tuple(shape),
        (1,) * len(shape),
        tuple(axis.scale for axis in axes),
        tuple(axis.translation for axis in axes),
    )
    levels = [level]
    spatial = [i for i, axis in enumerate(axes) if axis.type == "space"]
    while len(levels) < MAX_LEVELS:
        if isinstance(listed, list):
            if len(levels) > len(listed):
                break
            step = listed[len(levels) - 1]
        else:
            step = listed or _automatic_factors(level, spatial)
            if count is None and all(level.shape[i] <= max_length for i in spatial):
                break
        if count is not None and len(levels) == count:
            break
        step = tuple(min(factor, max(1, length)) for factor, length in zip(step, level.shape, strict=True))
        if prod(step) == 1:
            break  # the array cannot be made smaller
        level = _next_level(level, step, method)
        levels.append(level)
    return levels


def _listed_factors(factors: Factors, ndim: int) -> tuple[int, ...] | list[tuple[int, ...]] | None:
    if factors is None:
        return None
    nested = [tuple(item) for item in factors if isinstance(item, Sequence)]
    flat = [item for item in factors if not isinstance(item, Sequence)]
    if nested and flat:
        raise OptionError(f"factors: expected numbers, or a list of numbers for each level; found {factors}")
    for item in nested or [tuple(flat)]:
        if len(item) != ndim or not all(isinstance(n, int) and 1 <= n <= 1 << 20 for n in item):
            raise OptionError(
                f"factors: expected {ndim} integers of at least 1, one for each dimension; found {list(item)}"
            )
        if prod(item) == 1:
            raise OptionError("factors: at least one factor of each level has to be larger than 1")
    return nested or tuple(flat)


def _automatic_factors(level: PyramidLevel, spatial: Sequence[int]) -> tuple[int, ...]:
    sizes = {i: abs(level.scale[i]) for i in spatial if level.shape[i] > 1}
    limit = min(sizes.values(), default=0.0) * MAX_VOXEL_SIZE_RATIO
    return tuple(2 if i in sizes and sizes[i] <= limit else 1 for i in range(len(level.shape)))


def _next_level(level: PyramidLevel, factors: tuple[int, ...], method: Method) -> PyramidLevel:
    # An element of the new level is at the centre of its window, or at the first element for the method nearest.
    offsets = [0.0 if method == "nearest" else (factor - 1) / 2 for factor in factors]
    return PyramidLevel(
        tuple(-(-length // factor) for length, factor in zip(level.shape, factors, strict=True)),
        factors,
        tuple(size * factor for size, factor in zip(level.scale, factors, strict=True)),
        tuple(
            origin + size * offset
            for origin, size, offset in zip(level.translation, level.scale, offsets, strict=True)
        ),
    )


def level_paths(first: str, count: int) -> list[str]:
    """Return the paths of the levels of a pyramid whose level 0 is at ``first``, relative to the image.

    ``0`` is followed by ``1``, ``s0`` by ``s1``; other names by ``NAME_1``.
    """
    stem = first[:-1] if first.endswith("0") and not first[-2:-1].isdigit() else f"{first}_"
    return [first, *(f"{stem}{number}" for number in range(1, count))]
