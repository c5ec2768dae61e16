"""Node paths and node names. Zarr v2 "Logical storage paths", Zarr v3 "Node names"."""

from __future__ import annotations

import re

from zarrfs.errors import KeyNameError

__all__ = ["check_node_name", "is_node_name", "join", "normalize_path", "paths_above"]


def normalize_path(path: str) -> str:
    """Return a node's path as used in keys: single forward slashes as separators, none at the ends.

    Raises KeyNameError for ``.`` and ``..`` segments and for NUL.
    """
    if not isinstance(path, str):
        raise KeyNameError(
            f"{path!r} ({type(path).__name__}) is not a valid path: expected a string such as 'group/array'"
        )
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    for part in parts:
        if part in (".", "..") or "\0" in part:
            raise KeyNameError(f"{path!r} is not a valid path: {part!r} is not a node name")
    return "/".join(parts)


def is_node_name(name: str) -> bool:
    """Return whether a name is a path of one segment: ``normalize_path`` returns it unchanged.

    The keys of a store can have other segments, which are not nodes. An empty one would denote the group itself.
    """
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name and "\0" not in name


def check_node_name(name: str) -> str:
    """Return the name if Zarr v3 allows it for a new node, else raise KeyNameError.

    A valid name is not empty, contains no slash, is not all periods, and does not start with the reserved ``__``.
    """
    if not name or "/" in name or "\0" in name or not name.strip(".") or name.startswith("__"):
        raise KeyNameError(
            f"{name!r} is not a valid node name: it must not be empty, contain '/' or NUL, consist of periods only, "
            "or start with '__'"
        )
    return name


def join(path: str, name: str) -> str:
    """Return the key of ``name`` in the node at ``path``, which is empty for the root."""
    return f"{path}/{name}" if path else name


def paths_above(path: str) -> list[str]:
    """Return the paths of the groups above a node, the parent first and the root last."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:depth]) for depth in reversed(range(len(parts)))]
