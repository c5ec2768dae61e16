"""cast_value, scale_offset and reshape, compared with another implementation and with exact arithmetic."""

from __future__ import annotations

from typing import Any

import cast_value
import ml_dtypes
import numpy as np
import pytest
import zarr
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import zarrfs
from tests.documents import LITTLE
from zarrfs.engine.codecs.array_to_array.casting import OUT_OF_RANGE, ROUNDING, cast_array
from zarrfs.engine.codecs.base import CodecError
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkEncodeError, MetadataError, ZarrError

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float32", "float64"]


def assert_casts_agree(array: np.ndarray, target: str, rounding: str, out_of_range: str | None) -> None:
    """Compare ``cast_array`` with the package cast_value: equal results, or an error of both."""
    dtype = np.dtype(target)
    try:
        expected: Any = cast_value.cast_array(
            array, target_dtype=dtype, rounding_mode=rounding, out_of_range_mode=out_of_range
        )
    except (ValueError, OverflowError, FloatingPointError):
        expected = None
    try:
        result: Any = cast_array(array, dtype, rounding, out_of_range)
    except CodecError:
        result = None
    assert (result is None) == (expected is None), (result, expected)
    if result is not None:
        assert result.dtype == dtype
        assert np.array_equal(result, expected, equal_nan=dtype.kind == "f")


@pytest.mark.parametrize("target", INTEGERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_casts_to_integers_agree_with_the_package_cast_value(target: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([*INTEGERS, *FLOATS]))
    # Beyond 2**53 cast_value rounds intermediate results. test_large_integers_are_cast_exactly covers that range.
    bound = 2.0**50
    elements = st.floats(-bound, bound, width=32 if source == "float32" else 64) if source in FLOATS else None
    array = data.draw(nps.arrays(source, 4, elements=elements))
    # cast_value wraps neither to uint64 nor from uint64 to int64. test_large_integers_are_cast_exactly covers both.
    wraps = target != "uint64" and (source, target) != ("uint64", "int64")
    modes = [None, *OUT_OF_RANGE] if wraps else [None, "clamp"]
    assert_casts_agree(array, target, data.draw(st.sampled_from(ROUNDING)), data.draw(st.sampled_from(modes)))


@settings(max_examples=60, deadline=None)
@given(array=nps.arrays("float64", 4, elements=st.floats(-1e30, 1e30)), rounding=st.sampled_from(ROUNDING))
def test_casts_to_float32_follow_the_rounding_mode(array: np.ndarray, rounding: str) -> None:
    result = cast_array(array, np.dtype("f4"), rounding, None).astype("f8")
    above = np.nextafter(result.astype("f4"), np.float32(np.inf)).astype("f8")
    below = np.nextafter(result.astype("f4"), np.float32(-np.inf)).astype("f8")
    assert ((below < array) & (array < above)).all()
    if rounding == "towards-zero":
        assert (np.abs(result) <= np.abs(array)).all()
    elif rounding == "towards-positive":
        assert (result >= array).all()
    elif rounding == "towards-negative":
        assert (result <= array).all()
    else:
        assert (np.abs(result - array) <= np.minimum(np.abs(above - array), np.abs(below - array))).all()


@settings(max_examples=100, deadline=None)
@given(
    array=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5).map(lambda v: np.array(v, "i8"))
    | st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5).map(lambda v: np.array(v, "u8"))
    | st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5).map(lambda v: np.array(v, "f8")),
    target=st.sampled_from(INTEGERS),
)
@example(array=np.array([2**63, 2**64 - 1], "u8"), target="int64")
@example(array=np.array([-1, -(2**63)], "i8"), target="uint64")
def test_large_integers_are_cast_exactly(array: np.ndarray, target: str) -> None:
    info = np.iinfo(target)
    values = [int(value) for value in array.tolist()]
    clamped = cast_array(array, np.dtype(target), "nearest-even", "clamp")
    assert clamped.tolist() == [min(max(value, int(info.min)), int(info.max)) for value in values]
    wrapped = cast_array(array, np.dtype(target), "nearest-even", "wrap")
    size = 1 << info.bits
    assert [int(value) % size for value in wrapped] == [value % size for value in values]


