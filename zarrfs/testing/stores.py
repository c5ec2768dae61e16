"""Stores for tests: they count, delay or fail the operations of the store that they wrap."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from zarrfs.engine.stores.base import Buffer, ByteRange, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["CountingStore", "FailingStore", "LatencyStore", "ObservedStore"]

OBSERVED = (
    *("get", "get_ranges", "get_into", "size", "stamp", "version", "list_dir", "list_prefix", "usage"),
    *("set", "delete", "delete_prefix", "move_prefix"),
)


class ObservedStore(WrapperStore):
    """Calls ``_before`` before each operation that accesses keys.

    Reads with a limit, tests of existence, and changes of several parts or keys are performed, and announced, as the
    operations on one key of which they consist.
    """

    def _before(self, operation: str, key: str) -> None:
        """Can wait or raise an error."""

    def perform(self, name: str, *args: Any) -> Any:
        if name in OBSERVED:
            self._before(name, args[0])
        return super().perform(name, *args)

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        self._before("set", key)
        self.store.create(key, parts)

    get_within = Store.get_within
    exists = Store.exists
    listing_stamp = Store.listing_stamp
    set_parts = Store.set_parts
    delete_keys = Store.delete_keys


class CountingStore(ObservedStore):
    """Counts calls and bytes.

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
        self._count_written(value)

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        super().create(key, parts)
        self._count_written(*parts)

    def _count_written(self, *parts: Buffer) -> None:
        with self._lock:
            self.bytes_written += sum(memoryview(part).nbytes for part in parts)


class LatencyStore(ObservedStore):
    """Calls ``wait(operation, key)`` before each operation, to simulate latency or to wait for an event."""

    def __init__(self, store: Store, wait: Callable[[str, str], object]) -> None:
        super().__init__(store)
        self._wait = wait

    def _before(self, operation: str, key: str) -> None:
        self._wait(operation, key)


class FailingStore(ObservedStore):
    """Calls ``failure(operation, key)`` before each operation, and raises the exception that it returns, if any."""

    def __init__(self, store: Store, failure: Callable[[str, str], Exception | None]) -> None:
        super().__init__(store)
        self._failure = failure

    def _before(self, operation: str, key: str) -> None:
        error = self._failure(operation, key)
        if error is not None:
            raise error
