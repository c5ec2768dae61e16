"""Wrapper stores: counting, read-only, delays and failures. Other operations are delegated to the wrapped store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage

__all__ = ["CountingStore", "FailingStore", "LatencyStore", "ReadOnlyStore", "WrapperStore"]


class WrapperStore(Store):
    """Delegates all operations to another store, which it owns. The base class of wrapper stores."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read_only = store.read_only
        self.listable = store.listable
        self.in_process = store.in_process
        self.synchronized = store.synchronized
        self.concurrency = store.concurrency

    def _before(self, operation: str, key: str) -> None:
        """Called before each operation. Can wait or raise an error."""

    @property
    def url(self) -> str:
        return self.store.url

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

    def list_dir(self, prefix: str = "") -> Listing:
        self._before("list_dir", prefix)
        return self.store.list_dir(prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._before("list_prefix", prefix)
        return self.store.list_prefix(prefix)

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


class CountingStore(WrapperStore):
    """Counts calls and bytes, for tests.

    Attributes:
        calls: the number of calls of each operation.
        bytes_read, bytes_written: the number of bytes returned by reads and passed to ``set``.
        keys: the number of reads of each key.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Set all counts to zero."""
        with self._lock:
            self.calls: Counter[str] = Counter()
            self.keys: Counter[str] = Counter()
            self.bytes_read = 0
            self.bytes_written = 0

    def _before(self, operation: str, key: str) -> None:
        with self._lock:
            self.calls[operation] += 1

    def _count_read(self, key: str, nbytes: int) -> None:
        with self._lock:
            self.keys[key] += 1
            self.bytes_read += nbytes

    def get(self, key: str) -> Buffer | None:
        value = super().get(key)
        self._count_read(key, 0 if value is None else len(value))
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        values = super().get_ranges(key, ranges)
        self._count_read(key, sum(map(len, values or ())))
        return values

    def get_into(self, key: str, out: memoryview) -> int | None:
        size = super().get_into(key, out)
        self._count_read(key, min(size or 0, len(out)))
        return size

    def set(self, key: str, value: Buffer) -> None:
        super().set(key, value)
        with self._lock:
            self.bytes_written += memoryview(value).nbytes


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


class LatencyStore(WrapperStore):
    """Calls ``wait(operation, key)`` before each operation, to simulate latency or to wait for an event."""

    def __init__(self, store: Store, wait: Callable[[str, str], object]) -> None:
        super().__init__(store)
        self._wait = wait

    def _before(self, operation: str, key: str) -> None:
        self._wait(operation, key)


class FailingStore(WrapperStore):
    """Calls ``failure(operation, key)`` before each operation, and raises the exception that it returns, if any."""

    def __init__(self, store: Store, failure: Callable[[str, str], Exception | None]) -> None:
        super().__init__(store)
        self._failure = failure

    def _before(self, operation: str, key: str) -> None:
        error = self._failure(operation, key)
        if error is not None:
            raise error
