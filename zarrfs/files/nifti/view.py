""".nii: NIfTI-1, or NIfTI-2 if a dimension or a number exceeds the limits of NIfTI-1. The axes are x, y, z, t, c and
others.

Specifications: https://nifti.nimh.nih.gov/nifti-1 and https://nifti.nimh.nih.gov/nifti-2. Space is in millimetres and
time in seconds where their units are known; otherwise the numbers are as stored and the unit is unknown. The affine
transformation leads to the coordinates of NIfTI: right, anterior, superior. Its code is 1 (scanner coordinates) for
images that state an anatomical orientation. For other images it is 2 (aligned), and the coordinates x and y of OME-NGFF
point to the left and to posterior, so that ITK reads the same positions as from NRRD and MetaImage files. Big-endian
arrays have a big-endian header, which readers recognize.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.files.byte_order import byte_order
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.pixel_grids import array_unsupported_reason
from zarrfs.files.view import PresentedArray, View
from zarrfs.ngff.geometry import PhysicalGrid, Role
from zarrfs.ngff.spatial_frames import SpatialFrame, spatial_frame

__all__ = ["NiftiView"]

TYPES = {
    "bool": 2,
    "uint8": 2,
    "int16": 4,
    "int32": 8,
    "float32": 16,
    "complex64": 32,
    "float64": 64,
    "int8": 256,
    "uint16": 512,
    "uint32": 768,
    "int64": 1024,
    "uint64": 1280,
    "complex128": 1792,
}
"""The NIfTI code of each NumPy dtype."""

ROLES: tuple[Role, ...] = ("x", "y", "z", "t", "c")
MAX_AXES = 7
MAX_SHORT = 2**15 - 1
UNITS = {"millimeter": 2, "second": 8, None: 0}
INTENT_VECTOR = 1007
"""The fifth axis lists the components of each voxel."""

SCANNER_COORDINATES, ALIGNED_COORDINATES = 1, 2
"""The codes of a transformation to the coordinates of a patient, and to other coordinates."""

TO_NIFTI = np.array([-1.0, -1.0, 1.0])
"""The signs that convert left, posterior, superior to the coordinates of NIfTI."""

MAX_SHEAR = 1e-5
"""Directions whose scalar products differ less from those of orthogonal unit vectors are a rotation."""

HEADER_1 = np.dtype(
    [
        *(("sizeof_hdr", "<i4"), ("data_type", "S10"), ("db_name", "S18"), ("extents", "<i4")),
        *(("session_error", "<i2"), ("regular", "S1"), ("dim_info", "u1"), ("dim", "<i2", 8)),
        *(("intent_p", "<f4", 3), ("intent_code", "<i2"), ("datatype", "<i2"), ("bitpix", "<i2")),
        *(("slice_start", "<i2"), ("pixdim", "<f4", 8), ("vox_offset", "<f4"), ("scl_slope", "<f4")),
        *(("scl_inter", "<f4"), ("slice_end", "<i2"), ("slice_code", "u1"), ("xyzt_units", "u1")),
        *(("cal", "<f4", 2), ("slice_duration", "<f4"), ("toffset", "<f4"), ("gl", "<i4", 2)),
        *(("descrip", "S80"), ("aux_file", "S24"), ("qform_code", "<i2"), ("sform_code", "<i2")),
        *(("quatern", "<f4", 3), ("qoffset", "<f4", 3), ("srow", "<f4", (3, 4)), ("intent_name", "S16")),
        ("magic", "S4"),
    ]
)
"""The 348 bytes of a NIfTI-1 header."""

HEADER_2 = np.dtype(
    [
        *(("sizeof_hdr", "<i4"), ("magic", "S8"), ("datatype", "<i2"), ("bitpix", "<i2"), ("dim", "<i8", 8)),
        *(("intent_p", "<f8", 3), ("pixdim", "<f8", 8), ("vox_offset", "<i8"), ("scl_slope", "<f8")),
        *(("scl_inter", "<f8"), ("cal", "<f8", 2), ("slice_duration", "<f8"), ("toffset", "<f8")),
        *(("slice_range", "<i8", 2), ("descrip", "S80"), ("aux_file", "S24"), ("qform_code", "<i4")),
        *(("sform_code", "<i4"), ("quatern", "<f8", 3), ("qoffset", "<f8", 3), ("srow", "<f8", (3, 4))),
        *(("slice_code", "<i4"), ("xyzt_units", "<i4"), ("intent_code", "<i4"), ("intent_name", "S16")),
        *(("dim_info", "u1"), ("unused_str", "S15")),
    ]
)
"""The 540 bytes of a NIfTI-2 header."""

EXTENSION_NBYTES = 4
"""Four zero bytes after the header state that there is no extension."""


@dataclass(frozen=True)
class _Layout:
    """The lengths of the axes of the file, and the order of the array's dimensions in its bytes."""

    sizes: tuple[int, ...]
    order: FlatOrder


