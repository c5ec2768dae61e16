"""Tests of the caching and retrying wrapper stores."""

from __future__ import annotations

import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.engine.stores.wrappers.wrapper import ReadOnlyStore
from zarrfs.errors import NodeNotFoundError, ReadOnlyError, StoreError
from zarrfs.testing import CountingStore, FailingStore


def test_values_are_cached_up_to_the_capacity() -> None:
    inner = CountingStore(MemoryStore())
    store = LRUStore(inner, 250)
    for key in "abcd":
        inner.set(key, key.encode() * 100)
    for _ in range(3):
        assert store.get("a") == b"a" * 100
    assert inner.calls["get"] == 1
    store.get("b")
    assert store.nbytes == 200
    store.get("a")
    store.get("c")
    assert store.nbytes == 200
    store.get("a")
    assert inner.calls["get"] == 3
    store.get("b")
    assert inner.calls["get"] == 4
    inner.set("big", bytes(1000))
    store.get("big")
    store.get("big")
    assert inner.calls["get"] == 6
    store.invalidate()
    assert store.nbytes == 0


def test_written_values_are_visible_through_the_cache() -> None:
    store = LRUStore(MemoryStore(), 1000)
    store.set("a", b"1")
    assert store.get("a") == b"1"
    store.set("a", b"22")
    assert (store.get("a"), store.size("a")) == (b"22", 2)
    store.delete("a")
    assert store.get("a") is None
    array = zarrfs.create_array(store, data=range(10), chunks=(5,))
    array[3] = 99
    assert zarrfs.open_array(store, cache_size=0)[3] == 99


def test_metadata_and_missing_metadata_are_cached_for_a_time() -> None:
    now = [0.0]
    inner = CountingStore(MemoryStore())
    zarrfs.create_array(inner, "a", data=range(4), chunks=(2,))
    store = MetadataCacheStore(inner, 10, lambda: now[0])
    group = zarrfs.open_group(store)
    assert "a" in group
    with pytest.raises(NodeNotFoundError):
        group["nothing"]
    inner.reset()
    for _ in range(3):
        assert "a" in group
        assert "nothing" not in group
    assert inner.calls["get"] == 0
    assert group["a"][...].tolist() == [0, 1, 2, 3]
    now[0] = 11.0
    assert "a" in group
    assert inner.keys["a/zarr.json"] == 1
    group_to_write = zarrfs.open_group(store, mode="r+")
    group_to_write.create_group("nothing")
    assert "nothing" in group


def test_failed_operations_are_retried_with_growing_delays() -> None:
    failures_left = [3]

    def failure(operation: str, key: str) -> Exception | None:
        failures_left[0] -= 1
        return StoreError("busy") if failures_left[0] >= 0 else None

    delays: list[float] = []
    inner = MemoryStore()
    inner.set("a", b"1")
    store = RetryStore(FailingStore(inner, failure), 4, 1.0, delays.append, lambda: 1.0)
    assert store.get("a") == b"1"
    assert delays == [1.0, 2.0, 4.0]
    failures_left[0] = 4
    with pytest.raises(StoreError, match="busy"):
        store.get("a")
    assert len(delays) == 6


def test_permanent_errors_are_not_retried() -> None:
    delays: list[float] = []
    store = RetryStore(ReadOnlyStore(MemoryStore()), sleep=delays.append)
    with pytest.raises(ReadOnlyError):
        store.set("a", b"1")
    assert delays == []


def test_a_store_without_attempts_raises_an_error() -> None:
    inner = MemoryStore()
    inner.set("a", b"1")
    with pytest.raises(StoreError, match="attempts must be at least 1, found 0"):
        RetryStore(inner, attempts=0).get("a")
