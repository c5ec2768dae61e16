"""A store that retries failed operations with exponential backoff and jitter."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from errno import EBADF
from typing import Any, TypeVar

from zarrfs.engine.stores.base import RequestStatistics, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import ConflictError, KeyNameError, ReadOnlyError, StoreError
from zarrfs.logs import logger

__all__ = ["RetryStore", "retry_delay"]

T = TypeVar("T")

NOT_RETRIED_ERRORS = (ConflictError, KeyNameError, ReadOnlyError)
NOT_RETRIED = ("is_irregular", "lock", "missing_container", "flush", "roll_back", "clean")
"""Operations that concern files of this machine, or of which a failure has a cause that remains."""

MAX_WAIT_SECONDS = 30.0


def retry_delay(attempt: int, wait: float, chance: Callable[[], float] = random.random) -> float:
    """Return the seconds before an operation is repeated after its failure number ``attempt``, which starts with 1.

    A random factor from 0.5 to 1, so that clients that failed at the same time do not retry together.
    """
    delay = min(MAX_WAIT_SECONDS, wait * 2.0 ** (attempt - 1))
    return delay * (0.5 + chance() / 2)


class RetryStore(WrapperStore):
    """Tries each operation up to ``attempts`` times. The first delay is about ``wait`` seconds; each next one doubles.

    Only operations that raise StoreError are repeated. Operations are atomic, so repeating them is safe. The store
    itself repeats no requests then, so that a failure is not repeated by both of them. ``sleep``
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
        store.repeat_requests(0)
        self.attempts = attempts
        self._retries = 0
        self._lock = threading.Lock()
        self.wait = wait
        self._sleep = sleep
        self._chance = chance

    @property
    def request_statistics(self) -> RequestStatistics:
        found = super().request_statistics
        return found._replace(retries=found.retries + self._retries)

    def _retry(self, operation: Callable[[], T]) -> T:
        for attempt in range(1, self.attempts + 1):
            try:
                return operation()
            except StoreError as error:
                # A store that is closed stays closed.
                is_final = isinstance(error, NOT_RETRIED_ERRORS) or error.errno == EBADF
                if is_final or attempt == self.attempts:
                    raise
                delay = retry_delay(attempt, self.wait, self._chance)
                logger.info("%s; trying again in %.2g s (%d of %d)", error, delay, attempt, self.attempts - 1)
                with self._lock:
                    self._retries += 1
                self._sleep(delay)
        raise StoreError(f"{self.url}: attempts must be at least 1, found {self.attempts}")

    def perform(self, name: str, *args: Any) -> Any:
        if name in NOT_RETRIED:
            return super().perform(name, *args)
        return self._retry(lambda: self._complete(name, args))
