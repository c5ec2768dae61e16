"""The registry of views. A new view is a module of this package and an entry of ``BUILT_IN``. Other packages register
subclasses of View in the entry point group ``zarrfs.views``, under any name.

Views of other packages may raise any exception. The functions of this module call them, so that such an exception
affects only the files of that view.
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

__all__ = ["View", "all_views", "make_content", "refusal"]

BUILT_IN: tuple[Callable[[], View], ...] = (NpyView, RawView, lambda: JsonView(refusals))

ENTRY_POINTS = "zarrfs.views"

MAX_SUFFIX_LENGTH = 64


@cache
def all_views() -> tuple[View, ...]:
    """Return one instance of each view, the built-in views first. A view that fails is skipped with a warning."""
    views: list[View] = []
    for factory in (*BUILT_IN, *load_plugins(ENTRY_POINTS, type[View])):
        try:
            view = factory()
            _check_suffix(view, views)
        except Exception as error:  # views of other packages may raise any exception
            logger.warning(
                "the view %s of %s is skipped: %s",
                getattr(factory, "__name__", factory),
                factory.__module__,
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
        or len(suffix) > MAX_SUFFIX_LENGTH
    ):
        raise UnsupportedError(
            f"its suffix is {short_repr(suffix)}, expected the suffix of a file name such as '.npy'"
        )
    if any(other.suffix == suffix for other in others):
        raise UnsupportedError(f"its suffix {suffix!r} is already used by another view")


def refusals(array: Array) -> dict[str, str | None]:
    """Return, by suffix of the view, the reason why it cannot present the array, or None if it can."""
    return {view.suffix: refusal(view, array) for view in all_views()}


def refusal(view: View, array: Array) -> str | None:
    """Return the reason why the view cannot present the array, or None if it can."""
    try:
        return view.refusal(array)
    except Exception as error:  # views of other packages may raise any exception
        return f"the view failed: {describe_error(error)}"


def make_content(view: View, array: Array, name: str) -> VirtualFileContent:
    """Return the content of the file in which the view presents the array. Raises StoreError if the view fails."""
    try:
        content: object = view.content(array, name)
    except (ZarrError, OSError, MemoryError):
        raise
    except Exception as error:  # views of other packages may raise any exception
        raise StoreError(
            f"{name}{view.suffix}: the view {type(view).__name__} failed: {describe_error(error)}", errno.EIO
        ) from error
    if not isinstance(content, VirtualFileContent):
        raise StoreError(
            f"{name}{view.suffix}: the view {type(view).__name__} returned {short_repr(content)}, "
            "expected a VirtualFileContent",
            errno.EIO,
        )
    return content
