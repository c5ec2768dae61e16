"""The requests of a write, and that written data may be modified by the caller afterwards."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.codecs.fill_values import is_filled
from zarrfs.engine.stores.local.files import MAX_BUFFERS_PER_CALL
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.testing import CountingStore

READS = ("get", "get_into", "get_ranges", "size", "stamp")

UNCOMPRESSED: dict[str, Any] = {"compressors": None}
COMPRESSED: dict[str, Any] = {}

NUMBERS = np.random.default_rng(3).integers(1, 1000, (40, 48), "u2")


def counted(**options: Any) -> tuple[zarrfs.Array, CountingStore]:
    inner = MemoryStore()
    zarrfs.create_array(inner, "a", shape=NUMBERS.shape, dtype=NUMBERS.dtype, **options)
    store = CountingStore(inner)
    array = zarrfs.open_array(store, "a", mode="r+", cache_size=0)
    store.reset()
    return array, store


def reads(store: CountingStore) -> int:
    return sum(store.calls[name] for name in READS)


@pytest.mark.parametrize("codecs", [UNCOMPRESSED, COMPRESSED], ids=["plain", "compressed"])
@pytest.mark.parametrize("shards", [None, (20, 24)], ids=["chunks", "shards"])
class TestCosts:
    """A grid of 2 x 2 chunks, or shards of 5 x 6 inner chunks."""

    def open(self, shards: Any, codecs: dict[str, Any]) -> tuple[zarrfs.Array, CountingStore]:
        return counted(chunks=(4, 4) if shards else (20, 24), shards=shards, **codecs)

    def test_whole_chunks_are_written_once_without_being_read(
        self, shards: Any, codecs: dict[str, Any]
    ) -> None:
        array, store = self.open(shards, codecs)
        for _ in range(2):
            store.reset()
            array[...] = NUMBERS
            assert store.calls["set"] == 4
            assert reads(store) == 0
        np.testing.assert_array_equal(array[...], NUMBERS)

    def test_only_partially_written_chunks_are_read(self, shards: Any, codecs: dict[str, Any]) -> None:
        array, store = self.open(shards, codecs)
        array[...] = NUMBERS
        store.reset()
        array[:, :30] = NUMBERS[:, 18:]
        assert store.calls["set"] == 4
        assert reads(store) == 2
        assert sorted(store.keys) == ["a/c/0/1", "a/c/1/1"]
        expected = NUMBERS.copy()
        expected[:, :30] = NUMBERS[:, 18:]
        np.testing.assert_array_equal(array[...], expected)

    def test_writing_a_plane_reads_and_writes_each_chunk_once(
        self, shards: Any, codecs: dict[str, Any]
    ) -> None:
        array, store = self.open(shards, codecs)
        array[...] = NUMBERS
        store.reset()
        array[7] = 5
        assert store.calls["set"] == 2
        assert reads(store) == 2
        assert sorted(store.keys) == ["a/c/0/0", "a/c/0/1"]
        expected = NUMBERS.copy()
        expected[7] = 5
        np.testing.assert_array_equal(array[...], expected)

    def test_chunks_that_become_empty_are_deleted(self, shards: Any, codecs: dict[str, Any]) -> None:
        array, store = self.open(shards, codecs)
        array[...] = NUMBERS
        store.reset()
        array[:20] = 0
        assert (store.calls["delete"], store.calls["set"], reads(store)) == (2, 0, 0)
        array[20:39] = 0
        array[39] = 0
        assert list(store.list_prefix("a")) == ["a/zarr.json"]
        assert not array[...].any()

    def test_empty_chunks_are_stored_with_write_empty_chunks(
        self, shards: Any, codecs: dict[str, Any]
    ) -> None:
        array, store = self.open(shards, codecs)
        array.write_empty_chunks = True
        array[...] = NUMBERS
        array[:39] = 0
        array[39] = 0
        assert len(list(store.list_prefix("a/c"))) == 4
        assert not array[...].any()


@pytest.mark.parametrize("codecs", [UNCOMPRESSED, COMPRESSED], ids=["plain", "compressed"])
def test_chunks_at_the_end_of_the_array_are_written_without_being_read(codecs: dict[str, Any]) -> None:
    array, store = counted(chunks=(32, 32), **codecs)
    array[...] = NUMBERS
    assert store.calls["set"] == 4
    assert reads(store) == 0
    store.reset()
    array[32:, 32:] = 7
    assert (store.calls["set"], reads(store)) == (1, 0)
    assert (array[32:, 32:] == 7).all()
    np.testing.assert_array_equal(array[:32], NUMBERS[:32])


@pytest.mark.parametrize("codecs", [UNCOMPRESSED, COMPRESSED], ids=["plain", "compressed"])
@pytest.mark.parametrize("kind", ["memory", "local", "zip"])
@pytest.mark.parametrize("shards", [None, (40, 48)], ids=["chunks", "shards"])
def test_data_may_be_modified_after_they_were_written(
    kind: str, shards: Any, codecs: dict[str, Any], tmp_path: Path
) -> None:
    store: Any = {"memory": MemoryStore(), "local": tmp_path / "a", "zip": tmp_path / "a.zip"}[kind]
    chunks = (20, 24) if shards else (40, 48)
    array = zarrfs.create_array(store, shape=(80, 48), dtype="u2", chunks=chunks, shards=shards, **codecs)
    data = np.concatenate([NUMBERS, NUMBERS + 1])
    for rows in (slice(0, 40), slice(40, 80)):
        piece = data[rows].copy()
        array[rows] = piece
        piece[...] = 0
    np.testing.assert_array_equal(array[...], data)
    array.store.close()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("codecs", [UNCOMPRESSED, COMPRESSED], ids=["plain", "compressed"])
@pytest.mark.parametrize("dtype", ["?", "u1", ">i4", "<f8", "c16", "M8[ns]", "S3", "U2", "i2,f4"])
def test_non_contiguous_data_of_all_dtypes_are_written(
    dtype: str, codecs: dict[str, Any], order: Any
) -> None:
    """Chunks larger and smaller than the scratch memory of encoders, for data with another memory order."""
    raw = np.random.default_rng(1).integers(0, 60, (3, 90, 80))
    data = np.empty(raw.shape, dtype)
    for name in data.dtype.names or [None]:  # type: ignore[list-item]
        if name is None:
            data[...] = raw.astype("i8").astype(dtype)
        else:
            data[name] = raw
    scattered = data.transpose(2, 1, 0)[::-1]
    for chunks in ((80, 90, 3), (17, 31, 2)):
        array = zarrfs.create_array(
            MemoryStore(), shape=scattered.shape, dtype=dtype, chunks=chunks, order=order, zarr_format=2,
            **codecs,
        )  # fmt: skip
        array[...] = scattered
        np.testing.assert_array_equal(array[...], scattered)
        array[3:50, 7, :] = scattered[4:51, 8, :]
        expected = scattered.copy()
        expected[3:50, 7, :] = scattered[4:51, 8, :]
        np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", "i2,f4"])
def test_is_filled_compares_every_element_bitwise(dtype: str) -> None:
    fill = np.zeros((), dtype)[()]
    whole = np.zeros((6, 7, 8), dtype)
    for array in (whole, whole[::2, :, ::-1], whole.T):
        assert is_filled(array, fill)
    for place in ((0, 0, 0), (5, 6, 7), (0, 0, 7), (3, 0, 0)):
        whole[place] = (1, 1.0) if whole.dtype.names else 1
        assert not is_filled(whole, fill)
        assert not is_filled(whole.T, fill)
        whole[place] = fill
    negative = np.zeros((4, 4))
    negative[3, 3] = -0.0
    assert not is_filled(negative, 0.0)


def test_several_buffers_are_stored_as_one_value(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    parts = [bytes([n % 251]) * (n % 7) for n in range(2 * MAX_BUFFERS_PER_CALL + 3)]
    store.set_parts("a/b", parts)
    assert store.get("a/b") == b"".join(parts)
    store.set_parts("a/b", [memoryview(np.arange(5, dtype="<u4")), bytearray(b"xyz"), b""])
    assert store.get("a/b") == np.arange(5, dtype="<u4").tobytes() + b"xyz"


def test_a_short_writev_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``os.writev`` may write fewer bytes than requested."""
    monkeypatch.setattr(os, "writev", lambda fd, parts: os.write(fd, b"".join(parts)[:5]))
    store = LocalStore(tmp_path)
    store.set_parts("a", [b"abc", b"defgh", b"", b"ijkl"])
    assert store.get("a") == b"abcdefghijkl"


def test_a_write_succeeds_while_its_directory_is_deleted_repeatedly(tmp_path: Path) -> None:
    """Deleting the last value of a directory deletes the directory; a concurrent write creates it again."""
    store = LocalStore(tmp_path)
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            store.set("a/b/c", b"1")
            store.delete("a/b/c")

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for number in range(300):
            store.set("a/b/d", b"%d" % number)
            assert store.get("a/b/d") == b"%d" % number
            store.delete("a/b/d")
    finally:
        done.set()
        other.join()
