"""NIfTI-1 and NIfTI-2 files (.nii, .nii.gz) as images, read with nibabel. See https://nifti.nimh.nih.gov"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import ContiguousValues, path_stamp
from zarrfs.files.foreign_array import ForeignArray, is_presentable, plane_chunks
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.image_groups import ImageAxis, image_nodes
from zarrfs.files.spatial_axes import is_outside_plane, oriented_axes, plane_normal
from zarrfs.files.stored_values import stored_values
from zarrfs.libraries import load_library
from zarrfs.ngff.units import unit_name

__all__ = ["is_nifti", "open_nifti"]

AXES = "xyztc"
GZIP_MAGIC = b"\x1f\x8b"


def is_nifti(head: bytes, name: str) -> bool:
    """Return whether a file with these first bytes and this name is a NIfTI file with header and values."""
    if head[:2] == GZIP_MAGIC:
        return name.lower().endswith(".nii.gz")
    return head[344:348] == b"n+1\0" or head[4:8] == b"n+2\0"


def open_nifti(path: str) -> ForeignStore:
    """Return a store with the image of a NIfTI file. Values are scaled as the header states, to float64.

    The axes have the names x, y, z, t, c in the order of the file, whatever directions they have. Scale, position and
    orientation of x, y and z are those of the affine transformation. A file whose transformation has the code 0 states
    no orientation, and its position is 0. A two-dimensional image has an axis z of length 1 if its plane does not
    contain the origin of the coordinates, because x and y cannot state its position then.

    Raises LocationError for a damaged file, and UnsupportedError for types that are not numbers.
    """
    nibabel: Any = load_library("nibabel", "nifti", "reading NIfTI")
    try:
        image = nibabel.load(path)
        proxy, header = image.dataobj, image.header
        sizes = [int(length) for length in proxy.shape]
        stored, offset = np.dtype(proxy.dtype), int(proxy.offset)
        slope, intercept = float(proxy.slope), float(proxy.inter)
        zooms = [float(zoom) for zoom in header["pixdim"][1:]]
        units = header.get_xyzt_units()
        time_origin = float(header["toffset"])
        has_affine = bool(int(header["sform_code"]) > 0 or int(header["qform_code"]) > 0)
        affine = np.array(image.affine, np.float64)
        name = bytes(header["descrip"]).split(b"\0")[0].decode("utf-8", "replace")
    except ZarrError:
        raise
    except Exception as error:  # nibabel raises errors of many kinds for damaged files
        raise LocationError(f"{path} is not a valid NIfTI file: {error}") from error
    if not is_presentable(stored):
        raise UnsupportedError(f"{path} has data type {stored}; expected numbers")
    if not 0 < len(sizes) <= len(AXES):
        raise UnsupportedError(f"{path} has {len(sizes)} dimensions; expected 1 to {len(AXES)}")
    axes = [_axis(AXES[number], zooms[number], units, time_origin) for number in range(len(sizes))]
    if has_affine:
        spatial = None
        if len(sizes) == 2 and is_outside_plane(affine[:3, :2].T, affine[:3, 3]):
            third = _axis("z", zooms[2], units, time_origin)
            if not affine[:3, 2].any():  # the header states no distance of planes
                affine[:3, 2] = plane_normal(affine[:3, :2].T, third.scale)
            spatial = oriented_axes([*axes, third], affine[:3, :3].T, affine[:3, 3])
            sizes += [] if spatial is None else [1]
        count = min(3, len(sizes))
        axes[:3] = spatial or oriented_axes(axes[:3], affine[:3, :count].T, affine[:3, 3]) or axes[:3]
    with open(path, "rb") as stream:
        compression = "gzip" if stream.read(2) == GZIP_MAGIC else None
    shape = tuple(reversed(sizes))
    if compression is None:
        values, fd = stored_values(path, offset, shape, stored)
    else:
        # The header is a part of the compressed stream.
        nbytes = offset + math.prod(shape) * stored.itemsize
        fd = stored_values(path, 0, (nbytes,), np.dtype("u1"), compression)[1]
        values = ContiguousValues(fd, offset, shape, stored)
    is_scaled = (slope, intercept) != (1.0, 0.0)

    def read(region: tuple[slice, ...]) -> npt.NDArray[Any]:
        found = values.read(region)
        return found * slope + intercept if is_scaled else found

    dtype = np.dtype("f8") if is_scaled else stored.newbyteorder("=")
    array = ForeignArray(shape, plane_chunks(shape, dtype.itemsize), dtype, read)
    nodes = image_nodes(array, axes[::-1], name)
    return ForeignStore(f"file://{path}", nodes, lambda: path_stamp(path), lambda: os.close(fd))


def _axis(name: str, zoom: float, units: tuple[str, str], time_origin: float) -> ImageAxis:
    unit = units[0] if name in "xyz" else units[1] if name == "t" else None
    scale = zoom if math.isfinite(zoom) and zoom > 0 else 1.0
    origin = time_origin if name == "t" and math.isfinite(time_origin) else 0.0
    return ImageAxis(name, scale, unit_name(unit), origin)
