"""Import of the FUSE binding: mfusepy, or fusepy if mfusepy is not installed."""

from __future__ import annotations

import ctypes.util
import importlib
import os
from types import ModuleType

from zarrfs.errors import MountError

__all__ = ["BINDING_VARIABLE", "load_binding"]

BINDING_VARIABLE = "ZARRFS_FUSE_BINDING"
"""The environment variable that chooses a binding: ``mfusepy`` or ``fusepy``."""

MODULES = {"mfusepy": "mfusepy", "fusepy": "fuse"}


def load_binding() -> ModuleType:
    """Return the module of the binding. Raises MountError, with instructions for installation, if there is none."""
    requested = os.environ.get(BINDING_VARIABLE, "")
    if requested and requested not in MODULES:
        raise MountError(f"{BINDING_VARIABLE} is {requested!r}; expected one of {', '.join(MODULES)}")
    if "FUSE_LIBRARY_NAME" not in os.environ and ctypes.util.find_library("fuse3"):
        # mfusepy prefers libfuse 2 if both libraries are installed.
        os.environ["FUSE_LIBRARY_NAME"] = "fuse3"
    failures = []
    for name in [requested] if requested else list(MODULES):
        try:
            return importlib.import_module(MODULES[name])
        except (ImportError, OSError, AttributeError) as error:
            failures.append(f"{name}: {error}")
    raise MountError(
        f"FUSE is not available ({'; '.join(failures)}). Install libfuse (Debian, Ubuntu: apt install fuse3) and the "
        "Python package mfusepy. `zarrfs doctor` shows more"
    )
