"""A process that removes the mounts of a viewer when the viewer ends, however it ends.

``python -m zarrfs_viewer.mount_guard`` reads mount points from standard input, each followed by a null character. At
the end of the input, which the system closes when the viewer crashes or is killed, it removes the mounts.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

__all__ = ["MountGuard", "remove_mounts"]

CLOSE_TIMEOUT_SECONDS = 20.0

MOUNT_TIMEOUT_SECONDS = 10.0


class MountGuard:
    """The guard process of this process. The first call of ``add`` starts it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, mount_point: Path) -> None:
        """Remove this mount when the process ends."""
        import subprocess

        if self._process is None:
            # A session of its own: Ctrl+C in the terminal must not terminate the guard process.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "zarrfs_viewer.mount_guard"],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        pipe = self._process.stdin
        if pipe is not None:
            pipe.write(os.fsencode(mount_point) + b"\0")
            pipe.flush()

    def close(self) -> None:
        """Close the input of the guard process, so that it removes the mounts, and wait until it has exited. Blocks."""
        import subprocess

        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                process.wait(CLOSE_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def remove_mounts(mount_points: Iterable[Path]) -> list[str]:
    """Unmount, remove the empty directories, and return the errors. Files that are open stay readable. Blocks."""
    from zarrfs.errors import ZarrError
    from zarrfs.mount import is_mounted, unmount

    errors = []
    for mount_point in mount_points:
        try:
            if is_mounted(str(mount_point)):
                unmount(str(mount_point), lazy=True)
            if mount_point.is_dir():
                mount_point.rmdir()
        except (ZarrError, OSError) as error:
            errors.append(f"{mount_point} could not be unmounted: {error}")
    for directory in {mount_point.parent for mount_point in mount_points}:
        try:
            directory.rmdir()
        except OSError:
            continue  # another mount of the same process
    return errors


def _run() -> None:
    mount_points = [Path(os.fsdecode(name)) for name in sys.stdin.buffer.read().split(b"\0") if name]
    remaining = [mount_point for mount_point in mount_points if _exists(mount_point)]
    if remaining:
        _await_mounts(remaining)
        remove_mounts(remaining)


def _exists(mount_point: Path) -> bool:
    """Return whether a directory exists. A mount without its process cannot be examined, and exists."""
    try:
        mount_point.stat()
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return True


def _await_mounts(mount_points: Iterable[Path]) -> None:
    """Wait until the mounts exist: the viewer may have been killed while one of them was being created."""
    from zarrfs.mount import is_mounted

    deadline = time.monotonic() + MOUNT_TIMEOUT_SECONDS
    while not all(is_mounted(str(mount_point)) for mount_point in mount_points):
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    _run()
