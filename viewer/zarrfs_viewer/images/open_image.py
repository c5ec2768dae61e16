"""Creation of an ``Image`` from an array or a multiscale group: levels, axes, channels and defaults.

Only metadata is read. The functions block on the store. Invalid metadata is corrected where the intention is
clear, and the correction is described in ``Image.notes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zarrfs.errors import MetadataError, NodeNotFoundError, UnsupportedError, ZarrError
from zarrfs.ngff import Axis, ImageLabel, Level, Multiscales, Ngff, Omero, parse
from zarrfs.text import short_repr
from zarrfs_viewer.images.axes import (
    default_displayed,
    guess_axes,
    legacy_axes,
    named_axes,
    samples_axis,
    split_unit,
)
from zarrfs_viewer.images.channels import default_channels
from zarrfs_viewer.images.image import Image, ImageEntry, ImageLevel, next_uid
from zarrfs_viewer.images.packing import find_packing, unit_of_values
from zarrfs_viewer.images.reading import PaddedArray, SourceArray, stored_array, unpacked
from zarrfs_viewer.images.values import is_displayable

__all__ = [
    "MAX_CHANNELS",
    "can_be_labels",
    "image_from_array",
    "image_from_multiscales",
    "is_among_labels",
]

MAX_CHANNELS = 64
"""A longer channel axis, such as a spectrum, is not displayed as channels; it gets a slider."""


STORE_SUFFIXES = (".zarr", ".n5", ".zip", ".ozx")
"""A component of a location that contains one of these texts is the root of a store, or is within it."""


def image_from_array(array: Any, name: str = "", path: str = "", as_labels: bool = False) -> Image:
    """Return an array of any rank as an image with one level. Raises UnsupportedError if it cannot be drawn.

    With ``as_labels`` an array of integers is a label image.
    """
    attributes: Mapping[str, Any] = getattr(array, "attrs", {})
    names = getattr(array, "dimension_names", None) or attributes.get("_ARRAY_DIMENSIONS")
    rank = len(array.shape)
    units = getattr(getattr(array, "spec", None), "dimension_units", None) or (None,) * rank
    spacings = [split_unit(unit) for unit in units]
    if not isinstance(names, list | tuple) or len(names) != rank or not any(names):
        guessed = guess_axes(array.shape)
        axes = tuple(replace(axis, unit=unit) for axis, (_, unit) in zip(guessed, spacings, strict=True))
    else:
        axes = named_axes([n if isinstance(n, str) else None for n in names], [unit for _, unit in spacings])
    scale = tuple(spacing for spacing, _ in spacings)
    level = _level(array, path, Level(path, scale, (0.0,) * rank), None)
    axes = tuple(Axis("") for _ in range(len(level.shape) - len(axes))) + axes
    label = parse(attributes).image_label
    return _image([level], axes, name, path, None, label, (), [], as_labels, fill_may_be_missing=True)


def image_from_multiscales(
    group: Any, ngff: Ngff, index: int = 0, name: str = "", path: str = "", as_labels: bool = False
) -> Image:
    """Return the multiscale image of a group at ``index``. Raises ZarrError if no level can be opened or drawn.

    Levels that cannot be opened are omitted, with a note. With ``as_labels`` an image of integers is a label image.
    """
    multiscales = ngff.multiscales[index]
    # Of files of other formats.
    ignored = getattr(getattr(group, "store", None), "ignored_metadata", "")
    notes: list[str] = [ignored] if ignored else []
    if multiscales.unapplied:
        kinds = ", ".join(map(short_repr, multiscales.unapplied))
        notes.append(
            f"The picture is displayed without the coordinate transformation {kinds}, which is not supported: physical "
            "positions and directions are those before it."
        )
    opened = _open_levels(group, multiscales, notes)
    rank = len(opened[0][1].shape)
    axes = multiscales.axes or legacy_axes(rank)
    if len(axes) != rank:
        notes.append(
            f"{len(axes)} axes are declared, but {opened[0][0].path!r} has {rank} dimensions: "
            "the axes are guessed from the shape"
        )
        axes = guess_axes(opened[0][1].shape)
    base = opened[0][1]
    levels = [_level(array, level.path, level, base) for level, array in opened]
    axes = tuple(Axis("") for _ in range(len(levels[0].shape) - rank)) + axes
    levels.sort(key=lambda level: -int(np.prod(level.shape)))
    labels = _label_entries(group) if ngff.image_label is None and not as_labels else ()
    title = multiscales.name or name
    return _image(levels, axes, title, path, ngff.omero, ngff.image_label, labels, notes, as_labels)


def _open_levels(group: Any, multiscales: Multiscales, notes: list[str]) -> list[tuple[Level, SourceArray]]:
    opened: list[tuple[Level, SourceArray]] = []
    failure: ZarrError | None = None
    for level, array in zip(multiscales.levels, _open_arrays(group, multiscales), strict=True):
        if isinstance(array, ZarrError):
            failure = array
            notes.append(f"level {level.path!r} is omitted: {failure}")
            continue
        if opened and (len(array.shape), array.dtype) != (len(opened[0][1].shape), opened[0][1].dtype):
            notes.append(
                f"level {level.path!r} is omitted: its rank or data type differs from the first level's"
            )
            continue
        opened.append((level, array))
    if not opened:
        raise failure or MetadataError("the multiscales metadata list no datasets")
    return opened


def _open_arrays(group: Any, multiscales: Multiscales) -> list[Any]:
    """Return the array of each level, or the error. From a high-latency store the levels are opened in parallel."""
    paths = [level.path.strip("/") for level in multiscales.levels]
    workers = min(len(paths), getattr(getattr(group, "store", None), "concurrency", 1))
    if workers <= 1:
        return [_open_array(group, path) for path in paths]
    with ThreadPoolExecutor(workers, "viewer-open") as pool:
        return list(pool.map(lambda path: _open_array(group, path), paths))


def _open_array(group: Any, path: str) -> Any:
    try:
        array = group[path]
    except ZarrError as error:
        return error
    except KeyError:
        return NodeNotFoundError(f"array {path!r} does not exist")
    return array if hasattr(array, "dtype") else MetadataError(f"{path!r} is a group; expected an array")


def _level(array: SourceArray, path: str, level: Level | None, base: SourceArray | None) -> ImageLevel:
    """Return a level of rank two or more.

    A scale that is not declared follows from the shapes, on the assumption that all levels cover the same extent.
    The translation places the centre of a coarse pixel at the centre of the fine pixels it covers.
    """
    rank = len(array.shape)
    declared = level is not None and level.scale is not None and len(level.scale) == rank
    if declared and level is not None and level.scale is not None:
        scale, translation = level.scale, level.translation or (0.0,) * rank
    else:
        finest = base.shape if base is not None else array.shape
        scale = tuple(a / b if a and b else 1.0 for a, b in zip(finest, array.shape, strict=True))
        translation = tuple((factor - 1) / 2 for factor in scale)
    if rank >= 2:
        return ImageLevel(path, array, scale, translation)
    missing = 2 - rank
    return ImageLevel(path, PaddedArray(array), (1.0,) * missing + scale, (0.0,) * missing + translation)


def _image(
    levels: Sequence[ImageLevel],
    axes: tuple[Axis, ...],
    name: str,
    path: str,
    omero: Omero | None,
    image_label: ImageLabel | None,
    labels: tuple[ImageEntry, ...],
    notes: list[str],
    as_labels: bool,
    fill_may_be_missing: bool = False,
) -> Image:
    finest = levels[0]
    dtype = finest.array.dtype
    if not is_displayable(dtype):
        raise UnsupportedError(f"{path or name or 'the array'} has data type {dtype}, which cannot be drawn")
    if 0 in finest.shape:
        raise UnsupportedError(f"{path or name or 'the array'} is empty: its shape is {finest.shape}")
    kind: Literal["image", "labels"] = (
        "labels" if (image_label is not None or as_labels) and can_be_labels(dtype) else "image"
    )
    rgb_axis = samples_axis(axes, finest.shape) if dtype.names is None and dtype.kind in "uif" else None
    if kind == "labels" or (omero is not None and len(omero.channels) > 1):
        rgb_axis = None
    channel_axis = None if rgb_axis is not None else _channel_axis(axes, finest.shape)
    if kind == "labels" and channel_axis is not None and finest.shape[channel_axis] > 1:
        channel_axis = None  # labels have no channels: the axis gets a slider
    displayed = default_displayed(axes, (channel_axis, rgb_axis))
    source, packing = stored_array(finest.array), None
    if kind != "labels" and rgb_axis is None:  # labels and colours are no quantities
        packing = find_packing(source, fill_may_be_missing)
    if packing is not None:
        levels = [replace(level, array=unpacked(level.array, packing)) for level in levels]
        dtype = packing.dtype
    return Image(
        uid=next_uid(),
        name=name or path.rpartition("/")[2],
        path=path,
        kind=kind,
        axes=axes,
        levels=tuple(levels),
        channels=()
        if kind == "labels"
        else default_channels(dtype, finest.shape, channel_axis, rgb_axis, omero),
        channel_axis=channel_axis,
        rgb_axis=rgb_axis,
        default_position=_position(axes, finest.shape, displayed, omero),
        default_displayed=displayed,
        labels=labels,
        image_label=image_label,
        notes=tuple(notes),
        packing=packing,
        value_unit=None if kind == "labels" else unit_of_values(source),
    )


def _channel_axis(axes: Sequence[Axis], shape: Sequence[int]) -> int | None:
    candidates = [axis for axis in range(len(axes)) if axes[axis].type == "channel"]
    if len(candidates) == 1 and shape[candidates[0]] <= MAX_CHANNELS and len(axes) >= 3:
        return candidates[0]
    return None


def _position(
    axes: Sequence[Axis], shape: Sequence[int], displayed: tuple[int, int], omero: Omero | None
) -> tuple[float, ...]:
    """Return the initial position: the defaults of ``omero``, otherwise the middle of spatial axes and the start
    of all others.
    """
    defaults = {"z": omero.default_z, "t": omero.default_t} if omero is not None else {}
    position = []
    for number, (axis, length) in enumerate(zip(axes, shape, strict=True)):
        default = defaults.get(axis.name.lower())
        if default is not None and number not in displayed:
            position.append(float(min(max(default, 0), length - 1)))
        elif axis.type == "space" or number in displayed:
            position.append(float((length - 1) // 2))
        else:
            position.append(0.0)
    return tuple(position)


def _label_entries(group: Any) -> tuple[ImageEntry, ...]:
    """Return the label images of an image group, with paths relative to the group."""
    try:
        # The look-up of a node that is absent searches the entry points of all packages for its format.
        if group.store.listable and not group.store.is_remote and "labels" not in group.names():
            return ()
        listed = parse(group["labels"].attrs).labels or ()
    except (ZarrError, KeyError, AttributeError):
        return ()
    return tuple(
        ImageEntry(path.rpartition("/")[2], f"labels/{path.strip('/')}", "labels") for path in listed
    )


def can_be_labels(dtype: np.dtype[Any]) -> bool:
    """Return whether values of a data type can be labels: integers and bools."""
    return dtype.names is None and dtype.kind in "iub"


def is_among_labels(location: str, path: str) -> bool:
    """Return whether a node is below a group ``labels`` of its store, or has this name itself.

    ``path`` is the path of the node below ``location``. Directories above the store do not count.
    """
    parts = [part for part in location.split("/") if part]
    roots = [number for number, part in enumerate(parts) if any(suffix in part for suffix in STORE_SUFFIXES)]
    inside = parts[roots[0] + 1 :] if roots else []
    return "labels" in [*inside, *(part for part in path.split("/") if part)]
