"""zfp's streams by the package ``zfpy``, which trusts them: here they cannot make it read what is not theirs.

zfpy reads on past the end of a stream that is too short. So it gets the stream with padding as long as the chunk could
need; whatever depends on the padding is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import Buffer, CodecError
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.codecs.limits import check_size
from zarrfs.errors import UnsupportedError
from zarrfs.plugins import install_hint

__all__ = ["check_range", "compress", "decompress", "decompress_expert", "decompress_headed", "zfpy"]

Numbers = np.ndarray[Any, Any]

FULL_HEADER_BITS = 148
LENGTH_BITS = {1: 48, 2: 24, 3: 16, 4: 12}
BLOCK_BITS = 64
"""More than zfp puts before the values of a block: whether there is one, its exponent, its precision."""

MIN_BLOCK_BITS = {"f4": 9, "f8": 12, "i4": 1, "i8": 1}
"""What zfp writes of each block at least; at rates below that zfpy writes past the end of its memory."""

MAX_RATE = 128.0

INTEGER_MARGIN = 2
"""The bits that zfp's transformation needs in an integer, besides its value."""


def zfpy() -> ModuleType:
    """Return the package. Raises UnsupportedError that says how to install it."""
    try:
        return import_library("zfpy")
    except ImportError as error:
        raise UnsupportedError(f"the zfp codecs need the package zfpy: {install_hint('zfp')}") from error


def check_range(array: Numbers) -> None:
    """Raise CodecError for what zfp's lossy modes destroy: integers that overflow in them, NaN and infinity."""
    if not array.size:
        return
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            found = array[~np.isfinite(array)].flat[0]
            raise CodecError(f"{found!s} is no finite number: but for reversible mode zfp has no others")
        return
    most = 1 << (8 * array.dtype.itemsize - INTEGER_MARGIN)
    low, high = int(array.min()), int(array.max())
    if low < -most or high >= most:
        raise CodecError(
            f"{low if low < -most else high} is too large: but for reversible mode zfp takes integers from {-most} to "
            f"{most - 1}"
        )


def compress(array: Numbers, parameters: Mapping[str, Any], header: bool = False) -> bytes:
    """Return the stream of a contiguous array of one of zfp's data types, in the mode that the parameter makes.

    Raises CodecError.
    """
    if "rate" in parameters:
        _rate_nbytes(array.dtype, array.shape, parameters["rate"])
    try:
        return bytes(zfpy().compress_numpy(array, write_header=header, **parameters))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CodecError(f"zfp cannot compress this: {error}") from error


def _rate_nbytes(dtype: np.dtype[Any], shape: tuple[int, ...], rate: float) -> int:
    """Return the size of a stream of fixed rate. Raises CodecError for a rate that zfp cannot have."""
    values = 4 ** len(shape)
    bits = int(rate * values + 0.5)
    least = MIN_BLOCK_BITS[dtype.str[1:]]
    if bits < least or rate > MAX_RATE:
        raise CodecError(
            f"the rate {rate} is out of range: for {len(shape)} dimensions of {dtype} it is from {least / values} to "
            f"{MAX_RATE}"
        )
    blocks = prod(-(-length // 4) for length in shape)
    return -(-blocks * bits // 64) * 8


def _type(dtype: np.dtype[Any]) -> int:
    module = zfpy()
    types = {
        "i4": module.type_int32,
        "i8": module.type_int64,
        "f4": module.type_float,
        "f8": module.type_double,
    }
    return int(types[dtype.str[1:]])


def _padded(data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], more: int = 0) -> tuple[bytes, bytes]:
    """Return the stream with as many zeros, and as many ones, behind it as the chunk could have bits at most."""
    blocks = prod(-(-length // 4) for length in shape)
    values = 4 ** len(shape)
    # Per value its bits, and for each bit plane the tests that say which values have become significant.
    room = blocks * (values * (8 * dtype.itemsize + 2) + 16 * dtype.itemsize + BLOCK_BITS) // 8 + 64 + more
    raw = bytes(data)
    if len(raw) > room:
        raise CodecError(
            f"{len(raw)} bytes are stored, which is more than {room}, the most that such a chunk can have"
        )
    rest = room - len(raw)
    rest += -room % 8
    return raw + bytes(rest), raw + b"\xff" * rest


def _same(first: Numbers, second: Numbers, size: int) -> Numbers:
    if first.tobytes() != second.tobytes():
        raise CodecError(f"the stream is truncated: its {size} bytes do not hold the whole chunk")
    return first


def decompress(
    data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], parameters: Mapping[str, Any]
) -> Numbers:
    """Return the array of a stream without header, in the mode that the parameter makes. Raises CodecError."""
    fixed = _rate_nbytes(dtype, shape, parameters["rate"]) if "rate" in parameters else 0
    if fixed:
        check_size(memoryview(data).nbytes, fixed)
    module = zfpy()
    zeros, ones = (
        module._decompress(padded, _type(dtype), shape, **parameters)
        for padded in _padded(data, dtype, shape, fixed)
    )
    return _same(zeros, ones, memoryview(data).nbytes)


def decompress_expert(
    data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], expert: Mapping[str, int]
) -> Numbers:
    """Return the array of a stream without header in expert mode.

    zfpy learns of that mode from headers only; so the stream gets one, as zfp's manual describes it.
    """
    width = LENGTH_BITS[len(shape)]
    meta = 0
    for length in shape:
        if length > 1 << width:
            raise CodecError(f"a chunk of {shape} is too large for zfp's header")
        meta = meta << width | (length - 1)
    meta = (meta << 2 | (len(shape) - 1)) << 2 | (_type(dtype) - 1)
    mode = expert["minexp"] + 16495
    mode = mode << 7 | (expert["maxprec"] - 1)
    mode = mode << 15 | (max(1, expert["maxbits"]) - 1)
    mode = mode << 15 | (max(1, expert["minbits"]) - 1)
    mode = mode << 12 | 0xFFF
    header = int.from_bytes(b"zfp\x05", "little") | meta << 32 | mode << 84
    module = zfpy()
    found = []
    for padded in _padded(data, dtype, shape):
        bits = int.from_bytes(padded, "little") << FULL_HEADER_BITS | header
        found.append(module.decompress_numpy(bits.to_bytes(len(padded) + 24, "little")))
    return _same(found[0], found[1], memoryview(data).nbytes)


def decompress_headed(data: Buffer, dtype: np.dtype[Any], size: int) -> Numbers:
    """Return the array of a stream with a header, which must be of this data type and number of elements."""
    module = zfpy()
    raw = bytes(data)
    try:
        # A buffer that is long enough for whatever header there is.
        header = module.header(raw + bytes(64))
    except (ValueError, RuntimeError) as error:
        raise CodecError(f"this is no zfp stream with a header: {error}") from error
    lengths = [header[key] for key in ("nw", "nz", "ny", "nx")]
    shape = tuple(length for length in lengths if length)
    found = np.dtype(header["type"])
    if prod(shape) != size or not shape or found != dtype:
        raise CodecError(f"a chunk of {shape} {found} is stored, expected are {size} elements of {dtype}")
    zeros, ones = (module.decompress_numpy(padded) for padded in _padded(raw, dtype, shape, 32))
    return _same(zeros, ones, len(raw))
