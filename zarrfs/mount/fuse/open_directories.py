"""Open directories: their entries, page by page."""

from __future__ import annotations

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

MAX_EXPENSIVE = 32
"""The same for entries whose attributes are expensive: about one page of the directory."""


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

    ``start`` begins a listing; its argument returns whether the attributes of the next entries are probably used. The
    names of the entries are kept until the directory is closed, so that it can be read
    again from any offset.

    Attributes that are expensive are determined for the first entries only, and for the others if the program looks
    entries up while it reads the directory.

    Attributes:
        is_looked_up: set if an entry is looked up.
    """

    def __init__(self, start: Callable[[Callable[[], bool]], Iterator[ListedItem]]) -> None:
        self.is_looked_up = False
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
                entry = self._entry(offset, with_attributes)
            if entry is None:
                return
            yield entry
            offset += 1

    def _needs_attributes(self) -> bool:
        return self.is_looked_up or (self._with_attributes and len(self._names) < MAX_SUMMARIZED)

    def _entry(self, offset: int, with_attributes: bool) -> ListedName | None:
        while offset >= len(self._names):
            item = next(self._rest, None)
            if item is None:
                return None
            self._last = item
            self._names.append(ListedName(item.name, stat.S_IFDIR if item.is_directory else stat.S_IFREG))
        entry = self._names[offset]
        # The last entry of a page is read again for the next page if it did not fit.
        is_last = offset == len(self._names) - 1
        return self._attributed(entry, offset) if with_attributes and is_last else entry

    def _attributed(self, entry: ListedName, offset: int) -> ListedName:
        item = self._last
        if item is None or item.name != entry.name:
            return entry
        if not self.is_looked_up and offset >= (MAX_SUMMARIZED if item.is_summarized else MAX_EXPENSIVE):
            return entry
        try:
            status = item.status()
        except (ZarrError, OSError, MemoryError):
            return entry  # A program that needs the attributes looks the name up, and receives the error.
        return entry if status is None else ListedName(entry.name, entry.type, *status)
