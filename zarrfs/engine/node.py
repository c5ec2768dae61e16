"""What arrays and groups have in common: a place in a store, metadata, attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, TypeVar

from zarrfs.engine.attributes import Attributes
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import detect
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.base import Store, Usage
from zarrfs.errors import ReadOnlyError

__all__ = ["StoredNode"]


def reopened(store: Store, path: str, read_only: bool) -> Any:
    """Return the node at a path of a store, as unpickling needs it."""
    from zarrfs.engine.open import open

    node = open(store, path, "r" if read_only or store.read_only else "r+")
    node._read_only = read_only
    return node


Spec = TypeVar("Spec", ArraySpec, GroupSpec)


class StoredNode(Generic[Spec]):
    """A node of a hierarchy. It keeps no file open: closing the store is all there is to release."""

    def __init__(self, store: Store, path: str, spec: Spec, cache: ChunkCache, read_only: bool) -> None:
        self._store = store
        self._path = path
        self._cache = cache
        self._read_only = read_only
        self._set_spec(spec)

    def _set_spec(self, spec: Spec) -> None:
        self._spec: Spec = spec
        self._attrs = Attributes(spec.attributes, self._save_attributes)

    @property
    def store(self) -> Store:
        """The store that the node is in."""
        return self._store

    @property
    def path(self) -> str:
        """The path in the store, without a leading slash; empty for the root."""
        return self._path

    @property
    def name(self) -> str:
        """The path with a leading slash."""
        return "/" + self._path

    @property
    def basename(self) -> str:
        """The last part of the path."""
        return self._path.rpartition("/")[2]

    @property
    def spec(self) -> Spec:
        """The metadata in their internal form."""
        return self._spec

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._read_only

    @property
    def zarr_format(self) -> int | str:
        """The version of the format on disk."""
        return self._spec.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user attributes, writing through."""
        return self._attrs

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata document as it was read."""
        return dict(self._spec.document)

    def usage(self) -> Usage:
        """Return the keys, bytes and newest change of all that is stored of the node, and below it. Costs a
        listing.
        """
        return self._store.usage(self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as store and path: the copy reads its metadata anew."""
        return reopened, (self._store, self._path, self._read_only)

    def _check_writable(self, what: str) -> None:
        if self._read_only:
            where = f"{self._store.url}/{self._path}".rstrip("/")
            raise ReadOnlyError(f"{where} is open read-only: {what} is refused; open it with mode 'r+'")

    def _save_attributes(self, values: dict[str, Any]) -> None:
        self._check_writable("changing attributes")
        self._spec = detect.write_attributes(self._store, self._path, replace(self._spec, attributes=values))
