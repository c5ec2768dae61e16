"""packbits: packs elements of few bits without unused bits between them.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits

Names: ``packbits``. The Zarr v2 filter of that name (``numcodecs.packbits``) is another format.

Example::

    {"name": "packbits", "configuration": {"padding_encoding": "last_byte", "first_bit": 0, "last_bit": null}}

Elements are in C order, the least significant bit first. The last byte is padded with zero bits. ``padding_encoding``
is whether a byte with the number of padding bits is stored, and whether it is the first or the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.array_to_bytes.bytes import SMALL_BITS
from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, CodecError
from zarrfs.engine.codecs.configuration import check_keys, choice, integer
from zarrfs.engine.codecs.limits import check_size
from zarrfs.errors import MetadataError

__all__ = ["PackBitsCodec"]

PADDINGS = ("none", "first_byte", "last_byte")


class PackBitsCodec(ArrayBytesCodec):
    """array -> bytes: bits ``first_bit`` to ``last_bit`` (both included) of each component of each element.

    Components are the real and imaginary parts of complex numbers. Omitted bits are decoded as zeros, or, above
    ``last_bit`` of signed integers, as copies of the sign bit. The unused bits of elements of fewer than 8 bits are
    decoded as zeros, as in ml_dtypes: otherwise equal elements would differ in their bytes.
    """

    name: ClassVar[str] = "packbits"

    def __init__(
        self, padding_encoding: str = "none", first_bit: int | None = None, last_bit: int | None = None
    ) -> None:
        self.padding_encoding = padding_encoding
        self.first_bit = first_bit
        self.last_bit = last_bit

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("padding_encoding", "first_bit", "last_bit"))
        bits = [
            None if configuration.get(key) is None else integer(cls.name, configuration, key, 0, 63)
            for key in ("first_bit", "last_bit")
        ]
        return cls(choice(cls.name, configuration, "padding_encoding", PADDINGS, "none"), bits[0], bits[1])

    def configuration(self) -> dict[str, Any]:
        return {
            "padding_encoding": self.padding_encoding,
            "first_bit": self.first_bit,
            "last_bit": self.last_bit,
        }

    def _bits(self, spec: ChunkSpec) -> tuple[np.dtype[Any], int, int, int]:
        """Return the unsigned dtype of a component, the first stored bit, and the number of stored and of all bits."""
        dtype = spec.dtype
        width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        if dtype.hasobject or dtype.names or width not in (1, 2, 4, 8):
            raise MetadataError(
                f"codec 'packbits' cannot pack elements of {dtype}; expected booleans or numbers"
            )
        total = 1 if dtype.kind == "b" else SMALL_BITS.get(dtype.name, width * 8)
        first = self.first_bit or 0
        last = total - 1 if self.last_bit is None else self.last_bit
        if not first <= last < total:
            raise MetadataError(
                f"codec 'packbits': first_bit {first} and last_bit {last} are not within the {total} bits of {dtype}"
            )
        return np.dtype(f"<u{width}"), first, last - first + 1, total

    def check(self, spec: ChunkSpec) -> None:
        self._bits(spec)

    def _components(self, spec: ChunkSpec) -> int:
        return spec.size * (2 if spec.dtype.kind == "c" else 1)

    def encoded_size(self, spec: ChunkSpec) -> int:
        _, _, count, _ = self._bits(spec)
        return -(-self._components(spec) * count // 8) + (self.padding_encoding != "none")

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        unsigned, first, count, _ = self._bits(spec)
        little = np.ascontiguousarray(array, spec.dtype.newbyteorder("<")).reshape(-1)
        values = little.view(unsigned)
        raw = np.unpackbits(values.view(np.uint8), bitorder="little").reshape(
            values.size, unsigned.itemsize * 8
        )
        packed = np.packbits(raw[:, first : first + count].reshape(-1), bitorder="little").tobytes()
        padding = bytes([-self._components(spec) * count % 8])
        if self.padding_encoding == "first_byte":
            return padding + packed
        return packed + padding if self.padding_encoding == "last_byte" else packed

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        unsigned, first, count, total = self._bits(spec)
        check_size(memoryview(data).nbytes, self.encoded_size(spec))
        packed = np.frombuffer(data, np.uint8)
        components = self._components(spec)
        if self.padding_encoding != "none":
            padding = int(packed[0] if self.padding_encoding == "first_byte" else packed[-1])
            if padding != -components * count % 8:
                raise CodecError(
                    f"the number of padding bits is stored as {padding}, expected {-components * count % 8}"
                )
            packed = packed[1:] if self.padding_encoding == "first_byte" else packed[:-1]
        bits = np.unpackbits(packed, count=components * count, bitorder="little").reshape(components, count)
        full = np.zeros((components, unsigned.itemsize * 8), np.uint8)
        full[:, first : first + count] = bits
        if spec.dtype.kind == "i" or spec.dtype.name in ("int2", "int4"):
            full[:, first + count : total] = bits[:, -1:]
        values = np.packbits(full.reshape(-1), bitorder="little").view(unsigned)
        if spec.dtype.kind == "b":
            # NumPy returns a scalar for the comparison of an array without dimensions.
            return np.asarray(values.reshape(spec.shape) != 0)
        decoded: np.ndarray[Any, Any] = values.view(spec.dtype.newbyteorder("<")).reshape(spec.shape)
        return decoded
