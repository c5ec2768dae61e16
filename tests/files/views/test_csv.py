"""Tables, read with pandas, the csv module and NumPy."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrfs
from tests.files.views.presented import make_array, present, refused, sample, write_file
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.tables.columns import Column, columns_of
from zarrfs.testing import CountingStore

NUMBERS = ("|b1", "|i1", "|u1", ">i2", "<u4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8")


def read(path: Path, **options: Any) -> pd.DataFrame:
    table = pd.read_csv(path, **options)
    assert table["index"].tolist() == list(range(len(table)))
    assert len({len(line) for line in path.read_bytes().split(b"\n")[1:-1]}) <= 1
    return table.drop(columns="index")


@pytest.mark.parametrize("dtype", NUMBERS)
def test_pandas_reads_columns_of_numbers(dtype: str, tmp_path: Path) -> None:
    data = sample(dtype, (1234,))
    values = read(write_file(make_array(data), ".csv", tmp_path))["img"].to_numpy()
    assert values.dtype.kind == data.dtype.kind or data.dtype.kind == "u"
    assert np.array_equal(values.astype(data.dtype), data)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_rows_of_a_plane_are_rows(dtype: str, tmp_path: Path) -> None:
    data = sample(dtype, (20, 7))
    path = write_file(make_array(data, order="F"), ".csv", tmp_path)
    table = read(path)
    assert list(table.columns) == list("0123456")
    assert np.array_equal(table.to_numpy().astype(data.dtype), data)
    if data.dtype.kind == "f":
        loaded = np.loadtxt(path, delimiter=",", skiprows=1)
        assert np.array_equal(loaded[:, 1:].astype(data.dtype), data)


def test_structured_elements(tmp_path: Path) -> None:
    dtype = np.dtype(
        [
            *(("id", ">i4"), ("name", "S8"), ("größe", "<f4"), ("ok", "?"), ("at", "<M8[ms]")),
            *(("pos", "<f8", (2,)), ("nested", [("u", "<U5"), ("z", "<c8")]), ("raw", "V2"), ("index", "u1")),
        ]
    )
    data = np.zeros(3, dtype)
    data["id"] = -1, 2, 2**31 - 1
    data["name"] = b"a,b", b'say "x"', b""
    data["größe"] = 0.1, -1e-30, 3e38
    data["ok"] = True, False, True
    data["at"] = "2020-01-02T03:04:05.678", "NaT", "1969-01-01"
    data["pos"] = [[0.1, 2], [3, 4], [5, -np.inf]]
    data["nested"]["u"] = "äöü", " x ", "l\nm"
    data["nested"]["z"] = 1 + 2j, 0, -0.5j
    data["raw"] = b"\x01\xff"
    path = write_file(make_array(data), ".csv", tmp_path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = [*csv.reader(file)]
    assert rows[0] == [
        *("index_", "id", "name", "größe", "ok", "at", "pos.0", "pos.1", "nested.u"),
        *("nested.z.real", "nested.z.imag", "raw", "index"),
    ]
    assert [row[0].strip() for row in rows[1:]] == ["0", "1", "2"]
    columns = list(zip(*rows[1:], strict=True))
    assert columns[1] == ("-1", "2", "2147483647")
    assert columns[2] == ("a,b", 'say "x"', "")
    assert columns[3] == ("0.1", "-1e-30", "3e+38")
    assert columns[4] == ("True", "False", "True")
    assert columns[5] == ("2020-01-02T03:04:05.678", "", "1969-01-01T00:00:00.000")
    assert columns[7] == ("2.0", "4.0", "-inf")
    assert columns[8] == ("äöü", " x ", "l\nm")
    assert columns[10] == ("2.0", "0.0", "-0.5")
    assert columns[11] == ("01ff",) * 3
    table = pd.read_csv(path, parse_dates=["at"])
    assert np.array_equal(table["at"].to_numpy(), data["at"], equal_nan=True)


def test_missing_and_infinite_numbers(tmp_path: Path) -> None:
    data = np.array([np.nan, np.inf, -np.inf, -0.0])
    values = read(write_file(make_array(data), ".csv", tmp_path))["img"].to_numpy()
    assert values.dtype == np.float64
    assert np.array_equal(values, data, equal_nan=True)


def test_empty_tables_and_scalars(tmp_path: Path) -> None:
    assert write_file(make_array(np.zeros(0)), ".csv", tmp_path).read_text() == "index,img\n"
    assert read(write_file(make_array(np.array(2.5)), ".csv", tmp_path))["img"].tolist() == [2.5]


def test_types_of_machine_learning(tmp_path: Path) -> None:
    data = np.array([1.5, -3e38, 1e-30], ml_dtypes.bfloat16)
    array = zarrfs.create_array(MemoryStore(), "img", shape=3, chunks=2, dtype="bfloat16")
    array[...] = data
    values = read(write_file(array, ".csv", tmp_path))["img"].to_numpy()
    assert np.array_equal(values.astype(ml_dtypes.bfloat16), data)


def column(dtype: Any) -> Column:
    (found,) = columns_of(np.dtype(dtype), "a", lambda rows: rows)
    assert isinstance(found, Column)
    return found


def test_every_16_bit_float_fits_and_is_read_back() -> None:
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    texts = column("<f2").texts(numbers)
    assert max(map(len, texts)) <= column("<f2").width
    assert np.array_equal(np.array(texts, float).astype(np.float16), numbers, equal_nan=True)


@given(
    st.data(),
    st.sampled_from(
        ["<f4", ">f4", "<f8", "<i8", ">u8", "<M8[ns]", "<M8[M]", ">M8[25s]", "<m8[D]", "<M8[as]"]
    ),
)
def test_values_fit(data: st.DataObject, dtype: str) -> None:
    raw = data.draw(st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=20))
    numbers = np.frombuffer(b"".join(raw), dtype)
    texts = column(dtype).texts(numbers)
    assert all(len(text) <= column(dtype).width for text in texts)
    if numbers.dtype.kind == "f":
        loaded = np.array(texts, np.float64).astype(dtype)
        assert np.array_equal(loaded, numbers, equal_nan=True)
    if numbers.dtype.kind == "m":
        assert texts == ["" if np.isnat(number) else str(number.astype("i8")) for number in numbers]


@given(hnp.arrays(np.dtype("S6"), st.integers(1, 5)), hnp.arrays(np.dtype("U4"), st.integers(1, 5)))
def test_texts_fit_and_are_read_back(raw: np.ndarray[Any, Any], text: np.ndarray[Any, Any]) -> None:
    for data in (raw, text):
        content = present(make_array(data), ".csv")
        encoded = content.read(0, content.size)
        assert len(encoded) == content.size
        rows = [*csv.reader(io.StringIO(encoded.decode("utf-8"), newline=""))]
        expected = [
            (value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value)
            .encode("utf-8", "backslashreplace")
            .decode()
            for value in data.tolist()
        ]
        assert [row[1] for row in rows[1:]] == expected


def test_surrogates_are_escaped() -> None:
    content = present(make_array(np.array(["\ud800" * 3])), ".csv")
    assert content.read(0, content.size).split(b",")[-1] == b"\\ud800" * 3 + b"\n"


def test_any_ranges() -> None:
    data = sample("<i4", (50,))
    content = present(make_array(data), ".csv")
    whole = content.read(0, content.size)
    for size in (1, 7, 100):
        parts = [content.read(offset, size) for offset in range(0, content.size, size)]
        assert b"".join(parts) == whole


def test_a_part_of_a_table_decodes_only_its_chunks() -> None:
    store = CountingStore(MemoryStore())
    array = zarrfs.create_array(
        store, "img", shape=10**9, chunks=10**6, dtype="i4", fill_value=5, zarr_format=2
    )
    content = present(array, ".csv")
    store.reset()
    assert content.read(content.size - 3, 3) == b",5\n"
    assert set(store.keys) == {"img/999"}


def test_absent_tables() -> None:
    assert "cannot present the shape" in refused(make_array(np.zeros((2, 3, 4))), ".csv")
    assert "cannot present the shape" in refused(make_array(np.zeros((2, 3), [("a", "i4")])), ".csv")
    assert "columns" in refused(make_array(np.zeros((1, 20_000), "u1")), ".csv")
    assert "columns" in refused(make_array(np.zeros((3, 0), "u1")), ".csv")
    assert "columns" in refused(make_array(np.zeros(1, [("a", "u1", (200, 100))])), ".csv")
    assert "a line of" in refused(make_array(np.zeros(1, "S300000")), ".csv")
    words = zarrfs.create_array(MemoryStore(), "img", data=np.array(["a"], object), dtype="string")
    assert "vary in length" in refused(words, ".csv")
