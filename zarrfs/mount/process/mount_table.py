"""The mount table of the system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from zarrfs.mount.process.records import find_record

__all__ = [
    "SUBTYPE",
    "MountEntry",
    "find_mountpoint",
    "is_mounted",
    "mounts",
    "resolve_path",
    "zarrfs_mounts",
]

SUBTYPE = "zarrfs"
"""The type of the mounts of zarrfs is ``fuse.zarrfs``, unless the option ``subtype`` of libfuse sets another one."""

MAX_LINKS = 40
"""The number of symbolic links in a path that the kernel follows (path_resolution(7))."""


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


def zarrfs_mounts() -> Iterator[MountEntry]:
    """Yield the mounts of zarrfs in the order of mounting. Those with another subtype have a record of their type."""
    for entry in mounts():
        kind = entry.type_name
        if not kind.startswith("fuse."):
            continue
        record = None if kind == f"fuse.{SUBTYPE}" else find_record(entry.mountpoint)
        if kind == f"fuse.{SUBTYPE}" or (record is not None and kind == f"fuse.{record.subtype}"):
            yield entry


def resolve_path(path: str) -> str:
    """Return the path in the form of the mount table: absolute and without symbolic links.

    Nothing in a mount of zarrfs is accessed, not even its mount point: the mount may hang or be stale. Symbolic links
    in it remain.
    """
    mountpoints = [entry.mountpoint for entry in zarrfs_mounts()]
    resolved = ""
    pending = os.path.join(os.getcwd(), path).split("/")[::-1]
    links = 0
    while pending:
        name = pending.pop()
        if name == "..":
            resolved = resolved.rpartition("/")[0]
        elif name not in ("", "."):
            candidate = f"{resolved}/{name}"
            target = None
            if links < MAX_LINKS and not any(_contains(mountpoint, candidate) for mountpoint in mountpoints):
                with suppress(OSError):  # It is no symbolic link.
                    target = os.readlink(candidate)
            if target is None:
                resolved = candidate
                continue
            links += 1
            resolved = "" if target.startswith("/") else resolved
            pending += target.split("/")[::-1]
    return resolved or "/"


def is_mounted(mountpoint: str) -> bool:
    """Return whether the path is a zarrfs mount, or a symbolic link to one. A stale mount counts as a mount."""
    target = resolve_path(mountpoint)
    return any(entry.mountpoint == target for entry in zarrfs_mounts())


def find_mountpoint(path: str) -> str | None:
    """Return the mount point of the zarrfs mount that contains a path, or None. The mount is not accessed."""
    target = resolve_path(path)
    containing = [entry.mountpoint for entry in zarrfs_mounts() if _contains(entry.mountpoint, target)]
    return max(containing, key=len, default=None)


def _contains(mountpoint: str, path: str) -> bool:
    return f"{path}/".startswith(f"{mountpoint.rstrip('/')}/")
