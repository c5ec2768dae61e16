"""The base classes of codecs and the types that codecs exchange.

There are three kinds (Zarr v3 core specification, "Codecs"). All decode whole chunks. Codecs with partial decoding also
decode a region: an ``ArrayArrayCodec`` maps regions, an ``ArrayBytesCodec`` decodes a region from a ``ByteSource``, and
a ``BytesBytesCodec`` converts a source of encoded bytes to a source of decoded bytes. The package ``pipeline`` composes
them to the specification's ``partial_decode``.

Codecs are immutable and shared by threads. Encoded data are untrusted: ``decode`` receives the expected size, compares
it with the size that the data declare before it allocates memory, and stops at the limit. A codec raises ``CodecError``
with the values found and expected. The callers of the pipeline add array, chunk and key in a ``ChunkDecodeError``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from zarrfs.engine.stores.base import Buffer, ByteRange
from zarrfs.errors import MetadataError

__all__ = [
    "ArrayArrayCodec",
    "ArrayBytesCodec",
    "Buffer",
    "BufferSource",
    "ByteRange",
    "ByteSource",
    "BytesBytesCodec",
    "ChunkSpec",
    "Codec",
    "CodecError",
    "Region",
]

Region = tuple[slice, ...]
"""A box in a chunk: one slice per dimension with explicit 0 <= start <= stop <= length and step 1."""


class CodecError(Exception):
    """Bytes cannot be decoded or an array cannot be encoded. Users see a ChunkDecodeError or ChunkEncodeError.

    ``located`` is whether the message already names the codec.
    """

    located = False


@dataclass(frozen=True)
class ChunkSpec:
    """The array on the decoded side of a codec (the specification's "decoded representation").

    ``dtype`` is the dtype in memory, including the byte order. It is object for variable-length elements.
    ``fill_value`` is a scalar of that dtype, or any object for object dtypes.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def nbytes(self) -> int | None:
        """Number of bytes in memory, or None for variable-length elements."""
        return None if self.dtype.hasobject else self.size * self.dtype.itemsize


class ByteSource(Protocol):
    """Bytes that can be read in part: a value in a store, an inner chunk in a shard, or a buffer in memory."""

    in_memory: bool
    """Whether the bytes are in memory, so that reading fewer of them saves nothing."""

    @property
    def high_latency(self) -> bool:
        """Whether each request costs a round trip over a network."""

    def read(self) -> Buffer | None:
        """Return all bytes, or None when the value is missing."""

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range, clipped to the size of the value, or None when the value is missing."""

    def size(self) -> int | None:
        """Return the number of bytes, or None when the value is missing."""


class BufferSource:
    """A ByteSource over bytes in memory."""

    in_memory = True
    high_latency = False

    def __init__(self, data: Buffer) -> None:
        self._view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)

    def read(self) -> Buffer:
        return self._view

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer]:
        buffers: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(len(self._view))
            buffers.append(self._view[start:stop])
        return buffers

    def size(self) -> int:
        return len(self._view)


class Codec(ABC):
    """The base class of the three kinds of codec: a name and a configuration."""

    name: ClassVar[str]
    """The name in Zarr v3 metadata."""

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the codec of a v3 ``configuration`` object. Raises MetadataError that names the invalid key.

        Parameters that only encoding uses are checked in ``check_encoding``, not here.
        """

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the v3 ``configuration`` object. ``from_configuration`` returns an equal codec for it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a v3 ``codecs`` list. The method has the name that zarr-python uses."""
        return {"name": self.name, "configuration": self.configuration()}

    def check(self, spec: ChunkSpec) -> None:  # noqa: B027 - most codecs accept any chunk
        """Raise MetadataError if the codec does not support chunks of this rank, shape or dtype."""

    def check_encoding(self) -> None:  # noqa: B027 - most codecs have no parameters that only encoding uses
        """Raise MetadataError if a parameter that only encoding uses, such as a compression level, is invalid.

        Such a parameter does not prevent reading, so ``from_configuration`` accepts and keeps any value. It is checked
        before an array is created and before a chunk is encoded.
        """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.configuration() == other.configuration()

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.configuration().items())
        return f"{type(self).__name__}({arguments})"


class ArrayArrayCodec(Codec):
    """array -> array."""

    rounds: ClassVar[bool] = False
    """Whether ``encode`` changes values and ``decode`` does not. ``view`` then applies only to decoding."""

    @abstractmethod
    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the shape, dtype and fill value of the encoded array for chunks of ``spec``."""

    def encoded_fill_value(self, spec: ChunkSpec) -> Any:
        """Return the fill value of the encoded array, or None without one. Raises MetadataError if it has no encoding.

        For codecs that encode each element by its value alone.
        """
        if spec.fill_value is None:
            return None
        try:
            return self.encode(np.array([spec.fill_value], spec.dtype), spec)[0]
        except CodecError as error:
            raise MetadataError(f"codec {self.name!r}: cannot encode the fill value: {error}") from error

    @abstractmethod
    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        """Encode a whole chunk. May return a view of ``array``, which stays unchanged."""

    @abstractmethod
    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        """Decode a whole chunk, or a region of one if ``encoded_region`` maps regions. May return a view."""

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region | None:
        """Return the region of the encoded array that decodes to ``region``, or None if only a whole chunk can be
        decoded.
        """
        return None

    def view(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """Return a view of a decoded array (or region) in encoded layout, so that decoding can write directly into it.

        Return None if decoding changes values.
        """
        return None


class ArrayBytesCodec(Codec):
    """array -> bytes."""

    partial: ClassVar[bool] = False
    """Whether ``decode_region`` can read less than the whole value."""

    element_type: ClassVar[type | None] = None
    """The type of the Python objects that ``decode`` returns, or None for numbers and for objects of any type."""

    @abstractmethod
    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        """Encode a whole chunk of ``spec.shape``. May return the memory of ``array``."""

    @abstractmethod
    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        """Decode a whole chunk to an array of ``spec.shape``.

        The result may be a read-only view of ``data`` and may have another byte order than ``spec.dtype``.
        """

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Return the exact number of bytes that ``encode`` returns, or None if it depends on the data."""
        return None

    def decode_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec
    ) -> np.ndarray[Any, Any] | None:
        """Decode ``region`` from as few bytes of ``source`` as possible. Return None when the value is missing."""
        data = source.read()
        return None if data is None else self.decode(data, spec)[region]


class BytesBytesCodec(Codec):
    """bytes -> bytes."""

    def for_chunks(self, spec: ChunkSpec) -> Self:
        """Return the codec for the bytes of chunks of ``spec``: itself, unless a parameter depends on the data type."""
        return self

    partial: ClassVar[bool] = False
    """Whether the result of ``open_source`` can read less than the whole value."""

    native_decoder: ClassVar[str] = ""
    """The decoder of the native library (a key of ``native.structures.DECODERS``) for the encoded bytes, if any.

    It applies to the class that defines ``decode`` and to subclasses that do not override ``decode``.
    """

    @abstractmethod
    def encode(self, data: Buffer) -> Buffer:
        """Encode contiguous bytes, which stay unchanged."""

    @abstractmethod
    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        """Decode to exactly ``size`` bytes. Raises CodecError if the data decode to another size.

        ``size`` is None if it is unknown (variable-length data). ``limits.variable_limit(len(data))`` then bounds the
        result. ``out`` is writable, contiguous and ``size`` bytes long. A codec may fill it and return it, or ignore it
        and return a new buffer.
        """

    def encoded_size(self, size: int) -> int | None:
        """Return the exact number of encoded bytes for ``size`` decoded bytes, or None if it depends on the data."""
        return None

    def open_source(self, source: ByteSource, size: int) -> ByteSource | None:
        """Return a source of the ``size`` decoded bytes that reads from ``source`` only what is needed for each range.

        Return None if the codec must decode the whole value. Only called when ``size`` is known.
        """
        return None
