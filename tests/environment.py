"""The environment in which the tests run: the same on all machines and for all users.

``prepare`` sets what a user can have set differently: locale, time zone, umask, home directory and the variables of our
own settings. tests/conftest.py calls it before anything else is imported, so that the processes that tests start
inherit it. packaging/test.sh sets the locale of the test processes themselves.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["prepare"]

HOME_VARIABLE = "ZARRFS_TEST_HOME"
"""Set while tests run: the home directory that the first process of a run has created."""

LOCALE = "C.UTF-8"
"""The language of messages of the system, which some tests compare."""

_SETTINGS_OF_TESTS = (
    *("ZARRFS_TEST_", "ZARRFS_DATA", "ZARRFS_SPECIFICATIONS"),
    *("ZARRFS_NATIVE", "ZARRFS_KILLS", "ZARRFS_PACKAGES"),
)
"""Beginnings of the variables by which a developer chooses what is tested. They are kept."""

_PREFIXES = ("LC_", "XDG_", "ZARRFS_", "AWS_", "AZURE_", "GOOGLE_", "DASK_", "ZARR_", "FSSPEC_", "QT_")
_NAMES = (
    "LANG",
    "LANGUAGE",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "POSIXLY_CORRECT",
)
"""The variables that change what the tested programs do, by beginning and by name. They are removed."""


def prepare() -> None:
    """Set locale, time zone, umask, home directory and settings of this process and of those that it starts.

    The first process of a run removes the home directory when it exits.
    """
    if sys.getfilesystemencoding() != "utf-8":
        raise SystemExit(
            f"The tests need UTF-8 for the names of files; the locale has {sys.getfilesystemencoding()}. "
            "Use packaging/test.sh, or set PYTHONUTF8=1."
        )
    os.umask(0o022)
    first = HOME_VARIABLE not in os.environ
    home = tempfile.mkdtemp(prefix="zarrfs-tests-home-") if first else os.environ[HOME_VARIABLE]
    if first:
        _keep_settings_of_pip()
        atexit.register(_remove, home, os.getpid())
    for name in list(os.environ):
        if name in _NAMES or (name.startswith(_PREFIXES) and not name.startswith(_SETTINGS_OF_TESTS)):
            del os.environ[name]
    os.environ |= {"LC_ALL": LOCALE, "TZ": "UTC", "HOME": home, HOME_VARIABLE: home}
    for name in ("no_proxy", "NO_PROXY"):  # All servers of the tests are on this machine.
        os.environ[name] = "localhost,127.0.0.1"
    time.tzset()


def _remove(home: str, process: int) -> None:
    if os.getpid() == process:  # not in a child that a test has forked
        shutil.rmtree(home, ignore_errors=True)


def _keep_settings_of_pip() -> None:
    """Tests that install packages use the indexes and the cache of the user, whose home directory pip does not see."""
    home = Path.home()
    for path in (home / ".config/pip/pip.conf", home / ".pip/pip.conf"):
        if path.is_file():
            os.environ.setdefault("PIP_CONFIG_FILE", str(path))
    os.environ.setdefault("PIP_CACHE_DIR", str(home / ".cache/pip"))