def test_ties_infinities_and_nan_are_cast_to_integers_as_specified() -> None:
    array = np.array([0.5, 1.5, -0.5, -1.5, 2.49999, 0.49999999999999994])
    expected = {
        "nearest-even": [0, 2, 0, -2, 2, 0],
        "nearest-away": [1, 2, -1, -2, 2, 0],
        "towards-zero": [0, 1, 0, -1, 2, 0],
        "towards-positive": [1, 2, 0, -1, 3, 1],
        "towards-negative": [0, 1, -1, -2, 2, 0],
    }
    for rounding, whole in expected.items():
        assert cast_array(array, np.dtype("i2"), rounding, None).tolist() == whole
    extremes = np.array([np.inf, -np.inf, 1e300])
    assert cast_array(extremes, np.dtype("i4"), "nearest-even", "clamp").tolist() == [
        2**31 - 1,
        -(2**31),
        2**31 - 1,
    ]
    for out_of_range in (None, "wrap"):
        with pytest.raises(CodecError, match="inf"):
            cast_array(extremes[:1], np.dtype("u1"), "nearest-even", out_of_range)
    with pytest.raises(CodecError, match="scalar_map"):
        cast_array(np.array([np.nan]), np.dtype("u1"), "nearest-even", "clamp")


CAST = {
    "name": "cast_value",
    "configuration": {
        "data_type": "uint8",
        "rounding": "nearest-even",
        "out_of_range": "clamp",
        "scalar_map": {"encode": [["NaN", 255]], "decode": [[255, "NaN"]]},
    },
}


def test_cast_value_arrays_are_exchanged_with_zarr_python(tmp_path: Any) -> None:
    data = np.array([[0.4, 17.5, np.nan], [254.2, 300.0, -4.0]])
    codecs = [CAST, "bytes"]
    ours = zarrfs.create_array(tmp_path / "o", data=data, chunks=(1, 3), codecs=codecs, fill_value=0.0)
    expected = np.array([[0, 18, np.nan], [254, np.nan, 0]])
    assert np.array_equal(ours[...], expected, equal_nan=True)
    codec = cast_value.CastValueNumpyV1
    zarr.registry.register_codec("cast_value", codec)
    # zarr-python 3.4 has an implementation of its own.
    with zarr.config.set({"codecs.cast_value": f"{codec.__module__}.{codec.__qualname__}"}):
        theirs = zarr.open_array(tmp_path / "o", mode="r")
        assert np.array_equal(np.asarray(theirs[...]), expected, equal_nan=True)
        created = zarr.create_array(
            tmp_path / "t",
            data=data,
            chunks=(1, 3),
            filters=[codec(**CAST["configuration"])],  # type: ignore[arg-type]
            compressors=None,
        )
    assert created.shape == data.shape
    opened = zarrfs.open_array(tmp_path / "t")
    assert np.array_equal(opened[...], expected, equal_nan=True)
    assert np.array_equal(opened[1, 0:2], expected[1, 0:2], equal_nan=True)


@pytest.mark.parametrize("dtype", ["i4", "u2", "f8"])
def test_scale_offset_stores_the_scaled_values(dtype: str) -> None:
    data = np.arange(100, 130, dtype=dtype).reshape(5, 6)
    codec = {"name": "scale_offset", "configuration": {"offset": 100, "scale": 10}}
    store = MemoryStore()
    array = zarrfs.create_array(
        store,
        data=data,
        chunks=(5, 6),
        codecs=[codec, LITTLE],
        fill_value=100,
    )
    assert np.array_equal(array[...], data)
    stored = np.frombuffer(store.get("c/0/0") or b"", dtype)
    assert np.array_equal(stored, (data.reshape(-1) - 100) * 10)


