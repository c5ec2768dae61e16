"""Names of a writable mount that were removed while other names of their node remain."""

from __future__ import annotations

import errno
import threading

from zarrfs.mount.fuse.error_numbers import RefusedError

__all__ = ["HiddenNames"]

MAX_HIDDEN_NAMES = 100_000


class HiddenNames:
    """The paths that are not presented although the hierarchy contains their nodes. Thread-safe."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._lock = threading.Lock()

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def add(self, path: str) -> None:
        """Hide a path. Raises RefusedError if there are too many."""
        with self._lock:
            if path not in self._paths and len(self._paths) >= MAX_HIDDEN_NAMES:
                raise RefusedError(
                    f"{path}: {MAX_HIDDEN_NAMES} names of existing arrays have been removed; remove all files of an "
                    "array to delete it, or mount again to show the removed names",
                    errno.ENOSPC,
                )
            self._paths.add(path)

    def show(self, path: str) -> None:
        """Stop hiding a path."""
        with self._lock:
            self._paths.discard(path)

    def show_all(self, prefix: str) -> None:
        """Stop hiding the paths that begin with ``prefix``."""
        with self._lock:
            self._paths -= {path for path in self._paths if path.startswith(prefix)}
