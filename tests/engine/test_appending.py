"""Concurrent changes of the metadata of one node: all appends and attributes are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.processes import run_together
from tests.threads import run_in_threads
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import open_store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.wrappers.synchronizers import SynchronizedStore

LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": (5, 4)},
    "shards": {"chunks": (5, 2), "shards": (10, 4)},
    "v2": {"chunks": (5, 4), "zarr_format": 2},
    "n5": {"chunks": (5, 4), "zarr_format": "n5"},
    "draft2019": {"chunks": (5, 4), "zarr_format": "draft2019"},
}

WRITERS = 3
BLOCKS = 12
ROWS = 3
"""The number of rows of a block. Two blocks do not fill a chunk, so that blocks of several writers share chunks."""

PROGRAM = f"""
import sys, numpy, zarrfs
path, locks, own = sys.argv[1], sys.argv[2], int(sys.argv[3])
array = zarrfs.open_array(path, mode="r+", synchronizer=zarrfs.ProcessSynchronizer(locks))
print("ready", flush=True)
sys.stdin.readline()
for number in range({BLOCKS}):
    array.append(numpy.full(({ROWS}, 4), 100 * own + number + 1, "u2"))
    array.attrs[f"{{own}}.{{number}}"] = number
    array.attrs.update({{f"{{own}}.last": number}})
