"""Finding the FUSE binding: mfusepy, or fusepy where that is not installed."""

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
    """Import the binding. Raises MountError that says what to install."""
    wanted = os.environ.get(BINDING_VARIABLE, "")
    if wanted and wanted not in MODULES:
        raise MountError(f"{BINDING_VARIABLE} is {wanted!r}; expected one of {', '.join(MODULES)}")
    if "FUSE_LIBRARY_NAME" not in os.environ and ctypes.util.find_library("fuse3"):
        # With both libraries there mfusepy takes the older one.
        os.environ["FUSE_LIBRARY_NAME"] = "fuse3"
    reasons = []
    for name in [wanted] if wanted else list(MODULES):
        try:
            return importlib.import_module(MODULES[name])
        except (ImportError, OSError, AttributeError) as error:
            reasons.append(f"{name}: {error}")
    raise MountError(
        f"FUSE cannot be used here ({'; '.join(reasons)}). Install libfuse (Debian, Ubuntu: apt install fuse3) and the "
        "Python package mfusepy; `zarrfs doctor` tells more"
    )
