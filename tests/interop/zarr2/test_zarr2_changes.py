"""Each implementation changes arrays of the other one, also concurrently: sizes, values, attributes, locks."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.interop.samples import same_bits
from tests.interop.zarr2.zarr2_environment import Zarr2
from tests.threads import run_in_threads

DATA = np.arange(42, dtype="<i4").reshape(7, 6)
OPTIONS: dict[str, Any] = {"shape": DATA.shape, "chunks": (3, 2), "dtype": DATA.dtype, "fill_value": -5}

Change = tuple[str, Any]

CHANGES: dict[str, list[Change]] = {
    "grow": [("resize", (9, 8))],
    "shrink": [("resize", (4, 3))],
    "shrink and grow": [("resize", (3, 2)), ("resize", (7, 6))],
    "nothing left": [("resize", (0, 6)), ("resize", (2, 2))],
    "append rows": [("append", (DATA[:2] + 100, 0))],
    "append columns": [("append", (DATA[:, :5] + 100, 1)), ("append", (DATA[:, 1:2], 1))],
    "append to nothing": [("resize", (0, 6)), ("append", (DATA[2:5], 0))],
    "values": [
        ("set", ((slice(1, 5), 3), 9)),
        ("set", ((slice(None), slice(None)), -5)),
        ("set", ((6, 5), 1)),
    ],
    "attributes": [("attributes", {"x": [1, {"y": None}]}), ("attributes", {"z": "é"})],
}


def apply(array: zarrfs.Array, changes: list[Change]) -> None:
    for what, value in changes:
        if what == "resize":
            array.resize(*value)
        elif what == "append":
            array.append(*value)
        elif what == "set":
            array[value[0]] = value[1]
        else:
            array.attrs.update(value)


def directory(path: Path, separator: str) -> tuple[str, dict[str, Any]]:
    return ("DirectoryStore" if separator == "." else "NestedDirectoryStore"), {"path": str(path)}


@pytest.mark.parametrize("separator", "./")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_changes_have_equal_effects(
    zarr2: Zarr2, changes: list[Change], separator: str, tmp_path: Path
) -> None:
    """Each implementation changes the array of the other one. Both leave the same keys, except that zarr-python 2
    stores chunks that contain only the fill value.
    """
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    zarr2("create", directory(theirs, separator), data=DATA, dimension_separator=separator, **OPTIONS)
    zarrfs.create_array(ours, data=DATA, zarr_format=2, dimension_separator=separator, **OPTIONS)
    expected = zarr2("change", directory(ours, separator), "", changes)
    array = zarrfs.open_array(theirs, mode="r+")
    apply(array, changes)
    assert same_bits(array[...], expected)
    values, facts = zarr2("read", directory(theirs, separator))
    assert same_bits(values, expected)
    again = zarrfs.open_array(ours)
    assert same_bits(again[...], expected)
    assert again.attrs.asdict() == facts["attrs"] == array.attrs.asdict()
    assert files(theirs) <= files(ours)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("separator", "./")
def test_concurrent_writes_of_both_to_one_chunk_are_not_lost(
    zarr2: Zarr2, separator: str, tmp_path: Path
) -> None:
    path, locks = tmp_path / "data" / "a", tmp_path / "locks"
    zarrfs.create_array(
        path, shape=(16, 16), chunks=(16, 16), dtype="u2", zarr_format=2, dimension_separator=separator
    )
    array = zarrfs.open_array(path, mode="r+", synchronizer=zarrfs.ProcessSynchronizer(locks))
    zarr2.start("write_cells", str(path), str(locks), 0, 2, 16)
    for row in range(1, 16, 2):
        for column in range(0, 16, 2):
            array[row, column : column + 2] = row * 16 + column + 1
    zarr2.result()
    rows, columns = np.indices((16, 16))
    assert np.array_equal(zarrfs.open_array(path)[...], rows * 16 + columns // 2 * 2 + 1)
    assert files(locks) == {f"0{separator}0", ".zarray"}  # zarr-python 2 also locks documents that it reads


@pytest.mark.parametrize("separator", "./")
def test_concurrent_appends_of_both_are_not_lost(zarr2: Zarr2, separator: str, tmp_path: Path) -> None:
    """Blocks of 3 rows are appended to chunks of 5 rows."""
    path, locks = tmp_path / "data" / "a", tmp_path / "locks"
    zarrfs.create_array(
        path, shape=(0, 4), chunks=(5, 4), dtype="u2", zarr_format=2, dimension_separator=separator
    )
    array = zarrfs.open_array(path, mode="r+", synchronizer=zarrfs.ProcessSynchronizer(locks))
    theirs, ours = list(range(1, 21)), list(range(101, 121))
    zarr2.start("append_blocks", str(path), str(locks), theirs, 3, 4)
    for number in ours:
        array.append(np.full((3, 4), number, "u2"))
        array.attrs[str(number)] = number
    zarr2.result()
    found = zarrfs.open_array(path)
    numbers = found[::3, 0]
    assert sorted(numbers.tolist()) == theirs + ours
    assert np.array_equal(found[...], np.broadcast_to(np.repeat(numbers, 3)[:, np.newaxis], (120, 4)))
    assert dict(found.attrs) == {str(number): number for number in theirs + ours}


@pytest.mark.parametrize("key", ["0.0", "group/array/3/1/2"])
def test_a_lock_of_one_implementation_blocks_the_other(zarr2: Zarr2, key: str, tmp_path: Path) -> None:
    locks = zarrfs.ProcessSynchronizer(tmp_path)
    with locks.lock(key):
        assert not zarr2("lock_is_free", str(tmp_path), key)
        assert zarr2("lock_is_free", str(tmp_path), key + "0")
    assert zarr2("lock_is_free", str(tmp_path), key)

    zarr2("hold_lock", str(tmp_path), key)
    happened = []
    begun = threading.Event()

    def take() -> None:
        begun.set()
        with locks.lock(key):
            happened.append("acquired")

    thread = threading.Thread(target=take)
    thread.start()
    begun.wait()
    happened.append("released")
    zarr2("release_lock", key)
    thread.join()
    assert happened == ["released", "acquired"]


def test_a_lock_excludes_other_threads(tmp_path: Path) -> None:
    """A process-wide file lock alone would be acquired by all threads at once."""
    locks = zarrfs.ProcessSynchronizer(tmp_path)
    inside: list[int] = []
    holders: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            with locks.lock("0.0"):
                inside.append(number)
                holders.append(len(inside))
                inside.remove(number)

    run_in_threads(work, range(4))
    assert max(holders) == 1
    assert len(holders) == 200


def test_a_lock_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    locks = zarrfs.ProcessSynchronizer(tmp_path)
    with locks.lock("a"):
        pass
    with pytest.raises(zarrfs.StoreError, match="cannot be used as a lock"), locks.lock("a/0"):
        pass
    with pytest.raises(zarrfs.KeyNameError), locks.lock("../outside"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(zarrfs.StoreError, match="cannot be used for locks"):
        zarrfs.ProcessSynchronizer(tmp_path / "file")
