"""Whether the viewer can be started: its packages, the libraries of the system that Qt needs, and a display."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from zarrfs.plugins import install_hint

__all__ = ["QT_PACKAGES", "ViewerCheck", "check_viewer"]

QT_PACKAGES = (
    *(
        "libegl1",
        "libgl1",
        "libfontconfig1",
        "libdbus-1-3",
        "libglib2.0-0",
        "libxkbcommon-x11-0",
        "libx11-xcb1",
    ),
    *(
        "libxcb-cursor0",
        "libxcb-icccm4",
        "libxcb-image0",
        "libxcb-keysyms1",
        "libxcb-randr0",
        "libxcb-render-util0",
    ),
    *("libxcb-shape0", "libxcb-xkb1", "libwayland-cursor0", "libwayland-egl1"),
)
"""The Debian packages with libraries that the wheels of PyQt6 do not contain. Those of setup.sh and of the Debian
package are the same.
"""

PLATFORM_PLUGINS = {"DISPLAY": "libqxcb.so", "WAYLAND_DISPLAY": "libqwayland*.so"}
"""The plugin with which Qt opens windows, by the environment variable that names the display."""


class ViewerCheck(NamedTuple):
    """The result of the check: whether there is a problem, a description, and what to do."""

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
    if unusable := _unusable_plugins():
        return ViewerCheck(True, f"{found}, which cannot open windows: {unusable}", install_libraries)
    return ViewerCheck(False, found)


def _unusable_plugins() -> str:
    """Return why Qt cannot load a plugin for the displays that are available, or "" if it can load one of them.

    The reason names the library of the system that is missing.
    """
    library_info = import_module("PyQt6.QtCore").QLibraryInfo
    directory = Path(library_info.path(library_info.LibraryPath.PluginsPath)) / "platforms"
    reasons = []
    for variable, pattern in PLATFORM_PLUGINS.items():
        if not os.environ.get(variable):
            continue
        for plugin in sorted(directory.glob(pattern)):
            try:
                ctypes.CDLL(str(plugin))
            except OSError as error:
                reasons.append(str(error))
            else:
                return ""
    return "; ".join(reasons)
