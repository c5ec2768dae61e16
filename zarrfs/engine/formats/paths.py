"""Paths of nodes and their names. Zarr v2 "Logical storage paths", Zarr v3 "Node names"."""

from __future__ import annotations

import re

from zarrfs.errors import KeyNameError

__all__ = ["check_node_name", "join", "normalise_path", "paths_above"]


def normalise_path(path: str) -> str:
    """Return a node's path as it stands in keys: slashes forward and single, none at the ends.

    Raises KeyNameError for ``.`` and ``..`` segments and for NUL.
    """
    if not isinstance(path, str):
        raise KeyNameError(
            f"{path!r} ({type(path).__name__}) is not a valid path: expected a string, as 'group/array'"
        )
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    for part in parts:
        if part in (".", "..") or "\0" in part:
            raise KeyNameError(f"{path!r} is not a valid path: {part!r} is no name of a node")
    return "/".join(parts)


def check_node_name(name: str) -> str:
    """Return the name if Zarr v3 allows a new node to have it, else raise KeyNameError.

    It is not empty, has no slash, is not all periods, and does not start with the reserved ``__``.
    """
    if not name or "/" in name or "\0" in name or not name.strip(".") or name.startswith("__"):
        raise KeyNameError(
            f"{name!r} is no name for a node: it must not be empty, hold '/' or NUL, consist of periods, "
            "or start with '__'"
        )
    return name


def join(path: str, name: str) -> str:
    """Return the key of ``name`` in the node at ``path`` (empty for the root)."""
    return f"{path}/{name}" if path else name


def paths_above(path: str) -> list[str]:
    """Return the paths of the groups that a node is in, the nearest first."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:depth]) for depth in reversed(range(len(parts)))]
