"""What other packages add by entry points: codecs, data types, chunk grids, stores, views.

They are looked for only when a name is met that the package itself does not know, as the search costs more than most
of what it is needed for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["find_plugin", "load_plugins"]


@cache
def _points(group: str) -> tuple[Any, ...]:
    # Imported here because it is slow to import and seldom needed.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def find_plugin(group: str, name: str) -> Any | None:
    """Return what a package registers under ``name`` in an entry point group, or None."""
    for point in _points(group):
        if point.name == name:
            return point.load()
    return None


def load_plugins(group: str) -> list[Any]:
    """Return all that packages register in an entry point group."""
    return [point.load() for point in _points(group)]
