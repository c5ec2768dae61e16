"""The common base of arrays and groups: the path in a store, the metadata, the attributes, and closing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.cache import ChunkCache, default_cache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.base import NodeKeys
from zarrfs.engine.formats.json_document import document_limit
from zarrfs.engine.formats.repeated_objects import copied
from zarrfs.engine.hierarchy.attributes import Attributes, Change
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change, warn_of_difference
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.stores.base import Store, Usage
from zarrfs.engine.stores.locks import locked_documents, repeated_after_conflicts
from zarrfs.engine.stores.wrappers.closed import ClosedStore
from zarrfs.engine.stores.wrappers.synchronizers import SynchronizedStore, Synchronizer
from zarrfs.errors import (
    MetadataError,
    NodeNotFoundError,
    NodeTypeError,
    ReadOnlyError,
    UnsupportedError,
)

__all__ = ["OpenStore", "StoredNode"]


def reopen_node(
    kind: type[StoredNode[Any]],
    store: Store,
    path: str,
    read_only: bool,
    access: ReadWriteOptions,
    cache: ChunkCache | None = None,
) -> Any:
    """Return the node at a path of a store. Unpickling calls this function; the metadata are read from the store.

    ``cache`` None is the shared cache of the process. Raises NodeNotFoundError if the node was deleted, NodeTypeError
    if there is a node of the other kind.
    """
    where = f"{store.url}/{path}".rstrip("/")
    spec = formats.read_node(store, path, **access.reading)
    if spec is None:
        raise NodeNotFoundError(
            f"{where}: the node that was pickled does not exist here: it was deleted, or this process accesses other "
            "data by this name"
        )
    if not isinstance(spec, kind.spec_type):
        found, expected = ("group", "array") if kind.spec_type is ArraySpec else ("array", "group")
        raise NodeTypeError(
            f"{where}: found a {found}, expected the {expected} that was pickled; open it again"
        )
    cache = default_cache() if cache is None else cache
    node = kind(store, path, spec, cache, read_only or store.read_only, access)
    return node._share_store(OpenStore(store))


Spec = TypeVar("Spec", ArraySpec, GroupSpec)


class OpenStore:
    """A store that was opened for a location, and the nodes that use it. Closing the last of them closes the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        # By identity, because nodes at the same path are equal. Nodes that are garbage-collected without being closed
        # do not count.
        self._nodes: WeakValueDictionary[int, StoredNode[Any]] = WeakValueDictionary()

    def add(self, node: StoredNode[Any]) -> None:
        with self._lock:
            self._nodes[id(node)] = node

    def release(self, node: StoredNode[Any], *, failed: bool = False) -> None:
        """Close the store if no other node uses it; otherwise flush it. ``failed``: roll back a transaction first."""
        with self._lock:
            self._nodes.pop(id(node), None)
            is_last = not self._nodes
        if failed:
            self.store.roll_back()
        if is_last:
            self.store.close()
        elif not self.store.read_only:
            self.store.flush()


