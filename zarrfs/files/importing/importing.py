"""Importing files: open them as a read-only hierarchy, and copy its images and arrays."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy.typing as npt

import zarrfs
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.unfinished import UNFINISHED
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import Location
from zarrfs.engine.stores.locations.local import microscope_remedy
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.errors import (
    LocationError,
    LocationNotFoundError,
    NodeNotFoundError,
    NodeTypeError,
    OptionError,
    ZarrError,
)
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.importing.images import find_images, image_of_array, image_of_group, ordered_image
from zarrfs.files.raw.reader import open_raw
from zarrfs.files.recognition import is_known_file, open_node, open_stack
from zarrfs.files.stacks.names import natural_order
from zarrfs.files.stacks.reader import files_of_directory
from zarrfs.logs import logger
from zarrfs.ngff.orientation import ANATOMICAL_DIRECTIONS
from zarrfs.ngff.versions import full_version, zarr_format_of
from zarrfs.tools.copying.conversion import convert
from zarrfs.tools.copying.destinations import one_transaction
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.unfinished import mark_complete
from zarrfs.tools.pyramids.building import build_pyramid
from zarrfs.tools.pyramids.downsampling import Method

__all__ = ["import_files"]

IMAGE_DIMENSIONS = range(2, 6)

Geometry = tuple[Sequence[str] | None, Sequence[float] | None, str | None]
"""The names, the scales and the unit that replace those of the dimensions of a file."""


def import_files(
    files: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    pattern: str | None = None,
    plain: bool = False,
    axes: Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
    name: str | None = None,
    levels: int | None = None,
    method: Literal["auto"] | Method = "auto",
    version: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    offset: int = 0,
    chunks: Any = None,
    shards: Any = None,
    compressors: Any = None,
    if_exists: Literal["raise", "replace", "resume"] = "raise",
    verify: bool = False,
    memory: int = 256 << 20,
    progress: Any = None,
    dry_run: bool = False,
    sample_writes: bool = False,
    skip_broken: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> CopyReport:
    """Import a file, or a stack of image files, to a new Zarr hierarchy.

    An image (TIFF, OME-TIFF, ImageJ, NRRD, MetaImage, NIfTI, PNG, JPEG, NPY and raw with 2 to 5 dimensions) becomes an
    OME-NGFF image with its axes, pixel sizes, units and channels. Its axes are put into the order time, channel, space.
    A file with several images becomes a group of images. HDF5 and NPZ become a group with the same names.

    Args:
        files: paths, or patterns of ``glob`` or a directory for stacks, such as one file for each plane. The numbers in
            the names are the positions along t, c and z, as ``source`` of the result states; these axes precede those
            of the files. Files of an OME-TIFF that states its parts need not be named, except for one.
        pattern: the names of the files of a stack, if their meaning is not clear: ``{t}``, ``{c}`` and ``{z}`` stand
            for the position along an axis, ``*`` for any text, as in ``"*_{c}_{z}.tif"``.
        plain: copy the arrays as they are, without OME-NGFF metadata and without further levels.
        axes: the names of the dimensions of the file, such as ``["z", "y", "x"]``.
        scale, unit, name, levels, method, version: as for ``build_pyramid``. The scales are in the order of ``axes``.
            The values of a TIFF file with a colour map that is not a ramp from black to a colour are labels.
        shape, dtype, offset: of a raw file, which has no header.
        chunks, compressors: as for ``convert``. By default ``"auto"`` for images, and those of the file for others.
        shards, if_exists, verify, memory, progress, dry_run, sample_writes, storage_options: as for ``convert``.
        skip_broken: omit images and arrays that cannot be represented. They are in ``skipped`` of the result.

    Raises LocationError for damaged files and missing libraries, UnsupportedError for what Zarr or OME-NGFF cannot
    represent, OptionError for options that do not fit, IncompleteCopyError for members that cannot be represented, and
    the errors of writing.
    """
    allow_external = bool((storage_options or {}).get("allow_external"))
    # With a cache of its own: the one that is shared by default may have gigabytes.
    opened = _open(_expanded(files), pattern, shape, dtype, offset, allow_external).store
    _check_complete(opened, plain or axes is not None)
    node = zarrfs.open(opened, mode="r", cache_size=memory)
    copying: dict[str, Any] = {
        "chunks": chunks,
        "shards": shards,
        "compressors": compressors,
        "if_exists": if_exists,
        "verify": verify,
        "memory": memory,
        "progress": progress,
        "dry_run": dry_run,
        "sample_writes": sample_writes,
        "storage_options": storage_options,
    }
    pyramid: dict[str, Any] = {
        "name": name,
        "levels": levels,
        "method": method,
        "version": version,
        **copying,
    }
    # The chunks of files are often planes or strips, and the values that are presented are not compressed.
    pyramid |= {
        "chunks": "auto" if chunks is None else chunks,
        "compressors": "auto" if compressors is None else compressors,
    }
    with node, one_transaction(target, storage_options, dry_run=dry_run) as (place, place_options):
        copying["storage_options"] = pyramid["storage_options"] = place_options
        report = None if plain else _import_images(node, place, (axes, scale, unit), pyramid, skip_broken)
        if report is None:
            _check_unused(
                axes=axes,
                scale=scale,
                unit=unit,
                name=name,
                levels=levels,
                method=None if method == "auto" else method,
                version=version,
            )
            report = convert(node, place, skip_broken=skip_broken, **copying)
    if isinstance(opened, ForeignStore):
        report.source = opened.description
    return report


def _import_images(
    node: Array | Group,
    target: Location,
    geometry: Geometry,
    pyramid: dict[str, Any],
    skip_broken: bool,
) -> CopyReport | None:
    """Import the images at a node. None: there are none, and nothing was written."""
    report = CopyReport()
    images = find_images(node, skip_broken=skip_broken, report=report)
    if isinstance(node, Array) and node.ndim in IMAGE_DIMENSIONS:
        return build_pyramid(ordered_image(image_of_array(node), *geometry), target, **pyramid)
    if not images:
        return None
    if list(images) != [""]:
        return _import_series(images, target, geometry, pyramid, report)
    image = image_of_group(images[""])
    if any(axis.direction for axis in image.axes):
        logger.warning(
            "%s: the axes are not parallel to those of the body; their exact directions are in the attribute "
            "%r, which other programs may not know",
            image.array.store.url,
            ANATOMICAL_DIRECTIONS,
        )
    return build_pyramid(ordered_image(image, *geometry), target, **pyramid)


def _import_series(
    images: dict[str, Group],
    target: Location,
    geometry: Geometry,
    pyramid: dict[str, Any],
    report: CopyReport,
) -> CopyReport:
    """Import the images of a file as members of a group. See https://ngff.openmicroscopy.org/0.5/#bf2raw"""
    sources = {path: ordered_image(image_of_group(group), *geometry) for path, group in images.items()}
    # The dry run finds the errors of options before anything is written.
    for is_dry in (True,) if pyramid["dry_run"] else (True, False):
        report.clear()
        if not is_dry:
            _begin_series(target, pyramid)
        for path, source in sources.items():
            place = PrefixStore(target, path) if isinstance(target, Store) else f"{target!s}/{path}"
            built = build_pyramid(
                source, place, **{**pyramid, "dry_run": is_dry, "estimate": pyramid["dry_run"]}
            )
            report += [f"{path}: {line}" for line in built]
            report.estimates += [
                replace(estimate, path=f"{path}, {estimate.path}") for estimate in built.estimates
            ]
    if not pyramid["dry_run"]:
        with zarrfs.open_group(target, mode="r+", storage_options=pyramid["storage_options"]) as group:
            mark_complete(group.store, group.path)
    return report


