"""The keys of a store below a prefix, as a separate store."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage, check_key

__all__ = ["PrefixStore"]


class PrefixStore(Store):
    """The keys of ``store`` below ``prefix``. Does not close ``store``."""

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self.prefix = check_key(prefix)
        self.read_only = store.read_only
        self.listable = store.listable
        self.in_process = store.in_process
        self.synchronized = store.synchronized
        self.renames = store.renames
        self.concurrency = store.concurrency

    @property
    def url(self) -> str:
        return f"{self.store.url}/{self.prefix}"

    def limit_requests(self, count: int) -> None:
        self.store.limit_requests(count)
        self.concurrency = self.store.concurrency

    def _full_key(self, key: str) -> str:
        if self._closed:
            self._check_open()
        return f"{self.prefix}/{check_key(key)}"

    def _full_prefix(self, prefix: str) -> str:
        self._check_open()
        return f"{self.prefix}/{prefix}" if prefix else self.prefix

    def get(self, key: str) -> Buffer | None:
        return self.store.get(self._full_key(key))

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        return self.store.get_within(self._full_key(key), max_nbytes)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self.store.get_ranges(self._full_key(key), ranges)

    def get_into(self, key: str, out: memoryview) -> int | None:
        return self.store.get_into(self._full_key(key), out)

    def size(self, key: str) -> int | None:
        return self.store.size(self._full_key(key))

    def stamp(self, key: str) -> Hashable | None:
        return self.store.stamp(self._full_key(key))

    def version(self, key: str) -> Hashable | None:
        return self.store.version(self._full_key(key))

    def is_irregular(self, key: str) -> bool:
        return self.store.is_irregular(self._full_key(key))

    def list_dir(self, prefix: str = "") -> Listing:
        return self.store.list_dir(self._full_prefix(prefix))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        prefix_length = len(self.prefix) + 1
        return (key[prefix_length:] for key in self.store.list_prefix(self._full_prefix(prefix)))

    def is_empty(self, prefix: str = "") -> bool:
        return self.store.is_empty(self._full_prefix(prefix))

    def missing_container(self) -> str | None:
        return self.store.missing_container()

    def usage(self, prefix: str = "") -> Usage:
        return self.store.usage(self._full_prefix(prefix))

    def set(self, key: str, value: Buffer) -> None:
        self.store.set(self._full_key(key), value)

    def delete(self, key: str) -> None:
        self.store.delete(self._full_key(key))

    def delete_prefix(self, prefix: str) -> None:
        self.store.delete_prefix(self._full_prefix(prefix))

    def move_prefix(self, prefix: str, target: str) -> None:
        self.store.move_prefix(self._full_prefix(prefix), self._full_prefix(target))

    def flush(self) -> None:
        self.store.flush()

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return self.store.lock(self._full_key(key))
