"""Safetensors files, read with the reference implementation."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
from safetensors.numpy import load_file

import zarrfs
from tests.files.views.presented import NUMBERS, make_array, refused, sample, write_file
from zarrfs.engine.stores.memory import MemoryStore

TYPES = [dtype for dtype in NUMBERS if np.dtype(dtype).name != "complex128"]


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4, 5)])
@pytest.mark.parametrize("dtype", TYPES)
def test_the_reference_implementation_reads_the_values(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    data = sample(dtype, shape)
    tensors = load_file(write_file(make_array(data), ".safetensors", tmp_path))
    assert list(tensors) == ["img"]
    assert tensors["img"].dtype == data.dtype.newbyteorder("=")
    assert np.array_equal(tensors["img"], data)
    assert tensors["img"].shape == shape


def test_arrays_in_f_order_are_stored_in_c_order(tmp_path: Path) -> None:
    data = sample("<u2", (4, 5, 6))
    path = write_file(make_array(data, order="F"), ".safetensors", tmp_path)
    assert np.array_equal(load_file(path)["img"], data)


@pytest.mark.parametrize(
    ("name", "tensor_type"),
    [("bfloat16", "BF16"), ("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2")],
)
def test_types_of_machine_learning(name: str, tensor_type: str, tmp_path: Path) -> None:
    data = np.array([[1.5, -2, 0.25], [3, 0, 1]], getattr(ml_dtypes, name))
    array = zarrfs.create_array(MemoryStore(), "w", shape=data.shape, chunks=(2, 2), dtype=name)
    array[...] = data
    path = write_file(array, ".safetensors", tmp_path)
    ((key, tensor),) = safetensors.deserialize(path.read_bytes())
    assert (key, tensor["dtype"], tensor["shape"]) == ("img", tensor_type, [2, 3])
    assert bytes(tensor["data"]) == data.tobytes()


def test_names_of_any_text(tmp_path: Path) -> None:
    data = sample("<f4", (2, 3))
    for name in ('Größe "1"\\', "__metadata__", "\u4e2d"):
        path = write_file(make_array(data), ".safetensors", tmp_path, name)
        ((key, values),) = load_file(path).items()
        assert key == ("array" if name == "__metadata__" else name)
        assert np.array_equal(values, data)
        path.unlink()


@pytest.mark.parametrize("dtype", ["<c16", "|S3", "<M8[s]", [("x", "<i4")]])
def test_other_types_are_absent_with_the_reason(dtype: object) -> None:
    array = make_array(np.zeros(3, dtype))
    assert "no data type for its elements" in refused(array, ".safetensors")
