"""Look-ups of the files of a group in the order of its listing, answered from documents that are read together.

Programs such as ``du`` and ``tar`` read a whole directory and then ask for the attributes of each file. By then the
kernel has dropped the attributes that a listing of tens of thousands of files returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from zarrfs.engine.group.group import Group
from zarrfs.mount.tree.array_summaries import ArraySummaries
from zarrfs.mount.tree.entries import FileSummary
from zarrfs.mount.tree.node_cache import NodeCache

__all__ = ["SummaryLookups"]

MEMBERS_PER_BATCH = 64

MIN_MEMBERS = 256
"""The look-ups in smaller groups open each array, which programs then usually read."""

MAX_SKIPPED = 4
"""Look-ups continue a sequence if they omit at most this many members."""


class _Listing(NamedTuple):
    """The last listing of a group.

    Attributes:
        path: the path of the group relative to the root.
        names: the names of its members in the order of the listing.
        positions: the positions of the names.
        stamp: the stamp of the names in the store.
    """

    path: str
    names: Sequence[str]
    positions: dict[str, int]
    stamp: Hashable


class SummaryLookups:
    """Answers look-ups in the group that was listed last. Thread-safe. ``suffixes`` are those of the listed views."""

    def __init__(self, nodes: NodeCache, summaries: ArraySummaries, suffixes: Sequence[str]) -> None:
        self._nodes = nodes
        self._summaries = summaries
        self._suffixes = tuple(suffixes)
        self._lock = threading.Lock()
        self._listing: _Listing | None = None
        self._last = 0
        self._known: dict[str, Callable[[], FileSummary | None]] = {}
        self._scanned = range(0)

    def listed(self, path: str, names: Sequence[str], stamp: Hashable | None) -> None:
        """Remember the names of the members of a group, which had a stamp before they were listed."""
        if stamp is None or len(names) < MIN_MEMBERS:
            return
        listing = _Listing(path, names, {name: position for position, name in enumerate(names)}, stamp)
        with self._lock:
            self._listing, self._last, self._known, self._scanned = listing, 0, {}, range(0)

    def find(self, path: str, file_name: str) -> FileSummary | None:
        """Return the sizes of a file of the group at a path, or None if the array has to be opened.

        Raises StoreError if the metadata of a group above cannot be read.
        """
        listing = self._listing
        if listing is None or listing.path != path:
            return None
        known = self._known.get(file_name)
        summary = None if known is None else known()
        if summary is not None:
            return summary
        position = self._position(listing, file_name)
        if position is None:
            return None
        with self._lock:
            if known is None and position in self._scanned:
                return None  # The array has to be opened.
            skipped = position - self._last
            self._last = position
        if not 0 <= skipped <= MAX_SKIPPED:
            return None
        found = self._scan(listing, position)
        with self._lock:
            if self._listing is not listing:
                return None
            self._known = found
            self._scanned = range(position, min(position + MEMBERS_PER_BATCH, len(listing.names)))
            self._last = self._scanned[-1]
        known = found.get(file_name)
        return None if known is None else known()

    def _position(self, listing: _Listing, file_name: str) -> int | None:
        for suffix in self._suffixes:
            if file_name.endswith(suffix):
                return listing.positions.get(file_name[: -len(suffix)])
        return None

    def _scan(self, listing: _Listing, position: int) -> dict[str, Callable[[], FileSummary | None]]:
        """Return the sizes of the files of the members from a position on, as far as they need not be opened."""
        parent = self._nodes.get(listing.path)
        group = parent.node
        # The name of a new member may be that of a file.
        if not isinstance(group, Group) or group.store.listing_stamp(group.path) != listing.stamp:
            return {}
        part = listing.names[position : position + MEMBERS_PER_BATCH]
        scanned = self._summaries.scan(parent, listing.path, part)
        if scanned is None:
            return {}
        entries = [entry for name in part for entry in scanned.entries(name, listing.positions.keys()) or ()]
        return {entry.name: entry.summarize for entry in entries if entry.summarize is not None}
