"""The contract of codecs (``zarrfs.ext.codecs``) as tests that run on any codec.

The tests need neither pytest nor another test library; see ``store_contract.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    BufferSource,
    BytesBytesCodec,
    ChunkSpec,
    Codec,
    CodecError,
    Region,
)
from zarrfs.errors import MetadataError
from zarrfs.testing.contracts import run_tests

__all__ = ["CodecTests", "check_codec", "example_arrays"]

Values = np.ndarray[Any, Any]

SHAPE = (4, 3, 5)

REGIONS: tuple[Region, ...] = (
    (slice(0, 4), slice(0, 3), slice(0, 5)),
    (slice(1, 3), slice(0, 3), slice(2, 5)),
    (slice(3, 4), slice(2, 3), slice(4, 5)),
    (slice(0, 1), slice(1, 3), slice(0, 5)),
)
"""Regions of chunks of ``SHAPE``."""

DECODE_ERRORS = (CodecError, ValueError, RuntimeError, TypeError, EOFError, OSError, IndexError)
"""What codecs may raise for invalid data. The pipeline converts all of them to CodecError."""

THREADS, DECODINGS_PER_THREAD = 4, 8

MAX_DAMAGED_BYTES = 200


def example_arrays(names: Sequence[str] = ("uint8", "int16", "float32", "float64")) -> list[Values]:
    """Return an array of the shape (4, 3, 5) for each data type, with different values."""
    arrays = []
    for name in names:
        dtype = np.dtype(name)
        count = int(np.prod(SHAPE))
        values = np.arange(count) * 37 % 101
        arrays.append(values.astype(dtype).reshape(SHAPE))
    return arrays


def check_codec(
    codec: Codec, arrays: Sequence[Values] | None = None, suite: type[CodecTests] | None = None
) -> None:
    """Run the contract. ``arrays`` are chunks of the shape (4, 3, 5) that the codec supports (default: examples).

    ``suite`` is a subclass of ``CodecTests`` (default: itself). Raises ExceptionGroup with the errors.
    """
    tests = (suite or CodecTests)()
    tests.codec = codec
    if arrays is not None:
        tests.arrays = tuple(arrays)
    run_tests(tests, lambda test: test(), f"The codec {codec.name!r} does not keep the contract")


class CodecTests:
    """The contract of a codec. Subclass it and set ``codec``, and ``arrays`` if it does not support all numbers.

    Example, for pytest::

        class TestMyCodec(CodecTests):
            codec = MyCodec(level=3)
            arrays = tuple(example_arrays(["float32"]))
    """

    codec: Codec
    arrays: tuple[Values, ...] = tuple(example_arrays())
    """Chunks of the shape (4, 3, 5) to encode."""
    exact: bool = True
    """Whether decoding returns exactly the values that were encoded."""

    # -- metadata ----------------------------------------------------------------------------------------------

    def test_the_configuration_creates_an_equal_codec(self) -> None:
        configuration = json.loads(json.dumps(self.codec.configuration()))
        again = type(self.codec).from_configuration(configuration)
        assert again == self.codec
        assert hash(again) == hash(self.codec)
        assert again.configuration() == self.codec.configuration()
        assert self.codec.to_dict()["name"] == self.codec.name

    def test_an_unknown_key_is_a_metadata_error_that_names_it(self) -> None:
        configuration = {**self.codec.configuration(), "surplus key": 1}
        message = ""
        try:
            type(self.codec).from_configuration(configuration)
        except MetadataError as error:
            message = str(error)
        assert "surplus key" in message, f"expected a MetadataError that names the key, found {message!r}"

    def test_the_example_arrays_are_supported(self) -> None:
        for array in self.arrays:
            self.codec.check(spec_of(array))
        self.codec.check_encoding()

    # -- whole chunks ------------------------------------------------------------------------------------------

    def test_decoding_returns_what_was_encoded(self) -> None:
        for array in self.arrays:
            decoded = decode(self.codec, encode(self.codec, array), array)
            assert decoded.shape == array.shape
            if self.exact:
                assert decoded.astype(array.dtype).tobytes() == array.tobytes()

    def test_encoding_does_not_change_its_input(self) -> None:
        for array in self.arrays:
            values = array.copy()
            values.flags.writeable = False
            encode(self.codec, values)
            assert values.tobytes() == array.tobytes()

    def test_encoding_twice_returns_the_same(self) -> None:
        for array in self.arrays:
            assert data_of(encode(self.codec, array)) == data_of(encode(self.codec, array.copy()))

    def test_the_encoded_size_is_exact_or_unknown(self) -> None:
        for array in self.arrays:
            encoded = encode(self.codec, array)
            if isinstance(self.codec, BytesBytesCodec):
                size = self.codec.encoded_size(array.nbytes)
            elif isinstance(self.codec, ArrayBytesCodec):
                size = self.codec.encoded_size(spec_of(array))
            else:
                spec = self.codec.encoded_spec(spec_of(array))  # type: ignore[attr-defined]
                assert (encoded.shape, encoded.dtype) == (spec.shape, spec.dtype)
                continue
            assert size is None or size == len(data_of(encoded))

    def test_the_codec_is_not_changed_by_its_use(self) -> None:
        before = self.codec.configuration()
        for array in self.arrays:
            decode(self.codec, encode(self.codec, array), array)
        assert self.codec.configuration() == before

    def test_threads_share_the_codec(self) -> None:
        encoded = [encode(self.codec, array) for array in self.arrays]
        expected = [decode(self.codec, e, a).tobytes() for e, a in zip(encoded, self.arrays, strict=True)]

        def work(_: int) -> list[bytes]:
            return [decode(self.codec, e, a).tobytes() for e, a in zip(encoded, self.arrays, strict=True)]

        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(work, range(THREADS * DECODINGS_PER_THREAD)))
        assert all(result == expected for result in results)

    # -- parts of chunks ---------------------------------------------------------------------------------------

    def test_regions_equal_the_parts_of_the_whole_chunk(self) -> None:
        codec = self.codec
        for array in self.arrays:
            spec, encoded = spec_of(array), encode(codec, array)
            whole = decode(codec, encoded, array)
            for region in REGIONS:
                part: Values | None = None
                if isinstance(codec, ArrayBytesCodec):
                    part = codec.decode_region(BufferSource(data_of(encoded)), region, spec)
                    assert part is not None
                elif isinstance(codec, ArrayArrayCodec):
                    inner = codec.encoded_region(region, spec)
                    part = None if inner is None else codec.decode(encoded[inner], spec)
                if part is not None:
                    assert part.astype(array.dtype).tobytes() == whole[region].astype(array.dtype).tobytes()

    def test_decoding_into_a_buffer_has_the_same_result(self) -> None:
        if isinstance(self.codec, BytesBytesCodec):
            for array in self.arrays:
                encoded = data_of(encode(self.codec, array))
                out = memoryview(bytearray(array.nbytes))
                decoded = self.codec.decode(encoded, array.nbytes, out)
                assert data_of(decoded) == data_of(self.codec.decode(encoded, array.nbytes))

    # -- untrusted data ----------------------------------------------------------------------------------------

    def test_data_of_another_size_are_refused(self) -> None:
        if isinstance(self.codec, BytesBytesCodec):
            encoded = data_of(encode(self.codec, self.arrays[0]))
            for size in (self.arrays[0].nbytes - 1, self.arrays[0].nbytes + 1, 0):
                assert_refused(self.codec, encoded, size, self.arrays[0])

    def test_truncated_data_are_refused_or_have_the_right_size(self) -> None:
        if not isinstance(self.codec, ArrayArrayCodec):
            array = self.arrays[0]
            encoded = data_of(encode(self.codec, array))
            for length in range(min(len(encoded), MAX_DAMAGED_BYTES)):
                assert_right_size_or_error(self.codec, encoded[:length], array)

    def test_damaged_data_are_refused_or_have_the_right_size(self) -> None:
        if not isinstance(self.codec, ArrayArrayCodec):
            array = self.arrays[0]
            encoded = data_of(encode(self.codec, array))
            for position in range(min(len(encoded), MAX_DAMAGED_BYTES)):
                damaged = bytearray(encoded)
                damaged[position] ^= 0xFF
                assert_right_size_or_error(self.codec, bytes(damaged), array)


def spec_of(array: Values) -> ChunkSpec:
    fill = "" if array.dtype.hasobject else np.zeros((), array.dtype)[()]
    return ChunkSpec(array.shape, array.dtype, fill)


def encode(codec: Codec, array: Values) -> Any:
    """Encode a chunk with a codec of any kind."""
    if isinstance(codec, BytesBytesCodec):
        return codec.encode(array.tobytes())
    if isinstance(codec, ArrayArrayCodec | ArrayBytesCodec):
        return codec.encode(array, spec_of(array))
    raise TypeError(f"{codec!r} is none of ArrayArrayCodec, ArrayBytesCodec and BytesBytesCodec")


def decode(codec: Codec, encoded: Any, array: Values) -> Values:
    """Decode what ``encode`` has returned for ``array``."""
    if isinstance(codec, BytesBytesCodec):
        decoded = codec.decode(encoded, array.nbytes)
        assert memoryview(decoded).nbytes == array.nbytes, "decode returned another number of bytes"
        return np.frombuffer(decoded, array.dtype).reshape(array.shape)
    assert isinstance(codec, ArrayArrayCodec | ArrayBytesCodec)
    return codec.decode(encoded, spec_of(array))


def data_of(encoded: Any) -> bytes:
    """Return the bytes of a buffer or of an array."""
    return encoded.tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)


def assert_refused(codec: BytesBytesCodec, encoded: bytes, size: int, array: Values) -> None:
    try:
        codec.decode(encoded, size)
    except DECODE_ERRORS:
        return
    raise AssertionError(
        f"data of {array.nbytes} bytes were decoded to {size} bytes, expected CodecError because the sizes differ"
    )


def assert_right_size_or_error(codec: Codec, encoded: bytes, array: Values) -> None:
    try:
        decoded = decode(codec, encoded, array)
    except DECODE_ERRORS:
        return
    assert decoded.shape == array.shape
