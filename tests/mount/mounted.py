"""Making real mounts for tests, and taking them down whatever happens."""

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
from zarrfs.mount.mounting import is_mounted, unmount

__all__ = ["BINDINGS", "mounted", "needs_fuse", "zarrfs_command"]

needs_fuse = pytest.mark.skipif(
    not os.path.exists("/dev/fuse"), reason="there is no /dev/fuse on this machine"
)

BINDINGS = {
    "mfusepy and libfuse 3": {"ZARRFS_FUSE_BINDING": "mfusepy", "FUSE_LIBRARY_NAME": "fuse3"},
    "mfusepy and libfuse 2": {"ZARRFS_FUSE_BINDING": "mfusepy", "FUSE_LIBRARY_NAME": "fuse"},
    "fusepy": {"ZARRFS_FUSE_BINDING": "fusepy"},
}


def zarrfs_command(*arguments: str | Path, binding: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    environment = {**os.environ, **(BINDINGS[binding] if binding else {})}
    command = [sys.executable, "-m", "zarrfs", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=TIMEOUT
    )


def library_missing(binding: str) -> bool:
    """Tell whether the library that the binding needs is not here."""
    return ctypes.util.find_library("fuse3" if binding.endswith("3") else "fuse") is None


@contextmanager
def mounted(
    location: str | Path, mountpoint: Path, *options: str, binding: str | None = None
) -> Iterator[Path]:
    """Mount in the background; give the mount point; unmount."""
    # Not Path.mkdir: it looks at what is there, and a stale mount cannot be looked at.
    with suppress(FileExistsError):
        os.mkdir(mountpoint)
    log = mountpoint.parent / f"{mountpoint.name}.log"
    done = zarrfs_command("mount", location, mountpoint, "--log-file", log, *options, binding=binding)
    try:
        assert done.returncode == 0, done.stderr
        yield mountpoint
    finally:
        if is_mounted(str(mountpoint)):
            unmount(str(mountpoint), lazy=True)