def test_scaled_integers_out_of_range_are_rejected() -> None:
    codec = {"name": "scale_offset", "configuration": {"scale": 10}}
    array = zarrfs.create_array(MemoryStore(), shape=(4,), dtype="u1", chunks=(4,), codecs=[codec, "bytes"])
    array[:] = [0, 1, 25, 3]
    with pytest.raises(ChunkEncodeError, match="out of the range"):
        array[0] = 26
    assert array[...].tolist() == [0, 1, 25, 3]
    array.store.set("c/0", bytes([10, 11, 0, 0]))
    with pytest.raises(ZarrError, match="not a multiple"):
        zarrfs.open_array(array.store, cache_size=0)[...]
    with pytest.raises(MetadataError, match="scale of 0"):
        zarrfs.create_array(
            MemoryStore(),
            shape=(4,),
            dtype="u1",
            codecs=[{"name": "scale_offset", "configuration": {"scale": 0}}, "bytes"],
        )


@pytest.mark.parametrize("rounding", ROUNDING)
@pytest.mark.parametrize(
    "name",
    ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float6_e3m2fn", "float4_e2m1fn"],
)
def test_small_floats_are_rounded_once(name: str, rounding: str) -> None:
    """Cast all numbers of the data type, the midpoints between them, and the float64 neighbours of the midpoints."""
    target = np.dtype(getattr(ml_dtypes, name))
    patterns = np.arange(1 << ml_dtypes.finfo(target).bits).astype(f"u{target.itemsize}").view(target)
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs.
        numbers = np.unique(patterns[np.isfinite(patterns)].astype("f8"))
    midpoints = (numbers[1:] + numbers[:-1]) / 2
    neighbours = [np.nextafter(midpoints, np.inf), np.nextafter(midpoints, -np.inf)]
    values = np.concatenate([numbers, midpoints, *neighbours])
    result = cast_array(values, target, rounding, None)
    below = numbers[np.searchsorted(numbers, values, "right") - 1]
    above = numbers[np.searchsorted(numbers, values, "left")]
    inner, outer = np.where(values < 0, above, below), np.where(values < 0, below, above)
    tie = np.isin(values, midpoints)
    nearest = np.where(values - below < above - values, below, above)
    expected = {
        "towards-zero": inner,
        "towards-positive": above,
        "towards-negative": below,
        "nearest-away": np.where(tie, outer, nearest),
        "nearest-even": np.where(tie, result.astype("f8"), nearest),
    }[rounding]
    assert np.array_equal(result.astype("f8"), expected)
    if rounding == "nearest-even":
        assert not (result[tie].view(f"u{target.itemsize}") & 1).any()


@pytest.mark.parametrize(
    ("name", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15), ("int2", -2, 1), ("uint2", 0, 3)]
)
def test_casts_to_small_integers_clamp_wrap_or_fail(name: str, low: int, high: int) -> None:
    target = np.dtype(getattr(ml_dtypes, name))
    values = np.arange(-20, 21)
    for array in (values, values.astype("f4")):
        clamped = cast_array(array, target, "nearest-even", "clamp")
        assert clamped.astype(int).tolist() == np.clip(values, low, high).tolist()
        wrapped = cast_array(array, target, "nearest-even", "wrap").astype(int)
        assert ((wrapped - values) % (high - low + 1) == 0).all()
        assert wrapped.min() == low
        assert wrapped.max() == high
        with pytest.raises(CodecError, match="out of range"):
            cast_array(array, target, "nearest-even", None)
    back = cast_array(clamped, np.dtype("f8"), "nearest-even", None)
    assert back.tolist() == np.clip(values, low, high).tolist()


