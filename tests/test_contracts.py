"""The contracts of codecs and views in ``zarrfs.testing``: built-in ones keep them, and faults are found."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import pytest

import zarrfs.ext
import zarrfs.ext.chunks
import zarrfs.ext.codecs
import zarrfs.ext.data_types
import zarrfs.ext.metadata
import zarrfs.ext.stores
import zarrfs.ext.views
from zarrfs.engine.codecs.registry import codec_from_json
from zarrfs.ext.codecs import ArrayArrayCodec, Buffer, BytesBytesCodec, ChunkSpec, Codec, Region
from zarrfs.ext.metadata import check_keys
from zarrfs.ext.views import ArraySegment, BytesSegment, PresentedArray, View, VirtualFileContent
from zarrfs.files.views import all_views
from zarrfs.testing import CodecTests, ViewTests, check_codec, check_view
from zarrfs.testing.codec_contract import example_arrays

BUILT_IN = [
    {"name": "gzip", "configuration": {"level": 1}},
    {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
    {"name": "crc32c"},
    {"name": "bytes", "configuration": {"endian": "big"}},
    {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
]


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry["name"])
def test_codecs_of_each_kind_keep_the_contract(entry: dict[str, Any]) -> None:
    codec = codec_from_json(entry, "test")
    assert codec is not None
    check_codec(codec)


@pytest.mark.parametrize("suffix", [".npy", ".raw", ".json", ".nrrd", ".csv", ".F.npy"])
def test_views_keep_the_contract(suffix: str) -> None:
    view = next(view for view in all_views() if view.suffix == suffix)
    read = (lambda file: np.load(io.BytesIO(file))) if suffix.endswith(".npy") else None
    check_view(view, read)


class Xor(BytesBytesCodec):
    """A correct codec, of which each subclass has one fault."""

    name = "test.xor"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(configuration, "test", ())
        return cls()

    def configuration(self) -> dict[str, Any]:
        return {}

    def encode(self, data: Buffer) -> Buffer:
        return (np.frombuffer(data, "u1") ^ 1).tobytes()

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        if size is not None and memoryview(data).nbytes != size:
            raise ValueError("wrong size")
        return self.encode(data)


class AnySize(Xor):
    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        return self.encode(data)


class AnyKey(Xor):
    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls()


class Lossy(Xor):
    def encode(self, data: Buffer) -> Buffer:
        return (np.frombuffer(data, "u1") | 1).tobytes()


class WrongSize(Xor):
    def encoded_size(self, size: int) -> int:
        return size + 1


class Changing(Xor):
    def encode(self, data: Buffer) -> Buffer:
        self.calls = getattr(self, "calls", 0) + 1
        return bytes([self.calls]) + bytes(data)

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        if size is not None and memoryview(data).nbytes != size + 1:
            raise ValueError("wrong size")
        return bytes(data)[1:]


class WrongRegion(ArrayArrayCodec):
    name = "test.reverse"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(configuration, "test", ())
        return cls()

    def configuration(self) -> dict[str, Any]:
        return {}

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return spec

    def encode(self, array: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        return array[::-1]

    def decode(self, array: np.ndarray, spec: ChunkSpec) -> np.ndarray:
        return array[::-1]

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region:
        return region


def failed(group: ExceptionGroup) -> set[str]:
    return {note.rpartition(".")[2] for error in group.exceptions for note in error.__notes__}


def test_a_correct_codec_has_no_faults() -> None:
    check_codec(Xor())


@pytest.mark.parametrize(
    ("codec", "test"),
    [
        (AnySize, "test_data_of_another_size_are_refused"),
        (AnyKey, "test_an_unknown_key_is_a_metadata_error_that_names_it"),
        (Lossy, "test_decoding_returns_what_was_encoded"),
        (WrongSize, "test_the_encoded_size_is_exact_or_unknown"),
        (Changing, "test_encoding_twice_returns_the_same"),
        (WrongRegion, "test_regions_equal_the_parts_of_the_whole_chunk"),
    ],
)
def test_the_contract_finds_the_fault_of_a_codec(codec: type[Codec], test: str) -> None:
    with pytest.raises(ExceptionGroup, match="does not keep the contract") as caught:
        check_codec(codec())
    assert test in failed(caught.value)


class TestSubclassOfCodecTests(CodecTests):
    codec = Xor()
    arrays = tuple(example_arrays(["uint16"]))


class Plain(View):
    """A correct view, of which each subclass has one fault."""

    suffix = ".plain"

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return "its elements vary in length" if presented.array.dtype.hasobject else None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        return VirtualFileContent([BytesSegment(b"head"), ArraySegment(presented.array)])


class Reading(Plain):
    def content(self, presented: PresentedArray) -> VirtualFileContent:
        return VirtualFileContent([BytesSegment(presented.array[...].tobytes())])


class Counting(Plain):
    count = 0

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        self.count += 1
        return VirtualFileContent([BytesSegment(str(self.count).encode())])


class Empty(Plain):
    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return ""


class TestSubclassOfViewTests(ViewTests):
    view = Plain()

    def read(self, file: bytes) -> np.ndarray | None:
        return None

    def arrays(self) -> Iterator[Any]:
        for array, store in super().arrays():
            if array.ndim == 2:
                yield array, store


@pytest.mark.parametrize(
    ("view", "test"),
    [
        (Reading, "test_the_file_is_created_without_reading_elements"),
        (Counting, "test_two_files_of_one_array_are_equal"),
        (Empty, "test_a_refusal_is_a_reason_or_none"),
    ],
)
def test_the_contract_finds_the_fault_of_a_view(view: type[View], test: str) -> None:
    with pytest.raises(ExceptionGroup, match="does not keep the contract") as caught:
        check_view(view())
    assert test in failed(caught.value)


def test_wrong_values_in_a_file_are_found() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        check_view(Plain(), lambda file: np.zeros(3))
    assert failed(caught.value) == {"test_the_file_contains_the_values"}


PUBLIC = {
    zarrfs.ext.chunks: 3,
    zarrfs.ext.codecs: 12,
    zarrfs.ext.data_types: 2,
    zarrfs.ext.metadata: 11,
    zarrfs.ext.stores: 12,
    zarrfs.ext.views: 11,
}
"""Module -> the number of its public names. A name that is removed breaks packages that use it."""


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_public_names_exist(module: Any) -> None:
    assert len(module.__all__) == PUBLIC[module]
    assert all(hasattr(module, name) for name in module.__all__)
