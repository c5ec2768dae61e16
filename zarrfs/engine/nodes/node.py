"""What arrays and groups have in common: a place in a store, metadata, attributes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from zarrfs.engine.cache import ChunkCache, default_cache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.json_document import document_limit
from zarrfs.engine.io.access import Access
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes.attributes import Attributes, Change
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change, warn_of_difference
from zarrfs.engine.stores.base import Store, Usage
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

_locks: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
"""By the place of a metadata document, while somebody changes it. One lock for each, and none shared as those of chunks
are: who changes a document goes on to lock chunks.
"""

_locks_lock = threading.Lock()


def reopened(
    kind: type[StoredNode[Any]],
    store: Store,
    path: str,
    read_only: bool,
    access: Access,
    cache_size: int | None = None,
) -> Any:
    """Return the node at a path of a store; unpickling calls this. The metadata are read again.

    Raises NodeNotFoundError if the node was deleted, NodeTypeError if it is of another kind.
    """
    where = f"{store.url}/{path}".rstrip("/")
    spec = formats.read_node(store, path, **access.reading)
    if spec is None:
        raise NodeNotFoundError(f"{where}: the node was deleted since it was pickled")
    if not isinstance(spec, kind.spec_type):
        raise NodeTypeError(f"{where}: the pickled node was of another kind than the stored one")
    cache = default_cache() if cache_size is None else ChunkCache(cache_size)
    node = kind(store, path, spec, cache, read_only or store.read_only, access)
    return node._share_store(OpenStore(store))


Spec = TypeVar("Spec", ArraySpec, GroupSpec)


class OpenStore:
    """A store that opening a location opened, and the nodes that use it. The last of them that is closed closes it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        # By identity: nodes at the same path are equal. One that is forgotten without closing does not count.
        self._nodes: WeakValueDictionary[int, StoredNode[Any]] = WeakValueDictionary()

    def add(self, node: StoredNode[Any]) -> None:
        with self._lock:
            self._nodes[id(node)] = node

    def release(self, node: StoredNode[Any]) -> None:
        """Close the store if no other node uses it; otherwise make what was written complete."""
        with self._lock:
            self._nodes.pop(id(node), None)
            is_last = not self._nodes
        if is_last:
            self.store.close()
        elif not self.store.read_only:
            self.store.flush()


