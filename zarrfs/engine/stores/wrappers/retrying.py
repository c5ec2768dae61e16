"""A store that asks again when another one fails: waits that double, with some chance in them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import KeyNameError, ReadOnlyError, StoreError
from zarrfs.logs import logger

__all__ = ["RetryStore"]

T = TypeVar("T")

NEVER_BETTER = (KeyNameError, ReadOnlyError)
LONGEST_WAIT = 30.0


class RetryStore(WrapperStore):
    """Tries each operation up to ``attempts`` times, waiting about ``wait`` seconds, then twice as long, and so on.

    Only what a store says of itself (StoreError) is tried again: each operation is whole or not at all, so doing it
    twice does no harm. ``sleep`` and ``chance`` (0 to 1) are for tests.
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

    def _try(self, operation: Callable[[], T]) -> T:
        for attempt in range(1, self.attempts + 1):
            try:
                return operation()
            except StoreError as error:
                if isinstance(error, NEVER_BETTER) or attempt == self.attempts:
                    raise
                # Between half and all of it, so that many who failed together do not come back together.
                pause = min(LONGEST_WAIT, self.wait * 2 ** (attempt - 1)) * (0.5 + self._chance() / 2)
                logger.info("%s; trying again in %.2g s (%d of %d)", error, pause, attempt, self.attempts - 1)
                self._sleep(pause)
        raise StoreError(f"{self.url}: attempts must be at least 1, found {self.attempts}")

    def get(self, key: str) -> Buffer | None:
        return self._try(lambda: self.store.get(key))

    def get_within(self, key: str, most: int | None) -> Buffer | None:
        return self._try(lambda: self.store.get_within(key, most))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self._try(lambda: self.store.get_ranges(key, ranges))

    def get_into(self, key: str, out: memoryview) -> int | None:
        return self._try(lambda: self.store.get_into(key, out))

    def size(self, key: str) -> int | None:
        return self._try(lambda: self.store.size(key))

    def stamp(self, key: str) -> Hashable | None:
        return self._try(lambda: self.store.stamp(key))

    def version(self, key: str) -> Hashable | None:
        return self._try(lambda: self.store.version(key))

    def list_dir(self, prefix: str = "") -> Listing:
        return self._try(lambda: self.store.list_dir(prefix))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        # Taken whole: what was yielded before a failure would come again.
        return iter(self._try(lambda: list(self.store.list_prefix(prefix))))

    def usage(self, prefix: str = "") -> Usage:
        return self._try(lambda: self.store.usage(prefix))

    def set(self, key: str, value: Buffer) -> None:
        self._try(lambda: self.store.set(key, value))

    def move_prefix(self, prefix: str, target: str) -> None:
        self._try(lambda: self.store.move_prefix(prefix, target))

    def delete(self, key: str) -> None:
        self._try(lambda: self.store.delete(key))

    def delete_prefix(self, prefix: str) -> None:
        self._try(lambda: self.store.delete_prefix(prefix))
