"""Comparison of the metadata of two nodes: attributes, dimension names and units, and fill values.

Nodes of different formats are equal if one of them is what a copy of the other is: conventions of xarray and versions
of OME-NGFF are converted. Chunks and codecs are not compared, because a copy may have others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.dimension_names import DIMENSIONS
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.unfinished import UNFINISHED
from zarrfs.engine.model import ArraySpec
from zarrfs.ngff.versions import for_zarr_format
from zarrfs.text import short_repr
from zarrfs.tools.copying.conventions import convert_conventions, effective_fill_value

__all__ = ["Axes", "array_differences", "axes_of_members", "group_differences"]

MAX_NAMED = 5
"""The maximum number of attributes of a node that are named."""

Axes = Mapping[str, tuple[str, ...]]
"""The dimension names that OME-NGFF metadata of a group define, by the path of the array."""


def axes_of_members(group: Group, path: str) -> Axes:
    """Return the dimension names that the metadata of a group, at a relative path, define for arrays below it."""
    axes: dict[str, tuple[str, ...]] = {}
    for zarr_format in (2, 3):
        for below, names in for_zarr_format(group.attrs, group.basename, zarr_format).axes.items():
            axes["/".join(part for part in (path.strip("/"), below) if part)] = names
    return axes


def group_differences(group: Group, other: Group) -> list[str]:
    """Return what differs between two groups."""
    if group.zarr_format == other.zarr_format:
        return _attribute_differences(group.attrs, other.attrs)
    own_copy = for_zarr_format(group.attrs, group.basename, other.zarr_format).attributes
    other_copy = for_zarr_format(other.attrs, other.basename, group.zarr_format).attributes
    differences = _attribute_differences(own_copy, other.attrs)
    return differences if differences and _attribute_differences(group.attrs, other_copy) else []


def array_differences(array: Array, other: Array, axes: tuple[str, ...] | None) -> list[str]:
    """Return what differs between two arrays. ``axes`` are the dimension names that metadata of a group define."""
    spec, expected = array.spec, other.spec
    if spec.zarr_format == expected.zarr_format:
        return _spec_differences(spec, expected)
    if axes is not None:
        spec, expected = (
            replace(one, dimension_names=axes)
            if one.dimension_names is None and len(axes) == len(one.shape)
            else one
            for one in (spec, expected)
        )
    first: list[str] = []
    # The fill value of a copy depends on whether the array has missing chunks.
    for all_stored, is_reversed in product((False, True), repeat=2):
        one, another = (expected, spec) if is_reversed else (spec, expected)
        converted = convert_conventions(one, another.zarr_format, partial(bool, all_stored))
        differences = _spec_differences(*((another, converted) if is_reversed else (converted, another)))
        if not differences:
            return []
        first = first or differences
    return first


def _spec_differences(spec: ArraySpec, other: ArraySpec) -> list[str]:
    """Return what differs between two specs whose conventions are those of one format."""
    differences = _attribute_differences(_other_attributes(spec), _other_attributes(other))
    features = [formats.features(one.zarr_format) for one in (spec, other)]
    has_units = all(feature.dimension_units for feature in features)
    for name, found, expected in (
        ("dimension names", spec.dimension_names, other.dimension_names),
        *((("dimension units", spec.dimension_units, other.dimension_units),) if has_units else ()),
    ):
        if (found or None) != (expected or None):
            differences.append(f"{name}: expected {short_repr(expected)}, found {short_repr(found)}")
    if all(feature.fill_value for feature in features):
        # The repr of NaN equals that of NaN, and the reprs of 0.0 and -0.0 differ.
        found, expected = repr(effective_fill_value(spec)), repr(effective_fill_value(other))
        if found != expected:
            differences.append(f"fill value: expected {short_repr(expected)}, found {short_repr(found)}")
    return differences


def _other_attributes(spec: ArraySpec) -> dict[str, Any]:
    """Return the attributes without the names and units of the dimensions, which some formats store in them."""
    features = formats.features(spec.zarr_format)
    lists = [*features.name_attributes, *features.unit_attributes]
    if spec.dimension_names is not None:
        lists.append(DIMENSIONS)
    return {
        key: value for key, value in spec.attributes.items() if not (key in lists and isinstance(value, list))
    }


def _attribute_differences(attributes: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    differences = []
    for key in sorted({*attributes, *other} - {UNFINISHED}):
        if key not in attributes:
            differences.append(f"the attribute {short_repr(key)} exists only there")
        elif key not in other:
            differences.append(f"the attribute {short_repr(key)} does not exist there")
        elif _text(attributes[key]) != _text(other[key]):
            differences.append(
                f"attribute {short_repr(key)}: expected {short_repr(other[key])}, found {short_repr(attributes[key])}"
            )
    more = len(differences) - MAX_NAMED
    return differences if more <= 0 else [*differences[:MAX_NAMED], f"and {more} more attributes"]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
