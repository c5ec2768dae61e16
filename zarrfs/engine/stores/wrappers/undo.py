"""A store that can undo its writes, for operations on several keys that must succeed or fail as a whole."""

from __future__ import annotations

import threading
from typing import Any

from zarrfs.engine.stores.base import OPERATIONS, Store
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["UndoStore"]


class UndoStore(WrapperStore):
    """Delegates to another store, which it does not close, and records the written keys.

    Attributes:
        keep_old: whether the old value of a key is read and recorded before its first write. Otherwise ``undo``
            deletes the key.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.keep_old = True
        self._old_values: dict[str, bytes | None] = {}
        self._lock = threading.Lock()

    def _save_old_value(self, key: str) -> None:
        if key in self._old_values:
            return
        value = self.store.get(key) if self.keep_old else None
        with self._lock:
            self._old_values.setdefault(key, None if value is None else bytes(value))

    def perform(self, name: str, *args: Any) -> Any:
        for key in OPERATIONS[name].changed_keys(args) or ():
            self._save_old_value(key)
        return super().perform(name, *args)

    def delete_prefix(self, prefix: str) -> None:
        Store.delete_prefix(self, prefix)

    def move_prefix(self, prefix: str, target: str) -> None:
        Store.move_prefix(self, prefix, target)

    def undo(self) -> None:
        """Restore the old values of the written keys, in reverse order.

        All keys are tried. Then the first error is raised, if there was one.
        """
        with self._lock:
            keys = list(reversed(self._old_values.items()))
            self._old_values.clear()
        errors: list[Exception] = []
        for key, value in keys:
            try:
                if value is None:
                    self.store.delete(key)
                else:
                    self.store.set(key, value)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Do nothing: the other store remains open."""
