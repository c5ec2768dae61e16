"""Revalidation, missing-chunk policy and concurrency of open nodes.

The options correspond to TensorStore's "recheck_cached_metadata", "recheck_cached_data", "fill_missing_data_reads",
"store_data_equal_to_fill_value" and "data_copy_concurrency".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from zarrfs.engine.stores.base import IMMUTABLE, StoredValue
from zarrfs.errors import ChunkDecodeError

__all__ = ["ReadWriteOptions", "Recheck"]

Recheck = bool | Literal["open"] | float | datetime | timedelta
"""When cached metadata or data are compared with the store before use.

* True: at each access.
* ``"open"``: when the node is opened.
* False: never.
* A datetime, or seconds since 1970: if they were read before that point in time.
* A timedelta: if they were read longer ago than that.
"""


@dataclass(frozen=True)
class ReadWriteOptions:
    """How a node, and the nodes that are reached from it, are read and written. Immutable.

    ``zarrfs.Access`` is an alias, which users write: ``zarrfs.open(location, access=zarrfs.Access(...))``.

    Raises ValueError for a value that an option cannot have.

    Attributes:
        recheck_metadata: when metadata are read again before data are read or written. A changed shape and changed
            attributes are accepted; any other change raises MetadataError.
        recheck_data: when cached decoded chunks are compared with the store. None lets the store decide: files, memory
            and local databases are compared each time, because that is cheap; remote stores that are open read-only
            are assumed not to change.
        fill_missing: whether missing chunks read as the fill value. If False, they raise MissingChunkError.
        write_empty_chunks: whether chunks that contain only the fill value are stored.
        concurrency: the maximum number of threads for one read or write. None: as many as are useful. If it is given
            when a node is opened or created, it is also the maximum number of requests of the store at a time.
        allow_pickle: whether object arrays that were stored by pickle may be read. Unpickling executes code that the
            data contain.
        max_document: the maximum size of a metadata document in bytes; a larger one is rejected without being read.
            None: the value of the environment variable ZARRFS_MAX_DOCUMENT, or else 64 MiB.
        allow_external: whether data outside the store may be read if the store refers to them: targets of symbolic
            links that leave the store, and targets of references on other hosts or in other directories. It applies to
            stores that are opened by their location; see ``docs/security.md``.
        assumed: set if the caller supplied the metadata instead of reading them: ``"cached"`` if the store has the same
            metadata, ``"only"`` if it may have none; they cannot be changed then. None: they were read.
        use_consolidated: whether members of a group are looked up in its consolidated metadata. None: if lookups in
            the store are slow (remote stores, and stores that cannot list).
        on_corrupt: called with the error of each chunk or inner chunk that is read and cannot be decoded, which then
            reads as the fill value. It can be called by several threads. None: the error is raised.
    """

    recheck_metadata: Recheck = "open"
    recheck_data: Recheck | None = None
    fill_missing: bool = True
    write_empty_chunks: bool = False
    concurrency: int | None = None
    allow_pickle: bool = False
    max_document: int | None = None
    allow_external: bool = False
    assumed: Literal["cached", "only"] | None = None
    use_consolidated: bool | None = None
    on_corrupt: Callable[[ChunkDecodeError], None] | None = None

    def __post_init__(self) -> None:
        for name in ("recheck_metadata", "recheck_data"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "open":
                raise ValueError(f"{name} must be a bool, 'open', a time or a timedelta, found {value!r}")
            if isinstance(value, timedelta) and value <= timedelta(0):
                raise ValueError(f"{name}: a timedelta must be positive, found {value}; True checks always")
        for name in ("max_document", "concurrency"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be an integer of at least 1, or None; found {value!r}")

    @property
    def reading(self) -> dict[str, Any]:
        """The keyword arguments of ``formats.read_node`` that these options determine."""
        return {"allow_pickle": self.allow_pickle, "max_document": self.max_document}

    @property
    def assumes_unchanged_data(self) -> bool:
        """Whether data are assumed not to change while the node is open."""
        return self.recheck_data is False or self.recheck_data == "open"

    def stamp(self, value: StoredValue) -> Hashable | None:
        """Return the version stamp under which data decoded from ``value`` are cached.

        Cached data are valid while the stamp is equal. None: the data must not be cached.
        """
        recheck = self.recheck_data
        if recheck is None:
            return value.stamp()
        if recheck is True:
            return value.version()
        if recheck is False or recheck == "open":
            return IMMUTABLE
        if isinstance(recheck, timedelta):
            return int(time.monotonic() / recheck.total_seconds())
        return IMMUTABLE if time.time() >= _timestamp(recheck) else value.version()

    def metadata_expired(self, read_at: float) -> bool:
        """Return whether metadata that were read at ``read_at`` (seconds since 1970) must be read again before use."""
        recheck = self.recheck_metadata
        if self.assumed == "only" or recheck == "open" or recheck is False:
            return False
        if recheck is True:
            return True
        if isinstance(recheck, timedelta):
            return time.time() - read_at > recheck.total_seconds()
        return read_at < _timestamp(recheck)

    def may_reuse_metadata(self, read_at: float) -> bool:
        """Return whether a node may be opened with metadata that were read earlier, at ``read_at`` (seconds since
        1970).
        """
        recheck = self.recheck_metadata
        if recheck is True or recheck == "open":
            return False
        return recheck is False or not self.metadata_expired(read_at)


def _timestamp(value: float | datetime) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)
