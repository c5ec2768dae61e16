"""The kinds of virtual files. A new one is a module here and a line below; other packages add theirs by the entry
point group ``zarrfs.views`` (any name -> subclass of View).

A view of another package may fail in any way. That costs its own files and nothing else, so views are called by the
functions here.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import cache

from zarrfs.engine.nodes.array import Array
from zarrfs.errors import StoreError, UnsupportedError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.content import VirtualFileContent
from zarrfs.mount.views.base import View
from zarrfs.mount.views.json import JsonView
from zarrfs.mount.views.npy import NpyView
from zarrfs.mount.views.raw import RawView
from zarrfs.plugins import load_plugins
from zarrfs.text import short_repr

__all__ = ["View", "all_views", "make_layout", "refusal"]

BUILT_IN: tuple[Callable[[], View], ...] = (NpyView, RawView, lambda: JsonView(refusals))

ENTRY_POINTS = "zarrfs.views"

MAX_SUFFIX = 64


@cache
def all_views() -> tuple[View, ...]:
    """Return one of each kind, those that come with the package first. A broken one is left out, with a warning."""
    views: list[View] = []
    for kind in (*BUILT_IN, *load_plugins(ENTRY_POINTS, type[View])):
        try:
            view = kind()
            _check_suffix(view, views)
        except Exception as error:  # another package's code may raise anything
            logger.warning(
                "the view %s of %s cannot be used: %s; it is left out",
                getattr(kind, "__name__", kind),
                kind.__module__,
                describe_error(error),
            )
        else:
            views.append(view)
    return tuple(views)


def _check_suffix(view: View, others: list[View]) -> None:
    suffix: object = getattr(view, "suffix", None)
    if (
        not isinstance(suffix, str)
        or not suffix
        or "/" in suffix
        or "\0" in suffix
        or len(suffix) > MAX_SUFFIX
    ):
        raise UnsupportedError(
            f"its suffix is {short_repr(suffix)}, expected the end of a file name such as '.npy'"
        )
    if any(other.suffix == suffix for other in others):
        raise UnsupportedError(f"its suffix {suffix!r} is that of another view")


def refusals(array: Array) -> dict[str, str | None]:
    """Return, for each view by its suffix, why it cannot show the array, or None if it can."""
    return {view.suffix: refusal(view, array) for view in all_views()}


def refusal(view: View, array: Array) -> str | None:
    """Return why the array cannot be shown by the view, or None if it can."""
    try:
        return view.refusal(array)
    except Exception as error:  # another package's code may raise anything
        return f"the view failed: {describe_error(error)}"


def make_layout(view: View, array: Array, name: str) -> VirtualFileContent:
    """Return the file that the view shows of the array. Raises StoreError if the view fails."""
    try:
        layout: object = view.layout(array, name)
    except (ZarrError, OSError, MemoryError):
        raise
    except Exception as error:  # another package's code may raise anything
        raise StoreError(
            f"{name}{view.suffix}: the view {type(view).__name__} failed: {describe_error(error)}", errno.EIO
        ) from error
    if not isinstance(layout, VirtualFileContent):
        raise StoreError(
            f"{name}{view.suffix}: the view {type(view).__name__} returned {short_repr(layout)}, "
            "expected a VirtualFileContent",
            errno.EIO,
        )
    return layout
