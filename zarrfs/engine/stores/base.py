"""The store interface: values by key, byte ranges of values, and listings.

This follows the "Abstract store interface" of the Zarr v3 core specification, with two differences. A missing key is
``None`` and not an error, because missing chunks are common. ``stamp`` is an addition: it allows decoded chunks to be
cached without returning stale data.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from zarrfs.errors import KeyNameError, ReadOnlyError, StoreError

__all__ = [
    "DOCUMENT_NAMES",
    "IMMUTABLE",
    "OPERATIONS",
    "Buffer",
    "ByteRange",
    "Listing",
    "Operation",
    "RequestStatistics",
    "Store",
    "StoredValue",
    "Usage",
    "ValueCreatedError",
    "ValueTooLargeError",
    "check_key",
    "segment_below",
]

DOCUMENT_NAMES = (
    "zarr.json",
    ".zarray",
    ".zgroup",
    ".zattrs",
    ".zmetadata",
    "attributes.json",
    "meta",
    "attrs",
)
"""The last segments of the keys of metadata documents, in all formats except the draft of 2019."""

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes that a store returns or accepts. The receiver does not write to them."""

IMMUTABLE: Hashable = "immutable"
"""The stamp of a value that cannot change while the store is open."""


class ByteRange(NamedTuple):
    """A range of a value: ``length`` bytes from ``start``, or all bytes from ``start`` if ``length`` is None.

    A negative ``start`` counts from the end: ``ByteRange(-20)`` is the last 20 bytes. ``length`` is None in this case.
    """

    start: int
    length: int | None = None

    def resolve(self, size: int) -> tuple[int, int]:
        """Return ``(start, stop)``, clipped to a value of ``size`` bytes."""
        start = max(0, size + self.start) if self.start < 0 else min(self.start, size)
        stop = size if self.length is None else min(size, start + self.length)
        return start, stop


class Listing(NamedTuple):
    """One level below a prefix: names without the prefix and without slashes, each list sorted."""

    keys: list[str]
    prefixes: list[str]


class Usage(NamedTuple):
    """The usage below a prefix: number of keys, bytes, and the latest modification (seconds since the epoch)."""

    keys: int
    nbytes: int
    modified: float | None


class RequestStatistics(NamedTuple):
    """What a store has sent to a server: requests, bytes of values that were received or sent, requests that were
    repeated, and requests in progress.
    """

    requests: int = 0
    nbytes: int = 0
    retries: int = 0
    in_progress: int = 0


class Operation(NamedTuple):
    """What an operation of a store is, for wrappers that treat all operations alike.

    Attributes:
        names: what the operation is given: the key that is its first argument, the list of keys that is its first
            argument, or prefixes, which all of its arguments are. None: it concerns the whole store.
        changes: whether it changes what is stored.
    """

    names: Literal["key", "keys", "prefixes"] | None
    changes: bool = False

    def translated(
        self, args: tuple[Any, ...], key: Callable[[str], str], prefix: Callable[[str], str]
    ) -> tuple[Any, ...]:
        """Return the arguments with other keys and prefixes."""
        match self.names:
            case "key":
                return key(args[0]), *args[1:]
            case "keys":
                return [key(each) for each in args[0]], *args[1:]
            case "prefixes":
                return tuple(map(prefix, args))
        return args

    def changed_keys(self, args: tuple[Any, ...]) -> Sequence[str] | None:
        """Return the keys that the operation changes. None: those below prefixes, which the arguments do not list."""
        if not self.changes or self.names is None:
            return ()
        if self.names == "prefixes":
            return None
        return args[0] if self.names == "keys" else args[:1]


OPERATIONS: Mapping[str, Operation] = {
    **dict.fromkeys(("get", "get_within", "get_ranges", "get_into"), Operation("key")),
    **dict.fromkeys(("size", "stamp", "version", "exists", "is_irregular"), Operation("key")),
    **dict.fromkeys(("list_dir", "list_prefix", "is_empty", "listing_stamp", "usage"), Operation("prefixes")),
    "missing_container": Operation(None),
    "lock": Operation("key"),
    **dict.fromkeys(("set", "set_parts", "create", "delete"), Operation("key", changes=True)),
    "delete_keys": Operation("keys", changes=True),
    **dict.fromkeys(("delete_prefix", "move_prefix"), Operation("prefixes", changes=True)),
    **dict.fromkeys(("flush", "roll_back", "clean"), Operation(None, changes=True)),
}
"""The operations of a store that wrappers pass on, by the names of the methods of ``Store``."""


