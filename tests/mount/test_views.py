"""The contract suite of all views: exact sizes, reads of arbitrary ranges, and files that NumPy can load."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.npy.view import npy_header
from zarrfs.files.views import PresentedArray, all_views

DTYPES = [
    *(
        "|b1",
        "|i1",
        "<u2",
        ">u2",
        "<i4",
        "<f2",
        ">f8",
        "<c8",
        "<c16",
        "<M8[ns]",
        "<m8[D]",
        "|S5",
        "<U3",
        "|V7",
    ),
    [("x", "<i4"), ("y", ">f8", (2, 3)), ("größe", "<u2")],
]
SHAPES: list[tuple[int, ...]] = [(), (0,), (7,), (3, 0, 2), (5, 6)]


def make_array(dtype: Any, shape: tuple[int, ...], order: str = "C") -> tuple[zarrfs.Array, np.ndarray]:
    numpy_dtype = np.dtype([tuple(f) for f in dtype]) if isinstance(dtype, list) else np.dtype(dtype)
    count = int(np.prod(shape)) * numpy_dtype.itemsize
    raw = np.arange(count, dtype="u1") % 2 if numpy_dtype.kind in "bU" else np.arange(count, dtype="u1") % 120
    if numpy_dtype.kind == "U":
        raw[:] = 0
    data = raw.view(numpy_dtype).reshape(shape) if count else np.zeros(shape, numpy_dtype)
    chunks = tuple(max(1, n // 2) for n in shape)
    return zarrfs.create_array(MemoryStore(), "a", data=data, chunks=chunks, zarr_format=2, order=order), data


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_view_has_an_exact_size_and_supports_partial_reads(dtype: Any, shape: tuple[int, ...]) -> None:
    array, _ = make_array(dtype, shape)
    for view in all_views():
        if view.unsupported_reason(PresentedArray(array)) is not None:
            continue
        content = view.content(PresentedArray(array, "a"))
        whole = content.read(0, content.size + 10)
        assert len(whole) == content.size
        assert b"".join(content.read(offset, 7) for offset in range(0, content.size, 7)) == whole


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_can_load_npy_and_raw_files(
    dtype: Any, shape: tuple[int, ...], order: str, tmp_path: Path
) -> None:
    array, data = make_array(dtype, shape, order)
    views = {
        view.suffix: view.content(PresentedArray(array, "a"))
        for view in all_views()
        if view.unsupported_reason(PresentedArray(array)) is None
    }
    assert views[".raw"].read(0, views[".raw"].size) == data.tobytes()
    for suffix in (".npy", ".F.npy"):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(views[suffix].read(0, views[suffix].size))
        loaded = np.load(path)
        assert loaded.dtype == data.dtype
        assert loaded.shape == data.shape
        assert loaded.tobytes() == data.tobytes()
        assert loaded.flags.c_contiguous if suffix == ".npy" else loaded.flags.f_contiguous
        if data.size:
            assert np.load(path, mmap_mode="r").tobytes() == data.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_accepts_the_npy_header(dtype: Any) -> None:
    numpy_dtype = np.dtype([tuple(f) for f in dtype]) if isinstance(dtype, list) else np.dtype(dtype)
    header = npy_header(numpy_dtype, (2, 3))
    assert len(header) % 64 == 0
    stream = io.BytesIO(header + bytes(6 * numpy_dtype.itemsize))
    assert np.lib.format.read_array(stream, allow_pickle=False).shape == (2, 3)


def test_npy_headers_that_are_long_or_not_latin_1() -> None:
    many_fields = np.dtype([(f"field_{i:06d}", "<f8") for i in range(4000)])
    header = npy_header(many_fields, (1,))
    assert header[6] == 2
    assert len(header) % 64 == 0
    non_latin_1 = np.dtype([("μ", "<f8")])
    assert npy_header(non_latin_1, (1,))[6] == 3
    stream = io.BytesIO(npy_header(non_latin_1, (1,)) + bytes(8))
    assert np.lib.format.read_array(stream).dtype == non_latin_1


def test_variable_length_elements_have_only_a_json_view_with_the_reason() -> None:
    words = zarrfs.create_array(MemoryStore(), "words", data=np.array(["a", "bc"], object), dtype="string")
    available = [view for view in all_views() if view.unsupported_reason(PresentedArray(words)) is None]
    assert [view.suffix for view in available if view.listed] == [".json"]
    content = next(view for view in available if view.suffix == ".json").content(
        PresentedArray(words, "words")
    )
    document = json.loads(content.read(0, content.size))
    assert document["data_type"] == "string"
    assert "vary in length" in document["not_available"]["words.npy"]


def test_json_is_strict_for_non_finite_fill_values() -> None:
    def reject_constant(text: str) -> None:
        raise ValueError(text)

    for fill in (np.nan, np.inf, -np.inf):
        array = zarrfs.create_array(
            MemoryStore(), shape=3, dtype="f4", fill_value=fill, attributes={"a": "\ud800"[:0]}
        )
        view = next(view for view in all_views() if view.suffix == ".json")
        content = view.content(PresentedArray(array, "a"))
        assert json.loads(content.read(0, content.size), parse_constant=reject_constant)["fill_value"] in (
            "NaN",
            "Infinity",
            "-Infinity",
        )


@pytest.mark.parametrize("rank", [0, 1, 5, 16, 31, 32])
def test_arrays_of_any_rank_can_be_read(rank: int) -> None:
    """32 is the maximum rank of TensorStore and of NumPy 1."""
    shape = tuple(3 if axis in (0, rank // 2, rank - 1) else 1 for axis in range(rank))
    array, data = make_array("<u2", shape)
    presented = PresentedArray(array, "a")
    files = {
        view.suffix: view.content(presented)
        for view in all_views()
        if view.unsupported_reason(presented) is None
    }
    whole = {suffix: content.read(0, content.size) for suffix, content in files.items()}
    assert whole[".raw"] == data.tobytes()
    loaded = np.load(io.BytesIO(whole[".npy"]))
    assert loaded.shape == shape
    assert np.array_equal(loaded, data)
    assert json.loads(whole[".json"])["shape"] == list(shape)
    assert files[".npy"].read(files[".npy"].size - 3, 9) == whole[".npy"][-3:]
