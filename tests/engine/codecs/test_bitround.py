"""bitround, compared with numcodecs for floats and with exact arithmetic for integers."""

from __future__ import annotations

import ml_dtypes
import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import zarrfs
from zarrfs.engine.codecs.array_to_array.bitround import BitroundCodec, round_floats, round_integers
from zarrfs.errors import MetadataError

MANTISSA = {"float16": 10, "float32": 23, "float64": 52}


@given(data=st.data())
def test_floats_are_rounded_as_by_numcodecs(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(MANTISSA)))
    keepbits = data.draw(st.integers(0, MANTISSA[name]))
    largest = float(np.finfo(name).max) / 2
    width = np.dtype(name).itemsize * 8
    array = data.draw(nps.arrays(name, 5, elements=st.floats(-largest, largest, width=width)))
    expected = numcodecs.BitRound(keepbits).encode(array.copy()).view(array.dtype)
    bits = array.view(f"u{array.itemsize}")
    assert round_floats(bits, MANTISSA[name], keepbits).view(name).tobytes() == expected.tobytes()


@given(data=st.data())
def test_integers_are_rounded_to_the_leading_bits_of_their_magnitude(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"]))
    keepbits = data.draw(st.integers(1, 64))
    info = np.iinfo(name)
    value = data.draw(st.integers(int(info.min), int(info.max)))
    bits = np.array([value], name).view(f"u{info.bits // 8}")
    rounded = int(round_integers(bits, name.startswith("int"), keepbits).view(name)[0])
    dropped = max(0, abs(value).bit_length() - keepbits)
    whole, rest = divmod(abs(value), 1 << dropped)
    half = (1 << dropped) // 2
    up = bool(dropped) and (rest > half or (rest == half and whole % 2 == 1))
    choices = [(whole + up) << dropped, whole << dropped]
    signed = [-choice if value < 0 else choice for choice in choices]
    assert rounded == next(choice for choice in signed if info.min <= choice <= info.max)


def test_nan_and_infinity_are_unchanged_and_finite_numbers_stay_finite() -> None:
    largest = np.finfo("f4").max
    array = np.array([np.nan, np.inf, -np.inf, largest, -largest, -0.0], "f4")
    array.view("u4")[0] = 0x7FFFFFFF
    rounded = round_floats(array.view("u4"), 23, 2).view("f4")
    assert rounded.view("u4")[0] == 0x7FFFFFFF
    assert rounded[1:3].tolist() == [np.inf, -np.inf]
    assert np.isfinite(rounded[3:]).all()
    assert np.signbit(rounded[5])


@pytest.mark.parametrize("dtype", ["f2", ">f8", "c8", "c16", "i2", "u8", "M8[s]", ml_dtypes.bfloat16])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rounding_an_array_twice_is_equal_to_rounding_it_once(dtype: object, zarr_format: int) -> None:
    if zarr_format == 2 and dtype is ml_dtypes.bfloat16:
        dtype = "f4"
    data = np.arange(1000, 1024, dtype="i4").reshape(4, 6).astype(dtype)
    store: dict[str, bytes] = {}
    options = {"id": "bitround", "keepbits": 4} if zarr_format == 2 else BitroundCodec(4)
    zarrfs.create_array(store, data=data, chunks=(2, 6), filters=[options], zarr_format=zarr_format)
    rounded = zarrfs.open_array(store, cache_size=0)[...]
    assert not np.array_equal(rounded, data)
    again: dict[str, bytes] = {}
    zarrfs.create_array(again, data=rounded, chunks=(2, 6), filters=[options], zarr_format=zarr_format)
    assert np.array_equal(zarrfs.open_array(again, cache_size=0)[...], rounded)


@pytest.mark.parametrize("dtype", ["bool", "S4", "U2", "V3"])
def test_data_types_that_cannot_be_rounded_are_rejected(dtype: str) -> None:
    with pytest.raises(MetadataError, match="bitround"):
        zarrfs.create_array({}, shape=(4,), dtype=dtype, filters=[BitroundCodec(3)])
