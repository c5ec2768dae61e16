"""zfp, numcodecs.zfpy and numcodecs.pcodec: comparison with the package zfpy, and invalid streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs
import zfpy

import zarrfs
from tests.interop.zarr_python import quietly
from zarrfs.engine.codecs.array_to_bytes import zfp_stream
from zarrfs.engine.codecs.array_to_bytes.zfp import ZfpCodec
from zarrfs.engine.codecs.base import ChunkSpec, CodecError
from zarrfs.engine.codecs.numcodecs.numbers import NumcodecsPcodecCodec, NumcodecsZfpyCodec
from zarrfs.engine.codecs.registry import codec_from_json
from zarrfs.errors import ChunkEncodeError, MetadataError, UnsupportedError

DATA = np.random.default_rng(0).standard_normal((3, 4, 5)).cumsum(axis=2)
SPEC = ChunkSpec(DATA.shape, DATA.dtype, 0.0)

MODES: list[tuple[str, dict[str, Any]]] = [
    ("reversible", {}),
    ("fixed_accuracy", {"tolerance": 0.1}),
    ("fixed_rate", {"rate": 10.5}),
    ("fixed_precision", {"precision": 12}),
]


@pytest.mark.parametrize(("mode", "parameters"), MODES, ids=str)
def test_an_encoded_chunk_is_a_zfp_stream_without_header(mode: str, parameters: dict[str, Any]) -> None:
    codec = ZfpCodec(mode, parameters)
    encoded = bytes(codec.encode(DATA, SPEC))
    assert encoded == zfpy.compress_numpy(DATA, write_header=False, **parameters)
    headed = zfpy.compress_numpy(DATA, write_header=True, **parameters)
    assert np.array_equal(codec.decode(encoded, SPEC), zfpy.decompress_numpy(headed))


@pytest.mark.parametrize(("mode", "parameters"), MODES, ids=str)
def test_expert_mode_decodes_streams_of_all_modes(mode: str, parameters: dict[str, Any]) -> None:
    encoded = ZfpCodec(mode, parameters).encode(DATA, SPEC)
    header = zfpy.header(zfpy.compress_numpy(DATA, write_header=True, **parameters))
    expert = ZfpCodec("expert", header["config"]["expert"])
    assert np.array_equal(expert.decode(encoded, SPEC), ZfpCodec(mode, parameters).decode(encoded, SPEC))
    with pytest.raises(CodecError, match="expert mode can be read, not written"):
        expert.encode(DATA, SPEC)


@pytest.mark.parametrize(("mode", "parameters"), MODES, ids=str)
def test_truncated_and_oversized_streams_are_rejected(mode: str, parameters: dict[str, Any]) -> None:
    codec = ZfpCodec(mode, parameters)
    with_header = NumcodecsZfpyCodec({"mode": 4, "tolerance": 0.1})
    for tested in (codec, with_header):
        encoded = bytes(tested.encode(DATA, SPEC))
        for length in range(0, len(encoded) - 16, 8):
            with pytest.raises(CodecError):
                tested.decode(encoded[:length], SPEC)
        with pytest.raises(CodecError):
            tested.decode(encoded + bytes(10_000), SPEC)


def test_a_header_with_another_shape_or_dtype_is_rejected() -> None:
    codec = NumcodecsZfpyCodec({"mode": 4, "tolerance": 0.1})
    for other in (np.zeros((1000, 1000)), DATA.astype("f4"), DATA[1:]):
        with pytest.raises(CodecError, match="expected 60 elements of float64"):
            codec.decode(zfpy.compress_numpy(np.ascontiguousarray(other), tolerance=0.1), SPEC)
    with pytest.raises(CodecError, match="header"):
        codec.decode(b"not a zfp stream", SPEC)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("i1", -128, 127), ("u1", 0, 255), ("i2", -(2**15), 2**15 - 1), ("u2", 0, 2**16 - 1)],
)
def test_small_integers_are_promoted_as_by_zfp(dtype: str, low: int, high: int) -> None:
    values = np.linspace(low, high, 64).astype(dtype).reshape(8, 8)
    spec = ChunkSpec(values.shape, values.dtype, 0)
    codec = ZfpCodec("reversible", {})
    encoded = codec.encode(values, spec)
    bits = values.itemsize * 8
    offset = 1 << (bits - 1) if dtype[0] == "u" else 0
    stored = ((values.astype("i8") - offset) << (31 - bits)).astype("i4")
    assert bytes(encoded) == zfpy.compress_numpy(stored, write_header=False)
    assert np.array_equal(codec.decode(encoded, spec), values)


def create(codec: dict[str, Any], data: np.ndarray) -> None:
    zarrfs.create_array({}, data=data, chunks=data.shape, serializer=codec)


def test_values_and_parameters_that_zfp_does_not_support_are_rejected() -> None:
    zfp = {"name": "zfp", "configuration": {"mode": "fixed_precision", "precision": 10}}
    with pytest.raises(ChunkEncodeError, match="too large"):
        create(zfp, np.array([2**30], "i4"))
    with pytest.raises(ChunkEncodeError, match="unsigned integers below"):
        create(zfp, np.array([2**31], "u4"))
    accuracy = {"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 1}}
    with pytest.raises(ChunkEncodeError, match="for floats"):
        create(accuracy, np.array([1], "i4"))
    with pytest.raises(ChunkEncodeError, match=r"rate 0\.1 is out of range"):
        create({"name": "zfp", "configuration": {"mode": "fixed_rate", "rate": 0.1}}, np.ones(4))
    with pytest.raises(ChunkEncodeError, match="nan is not a finite number"):
        create(zfp, np.array([1.0, np.nan]))
    create({"name": "zfp", "configuration": {"mode": "reversible"}}, np.array([np.inf, np.nan, 1]))
    with pytest.raises(MetadataError, match="four dimensions"):
        create(zfp, np.zeros((1, 1, 1, 1, 1)))
    with pytest.raises(MetadataError, match="integers and floats"):
        create(zfp, np.zeros(4, "S3"))


def test_an_array_without_dimensions_round_trips() -> None:
    store: dict[str, bytes] = {}
    codec = {"name": "zfp", "configuration": {"mode": "reversible"}}
    zarrfs.create_array(store, data=np.float32(1.25), serializer=codec)
    assert zarrfs.open_array(store)[()] == 1.25


def test_pcodec_streams_of_another_length_are_rejected() -> None:
    codec = NumcodecsPcodecCodec({})
    spec = ChunkSpec((100,), np.dtype("i4"), 0)
    for count in (99, 101, 5000):
        other = ChunkSpec((count,), spec.dtype, 0)
        with pytest.raises(CodecError, match="expected 100"):
            codec.decode(codec.encode(np.arange(count, dtype="i4"), other), spec)


@pytest.mark.parametrize(
    "codec", [{"id": "zfpy", "mode": 2, "rate": 64}, {"id": "pcodec", "level": 3}], ids=str
)
@pytest.mark.parametrize("place", ["filter", "compressor"])
def test_codecs_of_numbers_are_filters_or_compressors_in_v2(codec: dict[str, Any], place: str) -> None:
    store: dict[str, bytes] = {}
    options = {"compressors": codec} if place == "compressor" else {"filters": [codec], "compressors": "zlib"}
    data = np.arange(30, dtype="f8").reshape(5, 6)
    array = zarrfs.create_array(store, data=data, chunks=(5, 3), zarr_format=2, **options)
    document = array.spec.document
    if place == "compressor":
        assert document["compressor"]["id"] == codec["id"]
        assert document["filters"] is None
    else:
        assert document["filters"][0]["id"] == codec["id"]
        assert document["compressor"]["id"] == "zlib"
    assert np.array_equal(zarrfs.open_array(store, cache_size=0)[...], data)


ZFPY = [{"mode": 2, "rate": 20.5}, {"mode": 3, "precision": 30}, {"mode": 4, "tolerance": 0.01}]


@pytest.mark.parametrize("options", ZFPY, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zfpy_arrays_are_exchanged_with_zarr_python(
    tmp_path: Path, options: dict[str, Any], dtype: str, zarr_format: int
) -> None:
    data = DATA.astype(dtype)
    common: dict[str, Any] = {"shape": data.shape, "chunks": (2, 4, 3), "zarr_format": zarr_format}
    if zarr_format == 2:
        theirs: dict[str, Any] = {"compressors": numcodecs.get_codec({"id": "zfpy", **options})}
        ours: dict[str, Any] = {"compressors": {"id": "zfpy", **options}}
    else:
        with quietly():
            theirs = {"serializer": zarr.codecs.ZFPY(**options)}
        ours = {"serializer": {"name": "numcodecs.zfpy", "configuration": options}}
    with quietly():
        array = zarr.create_array(tmp_path / "theirs", dtype=dtype, **common, **theirs)
        array[...] = data
        expected = np.asarray(array[...])
    assert np.array_equal(zarrfs.open_array(tmp_path / "theirs")[...], expected)
    zarrfs.create_array(tmp_path / "ours", data=data, chunks=(2, 4, 3), zarr_format=zarr_format, **ours)
    with quietly():
        assert np.array_equal(np.asarray(zarr.open_array(tmp_path / "ours", mode="r")[...]), expected)


@pytest.mark.parametrize("name", ["zfp", "numcodecs.zfpy"])
def test_the_error_without_zfpy_contains_the_install_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zfpy", None)
    with pytest.raises(UnsupportedError, match=r"pip install '.*zfpy"):
        codec_from_json({"name": name, "configuration": {"mode": "reversible"}}, "here")
    with pytest.raises(UnsupportedError, match="zfpy"):
        zfp_stream.zfpy()


def test_the_error_without_pcodec_contains_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import numcodecs.registry

    monkeypatch.delitem(numcodecs.registry.codec_registry, "pcodec")
    monkeypatch.delitem(numcodecs.registry.entries, "pcodec", raising=False)
    with pytest.raises(UnsupportedError, match=r"pip install 'pcodec"):
        codec_from_json({"name": "numcodecs.pcodec"}, "here")