def _begin_series(target: Location, pyramid: dict[str, Any]) -> None:
    """Create the group of a series, which is marked as unfinished, or mark the existing one of an interrupted run."""
    version, options = full_version(pyramid["version"] or "0.5"), pyramid["storage_options"]
    layout: dict[str, Any] = {"bioformats2raw.layout": 3}
    attributes = layout if version == "0.4" else {"ome": {"version": version, **layout}}
    attributes[UNFINISHED] = {"command": "import"}
    if pyramid["if_exists"] == "resume":
        with suppress(NodeNotFoundError, LocationNotFoundError):
            with zarrfs.open_group(target, mode="r+", storage_options=options) as group:
                group.attrs.update(attributes)
            return
    zarrfs.create_group(
        target,
        zarr_format=zarr_format_of(version),
        attributes=attributes,
        overwrite=pyramid["if_exists"] == "replace",
        storage_options=options,
    ).close()


def _check_unused(**options: object) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise OptionError(
            f"{given[0]}: the file does not become an OME-NGFF image; it is copied as it is, without this option"
        )


def _check_complete(store: Store, is_accepted: bool) -> None:
    """Raise LocationError if metadata of the file are not valid; log a warning if the user accepts that."""
    problem = store.ignored_metadata if isinstance(store, ForeignStore) else ""
    if problem and not is_accepted:
        raise LocationError(
            f"{problem}. Repair the OME-XML, or import the pages in the order of the file: with "
            "axes='zyx' and the option scale, or with plain=True without "
            "OME-NGFF metadata"
        )
    if problem:
        logger.warning("%s", problem)


