"""The contract of a store: keys to values, byte ranges of values, and listings.

After the "Abstract store interface" of the Zarr v3 core specification. What differs, and why: an absent key is
``None`` and never an error, because an absent chunk is ordinary; ``stamp`` is ours, so that decoded chunks can
be cached without ever showing stale data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, NamedTuple, Self

from zarrfs.errors import KeyNameError, ReadOnlyError

__all__ = [
    "IMMUTABLE",
    "Buffer",
    "ByteRange",
    "Listing",
    "Store",
    "Usage",
    "ValueTooLargeError",
    "check_key",
]

Buffer = bytes | bytearray | memoryview
"""What a store hands out and takes: contiguous bytes. The receiver never writes into it."""

IMMUTABLE: Hashable = "immutable"
"""The stamp of a value that cannot change while the store is open."""


class ByteRange(NamedTuple):
    """A range of a value: ``length`` bytes from ``start``, or to the end where ``length`` is None.

    A negative ``start`` counts from the end (``ByteRange(-20)`` is the last 20 bytes); ``length`` is None then.
    """

    start: int
    length: int | None = None

    def resolve(self, size: int) -> tuple[int, int]:
        """Return ``(start, stop)`` within a value of ``size`` bytes, clipped to it."""
        start = max(0, size + self.start) if self.start < 0 else min(self.start, size)
        stop = size if self.length is None else min(size, start + self.length)
        return start, stop


class Listing(NamedTuple):
    """One level below a prefix: names without the prefix and without slashes, each list sorted."""

    keys: list[str]
    prefixes: list[str]


class Usage(NamedTuple):
    """What is stored below a prefix: number of keys, bytes, and the newest change (seconds since the epoch)."""

    keys: int
    nbytes: int
    modified: float | None


class ValueTooLargeError(Exception):
    """A value has more bytes than it can have. Internal: users see a ChunkDecodeError."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"{size:,} bytes are stored, which is far more than it can have (at most {most:,})")


def check_key(key: str) -> str:
    """Return ``key`` if it stays inside the store, else raise KeyNameError.

    A key is non-empty, neither starts nor ends with a slash, and none of its segments is empty, ``.`` or ``..``;
    it holds no NUL.
    """
    if not key or "\0" in key or any(part in ("", ".", "..") for part in key.split("/")):
        raise KeyNameError(
            f"{key!r} is not a valid store key: it must be non-empty, without empty, '.' or '..' segments, "
            "without NUL, and neither start nor end with '/'"
        )
    return key


