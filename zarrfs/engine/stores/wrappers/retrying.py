"""A store that retries failed operations with exponential backoff and jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from errno import EBADF
from typing import TypeVar

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import KeyNameError, ReadOnlyError, StoreError
from zarrfs.logs import logger

__all__ = ["RetryStore"]

T = TypeVar("T")

NOT_RETRIED_ERRORS = (KeyNameError, ReadOnlyError)
MAX_WAIT_SECONDS = 30.0


class RetryStore(WrapperStore):
    """Tries each operation up to ``attempts`` times. The first delay is about ``wait`` seconds; each next one doubles.

    Only operations that raise StoreError are repeated. Operations are atomic, so repeating them is safe. ``sleep``
    and ``chance`` (a random number from 0 to 1) can be replaced for tests.
    """

    def __init__(
        self,
        store: Store,
        attempts: int = 4,
        wait: float = 0.2,
        sleep: Callable[[float], object] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(store)
        self.attempts = attempts
        self.wait = wait
        self._sleep = sleep
        self._chance = chance

    def _retry(self, operation: Callable[[], T]) -> T:
        for attempt in range(1, self.attempts + 1):
            try:
                return operation()
            except StoreError as error:
                # A store that is closed stays closed.
                is_final = isinstance(error, NOT_RETRIED_ERRORS) or error.errno == EBADF
                if is_final or attempt == self.attempts:
                    raise
                # A random factor from 0.5 to 1, so that clients that failed at the same time do not retry together.
                delay = min(MAX_WAIT_SECONDS, self.wait * 2 ** (attempt - 1)) * (0.5 + self._chance() / 2)
                logger.info("%s; trying again in %.2g s (%d of %d)", error, delay, attempt, self.attempts - 1)
                self._sleep(delay)
        raise StoreError(f"{self.url}: attempts must be at least 1, found {self.attempts}")

    def get(self, key: str) -> Buffer | None:
        return self._retry(lambda: self.store.get(key))

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        return self._retry(lambda: self.store.get_within(key, max_nbytes))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self._retry(lambda: self.store.get_ranges(key, ranges))

    def get_into(self, key: str, out: memoryview) -> int | None:
        return self._retry(lambda: self.store.get_into(key, out))

    def size(self, key: str) -> int | None:
        return self._retry(lambda: self.store.size(key))

    def stamp(self, key: str) -> Hashable | None:
        return self._retry(lambda: self.store.stamp(key))

    def version(self, key: str) -> Hashable | None:
        return self._retry(lambda: self.store.version(key))

    def list_dir(self, prefix: str = "") -> Listing:
        return self._retry(lambda: self.store.list_dir(prefix))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        # Collected first: after a failure the keys that were already yielded would be repeated.
        return iter(self._retry(lambda: list(self.store.list_prefix(prefix))))

    def usage(self, prefix: str = "") -> Usage:
        return self._retry(lambda: self.store.usage(prefix))

    def set(self, key: str, value: Buffer) -> None:
        self._retry(lambda: self.store.set(key, value))

    def move_prefix(self, prefix: str, target: str) -> None:
        self._retry(lambda: self.store.move_prefix(prefix, target))

    def delete(self, key: str) -> None:
        self._retry(lambda: self.store.delete(key))

    def delete_prefix(self, prefix: str) -> None:
        self._retry(lambda: self.store.delete_prefix(prefix))
