"""The documents and stored sizes of many members of a group, read together."""

from __future__ import annotations

import os
from collections.abc import Sequence

from zarrfs.engine.formats.array_templates import MAX_DOCUMENT_NBYTES
from zarrfs.engine.formats.json_document import default_limit, read_document
from zarrfs.engine.group.group import Group
from zarrfs.engine.native.members import ScannedMember, scan_members
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import ZarrError

__all__ = ["is_scannable", "scan_group"]

V3_DOCUMENT, V2_ARRAY, V2_GROUP, V2_ATTRIBUTES = "zarr.json", ".zarray", ".zgroup", ".zattrs"

NO_ACCESS = (0, 0, 0)
"""The mode, the user and the group of a document that is not a file."""


def is_scannable(group: Group, *, needs_permissions: bool) -> bool:
    """Return whether the documents of the members of a group can be read without opening the members.

    With ``needs_permissions`` the permissions of the documents have to be known, which only files have.

    Members of stores with a high latency are opened, many at the same time: the request for a document takes longer
    than everything else, and a file that is read soon afterwards needs no second request. Members that consolidated
    metadata list are opened without any request.
    """
    store = group.store
    if group.uses_consolidated or not store.listable or store.is_remote:
        return False
    return type(store) is LocalStore or not needs_permissions


def scan_group(group: Group, names: Sequence[str], *, with_usage: bool) -> list[ScannedMember | None] | None:
    """Return the arrays ``names`` in a group, None for each member that has to be opened.

    Without ``with_usage`` the stored sizes are not determined. None if the group cannot be read: opening the members
    reports the error.
    """
    store, limit = group.store, group.access.max_document
    limit = min(default_limit() if limit is None else limit, MAX_DOCUMENT_NBYTES)
    try:
        if type(store) is not LocalStore:
            return [_scan(store, group.path, name, limit, with_usage) for name in names]
        directory = store.open_directory(group.path)
        if directory is None:
            return None
        try:
            return scan_members(directory, names, limit, with_usage=with_usage)
        finally:
            os.close(directory)
    except (ZarrError, OSError, MemoryError):
        return None


def _scan(store: Store, path: str, name: str, limit: int, with_usage: bool) -> ScannedMember | None:
    """Do for any store what ``scan_members`` does for directories."""
    prefix = f"{path}/{name}" if path else name

    def read(name: str) -> bytes | None:
        return read_document(store, f"{prefix}/{name}", lambda data, *_: bytes(data), limit)

    try:
        document, array = read(V3_DOCUMENT), read(V2_ARRAY)
        # A node with documents of both formats causes a warning.
        if (document is None) == (array is None) or store.exists(f"{prefix}/{V2_GROUP}"):
            return None
        attributes = None if array is None else read(V2_ATTRIBUTES)
        usage = store.usage(prefix) if with_usage else None
    except Exception:  # opening the member reports the error
        return None
    if document is not None:
        return ScannedMember(3, document, None, usage, NO_ACCESS)
    assert array is not None
    return ScannedMember(2, array, attributes, usage, NO_ACCESS)
