"""Stores that remember and stores that try again: what they ask of the one behind them, and when."""

from __future__ import annotations

import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore, FailingStore, ReadOnlyStore
from zarrfs.errors import NodeNotFoundError, ReadOnlyError, StoreError


def test_values_are_kept_up_to_a_bound() -> None:
    behind = CountingStore(MemoryStore())
    store = LRUStore(behind, 250)
    for key in "abcd":
        behind.set(key, key.encode() * 100)
    for _ in range(3):
        assert store.get("a") == b"a" * 100
    assert behind.calls["get"] == 1
    store.get("b")
    assert store.nbytes == 200
    store.get("a")
    store.get("c")
    assert store.nbytes == 200
    store.get("a")
    assert behind.calls["get"] == 3
    store.get("b")
    assert behind.calls["get"] == 4
    behind.set("big", bytes(1000))
    store.get("big")
    store.get("big")
    assert behind.calls["get"] == 6
    store.forget()
    assert store.nbytes == 0


def test_what_is_written_is_seen() -> None:
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


def test_metadata_are_asked_for_once_in_a_while_even_where_there_are_none() -> None:
    now = [0.0]
    behind = CountingStore(MemoryStore())
    zarrfs.create_array(behind, "a", data=range(4), chunks=(2,))
    store = MetadataCacheStore(behind, 10, lambda: now[0])
    group = zarrfs.open_group(store)
    assert "a" in group
    with pytest.raises(NodeNotFoundError):
        group["nothing"]
    behind.reset()
    for _ in range(3):
        assert "a" in group
        assert "nothing" not in group
    assert behind.calls["get"] == 0
    assert group["a"][...].tolist() == [0, 1, 2, 3]
    now[0] = 11.0
    assert "a" in group
    assert behind.keys["a/zarr.json"] == 1
    group_to_write = zarrfs.open_group(store, mode="r+")
    group_to_write.create_group("nothing")
    assert "nothing" in group


def test_failures_are_tried_again_and_waits_grow() -> None:
    left = [3]

    def failure(operation: str, key: str) -> Exception | None:
        left[0] -= 1
        return StoreError("busy") if left[0] >= 0 else None

    waits: list[float] = []
    inner = MemoryStore()
    inner.set("a", b"1")
    store = RetryStore(FailingStore(inner, failure), 4, 1.0, waits.append, lambda: 1.0)
    assert store.get("a") == b"1"
    assert waits == [1.0, 2.0, 4.0]
    left[0] = 4
    with pytest.raises(StoreError, match="busy"):
        store.get("a")
    assert len(waits) == 6


def test_what_will_never_be_better_is_not_tried_again() -> None:
    waits: list[float] = []
    store = RetryStore(ReadOnlyStore(MemoryStore()), sleep=waits.append)
    with pytest.raises(ReadOnlyError):
        store.set("a", b"1")
    assert waits == []
