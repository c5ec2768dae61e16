"""Whether the viewer can be started: its packages, the libraries of the system that Qt needs, and a display."""

from __future__ import annotations

import ctypes.util
import os
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

from zarrfs.plugins import install_hint

__all__ = ["ViewerCheck", "check_viewer"]

QT_PACKAGES = ("libxcb-cursor0", "libegl1", "libgl1", "libxkbcommon-x11-0", "libdbus-1-3")
"""The Debian packages with libraries that the wheels of PyQt6 do not contain."""


class ViewerCheck(NamedTuple):
    """Whether there is a problem, what was found, and what to do."""

    has_problem: bool
    found: str
    advice: str = ""


def check_viewer() -> ViewerCheck:
    """Import what the viewer draws with, and search for a display. Nothing is displayed."""
    if find_spec("zarrfs_viewer") is None:
        return ViewerCheck(True, "not installed", "install a complete package of zarrfs")
    install_libraries = f"Debian, Ubuntu: apt install {' '.join(QT_PACKAGES)}"
    try:
        for module in ("PyQt6.QtWidgets", "pyqtgraph"):
            import_module(module)
    except ModuleNotFoundError as error:
        return ViewerCheck(True, f"the package {error.name} is missing", install_hint("viewer"))
    except Exception as error:
        return ViewerCheck(True, f"PyQt6 cannot be imported: {error}", install_libraries)
    found = f"PyQt6 {version('PyQt6')}, pyqtgraph {version('pyqtgraph')}"
    if not sys.platform.startswith("linux"):
        return ViewerCheck(False, found)
    if not any(os.environ.get(variable) for variable in ("DISPLAY", "WAYLAND_DISPLAY")):
        return ViewerCheck(
            True, f"{found}, no display", "needed only for windows: --screenshot works without one"
        )
    if os.environ.get("DISPLAY") and ctypes.util.find_library("xcb-cursor") is None:
        return ViewerCheck(True, f"{found}, no libxcb-cursor, which Qt needs with X11", install_libraries)
    return ViewerCheck(False, found)
