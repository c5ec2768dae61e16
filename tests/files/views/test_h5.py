"""HDF5 files, read with h5py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import zarrfs
from tests.files.views.presented import (
    NUMBERS,
    ContentFile,
    make_array,
    present,
    refused,
    sample,
    write_file,
)
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.hdf5 import layout as hdf5_layout
from zarrfs.testing import CountingStore

STRUCTURE = [("x", "<i4"), ("y", ">f8", (2, 3)), ("größe", "<u2"), ("flag", "?"), ("name", "S3")]


def read(path: Path, name: str = "img") -> Any:
    with h5py.File(path) as file:
        return file[name][()]


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4, 5)])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_h5py_reads_the_values(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    data = sample(dtype, shape)
    path = write_file(make_array(data), ".h5", tmp_path)
    values = read(path)
    assert np.shape(values) == shape
    assert np.array_equal(values, data)
    with h5py.File(path) as file:
        assert file["img"].dtype == data.dtype
        assert file["img"].chunks is None


@pytest.mark.parametrize("dtype", ["|S5", "|V7", "<M8[ns]", ">M8[s]", "<m8[D]", STRUCTURE], ids=str)
def test_h5py_reads_other_types(dtype: Any, tmp_path: Path) -> None:
    dtype = np.dtype(dtype)
    data = (np.arange(12 * dtype.itemsize, dtype=np.uint8) % 2).view(dtype).reshape(3, 4)
    values = read(write_file(make_array(data), ".h5", tmp_path))
    assert values.dtype == dtype
    assert values.tobytes() == data.tobytes()


@pytest.mark.parametrize("dtype", ["<U3", [("a", "<i4"), ("b", "<U2")]], ids=str)
def test_types_without_equivalent_are_absent(dtype: Any) -> None:
    assert "HDF5 has no data type for its elements (str" in refused(make_array(np.zeros(3, dtype)), ".h5")


def test_types_of_other_packages_are_absent() -> None:
    array = zarrfs.create_array(MemoryStore(), "w", shape=(2,), chunks=(2,), dtype="bfloat16")
    assert "bfloat16" in refused(array, ".h5")


def test_too_many_fields_are_absent() -> None:
    array = make_array(np.zeros(1, [(f"field_{i:05}", "<f8") for i in range(3000)]))
    assert "maximum size in HDF5" in refused(array, ".h5")


def test_many_fields(tmp_path: Path) -> None:
    data = np.zeros(2, [(f"{i:05}" * 10, "<f8") for i in range(480)])
    assert read(write_file(make_array(data), ".h5", tmp_path)).dtype == data.dtype


def test_attributes(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {
        "integer": 3,
        "negative": -(2**63),
        "unsigned": 2**64 - 1,
        "large": 2**70,
        "float": 0.1,
        "flag": True,
        "text": "größe",
        "numbers": [1, 2.5],
        "integers": [1, 2, 3],
        "flags": [True, False],
        "texts": ["a", "b c"],
        "empty": [],
        "none": None,
        "object": {"a": [1, None]},
        "mixed": [1, "a", True],
        "zero byte": "a\0b",
        "a/b": 1,
        "CLASS": "DIMENSION_SCALE",
        "long": "x" * 100_000,
    }
    path = write_file(make_array(sample("<u2", (3, 4)), attributes=attributes), ".h5", tmp_path)
    with h5py.File(path) as file:
        stored = dict(file["img"].attrs)
    assert stored["integer"] == 3
    assert stored["negative"] == -(2**63)
    assert stored["unsigned"] == 2**64 - 1
    assert stored["large"] == str(2**70)
    assert stored["float"] == 0.1
    assert stored["flag"] is np.True_
    assert stored["text"] == "größe"
    assert stored["numbers"].tolist() == [1, 2.5]
    assert stored["integers"].tolist() == [1, 2, 3]
    assert stored["integers"].dtype.kind == "i"
    assert stored["flags"].tolist() == [True, False]
    assert stored["texts"].tolist() == ["a", "b c"]
    assert stored["empty"] == "[]"
    assert stored["none"] == "null"
    assert stored["object"] == '{"a": [1, null]}'
    assert stored["mixed"] == '[1, "a", true]'
    assert stored["zero byte"] == '"a\\u0000b"'
    assert stored["a/b"] == 1
    assert {"CLASS", "long"}.isdisjoint(stored)


def test_thousands_of_attributes(tmp_path: Path) -> None:
    """The first ones are stored."""
    attributes = {f"attribute {i}": "x" * 20 for i in range(2000)}
    path = write_file(make_array(sample("<u2", (3, 4)), attributes=attributes), ".h5", tmp_path)
    with h5py.File(path) as file:
        stored = dict(file["img"].attrs)
    assert stored == dict([*attributes.items()][: len(stored)])
    assert len(stored) == hdf5_layout.MAX_ATTRIBUTES
    assert np.array_equal(read(path), sample("<u2", (3, 4)))


def test_dimension_labels_and_scales(tmp_path: Path) -> None:
    data = sample("<u2", (2, 3, 4, 5))
    array = zarrfs.create_array(
        MemoryStore(),
        "x",
        data=data,
        dimension_names=["c", "z", "y", "x"],
        dimension_units=[None, "2 um", "500 nm", "0.25 um"],
    )
    path = write_file(array, ".h5", tmp_path, "x")
    with h5py.File(path) as file:
        dataset = file["x"]
        assert np.array_equal(dataset[()], data)
        assert [dimension.label for dimension in dataset.dims] == ["c", "z", "y", "x"]
        assert len(dataset.dims[0]) == 0
        assert dataset.dims[1][0][()].tolist() == [0, 2, 4]
        assert dataset.dims[2][0][()].tolist() == [0, 500, 1000, 1500]
        assert dataset.dims[2][0].attrs["units"] == "nm"
        assert dataset.dims[3][0].name == "/x_axis"
        assert dataset.attrs["element_size_um"].tolist() == [2, 0.5, 0.25]


def test_elements_are_aligned() -> None:
    for shape, alignment in (((3, 5), 16), ((100, 100), 4096)):
        array = make_array(sample("<u2", shape), attributes={"a": "b"})
        with h5py.File(ContentFile(present(array, ".h5"))) as file:
            assert file["img"].id.get_offset() % alignment == 0


def test_a_partial_read_decodes_only_its_chunks() -> None:
    store = CountingStore(MemoryStore())
    data = sample("<u2", (8, 64, 64))
    array = zarrfs.create_array(store, "img", data=data, chunks=(1, 32, 64), zarr_format=2)
    content = present(array, ".h5")
    store.reset()
    with h5py.File(ContentFile(content)) as file:
        assert not store.keys
        assert np.array_equal(file["img"][5, 40], data[5, 40])
    assert set(store.keys) == {"img/5.1.0"}


def test_a_large_array_costs_no_memory() -> None:
    shape = (1 << 20, 1 << 20, 1 << 20)
    array = zarrfs.create_array(
        MemoryStore(), "img", shape=shape, chunks=(1, 1024, 1024), dtype="u1", fill_value=7
    )
    content = present(array, ".h5")
    assert 0 < content.size - math.prod(shape) < 10_000
    assert content.memory_nbytes < 10_000
    with h5py.File(ContentFile(content)) as file:
        assert file["img"].shape == shape
        assert file["img"][-1, -1, -3:].tolist() == [7, 7, 7]


def test_the_bytes_are_reproducible() -> None:
    array = make_array(sample("<u2", (5, 6)), attributes={"a": 1, "b": "c"})
    first, second = present(array, ".h5"), present(array, ".h5")
    assert first.read(0, first.size) == second.read(0, second.size)


def test_names_of_any_text(tmp_path: Path) -> None:
    data = sample("<i4", (3, 2))
    assert np.array_equal(read(write_file(make_array(data), ".h5", tmp_path, "größe 1"), "größe 1"), data)


def test_the_view_is_absent_without_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5_layout, "find_spec", lambda name: None)
    hdf5_layout.library_unsupported_reason.cache_clear()
    reason = refused(make_array(sample("<u2", (3,))), ".h5")
    hdf5_layout.library_unsupported_reason.cache_clear()
    assert reason.startswith("it needs h5py: pip install")
