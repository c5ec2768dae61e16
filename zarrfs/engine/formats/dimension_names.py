"""Dimension names in formats without a field for them: the attribute that xarray reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.engine.model import ArraySpec, NodeSpec

__all__ = ["DIMENSIONS", "attributes_with_names", "dimension_names_from_attributes"]

DIMENSIONS = "_ARRAY_DIMENSIONS"


def dimension_names_from_attributes(
    attributes: Mapping[str, Any], ndim: int
) -> tuple[str | None, ...] | None:
    """Return the dimension names in the attributes, or None if they are missing or not valid for the rank."""
    names = attributes.get(DIMENSIONS)
    if not isinstance(names, list) or len(names) != ndim:
        return None
    if not all(name is None or isinstance(name, str) for name in names):
        return None
    return tuple(names)


def attributes_with_names(spec: NodeSpec) -> dict[str, Any]:
    """Return the attributes of a node, including the names of its dimensions."""
    attributes = dict(spec.attributes)
    if isinstance(spec, ArraySpec) and spec.dimension_names is not None and DIMENSIONS not in attributes:
        attributes[DIMENSIONS] = list(spec.dimension_names)
    return attributes
