"""Mounts for tests. They are removed even if the test fails."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.processes import TIMEOUT
from tests.programs import find_program, missing_reason
from zarrfs.mount import is_mounted, unmount

__all__ = ["BINDINGS", "mounted", "needs_fuse", "zarrfs_command"]


def _missing_for_mounts() -> str:
    """Return why no file system can be mounted here, or an empty text."""
    if not os.path.exists("/dev/fuse"):
        return "/dev/fuse does not exist"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "this user cannot open /dev/fuse"
    return next(
        (missing_reason(name) for name in ("fusermount3", "umount") if find_program(name) is None), ""
    )


needs_fuse = pytest.mark.skipif(
    bool(_missing_for_mounts()), reason=_missing_for_mounts() or "mounts are possible"
)

BINDINGS = {
    "mfusepy and libfuse 3": {"ZARRFS_FUSE_BINDING": "mfusepy", "FUSE_LIBRARY_NAME": "fuse3"},
    "mfusepy and libfuse 2": {"ZARRFS_FUSE_BINDING": "mfusepy", "FUSE_LIBRARY_NAME": "fuse"},
    "fusepy": {"ZARRFS_FUSE_BINDING": "fusepy"},
}


def zarrfs_command(*arguments: str | Path, binding: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the zarrfs command in a new process."""
    environment = {**os.environ, **(BINDINGS[binding] if binding else {})}
    command = [sys.executable, "-m", "zarrfs", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=TIMEOUT
    )


def is_library_missing(binding: str) -> bool:
    """Return whether the library of the binding is not installed."""
    return ctypes.util.find_library("fuse3" if binding.endswith("3") else "fuse") is None


@contextmanager
def mounted(
    location: str | Path, mountpoint: Path, *options: str, binding: str | None = None
) -> Iterator[Path]:
    """Mount in the background, yield the mount point, and unmount."""
    # Path.mkdir calls stat, which fails for a stale mount.
    with suppress(FileExistsError):
        os.mkdir(mountpoint)
    log = mountpoint.parent / f"{mountpoint.name}.log"
    completed = zarrfs_command("mount", location, mountpoint, "--log-file", log, *options, binding=binding)
    try:
        assert completed.returncode == 0, completed.stderr
        yield mountpoint
    finally:
        if is_mounted(str(mountpoint)):
            unmount(str(mountpoint), lazy=True)
