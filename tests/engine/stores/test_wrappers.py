"""Wrapper stores: each operation is announced before it is delegated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zarrfs.engine.stores.base import StoredValue
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.undo import UndoStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError
from zarrfs.testing import FailingStore

OPERATIONS: dict[str, Callable[[WrapperStore], Any]] = {
    "get": lambda store: store.get("a/b"),
    "get_ranges": lambda store: store.get_ranges("a/b", []),
    "get_into": lambda store: store.get_into("a/b", memoryview(bytearray(1))),
    "size": lambda store: store.size("a/b"),
    "stamp": lambda store: store.stamp("a/b"),
    "version": lambda store: store.version("a/b"),
    "list_dir": lambda store: store.list_dir("a/b"),
    "list_prefix": lambda store: store.list_prefix("a/b"),
    "usage": lambda store: store.usage("a/b"),
    "set": lambda store: store.set("a/b", b"2"),
    "delete": lambda store: store.delete("a/b"),
    "delete_prefix": lambda store: store.delete_prefix("a/b"),
    "move_prefix": lambda store: store.move_prefix("a/b", "c"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_announced_before_it_is_delegated(operation: str) -> None:
    inner = MemoryStore({"a/b": b"1"})
    announced: list[tuple[str, str]] = []

    def fail(name: str, key: str) -> Exception | None:
        announced.append((name, key))
        return StoreError("refused")

    with pytest.raises(StoreError, match="refused"):
        OPERATIONS[operation](FailingStore(inner, fail))
    assert announced == [(operation, "a/b")]
    assert inner.values == {"a/b": b"1"}


def test_writes_are_undone() -> None:
    inner = MemoryStore()
    for key in ("a", "b", "c"):
        inner.set(key, b"old")
    store = UndoStore(inner)
    store.set("a", b"new")
    store.set("a", b"newer")
    store.set_parts("b", [b"n", b"ew"])
    store.delete("c")
    store.set("d", b"new")
    store.set_parts("e", [b"new"])
    assert sorted(inner.list_prefix()) == ["a", "b", "d", "e"]
    store.undo()
    assert {key: inner.get(key) for key in inner.list_prefix()} == dict.fromkeys("abc", b"old")
    store.keep_old = False
    store.set("a", b"new")
    store.undo()
    assert sorted(inner.list_prefix()) == ["b", "c"]


def test_a_value_is_closed_at_the_end_of_a_with_block() -> None:
    closed: list[bool] = []

    class Value(StoredValue):
        def close(self) -> None:
            closed.append(True)

    with Value(MemoryStore(), "a", None):
        assert closed == []
    assert closed == [True]
