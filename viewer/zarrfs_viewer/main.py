"""The ``zarrfs-viewer`` command."""

from __future__ import annotations

import argparse
import atexit
import os
import re
import sys
from pathlib import Path
from typing import NoReturn

from zarrfs._version import __version__
from zarrfs.plugins import install_hint

__all__ = ["run"]

TIMEOUT_SECONDS = 120
"""A screenshot that is not exact after so long says so and gives up."""

MAX_ERROR = 2000
"""Characters of an error message."""

MISSING = "the viewer needs PyQt6 and pyqtgraph"


def run(arguments: list[str] | None = None) -> None:
    """Run the viewer; exits with 0, or 1 and one line that says why not."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        from zarrfs_viewer.qt.window.application import show, take_screenshot
    except ModuleNotFoundError as error:
        _fail(f"{MISSING}: {install_hint('viewer')} ({error})")
    except ImportError as error:
        _fail(f"PyQt6 cannot be loaded: {error}; a library of the system is missing")
    if options.screenshot is not None:
        if len(options.locations) != 1:
            _fail("a screenshot takes exactly one location")
        problem = take_screenshot(
            options.locations[0], options.screenshot, options.size, TIMEOUT_SECONDS, _end
        )
        if problem:
            _write_error(problem)
        _leave(1 if problem else 0)
    _leave(show(options.locations, _end))


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="zarrfs-viewer",
        description="Look at Zarr and OME-Zarr images: a folder, a zip file, or a path into one.",
    )
    parser.add_argument("locations", nargs="*", metavar="LOCATION", help="what to open")
    parser.add_argument(
        "--screenshot", type=Path, metavar="FILE", help="write a picture of the window as PNG and exit"
    )
    parser.add_argument(
        "--size", type=_size, default=(1280, 900), metavar="WxH", help="size of the window (1280x900)"
    )
    parser.add_argument("--version", action="version", version=f"zarrfs-viewer {__version__}")
    return parser.parse_args(arguments)


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{2,5})x(\d{2,5})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; expected WIDTHxHEIGHT such as 1280x900")
    return int(match[1]), int(match[2])


def _fail(text: str) -> NoReturn:
    _write_error(text)
    sys.exit(1)


def _leave(code: int) -> NoReturn:
    """End the process without waiting for threads: one of them may read from a store that does not answer."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end(text: str) -> NoReturn:
    """End the process from where an exception would not leave, such as a callback of Qt."""
    _write_error(text)
    sys.stderr.flush()
    os._exit(1)


def _write_error(text: str) -> None:
    """Write one line, without characters that control a terminal."""
    from zarrfs.cli.console import safe

    line = safe(" ".join(text.split())[:MAX_ERROR])
    sys.stderr.write(f"zarrfs-viewer: {line}\n")


if __name__ == "__main__":
    run()