class NiftiView(View):
    """A NIfTI file."""

    suffix: ClassVar[str] = ".nii"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        reason = array_unsupported_reason(array, TYPES, "NIfTI")
        if reason is not None:
            return reason
        if array.ndim > 3 and len(_layout(presented).sizes) > MAX_AXES:
            return (
                f"it has more than {MAX_AXES - len(ROLES)} dimensions in addition to x, y, z, time and channels, and "
                f"NIfTI supports at most {MAX_AXES} dimensions"
            )
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        layout = _layout(presented)
        return VirtualFileContent(
            [BytesSegment(_header(presented, layout)), ArraySegment(presented.array, layout.order)]
        )


def _layout(presented: PresentedArray) -> _Layout:
    geometry, shape = presented.geometry, presented.array.shape
    dimensions = [geometry.find(role) for role in ROLES]
    # Other dimensions of length 1 are omitted.
    dimensions += [i for i in reversed(geometry.others) if shape[i] != 1]
    sizes = [1 if i is None else shape[i] for i in dimensions]
    # Time and channels of length 1 are listed only before a longer axis. Readers expect at least two axes.
    while len(sizes) > 2 and sizes[-1] == 1 and (len(sizes) > 3 or dimensions[len(sizes) - 1] is None):
        sizes.pop()
    listed = [i for i in dimensions if i is not None]
    omitted = [i for i in range(len(shape)) if i not in listed]
    return _Layout(tuple(sizes), (*omitted, *reversed(listed)))


def _header(presented: PresentedArray, layout: _Layout) -> bytes:
    geometry, dtype = presented.geometry, presented.array.dtype
    frame = spatial_frame(geometry)
    rotation, origin = _rotation(frame), np.array(frame.origin) * TO_NIFTI + 0.0
    t = geometry.find("t")
    time = PhysicalGrid((1.0,), (0.0,), None) if t is None else geometry.physical_grid([t], "second")
    sizes = [len(layout.sizes), *layout.sizes, *[1] * (MAX_AXES - len(layout.sizes))]
    spacings = [*map(abs, frame.scale), abs(time.scale[0])]
    is_version_1 = max(sizes) <= MAX_SHORT and _fit_float32([*spacings, *origin, time.translation[0]])
    header = np.zeros((), HEADER_1 if is_version_1 else HEADER_2)
    header["sizeof_hdr"] = header.itemsize
    header["magic"] = b"n+1" if is_version_1 else b"n+2\0\r\n\x1a\n"
    header["dim"] = sizes
    header["datatype"] = TYPES[dtype.name]
    header["bitpix"] = dtype.itemsize * 8
    # The first number is the sign of the determinant of the affine transformation.
    header["pixdim"] = [-1 if np.linalg.det(rotation) < 0 else 1, *spacings, 1, 1, 1]
    header["vox_offset"] = header.itemsize + EXTENSION_NBYTES
    header["scl_slope"] = 1
    header["xyzt_units"] = UNITS[frame.unit] | UNITS[time.unit]
    header["toffset"] = time.translation[0]
    code = SCANNER_COORDINATES if frame.is_anatomical else ALIGNED_COORDINATES
    header["sform_code"] = code
    header["srow"] = np.column_stack([rotation * np.abs(frame.scale), origin])
    quaternion = _quaternion(rotation)
    if quaternion is not None:
        header["qform_code"] = code
        header["quatern"] = quaternion
        header["qoffset"] = origin
    header["intent_code"] = INTENT_VECTOR if len(layout.sizes) > 4 and layout.sizes[4] > 1 else 0
    if is_version_1:
        header["regular"] = b"r"
    if byte_order(dtype) == "big":
        header = header.astype(header.dtype.newbyteorder(">"))
    return header.tobytes() + bytes(EXTENSION_NBYTES)


def _rotation(frame: SpatialFrame) -> npt.NDArray[np.float64]:
    """Return a matrix whose columns are the directions in which the indices of x, y and z increase."""
    rows: npt.NDArray[np.float64] = np.array(frame.directions) * np.sign(frame.scale)[:, np.newaxis]
    result: npt.NDArray[np.float64] = (rows * TO_NIFTI).T + 0.0  # not -0.0
    return result


def _quaternion(rotation: npt.NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the quaternion (b, c, d) of a rotation, or None if the directions are not orthogonal.

    If the matrix contains a reflection, the third axis has the opposite direction in the rotation.
    """
    if np.abs(rotation.T @ rotation - np.eye(3)).max() > MAX_SHEAR:
        return None
    if np.linalg.det(rotation) < 0:
        rotation = rotation * np.array([1.0, 1.0, -1.0])
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation.tolist()
    # The eigenvector of the largest eigenvalue, without the division by small numbers of simpler formulas.
    symmetric = np.array(
        [
            [xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, xx - yy - zz, xy + yx, xz + zx],
            [xz - zx, xy + yx, yy - xx - zz, yz + zy],
            [yx - xy, xz + zx, yz + zy, zz - xx - yy],
        ]
    )
    a, *rest = np.linalg.eigh(symmetric)[1][:, -1].tolist()
    b, c, d = (-part if a < 0 else part for part in rest)
    return (b, c, d)


def _fit_float32(numbers: Sequence[float]) -> bool:
    """Return whether float32 represents all numbers with its usual precision."""
    limits = np.finfo(np.float32)
    smallest, largest = float(limits.tiny), float(limits.max)
    return all(
        number == 0 or (math.isfinite(number) and smallest <= abs(number) <= largest) for number in numbers
    )
