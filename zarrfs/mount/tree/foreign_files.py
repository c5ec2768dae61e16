"""Files that other programs have stored beside the nodes of a hierarchy, such as Parquet files of SpatialData.

They are the keys that ``zarrfs copy`` copies unchanged: those below a group that are no metadata document, and all keys
below a prefix that is no node. A mount shows them as read-only files. Keys in the directory of an array are not shown,
because an array is no directory of a mount.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from zarrfs.engine.formats import api as formats
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.staging import is_staging_key
from zarrfs.engine.stores.base import ByteRange, Listing, Store
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX
from zarrfs.engine.stores.wrappers.wrapper import unwrapped
from zarrfs.errors import KeyNameError, StoreError
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.mount.tree.entries import Directory, Entry, ListedEntry, VirtualFile
from zarrfs.mount.tree.node_cache import NodeCache

__all__ = ["ForeignFiles"]

PART_NBYTES = 1 << 20
"""Values that are not files are read in parts of this size: a request to a server takes long for a few bytes too, and a
compressed member of a zip file is decompressed from its beginning.
"""

MAX_NAME_NBYTES = 255


class StoredSegment:
    """The bytes of a stored value. They are those of the version that the value had when the segment was created."""

    def __init__(self, store: Store, key: str, nbytes: int) -> None:
        self.nbytes = nbytes
        self._store = store
        self._key = key
        self._stamp = store.stamp(key)
        self._part_nbytes = PART_NBYTES if store.directory is None else 0
        self._part: tuple[int, memoryview] | None = None

    def read_into(self, offset: int, out: memoryview) -> None:
        """Fill ``out`` with the bytes from ``offset``. Raises StoreError with ESTALE if the value has changed."""
        done = 0
        while done < len(out):
            start, data = self._read(offset + done, len(out) - done)
            skipped = offset + done - start
            part = data[skipped : skipped + len(out) - done]
            out[done : done + len(part)] = part
            done += len(part)

    def _read(self, offset: int, size: int) -> tuple[int, memoryview]:
        """Return bytes that contain the one at ``offset``, and where they begin. ``size`` bytes are needed."""
        part = self._part
        if part is not None and part[0] <= offset < part[0] + len(part[1]):
            if self._stamp is not None and self._store.stamp(self._key) != self._stamp:
                raise self._changed()
            return part
        start = offset
        if self._part_nbytes:
            start = offset // self._part_nbytes * self._part_nbytes
            size = min(self._part_nbytes, self.nbytes - start)
        with self._store.open_value(self._key) as value:
            found = value.read_ranges([ByteRange(start, size)])
            if self._stamp is not None and not value.is_unchanged(self._stamp):
                raise self._changed()
        data = None if found is None else memoryview(found[0]).cast("B")
        if data is None or len(data) != size:
            raise self._changed()
        if self._part_nbytes:
            self._part = start, data
        return start, data

    def _changed(self) -> StoreError:
        return StoreError(
            f"{self._store.url}: {self._key!r} has changed since it was opened; open it again", errno.ESTALE
        )


class ForeignFiles:
    """Finds and lists the files of other programs by their paths relative to the root of a mount. Thread-safe.

    ``find_presented`` returns the entry at a path that presents a node, which takes precedence. ``with_permissions`` is
    whether the entries have the permissions of the stored files.
    """

    def __init__(
        self,
        nodes: NodeCache,
        find_presented: Callable[[str], Entry | None],
        *,
        with_permissions: bool = False,
    ) -> None:
        self.find_presented = find_presented
        self._nodes = nodes
        self._with_permissions = with_permissions

    def find(self, path: str) -> Entry | None:
        """Return the file or directory at a path that presents no node, or None. Raises StoreError."""
        located = self._locate(path)
        if located is None:
            return None
        store, key = located
        try:
            size = store.size(key)
            if size is not None:
                content = VirtualFileContent([StoredSegment(store, key, size)])
                modified, access = self._status(store, key)
                return VirtualFile(content, size, modified, None, access=access, is_foreign=True)
            if store.listable and _has_keys(store, key):
                modified, access = self._status(store, key)
                return Directory(None, modified, access=access, foreign_path=path)
        except KeyNameError:
            pass
        return None

    def entries(self, path: str) -> Iterator[ListedEntry]:
        """Yield the entries of a directory that is no node. Raises StoreError, before the first entry."""
        located = self._locate(path)
        if located is None:
            return iter(())
        store, key = located
        return self._entries(path, store.list_dir(key))

    def in_group(self, group: Group, path: str, listing: Listing) -> Iterator[ListedEntry]:
        """Yield the entries of a group at a path. ``listing`` has its keys, and its prefixes that are no nodes.

        They include names that are those of views.
        """
        if formats.features(group.zarr_format).root_prefixes:
            return
        keys = [key for key in listing.keys if not formats.is_document_name(key, group.zarr_format)]
        for entry in self._entries(path, Listing(keys, listing.prefixes)):
            # A directory of a disk can be empty.
            if not entry.is_directory or group.store.is_remote or entry.find() is not None:
                yield entry

    def _entries(self, path: str, listing: Listing) -> Iterator[ListedEntry]:
        files = frozenset(listing.keys)
        names = [(name, False) for name in listing.keys]
        names += [(name, True) for name in listing.prefixes if name not in files]
        for name, is_directory in names:
            if _is_shown(name):
                yield ListedEntry(name, is_directory, partial(self.find, f"{path}/{name}".lstrip("/")))

    def _locate(self, path: str) -> tuple[Store, str] | None:
        """Return the store and the key of a path; None if the key belongs to a node, or has no name for a file."""
        parent, node = path, self._nodes.get(path).node
        if node is not None:
            return None
        while node is None and parent:
            parent = parent.rpartition("/")[0]
            node = self._nodes.get(parent).node
        if not isinstance(node, Group):
            return None
        below = path[len(parent) :].strip("/")
        first = below.partition("/")[0]
        if self._nodes.is_absent(f"{parent}/{first}".lstrip("/")):
            return None
        if first != below and self.find_presented(f"{parent}/{first}".lstrip("/")) is not None:
            return None
        if formats.is_document_name(below, node.zarr_format):
            return None
        if formats.features(node.zarr_format).root_prefixes or not all(map(_is_shown, below.split("/"))):
            return None
        return node.store, f"{node.path}/{below}".lstrip("/")

    def _status(self, store: Store, key: str) -> tuple[float | None, tuple[int, int, int] | None]:
        """Return the time of the last change, and the mode, the user and the group, of a stored file.

        A member of an archive has those of the archive.
        """
        if store.directory is not None:
            path: Any = os.path.join(store.directory, key)
        else:
            path = getattr(unwrapped(store), "path", None)
        try:
            status = os.stat(path) if isinstance(path, str) else None
        except OSError:
            status = None
        if status is None:
            return None, None
        access = (status.st_mode | (status.st_mode & 0o444) >> 2, status.st_uid, status.st_gid)
        return status.st_mtime, access if self._with_permissions else None


def _has_keys(store: Store, prefix: str) -> bool:
    """Return whether there is a key below a prefix. A large directory of a disk is not read as a whole."""
    if store.directory is not None:
        return next(iter(store.list_prefix(prefix)), None) is not None
    return any(store.list_dir(prefix))


def _is_shown(name: str) -> bool:
    """Return whether a part of a foreign key can be the name of a file, and is not that of a file being written."""
    if name in ("", ".", "..") or "\0" in name or name.startswith(TEMPORARY_PREFIX) or is_staging_key(name):
        return False
    return len(os.fsencode(name)) <= MAX_NAME_NBYTES
