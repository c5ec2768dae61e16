"""Detection of label images by their data type and by their path in the hierarchy. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["can_be_labels", "is_among_labels"]

STORE_SUFFIXES = (".zarr", ".n5", ".zip")
"""A component of a location that contains one of these texts is the root of a store, or is within it."""


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
