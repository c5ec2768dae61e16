"""The options of a mount."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

__all__ = ["MountOptions", "default_cache_size"]

CACHE_MEMORY_DIVISOR = 4
"""The default chunk cache uses at most a quarter of the memory. A sequential read of a file accesses each chunk once
for every plane that the chunk contains.
"""


@dataclass(frozen=True)
class MountOptions:
    """The options of a mount.

    Attributes:
        path: the node below the location that becomes the root of the mount.
        cache_size: the size of the chunk cache in bytes; None for a quarter of the memory.
        list_all_views: whether directory listings contain all views, not only the default ones.
        immutable: whether the store is guaranteed not to change, so that the kernel may cache without revalidation.
        allow_other: whether other users can access the mount. The kernel then checks file permissions.
        log_file: the log file of a background mount; None for ``mount.log`` in the state directory of the user.
        fuse_options: additional ``-o`` options of libfuse.
        storage_options: the fsspec options for a URL, such as credentials.
        max_document: the maximum size of a metadata document in bytes; None for the default.
    """

    path: str = ""
    cache_size: int | None = None
    list_all_views: bool = False
    immutable: bool = False
    allow_other: bool = False
    log_file: str | None = None
    fuse_options: tuple[str, ...] = ()
    storage_options: dict[str, Any] | None = None
    max_document: int | None = None


def default_cache_size() -> int:
    """Return the default size of the chunk cache of a mount in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // CACHE_MEMORY_DIVISOR
    except (ValueError, OSError):
        return 1 << 30
