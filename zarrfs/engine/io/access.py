"""How a node is looked at: what is asked of the store again, what absence means, on how many threads.

These are the open options of TensorStore ("recheck_cached_metadata", "recheck_cached_data",
"fill_missing_data_reads", "store_data_equal_to_fill_value", "data_copy_concurrency"), by which a user says how much
is known of those who write.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from zarrfs.engine.stores.base import IMMUTABLE, StoredValue

__all__ = ["Access", "Recheck"]

Recheck = bool | Literal["open"] | float | datetime | timedelta
"""When what is remembered is compared with the store before it is used: True, always; ``"open"``, when the node is
opened; False, never; a moment (a datetime, or seconds since 1970), if it was read before that; a timedelta, if it was
read longer ago than that.
"""


@dataclass(frozen=True)
class Access:
    """How a node, and those reached from it, are read and written.

    Attributes:
        recheck_metadata: when metadata are read again before data are read or written. A changed shape is taken
            over, changed attributes too; any other change is a MetadataError.
        recheck_data: when decoded chunks that are kept in memory are compared with the store. None leaves it to the
            store: files, memory and databases on this machine are compared every time, since that is cheap; what is
            opened read-only over a network is taken to stay as it is.
        fill_missing: whether chunks that are not there read as the fill value; otherwise that is a MissingChunkError.
        write_empty_chunks: whether chunks that hold nothing but the fill value are stored.
        concurrency: the most threads for one read or write; None: as many as help.
        allow_pickle: whether object arrays that were stored by pickle may be read. Unpickling runs code that the data
            choose.
        max_document: the most bytes of a metadata document; a larger one is refused without reading it. None: 64 MiB,
            or what the environment variable ZARRFS_MAX_DOCUMENT says.
        allow_external: whether data outside the store may be read that the store names: targets of symbolic links
            that lead out of it, and targets of references on other hosts or in other directories. It applies to stores
            that are opened by their location; see ``docs/security.md``.
        assumed: whether metadata were given and not read: ``"cached"`` if the store has them too, ``"only"`` if it
            need not, and they cannot be changed.
        use_consolidated: whether consolidated metadata say what is in a group. None: where asking the store is slow.
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

    def __post_init__(self) -> None:
        for name in ("recheck_metadata", "recheck_data"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "open":
                raise ValueError(f"{name} must be a bool, 'open', a time or a timedelta, found {value!r}")
            if isinstance(value, timedelta) and value <= timedelta(0):
                raise ValueError(f"{name}: a timedelta must be positive, found {value}; True checks always")
        if self.max_document is not None and self.max_document < 1:
            raise ValueError(f"max_document must be at least 1, found {self.max_document}")
        if self.concurrency is not None and (not isinstance(self.concurrency, int) or self.concurrency < 1):
            raise ValueError(
                f"concurrency must be an integer of at least 1, or None; found {self.concurrency!r}"
            )

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of ``formats.read_node`` that follow from this."""
        return {"allow_pickle": self.allow_pickle, "max_document": self.max_document}

    @property
    def settled(self) -> bool:
        """Whether data are taken to stay as they are."""
        return self.recheck_data is False or self.recheck_data == "open"

    def stamp(self, value: StoredValue) -> Hashable | None:
        """Return the stamp under which data decoded from a value are cached: they may be used while it stays equal.

        None means that they must not be cached.
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
        return IMMUTABLE if time.time() >= _moment(recheck) else value.version()

    def metadata_expired(self, read_at: float) -> bool:
        """Tell whether metadata that were read at a time (seconds since 1970) must be read again before use."""
        recheck = self.recheck_metadata
        if self.assumed == "only" or recheck == "open" or recheck is False:
            return False
        if recheck is True:
            return True
        if isinstance(recheck, timedelta):
            return time.time() - read_at > recheck.total_seconds()
        return read_at < _moment(recheck)

    def may_reuse_metadata(self, read_at: float) -> bool:
        """Tell whether opening may take metadata that another opening read at a time."""
        recheck = self.recheck_metadata
        if recheck is True or recheck == "open":
            return False
        return recheck is False or not self.metadata_expired(read_at)


def _moment(value: float | datetime) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)
