"""What databases have in common as stores: values by key, whole, and keys in order. One database a file beside this.

Their layouts are those of zarr-python 2, which reads what we write and the other way round. Values come and go whole:
each write is one statement of the database, so a reader sees the old or the new one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from importlib import import_module
from types import ModuleType

from zarrfs.engine.stores.base import IMMUTABLE, Buffer, Listing, Store, check_key
from zarrfs.engine.stores.memory import list_keys
from zarrfs.errors import LocationError
from zarrfs.plugins import install_hint

__all__ = ["KeyValueStore", "decode_key", "encode_key", "load_library"]


class KeyValueStore(Store):
    """Keys to values, by five operations that a database has."""

    @abstractmethod
    def _read(self, key: str) -> bytes | None:
        """Return the value, None where there is none."""

    @abstractmethod
    def _write(self, key: str, value: bytes) -> None:
        """Set a value, atomically."""

    @abstractmethod
    def _remove(self, key: str) -> None:
        """Remove a key; nothing if it is not there."""

    @abstractmethod
    def _keys(self, start: str) -> Iterator[str]:
        """Yield the keys that begin with ``start``, which is empty or ends with a slash."""

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        return self._read(check_key(key))

    def size(self, key: str) -> int | None:
        self._check_open()
        value = self._read(check_key(key))
        return None if value is None else len(value)

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        # What is open to be read is taken for settled, as elsewhere on a network; see ``recheck_data`` of ``open``.
        return IMMUTABLE if self.read_only else None

    def version(self, key: str) -> Hashable | None:
        self._check_open()
        return None

    def set(self, key: str, value: Buffer) -> None:
        if self.read_only:
            raise self._refuse(f"writing {key!r}")
        self._check_open()
        self._write(check_key(key), bytes(value))

    def delete(self, key: str) -> None:
        if self.read_only:
            raise self._refuse(f"deleting {key!r}")
        self._check_open()
        self._remove(check_key(key))

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        return self._keys(f"{prefix}/" if prefix else "")

    def list_dir(self, prefix: str = "") -> Listing:
        return list_keys(self.list_prefix(prefix), prefix)


def encode_key(key: str) -> bytes:
    """Return a key as a database of bytes has it. Keys that are not UTF-8 have been decoded by ``decode_key``."""
    return key.encode("utf-8", "surrogateescape")


def decode_key(name: bytes) -> str:
    """Return the text of a key, which need not be UTF-8."""
    return name.decode("utf-8", "surrogateescape")


def load_library(name: str, extra: str, what: str) -> ModuleType:
    """Import the library of a store. Raises LocationError saying how to install it."""
    try:
        return import_module(name)
    except (ImportError, OSError) as error:
        if isinstance(error, OSError):  # no descriptors left, a damaged installation
            raise LocationError(
                f"{what} needs the package {name!r}, which cannot be imported: {error}"
            ) from error
        raise LocationError(
            f"{what} needs the package {name!r}, which is not here: {install_hint(extra)} ({error})"
        ) from error