class ValueTooLargeError(Exception):
    """A stored value is larger than its limit. Internal: users see a ChunkDecodeError."""

    def __init__(self, size: int, max_nbytes: int) -> None:
        self.size = size
        super().__init__(f"the stored value has {size:,} bytes, expected at most {max_nbytes:,}")


class ValueCreatedError(Exception):
    """Another process has created a value that was missing when it was locked. Internal; see ``Store.create``."""


class StoredValue:
    """One value of a store, opened for reading in several parts. A ``ByteSource`` of codecs and a context manager.

    ``stamp``, ``size`` and the bytes belong to one version of the value as long as ``is_unchanged`` returns True. This
    implementation sends each request to the store. Stores that can keep a file open override ``Store.open_value``.
    Only ``read_ranges`` is safe to use from several threads at once.
    """

    in_memory = False

    def __init__(self, store: Store, key: str, max_nbytes: int | None) -> None:
        self._store = store
        self._key = key
        self._max_nbytes = max_nbytes

    @property
    def high_latency(self) -> bool:
        """Whether each request needs a network round trip."""
        return self._store.is_remote

    def stamp(self) -> Hashable | None:
        """Return the version stamp of the value. See ``Store.stamp``."""
        return self._store.stamp(self._key)

    def version(self) -> Hashable | None:
        """Return the version of the value. See ``Store.version``."""
        return self._store.version(self._key)

    def is_unchanged(self, stamp: Hashable) -> bool:
        """Return whether the value still has the stamp or version ``stamp``."""
        return self._store.stamp(self._key) == stamp

    def has_version(self, version: Hashable) -> bool:
        """Return whether the value still has this version. This can send a request."""
        return self._store.version(self._key) == version

    def size(self) -> int | None:
        """Return the size in bytes, or None if the value is missing."""
        return self._store.size(self._key)

    def read(self) -> Buffer | None:
        """Return the value, or None if it is missing. Raises ValueTooLargeError."""
        return self._store.get_within(self._key, self._max_nbytes)

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range, clipped to the value, or None if the value is missing."""
        return self._store.get_ranges(self._key, ranges)

    def close(self) -> None:
        """Release open files. The value can still be used; it is then opened again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_key(key: str) -> str:
    """Return ``key`` if it is valid. Raises KeyNameError otherwise.

    A valid key is not empty, does not start or end with a slash, contains no NUL, and has no segment that is empty,
    ``.`` or ``..``. Such a key cannot leave the store.
    """
    if not key or "\0" in key or any(part in ("", ".", "..") for part in key.split("/")):
        raise KeyNameError(
            f"{key!r} is not a valid store key: a key must not be empty, start or end with '/', contain NUL, or have "
            "empty, '.' or '..' segments"
        )
    return key


def segment_below(prefix: str, target: str) -> str | None:
    """Return the segment of ``target`` that follows ``prefix``, or None if ``target`` is not below ``prefix``."""
    if target and not prefix:
        return target.partition("/")[0]
    if target.startswith(f"{prefix}/"):
        return target[len(prefix) + 1 :].partition("/")[0]
    return None


