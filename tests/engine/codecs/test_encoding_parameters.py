"""Parameters that only encoding uses. Reading accepts any value; creating an array and writing a chunk do not."""

from __future__ import annotations

import json
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE
from zarrfs.errors import ChunkEncodeError, MetadataError

DATA = np.arange(24, dtype="<u2").reshape(4, 6)
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}


class _Missing:
    """A marker whose representation, which is part of test identifiers, is the same in each process."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()

V3: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(("gzip", {"level": 1}, {"level": level}) for level in (-1, 10, 1.0, "1", True, None)),
    ("gzip", {"level": 1}, {"level": "much"}),
    *(("zstd", {"level": 3}, {"level": level}) for level in (100, -(2**40), "x", 2.5)),
    ("zstd", {"level": 3}, {"checksum": "yes"}),
    *(("blosc", BLOSC, {"cname": cname}) for cname in ("gzip", "best", None, MISSING)),
    *(("blosc", BLOSC, {"clevel": level}) for level in (10, -1, "5", MISSING)),
    *(("blosc", BLOSC, {"shuffle": shuffle}) for shuffle in (1, "auto", MISSING)),
    *(("blosc", BLOSC, {"typesize": size}) for size in (0, None, MISSING)),
    *(("blosc", BLOSC, {"blocksize": size}) for size in (-1, "auto")),
    ("n5_lz4", {"block_size": 1024}, {"block_size": 1}),
    ("numcodecs.zlib", {"level": 1}, {"level": "x"}),
    ("numcodecs.zlib", {"level": 1}, {"level": 10}),
    ("numcodecs.bz2", {"level": 1}, {"level": 0}),
    ("numcodecs.lz4", {"acceleration": 1}, {"acceleration": "x"}),
    ("numcodecs.lzma", {"preset": 1}, {"preset": 10}),
    ("numcodecs.lzma", {"preset": 1}, {"check": 2}),
    ("numcodecs.blosc", {}, {"shuffle": 7}),
    ("numcodecs.blosc", {}, {"clevel": 77}),
    ("numcodecs.gzip", {"level": 1}, {"level": 10}),
    ("numcodecs.zstd", {"level": 1}, {"level": 100}),
    (
        "conditional",
        {"codecs": [{"name": "zstd"}]},
        {"codecs": [{"name": "zstd", "configuration": {"level": 99}}]},
    ),
]

ARRAY_BYTES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("numcodecs.pcodec", {"level": 8}, {"level": 99}),
    ("numcodecs.pcodec", {"level": 8}, {"mode_spec": "guess"}),
    (
        "sharding_indexed",
        {"chunk_shape": [2, 3], "codecs": [LITTLE, {"name": "zstd"}], "index_codecs": [LITTLE]},
        {"codecs": [LITTLE, {"name": "zstd", "configuration": {"level": 99}}]},
    ),
]

V2: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": "zlib", "level": 1}, {"level": "x"}),
    ({"id": "zlib", "level": 1}, {"level": -2}),
    ({"id": "gzip", "level": 1}, {"level": -2}),
    ({"id": "zstd", "level": 1}, {"level": 100}),
    ({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}, {"cname": "none"}),
    ({"id": "bz2", "level": 1}, {"level": 10}),
    ({"id": "pcodec", "level": 8}, {"level": 99}),
]


def with_changes(options: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**options, **changes}.items() if value is not MISSING}


def assert_readable_and_not_writable(store: dict[str, bytes], invalid: dict[str, Any]) -> None:
    key = "zarr.json"
    chunks = {name: bytes(value) for name, value in store.items() if name != key}
    array = zarrfs.open_array(store, mode="r+")
    np.testing.assert_array_equal(array[...], DATA)
    with pytest.raises(ChunkEncodeError, match="can be read, but not written"):
        array[...] = DATA + 1
    with pytest.raises(ChunkEncodeError, match="can be read, but not written"):
        array[0, 0] = 1
    assert {name: bytes(value) for name, value in store.items() if name != key} == chunks
    array.resize((5, 6))
    array.attrs["a"] = 1
    configuration = json.loads(store[key])["codecs"][-1]["configuration"]
    for parameter, value in invalid.items():
        if isinstance(value, int | float | str):
            assert configuration[parameter] == value


@pytest.mark.parametrize(("name", "valid", "invalid"), [*V3, *ARRAY_BYTES], ids=str)
def test_v3_arrays_with_invalid_parameters_are_readable_and_not_writable(
    name: str, valid: dict[str, Any], invalid: dict[str, Any]
) -> None:
    def chain(configuration: dict[str, Any]) -> list[Any]:
        codec = {"name": name, "configuration": configuration}
        return [codec] if (name, valid, invalid) in ARRAY_BYTES else [LITTLE, codec]

    store: dict[str, bytes] = {}
    zarrfs.create_array(store, data=DATA, chunks=(4, 6), codecs=chain(valid))
    document = json.loads(store["zarr.json"])
    document["codecs"][-1]["configuration"] = with_changes(valid, invalid)
    store["zarr.json"] = json.dumps(document).encode()
    assert_readable_and_not_writable(store, invalid)
    if MISSING in invalid.values():
        return  # create_array adds missing parameters.
    new: dict[str, bytes] = {}
    with pytest.raises(MetadataError):
        zarrfs.create_array(new, data=DATA, chunks=(4, 6), codecs=chain(with_changes(valid, invalid)))
    assert not new


@pytest.mark.parametrize(("valid", "invalid"), V2, ids=str)
def test_v2_arrays_with_invalid_parameters_are_readable_and_not_writable(
    valid: dict[str, Any], invalid: dict[str, Any]
) -> None:
    store: dict[str, bytes] = {}
    options: dict[str, Any] = {"data": DATA, "chunks": (4, 6), "zarr_format": 2}
    zarrfs.create_array(store, compressors=valid, **options)
    document = json.loads(store[".zarray"])
    document["compressor"] = valid | invalid
    store[".zarray"] = json.dumps(document).encode()
    store.pop(".zattrs", None)
    chunk = store["0.0"]
    array = zarrfs.open_array(store, mode="r+")
    np.testing.assert_array_equal(array[...], DATA)
    with pytest.raises(ChunkEncodeError, match="can be read, but not written"):
        array[...] = DATA + 1
    assert store["0.0"] == chunk
    new: dict[str, bytes] = {}
    with pytest.raises(MetadataError):
        zarrfs.create_array(new, compressors=valid | invalid, **options)
    assert not new


@pytest.mark.parametrize("codec", ["gzip", {"name": "gzip"}, {"name": "zstd"}, {"name": "blosc"}], ids=str)
def test_default_parameters_are_written_to_the_metadata(codec: Any) -> None:
    store: dict[str, bytes] = {}
    zarrfs.create_array(store, data=DATA, compressors=codec)
    written = json.loads(store["zarr.json"])["codecs"][-1]
    assert {"level", "cname"} & set(written["configuration"])


def test_v2_arrays_with_the_default_level_of_zlib_are_writable() -> None:
    for name in ("gzip", "zlib"):
        store: dict[str, bytes] = {}
        zarrfs.create_array(store, data=DATA, zarr_format=2, compressors={"id": name, "level": -1})
        np.testing.assert_array_equal(zarrfs.open_array(store)[...], DATA)


def test_bitround_arrays_with_invalid_keepbits_are_readable() -> None:
    store: dict[str, bytes] = {}
    data = np.arange(4, dtype="<f4")
    zarrfs.create_array(
        store, data=data, codecs=[{"name": "bitround", "configuration": {"keepbits": 23}}, LITTLE]
    )
    document = json.loads(store["zarr.json"])
    document["codecs"][0]["configuration"] = {"keepbits": -1}
    store["zarr.json"] = json.dumps(document).encode()
    array = zarrfs.open_array(store, mode="r+")
    np.testing.assert_array_equal(array[...], data)
    with pytest.raises(ChunkEncodeError, match="keepbits"):
        array[...] = data


@pytest.mark.parametrize("codec_id", ["blosc", "gzip", "zstd"])
def test_the_properties_of_an_array_of_format_2_contain_parameters_that_numcodecs_does_not_have(
    codec_id: str,
) -> None:
    store: dict[str, bytes] = {}
    zarrfs.create_array(store, data=DATA, zarr_format=2, compressors={"id": codec_id})
    document = json.loads(store[".zarray"])
    document["compressor"]["foo"] = "bar"
    store[".zarray"] = json.dumps(document).encode()
    array = zarrfs.open_array(store)
    assert array.compressor == document["compressor"]
    assert array.compressors == (document["compressor"],)
    np.testing.assert_array_equal(array, DATA)


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [({}, "a required parameter is missing$"), ({"dtype": "<u2", "x": 1}, "unknown parameter 'x'$")],
)
def test_invalid_parameters_of_numcodecs_are_described_without_signatures(
    configuration: dict[str, Any], reason: str
) -> None:
    codec = {"name": "vlen-array", "configuration": configuration}
    with pytest.raises(MetadataError, match=reason):
        zarrfs.create_array({}, shape=4, dtype=bytes, codecs=[codec])


@pytest.mark.parametrize("codec", ["blosc", "zlib", "bz2", "lzma", "zstd", "lz4"])
def test_missing_parameters_are_the_defaults_of_numcodecs(codec: str) -> None:
    data = np.random.default_rng(0).integers(0, 300, 100_000).astype("u2")
    store: dict[str, bytes] = {}
    zarrfs.create_array(store, data=data, chunks=data.shape, zarr_format=2, compressor={"id": codec})
    assert store["0"] == numcodecs.get_codec({"id": codec}).encode(data)
