"""Decides whether the kernel may keep the pages of a file that it has cached when the file is opened again."""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from zarrfs.engine.stores.base import Usage
from zarrfs.mount.content import VirtualFileContent
from zarrfs.mount.entries import VirtualFile

__all__ = ["PageVersions"]

MAX_FILES = 10_000

SETTLING_SECONDS = 3.0
"""Data that were read within this time after a change may be older than the change: the versions of chunks, and the
attributes of files in network file systems, are cached for a second or more.
"""


@dataclass
class _Version:
    """The version of a file at its last opening.

    Attributes:
        content: the content. Another object may have another header.
        stored: the version of the stored chunks.
        since: when this version was seen first.
        is_settled: whether the pages of the file were dropped after ``SETTLING_SECONDS``, so that those that the kernel
            has cached since then are of this version.
    """

    content: weakref.ref[VirtualFileContent]
    stored: Usage
    since: float
    is_settled: bool


class PageVersions:
    """The versions of files that were opened last. Thread-safe: a lost update only drops pages."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._now = now
        self._versions: OrderedDict[str, _Version] = OrderedDict()

    def are_current(self, path: str, file: VirtualFile) -> bool:
        """Return whether the pages that the kernel may have of a file that is being opened are those of its content.

        They are not if it is not known whether a chunk has changed.
        """
        stored = file.version
        if stored is None or stored.modified is None:
            self._versions.pop(path, None)
            return False
        known, clock = self._versions.get(path), self._clock()
        if known is None or known.content() is not file.content or known.stored != stored:
            is_old = self._now() - stored.modified > SETTLING_SECONDS
            is_new_file = known is None
            self._versions[path] = _Version(weakref.ref(file.content), stored, clock, is_old and is_new_file)
            if len(self._versions) > MAX_FILES:
                self._versions.popitem(last=False)
            return False
        if known.is_settled:
            return True
        known.is_settled = clock - known.since > SETTLING_SECONDS
        return False
