"""The kinds of virtual files. A new one is a module here and a line below; other packages add theirs by the entry
point group ``zarrfs.views`` (any name -> subclass of View).
"""

from __future__ import annotations

from functools import cache

from zarrfs.mount.views.base import View
from zarrfs.mount.views.json import JsonView
from zarrfs.mount.views.npy import NpyView
from zarrfs.mount.views.raw import RawView
from zarrfs.plugins import load_plugins

__all__ = ["View", "all_views"]

BUILT_IN: tuple[type[View], ...] = (NpyView, RawView, JsonView)

ENTRY_POINTS = "zarrfs.views"


@cache
def all_views() -> tuple[View, ...]:
    """Return one of each kind, those that come with the package first."""
    return tuple(kind() for kind in (*BUILT_IN, *load_plugins(ENTRY_POINTS, type[View])))
