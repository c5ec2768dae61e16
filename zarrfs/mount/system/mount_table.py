"""The mount table of the system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "MOUNT_TYPES",
    "SUBTYPE",
    "MountEntry",
    "find_mountpoint",
    "is_mounted",
    "mounts",
    "resolve_parent",
]

SUBTYPE = "zarrfs"
MOUNT_TYPES = (f"fuse.{SUBTYPE}", "fuse.ZarrOperations")


class MountEntry(NamedTuple):
    """An entry of the mount table: the mount point, the type of the file system, its source, and its options."""

    mountpoint: str
    type_name: str
    source: str
    options: str


def mounts() -> Iterator[MountEntry]:
    """Yield every mount of the system, in the order of mounting."""
    try:
        # The kernel escapes spaces, tabs and \n in names, but no other line breaks.
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape", newline="\n") as table:
            lines = table.readlines()
    except OSError:
        return
    for line in lines:
        fields = line.split(" ")
        if len(fields) > 3:
            yield MountEntry(_unescape(fields[1]), fields[2], _unescape(fields[0]), fields[3])


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def resolve_parent(mountpoint: str) -> str:
    """Return the path in the form of the mount table. The mount itself is not accessed: it may hang or be stale."""
    absolute = os.path.abspath(mountpoint)
    return os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute))


def is_mounted(mountpoint: str) -> bool:
    """Return whether the path is a zarrfs mount. A stale mount counts as a mount."""
    target = resolve_parent(mountpoint)
    return any(entry.mountpoint == target and entry.type_name in MOUNT_TYPES for entry in mounts())


def find_mountpoint(path: str) -> str | None:
    """Return the mount point of the zarrfs mount that contains a path, or None. The mount is not accessed."""
    target = resolve_parent(path)
    containing = [
        entry.mountpoint
        for entry in mounts()
        if entry.type_name in MOUNT_TYPES and f"{target}/".startswith(f"{entry.mountpoint.rstrip('/')}/")
    ]
    return max(containing, key=len, default=None)
