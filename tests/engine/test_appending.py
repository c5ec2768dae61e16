"""Several who change the metadata of one node at once: appends and attributes of all of them are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.processes import run_together
from zarrfs.engine.locations import open_store
from zarrfs.engine.stores.base import Store
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
"""Of a block: two do not fill a chunk, so that blocks of several writers share chunks."""

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
    """Run processes that all begin at once."""
    run_together(PROGRAM, [(path, locks, own) for own in range(WRITERS)])


def check_blocks(data: np.ndarray[Any, Any], writers: int = WRITERS, blocks: int = BLOCKS) -> None:
    """Each block is there once, whole, those of one writer in their order."""
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
def test_processes_that_append_and_set_attributes_lose_nothing(layout: str, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", shape=(0, 4), dtype="u2", **LAYOUTS[layout])
    run_writers(tmp_path / "a", tmp_path / "locks")
    found = zarrfs.open_array(tmp_path / "a")
    check_blocks(found[...])
    check_attributes(found)


def run_threads(work: Callable[[int], object], count: int = WRITERS) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(own: int) -> None:
        try:
            start.wait()
            work(own)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(own,)) for own in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("synchronizer", [None, zarrfs.ThreadSynchronizer()], ids=["none", "threads"])
@pytest.mark.parametrize("objects", ["one", "several"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_that_append_and_set_attributes_lose_nothing(
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

    run_threads(append)
    found = zarrfs.open_array(store)
    check_blocks(found[...])
    check_attributes(found)
    if objects == "one":
        check_blocks(shared[...])
        check_attributes(shared)


def test_a_thread_that_reads_meanwhile_does_not_disturb() -> None:
    """It takes over what it has read, which is older than what the appending thread has written since."""
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

    run_threads(work, 2)
    check_blocks(array[...], 1, 40)


def test_turns_at_documents_are_taken_by_the_keys_of_zarr_python_2(tmp_path: Path) -> None:
    """Which locks ``.zarray`` to resize and append, and ``.zattrs`` to change attributes."""
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
def test_the_last_chunk_is_kept_whole_by_who_does_not_know_that_it_grew(layout: str, tmp_path: Path) -> None:
    """An array of 8 rows in chunks of 5: its rows 5 to 7 are all of the last chunk, to who still takes it for that."""
    synchronizer = zarrfs.ProcessSynchronizer(tmp_path / "locks")
    zarrfs.create_array(tmp_path / "a", data=np.full((8, 4), 1, "u2"), **LAYOUTS[layout])
    early, late = (zarrfs.open_array(tmp_path / "a", mode="r+", synchronizer=synchronizer) for _ in range(2))
    late.append(np.full((2, 4), 2, "u2"))
    early[...] = np.full((8, 4), 3, "u2")
    assert zarrfs.open_array(tmp_path / "a")[:, 0].tolist() == [3] * 8 + [2] * 2


@pytest.mark.parametrize(
    "wrap", [lambda store: LRUStore(store, 1 << 20), lambda store: MetadataCacheStore(store, 3600)]
)
def test_a_store_that_remembers_asks_anew_in_its_turn(wrap: Callable[[Store], Store], tmp_path: Path) -> None:
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


def test_attributes_are_those_of_all_once_changed(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g", attributes={"a": 1, "b": 2})
    one, other = (zarrfs.open_group(tmp_path / "g", mode="r+") for _ in range(2))
    kept = one.attrs
    del other.attrs["a"]
    kept["c"] = 3
    assert dict(kept) == {"b": 2, "c": 3}
    with pytest.raises(KeyError):
        del other.attrs["a"]
    with pytest.raises(KeyError):
        del kept["a"]
    other.attrs.put({"d": 4})
    assert dict(zarrfs.open_group(tmp_path / "g").attrs) == {"d": 4}


def test_a_change_that_fails_leaves_the_turn_to_others(tmp_path: Path) -> None:
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
