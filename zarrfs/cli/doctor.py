"""``zarrfs doctor``: check whether mounts and the viewer work on this system, and what to install if they do not."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec

import click

from zarrfs.cli.console import print_json, safe
from zarrfs.cli.extras import find_extras
from zarrfs.cli.viewer_checks import check_viewer
from zarrfs.engine.native.build import DIRECTORY, LIBRARY_NAME
from zarrfs.engine.native.encoders import describe_executor
from zarrfs.engine.native.library import DISABLING_VARIABLE
from zarrfs.mount.process.mount_table import zarrfs_mounts
from zarrfs.mount.process.unmounting import connection_state

__all__ = ["CheckResult", "command", "run_checks"]

INSTALL = "Debian, Ubuntu: apt install fuse3; Fedora: dnf install fuse3; Arch: pacman -S fuse3"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check. ``needed`` is whether a mount fails without it."""

    name: str
    ok: bool
    found: str
    advice: str = ""
    needed: bool = True


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Check the requirements of mounts and of the viewer, and show how to install what is missing.

    The exit code is 0 if all requirements of mounts are met, otherwise 1.

    \b
    Example:
      zarrfs doctor
    """
    results = list(run_checks())
    usable = all(result.ok for result in results if result.needed)
    if as_json:
        print_json({"usable": usable, "findings": [asdict(result) for result in results]})
    else:
        for result in results:
            status, color = (
                ("ok", "green") if result.ok else ("missing", "red") if result.needed else ("note", "yellow")
            )
            click.echo(f"{click.style(status.ljust(8), fg=color)}{safe(f'{result.name}: {result.found}')}")
            if not result.ok and result.advice:
                click.echo(f"        {result.advice}")
        click.echo("Mounting should work." if usable else "Mounting does not work; see above.")
    ctx.exit(0 if usable else 1)


def run_checks() -> Iterator[CheckResult]:
    """Yield the results of all checks, the most basic requirement first."""
    yield _platform()
    yield _device()
    helper = shutil.which("fusermount3") or shutil.which("fusermount")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    yield CheckResult("fusermount", bool(helper), helper or "not found", INSTALL, needed=not root)
    libraries = [name for name in ("fuse3", "fuse") if ctypes.util.find_library(name)]
    yield CheckResult(
        "libfuse", bool(libraries), ", ".join(f"lib{name}" for name in libraries) or "not found", INSTALL
    )
    bindings = [name for name, module in (("mfusepy", "mfusepy"), ("fusepy", "fuse")) if find_spec(module)]
    yield CheckResult(
        "Python binding", bool(bindings), ", ".join(bindings) or "not found", "pip install mfusepy"
    )
    yield _allow_other()
    yield from _mounts()
    is_used, found = describe_executor()
    advice = f"without it reading and writing are slower; {_advice_on_library()}"
    yield CheckResult("native reader and writer", is_used, found, advice, needed=False)
    yield _viewer()
    yield from _extras()


def _advice_on_library() -> str:
    """Return what to do if the native library is not used."""
    if os.environ.get(DISABLING_VARIABLE) == "0":
        return f"remove the environment variable {DISABLING_VARIABLE}"
    build = DIRECTORY / "build.py"
    again = (
        f"install zarrfs again: pip install --force-reinstall --no-deps zarrfs; in a checkout: python {build}"
    )
    if (DIRECTORY / LIBRARY_NAME).exists():  # It was built from other sources, or for another system.
        return again
    return f"install a C compiler (apt install gcc), then {again}"


def _platform() -> CheckResult:
    advice = "mounts need Linux; `zarrfs info`, the viewer and the Python package also work elsewhere"
    return CheckResult("system", sys.platform.startswith("linux"), sys.platform, advice)


def _device() -> CheckResult:
    path = "/dev/fuse"
    container = "in a container, start it with: docker run --device /dev/fuse --cap-add SYS_ADMIN"
    if not os.path.exists(path):
        return CheckResult(path, False, "does not exist", f"load the module: modprobe fuse; {container}")
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return CheckResult(
            path, False, f"cannot be opened: {error.strerror}", f"allow your user to open it; {container}"
        )
    return CheckResult(path, True, "can be opened")


def _allow_other() -> CheckResult:
    path = "/etc/fuse.conf"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            allowed = any(line.strip() == "user_allow_other" for line in file)
    except OSError:
        allowed = False
    advice = f"needed only for --allow-other: add the line user_allow_other to {path}"
    return CheckResult("user_allow_other", allowed, "set" if allowed else "not set", advice, needed=False)


def _mounts() -> Iterator[CheckResult]:
    # A mount of another user cannot be accessed either, but it is not stale.
    states = {entry.mountpoint: connection_state(entry.mountpoint) for entry in zarrfs_mounts()}
    stale = [mountpoint for mountpoint, state in states.items() if state == "stale"]
    advice = "remove each with: zarrfs umount PATH"
    yield CheckResult("stale mounts", not stale, ", ".join(stale) or "none", advice, needed=False)
    unresponsive = [mountpoint for mountpoint, state in states.items() if state == "unresponsive"]
    if unresponsive:
        advice = "the process of each is stopped or busy; remove it with: zarrfs umount --lazy PATH"
        yield CheckResult("unresponsive mounts", False, ", ".join(unresponsive), advice, needed=False)


def _viewer() -> CheckResult:
    problem, found, advice = check_viewer()
    return CheckResult("viewer", not problem, found, advice, needed=False)


def _extras() -> Iterator[CheckResult]:
    extras = find_extras()
    installed = [extra.name for extra in extras if not extra.missing]
    missing = [extra for extra in extras if extra.missing]
    yield CheckResult("extras", True, ", ".join(installed) or "none", needed=False)
    if missing:
        yield CheckResult(
            "other extras",
            False,
            "; ".join(f"{extra.name} (needs {', '.join(extra.missing)})" for extra in missing),
            "install the packages of an extra only if you need it; the documentation lists what each is for",
            needed=False,
        )
