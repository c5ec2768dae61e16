""".safetensors: a file with one tensor, which has the name of the array.

Specification: https://huggingface.co/docs/safetensors. The file consists of the length of the header (u64,
little-endian), a JSON header, and the elements in C order and little-endian byte order.
"""

from __future__ import annotations

import json
import struct
from typing import ClassVar

from zarrfs.files.byte_order import differs_from
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason

__all__ = ["SafetensorsView"]

ALIGNMENT = 8
METADATA_KEY = "__metadata__"
"""A reserved name of the header. It cannot be the name of a tensor."""

TENSOR_TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
"""Name of a NumPy dtype -> data type of a tensor."""


class SafetensorsView(View):
    """A safetensors file with one tensor."""

    suffix: ClassVar[str] = ".safetensors"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = fixed_size_unsupported_reason(array)
        if unsupported_reason is None and array.dtype.name not in TENSOR_TYPES:
            return f"safetensors has no data type for its elements ({array.spec.data_type.name})"
        return unsupported_reason

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, name = presented.array, presented.name
        tensor = {
            "dtype": TENSOR_TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [0, array.nbytes],
        }
        text = json.dumps({name if name != METADATA_KEY else "array": tensor}, separators=(",", ":")).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        header = struct.pack("<Q", len(text)) + text
        return VirtualFileContent(
            [BytesSegment(header), ArraySegment(array, swap=differs_from(array.dtype, "little"))]
        )
