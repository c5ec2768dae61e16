"""Decides whether the kernel may keep the pages of a file that it has cached when the file is opened again."""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from zarrfs.engine.stores.base import Usage
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.mount.tree.entries import VirtualFile

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
        stored: the version of the stored chunks, or None if it is not known.
        since: when this version was seen first.
        dropped: when the pages of the file were dropped last.
        is_settled: whether the pages of the file were dropped after ``SETTLING_SECONDS``, so that the pages that the
            kernel has cached since then are of this version.
    """

    content: weakref.ref[VirtualFileContent]
    stored: Usage | None
    since: float
    dropped: float
    is_settled: bool


class PageVersions:
    """The versions of the files that were opened most recently. Thread-safe: a lost update only drops pages."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._now = now
        self._versions: OrderedDict[str, _Version] = OrderedDict()

    def are_current(self, path: str, file: VirtualFile, is_being_read: Callable[[], bool]) -> bool:
        """Return whether the pages that the kernel may have cached of a file that is being opened are current.

        ``is_being_read`` returns whether a read of the file is in progress. If so, the pages may be up to
        ``REVALIDATION_SECONDS`` old if no change is known: the kernel drops pages only when all reads of them have
        ended, so that each opening would wait for the slowest reader.
        """
        stored = file.version
        modified = stored.modified if stored is not None else None
        if modified is None:
            stored = None
        known, clock = self._versions.get(path), self._clock()
        if known is None or known.content() is not file.content or known.stored != stored:
            is_old = modified is not None and self._now() - modified > SETTLING_SECONDS
            is_new_file = known is None
            self._versions[path] = _Version(
                weakref.ref(file.content), stored, clock, clock, is_old and is_new_file
            )
            if len(self._versions) > MAX_FILES:
                self._versions.popitem(last=False)
            return False
        if known.is_settled or (clock - known.dropped < REVALIDATION_SECONDS and is_being_read()):
            return True
        known.dropped = clock
        known.is_settled = stored is not None and clock - known.since > SETTLING_SECONDS
        return False
