"""The base class of wrapper stores, which delegate their operations to another store, and a read-only wrapper."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage

__all__ = ["ReadOnlyStore", "WrapperStore"]


class WrapperStore(Store):
    """Delegates all operations to another store, which it owns. The base class of wrapper stores."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read_only = store.read_only
        self.listable = store.listable
        self.documents_before_chunks = store.documents_before_chunks
        self.in_process = store.in_process
        self.synchronized = store.synchronized
        self.renames = store.renames
        self.concurrency = store.concurrency

    def _before(self, operation: str, key: str) -> None:
        """Called before each operation. Can wait or raise an error."""

    @property
    def url(self) -> str:
        return self.store.url

    def limit_requests(self, count: int) -> None:
        self.store.limit_requests(count)
        self.concurrency = self.store.concurrency

    def get(self, key: str) -> Buffer | None:
        self._before("get", key)
        return self.store.get(key)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        self._before("get_ranges", key)
        return self.store.get_ranges(key, ranges)

    def get_into(self, key: str, out: memoryview) -> int | None:
        self._before("get_into", key)
        return self.store.get_into(key, out)

    def size(self, key: str) -> int | None:
        self._before("size", key)
        return self.store.size(key)

    def stamp(self, key: str) -> Hashable | None:
        self._before("stamp", key)
        return self.store.stamp(key)

    def version(self, key: str) -> Hashable | None:
        self._before("version", key)
        return self.store.version(key)

    def is_irregular(self, key: str) -> bool:
        return self.store.is_irregular(key)

    def list_dir(self, prefix: str = "") -> Listing:
        self._before("list_dir", prefix)
        return self.store.list_dir(prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._before("list_prefix", prefix)
        return self.store.list_prefix(prefix)

    def missing_container(self) -> str | None:
        return self.store.missing_container()

    def usage(self, prefix: str = "") -> Usage:
        self._before("usage", prefix)
        return self.store.usage(prefix)

    def set(self, key: str, value: Buffer) -> None:
        self._before("set", key)
        self.store.set(key, value)

    def delete(self, key: str) -> None:
        self._before("delete", key)
        self.store.delete(key)

    def delete_prefix(self, prefix: str) -> None:
        self._before("delete_prefix", prefix)
        self.store.delete_prefix(prefix)

    def move_prefix(self, prefix: str, target: str) -> None:
        self._before("move_prefix", prefix)
        self.store.move_prefix(prefix, target)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return self.store.lock(key)

    def flush(self) -> None:
        self.store.flush()

    def clean(self, *, dry_run: bool = False) -> list[str]:
        return self.store.clean(dry_run=dry_run)

    def close(self) -> None:
        super().close()
        self.store.close()


class ReadOnlyStore(WrapperStore):
    """Raises ReadOnlyError for all modifications."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read_only = True

    def set(self, key: str, value: Buffer) -> None:
        raise self._read_only_error(f"writing {key!r}")

    def delete(self, key: str) -> None:
        raise self._read_only_error(f"deleting {key!r}")

    def delete_prefix(self, prefix: str) -> None:
        raise self._read_only_error(f"deleting the keys below {prefix!r}")
