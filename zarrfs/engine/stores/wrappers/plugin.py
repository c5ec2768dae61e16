"""A store of another package. All of its errors are converted to StoreError."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from zarrfs.engine.stores.base import (
    Buffer,
    ByteRange,
    Listing,
    Store,
    Usage,
    ValueCreatedError,
    ValueTooLargeError,
)
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError, ZarrError

__all__ = ["PluginStore"]

T = TypeVar("T")


class PluginStore(WrapperStore):
    """Delegates to a store that the entry point ``scheme`` created, and names the plugin in errors."""

    def __init__(self, store: Store, scheme: str) -> None:
        super().__init__(store)
        self.scheme = scheme

    def _call(self, operation: Callable[[], T]) -> T:
        try:
            return operation()
        except (ZarrError, ValueCreatedError, ValueTooLargeError):
            raise
        except Exception as error:  # a plugin can raise any type of error
            reason = getattr(error, "strerror", None) or str(error)
            raise StoreError(
                f"{self.url}: the store plugin {self.scheme!r} raised {type(error).__name__}: {reason}",
                getattr(error, "errno", None),
            ) from error

    def get(self, key: str) -> Buffer | None:
        return self._call(lambda: self.store.get(key))

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        return self._call(lambda: self.store.get_within(key, max_nbytes))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return self._call(lambda: self.store.get_ranges(key, ranges))

    def get_into(self, key: str, out: memoryview) -> int | None:
        return self._call(lambda: self.store.get_into(key, out))

    def size(self, key: str) -> int | None:
        return self._call(lambda: self.store.size(key))

    def stamp(self, key: str) -> Hashable | None:
        return self._call(lambda: self.store.stamp(key))

    def version(self, key: str) -> Hashable | None:
        return self._call(lambda: self.store.version(key))

    def exists(self, key: str) -> bool:
        return self._call(lambda: self.store.exists(key))

    def is_irregular(self, key: str) -> bool:
        return self._call(lambda: self.store.is_irregular(key))

    def list_dir(self, prefix: str = "") -> Listing:
        return self._call(lambda: self.store.list_dir(prefix))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return iter(self._call(lambda: list(self.store.list_prefix(prefix))))

    def usage(self, prefix: str = "") -> Usage:
        return self._call(lambda: self.store.usage(prefix))

    def set(self, key: str, value: Buffer) -> None:
        self._call(lambda: self.store.set(key, value))

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        self._call(lambda: self.store.set_parts(key, parts))

    def delete(self, key: str) -> None:
        self._call(lambda: self.store.delete(key))

    def delete_prefix(self, prefix: str) -> None:
        self._call(lambda: self.store.delete_prefix(prefix))

    def move_prefix(self, prefix: str, target: str) -> None:
        self._call(lambda: self.store.move_prefix(prefix, target))

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return self._call(lambda: self.store.lock(key))

    def flush(self) -> None:
        self._call(self.store.flush)

    def clean(self, *, dry_run: bool = False) -> list[str]:
        return self._call(lambda: self.store.clean(dry_run=dry_run))

    def close(self) -> None:
        self._call(self.store.close)

    @property
    def url(self) -> str:
        try:
            return self.store.url
        except Exception:  # messages about other errors need a URL
            return f"{self.scheme}://"
