"""The registry of views. A new view is a module of this package and an entry of ``BUILT_IN``. Other packages register
subclasses of View in the entry point group ``zarrfs.views``, under any name.

Views of other packages may raise any exception. The functions of this module call them, so that such an exception
affects only the files of that view.
"""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Literal

from zarrfs.errors import OptionError, StoreError, UnsupportedError, ZarrError, describe_error
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.fits_view import FitsView
from zarrfs.files.hdf5.h5_view import H5View
from zarrfs.files.hdf5.nc_view import NcView
from zarrfs.files.json_view import JsonView
from zarrfs.files.metaimage.view import MetaImageHeaderView, MetaImageView
from zarrfs.files.nifti.view import NiftiView
from zarrfs.files.npy.view import FortranNpyView, NpyView
from zarrfs.files.nrrd.view import DetachedNrrdView, NrrdView
from zarrfs.files.rasters.envi_view import EnviView
from zarrfs.files.rasters.vrt_view import VrtView
from zarrfs.files.raw.view import FortranRawView, RawView
from zarrfs.files.result_cache import ResultCache
from zarrfs.files.safetensors_view import SafetensorsView
from zarrfs.files.tables.csv_view import CsvView
from zarrfs.files.tables.txt_view import TxtView
from zarrfs.files.tiff.ome_tif_view import OmeTifView
from zarrfs.files.tiff.planes_view import PlanesView
from zarrfs.files.tiff.tif_view import TifView
from zarrfs.files.view import PresentedArray, View
from zarrfs.files.vti_view import VtiView
from zarrfs.logs import logger
from zarrfs.plugins import load_plugins
from zarrfs.text import short_repr

__all__ = [
    "PLANES",
    "PlanesView",
    "PresentedArray",
    "View",
    "all_kinds",
    "all_views",
    "are_all_built_in",
    "array_of_planes",
    "listed_views",
    "make_content",
    "overlapping_suffixes",
    "unsupported_reason",
    "view_endings",
    "views_of_name",
]

BUILT_IN: tuple[Callable[[], View], ...] = (
    NpyView,
    RawView,
    FortranNpyView,
    FortranRawView,
    DetachedNrrdView,
    NrrdView,
    MetaImageHeaderView,
    MetaImageView,
    NiftiView,
    VtiView,
    SafetensorsView,
    H5View,
    NcView,
    TifView,
    OmeTifView,
    EnviView,
    VrtView,
    FitsView,
    CsvView,
    TxtView,
    lambda: JsonView(unsupported_reasons),
)

PLANES = PlanesView()
"""The only view that is a directory."""

ENTRY_POINTS = "zarrfs.views"

MAX_SUFFIX_LENGTH = 64

ALL_VIEWS = "all"
"""The name that selects all views."""

FORTRAN_SUFFIXES = {NpyView.suffix: FortranNpyView.suffix, RawView.suffix: FortranRawView.suffix}
"""The suffixes of the views in Fortran order by those of the same views in C order."""


@cache
def all_views() -> tuple[View, ...]:
    """Return one instance of each view, the built-in views first. A view that fails is skipped with a warning."""
    views: list[View] = []
    for factory in (*BUILT_IN, *load_plugins(ENTRY_POINTS, type[View])):
        try:
            view = factory()
            _check_suffix(view, views)
            _check_signatures(view)
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


def _check_signatures(view: View) -> None:
    for method in (view.unsupported_reason, view.content):
        try:
            inspect.signature(method).bind(None)
        except TypeError as error:
            raise UnsupportedError(
                f"its method {method.__name__!r} does not accept one argument, a PresentedArray ({error}); install a "
                "version of the package that supports this version of zarrfs"
            ) from error


@cache
def _views_by_suffix() -> dict[int, dict[str, View]]:
    """Return the views by their suffix, by its length, the shortest one first."""
    by_length: dict[int, dict[str, View]] = {}
    for view in sorted(all_views(), key=lambda view: len(view.suffix)):
        by_length.setdefault(len(view.suffix), {})[view.suffix] = view
    return by_length


def views_of_name(name: str) -> Iterator[tuple[View, str]]:
    """Yield (view, name of the array) for each view whose suffix a file name has, the longest array name first.

    ``a.ome.tif`` can be a view of an array ``a.ome`` or of an array ``a``. The array with the longer name takes
    precedence.
    """
    for length, views in _views_by_suffix().items():
        view = views.get(name[-length:])
        if view is not None and len(name) > length:
            yield view, name[:-length]