class Store(ABC):
    """Keys to values. Safe to use from several threads at once. Errors are ``StoreError``; absence is None.

    A prefix is ``""`` (everything) or a key without trailing slash; it selects the keys that start with it and a
    slash. A store owns what it opened (files, connections) until ``close``.
    """

    read_only: bool = False
    listable: bool = True
    """Whether ``list_dir`` and ``list_prefix`` work. A plain HTTP server cannot list."""
    in_process: bool = False
    """Whether the values are in the memory of this process, where no other can reach them."""
    synchronized: bool = False
    """Whether writers take turns by ``lock``: then others write to the same arrays, and may have made them longer."""
    concurrency: int = 1
    """How many ``get`` calls are worth having in flight at once for latency's sake: 1 for local stores."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The canonical URL of the store, for messages and for opening it again where that is possible."""

    # -- reading -----------------------------------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str) -> Buffer | None:
        """Return the value, or None when the key is absent. The caller must not write into it."""

    def get_within(self, key: str, most: int | None) -> Buffer | None:
        """Return the value as ``get`` does. Raises ValueTooLargeError if it has more than ``most`` bytes (None: any
        number); stores that know the size beforehand then do not read it, and override this.
        """
        value = self.get(key)
        if most is not None and value is not None and len(value) > most:
            raise ValueTooLargeError(len(value), most)
        return value

    def get_stamped(self, key: str, most: int | None) -> tuple[Buffer, Hashable | None] | None:
        """Return the value as ``get_within`` does, together with its ``stamp``; None when the key is absent."""
        stamp = self.stamp(key)
        value = self.get_within(key, most)
        return None if value is None else (value, stamp)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Return the bytes of each range in the order asked, or None when the key is absent.

        A range that reaches past the end gives what there is (possibly nothing). Stores that can fetch ranges
        override this; the default fetches the whole value.
        """
        value = self.get(key)
        if value is None:
            return None
        view = memoryview(value)
        pieces: list[Buffer] = []
        for byte_range in ranges:
            start, stop = byte_range.resolve(len(view))
            pieces.append(view[start:stop])
        return pieces

    def get_into(self, key: str, out: memoryview) -> int | None:
        """Fill ``out`` (writable bytes) with the value and return the value's size, or None when the key is absent.

        When the size is not that of ``out``, what ``out`` then holds means nothing.
        """
        value = self.get(key)
        if value is None:
            return None
        size = memoryview(value).nbytes
        if size == len(out):
            out[:] = value
        return size

    @abstractmethod
    def size(self, key: str) -> int | None:
        """Return the number of bytes of the value, or None when the key is absent."""

    def stamp(self, key: str) -> Hashable | None:
        """Return something that changes whenever the value changes, or None when the key is absent or no such
        thing can be told cheaply; what is decoded is then not kept. Taken *before* the value is read, an equal stamp
        later proves it unchanged.
        """
        return None

    def version(self, key: str) -> Hashable | None:
        """Return what ``stamp`` does, but surely, even if it costs a request."""
        return self.stamp(key)

    def exists(self, key: str) -> bool:
        """Tell whether the key is present."""
        return self.size(key) is not None

    # -- listing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def list_dir(self, prefix: str = "") -> Listing:
        """Return the names one level below the prefix (nothing when there are none)."""

    @abstractmethod
    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        """Yield all full keys below the prefix, in no particular order."""

    def usage(self, prefix: str = "") -> Usage:
        """Return number, bytes and newest change of the keys below the prefix. Costs a listing."""
        sizes = [self.size(key) or 0 for key in self.list_prefix(prefix)]
        return Usage(len(sizes), sum(sizes), None)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Store the value atomically: a reader sees the old value or the new one, a failure leaves the old one.

        The memory of the value is the caller's, who may change it afterwards: who keeps it, keeps a copy.
        """
        raise self._refuse(f"writing {key!r}")

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        """Store the parts, one after the other, as one value; as ``set``. For stores that need not join them."""
        self.set(key, b"".join(parts))

    def delete(self, key: str) -> None:
        """Delete the key. Deleting an absent key does nothing."""
        raise self._refuse(f"deleting {key!r}")

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys below the prefix."""
        for key in list(self.list_prefix(prefix)):
            self.delete(key)

    def move_prefix(self, prefix: str, target: str) -> None:
        """Give the keys below a prefix (none: all of them) another one, replacing what is there. Not one step: what
        fails on the way leaves each value under its old key, its new one, or both.
        """
        cut = len(prefix) + 1 if prefix else 0
        for key in list(self.list_prefix(prefix)):
            value = self.get(key)
            if value is not None:
                self.set(f"{target}/{key[cut:]}" if target else key[cut:], value)
                self.delete(key)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return a context to change a value in, by reading and writing it. Here nothing: threads take turns above."""
        return nullcontext()

    def _refuse(self, what: str) -> ReadOnlyError:
        return ReadOnlyError(
            f"{self.url} is open read-only: {what} is refused; open it with mode 'r+' to change it"
        )

    def flush(self) -> None:  # noqa: B027 - most stores have it done
        """Make what was written complete, for whoever opens the store now. Most stores do so with each value; an
        archive is complete only then, or when it is closed.
        """

    def clean(self, *, dry_run: bool = False) -> list[str]:
        """Remove the files that writers left behind when they were killed; return their paths. ``dry_run`` only
        returns them. What a living writer writes is left alone. Costs a walk over all files.
        """
        return []

    # -- life --------------------------------------------------------------------------------------------------

    def close(self) -> None:  # noqa: B027 - most stores hold nothing
        """Release files and connections. Closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"
