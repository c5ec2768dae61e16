"""The contract of a codec: three kinds, each decoding whole chunks and, where it can, just a part.

After "Codecs" in the Zarr v3 core specification. An ``ArrayArrayCodec`` maps regions, an ``ArrayBytesCodec``
decodes a region from a ``ByteSource``, a ``BytesBytesCodec`` turns a source of encoded bytes into a source of
decoded bytes. Composed (see ``pipeline.py``) that is the specification's ``partial_decode``.

Codecs are immutable and shared by threads. They never trust their input: ``decode`` is told how many bytes must
come out, checks the size that the data declares before taking memory, and stops at the limit. A codec raises
``CodecError`` with what it found and expected; the pipeline adds array, chunk and key, and makes it a
``ChunkDecodeError``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from zarrfs.engine.stores.base import Buffer, ByteRange

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
    "InnerChunkReader",
    "Region",
]

Region = tuple[slice, ...]
"""A box in a chunk: one slice per dimension, 0 <= start <= stop <= length, step 1, all three given."""


class CodecError(Exception):
    """Bytes cannot be decoded, or data not encoded. Internal: users see a ChunkDecodeError or ChunkEncodeError.

    ``located`` is whether the message names the codec already.
    """

    located = False


@dataclass(frozen=True)
class ChunkSpec:
    """What a codec is told of the array on its decoded side (the spec's "decoded representation").

    ``dtype`` is the dtype in memory, byte order included; object for variable-length elements. ``fill_value`` is
    a scalar of that dtype, or any object for object dtypes.
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
    """Encoded bytes that can be read in part: a value in a store, a part of a shard, a buffer in memory."""

    in_memory: bool
    """True where reading costs nothing, so that asking for less saves nothing."""

    @property
    def high_latency(self) -> bool:
        """Whether each request costs a round trip over a network."""

    def read(self) -> Buffer | None:
        """Return all bytes, or None when there is no such value."""

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range, clipped to what there is; None when there is no such value."""

    def size(self) -> int | None:
        """Return the number of bytes, or None when there is no such value."""


class BufferSource:
    """A ByteSource over bytes in memory."""

    in_memory = True
    high_latency = False

    def __init__(self, data: Buffer) -> None:
        self._view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)

    def read(self) -> Buffer:
        return self._view

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer]:
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(len(self._view))
            pieces.append(self._view[start:stop])
        return pieces

    def size(self) -> int:
        return len(self._view)


class InnerChunkReader(Protocol):
    """How a codec that stores inner chunks reads its index and one inner chunk: it decides what is cached."""

    def index(self, load: Callable[[], np.ndarray[Any, Any] | None]) -> np.ndarray[Any, Any] | None:
        """Return the index of the inner chunks, from the cache or from ``load``; None when the value is missing."""

    def cached(self, coords: tuple[int, ...]) -> np.ndarray[Any, Any] | None:
        """Return the decoded inner chunk if it is cached, else None."""

    def read(
        self,
        codecs: Any,
        coords: tuple[int, ...],
        source: ByteSource,
        region: Region,
        out: np.ndarray[Any, Any],
    ) -> bool:
        """Decode ``region`` of an inner chunk into ``out``. ``codecs`` is the CodecPipeline of the inner chunks.

        Return False when the inner chunk is missing; ``out`` is then unchanged.
        """


class Codec(ABC):
    """What the three kinds share: a name and a configuration."""

    name: ClassVar[str]
    """The name in Zarr v3 metadata."""

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Make the codec from a v3 ``configuration`` object. Raises MetadataError that names the bad key.

        Values that only encoding uses are not checked here but in ``check_encoding``.
        """

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the v3 ``configuration`` object that makes an equal codec."""

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a v3 ``codecs`` list, under the name that zarr-python has for this."""
        return {"name": self.name, "configuration": self.configuration()}

    def check(self, spec: ChunkSpec) -> None:  # noqa: B027 - most codecs take anything
        """Raise MetadataError if chunks of this kind cannot be encoded (wrong rank, dtype, shape)."""

    def check_encoding(self) -> None:  # noqa: B027 - most codecs have no parameters for encoding alone
        """Raise MetadataError if a parameter that only encoding uses is wrong, such as a compression level.

        Such a parameter does not prevent reading: ``from_configuration`` accepts and keeps any value. It is checked
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
    """Whether ``encode`` changes values although ``decode`` does not: ``view`` is for decoding alone then."""

    @abstractmethod
    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return what comes out of ``encode`` for chunks of ``spec`` (shape, dtype and fill value follow)."""

    @abstractmethod
    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        """Encode a whole chunk. May return a view; never changes its argument."""

    @abstractmethod
    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        """Decode a whole chunk, or, where ``encoded_region`` answers, any region of one. May return a view."""

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region | None:
        """Return the region of the encoded array that decodes to ``region``, or None if only a whole chunk can
        be decoded.
        """
        return None

    def view(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """Return a view of a decoded array (or region) in encoded layout, so that decoding can write straight
        into it; None where the codec changes values.
        """
        return None


class ArrayBytesCodec(Codec):
    """array -> bytes."""

    partial: ClassVar[bool] = False
    """Whether ``decode_region`` can do with less than the whole value."""

    element_type: ClassVar[type | None] = None
    """The type of the Python objects that ``decode`` makes; None where it makes any, or numbers."""

    @abstractmethod
    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        """Encode a whole chunk of ``spec.shape``. May return the memory of ``array``."""

    @abstractmethod
    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        """Decode a whole chunk to an array of ``spec.shape``; may be a read-only view of ``data``, and may be of
        another byte order than ``spec.dtype``.
        """

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Return the exact number of bytes that ``encode`` gives, or None where it varies with the data."""
        return None

    def decode_region(
        self, source: ByteSource, region: Region, spec: ChunkSpec
    ) -> np.ndarray[Any, Any] | None:
        """Decode just ``region``, asking ``source`` for no more than needed; None when the value is absent."""
        data = source.read()
        return None if data is None else self.decode(data, spec)[region]


class BytesBytesCodec(Codec):
    """bytes -> bytes."""

    partial: ClassVar[bool] = False
    """Whether ``open_source`` can do with less than the whole value."""

    @abstractmethod
    def encode(self, data: Buffer) -> Buffer:
        """Encode. The argument is contiguous bytes and stays unchanged."""

    @abstractmethod
    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        """Decode to exactly ``size`` bytes, else CodecError. ``size`` None means unknown (variable-length data):
        then ``limits.variable_limit(len(data))`` bounds the result.

        ``out``, writable, contiguous and ``size`` long, may be filled instead of a new buffer; a codec that does
        returns ``out`` itself, one that cannot ignores it.
        """

    def encoded_size(self, size: int) -> int | None:
        """Return the exact number of encoded bytes for ``size`` decoded ones, or None where it varies."""
        return None

    def open_source(self, source: ByteSource, size: int) -> ByteSource | None:
        """Return a source of the decoded bytes that fetches from ``source`` only what ranges need, or None where
        this codec must decode the whole. Only called when ``size`` is known.
        """
        return None