class StoredNode(Generic[Spec]):
    """A node of a hierarchy: the base class of ``Array`` and ``Group``.

    ``close``, or leaving a ``with`` block, ends the use of the node. A store that was opened for the node is closed
    together with the last of the nodes that share it: nodes that were reached from this one, and nodes that were opened
    with this one as their location. A store that the caller passed stays open.
    """

    spec_type: ClassVar[type]
    """The class of the metadata: ArraySpec or GroupSpec."""

    def __init__(
        self,
        store: Store,
        path: str,
        spec: Spec,
        cache: ChunkCache,
        read_only: bool,
        access: ReadWriteOptions | None = None,
    ) -> None:
        self._store = store
        self._path = path
        self._cache = cache
        self._read_only = read_only
        self._access = ReadWriteOptions() if access is None else access
        self._read_at = time.time()
        # Held from reading or writing a document until its spec is set, so that threads that share the object never
        # replace a newer spec by an older one.
        self._spec_lock = threading.RLock()
        self._open_store: OpenStore | None = None
        # The spec from the consolidated metadata, if the node was opened with it.
        self._listed: Spec | None = None
        self._set_spec(spec)

    def _set_spec(self, spec: Spec) -> None:
        self._spec: Spec = spec

    @property
    def store(self) -> Store:
        """The store that contains the node."""
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
        """The last segment of the path; empty for the root."""
        return self._path.rpartition("/")[2]

    @property
    def spec(self) -> Spec:
        """The parsed metadata."""
        return self._spec

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._read_only

    @property
    def zarr_format(self) -> int | str:
        """The Zarr format version (1, 2 or 3), or the name of another format."""
        return self._spec.zarr_format

    @property
    def attrs(self) -> Attributes:
        """The user attributes: a mapping whose changes are written to the store."""
        self._recheck()
        # Created at each access: storing it in the node would create a reference cycle, and large metadata would stay
        # in memory until the garbage collector runs.
        return Attributes(lambda: self._spec.attributes, self._save_attributes)

    def update_attributes(self, new_attributes: Mapping[str, Any]) -> Self:
        """Set several attributes with one write. Returns the node."""
        self.attrs.update(new_attributes)
        return self

    @property
    def synchronizer(self) -> Synchronizer | None:
        """The synchronizer that provides the locks for writing, or None."""
        return self._store.synchronizer if isinstance(self._store, SynchronizedStore) else None

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata document as it is stored. A copy: changing it has no effect."""
        self._recheck()
        metadata: dict[str, Any] = copied(dict(self._spec.document))
        return metadata

    def usage(self) -> Usage:
        """Return the number of keys, the size in bytes and the newest modification time of the node and everything
        below it. Lists their keys.
        """
        stored: NodeKeys = formats.stored_keys(self._store, self._path, self._spec)
        sizes = [size for key in stored.keys if (size := self._store.size(key)) is not None]
        usages = [Usage(len(sizes), sum(sizes), None), *map(self._store.usage, stored.prefixes)]
        times = [usage.modified for usage in usages if usage.modified is not None]
        return Usage(
            sum(usage.keys for usage in usages),
            sum(usage.nbytes for usage in usages),
            max(times, default=None),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the store, the path and the options. Unpickling reads the metadata again; a private cache is empty."""
        cache = None if self._cache is default_cache() else self._cache
        return reopen_node, (type(self), self._store, self._path, self._read_only, self._access, cache)

    # -- closing -----------------------------------------------------------------------------------------------

    def _share_store(self, open_store: OpenStore | None) -> Self:
        """Register this node as a user of a store that was opened for a location. Returns the node."""
        self._open_store = open_store
        if open_store is not None:
            open_store.add(self)
        return self

    def close(self) -> None:
        """End the use of this node. Later accesses to the store raise StoreError. Closing twice has no effect.

        If the store was opened for a location and no other node uses it, it is closed, which completes an archive.
        Otherwise it is flushed. Raises StoreError if that fails; the node is then still open, and ``close`` can be
        repeated.
        """
        self._end(failed=False)

    def _end(self, *, failed: bool) -> None:
        if isinstance(self._store, ClosedStore):
            return
        if self._open_store is not None:
            self._open_store.release(self, failed=failed)
        self._set_store(ClosedStore(self._store))

    def _set_store(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(failed=kind is not None)

    # -- metadata that other writers may change ----------------------------------------------------------------

    @property
    def access(self) -> ReadWriteOptions:
        """When metadata and data are compared with the store, and how missing chunks are treated."""
        return self._access

    def refresh(self) -> None:
        """Read the metadata again, because another writer may have changed the shape or the attributes.

        Raises NodeNotFoundError if the node was deleted, MetadataError if anything but the shape and the attributes has
        changed.
        """
        with self._spec_lock:
            read_at = time.time()
            spec = formats.read_node(self._store, self._path, **self._access.reading)
            if spec is None:
                raise NodeNotFoundError(f"{self._where}: the metadata were deleted after the node was opened")
            if spec.document != self._spec.document or spec.attributes != self._spec.attributes:
                if self._listed is self._spec:
                    warn_of_difference(self._store, self._path, self._spec, spec)
                change = difference(self._spec, spec)
                if change is not None:
                    raise MetadataError(f"{self._where}: {change} since it was opened; open it again")
                self._set_spec(spec)  # type: ignore[arg-type]
            self._read_at = read_at

    @property
    def _where(self) -> str:
        return f"{self._store.url}/{self._path}".rstrip("/")

    def _recheck(self) -> None:
        """Read the metadata again if ``ReadWriteOptions.recheck_metadata`` requires it."""
        if self._access.metadata_expired(self._read_at):
            self.refresh()

    @contextmanager
    def _locked_metadata(self, operation: str, *keys: str) -> Iterator[None]:
        """Lock metadata documents of the node for the duration of the block; see ``locked_documents``.

        The caller calls ``refresh`` before it changes the documents. ``operation`` is for messages. Raises
        UnsupportedError if the metadata are not stored.
        """
        if self._access.assumed == "only":
            raise UnsupportedError(
                f"{self._where}: {operation} needs stored metadata; these are only assumed"
            )
        with locked_documents(self._store, *keys), document_limit(self._access.max_document):
            yield

    def _document_keys(self) -> tuple[str, ...]:
        return formats.document_keys(self._store, self._path, self._spec)

    def _check_writable(self, operation: str) -> None:
        if self._read_only:
            raise ReadOnlyError(
                f"{self._where} is open read-only: {operation} is refused; open it with mode 'r+'"
            )

    def _save_attributes(self, change: Change) -> None:
        self._check_writable("changing attributes")
        repeated_after_conflicts(lambda: self._save_attributes_once(change))

    def _save_attributes_once(self, change: Change) -> None:
        with self._locked_metadata("changing attributes", self._document_keys()[-1]), self._spec_lock:
            self.refresh()
            values = change(dict(self._spec.attributes))
            for name in values:
                if not isinstance(name, str):
                    raise MetadataError(f"{self._where}: names of attributes must be strings, found {name!r}")
            written = formats.write_attributes(
                self._store, self._path, replace(self._spec, attributes=values)
            )
            self._set_spec(written)
            warn_of_change(self._store, self._path, self.zarr_format)


def difference(old: ArraySpec | GroupSpec, new: ArraySpec | GroupSpec) -> str | None:
    """Return a description of the first difference between two specs other than shape and attributes, or None."""
    if isinstance(old, GroupSpec) or isinstance(new, GroupSpec):
        old_kind, new_kind = ("a group" if isinstance(spec, GroupSpec) else "an array" for spec in (old, new))
        return None if old_kind == new_kind else f"the node has changed from {old_kind} to {new_kind}"
    if len(old.shape) != len(new.shape):
        return f"its number of dimensions has changed from {len(old.shape)} to {len(new.shape)}"
    for name, old_value, new_value in (
        ("data type", old.data_type, new.data_type),
        ("chunk shape", old.chunk_grid.chunk_shape, new.chunk_grid.chunk_shape),
        ("chunk key encoding", old.chunk_key_encoding, new.chunk_key_encoding),
        ("codecs", old.codecs, new.codecs),
        ("fill value", repr(old.fill_value), repr(new.fill_value)),
    ):
        if old_value != new_value:
            return f"its {name} has changed from {old_value} to {new_value}"
    return None
