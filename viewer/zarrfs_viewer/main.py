"""The ``zarrfs-viewer`` command."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from pathlib import Path
from typing import NoReturn

from zarrfs._version import __version__
from zarrfs.plugins import install_hint

__all__ = ["make_parser", "run"]

TIMEOUT_SECONDS = 120
"""The command fails if a screenshot is not complete after this time."""

MAX_ERROR_LENGTH = 2000
"""Longer error messages are truncated to this number of characters."""

SCREENSHOT_SIZE = (1280, 900)

MISSING_PACKAGES = "the viewer needs PyQt6 and pyqtgraph"


def run(arguments: list[str] | None = None) -> None:
    """Run the viewer and exit the process: with code 0, or with code 1 after one line on standard error."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    if options.install_desktop or options.remove_desktop:
        _change_desktop(options.install_desktop, options.system)
        return
    try:
        from zarrfs_viewer.qt.window.application import show, take_screenshot
    except ModuleNotFoundError as error:
        _fail(f"{MISSING_PACKAGES}: {install_hint('viewer')} ({error})")
    except ImportError as error:
        _fail(f"PyQt6 cannot be loaded: {error}; a system library is missing")
    if options.screenshot is not None:
        if len(options.locations) != 1:
            _fail(f"--screenshot needs exactly one location, found {len(options.locations)}")
        problem = take_screenshot(
            options.locations[0], options.screenshot, options.size or SCREENSHOT_SIZE, TIMEOUT_SECONDS, _abort
        )
        if problem:
            _write_error(problem)
        _exit_process(1 if problem else 0)
    _exit_process(show(options.locations, _abort, options.size))


def _change_desktop(is_installation: bool, for_all_users: bool) -> None:
    """Install or remove the desktop entry, the icons and the MIME types."""
    from zarrfs_viewer.desktop import install, remove, shared_directory

    directory = shared_directory(for_all_users)
    try:
        (install if is_installation else remove)(directory)
    except OSError as error:
        _fail(f"{error.filename or directory}: {error.strerror}")
    print(f"installed into {directory}" if is_installation else f"removed from {directory}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.system and not (options.install_desktop or options.remove_desktop):
        parser.error("--system needs --install-desktop or --remove-desktop")
    return options


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="zarrfs-viewer",
        description="View Zarr and OME-Zarr images: a directory, a zip file, or a path inside one.",
    )
    parser.add_argument("locations", nargs="*", metavar="LOCATION", help="location to open")
    parser.add_argument(
        "--screenshot", type=Path, metavar="FILE", help="write a screenshot of the window as PNG and exit"
    )
    parser.add_argument(
        "--size",
        type=_size,
        metavar="WxH",
        help="size of the window (default: that of the last window; for a screenshot 1280x900)",
    )
    desktop = parser.add_mutually_exclusive_group()
    desktop.add_argument(
        "--install-desktop",
        action="store_true",
        help="install the desktop entry, the icons and the MIME types for the current user, and exit",
    )
    desktop.add_argument(
        "--remove-desktop", action="store_true", help="remove what --install-desktop has installed, and exit"
    )
    parser.add_argument(
        "--system", action="store_true", help="install or remove for all users, in /usr/local/share"
    )
    parser.add_argument("--version", action="version", version=f"zarrfs-viewer {__version__}")
    return parser


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{2,5})x(\d{2,5})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; expected WIDTHxHEIGHT such as 1280x900")
    return int(match[1]), int(match[2])


def _fail(text: str) -> NoReturn:
    _write_error(text)
    sys.exit(1)


def _exit_process(code: int) -> NoReturn:
    """Exit without joining threads: a thread may be blocked in a read from a store that does not respond.

    All windows are closed, so only the log has to be flushed.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _abort(text: str) -> NoReturn:
    """Exit with code 1 from a place where an exception does not propagate, such as a Qt callback."""
    _write_error(text)
    sys.stderr.flush()
    os._exit(1)


def _write_error(text: str) -> None:
    """Write one line, without terminal control characters."""
    from zarrfs.cli.console import safe

    line = safe(" ".join(text.split())[:MAX_ERROR_LENGTH])
    sys.stderr.write(f"zarrfs-viewer: {line}\n")


if __name__ == "__main__":
    run()
