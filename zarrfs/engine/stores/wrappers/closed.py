"""A placeholder for the store of a closed node."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from zarrfs.engine.stores.base import Buffer, ByteRange, Listing, Store, Usage
from zarrfs.errors import StoreError

__all__ = ["ClosedStore"]


class ClosedStore(Store):
    """Raises StoreError, with the URL of the closed store, for all operations."""

    def __init__(self, store: Store) -> None:
        self._url = store.url
        self.read_only = store.read_only
        self.listable = store.listable
        self.in_process = store.in_process
        self.concurrency = store.concurrency

    @property
    def url(self) -> str:
        return self._url

    def _fail(self) -> NoReturn:
        raise StoreError(f"{self._url} was closed; open it again to use it")

    def get(self, key: str) -> Buffer | None:
        self._fail()

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        self._fail()

    def size(self, key: str) -> int | None:
        self._fail()

    def stamp(self, key: str) -> Hashable | None:
        self._fail()

    def list_dir(self, prefix: str = "") -> Listing:
        self._fail()

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._fail()

    def usage(self, prefix: str = "") -> Usage:
        self._fail()

    def set(self, key: str, value: Buffer) -> None:
        self._fail()

    def delete(self, key: str) -> None:
        self._fail()

    def delete_prefix(self, prefix: str) -> None:
        self._fail()

    def move_prefix(self, prefix: str, target: str) -> None:
        self._fail()

    def lock(self, key: str) -> AbstractContextManager[Any]:
        self._fail()

    def flush(self) -> None:
        self._fail()

    def clean(self, *, dry_run: bool = False) -> list[str]:
        self._fail()
