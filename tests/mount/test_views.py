"""Every view over arrays of every kind: sizes known beforehand, any range right, and NumPy reads what is NumPy's."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.mount.views.npy import npy_header
from zarrfs.mount.views.registry import all_views

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


def make(dtype: Any, shape: tuple[int, ...], order: str = "C") -> tuple[zarrfs.Array, np.ndarray]:
    real = np.dtype([tuple(f) for f in dtype]) if isinstance(dtype, list) else np.dtype(dtype)
    count = int(np.prod(shape)) * real.itemsize
    raw = np.arange(count, dtype="u1") % 2 if real.kind in "bU" else np.arange(count, dtype="u1") % 120
    if real.kind == "U":
        raw[:] = 0
    data = raw.view(real).reshape(shape) if count else np.zeros(shape, real)
    chunks = tuple(max(1, n // 2) for n in shape)
    return zarrfs.create_array(MemoryStore(), "a", data=data, chunks=chunks, zarr_format=2, order=order), data


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_view_keeps_its_promises(dtype: Any, shape: tuple[int, ...]) -> None:
    array, _ = make(dtype, shape)
    for view in all_views():
        if view.refusal(array) is not None:
            continue
        layout = view.layout(array, "a")
        whole = layout.read(0, layout.size + 10)
        assert len(whole) == layout.size
        assert b"".join(layout.read(at, 7) for at in range(0, layout.size, 7)) == whole


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_reads_npy_and_raw(dtype: Any, shape: tuple[int, ...], order: str, tmp_path: Path) -> None:
    array, data = make(dtype, shape, order)
    views = {view.suffix: view.layout(array, "a") for view in all_views() if view.refusal(array) is None}
    npy = views[".npy"].read(0, views[".npy"].size)
    path = tmp_path / "a.npy"
    path.write_bytes(npy)
    loaded = np.load(path)
    assert loaded.dtype == data.dtype
    assert loaded.shape == data.shape
    assert loaded.tobytes() == data.tobytes() == views[".raw"].read(0, views[".raw"].size)
    if data.size:
        assert np.load(path, mmap_mode="r").tobytes() == data.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_header_is_numpys(dtype: Any) -> None:
    real = np.dtype([tuple(f) for f in dtype]) if isinstance(dtype, list) else np.dtype(dtype)
    header = npy_header(real, (2, 3))
    assert len(header) % 64 == 0
    stream = io.BytesIO(header + bytes(6 * real.itemsize))
    assert np.lib.format.read_array(stream, allow_pickle=False).shape == (2, 3)


def test_long_headers_and_names_beyond_latin_1() -> None:
    many = np.dtype([(f"field_{i:06d}", "<f8") for i in range(4000)])
    header = npy_header(many, (1,))
    assert header[6] == 2
    assert len(header) % 64 == 0
    greek = np.dtype([("μ", "<f8")])
    assert npy_header(greek, (1,))[6] == 3
    stream = io.BytesIO(npy_header(greek, (1,)) + bytes(8))
    assert np.lib.format.read_array(stream).dtype == greek


def test_elements_of_varying_length_have_json_only_and_it_says_why() -> None:
    words = zarrfs.create_array(MemoryStore(), "words", data=np.array(["a", "bc"], object), dtype="string")
    shown = [view for view in all_views() if view.refusal(words) is None]
    assert [view.suffix for view in shown if view.listed] == [".json"]
    layout = next(view for view in shown if view.suffix == ".json").layout(words, "words")
    document = json.loads(layout.read(0, layout.size))
    assert document["data_type"] == "string"
    assert "vary in length" in document["not_available"]["words.npy"]


def test_json_is_strict_whatever_the_fill_value() -> None:
    def refuse(text: str) -> None:
        raise ValueError(text)

    for fill in (np.nan, np.inf, -np.inf):
        array = zarrfs.create_array(
            MemoryStore(), shape=3, dtype="f4", fill_value=fill, attributes={"a": "\ud800"[:0]}
        )
        view = next(view for view in all_views() if view.suffix == ".json")
        layout = view.layout(array, "a")
        assert json.loads(layout.read(0, layout.size), parse_constant=refuse)["fill_value"] in (
            "NaN",
            "Infinity",
            "-Infinity",
        )


@pytest.mark.parametrize("rank", [0, 1, 5, 16, 31, 32])
def test_files_of_any_rank(rank: int) -> None:
    """TensorStore's bound is 32 dimensions; NumPy 1 has no more."""
    shape = tuple(3 if axis in (0, rank // 2, rank - 1) else 1 for axis in range(rank))
    array, data = make("<u2", shape)
    files = {view.suffix: view.layout(array, "a") for view in all_views()}
    whole = {suffix: layout.read(0, layout.size) for suffix, layout in files.items()}
    assert whole[".raw"] == data.tobytes()
    loaded = np.load(io.BytesIO(whole[".npy"]))
    assert loaded.shape == shape
    assert np.array_equal(loaded, data)
    assert json.loads(whole[".json"])["shape"] == list(shape)
    assert files[".npy"].read(files[".npy"].size - 3, 9) == whole[".npy"][-3:]
