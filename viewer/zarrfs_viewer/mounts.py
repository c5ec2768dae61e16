"""Mounts created by the viewer, so that other programs can open the displayed data.

A guard process removes the mounts when the viewer crashes or is killed. The functions block; call
them from a worker thread.
"""

from __future__ import annotations

import itertools
import os
import threading
from functools import cached_property
from pathlib import Path

from zarrfs.logs import logger
from zarrfs_viewer.locations import display_name
from zarrfs_viewer.mount_guard import MountGuard, remove_mounts

__all__ = ["Mounts"]

_numbers = itertools.count()


class Mounts:
    """One mount per location, in a directory of the process. ``close`` unmounts them. Thread-safe.

    Attributes:
        suffix: the type of the files that represent arrays, one of the types of files of a mount.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.suffix = ".npy"
        self._base = directory
        self._number = next(_numbers)
        self._mounted: set[Path] = set()
        self._guard = MountGuard()
        self._lock = threading.Lock()

    @cached_property
    def _directory(self) -> Path:
        from tempfile import gettempdir  # imports half a megabyte of modules

        runtime = os.environ.get("XDG_RUNTIME_DIR") or gettempdir()
        base = self._base or Path(runtime) / f"zarrfs-viewer-{os.getuid()}"
        return base / f"{os.getpid()}-{self._number}"

    def _mount_point(self, location: str) -> Path:
        import hashlib  # loads OpenSSL

        suffix = hashlib.sha256(location.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        return self._directory / f"{display_name(location)}-{suffix}"

    def file(self, location: str, path: str, is_array: bool) -> Path:
        """Return the path in the mount: a group's directory, or an array's file of the type. Does not mount."""
        from zarrfs.mount.process.sources import root_name  # the mount takes long to import

        mount_point = self._mount_point(location)
        if not is_array:
            return mount_point / path if path else mount_point
        return mount_point / f"{path or root_name(location)}{self.suffix}"

    def mount(self, location: str) -> Path:
        """Mount a location unless it is mounted, and return the mount point. Blocks. Raises MountError."""
        from zarrfs.mount import MountOptions, is_mounted, mount

        mount_point = self._mount_point(location)
        with self._lock:
            if not is_mounted(str(mount_point)):
                mount_point.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._mounted.add(mount_point)
                self._guard.add(mount_point)
                mount(location, str(mount_point), MountOptions())
        return mount_point

    def close(self) -> None:
        """Unmount all locations. Blocks. Files that other programs have open stay readable until they are
        closed.
        """
        with self._lock:
            if not self._mounted:
                return  # the modules of the mount are not imported: that would delay the end of the window
            for error in remove_mounts(self._mounted):
                logger.warning("%s", error)
            self._mounted.clear()
            self._guard.close()
