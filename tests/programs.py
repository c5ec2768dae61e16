"""Programs of the system that tests run. A program is used only if it is the one that the test means.

Another program can have the same name, for example a script named ``convert``. So each program is asked for its
version, and what it prints is compared with the name of the project that makes it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest

from tests.processes import TIMEOUT

__all__ = ["find_program", "missing_reason", "needs_program", "require_program"]

_COREUTILS = (("--version",), r"coreutils|uutils|BusyBox")

_IDENTITIES: dict[str, tuple[tuple[str, ...], str]] = {
    "bash": (("--version",), r"GNU bash"),
    "cc": (("--version",), r"Free Software Foundation|clang"),
    "convert": (("-version",), r"Version: ImageMagick"),
    "cp": _COREUTILS,
    "dd": _COREUTILS,
    "dpkg-deb": (("--version",), r"Debian"),
    "file": (("--version",), r"magic file from"),
    "fio": (("--version",), r"^fio-\d"),
    "find": (("--version",), r"findutils|BusyBox"),
    "fish": (("--version",), r"^fish, version"),
    "fusermount": (("--version",), r"^fusermount3? version"),
    "fusermount3": (("--version",), r"^fusermount3 version"),
    "gcc": (("--version",), r"Free Software Foundation|clang"),
    "gdal_translate": (("--version",), r"^GDAL \d"),
    "getfattr": (("--version",), r"^getfattr \d"),
    "groff": (("--version",), r"^GNU groff"),
    "gzip": (("--version",), r"^gzip \d|Free Software Foundation"),
    "mongod": (("--version",), r"^db version"),
    "mount.fuse": ((), r"usage: \S*mount\.fuse"),
    "node": (("--version",), r"^v\d+\.\d+"),
    "openbox": (("--version",), r"^Openbox \d"),
    "redis-server": (("--version",), r"^(Redis|Valkey) server v="),
    "Rscript": (("--version",), r"Rscript .*version \d"),
    "rsync": (("--version",), r"^rsync +version \d"),
    "sha256sum": _COREUTILS,
    "split": _COREUTILS,
    "systemd-analyze": (("--version",), r"^systemd \d"),
    "tar": (("--version",), r"GNU tar|bsdtar"),
    "umount": (("--version",), r"util-linux|BusyBox"),
    "unzip": (("-v",), r"^UnZip \d"),
    "vips": (("--version",), r"^vips-\d"),
    "Xvfb": (("-help",), r"-screen scrn"),
    "zsh": (("--version",), r"^zsh \d"),
}
"""By name: the arguments with which a program prints what it is, and a pattern of the text."""


@cache
def find_program(name: str) -> str | None:
    """Return the path of a program, or None if it is not installed or if another program has its name."""
    path = shutil.which(name)
    return None if path is None or _other_identity(name, path) else path


@cache
def missing_reason(name: str) -> str:
    """Return why ``find_program`` does not find a program."""
    path = shutil.which(name)
    return (
        f"{name} is not installed" if path is None else f"{path} is not {name}: {_other_identity(name, path)}"
    )


def require_program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    path = find_program(name)
    if path is None:
        pytest.skip(missing_reason(name))
    return path


def needs_program(name: str) -> pytest.MarkDecorator:
    """A mark that skips the test if a program is missing."""
    missing = find_program(name) is None
    return pytest.mark.skipif(missing, reason=missing_reason(name) if missing else name)


@cache
def _other_identity(name: str, path: str) -> str:
    """Return what a program prints if it is not the program that is meant, otherwise an empty text."""
    arguments, pattern = _IDENTITIES[name]
    try:
        done = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    printed = done.stdout + done.stderr
    if re.search(pattern, printed, re.MULTILINE):
        return ""
    return printed.strip()[:80] or f"it prints nothing and exits with {done.returncode}"
