"""Stores: subclass ``Store`` and register a ``StoreOpener`` for a URL scheme."""

from __future__ import annotations

from typing import Any, Protocol

from zarrfs.engine.stores.base import OPERATIONS, Buffer, ByteRange, Listing, Operation, Store, Usage
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import LocationError, LocationNotFoundError, StoreError

__all__ = [
    "OPERATIONS",
    "Buffer",
    "ByteRange",
    "Listing",
    "LocationError",
    "LocationNotFoundError",
    "Operation",
    "Store",
    "StoreError",
    "StoreOpener",
    "Usage",
    "WrapperStore",
]


class StoreOpener(Protocol):
    """The function that opens the URLs of a scheme. A function without ``storage_options`` accepts none."""

    def __call__(self, url: str, mode: str, *, storage_options: dict[str, Any]) -> Store | tuple[Store, str]:
        """Return the store of the URL, or the store and the path of the node in it (``shelf://file/inner/path``).

        ``mode`` is ``"r"`` read-only, ``"r+"`` an existing store, ``"a"`` create the store if it does not exist, or
        ``"w"`` replace it. The caller closes the store. Raises LocationError, also for an unknown option.
        """
