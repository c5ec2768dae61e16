"""The base classes of wrapper stores, and a read-only wrapper.

Each operation of a wrapper passes through the method ``perform`` of its class. An operation that is added to ``Store``
is added to its table ``OPERATIONS`` and to ``DelegatingStore``, and all wrappers then treat it.
"""

# The results of ``perform`` have the types of the operations.
# mypy: no-warn-return-any

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, RequestStatistics, Store, Usage

__all__ = ["DelegatingStore", "ReadOnlyStore", "WrapperStore", "unwrapped"]

COMPOSED = {
    "get_within": "get",
    "exists": "size",
    "is_empty": "list_dir",
    "listing_stamp": "list_dir",
    "set_parts": "set",
    "create": "set",
    "delete_keys": "delete",
}
"""Operation -> the operation that states or does the same in another form. A class that overrides only the second one
changes both.
"""

REFUSED = {
    "set": "writing {!r}",
    "set_parts": "writing {!r}",
    "create": "writing {!r}",
    "delete": "deleting {!r}",
    "delete_prefix": "deleting the keys below {!r}",
    "delete_keys": "deleting {!r}",
    "move_prefix": "moving the keys below {!r}",
}
"""The operations that change keys -> what the message of a read-only store states."""


class DelegatingStore(Store):
    """Passes each operation to the method ``perform``, with its name and its arguments."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, basis in COMPOSED.items():
            is_inherited = name not in vars(cls) and getattr(cls, name) is getattr(DelegatingStore, name)
            if basis in vars(cls) and is_inherited:
                setattr(cls, name, getattr(Store, name))

    def _copy_properties(self, store: Store) -> None:
        """Set what ``store`` states about itself."""
        self.read_only = store.read_only
        self.listable = store.listable
        self.documents_before_chunks = store.documents_before_chunks
        self.in_process = store.in_process
        self.synchronized = store.synchronized
        self.renames = store.renames
        self.concurrency = store.concurrency
        self.is_remote = store.is_remote

    @abstractmethod
    def perform(self, name: str, *args: Any) -> Any:
        """Return the result of an operation: the name of a method of ``Store``, and its arguments in their order.
        ``OPERATIONS`` states for each name which arguments are keys or prefixes, and whether it changes anything.
        """

    def get(self, key: str) -> Buffer | None:
        return self.perform("get", key)

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        return self.perform("get_within", key, max_nbytes)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self.perform("get_ranges", key, ranges)

    def get_into(self, key: str, out: memoryview) -> int | None:
        return self.perform("get_into", key, out)

    def size(self, key: str) -> int | None:
        return self.perform("size", key)

    def stamp(self, key: str) -> Hashable | None:
        return self.perform("stamp", key)

    def version(self, key: str) -> Hashable | None:
        return self.perform("version", key)

    def exists(self, key: str) -> bool:
        return self.perform("exists", key)

    def is_irregular(self, key: str) -> bool:
        return self.perform("is_irregular", key)

    def list_dir(self, prefix: str = "") -> Listing:
        return self.perform("list_dir", prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return self.perform("list_prefix", prefix)

    def is_empty(self, prefix: str = "") -> bool:
        return self.perform("is_empty", prefix)

    def listing_stamp(self, prefix: str = "") -> Hashable | None:
        return self.perform("listing_stamp", prefix)

    def missing_container(self) -> str | None:
        return self.perform("missing_container")

    def usage(self, prefix: str = "") -> Usage:
        return self.perform("usage", prefix)

    def set(self, key: str, value: Buffer) -> None:
        self.perform("set", key, value)

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        self.perform("set_parts", key, parts)

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        self.perform("create", key, parts)

    def delete(self, key: str) -> None:
        self.perform("delete", key)

    def delete_prefix(self, prefix: str) -> None:
        self.perform("delete_prefix", prefix)

    def delete_keys(self, keys: Sequence[str]) -> None:
        self.perform("delete_keys", keys)

    def move_prefix(self, prefix: str, target: str) -> None:
        self.perform("move_prefix", prefix, target)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return self.perform("lock", key)

    def flush(self) -> None:
        self.perform("flush")

    def roll_back(self) -> None:
        self.perform("roll_back")

    def clean(self, *, dry_run: bool = False) -> list[str]:
        return self.perform("clean", dry_run)


class WrapperStore(DelegatingStore):
    """Delegates all operations to another store, which it owns. The base class of wrapper stores.

    A subclass overrides ``perform``, through which each operation passes, or single operations. ``perform`` can be
    called by several threads. Values that are opened with ``open_value`` and read in parts use the operations of the
    wrapper. A wrapper does not prefetch. ``store`` is the other store.

    Example, which prints the operations::

        class PrintingStore(WrapperStore):
            def perform(self, name, *args):
                print(name, *args[:1])
                return super().perform(name, *args)
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._copy_properties(store)

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def directory(self) -> str | None:
        return self.store.directory

    def limit_requests(self, count: int) -> None:
        self.store.limit_requests(count)
        self.concurrency = self.store.concurrency

    def repeat_requests(self, count: int) -> None:
        self.store.repeat_requests(count)

    @property
    def request_statistics(self) -> RequestStatistics:
        return self.store.request_statistics

    def perform(self, name: str, *args: Any) -> Any:
        """Return the result of the operation ``name`` of the other store. All operations pass through this method."""
        if name == "clean":
            return self.store.clean(dry_run=args[0])
        return getattr(self.store, name)(*args)

    def _complete(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the result of an operation that has ended. The keys of ``list_prefix`` are collected first: after a
        failure the keys that were already yielded would be repeated.
        """
        result = WrapperStore.perform(self, name, *args)
        return iter(list(result)) if name == "list_prefix" else result

    def close(self) -> None:
        super().close()
        self.store.close()


def unwrapped(store: Store) -> Store:
    """Return the store inside all wrappers."""
    while isinstance(store, WrapperStore):
        store = store.store
    return store


class ReadOnlyStore(WrapperStore):
    """Raises ReadOnlyError for all modifications."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read_only = True

    def perform(self, name: str, *args: Any) -> Any:
        if name in REFUSED:
            raise self._read_only_error(REFUSED[name].format(args[0]))
        return super().perform(name, *args)
