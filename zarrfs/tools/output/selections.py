"""Selections given as text, and their division into parts of bounded size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from zarrfs.engine.array.array import Array
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.errors import SelectionError
from zarrfs.text import short_repr

__all__ = ["Selection", "parse_selection", "resolve", "selected_shape", "split_location", "split_selection"]

Selection = tuple[int | slice, ...]
"""One item for each dimension of an array: a non-negative integer, which removes the dimension, or a slice with
start, stop and a positive step.
"""

NUMBER = r"-?\d{1,18}"
ITEM = re.compile(
    rf"(?P<index>{NUMBER})|(?P<start>{NUMBER})?\s*:\s*+(?P<stop>{NUMBER})?(?:\s*:\s*(?P<step>{NUMBER})?)?"
)


def split_location(text: str) -> tuple[str, str]:
    """Return the location and the selection in brackets at its end; an empty selection if there is none."""
    match = re.fullmatch(r"(?P<location>.+?)\[(?P<selection>[^\[\]]*)\]", text, re.DOTALL)
    return (match["location"], match["selection"]) if match else (text, "")


def parse_selection(text: str) -> list[int | slice | None]:
    """Return the items of a selection such as ``3, 10:20, ::2, ...``; None stands for ``...``.

    Raises SelectionError.
    """
    items: list[int | slice | None] = []
    parts = text.split(",")
    if not parts[-1].strip():  # "[]", or a comma at the end as in NumPy
        del parts[-1]
    for part in parts:
        if part.strip() == "...":
            items.append(None)
            continue
        match = ITEM.fullmatch(part.strip())
        if match is None:
            raise SelectionError(
                f"selection [{text}]: {short_repr(part.strip())} is not an index; expected integers and slices such as "
                "[3, 10:20, ::2, ...]"
            )
        if match["index"] is not None:
            items.append(int(match["index"]))
        else:
            start, stop, step = (
                int(match[name]) if match[name] else None for name in ("start", "stop", "step")
            )
            if step is not None and step < 1:
                raise SelectionError(f"selection [{text}]: a step has to be at least 1, found {step}")
            items.append(slice(start, stop, step))
    return items


def resolve(items: list[int | slice | None], shape: tuple[int, ...]) -> Selection:
    """Return the selection for an array of a shape. Raises SelectionError if it does not fit."""
    if items.count(None) > 1:
        raise SelectionError("a selection has at most one '...'")
    given = len(items) - items.count(None)
    if given > len(shape):
        raise SelectionError(f"the selection has {given} dimensions, the array has {len(shape)}")
    position = items.index(None) if None in items else len(items)
    fill: list[int | slice | None] = [slice(None)] * (len(shape) - given)
    complete = [*items[:position], *fill, *items[position + 1 :]]
    resolved: list[int | slice] = []
    for axis, (item, length) in enumerate(zip(complete, shape, strict=True)):
        if isinstance(item, slice):
            resolved.append(slice(*item.indices(length)))
        elif item is not None:
            index = item + length if item < 0 else item
            if not 0 <= index < length:
                raise SelectionError(
                    f"index {item} is outside of dimension {axis}, which has length {length}"
                )
            resolved.append(index)
    return tuple(resolved)


def selected_shape(selection: Selection) -> tuple[int, ...]:
    """Return the shape of the selected values."""
    return tuple(len(_indices(item)) for item in selection if isinstance(item, slice))


def _indices(item: slice) -> range:
    return range(item.start, max(item.start, item.stop), item.step)


def split_selection(array: Array, selection: Selection, memory: int) -> Iterator[Selection]:
    """Yield consecutive parts of a selection in C order, of at most ``memory`` bytes.

    The parts are cut along the first dimensions, at the borders of chunks (shards).
    """
    yield from _split(array, selection, 0, memory)


def _split(array: Array, selection: Selection, axis: int, memory: int) -> Iterator[Selection]:
    while axis < len(selection) and not isinstance(selection[axis], slice):
        axis += 1
    itemsize = max(1, array.dtype.itemsize)
    nbytes = prod(selected_shape(selection)) * itemsize
    if axis == len(selection) or nbytes <= memory:
        yield selection
        return
    item = selection[axis]
    assert isinstance(item, slice)
    indices = _indices(item)
    grid = array.spec.chunk_grid
    chunk = max(1, grid.chunk_shape[axis]) if isinstance(grid, RegularGrid) else 1
    row = nbytes // max(1, len(indices))
    # One index that needs more memory is divided along the next dimensions.
    step = 1 if row > memory else max(1, memory // max(1, row))
    position = 0
    while position < len(indices):
        end = min(position + step, len(indices))
        if end < len(indices) and step > 1:
            border = indices[end] // chunk * chunk
            aligned = -(-(border - item.start) // item.step)
            end = aligned if aligned > position else end
        part = indices[position:end]
        cut = (*selection[:axis], slice(part.start, part[-1] + 1, item.step), *selection[axis + 1 :])
        yield from _split(array, cut, axis + 1, memory) if row > memory else iter([cut])
        position = end