def test_values_that_small_floats_do_not_have_are_rejected_or_clamped() -> None:
    four = np.dtype(ml_dtypes.float4_e2m1fn)
    with pytest.raises(CodecError, match="scalar_map"):
        cast_array(np.array([np.nan]), four, "nearest-even", "clamp")
    for value in (np.inf, 9.0):
        with pytest.raises(CodecError, match="out of range"):
            cast_array(np.array([value]), four, "nearest-even", None)
        assert float(cast_array(np.array([value]), four, "nearest-even", "clamp")[0]) == 6.0
    assert float(cast_array(np.array([6.9]), four, "nearest-even", None)[0]) == 6.0
    half = np.dtype(ml_dtypes.bfloat16)
    assert np.isinf(cast_array(np.array([np.inf]), half, "nearest-even", None)[0])
    with pytest.raises(MetadataError, match="supports integers and floats"):
        zarrfs.create_array(
            {},
            shape=(4,),
            dtype="f4",
            filters=[{"name": "cast_value", "configuration": {"data_type": "float8_e8m0fnu"}}],
        )


def test_floats_are_stored_as_packed_small_integers() -> None:
    store: dict[str, bytes] = {}
    cast = {"name": "cast_value", "configuration": {"data_type": "int4", "out_of_range": "error"}}
    data = np.arange(-8, 8, dtype="f8")
    zarrfs.create_array(
        store, data=data, chunks=(16,), filters=[cast], serializer="packbits", compressors=None
    )
    assert len(store["c/0"]) == 8
    assert np.array_equal(zarrfs.open_array(store, cache_size=0)[...], data)


def test_a_reshape_that_does_not_fit_the_chunk_is_rejected() -> None:
    for shape in ([7, -1], [[0, 5]], [3, 3], [2, [1], 2], [[1], -1], [3, [0], 2]):
        with pytest.raises(MetadataError, match="reshape"):
            zarrfs.create_array(
                MemoryStore(),
                shape=(4, 6),
                chunks=(4, 6),
                dtype="u1",
                codecs=[{"name": "reshape", "configuration": {"shape": shape}}, "bytes"],
            )


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    rounding=st.sampled_from(ROUNDING),
)
@example(values=[2**53 + 2**29 + 1, -(2**53) - 2**29 - 1], rounding="towards-zero")
def test_casts_of_integers_to_float64_follow_the_rounding_mode(values: list[int], rounding: str) -> None:
    result = cast_array(np.array(values, "i8"), np.dtype("f8"), rounding, None)
    for value, found in zip(values, result.tolist(), strict=True):
        nearest = float(value)
        up = nearest if nearest >= value else np.nextafter(nearest, np.inf)
        down = nearest if nearest <= value else np.nextafter(nearest, -np.inf)
        if rounding == "towards-positive":
            assert found == up
        elif rounding == "towards-negative":
            assert found == down
        elif rounding == "towards-zero":
            assert found == (down if value > 0 else up)
        else:
            assert abs(int(found) - value) == min(int(up) - value, value - int(down))


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16"])
def test_floats_are_encoded_as_integers_that_wrap(source: str, target: str) -> None:
    """The specification restricts the target of wrapping, not the data type of the array."""
    codec = {"name": "cast_value", "configuration": {"data_type": target, "out_of_range": "wrap"}}
    values = np.array([1, 300, -3, 40000.0], source)
    array = zarrfs.create_array({}, data=values, chunks=4, codecs=[codec, "bytes"])
    stored = values.astype(np.int64).astype(target)
    np.testing.assert_array_equal(array, stored.astype(source))
    with pytest.raises(ChunkEncodeError, match="cannot be wrapped"):
        array[0] = np.inf


def test_decoding_does_not_wrap_to_floats() -> None:
    codec = {"name": "cast_value", "configuration": {"data_type": "int32", "out_of_range": "wrap"}}
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    store: dict[str, bytes] = {}
    array = zarrfs.create_array(store, data=np.ones(2, "f2"), chunks=2, codecs=[codec, little])
    store["c/0"] = np.array([1, 100_000], "<i4").tobytes()
    with pytest.raises(zarrfs.ChunkDecodeError, match="100000 is out of range"):
        zarrfs.open_array(store, cache_size=0)[...]
    assert array.dtype == "f2"
