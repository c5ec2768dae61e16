"""Which axis is what: sensible axes for arrays that carry no metadata, and the default choice for display.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from zarrfs.ngff import Axis

__all__ = ["default_displayed", "guess_axes", "legacy_axes", "named_axes", "samples_axis"]

TYPES = {
    "space": (
        "x",
        "y",
        "z",
        "lat",
        "lon",
        "latitude",
        "longitude",
        "depth",
        "row",
        "column",
        "height",
        "width",
    ),
    "time": ("t", "time", "frame"),
    "channel": (
        "c",
        "ch",
        "channel",
        "channels",
        "band",
        "bands",
        "wavelength",
        "s",
        "sample",
        "rgb",
        "rgba",
    ),
}
SAMPLES = ("s", "sample", "samples", "rgb", "rgba", "c", "channel", "channels", "band")
LEGACY = ("t", "c", "z", "y", "x")
FEW = 7
"""A short leading axis of a 4-D or higher array is taken for channels; of a 3-D one up to 4, as in RGBA."""


def _type(name: str) -> str | None:
    return next((kind for kind, names in TYPES.items() if name.lower() in names), None)


def named_axes(names: Sequence[str | None], units: Sequence[str | None] | None = None) -> tuple[Axis, ...]:
    """Return axes for dimension names; a dimension without name is called by its number."""
    units = units if units is not None else [None] * len(names)
    return tuple(
        Axis(name or f"dim {number}", _type(name or ""), unit)
        for number, (name, unit) in enumerate(zip(names, units, strict=True))
    )


def legacy_axes(rank: int) -> tuple[Axis, ...]:
    """Return the axes of OME-NGFF 0.1 and 0.2, t c z y x; of lower rank the last ones, of higher rank more
    before.
    """
    extra = [f"dim {number}" for number in range(rank - len(LEGACY))]
    return named_axes([*extra, *LEGACY[max(0, len(LEGACY) - rank) :]])


def guess_axes(shape: Sequence[int]) -> tuple[Axis, ...]:
    """Return axes for an array that says nothing: rows and columns last (samples after them where the last
    axis has length 3 or 4 and the array is otherwise larger), one short leading axis as channels, then z,
    then time.
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
    limit = 4 if rank == 3 else FEW
    short = [axis for axis in leading if 2 <= shape[axis] <= limit]
    if short and "s" not in names:
        channel = min(short, key=lambda axis: shape[axis])
        names[channel] = "c"
        leading.remove(channel)
    for axis, name in zip(reversed(leading), ("z", "t"), strict=False):
        names[axis] = name
    return named_axes(names)


def samples_axis(axes: Sequence[Axis], shape: Sequence[int]) -> int | None:
    """Return the axis of RGB(A) samples: the last one, of length 3 or 4, by name a channel, after two
    others.
    """
    last = len(axes) - 1
    if last >= 2 and shape[last] in (3, 4) and axes[last].name.lower() in SAMPLES:
        return last
    return None


def default_displayed(axes: Sequence[Axis], excluded: Sequence[int | None]) -> tuple[int, int]:
    """Return the (row, column) axes to begin with: y and x where there are, else the last two left of space,
    else the last two left. ``excluded`` axes (channels, samples) are not displayed; at least two others are
    needed.
    """
    left = [axis for axis in range(len(axes)) if axis not in excluded]
    by_name = {axes[axis].name.lower(): axis for axis in left}
    if "y" in by_name and "x" in by_name:
        return by_name["y"], by_name["x"]
    space = [axis for axis in left if axes[axis].type == "space"]
    chosen = space if len(space) >= 2 else left
    return chosen[-2], chosen[-1]
