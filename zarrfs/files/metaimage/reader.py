"""MetaImage files (.mha, .mhd) as images. See https://itk.org/Wiki/ITK/MetaIO/Documentation"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError
from zarrfs.files.contiguous import path_stamp
from zarrfs.files.foreign_array import ForeignArray, plane_chunks
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis, image_nodes
from zarrfs.files.spatial_axes import LPS_TO_RAS, is_plain, oriented_axes
from zarrfs.files.stored_values import stored_values
from zarrfs.text import short_repr

__all__ = ["is_metaimage", "open_metaimage"]

TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}

MAX_HEADER_NBYTES = 1 << 20
HEAD_NBYTES = 256
MAX_DIMENSIONS = 16
LOCAL = "LOCAL"
"""The value of ElementDataFile if the values follow the header."""


def is_metaimage(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a MetaImage header."""
    head = head[:HEAD_NBYTES]
    first = head.lstrip().partition(b"=")[0].strip()
    return first in (b"ObjectType", b"NDims", b"Comment") and b"=" in head


def open_metaimage(path: str) -> ForeignStore:
    """Return a store with the image of a MetaImage file. Values in another file of the same directory are read too.

    MetaImage has no unit; it is millimetres by convention. The axes have an orientation if the file states it
    (``AnatomicalOrientation``), or if they are not those of the coordinate system.

    Raises LocationError for a damaged file, and UnsupportedError for types and lists of files that are not supported.
    """
    fields, offset = _header(path)
    try:
        sizes = [int(part) for part in fields["DimSize"].split()]
        count = int(fields["NDims"])
        channels = int(fields.get("ElementNumberOfChannels", "1"))
    except (KeyError, ValueError) as error:
        raise LocationError(f"{path} is not a valid MetaImage file: {error}") from error
    if len(sizes) != count or not 0 < count <= MAX_DIMENSIONS or min(sizes) < 1 or channels < 1:
        raise LocationError(
            f"{path}: DimSize is {short_repr(fields['DimSize'])}, expected {count} positive lengths"
        )
    name = TYPES.get(fields.get("ElementType", "").upper())
    if name is None:
        raise UnsupportedError(
            f"{path}: ElementType {short_repr(fields.get('ElementType'))} is not supported"
        )
    order = fields.get("BinaryDataByteOrderMSB", fields.get("ElementByteOrderMSB", "False"))
    dtype = np.dtype(name).newbyteorder(">" if _is_true(order) else "<")
    if not _is_true(fields.get("BinaryData", "True")):
        raise UnsupportedError(f"{path}: values as text (BinaryData = False) are not supported")
    file, offset = _data_file(path, fields, offset)
    shape = (*reversed(sizes), channels) if channels > 1 else tuple(reversed(sizes))
    compression = "zlib" if _is_true(fields.get("CompressedData", "False")) else None
    values, fd = stored_values(file, offset, shape, dtype, compression)
    array = ForeignArray(shape, plane_chunks(shape, dtype.itemsize), dtype.newbyteorder("="), values.read)
    nodes = image_nodes(array, _axes(fields, count, channels > 1), fields.get("Name", ""))
    return ForeignStore(f"file://{path}", nodes, lambda: path_stamp(path), lambda: os.close(fd))


def _header(path: str) -> tuple[dict[str, str], int]:
    """Return the fields of the header, and the offset of its end. ElementDataFile is the last field."""
    fields: dict[str, str] = {}
    with os.fdopen(open_regular_file(path), "rb") as stream:
        if not is_metaimage(stream.read(HEAD_NBYTES)):
            raise LocationError(
                f"{path} is not a valid MetaImage file: it does not begin with a field of its header"
            )
        stream.seek(0)
        while "ElementDataFile" not in fields:
            line = stream.readline(MAX_HEADER_NBYTES)
            if not line or stream.tell() > MAX_HEADER_NBYTES:
                raise LocationError(f"{path} is not a valid MetaImage file: ElementDataFile is missing")
            key, separator, value = line.decode("utf-8", "replace").partition("=")
            if separator:
                fields[key.strip()] = value.strip()
        return fields, stream.tell()


def _data_file(path: str, fields: Mapping[str, str], offset: int) -> tuple[str, int]:
    """Return the file that contains the values, and their offset in it; -1 if they are its end."""
    name = fields["ElementDataFile"]
    try:
        skipped = int(fields.get("HeaderSize", "0"))
    except ValueError as error:
        raise LocationError(
            f"{path}: HeaderSize is {short_repr(fields['HeaderSize'])}, expected an integer"
        ) from error
    if skipped < -1:
        raise LocationError(f"{path}: HeaderSize is {skipped}, expected -1 or more")
    if name.upper() == LOCAL:
        return path, offset
    if name.upper().startswith("LIST") or "%" in name:
        raise UnsupportedError(f"{path}: values in several files are not supported")
    if os.path.basename(name) != name:
        raise LocationError(f"{path}: the values are in {name}; only a file of the same directory is read")
    return os.path.join(os.path.dirname(path), name), skipped


def _axes(fields: Mapping[str, str], count: int, has_channels: bool) -> list[ImageAxis]:
    """Return the axes, the slowest one first. Positions and directions are left, posterior, superior, as in ITK."""
    names = {1: "x", 2: "xy", 3: "xyz", 4: "xyzt"}.get(count) or [f"dim{number}" for number in range(count)]
    spacings = _numbers(fields.get("ElementSpacing", fields.get("ElementSize", "")), count, 1.0)
    origins = _numbers(_first(fields, ("Offset", "Position", "Origin")), count, 0.0)
    axes = [
        ImageAxis(name, spacing if spacing > 0 else 1.0, "millimeter" if name in "xyz" else None, origin)
        for name, spacing, origin in zip(names, spacings, origins, strict=True)
    ]
    spatial = min(count, 3)
    vectors = np.zeros((spatial, 3))
    vectors[:, :spatial] = _directions(fields, count, spatial) * [[axis.scale] for axis in axes[:spatial]]
    stated = fields.get("AnatomicalOrientation", "").upper()
    is_stated = len(stated) >= spatial and set(stated) <= set("RLAPIS")
    if count <= 4 and (is_stated or not is_plain(vectors)):
        origin = np.array([*origins[:spatial], 0.0, 0.0])[:3]
        axes[:3] = oriented_axes(axes[:3], vectors * LPS_TO_RAS, origin * LPS_TO_RAS) or axes[:3]
    axes.reverse()
    return [*axes, ImageAxis("c")] if has_channels else axes


def _directions(fields: Mapping[str, str], count: int, spatial: int) -> npt.NDArray[np.float64]:
    """Return the directions of the spatial axes, one per row. The directions of other axes are not represented."""
    text = _first(fields, ("TransformMatrix", "Rotation", "Orientation"))
    identity = np.eye(count).ravel()
    numbers = _numbers(text, count * count, math.nan)
    matrix = np.array(identity if math.isnan(numbers[0]) else numbers).reshape(count, count)
    return matrix[:spatial, :spatial]


def _first(fields: Mapping[str, str], names: Sequence[str]) -> str:
    return next((fields[name] for name in names if name in fields), "")


def _numbers(text: str, count: int, default: float) -> list[float]:
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != count or not all(map(math.isfinite, values)):
        return [default] * count
    return values


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("true", "1", "t", "yes")
