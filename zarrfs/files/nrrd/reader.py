"""NRRD files (.nrrd, .nhdr) as images. See https://teem.sourceforge.net/nrrd/format.html"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import path_stamp
from zarrfs.files.foreign_array import ForeignArray, plane_chunks
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis, image_nodes
from zarrfs.files.spatial_axes import (
    LPS_TO_RAS,
    is_outside_plane,
    is_plain,
    oriented_axes,
    plane_normal,
)
from zarrfs.files.stored_values import stored_values
from zarrfs.libraries import load_library
from zarrfs.ngff.units import is_time, unit_name
from zarrfs.text import short_repr

__all__ = ["open_nrrd"]

ENCODINGS: dict[str, str | None] = {
    "raw": None,
    "gzip": "gzip",
    "gz": "gzip",
    "bzip2": "bzip2",
    "bz2": "bzip2",
}

TYPES = {
    **dict.fromkeys(("signed char", "int8", "int8_t"), "i1"),
    **dict.fromkeys(("uchar", "unsigned char", "uint8", "uint8_t"), "u1"),
    **dict.fromkeys(("short", "short int", "signed short", "signed short int", "int16", "int16_t"), "i2"),
    **dict.fromkeys(("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"), "u2"),
    **dict.fromkeys(("int", "signed int", "int32", "int32_t"), "i4"),
    **dict.fromkeys(("uint", "unsigned int", "uint32", "uint32_t"), "u4"),
    **dict.fromkeys(("longlong", "long long", "long long int", "signed long long", "int64", "int64_t"), "i8"),
    **dict.fromkeys(
        ("ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"), "u8"
    ),
    "signed long long int": "i8",
    "float": "f4",
    "double": "f8",
}
"""The data types of NRRD."""

MAX_HEADER_NBYTES = 1 << 20

SPACES = {
    **dict.fromkeys(("right-anterior-superior", "ras", "rast"), np.array([1.0, 1.0, 1.0])),
    **dict.fromkeys(("left-anterior-superior", "las", "last"), np.array([-1.0, 1.0, 1.0])),
    **dict.fromkeys(("left-posterior-superior", "lps", "lpst"), LPS_TO_RAS),
}
"""The signs that convert the coordinates of a space to right, anterior, superior."""

SAMPLE_KINDS = ("list", "point", "vector", "covariant-vector", "normal")
COLOR_KINDS = ("color", "matrix", "quaternion", "symmetric")


def open_nrrd(path: str) -> ForeignStore:
    """Return a store with the image of a NRRD file. Values in another file of the same directory are read too.

    Raises LocationError for a damaged file, and UnsupportedError for encodings, types and lists of files that are not
    supported.
    """
    nrrd: Any = load_library("nrrd", "nrrd", "reading NRRD")
    try:
        with os.fdopen(open_regular_file(path), "rb") as source:
            stream = io.BytesIO(source.read(MAX_HEADER_NBYTES))
        header = nrrd.read_header(stream)
        offset = stream.tell()
        sizes = [int(length) for length in header["sizes"]]
        dtype = _dtype(header, path)
        encoding = str(header["encoding"]).lower()
        file, offset = _data_file(path, header, offset)
        axes = _axes(header, len(sizes))
        sizes += [1] * (len(axes) - len(sizes))
    except ZarrError:
        raise
    except Exception as error:  # pynrrd raises errors of many kinds
        raise LocationError(f"{path} is not a valid NRRD file: {error}") from error
    if encoding not in ENCODINGS:
        raise UnsupportedError(
            f"{path}: the encoding {short_repr(encoding)} is not supported; expected raw, gzip or bzip2"
        )
    shape = tuple(reversed(sizes))
    values, fd = stored_values(file, offset, shape, dtype, ENCODINGS[encoding])
    array = ForeignArray(shape, plane_chunks(shape, dtype.itemsize), dtype.newbyteorder("="), values.read)
    nodes = image_nodes(array, axes, str(header.get("content", "")))
    return ForeignStore(f"file://{path}", nodes, lambda: path_stamp(path), lambda: os.close(fd))


def _dtype(header: Mapping[str, Any], path: str) -> np.dtype[Any]:
    name = TYPES.get(str(header["type"]))
    if name is None:
        raise UnsupportedError(
            f"{path}: the type {short_repr(header['type'])} is not supported; expected numbers"
        )
    endian = str(header.get("endian", "little")).lower()
    return np.dtype(name).newbyteorder(">" if endian == "big" else "<")


def _data_file(path: str, header: Mapping[str, Any], offset: int) -> tuple[str, int]:
    """Return the file that contains the values, and their offset in it."""
    if int(header.get("line skip", header.get("lineskip", 0))):
        raise UnsupportedError(f"{path}: the field 'line skip' is not supported")
    skipped = int(header.get("byte skip", header.get("byteskip", 0)))
    if skipped < -1:
        raise LocationError(f"{path}: the field 'byte skip' is {skipped}, expected -1 or more")
    name = header.get("data file", header.get("datafile"))
    if name is None:
        return path, -1 if skipped == -1 else offset + skipped
    name = str(name)
    if name.upper().startswith("LIST") or "%" in name:
        raise UnsupportedError(f"{path}: values in several files are not supported")
    if os.path.basename(name) != name:
        raise LocationError(f"{path}: the values are in {name}; only a file of the same directory is read")
    return os.path.join(os.path.dirname(path), name), skipped


def _axes(header: Mapping[str, Any], ndim: int) -> list[ImageAxis]:
    """Return the axes from the slowest to the fastest one, which is the last one in C order.

    A plane in a space of three dimensions has an additional axis z of length 1 if x and y cannot state its position.
    """
    kinds = [str(kind).lower() for kind in header.get("kinds") or ["domain"] * ndim]
    is_spatial = [not (kind in SAMPLE_KINDS or "-" in kind or kind.endswith(COLOR_KINDS)) for kind in kinds]
    is_spatial = [spatial and kind != "time" for spatial, kind in zip(is_spatial, kinds, strict=True)]
    spatial_count = sum(is_spatial)
    names = iter("xyz" if spatial_count <= 3 else [f"dim{number}" for number in range(spatial_count)])
    units = _units(header, ndim)
    axes = []
    for number in range(ndim):
        scale = _scale(header, number)
        if is_spatial[number]:
            axes.append(ImageAxis(next(names), scale, units[number], _position(header, number)))
        else:
            name = "t" if kinds[number] == "time" else "c"
            unit = units[number] if name == "t" and is_time(units[number]) else None
            axes.append(ImageAxis(name, scale, unit, _position(header, number)))
    spatial = [number for number in range(ndim) if is_spatial[number]]
    oriented = _oriented(header, spatial, axes)
    for number, axis in zip(spatial, oriented, strict=False):
        axes[number] = axis
    axes += oriented[len(spatial) :]
    axes.reverse()
    return axes


def _oriented(
    header: Mapping[str, Any], spatial: Sequence[int], axes: Sequence[ImageAxis]
) -> list[ImageAxis]:
    """Return the spatial axes with position and orientation; none if the header states neither.

    For a plane, they can include a third axis; see ``_axes``.

    As in ITK, a space without a name is left, posterior, superior, and axes without directions are those of this space.
    The axes have no orientation then, unless they are not those of the space.
    """
    directions, position = header.get("space directions"), header.get("space origin")
    if (directions is None and position is None) or not 0 < len(spatial) <= 3:
        return []
    chosen = [axes[number] for number in spatial]
    name = str(header.get("space", "")).lower().removesuffix("-time")
    signs = SPACES.get(name, LPS_TO_RAS)
    components = 3 if name in SPACES else len(spatial)
    matrix, origin = np.zeros((len(spatial), 3)), np.zeros(3)
    if position is not None:
        origin[:components] = np.array(list(position), np.float64)[:components]
    if directions is not None:
        if any(directions[number] is None for number in spatial):
            return []
        vectors = np.array([list(directions[number]) for number in spatial], np.float64)
        matrix[:, :components] = vectors[:, :components]
        if name in SPACES and len(spatial) == len(axes) == 2 and is_outside_plane(matrix, origin):
            third = ImageAxis("z", 1.0, chosen[0].unit, 0.0)
            solid = np.vstack([matrix, plane_normal(matrix, 1.0)])
            return oriented_axes([*chosen, third], solid * signs, origin * signs) or []
        if name in SPACES or not is_plain(matrix):
            return oriented_axes(chosen, matrix * signs, origin * signs) or []
    if not np.isfinite(origin).all():
        return []
    places = (origin * signs * LPS_TO_RAS + 0.0).tolist()  # not -0.0
    return [axis._replace(origin=place) for axis, place in zip(chosen, places, strict=False)]


def _scale(header: Mapping[str, Any], number: int) -> float:
    """Return the distance of the elements along a dimension, from its direction or its spacing."""
    directions: Sequence[Any] | None = header.get("space directions")
    if directions is not None:
        vector = directions[number]
        length = 0.0 if vector is None else math.hypot(*map(float, vector))
        return length if math.isfinite(length) and length > 0 else 1.0
    spacings = header.get("spacings")
    spacing = math.nan if spacings is None else float(spacings[number])
    return spacing if math.isfinite(spacing) and spacing > 0 else 1.0


def _position(header: Mapping[str, Any], number: int) -> float:
    """Return the position of the first element along a dimension. 0 if the dimension is not parallel to an axis of
    space, or points in the opposite direction.
    """
    directions, origin = header.get("space directions"), header.get("space origin")
    vector = None if directions is None else directions[number]
    if vector is None or origin is None:
        return 0.0
    along = [place for place, part in enumerate(vector) if float(part) != 0.0]
    if len(along) != 1 or not float(vector[along[0]]) > 0 or along[0] >= len(origin):
        return 0.0
    position = float(origin[along[0]])
    return position if math.isfinite(position) else 0.0


def _units(header: Mapping[str, Any], ndim: int) -> list[str | None]:
    stated = header.get("space units") or header.get("units") or []
    known = [unit_name(str(unit).strip('"')) for unit in stated]
    if len(known) == ndim:
        return known
    return [known[0] if known else None] * ndim
