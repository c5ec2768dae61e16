"""Screenshots that the viewer takes as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.processes import TIMEOUT

__all__ = ["take_screenshot"]


def take_screenshot(
    location: Path,
    file: Path,
    program: tuple[str, str] = ("-m", "zarrfs_viewer.main"),
    *,
    size: str | None = "900x700",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Write a screenshot of a location to a file. ``program`` are the arguments of Python before those of the viewer.
    A size of None is that of the viewer.
    """
    sizes = [] if size is None else ["--size", size]
    return subprocess.run(
        [sys.executable, *program, "--screenshot", str(file), *sizes, str(location)],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        env=dict(os.environ if environment is None else environment),
    )
