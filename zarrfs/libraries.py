"""Importing the libraries that codecs, stores and files of other formats use, one thread at a time.

``import numcodecs`` in one thread and ``import numcodecs.zstd`` in another wait for each other's module locks. Python
breaks that deadlock by handing out a partially initialized module. All imports of codec libraries in the engine
therefore go through ``import_library``, which holds one lock and imports a package before any of its submodules.

The lock is only held while other packages are imported. They never import zarrfs, so it cannot take part in a deadlock
with the module locks of zarrfs.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType

from zarrfs.errors import LocationError, import_failure
from zarrfs.plugins import install_hint

__all__ = ["import_library", "load_library"]

_lock = threading.RLock()
_complete: set[str] = set()
"""Names of modules that were imported to the end; others in ``sys.modules`` may be partially initialized."""


def import_library(name: str) -> ModuleType:
    """Return the module ``name`` of another package.

    Raises ImportError if it is not installed, and StoreError if it cannot be read, such as with too many open files.
    """
    module = sys.modules.get(name) if name in _complete else None
    if module is None:
        with _lock:
            try:
                import_module(name.partition(".")[0])
                module = import_module(name)
            except OSError as error:
                raise import_failure(error) from error
            _complete.add(name)
    return module


def load_library(name: str, extra: str, dependent: str) -> ModuleType:
    """Import an optional library that ``dependent`` needs. Raises LocationError with the command that installs it."""
    try:
        return import_library(name)
    except ImportError as error:
        raise LocationError(
            f"{dependent} needs the package {name!r}, which is not installed: {install_hint(extra)} ({error})"
        ) from error