class Store(ABC):
    """A mapping from keys to values. Safe to use from several threads at once.

    Operations raise StoreError; a missing key is None and not an error. A prefix is ``""`` (all keys) or a key without
    a trailing slash. It selects the keys that start with the prefix and a slash. A store owns the files and
    connections that it opened until ``close``.
    """

    read_only: bool = False
    listable: bool = True
    """Whether ``list_dir`` and ``list_prefix`` are supported. An HTTP server does not support them."""
    in_process: bool = False
    """Whether the values are in the memory of this process, so that no other process can access them."""
    synchronized: bool = False
    """Whether ``lock`` excludes other processes. Other processes then write to the same arrays and may resize them."""
    checks_size_first: bool = False
    """Whether ``get_within`` compares the size with the limit before it reads the value."""
    renames: bool = False
    """Whether ``move_prefix`` renames and does not copy values."""
    documents_before_chunks: bool = False
    """Whether the chunks of an array can be stored only after its document. Transactions hide incomplete arrays."""
    _closed: bool = False
    concurrency: int = 1
    """The number of concurrent ``get`` calls that hides the latency of the store: 1 for local stores, and for servers
    to which requests are sent one after the other.
    """
    is_remote: bool = False
    """Whether each operation is a request with a high latency. It does not depend on the number of requests that are
    permitted at a time.
    """

    @property
    def directory(self) -> str | None:
        """The absolute path of the directory whose files are the values, or None. Wrappers have that of their store."""
        return None

    @property
    @abstractmethod
    def url(self) -> str:
        """The canonical URL of the store, for messages and, where possible, for opening the store again."""

    def limit_requests(self, count: int) -> None:  # noqa: B027 - most stores have no limit
        """Send at most ``count`` requests to a server at a time, or fewer if the limit is smaller already.

        It applies to all nodes of the store. Other stores than those on servers have no limit.
        """

    def repeat_requests(self, count: int) -> None:  # noqa: B027 - most stores repeat nothing
        """Repeat a request that failed for a reason that may pass at most ``count`` times. Stores that never repeat
        requests ignore this.
        """

    @property
    def request_statistics(self) -> RequestStatistics:
        """The requests that this object has sent to a server so far. Other stores than those on servers send none."""
        return RequestStatistics()

    # -- reading -----------------------------------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str) -> Buffer | None:
        """Return the value, or None if the key is missing. The caller must not write to the returned buffer."""

    def get_within(self, key: str, max_nbytes: int | None) -> Buffer | None:
        """Return the value as ``get`` does. Raises ValueTooLargeError if it has more than ``max_nbytes`` bytes.

        None means no limit. Stores that know the size in advance override this and do not read the value then.
        """
        value = self.get(key)
        if max_nbytes is not None and value is not None and len(value) > max_nbytes:
            raise ValueTooLargeError(len(value), max_nbytes)
        return value

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range, in the order of the ranges, or None if the key is missing.

        Ranges are clipped to the value and can be empty. Stores that can fetch ranges override this; the default
        implementation fetches the whole value.
        """
        value = self.get(key)
        if value is None:
            return None
        view = memoryview(value)
        buffers: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(len(view))
            buffers.append(view[start:stop])
        return buffers

    def open_value(self, key: str, max_nbytes: int | None = None) -> StoredValue:
        """Return a value for reading in several parts. The key can be missing. The caller closes the value.

        ``max_nbytes`` limits ``StoredValue.read`` as in ``get_within``.
        """
        return StoredValue(self, key, max_nbytes)

    def get_into(self, key: str, out: memoryview) -> int | None:
        """Copy the value to ``out`` (writable bytes) and return its size, or None if the key is missing.

        If the size differs from the size of ``out``, the content of ``out`` is undefined.
        """
        value = self.get(key)
        if value is None:
            return None
        size = memoryview(value).nbytes
        if size == len(out):
            out[:] = value
        return size

    def prefetch(self, keys: Sequence[str], max_pending: int) -> AbstractContextManager[Store] | None:
        """Return a context manager that requests the values of the keys before they are read, or None if the store does
        not prefetch.

        The keys are distinct and are requested in this order; at most ``max_pending`` values are requested and not yet
        read. The context manager returns a store from which ``get`` reads each of the values once. Requests that remain
        at the end of the context are cancelled.
        """
        return None

    @abstractmethod
    def size(self, key: str) -> int | None:
        """Return the size of the value in bytes, or None if the key is missing."""

    def stamp(self, key: str) -> Hashable | None:
        """Return an object that changes whenever the value changes.

        A stamp is taken before the value is read. If a later stamp is equal, the value has not changed. Returns None
        if the key is missing, or if the store cannot provide a stamp cheaply. Decoded data are not cached then.
        """
        return None

    def version(self, key: str) -> Hashable | None:
        """Return a stamp that is checked with the store, even if this needs a request. None as in ``stamp``."""
        return self.stamp(key)

    def exists(self, key: str) -> bool:
        """Return whether the key exists."""
        return self.size(key) is not None

    def is_irregular(self, key: str) -> bool:
        """Return whether the key is missing, but its name is taken by something that is not a value: in a file system,
        a directory or a symbolic link without target. Only stores of local files return True.
        """
        return False

    # -- listing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def list_dir(self, prefix: str = "") -> Listing:
        """Return the names one level below the prefix. The listing is empty if there are none."""

    @abstractmethod
    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        """Yield all full keys below the prefix, in no particular order.

        If a part of them cannot be listed, directories yield the others before they raise StoreError.
        """

    def is_empty(self, prefix: str = "") -> bool:
        """Return whether it is certain that no keys are below the prefix, if one request is sufficient to find out.
        False if there are keys, or if this is not known.
        """
        return False

    def listing_stamp(self, prefix: str = "") -> Hashable | None:
        """Return an object that changes whenever a name is added or removed one level below the prefix.

        A stamp is taken before the names are listed. Returns None if the store cannot provide one cheaply.
        """
        return None

    def missing_container(self) -> str | None:
        """Return a clause that states that the bucket of the store does not exist, and what to do. None: it exists, the
        server does not tell, or stores of this kind have none. For messages; can take a request.
        """
        return None

    def usage(self, prefix: str = "") -> Usage:
        """Return the number, size and latest modification of the keys below the prefix. Lists all keys."""
        sizes = [self.size(key) or 0 for key in self.list_prefix(prefix)]
        return Usage(len(sizes), sum(sizes), None)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Store the value atomically: a reader sees the old value or the new one. A failure leaves the old one.

        The caller owns the buffer and may change it afterwards. A store that retains the value copies it.
        """
        raise self._read_only_error(f"writing {key!r}")

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        """Store the concatenated parts as one value, as ``set`` does. Some stores override this to avoid the copy."""
        self.set(key, b"".join(parts))

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        """Store the concatenated parts as ``set`` does, if the key is missing. Otherwise raise ValueCreatedError.

        Only the holder of a lock that is not held calls this; see ``lock``. A store with such locks overrides this and
        excludes other processes. The default looks before it writes.
        """
        if self.exists(key):
            raise ValueCreatedError(f"{self.url}/{key}")
        self.set_parts(key, parts)

    def delete(self, key: str) -> None:
        """Delete the key. Deleting a missing key does nothing."""
        raise self._read_only_error(f"deleting {key!r}")

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys below the prefix."""
        self.delete_keys(list(self.list_prefix(prefix)))

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Delete the keys, of which some can be missing. Stores that delete several by one request override this."""
        for key in keys:
            self.delete(key)

    def move_prefix(self, prefix: str, target: str) -> None:
        """Move the keys below ``prefix`` to ``target``, replacing existing values. ``""`` is the root of the store.

        If ``target`` is below ``prefix``, the keys that share the next segment with ``target`` are not moved: moving
        ``""`` to ``x/old`` moves all keys except those below ``x``. This is not atomic: after a failure each value has
        its old key, its new key, or both.
        """
        prefix_length = len(prefix) + 1 if prefix else 0
        retained = segment_below(prefix, target)
        for key in list(self.list_prefix(prefix)):
            name = key[prefix_length:]
            if retained is not None and name.startswith(f"{retained}/"):
                continue
            value = self.get(key)
            if value is not None:
                self.set(f"{target}/{name}" if target else name, value)
                self.delete(key)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return a context manager that excludes other processes while a value is read and then written.

        A directory can lock only a file that exists. If the value is missing and cannot be locked, the value of the
        context manager is True: the caller then writes it with ``create``, does not delete it, and locks and reads it
        again if another process has created it. Otherwise it is False or None. The default does nothing. The callers
        of a store synchronize threads.
        """
        return nullcontext()

    def _read_only_error(self, operation: str) -> ReadOnlyError:
        return ReadOnlyError(
            f"{self.url} is open read-only: {operation} is refused; open it with mode 'r+' to change it"
        )

    def flush(self) -> None:  # noqa: B027 - most stores have nothing to flush
        """Make all written values visible to other readers. Most stores do this with each value.

        An archive is complete only after ``flush`` or ``close``, which also end a transaction.
        """

    def clean(self, *, dry_run: bool = False) -> list[str]:
        """Remove the temporary files of writers that were killed, and return their paths.

        With ``dry_run`` the files are not removed. Files of running writers are not removed. Walks over all files.
        """
        return []

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Release files and connections. Closing twice is allowed. Other operations raise StoreError afterwards."""
        self._closed = True

    def roll_back(self) -> None:  # noqa: B027 - most stores have no transactions
        """Drop the changes of the current transaction, because what writes them has failed or was interrupted.

        Stores without transactions, and archives, keep what was written.
        """

    def _check_open(self) -> None:
        """Raise StoreError if the store is closed."""
        if self._closed:
            raise StoreError(f"{self.url} is closed; open it again to use it", errno.EBADF)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.roll_back()
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"
