"""The codec chain of an array, resolved for chunks of one shape.

The representations between the codecs (Zarr v3 core specification, "Determination of encoded representations") are
computed once, when the chain is resolved. ``decoding.py`` and ``encoding.py`` run the chain; this module only
describes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec, needs_canonical
from zarrfs.engine.codecs.base import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    Buffer,
    BytesBytesCodec,
    ByteSource,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.engine.codecs.limits import intermediate_limit
from zarrfs.engine.read_limits import MAX_REMOTE_WHOLE_NBYTES, MAX_WHOLE_NBYTES, PYTHON_DECODING
from zarrfs.engine.stores.base import ValueTooLargeError
from zarrfs.errors import MetadataError, StoreError, ZarrError

__all__ = ["CodecChain", "RegionCodec", "raise_located"]

Array = np.ndarray[Any, Any]


class RegionCodec(ArrayBytesCodec):
    """An array->bytes codec that stores inner chunks, which are encoded one by one."""

    def encode_parts(self, array: Array, spec: ChunkSpec, keep_filled: bool = False) -> list[Buffer]:
        """Encode as ``encode`` does, to parts that the caller concatenates.

        With ``keep_filled`` inner chunks that contain only the fill value are stored too.
        """
        raise NotImplementedError

    def first_missing(self, source: ByteSource, region: Region, spec: ChunkSpec) -> tuple[int, ...] | None:
        """Return the coordinates of the first inner chunk that ``region`` intersects and that is not stored, or
        None.
        """
        raise NotImplementedError


def raise_located(error: Exception, codec: Codec, verb: str = "decode") -> NoReturn:
    """Raise a CodecError that names the innermost failing codec, chained to ``error``.

    Codec libraries raise arbitrary exceptions for corrupt bytes. Errors that already name a codec, and ZarrError, are
    raised unchanged.
    """
    if isinstance(error, ZarrError | ValueTooLargeError):
        raise error
    if isinstance(error, CodecError) and error.located:
        raise error
    message = " ".join(str(error).split()) or type(error).__name__  # Library messages may span several lines.
    if isinstance(error, OSError) and error.errno is not None:
        # The operating system refused something, such as another open file. The data are not corrupt.
        raise StoreError(f"codec {codec.name!r} cannot {verb}: {message}", error.errno) from error
    located = CodecError(f"codec {codec.name!r} cannot {verb}: {message}")
    located.located = True
    raise located from error


class CodecChain:
    """The codecs of an array with the representation before and after each of them. Immutable and thread-safe.

    Raises MetadataError on construction when a codec does not accept the output of the codec before it.

    Attributes:
        codecs: the codecs in encoding order.
        spec: the decoded chunk.
        array_codecs: the array->array codecs in encoding order, each with the spec of its decoded side.
        array_bytes_codec: the array->bytes codec.
        array_bytes_spec: the chunk as the array->bytes codec receives it.
        bytes_codecs: the bytes->bytes codecs in encoding order, each with the size of its decoded side in bytes, or
            None if the size depends on the data.
        encoded_size: the size of an encoded chunk in bytes, or None if it depends on the data.
        max_encoded_size: the largest plausible size of an encoded chunk in bytes, or None for variable-length data.
        has_views: whether each array->array codec can express a decoded array as a view in encoded layout.
        supports_partial: whether decoding a region can cost less than decoding the chunk.
        direct: whether the decoded bytes are the memory of the decoded array, so that decompression can write into it.
        uncompressed: whether the stored bytes are the memory of an array.
        sharded: whether a chunk consists of inner chunks.
        compressed: whether the size of an encoded chunk depends on the data.
        nbytes: the size of a decoded chunk in bytes, or None for variable-length elements.
    """

    def __init__(self, codecs: Sequence[Codec], spec: ChunkSpec) -> None:
        self.codecs = tuple(codecs)
        self.spec = spec
        array_codecs = [codec for codec in codecs if isinstance(codec, ArrayArrayCodec)]
        array_bytes = [codec for codec in codecs if isinstance(codec, ArrayBytesCodec)]
        bytes_codecs = [codec for codec in codecs if isinstance(codec, BytesBytesCodec)]
        if len(array_bytes) != 1 or [*array_codecs, *array_bytes, *bytes_codecs] != list(codecs):
            raise MetadataError(
                f"codecs {[codec.name for codec in codecs]}: expected any number of array->array codecs, exactly one "
                "array->bytes codec, then any number of bytes->bytes codecs"
            )
        specs = [spec]
        for codec in array_codecs:
            codec.check(specs[-1])
            specs.append(codec.encoded_spec(specs[-1]))
        self.array_codecs = tuple(zip(array_codecs, specs[:-1], strict=True))
        self.array_bytes_codec = array_bytes[0]
        self.array_bytes_spec = specs[-1]
        self.array_bytes_codec.check(self.array_bytes_spec)
        bytes_codecs = [codec.for_chunks(self.array_bytes_spec) for codec in bytes_codecs]
        sizes: list[int | None] = [self.array_bytes_codec.encoded_size(self.array_bytes_spec)]
        for bytes_codec in bytes_codecs:
            bytes_codec.check(self.array_bytes_spec)
            decoded_size = sizes[-1]
            sizes.append(None if decoded_size is None else bytes_codec.encoded_size(decoded_size))
        self.bytes_codecs = tuple(zip(bytes_codecs, sizes[:-1], strict=True))
        self.encoded_size = sizes[-1]
        self.nbytes = spec.nbytes
        self.sharded = isinstance(self.array_bytes_codec, RegionCodec)
        self.compressed = self.encoded_size is None
        self.max_encoded_size = self._max_encoded_size(sizes)
        self.has_views = all(codec.view(_empty_array(a)) is not None for codec, a in self.array_codecs)
        self.direct = self._is_direct()
        self.uncompressed = self.direct and not bytes_codecs
        self.supports_partial = (
            self._maps_regions()
            and self.array_bytes_codec.partial
            and all(codec.partial for codec in bytes_codecs)
        )

    def _max_encoded_size(self, sizes: Sequence[int | None]) -> int | None:
        nbytes = self.array_bytes_spec.nbytes
        if nbytes is None or self.nbytes is None:
            return None
        largest = max(nbytes, self.nbytes, *(size or 0 for size in sizes))
        return intermediate_limit(largest)

    def _maps_regions(self) -> bool:
        return all(
            codec.encoded_region(_whole_region(a.shape), a) is not None for codec, a in self.array_codecs
        )

    def _is_direct(self) -> bool:
        spec = self.spec
        codec = self.array_bytes_codec
        if not isinstance(codec, BytesCodec) or not self.has_views:
            return False
        if spec.dtype.hasobject or needs_canonical(spec.dtype) or spec.nbytes == 0:
            return False
        return bool(codec.stored_dtype(self.array_bytes_spec.dtype) == spec.dtype)

    def is_whole(self, region: Region) -> bool:
        """Return whether the region is the whole chunk."""
        # A loop instead of all(...): this runs for every small chunk, where a generator costs measurably more.
        for part, length in zip(region, self.spec.shape, strict=True):  # noqa: SIM110
            if part.stop - part.start != length:
                return False
        return True

    @property
    def must_decode_parts(self) -> bool:
        """Whether chunks are too large to be decoded whole, even if they are read repeatedly."""
        return self.supports_partial and (self.nbytes or 0) > MAX_WHOLE_NBYTES

    def prefers_partial(self, region: Region, *, high_latency: bool = False) -> bool:
        """Return whether decoding only the region costs less than decoding the whole chunk.

        With ``high_latency`` each of the requests for parts of a compressed chunk, which follow each other, costs as
        much as several hundred kilobytes.
        """
        nbytes = self.nbytes
        if not self.supports_partial or nbytes is None or nbytes < PYTHON_DECODING.min_nbytes:
            return False
        if not self.compressed or nbytes > MAX_WHOLE_NBYTES:
            return True
        limits = PYTHON_DECODING
        if high_latency and nbytes <= MAX_REMOTE_WHOLE_NBYTES:
            return False
        return nbytes >= limits.min_compressed_nbytes and self.span(region) <= limits.max_fraction * nbytes

    def encoded_region(self, region: Region) -> Region | None:
        """Return the region that the array->bytes codec must decode, or None if it must decode the whole chunk."""
        encoded: Region | None = region
        for codec, spec in self.array_codecs:
            encoded = None if encoded is None else codec.encoded_region(encoded, spec)
        return encoded

    def encoded_view(self, array: Array) -> Array:
        """Return a view of a decoded array (or region) in the layout that the array->bytes codec decodes to.

        Only valid where ``has_views`` is true.
        """
        for codec, _ in self.array_codecs:
            view = codec.view(array)
            if view is None:
                raise TypeError(f"codec {codec.name!r} has no view of decoded arrays")
            array = view
        return array

    def span(self, region: Region) -> int:
        """Return the distance in bytes between the first and the last byte of the region in the encoded array.

        All compressed blocks in between must be decoded to obtain the region.
        """
        encoded = self.encoded_region(region)
        if encoded is None:
            return self.nbytes or 0
        span = 0
        stride = 1
        for part, length in zip(reversed(encoded), reversed(self.array_bytes_spec.shape), strict=True):
            span += (part.stop - part.start - 1) * stride
            stride *= length
        return (span + 1) * self.array_bytes_spec.dtype.itemsize


def _whole_region(shape: Sequence[int]) -> Region:
    return tuple(slice(0, length, 1) for length in shape)


def _empty_array(spec: ChunkSpec) -> Array:
    """Return an array of the rank and dtype of a chunk that allocates no memory, to query codecs for views."""
    return np.empty((0,) * len(spec.shape), spec.dtype)
