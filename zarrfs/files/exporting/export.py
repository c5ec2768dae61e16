"""Exporting an array, or the arrays of a group, to a file of another format, which its suffix names."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy.typing as npt

import zarrfs
from zarrfs.api.open import Location
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import NodeTypeError, OptionError, UnsupportedError
from zarrfs.files.exporting.conversion import converted
from zarrfs.files.exporting.presented_files import (
    DETACHED,
    Progress,
    content_of,
    find_view,
    write_content,
    write_gzip,
    write_npz,
)
from zarrfs.files.exporting.sources import presented_array
from zarrfs.files.images.export import PLANE_SUFFIXES, write_planes
from zarrfs.files.output_files import check_new, new_file
from zarrfs.files.view import PresentedArray
from zarrfs.files.views import all_views
from zarrfs.tools.copying.presence import unless_deleted
from zarrfs.tools.member_arrays import member_arrays

__all__ = ["SUFFIXES", "export"]

SUFFIXES = (".npz", ".nii.gz", *PLANE_SUFFIXES)
"""The suffixes besides those of the views of a mount."""

ALIASES = {".tiff": ".tif", ".hdf5": ".h5", ".ome.tiff": ".ome.tif"}


def export(
    store: Location,
    file: str | os.PathLike[str],
    path: str | None = "",
    *,
    level: int = 0,
    coordinate_system: str | None = None,
    dtype: npt.DTypeLike | None = None,
    if_exists: Literal["raise", "replace"] = "raise",
    memory: int | None = None,
    progress: Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> list[str]:
    """Write the array at a location to a file, in the format of its suffix. Return the names of the written files.

    The location of an OME-NGFF image denotes its level ``level``, and that of a group with one array denotes this
    array. The formats are those of the views of a mount (``.npy``, ``.tif``, ``.ome.tif``, ``.nii``, ``.nrrd``,
    ``.mha`` ...), ``.nii.gz``, ``.npz`` (all arrays of a group), and ``.png`` or ``.jpg`` (one file for each plane).
    The headers ``.mhd``, ``.nhdr``, ``.hdr`` and ``.vrt`` are written with a file of the elements, ``.raw``.

    Positions are those in the coordinate system ``coordinate_system`` of the image, or of the scene that contains it
    (OME-Zarr 0.6). By default it is the first one of the scene, if there is an affine path to it, otherwise the one of
    the image.

    With ``dtype`` the values are converted to this numeric data type, for formats that lack the data type of the array.
    Values that it cannot represent are an error; floats are rounded.

    The values are read part by part. ``memory`` is the size of the cache for decoded chunks in bytes; by default the
    shared cache of the process is used. Chunks are decoded again if those of one layer need more. The parts need up to
    64 MiB in addition. A file appears when it is complete, except for the planes of a stack: each of them
    appears when it is complete. ``progress`` is called with the name of a file, the number of bytes written, and the
    size of the file.

    Raises LocationError if a file exists, OptionError for an unknown suffix, level or coordinate system,
    UnsupportedError if the format cannot represent the array or the coordinate system, DataError for a value that
    ``dtype`` cannot represent, ChunkDecodeError for a corrupt chunk, and StoreError.
    """
    name = os.fspath(file)
    replace = if_exists == "replace"
    base = os.path.basename(name)
    suffix = _suffix(base)
    stem = base[: len(base) - len(suffix)]
    # The converted array has a cache, too.
    cache_size = memory // 2 if memory is not None and dtype is not None else memory
    node = zarrfs.open(store, path, mode="r", cache_size=cache_size, storage_options=storage_options)
    with node:
        if suffix == ".npz":
            if dtype is not None:
                raise OptionError(f"{base}: arrays are not converted in .npz files; export each as .npy")
            _export_npz(node, name, stem, level, replace, progress)
            return [name]
        presented = presented_array(node, level, stem, coordinate_system)
        source = presented.array
        if dtype is not None:
            presented = converted(presented, dtype, cache_size)
        if suffix in PLANE_SUFFIXES:
            with unless_deleted("exported", source):
                return write_planes(presented, name, replace, progress)
        _export_view(presented, source, name, suffix, replace, progress)
    return [name, _raw_file(name, suffix)] if suffix in DETACHED else [name]


def _suffix(base: str) -> str:
    """Return the suffix of a file name, as it is written, that decides on the format."""
    lower = base.lower()
    known = {*SUFFIXES, *ALIASES, *(view.suffix for view in all_views())}
    matching = [suffix for suffix in known if lower.endswith(suffix.lower()) and len(lower) > len(suffix)]
    if not matching:
        expected = ", ".join(sorted(known))
        raise OptionError(
            f"{base}: its suffix does not name a format that can be written; expected one of {expected}"
        )
    return max(matching, key=len)


def _raw_file(name: str, suffix: str) -> str:
    return f"{name[: len(name) - len(suffix)]}.raw"


def _export_view(
    presented: PresentedArray,
    source: Array,
    name: str,
    suffix: str,
    replace: bool,
    progress: Progress | None,
) -> None:
    """Write an array to a file. ``source`` is the stored array whose elements, perhaps converted, are presented."""
    is_compressed = suffix == ".nii.gz"
    view = find_view(f"a{ALIASES.get(suffix, suffix.removesuffix('.gz'))}")
    if view is None:
        raise UnsupportedError(f"{suffix} is not available: its view could not be loaded")
    content = content_of(view, presented)
    base = os.path.basename(name)
    if suffix in DETACHED:
        raw = find_view("a.raw")
        assert raw is not None
        elements = content_of(raw, presented)
        raw_name = _raw_file(name, suffix)
        check_new(name, replace)
        with new_file(raw_name, replace) as file, unless_deleted("exported", source):
            write_content(elements, file, os.path.basename(raw_name), progress)
    with new_file(name, replace) as file, unless_deleted("exported", source):
        (write_gzip if is_compressed else write_content)(content, file, base, progress)


def _export_npz(
    node: Any, name: str, stem: str, level: int, replace: bool, progress: Progress | None
) -> None:
    npy = find_view("a.npy")
    assert npy is not None
    if isinstance(node, Group):
        arrays = dict(member_arrays(node))
        if not arrays:
            raise NodeTypeError(f"{node.store.url}: {node.name} has no arrays")
        presented = {key: PresentedArray(array, key) for key, array in arrays.items()}
    else:
        presented = {"arr_0": presented_array(node, level, stem)}
    contents = {key: content_of(npy, one) for key, one in presented.items()}
    sources = (one.array for one in presented.values())
    with new_file(name, replace) as file, unless_deleted("exported", *sources):
        write_npz(contents, file, progress)