def _expanded(files: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the files that paths, patterns or a directory denote, sorted by the numbers in the names."""
    found: list[str] = []
    for item in files:
        text = os.fspath(item)
        matches = [text] if os.path.lexists(text) or not glob.has_magic(text) else glob.glob(text)
        if not matches:
            raise LocationNotFoundError(f"{text}: no file matches the pattern")
        found += matches
    if len(found) == 1 and os.path.isdir(found[0]) and not _is_hierarchy(found[0]):
        return files_of_directory(found[0])
    if len(found) > 1:
        found = sorted(dict.fromkeys(found), key=natural_order)
    return found


def _is_hierarchy(directory: str) -> bool:
    try:
        zarrfs.open(directory, mode="r", cache_size=0).store.close()
    except (NodeNotFoundError, LocationNotFoundError):
        return False
    except ZarrError:
        return True  # the error of opening it is the better one
    return True


def _open(
    files: list[str],
    pattern: str | None,
    shape: Sequence[int] | None,
    dtype: npt.DTypeLike | None,
    offset: int,
    allow_external: bool,
) -> Array | Group:
    """Open a file, or the files of a stack."""
    if not files:
        raise OptionError("no file was given")
    if len(files) > 1 or pattern is not None:
        if shape is not None or dtype is not None:
            raise OptionError(
                "shape and dtype describe one raw file; raw files cannot be imported as a stack"
            )
        return zarrfs.open(open_stack(files, pattern, "pattern='*_{t}_{c}_{z}.tif'"))
    (file,) = files
    if shape is not None or dtype is not None:
        if shape is None or dtype is None:
            raise OptionError(f"{file}: a raw file needs both shape='Z,Y,X' and dtype='uint16'")
        return zarrfs.open(open_raw(file, shape, dtype, offset))
    try:
        node: Array | Group = open_node(file, "", allow_external)
    except LocationError:
        if is_known_file(file) or not os.path.isfile(file):
            raise
        if microscope_remedy(file):
            raise
        raise LocationError(
            f"{file} is not a file of a known format; expected TIFF, NumPy, HDF5, NetCDF4, NRRD, MetaImage, NIfTI, PNG "
            "or JPEG, or raw values with shape='Z,Y,X' and dtype='uint16'"
        ) from None
    if not isinstance(node.store, ForeignStore):
        raise NodeTypeError(
            f"{file} is a Zarr hierarchy; use zarrfs copy or convert, or zarrfs pyramid for an array"
        )
    return node
