"""A store of another package. All of its errors are converted to StoreError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from zarrfs.engine.stores.base import Store, ValueCreatedError, ValueTooLargeError
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError, ZarrError

__all__ = ["PluginStore"]

T = TypeVar("T")


class PluginStore(WrapperStore):
    """Delegates to a store that the entry point ``scheme`` created, and names the plugin in errors."""

    def __init__(self, store: Store, scheme: str) -> None:
        super().__init__(store)
        self.scheme = scheme

    def _convert(self, operation: Callable[[], T]) -> T:
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

    def perform(self, name: str, *args: Any) -> Any:
        return self._convert(lambda: self._complete(name, args))

    def close(self) -> None:
        self._convert(super().close)

    @property
    def url(self) -> str:
        try:
            return self.store.url
        except Exception:  # messages about other errors need a URL
            return f"{self.scheme}://"