"""


def run_writers(path: Path, locks: Path) -> None:
    """Run the writer processes; they start writing at the same time."""
    run_together(PROGRAM, [(path, locks, own) for own in range(WRITERS)])


def check_blocks(data: np.ndarray[Any, Any], writers: int = WRITERS, blocks: int = BLOCKS) -> None:
    """Check that each block is stored once and completely, and that the blocks of a writer are in order."""
    assert data.shape == (writers * blocks * ROWS, 4)
    numbers = data[::ROWS, 0]
    assert np.array_equal(data, np.repeat(np.repeat(numbers, ROWS)[:, np.newaxis], 4, axis=1))
    assert sorted(numbers.tolist()) == sorted(
        100 * own + number + 1 for own in range(writers) for number in range(blocks)
    )
    for own in range(writers):
        mine = numbers[numbers // 100 == own].tolist()
        assert mine == sorted(mine)


def check_attributes(found: zarrfs.Array) -> None:
    expected = {f"{own}.{number}": number for own in range(WRITERS) for number in range(BLOCKS)}
    expected |= {f"{own}.last": BLOCKS - 1 for own in range(WRITERS)}
    assert {name: value for name, value in found.attrs.items() if name != "axes"} == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_concurrent_appends_and_attributes_of_processes_are_all_kept(layout: str, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", shape=(0, 4), dtype="u2", **LAYOUTS[layout])
    run_writers(tmp_path / "a", tmp_path / "locks")
    found = zarrfs.open_array(tmp_path / "a")
    check_blocks(found[...])
    check_attributes(found)


@pytest.mark.parametrize("synchronizer", [None, zarrfs.ThreadSynchronizer()], ids=["none", "threads"])
@pytest.mark.parametrize("objects", ["one", "several"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_concurrent_appends_and_attributes_of_threads_are_all_kept(
    layout: str, objects: str, synchronizer: Any
) -> None:
    store = MemoryStore()
    shared = zarrfs.create_array(
        store, shape=(0, 4), dtype="u2", synchronizer=synchronizer, **LAYOUTS[layout]
    )

    def append(own: int) -> None:
        array = shared
        if objects == "several":
            array = zarrfs.open_array(store, mode="r+", synchronizer=synchronizer)
        for number in range(BLOCKS):
            array.append(np.full((ROWS, 4), 100 * own + number + 1, "u2"))
            array.attrs[f"{own}.{number}"] = number
            array.attrs.update({f"{own}.last": number})

    run_in_threads(append, range(WRITERS))
    found = zarrfs.open_array(store)
    check_blocks(found[...])
    check_attributes(found)
    if objects == "one":
        check_blocks(shared[...])
        check_attributes(shared)


def test_a_concurrent_refresh_does_not_disturb_appends() -> None:
    """The refreshing thread may have read metadata that are older than those the appending thread has written since."""
    store = MemoryStore()
    array = zarrfs.create_array(
        store, shape=(0, 4), dtype="u2", chunks=(5, 4), access=zarrfs.Access(recheck_metadata=True)
    )
    ended = threading.Event()

    def work(own: int) -> None:
        if own:
            while not ended.is_set():
                array.refresh()
                assert len(array[...]) % ROWS == 0
            return
        for number in range(40):
            array.append(np.full((ROWS, 4), number + 1, "u2"))
        ended.set()

    run_in_threads(work, range(2))
    check_blocks(array[...], 1, 40)


def test_metadata_locks_have_the_keys_of_zarr_python_2(tmp_path: Path) -> None:
    """zarr-python 2 locks ``.zarray`` for resizing and appending, and ``.zattrs`` for changing attributes."""
    keys: list[str] = []

    class Recording(zarrfs.ProcessSynchronizer):
        def lock(self, key: str) -> Any:
            keys.append(key)
            return super().lock(key)

    group = zarrfs.create_group(tmp_path / "g", zarr_format=2, synchronizer=Recording(tmp_path / "locks"))
    array = group.create_array("a", shape=(4,), dtype="u2", chunks=(2,))
    array.attrs["x"] = 1
    assert keys == ["a/.zattrs"]
    keys.clear()
    array.resize(6)
    assert keys == ["a/.zarray", "a/.zattrs"]
    keys.clear()
    array.append(np.ones(1, "u2"))
    assert keys == ["a/.zarray", "a/.zattrs", "a/3"]
    keys.clear()
    group.attrs["y"] = 1
    assert keys == [".zattrs"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_handle_with_an_outdated_shape_keeps_appended_rows_of_the_last_chunk(
    layout: str, tmp_path: Path
) -> None:
    """An array of 8 rows in chunks of 5 grows to 10 rows. A handle with the old shape writes rows 5 to 7, which are all
    rows of the last chunk by that shape. The rows 8 and 9 of the chunk must be kept.
    """
    synchronizer = zarrfs.ProcessSynchronizer(tmp_path / "locks")
    zarrfs.create_array(tmp_path / "a", data=np.full((8, 4), 1, "u2"), **LAYOUTS[layout])
    early, late = (zarrfs.open_array(tmp_path / "a", mode="r+", synchronizer=synchronizer) for _ in range(2))
    late.append(np.full((2, 4), 2, "u2"))
    early[...] = np.full((8, 4), 3, "u2")
    assert zarrfs.open_array(tmp_path / "a")[:, 0].tolist() == [3] * 8 + [2] * 2


@pytest.mark.parametrize(
    "wrap", [lambda store: LRUStore(store, 1 << 20), lambda store: MetadataCacheStore(store, 3600)]
)
def test_a_caching_store_reads_metadata_again_under_the_lock(
    wrap: Callable[[Store], Store], tmp_path: Path
) -> None:
    synchronizer = zarrfs.ProcessSynchronizer(tmp_path / "locks")
    zarrfs.create_array(tmp_path / "a", shape=(0,), dtype="u2", chunks=(5,))
    one, other = (
        zarrfs.open_array(
            SynchronizedStore(wrap(open_store(tmp_path / "a", mode="r+")[0]), synchronizer), mode="r+"
        )
        for _ in range(2)
    )
    for number in range(3):
        for array in (one, other):
            array.append(np.full(2, number, "u2"))
            array.attrs[f"{array is one} {number}"] = number
    found = zarrfs.open_array(tmp_path / "a")
    assert found[...].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert len(found.attrs) == 6


def test_a_change_of_attributes_applies_to_the_stored_attributes(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g", attributes={"a": 1, "b": 2})
    one, other = (zarrfs.open_group(tmp_path / "g", mode="r+") for _ in range(2))
    attributes = one.attrs
    del other.attrs["a"]
    attributes["c"] = 3
    assert dict(attributes) == {"b": 2, "c": 3}
    with pytest.raises(KeyError):
        del other.attrs["a"]
    with pytest.raises(KeyError):
        del attributes["a"]
    other.attrs.put({"d": 4})
    assert dict(zarrfs.open_group(tmp_path / "g").attrs) == {"d": 4}


def test_a_failed_change_releases_the_lock(tmp_path: Path) -> None:
    synchronizer = zarrfs.ProcessSynchronizer(tmp_path / "locks")
    array = zarrfs.create_array(
        tmp_path / "a", shape=(2, 4), dtype="u2", chunks=(5, 4), synchronizer=synchronizer
    )
    with pytest.raises(zarrfs.SelectionError, match="cannot be appended"):
        array.append(np.ones((2, 3), "u2"))
    with pytest.raises(zarrfs.MetadataError, match="cannot be written as JSON"):
        array.attrs["x"] = object()
    zarrfs.open_array(tmp_path / "a", mode="r+", synchronizer=synchronizer).append(np.ones((2, 4), "u2"))
    array.attrs["x"] = 1
    assert array.shape == (4, 4)
