"""Owner and permission bits of the files of a mount."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.locations import METADATA_NAMES
from zarrfs.engine.stores.wrappers.wrapper import unwrapped

__all__ = ["DOCUMENT_ACCESS", "Permissions"]

DOCUMENT_ACCESS = "document_access"
"""The key of the mode, the user and the group of a metadata document among the attributes of a file, if they have been
determined together with them.
"""


class Permissions:
    """Changes the attributes of files as the options of a mount require.

    With ``follow_store`` the owner and the read permissions of an array or group are those of its metadata document in
    a local store, because other users can access the mount: a file that they may not read in the store must not become
    readable through the mount. ``uid``, ``gid`` and ``umask`` replace them; see ``MountOptions``.
    """

    def __init__(
        self,
        *,
        follow_store: bool = False,
        uid: int | None = None,
        gid: int | None = None,
        umask: int | None = None,
    ) -> None:
        self.follow_store = follow_store
        self._uid = uid
        self._gid = gid
        self._umask = umask

    @property
    def has_effect(self) -> bool:
        """Whether any attribute can change."""
        return self.follow_store or not (self._uid is None and self._gid is None and self._umask is None)

    def apply(self, attributes: Mapping[str, Any], node: Array | Group | None) -> dict[str, Any]:
        """Return attributes of a file (``st_mode``, ``st_uid``, ``st_gid`` and others) with owner and bits changed.

        ``node`` is the array or group that the file presents, or None. It is not used if the attributes contain
        ``DOCUMENT_ACCESS``.
        """
        changed = dict(attributes)
        access = changed.pop(DOCUMENT_ACCESS, None)
        if self.follow_store:
            if access is None:
                access = None if node is None else _stored_access(node, stat.S_ISDIR(changed["st_mode"]))
            if access is not None:
                self._apply_access(changed, *access)
        if self._umask is not None:
            changed["st_mode"] &= ~(self._umask & 0o777)
        if self._uid is not None:
            changed["st_uid"] = self._uid
        if self._gid is not None:
            changed["st_gid"] = self._gid
        return changed

    def _apply_access(self, attributes: dict[str, Any], mode: int, user: int, group: int) -> None:
        # The option replaces the permissions of the store, as in other file systems.
        allowed = mode & 0o777 if self._umask is None else 0o777
        attributes["st_mode"] &= stat.S_IFMT(attributes["st_mode"]) | allowed
        attributes["st_uid"], attributes["st_gid"] = user, group


def _stored_access(node: Array | Group, is_directory: bool) -> tuple[int, int, int] | None:
    """Return the mode, the user and the group of ``_stored_status``."""
    status = _stored_status(node, is_directory)
    return None if status is None else (status.st_mode, status.st_uid, status.st_gid)


def _stored_status(node: Array | Group, is_directory: bool) -> os.stat_result | None:
    """Return the status of the directory of a node, or of its metadata document. None if the store has no files."""
    root = node.store.directory
    if root is not None:
        directory = os.path.join(root, node.path) if node.path else root
        names = ("",) if is_directory else METADATA_NAMES
        for name in names:
            try:
                return os.stat(os.path.join(directory, name))
            except OSError:
                continue
        return None
    store = unwrapped(node.store)
    path = getattr(store, "target_path", None) or getattr(store, "path", None)
    if not isinstance(path, str):
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    if is_directory:
        # Who may read the archive may search its directories.
        searchable = status.st_mode | (status.st_mode & 0o444) >> 2
        return os.stat_result((searchable, *status[1:]))
    return status
