"""The axes of arrays without axis metadata, and the axes that are displayed by default. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from zarrfs.ngff import Axis
from zarrfs.ngff.geometry import LEGACY_AXES, axis_type

__all__ = ["default_displayed", "guess_axes", "legacy_axes", "named_axes", "samples_axis", "split_unit"]

SAMPLE_AXIS_NAMES = ("s", "sample", "samples", "rgb", "rgba", "c", "channel", "channels", "band")
MAX_GUESSED_CHANNELS = 7
"""A leading axis of an array with four or more dimensions that is at most this long is assumed to be the channel
axis."""
MAX_GUESSED_CHANNELS_3D = 4
"""The same limit for arrays with three dimensions: RGBA has four channels."""


def named_axes(names: Sequence[str | None], units: Sequence[str | None] | None = None) -> tuple[Axis, ...]:
    """Return axes for dimension names. A dimension without a name is named ``dim N``."""
    units = units if units is not None else [None] * len(names)
    return tuple(
        Axis(name or f"dim {number}", axis_type(name), unit)
        for number, (name, unit) in enumerate(zip(names, units, strict=True))
    )


def split_unit(unit: str | None) -> tuple[float, str | None]:
    """Return the number and the name of a unit with a spacing, such as ``4 nm`` in N5 and in TensorStore.

    A unit without a positive number has the spacing 1.
    """
    number, separator, name = (unit or "").partition(" ")
    try:
        spacing = float(number)
    except ValueError:
        return 1.0, unit or None
    if not separator or not math.isfinite(spacing) or spacing <= 0:
        return 1.0, unit or None
    return spacing, name.strip() or None


def legacy_axes(rank: int) -> tuple[Axis, ...]:
    """Return the axes of OME-NGFF 0.1 and 0.2, which are t, c, z, y, x.

    An array of lower rank has the last of them. An array of higher rank has additional leading axes.
    """
    extra = [f"dim {number}" for number in range(rank - len(LEGACY_AXES))]
    return named_axes([*extra, *LEGACY_AXES[max(0, len(LEGACY_AXES) - rank) :]])


def guess_axes(shape: Sequence[int]) -> tuple[Axis, ...]:
    """Return axes for an array without metadata, derived from its shape.

    The last two axes are y and x, or the two before a last axis of length 3 or 4, which holds RGB(A) samples.
    The shortest leading axis is the channel axis if it is short enough. The remaining axes are z, t, and
    axes without a name, from the last to the first.
    """
    rank = len(shape)
    if rank == 0:
        return ()
    if rank == 1:
        return named_axes(["x"])
    names: list[str | None] = [None] * rank
    rows = rank - 2
    if rank >= 3 and shape[-1] in (3, 4) and min(shape[-3], shape[-2]) >= 16:
        names[-1] = "s"
        rows -= 1
    names[rows], names[rows + 1] = "y", "x"
    leading = list(range(rows))
    limit = MAX_GUESSED_CHANNELS_3D if rank == 3 else MAX_GUESSED_CHANNELS
    short = [axis for axis in leading if 2 <= shape[axis] <= limit]
    if short and "s" not in names:
        channel = min(short, key=lambda axis: shape[axis])
        names[channel] = "c"
        leading.remove(channel)
    for axis, name in zip(reversed(leading), ("z", "t"), strict=False):
        names[axis] = name
    return named_axes(names)


def samples_axis(axes: Sequence[Axis], shape: Sequence[int]) -> int | None:
    """Return the axis of RGB(A) samples, or None.

    It is the last of at least three axes, has length 3 or 4, and has the name of a channel axis.
    """
    last = len(axes) - 1
    if last >= 2 and shape[last] in (3, 4) and axes[last].name.lower() in SAMPLE_AXIS_NAMES:
        return last
    return None


def default_displayed(axes: Sequence[Axis], excluded: Sequence[int | None]) -> tuple[int, int]:
    """Return the (row, column) axes that are displayed first: y and x, otherwise the last two spatial axes,
    otherwise the last two axes.

    ``excluded`` axes (channels, samples) are not displayed. At least two other axes are required.
    """
    candidates = [axis for axis in range(len(axes)) if axis not in excluded]
    by_name = {axes[axis].name.lower(): axis for axis in candidates}
    if "y" in by_name and "x" in by_name:
        return by_name["y"], by_name["x"]
    spatial = [axis for axis in candidates if axes[axis].type == "space"]
    chosen = spatial if len(spatial) >= 2 else candidates
    return chosen[-2], chosen[-1]
