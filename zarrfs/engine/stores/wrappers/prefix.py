"""The keys of a store below a prefix, as a separate store."""

from __future__ import annotations

from typing import Any

from zarrfs.engine.stores.base import OPERATIONS, RequestStatistics, Store, check_key
from zarrfs.engine.stores.wrappers.wrapper import DelegatingStore

__all__ = ["PrefixStore"]


class PrefixStore(DelegatingStore):
    """The keys of ``store`` below ``prefix``. Does not close ``store``."""

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self.prefix = check_key(prefix)
        self._copy_properties(store)

    @property
    def url(self) -> str:
        return f"{self.store.url}/{self.prefix}"

    @property
    def directory(self) -> str | None:
        directory = self.store.directory
        return None if directory is None else f"{directory}/{self.prefix}"

    def limit_requests(self, count: int) -> None:
        self.store.limit_requests(count)
        self.concurrency = self.store.concurrency

    def repeat_requests(self, count: int) -> None:
        self.store.repeat_requests(count)

    @property
    def request_statistics(self) -> RequestStatistics:
        return self.store.request_statistics

    def _full_key(self, key: str) -> str:
        if self._closed:
            self._check_open()
        return f"{self.prefix}/{check_key(key)}"

    def _full_prefix(self, prefix: str) -> str:
        self._check_open()
        return f"{self.prefix}/{prefix}" if prefix else self.prefix

    def perform(self, name: str, *args: Any) -> Any:
        if name == "clean":
            return []  # the temporary files belong to the whole store
        args = OPERATIONS[name].translated(args, self._full_key, self._full_prefix)
        result = getattr(self.store, name)(*args)
        if name == "list_prefix":
            prefix_length = len(self.prefix) + 1
            return (key[prefix_length:] for key in result)
        return result