@cache
def overlapping_suffixes() -> frozenset[str]:
    """Return the suffixes that end with another suffix: ``a.F.npy`` can be a view of ``a`` or of ``a.F``."""
    suffixes = [view.suffix for view in all_views()]
    return frozenset(
        one for one in suffixes if any(one != other and one.endswith(other) for other in suffixes)
    )


@cache
def view_endings() -> frozenset[str]:
    """Return the last parts of the suffixes of all views, with the dot: ``.tif`` for ``.ome.tif``."""
    return frozenset(f".{view.suffix.rpartition('.')[2]}" for view in all_kinds())


@cache
def all_kinds() -> tuple[View | PlanesView, ...]:
    """Return the views that are files and those that are directories."""
    return (*all_views(), PLANES)


@cache
def are_all_built_in() -> bool:
    """Return whether no other package has registered a view."""
    return all(map(_is_built_in, all_kinds()))


def _is_built_in(view: View | PlanesView) -> bool:
    return type(view).__module__.startswith(f"{__package__}.")


def array_of_planes(name: str) -> str | None:
    """Return the name of the array whose directory of planes has this name, or None if it is no such name."""
    stem = name.removesuffix(PLANES.suffix)
    return stem if stem and stem != name else None


def listed_views(
    names: Collection[str] | None, order: Literal["C", "F"] = "C"
) -> tuple[View | PlanesView, ...]:
    """Return the views that directory listings contain.

    ``names`` are suffixes without the dot (``npy``, ``ome.tif``), or ``all``. None stands for the views that are listed
    by default; with ``order`` F these are ``.F.npy`` and ``.F.raw`` instead of ``.npy`` and ``.raw``. Raises
    OptionError for an unknown name.
    """
    if names is None:
        listed = [view.suffix for view in all_kinds() if view.listed]
        if order == "F":
            listed = [FORTRAN_SUFFIXES.get(suffix, suffix) for suffix in listed]
        return tuple(view for view in all_kinds() if view.suffix in listed)
    if ALL_VIEWS in names:
        return all_kinds()
    known = {view.suffix.removeprefix("."): view for view in all_kinds()}
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise OptionError(
            f"{short_repr(unknown[0])} is not a view; expected {', '.join(sorted(known))} or {ALL_VIEWS} (--views)"
        )
    return tuple(view for name, view in known.items() if name in names)


def unsupported_reasons(presented: PresentedArray) -> dict[str, str | None]:
    """Return, by suffix of the view, the reason why it cannot present the array, or None if it can.

    The result may be shared by many arrays and must not be changed.
    """
    shared = _shared_refusals.get(presented)
    if len(shared) == len(all_kinds()):
        return shared
    return {
        view.suffix: shared[view.suffix] if view.suffix in shared else unsupported_reason(view, presented)
        for view in all_kinds()
    }


def _built_in_refusals(presented: PresentedArray) -> dict[str, str | None]:
    return {view.suffix: unsupported_reason(view, presented) for view in all_kinds() if _is_built_in(view)}


_shared_refusals = ResultCache(_built_in_refusals)


def unsupported_reason(view: View | PlanesView, presented: PresentedArray) -> str | None:
    """Return the reason why the view cannot present the array, or None if it can.

    Raises the exception with which the geometry could not be determined, because the store may be readable again later.
    """
    try:
        return view.unsupported_reason(presented)
    except Exception as error:  # views of other packages may raise any exception
        if error is presented.failure:
            raise
        return f"the view failed: {describe_error(error)}"


def make_content(view: View, presented: PresentedArray) -> VirtualFileContent:
    """Return the content of the file in which the view presents the array. Raises StoreError if the view fails."""
    file_name = f"{presented.name}{view.suffix}"
    try:
        content: object = view.content(presented)
    except (ZarrError, OSError, MemoryError):
        raise
    except Exception as error:  # views of other packages may raise any exception
        raise StoreError(
            f"{file_name}: the view {type(view).__name__} failed: {describe_error(error)}", errno.EIO
        ) from error
    if not isinstance(content, VirtualFileContent):
        raise StoreError(
            f"{file_name}: the view {type(view).__name__} returned {short_repr(content)}, "
            "expected a VirtualFileContent",
            errno.EIO,
        )
    return content
