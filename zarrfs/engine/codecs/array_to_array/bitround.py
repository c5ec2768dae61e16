"""bitround: rounds each number to its leading bits, so that the codecs after it compress better.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround

Names: ``bitround``; ``numcodecs.bitround`` for reading; in Zarr v2 the filter of this name.

Example::

    {"name": "bitround", "configuration": {"keepbits": 10}}

Rounding is to the nearest number, ties to even. Decoding returns the array unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, Region
from zarrfs.engine.codecs.configuration import check_keys, integer
from zarrfs.errors import MetadataError

__all__ = ["BitroundCodec", "round_floats", "round_integers"]

Numbers = np.ndarray[Any, Any]

MANTISSA = {"float16": 10, "float32": 23, "float64": 52, "bfloat16": 7}
COMPONENTS = {
    "complex64": "float32",
    "complex128": "float64",
    "complex32": "float16",
    "bcomplex32": "bfloat16",
}


class BitroundCodec(ArrayArrayCodec):
    """array -> array: keeps ``keepbits`` bits of each number and sets the lower bits to zero.

    The bits are counted from the first bit of the mantissa for floats and for the parts of complex numbers, and from
    the highest bit set in the magnitude for integers and times. The specification requires at least 1 bit. 0, which
    numcodecs allows, rounds to a power of two.
    """

    name: ClassVar[str] = "bitround"
    rounds: ClassVar[bool] = True

    def __init__(self, keepbits: Any) -> None:
        self.keepbits = keepbits

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("keepbits",))
        return cls(configuration.get("keepbits"))

    def check_encoding(self) -> None:
        # Decoding does not use the parameter.
        integer(self.name, {"keepbits": self.keepbits}, "keepbits", 0, 64)

    def configuration(self) -> dict[str, Any]:
        return {"keepbits": self.keepbits}

    def check(self, spec: ChunkSpec) -> None:
        dtype = spec.dtype
        integers = dtype.kind in "iumM" and dtype.names is None
        if not integers and COMPONENTS.get(dtype.name, dtype.name) not in MANTISSA:
            raise MetadataError(f"codec 'bitround' rounds floats, complex numbers and integers, not {dtype}")

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return spec

    def encode(self, array: Numbers, spec: ChunkSpec) -> Numbers:
        native = np.ascontiguousarray(array, spec.dtype.newbyteorder("=")).reshape(-1)
        component = COMPONENTS.get(native.dtype.name, native.dtype.name)
        if component in MANTISSA:
            parts = native.dtype.itemsize // (2 if native.dtype.name in COMPONENTS else 1)
            rounded = round_floats(native.view(f"u{parts}"), MANTISSA[component], self.keepbits)
        else:
            signed = native.dtype.kind != "u"
            rounded = round_integers(native.view(f"u{native.dtype.itemsize}"), signed, self.keepbits)
        decoded: Numbers = rounded.view(native.dtype).reshape(array.shape)
        return decoded

    def decode(self, array: Numbers, spec: ChunkSpec) -> Numbers:
        return array

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region:
        return region

    def view(self, array: Numbers) -> Numbers:
        return array


def _rounded(bits: Numbers, dropped: Any) -> Numbers:
    """Return unsigned integers with the lowest ``dropped`` (0 or more) bits rounded away, ties to even. A value whose
    rounding would overflow is truncated.
    """
    one = bits.dtype.type(1)
    half = ((one << dropped) >> one) - (dropped > 0)
    up = bits + (half + ((bits >> dropped) & one)) * (dropped > 0)
    return np.asarray(np.where(up < bits, bits, up) >> dropped << dropped)


def round_floats(bits: Numbers, mantissa: int, keepbits: int) -> Numbers:
    """Return the bits of floats, rounded to ``keepbits`` bits of their mantissa.

    Infinities and NaN are unchanged. A finite number stays finite: it is truncated if rounding up would overflow.
    """
    if keepbits >= mantissa:
        return bits
    kind = bits.dtype.type
    dropped = kind(mantissa - keepbits)
    sign = kind(1 << (8 * bits.dtype.itemsize - 1))
    exponent = kind(int(sign) - (1 << mantissa))
    magnitude = bits & ~sign
    rounded = _rounded(magnitude, dropped)
    rounded = np.where(rounded >= exponent, magnitude >> dropped << dropped, rounded)
    return np.where(magnitude >= exponent, bits, rounded | (bits & sign))


def round_integers(bits: Numbers, signed: bool, keepbits: int) -> Numbers:
    """Return the bits of two's complement integers, rounded to ``keepbits`` bits from the highest bit set in their
    magnitude. An integer is truncated if rounding up would leave the range of the data type.
    """
    kind = bits.dtype.type
    width = 8 * bits.dtype.itemsize
    negative = (bits >> kind(width - 1)) & kind(signed)
    magnitude = np.where(negative != 0, kind(0) - bits, bits)
    length = np.zeros_like(bits)
    rest = magnitude.copy()
    step = width // 2
    while step:
        high = rest >> kind(step) != 0
        length += high * kind(step)
        rest = np.where(high, rest >> kind(step), rest)
        step //= 2
    length += rest
    dropped = (
        np.where(length > keepbits, length - kind(keepbits), kind(0))
        if keepbits < width
        else length * kind(0)
    )
    dropped = np.minimum(dropped, kind(width - 1))
    rounded = _rounded(magnitude, dropped)
    if signed:
        max_magnitude = kind((1 << (width - 1)) - 1) + negative
        rounded = np.where(rounded > max_magnitude, magnitude >> dropped << dropped, rounded)
    return np.where(negative != 0, kind(0) - rounded, rounded)
