"""Open directories: their entries, page by page."""

from __future__ import annotations

import itertools
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.errors import ZarrError

__all__ = ["ListedItem", "ListedName", "OpenDirectory"]

ATTRIBUTES = tuple[dict[str, Any], Array | Group | None]


MAX_SUMMARIZED = 10_000
"""The attributes of up to this many entries of a directory are returned if they are cheap. A program that reads more
entries before it looks them up would need longer than the kernel caches the attributes.
"""

MAX_MEMBERS = 5000
"""With more members no more attributes are returned than if they were expensive: for the same reason they would only
be used by programs that look entries up while they read, which the first look-up shows.
"""

MAX_EXPENSIVE = 32
"""The attributes of up to this many entries are returned if they are expensive: about one page of the directory."""

NAMES_AT_ONCE = 64
"""The number of entries that are listed together if no attributes are needed."""


class ListedItem(NamedTuple):
    """An entry of a directory that is being listed.

    Attributes:
        name: the file name.
        is_directory: whether it is a directory.
        is_summarized: whether its attributes are known already, or almost.
        status: returns its attributes (``st_mode``, ``st_size`` and others) and the node that it presents; None if it
            does not exist any more. Raises OSError and ZarrError.
    """

    name: str
    is_directory: bool
    is_summarized: bool
    status: Callable[[], ATTRIBUTES | None]


class ListedName(NamedTuple):
    """An entry that has been listed.

    Attributes:
        name: the file name.
        type: the bits of ``st_mode`` for the type of the file.
        attributes: its attributes, or None if they were not asked for or are not known.
        node: the node that it presents, if there are attributes.
    """

    name: str
    type: int
    attributes: dict[str, Any] | None = None
    node: Array | Group | None = None


class OpenDirectory:
    """A directory that a program reads. Thread-safe.

    ``start`` begins a listing; its argument returns whether the attributes of the next entries are probably used, and
    its own argument is the number of members of the group. The names of the entries are kept until the directory is
    closed, so that it can be read again from any offset.

    Attributes that are expensive are determined for the first entries only, and for the others if the program looks
    entries up while it reads the directory.

    Attributes:
        is_looked_up: set if an entry is looked up.
    """

    def __init__(self, start: Callable[[Callable[[int], bool]], Iterator[ListedItem]]) -> None:
        self.is_looked_up = False
        self._max_summarized = MAX_SUMMARIZED
        self._start = start
        self._lock = threading.Lock()
        self._names: list[ListedName] = []
        self._rest: Iterator[ListedItem] = iter(())
        self._last: ListedItem | None = None
        self._with_attributes = False

    def read(self, offset: int, with_attributes: bool) -> Iterator[ListedName]:
        """Yield the entries from ``offset`` on. With 0 as the offset a new listing begins.

        Raises the errors of the listing. An entry whose attributes cannot be determined has none.
        """
        self._with_attributes = with_attributes
        if offset == 0:
            with self._lock:
                self._names = [ListedName(".", stat.S_IFDIR), ListedName("..", stat.S_IFDIR)]
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

    def _entries(self, offset: int, with_attributes: bool) -> list[ListedName]:
        """Return the next entries from an offset on, at least one unless there are no more."""
        with_attributes = with_attributes and (
            self.is_looked_up or offset < max(self._max_summarized, MAX_EXPENSIVE)
        )
        while offset >= len(self._names):
            items = list(itertools.islice(self._rest, 1 if with_attributes else NAMES_AT_ONCE))
            if not items:
                return []
            self._last = items[-1]
            self._names += [
                ListedName(item.name, stat.S_IFDIR if item.is_directory else stat.S_IFREG) for item in items
            ]
        if not with_attributes:
            return self._names[offset : offset + NAMES_AT_ONCE]
        entry = self._names[offset]
        # The last entry of a page is read again for the next page if it did not fit.
        is_last = offset == len(self._names) - 1
        return [self._attributed(entry, offset) if is_last else entry]

    def _attributed(self, entry: ListedName, offset: int) -> ListedName:
        item = self._last
        if item is None or item.name != entry.name:
            return entry
        if not self.is_looked_up and offset >= (
            self._max_summarized if item.is_summarized else MAX_EXPENSIVE
        ):
            return entry
        try:
            status = item.status()
        except (ZarrError, OSError, MemoryError):
            return entry  # A program that needs the attributes looks the name up, and receives the error.
        return entry if status is None else ListedName(entry.name, entry.type, *status)
