"""A placeholder for the store of a closed node."""

from __future__ import annotations

from typing import Any, NoReturn

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.wrappers.wrapper import DelegatingStore
from zarrfs.errors import StoreError

__all__ = ["ClosedStore"]


class ClosedStore(DelegatingStore):
    """Raises StoreError, with the URL of the closed store, for all operations. Holds no reference to the store."""

    def __init__(self, store: Store) -> None:
        self._url = store.url
        self._copy_properties(store)

    @property
    def url(self) -> str:
        return self._url

    def perform(self, name: str, *args: Any) -> NoReturn:
        raise StoreError(f"{self._url} was closed; open it again to use it")
