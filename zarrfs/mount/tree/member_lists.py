"""The names of the members of groups: listings, and names that are known not to exist."""

from __future__ import annotations

import time
from collections.abc import Callable

from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.base import Listing
from zarrfs.errors import StoreError, ZarrError
from zarrfs.logs import logger
from zarrfs.mount.tree.node_records import NAME_NBYTES, NodeRecord
from zarrfs.ngff.members import member_names

__all__ = ["MIN_MISSES", "MemberLists"]

MAX_LISTING_SECONDS = 0.1
"""A listing that takes longer is not repeated to find out that a name does not exist."""

MIN_MISSES = 16
"""After this many names that do not exist, the members of a group are listed."""

SLOW_LISTING = -1_000_000
"""The number of misses of a group whose listing takes too long, so that it is not repeated soon."""


class MemberLists:
    """Lists members and keeps the names in the record of the group for ``refresh_seconds``. Thread-safe.

    ``grow`` counts memory that a record occupies in addition.
    """

    def __init__(
        self,
        grow: Callable[[NodeRecord, int], None],
        *,
        immutable: bool,
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._grow = grow
        self._immutable = immutable
        self._refresh_seconds = refresh_seconds
        self._clock = clock

    def names(self, record: NodeRecord, group: Group) -> tuple[list[str], Listing]:
        """Return the sorted names that may be members of a group, the node of a record with its attributes, and the
        names that the store lists, which include those of files of other programs.

        Raises StoreError if a store cannot list it.
        """
        start = self._clock()
        stamp = group.store.listing_stamp(group.path)
        listing = _list(group)
        names = member_names(group, listing)
        if listing is not None and not group.uses_consolidated:
            # A backslash is a separator in the paths of zarr libraries, but not in the names of files.
            names = sorted([*names, *(name for name in listing.prefixes if "\\" in name)])
        elapsed = self._clock() - start
        if _lists_all_members(group) and (stamp is not None or elapsed <= MAX_LISTING_SECONDS):
            # Files of other programs are no members, but their names are not absent.
            known = (
                frozenset(names) if listing is None else frozenset((*names, *listing.keys, *listing.prefixes))
            )
            if record.members is None:
                self._grow(record, NAME_NBYTES * len(known))
            # A listing that the store may have changed meanwhile counts from its beginning.
            record.members, record.members_stamp = known, stamp
            record.members_expire = start + self._refresh_seconds
        return names, listing or Listing([], [])

    def recent_names(self, record: NodeRecord) -> frozenset[str] | None:
        """Return the names of the last listing of a group, the node of a record, if they are current. Else None."""
        if not isinstance(record.node, Group) or not _lists_all_members(record.node):
            return None
        return record.members if self._is_recent(record, record.node) else None

    def is_absent(self, record: NodeRecord | None, name: str) -> bool:
        """Return whether a recent listing of a group shows that there is no member, and nothing else, with this name.

        ``record`` is that of the group, or None if it is not known.
        """
        if record is None or not isinstance(record.node, Group) or not _lists_all_members(record.node):
            return False
        if self._is_recent(record, record.node):
            return name not in (record.members or ())
        if record.misses < MIN_MISSES:
            return False
        # Programs look up many names that do not exist. One listing is cheaper than a request for each.
        record.misses = 0
        try:
            self.names(record, record.node)
        except (ZarrError, OSError):
            return False
        if not self._is_recent(record, record.node):
            record.misses = SLOW_LISTING
            return False
        return name not in (record.members or ())

    def _is_recent(self, record: NodeRecord, group: Group) -> bool:
        """Return whether the cached names of a record are current, as far as this is known."""
        now = self._clock()
        if record.members is None:
            return False
        if self._immutable or now < record.members_expire:
            return True
        if record.members_stamp is None or group.store.listing_stamp(group.path) != record.members_stamp:
            return False
        record.members_expire = now + self._refresh_seconds
        return True


def _list(group: Group) -> Listing | None:
    """Return the names that the store lists in a group, or None if it cannot list."""
    if not group.store.listable:
        return None
    try:
        return group.store.list_dir(group.path)
    except (StoreError, OSError) as error:
        if not group.uses_consolidated:
            raise
        # The members are known. A server may permit reading only.
        logger.info("%s: files of other programs in %s are not shown: %s", group.store.url, group.name, error)
        return None


def _lists_all_members(node: Group) -> bool:
    """Whether a name that is not in a listing is not a member. Consolidated metadata can be incomplete."""
    return node.store.listable and not node.store.is_remote and not node.uses_consolidated
