"""Mounts that the viewer makes so that other programs can open what it shows. Blocks: use a worker."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path

from zarrfs.errors import ZarrError
from zarrfs.logs import logger
from zarrfs.mount.mounting import MountOptions, is_mounted, mount, root_name, unmount
from zarrfs_viewer.locations import display_name

__all__ = ["Mounts"]


class Mounts:
    """One mount per location, below a directory of the user, removed by ``close``. Safe under threads."""

    def __init__(self, directory: Path | None = None) -> None:
        runtime = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        self._directory = directory or Path(runtime) / f"zarrfs-viewer-{os.getuid()}"
        self._made: set[Path] = set()
        self._lock = threading.Lock()

    def place(self, location: str) -> Path:
        """Return where a location is mounted, or would be. Does nothing."""
        mark = hashlib.sha256(f"{os.getpid()} {location}".encode()).hexdigest()[:8]
        return self._directory / f"{display_name(location)}-{mark}"

    def file(self, location: str, path: str, is_array: bool) -> Path:
        """Return the directory of a group, or the ``.npy`` file of an array, in the mount."""
        place = self.place(location)
        if not is_array:
            return place / path if path else place
        return place / f"{path or root_name(location)}.npy"

    def mount(self, location: str) -> Path:
        """Mount a location, if it is not yet; return where. Blocks. Raises MountError."""
        place = self.place(location)
        with self._lock:
            if not is_mounted(str(place)):
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._made.add(place)
                mount(location, str(place), MountOptions())
        return place

    def close(self) -> None:
        """Unmount all; programs that still read a file keep it until they are done. Blocks."""
        with self._lock:
            for place in self._made:
                try:
                    if is_mounted(str(place)):
                        unmount(str(place), lazy=True)
                    place.rmdir()
                except (ZarrError, OSError) as error:
                    logger.warning("%s could not be unmounted: %s", place, error)
            self._made.clear()
