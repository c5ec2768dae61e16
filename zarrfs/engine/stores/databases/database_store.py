"""The base class of database stores. Each database has its own module in this package.

The layouts are compatible with zarr-python 2 in both directions. Each write is one statement of the database, so a
reader sees the old value or the new one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator

from zarrfs.engine.stores.base import IMMUTABLE, Buffer, Listing, Store, check_key
from zarrfs.engine.stores.memory import list_keys

__all__ = ["KeyValueStore", "decode_key", "encode_key"]


class KeyValueStore(Store):
    """A store that implements the interface by four operations of a database: read, write, remove and list keys."""

    @abstractmethod
    def _read(self, key: str) -> bytes | None:
        """Return the value, or None if the key is missing."""

    @abstractmethod
    def _write(self, key: str, value: bytes) -> None:
        """Set a value, atomically."""

    @abstractmethod
    def _remove(self, key: str) -> None:
        """Remove a key. Removing a missing key does nothing."""

    @abstractmethod
    def _keys(self, start: str) -> Iterator[str]:
        """Yield the keys that start with ``start``, which is empty or ends with a slash."""

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        return self._read(check_key(key))

    def size(self, key: str) -> int | None:
        self._check_open()
        value = self._read(check_key(key))
        return None if value is None else len(value)

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        # Values of a store that is open read-only are treated as immutable. See ``recheck_data`` of ``open``.
        return IMMUTABLE if self.read_only else None

    def version(self, key: str) -> Hashable | None:
        self._check_open()
        return None

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._read_only_error(f"writing {key!r}")
        self._check_open()
        self._write(check_key(key), bytes(value))

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._read_only_error(f"deleting {key!r}")
        self._check_open()
        self._remove(check_key(key))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        return self._keys(f"{prefix}/" if prefix else "")

    def list_dir(self, prefix: str = "") -> Listing:
        return list_keys(self.list_prefix(prefix), prefix)


def encode_key(key: str) -> bytes:
    """Return the bytes of a key. This is the inverse of ``decode_key``, also for keys that are not UTF-8."""
    return key.encode("utf-8", "surrogateescape")


def decode_key(name: bytes) -> str:
    """Return the key for its bytes, which need not be UTF-8."""
    return name.decode("utf-8", "surrogateescape")
