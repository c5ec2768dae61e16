"""NIfTI-1 and NIfTI-2 files (.nii, .nii.gz) as images, read with nibabel. See https://nifti.nimh.nih.gov"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.stores.databases.base import load_library
from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.foreign.contiguous import ContiguousValues, path_stamp
from zarrfs.foreign.image_groups import ImageAxis, image_nodes
from zarrfs.foreign.presented_store import PresentedArray, PresentedStore, is_presentable, plane_chunks
from zarrfs.foreign.stored_values import stored_values
from zarrfs.ngff.units import unit_name

__all__ = ["is_nifti", "open_nifti"]

AXES = "xyztc"
GZIP_MAGIC = b"\x1f\x8b"


def is_nifti(head: bytes, name: str) -> bool:
    """Return whether a file with these first bytes and this name is a NIfTI file with header and values."""
    if head[:2] == GZIP_MAGIC:
        return name.lower().endswith(".nii.gz")
    return head[344:348] == b"n+1\0" or head[4:8] == b"n+2\0"


def open_nifti(path: str) -> PresentedStore:
    """Return a store with the image of a NIfTI file. Values are scaled as the header states, to float64.

    The orientation is not represented: axes keep the names x, y, z, t, c in the order of the file. The position is that
    of the affine transformation if the axes are parallel to those of space and point in the same directions, else 0.
    Raises LocationError for a damaged file, and UnsupportedError for types that are not numbers.
    """
    nibabel: Any = load_library("nibabel", "nifti", "reading NIfTI")
    try:
        image = nibabel.load(path)
        proxy, header = image.dataobj, image.header
        sizes = [int(length) for length in proxy.shape]
        stored, offset = np.dtype(proxy.dtype), int(proxy.offset)
        slope, intercept = float(proxy.slope), float(proxy.inter)
        zooms = [float(zoom) for zoom in header.get_zooms()]
        units = header.get_xyzt_units()
        origins = [*_position(np.asarray(image.affine, float)), float(header["toffset"]), 0.0]
        name = bytes(header["descrip"]).split(b"\0")[0].decode("utf-8", "replace")
    except ZarrError:
        raise
    except Exception as error:  # nibabel raises errors of many kinds for damaged files
        raise LocationError(f"{path} is not a valid NIfTI file: {error}") from error
    if not is_presentable(stored):
        raise UnsupportedError(f"{path} has data type {stored}; expected numbers")
    if not 0 < len(sizes) <= len(AXES):
        raise UnsupportedError(f"{path} has {len(sizes)} dimensions; expected 1 to {len(AXES)}")
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
    array = PresentedArray(shape, plane_chunks(shape, dtype.itemsize), dtype, read)
    axes = [_axis(AXES[number], zooms[number], units, origins[number]) for number in range(len(sizes))]
    nodes = image_nodes(array, axes[::-1], name)
    return PresentedStore(f"file://{path}", nodes, lambda: path_stamp(path), lambda: os.close(fd))


def _position(affine: npt.NDArray[Any]) -> list[float]:
    """Return the position of the first voxel, or zeros for an affine transformation with a rotation or reflection."""
    matrix, position = affine[:3, :3], affine[:3, 3]
    scale = np.diag(matrix)
    is_parallel = np.allclose(
        matrix, np.diag(scale), rtol=0, atol=1e-6 * float(np.abs(matrix).max(initial=0))
    )
    if not (np.isfinite(affine).all() and is_parallel and (scale > 0).all()):
        return [0.0, 0.0, 0.0]
    return [float(number) for number in position]


def _axis(name: str, zoom: float, units: tuple[str, str], origin: float) -> ImageAxis:
    unit = units[0] if name in "xyz" else units[1] if name == "t" else None
    scale = zoom if math.isfinite(zoom) and zoom > 0 else 1.0
    return ImageAxis(name, scale, unit_name(unit), origin if math.isfinite(origin) else 0.0)
