""".npy: the NumPy file format, in C order. .F.npy: the same in Fortran order. ``np.load`` can map both into memory.

Specification: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. The version is 1.0 if the header
is short enough, 2.0 for longer headers, and 3.0 for field names that cannot be encoded in Latin-1.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason

__all__ = ["FortranNpyView", "NpyView", "npy_header"]

MAGIC = b"\x93NUMPY"
ALIGNMENT = 64
MAX_V1_HEADER_NBYTES = 65535


class NpyView(View):
    """A NumPy file in C order."""

    suffix: ClassVar[str] = ".npy"
    listed: ClassVar[bool] = True
    needs_attributes: ClassVar[bool] = False
    has_shared_size: ClassVar[bool] = True

    order: ClassVar[Literal["C", "F"]] = "C"

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = fixed_size_unsupported_reason(array)
        if unsupported_reason is None and not _round_trips(array.dtype):
            return f"its data type ({array.spec.data_type.name}) cannot be stored in a NumPy file"
        return unsupported_reason

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array = presented.array
        header = npy_header(array.dtype, array.shape, self.order)
        return VirtualFileContent([BytesSegment(header), ArraySegment(array, self.order)])


class FortranNpyView(NpyView):
    """A NumPy file in Fortran order: the first dimension varies fastest."""

    suffix: ClassVar[str] = ".F.npy"
    listed: ClassVar[bool] = False
    order: ClassVar[Literal["C", "F"]] = "F"


@lru_cache(256)
def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...], order: Literal["C", "F"] = "C") -> bytes:
    """Return the header of a .npy file. Padding aligns the elements to a multiple of 64 bytes."""
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": order == "F", "shape": shape}
    text = "{" + "".join(f"{key!r}: {fields[key]!r}, " for key in sorted(fields)) + "}"
    try:
        encoded, version = text.encode("latin-1"), 1
    except UnicodeEncodeError:
        encoded, version = text.encode("utf-8"), 3
    if version == 1 and len(encoded) + ALIGNMENT > MAX_V1_HEADER_NBYTES:
        version = 2
    length = struct.Struct("<H" if version == 1 else "<I")
    prefix_nbytes = len(MAGIC) + 2 + length.size
    padding = -(prefix_nbytes + len(encoded) + 1) % ALIGNMENT
    body = encoded + b" " * padding + b"\n"
    return MAGIC + bytes([version, 0]) + length.pack(len(body)) + body


def _round_trips(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy reads the dtype back unchanged. This is not the case for dtypes of other packages (bfloat16)."""
    try:
        return bool(np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype)) == dtype)
    except (TypeError, ValueError):
        return False
