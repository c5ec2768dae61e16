"""Open directories: their entries, page by page."""

from __future__ import annotations

import itertools
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import ZarrError
from zarrfs.mount.tree.entries import ListedEntry

__all__ = ["ATTRIBUTES", "DirectoryEntry", "OpenDirectory"]

ATTRIBUTES = tuple[dict[str, Any], Array | Group | None]
"""The attributes of an entry (``st_mode``, ``st_size`` and others) and the node that it presents."""

MAX_SUMMARIZED = 10_000
"""The attributes of up to this many entries of a directory are returned if they are cheap. A program that reads more
entries before it looks them up would need longer than the kernel caches the attributes.
"""

MAX_MEMBERS = 5000
"""In larger groups all attributes are treated as expensive. For the same reason only programs that look up entries
while they read would use them, and the first look-up identifies these programs.
"""

MAX_EXPENSIVE = 32
"""The attributes of up to this many entries are returned if they are expensive: about one page of the directory."""

NAMES_PER_BATCH = 64
"""The number of entries that are listed together if no attributes are needed."""


class DirectoryEntry(NamedTuple):
    """An entry of a directory as it is returned to the kernel.

    Attributes:
        name: the file name.
        type: the bits of ``st_mode`` for the type of the file.
        attributes: its attributes, or None if they were not requested or are not known.
        node: the node that it presents, if there are attributes.
        inode: its inode number; 0 if it is not known.
    """

    name: str
    type: int
    attributes: dict[str, Any] | None = None
    node: Array | Group | None = None
    inode: int = 0


class OpenDirectory:
    """A directory that a program reads. Thread-safe.

    ``start(needs_attributes)`` begins a listing. ``needs_attributes(member_count)`` returns whether the attributes of
    the next entries will probably be used. ``status(entry)`` returns the attributes of an entry, None if it does not
    exist any more, and raises OSError and ZarrError. The names of the entries are kept until the directory is closed,
    so that it can be read again from any offset.

    Expensive attributes are determined for the first entries only, and for further entries if the program looks up
    entries while it reads the directory.

    Attributes:
        is_looked_up: set if an entry is looked up.
    """

    def __init__(
        self,
        start: Callable[[Callable[[int], bool]], Iterator[ListedEntry]],
        status: Callable[[ListedEntry], ATTRIBUTES | None],
    ) -> None:
        self.is_looked_up = False
        self._max_summarized = MAX_SUMMARIZED
        self._start = start
        self._status = status
        self._lock = threading.Lock()
        self._names: list[DirectoryEntry] = []
        self._rest: Iterator[ListedEntry] = iter(())
        self._last: ListedEntry | None = None
        self._with_attributes = False

    def read(self, offset: int, with_attributes: bool) -> Iterator[DirectoryEntry]:
        """Yield the entries from ``offset`` on. Offset 0 begins a new listing.

        Raises the errors of the listing. An entry whose attributes cannot be determined has none.
        """
        self._with_attributes = with_attributes
        if offset == 0:
            with self._lock:
                self._names = [DirectoryEntry(".", stat.S_IFDIR), DirectoryEntry("..", stat.S_IFDIR)]
                self._rest = self._start(self._needs_attributes)
        while True:
            with self._lock:
                entries = self._entries(offset, with_attributes)
            if not entries:
                return
            yield from entries
            offset += len(entries)

    def _needs_attributes(self, members: int) -> bool:
        self._max_summarized = MAX_SUMMARIZED if members <= MAX_MEMBERS else MAX_EXPENSIVE
        return self.is_looked_up or (self._with_attributes and len(self._names) < self._max_summarized)

    def _entries(self, offset: int, with_attributes: bool) -> list[DirectoryEntry]:
        """Return the next entries from an offset on, at least one unless there are no more."""
        with_attributes = with_attributes and (
            self.is_looked_up or offset < max(self._max_summarized, MAX_EXPENSIVE)
        )
        while offset >= len(self._names):
            items = list(itertools.islice(self._rest, 1 if with_attributes else NAMES_PER_BATCH))
            if not items:
                return []
            self._last = items[-1]
            self._names += [
                DirectoryEntry(item.name, stat.S_IFDIR if item.is_directory else stat.S_IFREG)
                for item in items
            ]
        if not with_attributes:
            return self._names[offset : offset + NAMES_PER_BATCH]
        entry = self._names[offset]
        # The last entry of a page is read again for the next page if it did not fit.
        is_last = offset == len(self._names) - 1
        return [self._attributed(entry, offset) if is_last else entry]

    def _attributed(self, entry: DirectoryEntry, offset: int) -> DirectoryEntry:
        item = self._last
        if item is None or item.name != entry.name:
            return entry
        if not self.is_looked_up and offset >= (
            self._max_summarized if item.summarize is not None else MAX_EXPENSIVE
        ):
            return entry
        try:
            status = self._status(item)
        except (ZarrError, OSError, MemoryError):
            return entry  # A program that needs the attributes looks the name up, and receives the error.
        return entry if status is None else DirectoryEntry(entry.name, entry.type, *status)
