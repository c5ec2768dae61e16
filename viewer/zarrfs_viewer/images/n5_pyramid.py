"""Pyramids in N5 groups: the arrays ``s0``, ``s1``, ... with the attributes of n5-viewer, Paintera and BigDataViewer.

N5 lists the fastest-varying dimension first. All values are reversed here, as the engine reverses the dimensions of
the arrays. Only metadata is read; the functions block on the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from zarrfs.errors import ZarrError
from zarrfs.ngff import Axis, Level, Multiscales, Ngff, load
from zarrfs_viewer.images.axes import guess_axes, named_axes

__all__ = ["image_metadata", "n5_multiscales"]

MAX_N5_LEVELS = 64
"""Further levels are ignored. A 64-bit dimension can be halved 64 times."""

DEFAULT_AXES = ("z", "y", "x")
"""The names of the three dimensions of an N5 array without names, in reverse order."""


def image_metadata(node: Any) -> Ngff:
    """Return the OME-NGFF metadata of a group. The pyramid of an N5 group is returned as a multiscale image."""
    ngff = load(node)
    if ngff.multiscales or ngff.plate is not None or ngff.well is not None:
        return ngff
    pyramid = n5_multiscales(node)
    return ngff if pyramid is None else replace(ngff, multiscales=(pyramid,))


def n5_multiscales(group: Any) -> Multiscales | None:
    """Return the pyramid of an N5 group, or None if the group has no array ``s0`` or is in another format.

    The scale of a level is the resolution of the group or of ``s0``, multiplied by the level's downsampling factors.
    The translation places the centre of a coarse pixel at the centre of the fine pixels that it covers.
    """
    if getattr(group, "zarr_format", None) != "n5":
        return None
    arrays = _levels(group)
    if not arrays:
        return None
    rank = len(arrays[0].shape)
    documents = (group.attrs, arrays[0].attrs)
    resolution = _resolution(documents, rank)
    levels = []
    for number in range(len(arrays)):
        factors = _factors(group.attrs, arrays, number)
        if factors is None:
            continue
        scale = tuple(size * factor for size, factor in zip(resolution, factors, strict=True))
        translation = tuple(size * (factor - 1) / 2 for size, factor in zip(resolution, factors, strict=True))
        levels.append(Level(f"s{number}", scale, translation))
    if not levels:
        return None
    return Multiscales(name="", axes=_axes(documents, arrays[0].shape), levels=tuple(levels), type="n5")


def _levels(group: Any) -> list[Any]:
    """Return the arrays ``s0``, ``s1``, ... up to the first that is missing or has another rank."""
    arrays: list[Any] = []
    for number in range(MAX_N5_LEVELS):
        try:
            array = group[f"s{number}"]
        except (ZarrError, KeyError):
            break
        if not hasattr(array, "dtype") or (arrays and len(array.shape) != len(arrays[0].shape)):
            break
        arrays.append(array)
    return arrays


def _axes(documents: Sequence[Mapping[str, Any]], shape: Sequence[int]) -> tuple[Axis, ...]:
    rank = len(shape)
    names = _first_list(documents, "axes", rank, str)
    units = _first_list(documents, "units", rank, str) or _pixel_units(documents, rank)
    if names is None:
        names = list(DEFAULT_AXES) if rank == len(DEFAULT_AXES) else [axis.name for axis in guess_axes(shape)]
    return named_axes(names, [unit or None for unit in units] if units is not None else None)


def _resolution(documents: Sequence[Mapping[str, Any]], rank: int) -> tuple[float, ...]:
    """Return the physical size of a pixel of ``s0`` per axis; 1 where it is not declared or not positive."""
    values = _first_list(documents, "resolution", rank, int | float)
    if values is None:
        pixels = [document.get("pixelResolution") for document in documents]
        nested = [pixel for pixel in pixels if isinstance(pixel, Mapping)]
        values = _first_list(nested, "dimensions", rank, int | float)
        values = values or _first_list(documents, "pixelResolution", rank, int | float)
    return tuple(float(value) if _is_size(value) else 1.0 for value in values or [1.0] * rank)


def _is_size(value: float) -> bool:
    return 0 < value < 1e308  # false for NaN, and works for integers that are too large for a float


def _pixel_units(documents: Sequence[Mapping[str, Any]], rank: int) -> list[Any] | None:
    for document in documents:
        pixel = document.get("pixelResolution")
        if isinstance(pixel, Mapping) and isinstance(pixel.get("unit"), str):
            return [pixel["unit"]] * rank
    return None


def _factors(attributes: Mapping[str, Any], arrays: Sequence[Any], number: int) -> tuple[float, ...] | None:
    """Return the downsampling factors of a level relative to ``s0``: those of the level, else those that the group
    lists for all levels, else the ratios of the shapes. None if a ratio is not defined.
    """
    array, finest = arrays[number], arrays[0]
    rank = len(array.shape)
    declared = _list(array.attrs.get("downsamplingFactors"), rank, int | float)
    for key in ("downsamplingFactors", "scales"):
        listed = attributes.get(key)
        if declared is None and isinstance(listed, list) and number < len(listed):
            declared = _list(listed[number], rank, int | float)
    if declared is not None and all(map(_is_size, declared)):
        return tuple(float(factor) for factor in declared)
    if 0 in array.shape or 0 in finest.shape:
        return None
    return tuple(float(round(a / b)) or 1.0 for a, b in zip(finest.shape, array.shape, strict=True))


def _first_list(documents: Sequence[Mapping[str, Any]], key: str, rank: int, kind: Any) -> list[Any] | None:
    lists = (_list(document.get(key), rank, kind) for document in documents)
    return next((values for values in lists if values is not None), None)


def _list(value: Any, rank: int, kind: Any) -> list[Any] | None:
    """Return a list of ``rank`` values of a kind in reverse order, or None if ``value`` is not such a list."""
    if not isinstance(value, list) or len(value) != rank:
        return None
    if not all(isinstance(entry, kind) and not isinstance(entry, bool) for entry in value):
        return None
    return value[::-1]
