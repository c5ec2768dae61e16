"""zarrfs and zarr-python 2 read each other's v2 arrays with equal bits and write equal documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.interop.samples import same_bits
from tests.interop.zarr2.zarr2_cases import COMPRESSORS, Case, array_cases, fill_cases, object_cases
from tests.interop.zarr2.zarr2_environment import Zarr2

CASES = list(array_cases())


def directory(path: Path) -> tuple[str, dict[str, Any]]:
    return "DirectoryStore", {"path": str(path)}


def document(path: Path) -> Any:
    return json.loads((path / ".zarray").read_text())


def same(found: Any, expected: Any) -> bool:
    """Return whether two object arrays are equal. Elements may be arrays."""
    if found.shape != expected.shape:
        return False
    return all(
        same_bits(a, b) if isinstance(b, np.ndarray) else type(a) is type(b) and a == b
        for a, b in zip(found.flat, expected.flat, strict=True)
    )


def test_the_matrix_is_complete_and_its_names_are_unique() -> None:
    assert len(CASES) > 700
    assert len({str(case) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_documents_and_checksums_are_equal(zarr2: Zarr2, case: Case, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    facts = zarr2("create", directory(theirs), data=case.data, attributes={"a": [1]}, **case.theirs)
    expected, _ = zarr2("read", directory(theirs)) if case.lossy else (case.data, None)

    found = zarrfs.open_array(theirs, cache_size=0)
    assert same_bits(found[...], expected)
    assert (found.shape, found.chunks, found.order) == (facts["shape"], facts["chunks"], facts["order"])
    assert found.dtype == case.numpy
    assert found.nchunks_initialized == found.nchunks
    assert found.attrs.asdict() == {"a": [1]}
    assert found.hexdigest() == facts["hexdigest"]

    written = zarrfs.create_array(ours, data=case.data, attributes={"a": [1]}, **case.ours)
    assert document(ours) == document(theirs)
    values, facts = zarr2("read", directory(ours))
    assert same_bits(values, expected)
    assert facts["attrs"] == {"a": [1]}
    assert facts["hexdigest"] == written.hexdigest()
    for hashname in ("md5", "sha256"):
        assert len(written.digest(hashname)) == {"md5": 16, "sha256": 32}[hashname]


@pytest.mark.parametrize("case", list(object_cases()), ids=str)
def test_object_arrays_are_exchanged(zarr2: Zarr2, case: Case, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    facts = zarr2("create", directory(theirs), data=case.data, **case.theirs)
    found = zarrfs.open_array(theirs, cache_size=0)
    # JSON and MessagePack contain chunks as nested lists. zarr-python 2 writes them in C order and reads them in the
    # order of the array.
    # For square chunks the intended order is unknown. zarrfs reads the same values as zarr-python 2.
    readable = zarr2("read", directory(theirs))[0] if case.mixed_up else case.data
    assert same(found[...], readable)
    assert found.hexdigest() == facts["hexdigest"]

    written = zarrfs.create_array(ours, **case.ours)
    written[...] = case.data
    assert document(ours) == document(theirs)
    values, facts = zarr2("read", directory(ours))
    assert same(values, case.data)
    assert facts["hexdigest"] == written.hexdigest()


@pytest.mark.parametrize("case", list(object_cases()), ids=str)
def test_partly_written_object_arrays_are_exchanged(zarr2: Zarr2, case: Case, tmp_path: Path) -> None:
    zarr2("create", directory(tmp_path), **case.theirs)
    array = zarrfs.open_array(tmp_path, mode="r+")

    def theirs() -> Any:
        values, _ = zarr2("read", directory(tmp_path))
        if "vlen-bytes" in case.name:
            values[values == 0] = (
                b""  # an integer among byte strings, to it; here all elements are byte strings
            )
        return values

    assert same(array[...], theirs())
    array[1:3, 2:5] = case.data[1:3, 2:5]
    assert same(array[1:3, 2:5], case.data[1:3, 2:5])
    assert same(array[...], theirs())


@pytest.mark.parametrize("order", ["C", "F"])
def test_pickle_is_refused_unless_requested(zarr2: Zarr2, order: str, tmp_path: Path) -> None:
    data = np.array([[1, "two", 3j], [None, (3, 4), ""], [{5}, b"6", 7.5]], object)
    codec = {"id": "pickle", "protocol": 4}
    options = {"shape": data.shape, "dtype": object, "chunks": (2, 2), "order": order}
    zarr2("build", directory(tmp_path), [])
    zarr2("create", directory(tmp_path), "inner/a", data=data, object_codec=codec, **options)
    with pytest.raises(zarrfs.UnsupportedError, match="allow_pickle"):
        zarrfs.open_array(tmp_path, "inner/a")
    with pytest.raises(zarrfs.UnsupportedError, match="allow_pickle"):
        zarrfs.open_group(tmp_path)["inner/a"]
    assert same(zarrfs.open_array(tmp_path, "inner/a", allow_pickle=True)[...], data)
    for path in ("", "inner"):
        group = zarrfs.open_group(tmp_path, path, allow_pickle=True)
        (found,) = (node for _, node in group.walk() if isinstance(node, zarrfs.Array))
        assert same(found[...], data)
    with pytest.raises(zarrfs.UnsupportedError, match="allow_pickle"):
        zarrfs.create_array({}, shape=2, dtype=object, filters=[codec], zarr_format=2)


def same_elements(found: Any, expected: Any) -> bool:
    """As ``same_bits``, except for the sign of NaN in complex numbers.

    zarr-python 2 computes them by a multiplication with 1j. The sign of its NaN depends on how Python was compiled.
    """
    if np.asarray(expected).dtype.kind != "c":
        return same_bits(found, expected)
    parts = [
        np.asarray(values).reshape(-1).view(f"f{np.asarray(values).itemsize // 2}")
        for values in (found, expected)
    ]
    return np.array_equal(*parts, equal_nan=True)


def without_times(values: Any) -> Any:
    """Return an array with NaT in place of each time."""
    if values.dtype.kind in "mM":
        values[...] = "NaT"
    for name in values.dtype.names or ():
        without_times(values[name])
    return values


@pytest.mark.parametrize(("dtype", "fill"), list(fill_cases()), ids=str)
def test_fill_values_are_exchanged(zarr2: Zarr2, dtype: Any, fill: Any, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    options = {"shape": (4,), "chunks": (2,), "fill_value": fill, "dtype": np.dtype(dtype)}
    options["dimension_separator"] = "."
    facts = zarr2("create", directory(theirs), compressor=None, **options)
    found = zarrfs.open_array(theirs, mode="r+")
    assert found.hexdigest() == facts["hexdigest"]
    if fill is None:
        assert found.fill_value is None
        # Elements that were never written are undefined in zarr-python 2. zarrfs returns zeros, and NaT for times.
        assert same_bits(found[...], without_times(np.zeros(4, dtype)))
        found.resize(3)
        assert document(theirs)["fill_value"] is None
        return
    expected, _ = zarr2("read", directory(theirs))
    assert same_elements(found[...], expected)
    assert same_elements(np.asarray(found.fill_value, dtype), np.asarray(facts["fill_value"], dtype))
    zarrfs.create_array(ours, zarr_format=2, compressors=None, **options)
    # Compared as text, because NaN != NaN and -0.0 == 0.0.
    assert json.dumps(document(ours), sort_keys=True) == json.dumps(document(theirs), sort_keys=True)
    values, facts = zarr2("read", directory(ours))
    assert same_elements(values, expected)


BLOCKS = {name: compressor for name, compressor in COMPRESSORS.items() if "blosc" in name or name == "none"}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<u2", ">f8", "|u1"])
@pytest.mark.parametrize("compressor", BLOCKS)
def test_parts_of_large_chunks_are_read(
    zarr2: Zarr2, compressor: str, dtype: str, order: str, tmp_path: Path
) -> None:
    """The chunks have many Blosc blocks. Only the blocks of the selection are decoded."""
    rng = np.random.default_rng(7)
    data = rng.poisson(3, (40, 50, 60)).astype(dtype)
    codec = BLOCKS[compressor] and {**BLOCKS[compressor], "blocksize": 4096}
    options = {"shape": data.shape, "dtype": data.dtype, "chunks": (32, 40, 60), "order": order}
    zarr2("create", directory(tmp_path), data=data, compressor=codec, **options)
    array = zarrfs.open_array(tmp_path, cache_size=0)
    for _ in range(30):
        lows = [int(rng.integers(0, length)) for length in data.shape]
        box = tuple(slice(low, low + int(rng.integers(1, 9)), int(rng.integers(1, 3))) for low in lows)
        assert same_bits(array[box], data[box])
    for axis in range(3):
        plane = (slice(None),) * axis + (17,)
        assert same_bits(array[plane], data[plane])
    stream = np.ascontiguousarray(data).tobytes()
    for offset in rng.integers(0, len(stream), 20).tolist():
        assert bytes(array.read_bytes(offset, 1000)) == stream[offset : offset + 1000]
