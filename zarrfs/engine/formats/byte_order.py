"""Where the byte order of stored elements stands: v3 has it in the codec ``bytes``, older formats in the
data type.
"""

from __future__ import annotations

from dataclasses import replace

from zarrfs.engine.dtypes import DataType
from zarrfs.engine.model import ArraySpec

__all__ = ["stored_data_type"]


def stored_data_type(spec: ArraySpec) -> DataType:
    """Return the data type in the byte order of the stored bytes: v2 has it in the dtype, v3 in the codec
    ``bytes``.
    """
    first = next((codec for codec in spec.codecs if codec.name != "transpose"), None)
    endian = first.configuration().get("endian") if first is not None and first.name == "bytes" else None
    if endian is None:
        return spec.data_type
    dtype = spec.data_type.numpy.newbyteorder("<" if endian == "little" else ">")
    return replace(spec.data_type, numpy=dtype)