class StoredNode(Generic[Spec]):
    """A node of a hierarchy.

    ``close``, or leaving a ``with`` block, ends its use. The store that was opened for it is closed with the last of
    the nodes that share it: those reached from it, and those opened at it as a location. A store that was given stays
    open.
    """

    spec_type: ClassVar[type]
    """The type of the metadata: ArraySpec or GroupSpec."""

    def __init__(
        self,
        store: Store,
        path: str,
        spec: Spec,
        cache: ChunkCache,
        read_only: bool,
        access: Access | None = None,
    ) -> None:
        self._store = store
        self._path = path
        self._cache = cache
        self._read_only = read_only
        self._access = Access() if access is None else access
        self._read_at = time.time()
        # Held while documents are read or written and the result is taken over, so that threads that share the object
        # never put an older document in the place of a newer one.
        self._spec_lock = threading.RLock()
        self._open_store: OpenStore | None = None
        # What consolidated metadata say, where the node was opened by them.
        self._listed: Spec | None = None
        self._set_spec(spec)

    def _set_spec(self, spec: Spec) -> None:
        self._spec: Spec = spec

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
        self._recheck()
        # Made each time: a node that kept it would be part of a reference cycle, and large metadata would stay in
        # memory until the garbage collector finds them.
        return Attributes(lambda: self._spec.attributes, self._save_attributes)

    def update_attributes(self, new_attributes: Mapping[str, Any]) -> Self:
        """Set several attributes and write once; return the node."""
        self.attrs.update(new_attributes)
        return self

    @property
    def synchronizer(self) -> Synchronizer | None:
        """What writers of several processes take turns by, None where nothing does."""
        return self._store.synchronizer if isinstance(self._store, SynchronizedStore) else None

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata document as it was read."""
        self._recheck()
        return dict(self._spec.document)

    def usage(self) -> Usage:
        """Return the keys, bytes and newest change of all that is stored of the node, and below it. Costs a
        listing.
        """
        return self._store.usage(self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as store and path: the copy reads its metadata anew. A cache of its own it has again, empty."""
        cache_size = None if self._cache is default_cache() else self._cache.capacity
        return reopened, (type(self), self._store, self._path, self._read_only, self._access, cache_size)

    # -- life --------------------------------------------------------------------------------------------------

    def _share_store(self, shared: OpenStore | None) -> Self:
        """Take part in a store that was opened for nodes; return this node."""
        self._open_store = shared
        if shared is not None:
            shared.add(self)
        return self

    def close(self) -> None:
        """End the use of this node; what is asked of it then is a StoreError. Closing twice is fine.

        The store is closed if it was opened for this node, and no other that shares it is in use; what was written to
        an archive is complete afterwards. Raises StoreError where that fails, and may be tried again then.
        """
        if isinstance(self._store, ClosedStore):
            return
        if self._open_store is not None:
            self._open_store.release(self)
        self._set_store(ClosedStore(self._store))

    def _set_store(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- metadata that others may change -----------------------------------------------------------------------

    @property
    def access(self) -> Access:
        """When metadata and data are compared with the store, and what absence means."""
        return self._access

    def refresh(self) -> None:
        """Read the metadata anew: another program may have changed the shape or the attributes.

        Raises NodeNotFoundError if the node is gone, MetadataError if it is now another one.
        """
        with self._spec_lock:
            read_at = time.time()
            found = formats.read_node(self._store, self._path, **self._access.reading)
            if found is None:
                raise NodeNotFoundError(f"{self._where}: the metadata are gone since it was opened")
            if found.document != self._spec.document or found.attributes != self._spec.attributes:
                if self._listed is self._spec:
                    warn_of_difference(self._store, self._path, self._spec, found)
                changed = difference(self._spec, found)
                if changed is not None:
                    raise MetadataError(f"{self._where}: {changed} since it was opened; open it again")
                self._set_spec(found)  # type: ignore[arg-type]
            self._read_at = read_at

    @property
    def _where(self) -> str:
        return f"{self._store.url}/{self._path}".rstrip("/")

    def _recheck(self) -> None:
        """Read the metadata again if that is due."""
        if self._access.metadata_expired(self._read_at):
            self.refresh()

    @contextmanager
    def _locked_metadata(self, what: str, *keys: str) -> Iterator[None]:
        """Within, nobody else changes these documents of the node: no thread, nor a process that shares the store's
        synchronizer. ``what`` says what is about to change them; who does so refreshes first.

        The keys are locked in the order given, which is the same for all: that of ``document_keys``.
        """
        if self._access.assumed == "only":
            raise UnsupportedError(f"{self._where}: {what} needs stored metadata; these are only assumed")
        with ExitStack() as turn:
            for key in keys:
                turn.enter_context(_document_lock(f"{self._store.url}/{key}"))
                turn.enter_context(self._store.lock(key))
            turn.enter_context(document_limit(self._access.max_document))
            yield

    def _document_keys(self) -> tuple[str, ...]:
        return formats.document_keys(self._store, self._path, self._spec)

    def _check_writable(self, what: str) -> None:
        if self._read_only:
            raise ReadOnlyError(f"{self._where} is open read-only: {what} is refused; open it with mode 'r+'")

    def _save_attributes(self, change: Change) -> None:
        self._check_writable("changing attributes")
        with self._locked_metadata("changing attributes", self._document_keys()[-1]), self._spec_lock:
            self.refresh()
            values = change(dict(self._spec.attributes))
            for name in values:
                if not isinstance(name, str):
                    raise MetadataError(f"{self._where}: names of attributes are strings, found {name!r}")
            written = formats.write_attributes(
                self._store, self._path, replace(self._spec, attributes=values)
            )
            self._set_spec(written)
            warn_of_change(self._store, self._path, self.zarr_format)


def _document_lock(place: str) -> threading.RLock:
    with _locks_lock:
        return _locks.setdefault(place, threading.RLock())


def difference(old: ArraySpec | GroupSpec, new: ArraySpec | GroupSpec) -> str | None:
    """Say what makes ``new`` another node than ``old``, beyond shape and attributes; None where nothing does."""
    if isinstance(old, GroupSpec) or isinstance(new, GroupSpec):
        before, after = ("a group" if isinstance(spec, GroupSpec) else "an array" for spec in (old, new))
        return None if before == after else f"what was {before} has become {after}"
    if len(old.shape) != len(new.shape):
        return f"its rank has changed from {len(old.shape)} to {len(new.shape)}"
    for name, was, has in (
        ("data type", old.data_type, new.data_type),
        ("chunk shape", old.chunk_grid.chunk_shape, new.chunk_grid.chunk_shape),
        ("chunk key encoding", old.chunk_key_encoding, new.chunk_key_encoding),
        ("codecs", old.codecs, new.codecs),
        ("fill value", repr(old.fill_value), repr(new.fill_value)),
    ):
        if was != has:
            return f"its {name} has changed from {was} to {has}"
    return None
