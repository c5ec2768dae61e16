"""A store that takes back what was written through it, for changes that happen as a whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from zarrfs.engine.stores.base import Buffer, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["UndoStore"]


class UndoStore(WrapperStore):
    """Passes everything on to another store, which stays the caller's to close, and remembers the keys written.

    Attributes:
        keep_old: whether the value that a key has is kept when the key is written for the first time, which costs a
            read. Otherwise ``undo`` deletes the key.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.keep_old = True
        self._old: dict[str, bytes | None] = {}
        self._lock = threading.Lock()

    def _remember(self, key: str) -> None:
        if key in self._old:
            return
        value = self.store.get(key) if self.keep_old else None
        with self._lock:
            self._old.setdefault(key, None if value is None else bytes(value))

    def get_within(self, key: str, most: int | None) -> Buffer | None:
        return self.store.get_within(key, most)

    def set(self, key: str, value: Buffer) -> None:
        self._remember(key)
        self.store.set(key, value)

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        self._remember(key)
        self.store.set_parts(key, parts)

    def delete(self, key: str) -> None:
        self._remember(key)
        self.store.delete(key)

    def undo(self) -> None:
        """Give the keys that were written the values that they had, the latest first."""
        with self._lock:
            keys = list(reversed(self._old.items()))
            self._old.clear()
        for key, value in keys:
            if value is None:
                self.store.delete(key)
            else:
                self.store.set(key, value)

    def close(self) -> None:
        """Close nothing: the other store stays open."""
