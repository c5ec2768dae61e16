"""Elements that are cut off when an array shrinks do not reappear when it grows again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.interop.samples import Data
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError
from zarrfs.testing import CountingStore

VALUES = np.arange(1, 121, dtype="u2").reshape(12, 10)
LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": (5, 4)},
    "v2": {"chunks": (5, 4), "zarr_format": 2},
    "draft2019": {"chunks": (5, 4), "zarr_format": "draft2019"},
    "F order": {"chunks": (5, 4), "zarr_format": 2, "order": "F"},
    "n5": {"chunks": (5, 4), "zarr_format": "n5"},
    "uncompressed": {"chunks": (5, 4), "compressors": None},
    "shards": {"chunks": (3, 2), "shards": (6, 8)},
    "one chunk": {"chunks": (12, 10)},
}


def make(layout: str, **options: Any) -> zarrfs.Array:
    return zarrfs.create_array(MemoryStore(), "a", data=VALUES, **LAYOUTS[layout], **options)


@pytest.mark.parametrize("write_empty", [False, True])
@pytest.mark.parametrize("shape", [(7, 10), (12, 3), (7, 3), (5, 8), (1, 1), (7, 14), (0, 10)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_cut_off_reads_as_the_fill_value(
    layout: str, shape: tuple[int, int], write_empty: bool
) -> None:
    array = make(layout)
    array.write_empty_chunks = write_empty
    array[...]  # cached chunks must not be used either
    array.resize(shape)
    expected: Data = np.zeros((12, 14), "u2")
    rows, columns = min(shape[0], 12), min(shape[1], 10)
    expected[:rows, :columns] = VALUES[:rows, :columns]
    for one in (array, zarrfs.open_array(array.store, "a", mode="r+", cache_size=0)):
        np.testing.assert_array_equal(one[...], expected[: shape[0], : shape[1]])
    array.resize(12, 14)
    for one in (array, zarrfs.open_array(array.store, "a", cache_size=0)):
        np.testing.assert_array_equal(one[...], expected)


class LockRecordingStore(CountingStore):
    """Records the keys that are locked."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.locked: list[str] = []

    def lock(self, key: str) -> Any:
        self.locked.append(key)
        return super().lock(key)


@pytest.mark.parametrize("shards", [None, (6, 8)])
def test_a_chunk_that_is_divided_along_two_dimensions_is_locked_and_written_once(shards: Any) -> None:
    store = LockRecordingStore()
    array = zarrfs.create_array(store, data=VALUES, chunks=(3, 4), shards=shards)
    store.locked.clear()
    store.reset()
    array.resize((7, 5))
    chunks = [key for key in store.locked if key.startswith("c/")]
    assert len(chunks) == len(set(chunks)) == (2 if shards else 4)
    assert store.calls["set"] == len(chunks) + 1  # and the document
    array.resize((12, 10))
    expected: Data = np.zeros_like(VALUES)
    expected[:7, :5] = VALUES[:7, :5]
    np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_append_after_shrinking_adds_to_cleared_chunks(layout: str) -> None:
    array = make(layout)
    array.resize(7, 3)
    array.append(np.full((2, 3), 9, "u2"))
    array.resize(12, 10)
    expected: Data = np.zeros_like(VALUES)
    expected[:7, :3] = VALUES[:7, :3]
    expected[7:9, :3] = 9
    np.testing.assert_array_equal(array[...], expected)


def test_without_deletion_all_values_are_retained() -> None:
    array = make("v3")
    array.resize(7, 3, delete=False)
    array.resize(12, 10)
    np.testing.assert_array_equal(array[...], VALUES)


@pytest.mark.parametrize("layout", ["v3", "shards"])
def test_missing_chunks_stay_missing(layout: str) -> None:
    array = zarrfs.create_array(MemoryStore(), "a", shape=(12, 10), dtype="u2", **LAYOUTS[layout])
    array[:3, :2] = 1
    array.write_empty_chunks = True
    size = array.nbytes_stored()
    array.resize(11, 9)
    assert array.nshards_initialized == 1
    assert array.nbytes_stored() - size in range(-2, 3)  # the length of the shape in the document


def test_only_divided_chunks_are_accessed() -> None:
    store = CountingStore(MemoryStore())
    array = zarrfs.create_array(store, "a", data=np.ones((40, 10), "u2"), chunks=(4, 5))
    keys = list(store.list_prefix("a/c"))
    before = {key: store.get(key) for key in keys}
    array.resize(38, 10)
    assert {key for key in keys if store.get(key) != before[key]} == {"a/c/9/0", "a/c/9/1"}
    # The shape divides chunks and puts none outside: their keys are not listed.
    store.reset()
    array.resize(37, 10)
    assert not store.calls["list_prefix"]


def test_a_broken_chunk_does_not_prevent_that_the_others_are_cleared() -> None:
    array = make("v3")
    array.store.set("a/c/1/1", b"broken")
    with pytest.raises(ChunkDecodeError, match="the array has its new shape"):
        array.resize(7, 10)
    array.store.delete("a/c/1/1")
    array.resize(12, 10)
    expected = VALUES.copy()
    expected[7:] = 0
    expected[5:10, 4:8] = 0
    np.testing.assert_array_equal(array[...], expected)
