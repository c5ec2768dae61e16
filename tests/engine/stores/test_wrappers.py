"""Wrapper stores: each operation of ``Store`` passes through one method of the wrapper to the wrapped store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from zarrfs.engine.hierarchy.staging import StagingStore
from zarrfs.engine.stores.base import OPERATIONS, ByteRange, Store, StoredValue
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.remote.prefetching import PrefetchingStore
from zarrfs.engine.stores.wrappers.caching import LRUStore, MetadataCacheStore
from zarrfs.engine.stores.wrappers.closed import ClosedStore
from zarrfs.engine.stores.wrappers.plugin import PluginStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.engine.stores.wrappers.synchronizers import SynchronizedStore, ThreadSynchronizer
from zarrfs.engine.stores.wrappers.timeout import TimeoutStore
from zarrfs.engine.stores.wrappers.undo import UndoStore
from zarrfs.engine.stores.wrappers.wrapper import REFUSED, DelegatingStore, ReadOnlyStore, WrapperStore
from zarrfs.errors import ReadOnlyError, StoreError
from zarrfs.testing import CountingStore, FailingStore, LatencyStore
from zarrfs.testing.stores import OBSERVED, ObservedStore

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "get": ("a/b",),
    "get_within": ("a/b", 10),
    "get_ranges": ("a/b", [ByteRange(0, 1)]),
    "get_into": ("a/b", memoryview(bytearray(1))),
    "size": ("a/b",),
    "stamp": ("a/b",),
    "version": ("a/b",),
    "exists": ("a/b",),
    "is_irregular": ("a/b",),
    "list_dir": ("a",),
    "list_prefix": ("a",),
    "is_empty": ("a",),
    "listing_stamp": ("a",),
    "missing_container": (),
    "usage": ("a",),
    "set": ("a/b", b"2"),
    "set_parts": ("a/b", [b"2"]),
    "create": ("a/new", [b"2"]),
    "delete": ("a/b",),
    "delete_prefix": ("a",),
    "delete_keys": (["a/b"],),
    "move_prefix": ("a", "c"),
    "lock": ("a/b",),
    "flush": (),
    "roll_back": (),
    "clean": (),
}
"""Operation -> arguments."""

OTHER_METHODS = {
    "open_value": "the operations of the wrapper read the value",
    "prefetch": "a wrapper reads each value by itself",
    "limit_requests": "changes a property",
    "repeat_requests": "changes a property",
    "close": "some wrappers do not own the store",
}

WRAPPERS: dict[type[DelegatingStore], Callable[[Store], Store]] = {
    WrapperStore: WrapperStore,
    ReadOnlyStore: ReadOnlyStore,
    RetryStore: RetryStore,
    TimeoutStore: lambda store: TimeoutStore(store, 60),
    PluginStore: lambda store: PluginStore(store, "test"),
    UndoStore: UndoStore,
    SynchronizedStore: lambda store: SynchronizedStore(store, ThreadSynchronizer()),
    LRUStore: lambda store: LRUStore(store, 100),
    MetadataCacheStore: lambda store: MetadataCacheStore(store, 60),
    PrefixStore: lambda store: PrefixStore(store, "p"),
    StagingStore: lambda store: StagingStore(store, "p"),
    PrefetchingStore: lambda store: PrefetchingStore(store, NoQueue(), lambda key, result: None),  # type: ignore[arg-type]
    ClosedStore: ClosedStore,
    ObservedStore: ObservedStore,
    CountingStore: CountingStore,
    LatencyStore: lambda store: LatencyStore(store, lambda operation, key: None),
    FailingStore: lambda store: FailingStore(store, lambda operation, key: None),
}

COMPOSITIONS = {
    "get_within": "get",
    "get_into": "get",
    "version": "stamp",
    "exists": "size",
    "set_parts": "set",
    "create": "set",
    "delete_keys": "delete",
    "delete_prefix": "list_prefix",
    "move_prefix": "list_prefix",
}
"""Operation -> the operation of which some wrappers compose it."""

NOT_DELEGATED = {
    (PrefixStore, "clean"),
    (StagingStore, "clean"),
    (MetadataCacheStore, "listing_stamp"),
    (ObservedStore, "listing_stamp"),
    (CountingStore, "listing_stamp"),
    (LatencyStore, "listing_stamp"),
    (FailingStore, "listing_stamp"),
}
"""The temporary files are those of the whole store. A stamp of the store is not that of a cached listing."""


class NoQueue:
    def take(self, key: str) -> None:
        return None


class RecordingStore(WrapperStore):
    """Records the operations."""

    def __init__(self) -> None:
        super().__init__(MemoryStore({"a/b": b"1", "p/a/b": b"1"}))
        self.names: list[str] = []

    def perform(self, name: str, *args: Any) -> Any:
        self.names.append(name)
        return super().perform(name, *args)


def public_methods(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if callable(member) and not name.startswith("_"):
            yield name


def wrapper_classes(kind: type[DelegatingStore] = DelegatingStore) -> Iterator[type[DelegatingStore]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("zarrfs."):
            yield each
            yield from wrapper_classes(each)


def test_every_operation_and_every_wrapper_is_tested() -> None:
    methods = set(public_methods(Store)) - set(OTHER_METHODS)
    assert methods == set(OPERATIONS) == set(ARGUMENTS) == set(public_methods(DelegatingStore)) - {"perform"}
    assert {each for each in wrapper_classes() if not each.__name__.startswith("_")} == set(WRAPPERS)


@pytest.mark.parametrize("kind", WRAPPERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("operation", ARGUMENTS)
def test_every_wrapper_delegates_every_operation(operation: str, kind: type[DelegatingStore]) -> None:
    inner = RecordingStore()
    wrapper = WRAPPERS[kind](inner)
    perform = getattr(wrapper, operation)
    if kind is ClosedStore:
        with pytest.raises(StoreError, match="was closed; open it again"):
            perform(*ARGUMENTS[operation])
    elif kind is ReadOnlyStore and operation in REFUSED:
        with pytest.raises(ReadOnlyError, match=r"is open read-only: .*a"):
            perform(*ARGUMENTS[operation])
    else:
        result = perform(*ARGUMENTS[operation])
        if operation == "list_prefix":
            assert list(result) == ["a/b"]
        elif operation == "lock":
            with result:
                pass
        if (kind, operation) not in NOT_DELEGATED:
            assert {operation, COMPOSITIONS.get(operation)} & set(inner.names)
        return
    assert inner.names == []


@pytest.mark.parametrize("operation", ARGUMENTS)
def test_every_operation_states_its_names_and_whether_it_changes_anything(
    operation: str, tmp_path: Path
) -> None:
    """The names are those of the parameters. An operation that changes keys is refused by a read-only store."""
    stated = OPERATIONS[operation]
    parameters = list(signature(getattr(Store, operation)).parameters)[1:]
    expected = {"key": "key", "keys": "keys", "prefix": "prefixes"}.get(next(iter(parameters), ""))
    assert stated.names == expected
    store = LocalStore(tmp_path, read_only=True)
    changes_keys = stated.changes and stated.names is not None
    assert changes_keys == (operation in REFUSED)
    if changes_keys:
        with pytest.raises(ReadOnlyError):
            getattr(store, operation)(*ARGUMENTS[operation])


def test_changed_keys_are_those_of_the_arguments() -> None:
    changed = {name: OPERATIONS[name].changed_keys(ARGUMENTS[name]) for name in ARGUMENTS}
    assert {name: keys for name, keys in changed.items() if keys != ()} == {
        **dict.fromkeys(("set", "set_parts", "delete"), ("a/b",)),
        "create": ("a/new",),
        "delete_keys": ["a/b"],
        "delete_prefix": None,
        "move_prefix": None,
    }


@pytest.mark.parametrize("operation", ARGUMENTS)
def test_every_operation_passes_through_one_method(operation: str) -> None:
    """A wrapper that overrides ``perform`` sees each operation once, before the wrapped store."""
    inner = RecordingStore()

    class Refusing(WrapperStore):
        def perform(self, name: str, *args: Any) -> Any:
            raise StoreError(f"{name} is refused")

    with pytest.raises(StoreError, match=f"^{operation} is refused"):
        getattr(Refusing(inner), operation)(*ARGUMENTS[operation])
    assert inner.names == []


@pytest.mark.parametrize(
    ("basis", "operation"),
    [
        ("get", "get_within"),
        ("size", "exists"),
        ("set", "set_parts"),
        ("set", "create"),
        ("delete", "delete_keys"),
    ],
)
def test_a_wrapper_that_overrides_one_operation_changes_those_with_the_same_effect(
    basis: str, operation: str
) -> None:
    def refuse(self: Store, *args: Any) -> Any:
        raise StoreError("refused")

    kind = type("Refusing", (WrapperStore,), {basis: refuse})
    with pytest.raises(StoreError, match="refused"):
        getattr(kind(MemoryStore()), operation)(*ARGUMENTS[operation])


@pytest.mark.parametrize(
    "operation",
    sorted(set(ARGUMENTS) - set(COMPOSITIONS) | {"get_into", "version", "delete_prefix", "move_prefix"}),
)
def test_an_operation_is_announced_before_it_is_delegated(operation: str) -> None:
    inner = MemoryStore({"a/b": b"1"})
    announced: list[tuple[str, str]] = []

    def fail(name: str, key: str) -> Exception | None:
        announced.append((name, key))
        return StoreError("refused")

    store = FailingStore(inner, fail)
    if operation in OBSERVED:
        with pytest.raises(StoreError, match="refused"):
            getattr(store, operation)(*ARGUMENTS[operation])
        assert announced == [(operation, ARGUMENTS[operation][0])]
    else:
        getattr(store, operation)(*ARGUMENTS[operation])
        assert announced == []
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
    store.delete_keys(["a", "b"])
    store.move_prefix("", "moved")
    store.delete_prefix("")
    assert list(inner.list_prefix()) == []
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


@pytest.mark.parametrize("kind", WRAPPERS, ids=lambda kind: kind.__name__)
def test_a_wrapper_states_what_its_store_states(kind: type[DelegatingStore], tmp_path: Path) -> None:
    local = LocalStore(tmp_path)
    local.is_remote = True
    wrapper = WRAPPERS[kind](local)
    assert wrapper.is_remote
    directory = f"{tmp_path}/p" if issubclass(kind, PrefixStore) else str(tmp_path)
    assert wrapper.directory == (None if kind is ClosedStore else directory)
    assert not WRAPPERS[kind](MemoryStore()).is_remote
    assert WRAPPERS[kind](MemoryStore()).directory is None
