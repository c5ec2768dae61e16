"""Installation of the desktop entry, the icons and the MIME types, so that file managers offer the viewer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["RESOURCES", "TARGETS", "install", "remove", "shared_directory"]

RESOURCES = Path(__file__).resolve().parent / "resources"

TARGETS = {
    "zarrfs-viewer.desktop": "applications/zarrfs-viewer.desktop",
    "zarrfs.xml": "mime/packages/zarrfs.xml",
    "zarrfs-viewer.svg": "icons/hicolor/scalable/apps/zarrfs-viewer.svg",
    **{
        f"zarrfs-viewer-{size}.png": f"icons/hicolor/{size}x{size}/apps/zarrfs-viewer.png"
        for size in (48, 128, 256)
    },
}
"""File in ``RESOURCES`` -> its path in a directory of shared data (XDG Base Directory Specification)."""

SYSTEM_DIRECTORY = Path("/usr/local/share")


def shared_directory(for_all_users: bool) -> Path:
    """Return the directory of shared data: ``/usr/local/share``, or ``$XDG_DATA_HOME`` (``~/.local/share``)."""
    if for_all_users:
        return SYSTEM_DIRECTORY
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def install(directory: Path) -> None:
    """Copy the files into a directory of shared data, and update its databases. Raises OSError."""
    for name, target in TARGETS.items():
        path = directory / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(RESOURCES / name, path)
    _update_databases(directory)


def remove(directory: Path) -> None:
    """Remove the files that ``install`` has copied, and update the databases. Raises OSError."""
    for target in TARGETS.values():
        (directory / target).unlink(missing_ok=True)
    _update_databases(directory)


def _update_databases(directory: Path) -> None:
    """Run those of the desktop's tools that are installed. Without them desktops read the files at the next login."""
    for command in (
        ["update-desktop-database", "applications"],
        ["update-mime-database", "mime"],
        ["gtk-update-icon-cache", "-f", "icons/hicolor"],
    ):
        *program, folder = command
        if shutil.which(program[0]) and (directory / folder).is_dir():
            subprocess.run([*program, directory / folder], check=False, capture_output=True)
