"""The labels of a label image: their sizes, centroids and properties. Functions that read values block."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zarrfs.errors import UnsupportedError
from zarrfs_viewer.analysis.readout import short_unit
from zarrfs_viewer.images.image import Image

__all__ = ["LabelRow", "LabelTable", "label_position", "label_table", "table_csv"]

MAX_ELEMENTS = 1 << 23
"""The labels are counted in the finest level that has at most this number of elements."""

MAX_BLOCK_ELEMENTS = 1 << 20
"""Labels are read and counted in blocks of about this number of elements."""

MAX_LABELS = 100_000
"""A table has at most this number of rows."""

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LabelRow:
    """One label. ``size`` is None if the label occurs in the metadata only.

    ``size`` is in the unit of the table. ``centroid`` has one pixel index of the level per counted axis, and ``box``
    the first and last index.
    """

    value: int
    size: float | None = None
    centroid: tuple[float, ...] = ()
    box: Box = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelTable:
    """The labels of an image at a position.

    ``axes`` are the axes along which the labels were counted in ``level``; ``indices`` has the index along every other
    axis. ``scope`` is ``slice`` if only one slice was counted, because no level of the volume is small enough. ``unit``
    is the unit of the sizes. ``is_truncated`` is set if there are more than ``MAX_LABELS`` labels.
    """

    rows: tuple[LabelRow, ...]
    level: int
    axes: tuple[int, ...]
    indices: tuple[int, ...]
    scope: Literal["volume", "slice"]
    unit: str
    is_truncated: bool = False

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties, in the order of their first occurrence."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.properties))


def label_table(
    image: Image,
    position: Sequence[float],
    displayed: tuple[int, int],
    max_elements: int = MAX_ELEMENTS,
) -> LabelTable:
    """Return the labels at a position, in ascending order. The label 0 is the background and is not included.

    ``position`` and ``displayed`` are in the axes of ``image``. The axes of time and channels are not counted. Raises
    UnsupportedError if no level is small enough, and ZarrError for a chunk that cannot be read.
    """
    space = tuple(
        axis
        for axis in image.slider_axes
        if axis in displayed or image.axes[axis].type not in ("time", "channel")
    )
    for scope, axes in (("volume", space), ("slice", tuple(sorted(displayed)))):
        for level, entry in enumerate(image.levels):
            if np.prod([entry.shape[axis] for axis in axes], dtype=np.float64) <= max_elements:
                indices = tuple(image.level_index(level, axis, value) for axis, value in enumerate(position))
                rows, is_truncated = _rows(image, level, axes, indices)
                unit = _unit(image, axes)
                return LabelTable(
                    rows, level, axes, indices, "volume" if scope == "volume" else "slice", unit, is_truncated
                )
    raise UnsupportedError(
        f"{image.name}: the labels are not listed: a slice of the coarsest level has more than {max_elements} elements"
    )


def label_position(image: Image, table: LabelTable, row: LabelRow) -> tuple[float, ...]:
    """Return the position of the label's pixel that is nearest to its centroid, in data coordinates of ``image``.

    Blocks. Raises UnsupportedError for a label that was not found in the data.
    """
    if row.size is None:
        raise UnsupportedError(f"label {row.value} does not occur in level {table.level} of {image.name}")
    box = [slice(first, last + 1) for first, last in row.box]
    found = np.nonzero(_read(image, table.level, table.axes, table.indices, box) == row.value)
    pixels = np.stack([part + area.start for part, area in zip(found, box, strict=True)], axis=1)
    nearest = pixels[np.argmin(((pixels - np.array(row.centroid)) ** 2).sum(axis=1))]
    position = [image.from_level(table.level, axis, index) for axis, index in enumerate(table.indices)]
    for axis, index in zip(table.axes, nearest, strict=True):
        position[axis] = image.from_level(table.level, axis, float(index))
    return tuple(position)


def table_csv(image: Image, table: LabelTable) -> str:
    """Return the table as CSV with a header row. Centroids are in physical coordinates."""
    names = [image.axes[axis].name or f"axis {axis}" for axis in table.axes]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["label", f"size ({table.unit})", *(f"centroid {name}" for name in names), *table.properties]
    )
    for row in table.rows:
        centroid = [
            image.to_physical(axis, image.from_level(table.level, axis, value))
            for axis, value in zip(table.axes, row.centroid, strict=False)
        ]
        writer.writerow(
            [
                row.value,
                "" if row.size is None else f"{row.size:.10g}",
                *([f"{value:.10g}" for value in centroid] or [""] * len(names)),
                *(row.properties.get(name, "") for name in table.properties),
            ]
        )
    return stream.getvalue()


def _unit(image: Image, axes: Sequence[int]) -> str:
    """Return the unit of sizes: a power of the common unit of the axes, else ``px``."""
    units = {image.axes[axis].unit for axis in axes}
    unit = units.pop()
    if units or not unit:
        return "px"
    return short_unit(unit) + {1: "", 2: "²", 3: "³"}.get(len(axes), f"^{len(axes)}")


def _rows(
    image: Image, level: int, axes: tuple[int, ...], indices: tuple[int, ...]
) -> tuple[tuple[LabelRow, ...], bool]:
    scale = image.levels[level].scale
    is_physical = _unit(image, axes) != "px"
    size = float(
        np.prod([abs(scale[axis]) if is_physical else image.downsampling(level, axis) for axis in axes])
    )
    properties = image.image_label.properties if image.image_label is not None else {}
    rows = {}
    for value, count, centroid, box in _counted(image, level, axes, indices):
        rows[value] = LabelRow(value, count * size, centroid, box, properties.get(value, {}))
    for value, entries in properties.items():
        if value != 0 and value not in rows:
            rows[value] = LabelRow(value, properties=entries)
    ordered = sorted(rows)
    return tuple(rows[value] for value in ordered[:MAX_LABELS]), len(ordered) > MAX_LABELS


def _counted(
    image: Image, level: int, axes: tuple[int, ...], indices: tuple[int, ...]
) -> Iterator[tuple[int, int, tuple[float, ...], Box]]:
    """Yield (label, number of pixels, centroid, bounding box) of each label except 0."""
    parts = [
        part
        for block in _blocks(image, level, axes)
        for part in _count_block(image, level, axes, indices, block)
    ]
    if not parts:
        return
    values = np.concatenate([part[0] for part in parts])
    counts, sums, lows, highs = (np.concatenate([part[number] for part in parts]) for number in (1, 2, 3, 4))
    unique, starts, order = _groups(values)
    total = np.add.reduceat(counts[order], starts)
    centers = np.add.reduceat(sums[order], starts, axis=0) / total[:, None]
    low = np.minimum.reduceat(lows[order], starts, axis=0)
    high = np.maximum.reduceat(highs[order], starts, axis=0)
    for number, value in enumerate(unique.tolist()):
        box = tuple(zip(low[number].tolist(), high[number].tolist(), strict=True))
        yield int(value), int(total[number]), tuple(centers[number].tolist()), box


def _groups(
    values: npt.NDArray[Any],
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return (sorted distinct values, start of each in the order, order)."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[starts], starts, order


def _blocks(image: Image, level: int, axes: tuple[int, ...]) -> Iterator[list[slice]]:
    """Yield blocks of whole chunks along the first counted axes, with about ``MAX_BLOCK_ELEMENTS`` elements."""
    entry = image.levels[level]
    lengths = [entry.shape[axis] for axis in axes]
    steps = list(lengths)
    for number, axis in enumerate(axes):
        others = int(np.prod(steps[:number] + steps[number + 1 :]))
        chunk = entry.chunks[axis]
        steps[number] = max(chunk, MAX_BLOCK_ELEMENTS // max(1, others) // chunk * chunk)
        if others * steps[number] <= MAX_BLOCK_ELEMENTS:
            break
    starts = np.stack(
        np.meshgrid(*(np.arange(0, n, s) for n, s in zip(lengths, steps, strict=True)), indexing="ij"),
        axis=-1,
    )
    for corner in starts.reshape(-1, len(axes)).tolist():
        yield [slice(a, min(a + s, n)) for a, s, n in zip(corner, steps, lengths, strict=True)]


def _count_block(
    image: Image, level: int, axes: tuple[int, ...], indices: tuple[int, ...], block: list[slice]
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield (labels, counts, sums of indices, first indices, last indices) of a block, if it has labels."""
    labels = _read(image, level, axes, indices, block)
    places = np.nonzero(labels)
    if not len(places[0]):
        return
    unique, starts, order = _groups(labels[places])
    counts = np.diff(np.append(starts, len(order)))
    pixels = np.stack([part + area.start for part, area in zip(places, block, strict=True)], axis=1)[order]
    yield (
        unique,
        counts,
        np.add.reduceat(pixels, starts, axis=0),
        np.minimum.reduceat(pixels, starts, axis=0),
        np.maximum.reduceat(pixels, starts, axis=0),
    )


def _read(
    image: Image, level: int, axes: tuple[int, ...], indices: tuple[int, ...], block: Sequence[slice]
) -> npt.NDArray[Any]:
    selection: list[Any] = list(indices)
    for axis, part in zip(axes, block, strict=True):
        selection[axis] = part
    values = np.asarray(image.levels[level].array[tuple(selection)])
    return values.view(np.uint8) if values.dtype.kind == "b" else values
