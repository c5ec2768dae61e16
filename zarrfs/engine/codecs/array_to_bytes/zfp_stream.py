"""Safe compression and decompression of zfp streams with the package ``zfpy``.

zfpy reads past the end of a stream that is too short. It therefore receives the stream padded to the largest size that
the chunk can need. Each stream is decompressed twice, padded with zero bits and with one bits. If the results differ,
they depend on the padding, and the stream is truncated.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import Buffer, CodecError
from zarrfs.engine.codecs.limits import check_size
from zarrfs.errors import UnsupportedError
from zarrfs.libraries import import_library
from zarrfs.plugins import install_hint

__all__ = ["check_range", "compress", "decompress", "decompress_expert", "decompress_headed", "zfpy"]

Numbers = np.ndarray[Any, Any]

FULL_HEADER_BITS = 148
LENGTH_BITS = {1: 48, 2: 24, 3: 16, 4: 12}
BLOCK_BITS = 64
"""An upper bound of the bits before the values of a block: a flag, the exponent and the precision."""

MIN_BLOCK_BITS = {"f4": 9, "f8": 12, "i4": 1, "i8": 1}
"""The fewest bits that zfp writes per block. At lower rates zfpy writes past the end of its buffer."""

MAX_RATE = 128.0

INTEGER_MARGIN = 2
"""The bits of an integer that zfp's transformation needs in addition to the value."""


def zfpy() -> ModuleType:
    """Return the package. Raises UnsupportedError with the command that installs it."""
    try:
        return import_library("zfpy")
    except ImportError as error:
        raise UnsupportedError(f"the zfp codecs need the package zfpy: {install_hint('zfp')}") from error


def check_range(array: Numbers) -> None:
    """Raise CodecError for values that zfp's lossy modes corrupt: NaN, infinity, and integers that overflow."""
    if not array.size:
        return
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            first = array[~np.isfinite(array)].flat[0]
            raise CodecError(f"{first!s} is not a finite number; zfp supports it only in mode reversible")
        return
    limit = 1 << (8 * array.dtype.itemsize - INTEGER_MARGIN)
    low, high = int(array.min()), int(array.max())
    if low < -limit or high >= limit:
        raise CodecError(
            f"{low if low < -limit else high} is too large: except in mode reversible zfp supports integers from "
            f"{-limit} to {limit - 1}"
        )


def compress(array: Numbers, parameters: Mapping[str, Any], header: bool = False) -> bytes:
    """Return the stream of a contiguous array of one of zfp's data types. ``parameters`` select the mode.

    Raises CodecError.
    """
    if "rate" in parameters:
        _rate_nbytes(array.dtype, array.shape, parameters["rate"])
    try:
        return bytes(zfpy().compress_numpy(array, write_header=header, **parameters))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CodecError(f"zfp cannot compress the chunk: {error}") from error


def _rate_nbytes(dtype: np.dtype[Any], shape: tuple[int, ...], rate: float) -> int:
    """Return the size of a stream of fixed rate. Raises CodecError for a rate that zfp does not support."""
    values = 4 ** len(shape)
    bits = int(rate * values + 0.5)
    min_bits = MIN_BLOCK_BITS[dtype.str[1:]]
    if bits < min_bits or rate > MAX_RATE:
        raise CodecError(
            f"the rate {rate} is out of range: for {len(shape)} dimensions of {dtype} expected {min_bits / values} to "
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


def _padded(
    data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], extra: int = 0
) -> tuple[bytes, bytes]:
    """Return the stream padded with zero bits, and padded with one bits, to the largest size of such a chunk."""
    blocks = prod(-(-length // 4) for length in shape)
    values = 4 ** len(shape)
    # Each value has its bits and the group tests of each bit plane.
    room = blocks * (values * (8 * dtype.itemsize + 2) + 16 * dtype.itemsize + BLOCK_BITS) // 8 + 64 + extra
    raw = bytes(data)
    if len(raw) > room:
        raise CodecError(f"{len(raw)} bytes are stored, expected at most {room} for a chunk of shape {shape}")
    padding = room - len(raw)
    padding += -room % 8
    return raw + bytes(padding), raw + b"\xff" * padding


def _check_equal(first: Numbers, second: Numbers, size: int) -> Numbers:
    if first.tobytes() != second.tobytes():
        raise CodecError(f"the stream is truncated: its {size} bytes do not hold the whole chunk")
    return first


def decompress(
    data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], parameters: Mapping[str, Any]
) -> Numbers:
    """Return the array of a stream without header. ``parameters`` select the mode. Raises CodecError."""
    fixed = _rate_nbytes(dtype, shape, parameters["rate"]) if "rate" in parameters else 0
    if fixed:
        check_size(memoryview(data).nbytes, fixed)
    module = zfpy()
    zeros, ones = (
        module._decompress(padded, _type(dtype), shape, **parameters)
        for padded in _padded(data, dtype, shape, fixed)
    )
    return _check_equal(zeros, ones, memoryview(data).nbytes)


def decompress_expert(
    data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], expert: Mapping[str, int]
) -> Numbers:
    """Return the array of a stream without header in expert mode.

    zfpy supports that mode only in headers. The stream is therefore prefixed with a header as zfp's manual
    describes it.
    """
    width = LENGTH_BITS[len(shape)]
    meta = 0
    for length in shape:
        if length > 1 << width:
            raise CodecError(f"a chunk of shape {shape} is too large for zfp's header")
        meta = meta << width | (length - 1)
    meta = (meta << 2 | (len(shape) - 1)) << 2 | (_type(dtype) - 1)
    mode = expert["minexp"] + 16495
    mode = mode << 7 | (expert["maxprec"] - 1)
    mode = mode << 15 | (max(1, expert["maxbits"]) - 1)
    mode = mode << 15 | (max(1, expert["minbits"]) - 1)
    mode = mode << 12 | 0xFFF
    header = int.from_bytes(b"zfp\x05", "little") | meta << 32 | mode << 84
    module = zfpy()
    arrays = []
    for padded in _padded(data, dtype, shape):
        bits = int.from_bytes(padded, "little") << FULL_HEADER_BITS | header
        arrays.append(module.decompress_numpy(bits.to_bytes(len(padded) + 24, "little")))
    return _check_equal(arrays[0], arrays[1], memoryview(data).nbytes)


def decompress_headed(data: Buffer, dtype: np.dtype[Any], size: int) -> Numbers:
    """Return the array of a stream with a header. Raises CodecError unless it has this dtype and ``size`` elements."""
    module = zfpy()
    raw = bytes(data)
    try:
        # The padding makes the buffer long enough for any header.
        header = module.header(raw + bytes(64))
    except (ValueError, RuntimeError) as error:
        raise CodecError(f"the data are not a zfp stream with a header: {error}") from error
    lengths = [header[key] for key in ("nw", "nz", "ny", "nx")]
    shape = tuple(length for length in lengths if length)
    stored = np.dtype(header["type"])
    if prod(shape) != size or not shape or stored != dtype:
        raise CodecError(
            f"the stream has shape {shape} and dtype {stored}, expected {size} elements of {dtype}"
        )
    zeros, ones = (module.decompress_numpy(padded) for padded in _padded(raw, dtype, shape, 32))
    return _check_equal(zeros, ones, len(raw))
