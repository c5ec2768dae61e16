"""Mounting and unmounting: processes, signals, and mounts that were left behind."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from zarrfs.engine.stores.base import Store
from zarrfs.errors import MountError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.text import safe_text

__all__ = [
    "MountOptions",
    "is_mounted",
    "mount",
    "mounts",
    "root_name",
    "serve",
    "serve_in_background",
    "unmount",
]

SUBTYPE = "zarrfs"
TYPES = (f"fuse.{SUBTYPE}", "fuse.ZarrOperations")

READY = b"ready"

ENDED_BY_SIGNAL = 8
"""What libfuse 3 answers when SIGINT, SIGTERM or SIGHUP ended it, having unmounted."""

FRACTION_OF_MEMORY = 4
"""A mount keeps decoded chunks in up to a quarter of the memory: a pass over a file comes back to the same chunks once
for every plane that is in them.
"""

MIN_SHARED_CACHE_NBYTES = 256 << 20
"""A smaller cache is used for decoded chunks only."""

MAX_LOG_NBYTES = 1 << 20

MAX_SOURCE = 1000
"""The longest location, in characters, that the table of mounts shows."""


@dataclass(frozen=True)
class MountOptions:
    """How to mount.

    Attributes:
        path: the node below the location that becomes the root of the mount.
        cache_size: bytes of decoded chunks that are kept; None takes a quarter of the memory.
        list_all_views: show every view in listings, not just the usual ones.
        immutable: promise that the store does not change, so that the kernel need not ask again.
        allow_other: let other users see the mount (file permissions are then checked by the kernel).
        log_file: where a mount in the background writes its log; None for the state directory of the user.
        fuse_options: further ``-o`` options for libfuse.
        storage_options: credentials and the like for a URL.
        max_document: the most bytes of a metadata document; None for the default.
    """

    path: str = ""
    cache_size: int | None = None
    list_all_views: bool = False
    immutable: bool = False
    allow_other: bool = False
    log_file: str | None = None
    fuse_options: tuple[str, ...] = ()
    storage_options: dict[str, Any] | None = None
    max_document: int | None = None


# -- serving ---------------------------------------------------------------------------------------------------


def serve(
    location: str | Store, mountpoint: str, options: MountOptions, ready: Callable[[], None] = lambda: None
) -> None:
    """Mount, and answer the kernel until the mount is removed or SIGINT or SIGTERM comes.

    ``ready`` is called when the kernel has made contact. Raises ZarrError if the store cannot be opened or the mount
    cannot be made. Must be called on the main thread, as libfuse sets signal handlers.
    """
    import zarrfs
    from zarrfs.mount.binding import load_binding
    from zarrfs.mount.blocks import DEFAULT_POOL_NBYTES, BlockPool
    from zarrfs.mount.operations import make_operations
    from zarrfs.mount.tree import Tree

    target = prepare_mountpoint(mountpoint)
    binding = load_binding()
    source = location.url if isinstance(location, Store) else location
    cache_size = default_cache_size() if options.cache_size is None else options.cache_size
    # Half of a large cache holds blocks of files, for sequential access; the rest holds decoded chunks. A working
    # buffer for blocks, which does not depend on the size of the cache, is added.
    blocks_nbytes = cache_size // 2 if cache_size >= MIN_SHARED_CACHE_NBYTES else 0
    pool = BlockPool(DEFAULT_POOL_NBYTES + blocks_nbytes, is_immutable=options.immutable)
    node = zarrfs.open(
        location,
        options.path,
        cache_size=cache_size - blocks_nbytes,
        storage_options=options.storage_options,
        access=zarrfs.Access(max_document=options.max_document),
    )
    try:
        tree = Tree(
            node, root_name(source), list_all_views=options.list_all_views, immutable=options.immutable
        )
        served = False

        def contact() -> None:
            nonlocal served
            served = True
            ready()

        operations = make_operations(binding, tree, contact, pool=pool)
        try:
            binding.FUSE(
                operations, target, foreground=True, **_fuse_arguments(source, options, binding.__name__)
            )
        except RuntimeError as error:
            if served and error.args == (ENDED_BY_SIGNAL,):
                return
            if served:
                raise MountError(f"{target}: the mount ended with an error of libfuse ({error})") from error
            raise MountError(
                f"{target}: libfuse could not mount (it answered {error}); what it said stands above, and "
                "`zarrfs doctor` tells what may be missing"
            ) from error
    finally:
        pool.close()
        node.store.close()


def _fuse_arguments(location: str, options: MountOptions, binding: str) -> dict[str, object]:
    arguments: dict[str, object] = {
        "ro": True,
        "fsname": _clean(safe_text(location, MAX_SOURCE)),
        "subtype": SUBTYPE,
        "allow_other": options.allow_other,
        "default_permissions": options.allow_other,
    }
    if options.immutable:
        arguments.update(kernel_cache=True, attr_timeout=3600, entry_timeout=3600)
    else:
        # Drop pages of a file whose size or time has changed when it is opened again.
        arguments.update(auto_cache=True)
    if binding == "mfusepy" and "fuse3" in os.environ.get("FUSE_LIBRARY_NAME", ""):
        # libfuse 3.14 complains of its own default.
        arguments.update(max_idle_threads=10)
    for option in options.fuse_options:
        key, separator, value = option.partition("=")
        arguments[key] = value if separator else True
    return arguments


def _clean(text: str) -> str:
    """Escape what would end an option of libfuse."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def root_name(location: str) -> str:
    """Return the name that a store whose root is an array shows it by: the location's, without .zarr or .zip."""
    name = Path(location.rstrip("/")).name
    for ending in (".zip", ".zarr"):
        name = name.removesuffix(ending)
    return name or "array"


def default_cache_size() -> int:
    """Return how many bytes of decoded chunks a mount keeps unless told otherwise."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // FRACTION_OF_MEMORY
    except (ValueError, OSError):
        return 1 << 30


def serve_in_background(location: str, mountpoint: str, options: MountOptions) -> int:
    """Mount in a process of its own; return its id once the mount answers. Raises MountError with what it said.

    The process is forked before the store is opened and before there are threads: neither survives a fork.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            os.setsid()
            status = _background(location, mountpoint, options, writing)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    if said != READY:
        os.waitpid(child, 0)
        raise MountError(said.decode("utf-8", "replace") or "the mounting process ended without a word")
    os.stat(mountpoint)
    return child


def _background(location: str, mountpoint: str, options: MountOptions, writing: int) -> int:
    state = {"pipe": writing}

    def tell(words: bytes) -> None:
        if state["pipe"] >= 0:
            os.write(state["pipe"], words)
            os.close(state["pipe"])
            state["pipe"] = -1

    def ready() -> None:
        _detach()
        tell(READY)

    try:
        _log_to_file(options.log_file)
        serve(location, mountpoint, options, ready)
    except BaseException as error:
        if isinstance(error, ZarrError | OSError):
            logger.error("%s", error)
        else:
            logger.exception("the mount failed unexpectedly")
        tell(describe_error(error).encode("utf-8", "replace"))
        return 1
    return 0


def _detach() -> None:
    """Let go of the terminal, which would otherwise wait for us."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
    os.chdir("/")


def _log_to_file(path: str | None) -> None:
    target = Path(path) if path else _state_directory() / "mount.log"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(target, maxBytes=MAX_LOG_NBYTES, backupCount=1, delay=True)
    except OSError as error:
        raise MountError(f"{target}: the log cannot be written: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s [%(process)d] %(levelname)s %(message)s"))
    # In the place of the terminal, to which the parent says what went wrong.
    logger.handlers[:] = [handler]
    logger.propagate = False


def _state_directory() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zarrfs"


def mount(location: str, mountpoint: str, options: MountOptions | None = None) -> None:
    """Mount in the background from a program that may have threads; returns when the mount answers.

    Runs ``zarrfs mount`` in a fresh process. Raises MountError.
    """
    options = options or MountOptions()
    command = [sys.executable, "-m", "zarrfs", "mount", location, mountpoint]
    if options.path:
        command += ["--path", options.path]
    if options.cache_size is not None:
        command += ["--cache-size", str(options.cache_size)]
    if options.max_document is not None:
        command += ["--max-document", str(options.max_document)]
    if options.log_file is not None:
        command += ["--log-file", options.log_file]
    flags = {
        "--views": options.list_all_views,
        "--immutable": options.immutable,
        "--allow-other": options.allow_other,
    }
    command += [flag for flag, given in flags.items() if given]
    for option in options.fuse_options:
        command += ["-o", option]
    for key, value in (options.storage_options or {}).items():
        command += ["--storage-option", f"{key}={value}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MountError(
            done.stderr.strip().removeprefix("zarrfs: ") or f"zarrfs mount ended with {done.returncode}"
        )


# -- mount points ----------------------------------------------------------------------------------------------


def prepare_mountpoint(mountpoint: str) -> str:
    """Return the absolute path of a directory that can be mounted on; a mount left behind there is cleared."""
    target = os.path.abspath(mountpoint)
    try:
        found = os.stat(target)
    except FileNotFoundError:
        raise MountError(f"{target}: no such directory; make it first (mkdir {target})") from None
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise MountError(f"{target} cannot be mounted on: {error.strerror}") from error
        logger.info("%s: clearing a mount whose process is gone", target)
        unmount(target)
        found = os.stat(target)
    if not stat.S_ISDIR(found.st_mode):
        raise MountError(f"{target} is no directory")
    if is_mounted(target):
        raise MountError(
            f"{target}: there is a zarrfs mount already; remove it with `zarrfs umount {target}`"
        )
    if os.listdir(target):
        raise MountError(
            f"{target} is not empty; mounting would hide what is in it. Choose an empty directory"
        )
    return target


def mounts() -> Iterator[tuple[str, str]]:
    """Yield (mount point, type) of every mount of this system, the newest last."""
    try:
        # The kernel escapes blanks and \n in names, but no other line break.
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape", newline="\n") as table:
            lines = table.readlines()
    except OSError:
        return
    for line in lines:
        fields = line.split(" ")
        if len(fields) > 2:
            yield _unescape(fields[1]), fields[2]


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _absolute(mountpoint: str) -> str:
    """Return the path as the mount table has it, without touching the mount itself, which may hang or be stale."""
    absolute = os.path.abspath(mountpoint)
    return os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute))


def is_mounted(mountpoint: str) -> bool:
    """Tell whether there is a zarrfs mount at the path, alive or left behind."""
    target = _absolute(mountpoint)
    return any(path == target and kind in TYPES for path, kind in mounts())


def unmount(mountpoint: str, *, lazy: bool = False, patience: float = 10.0) -> None:
    """Remove a zarrfs mount, also one whose process is gone. Returns when it is removed. Raises MountError.

    ``lazy`` removes it at once although files are open; they stay readable until they are closed.
    """
    target = _absolute(mountpoint)
    if not is_mounted(target):
        raise MountError(f"{target}: there is no zarrfs mount here")
    said = "no program to unmount with was found (fusermount3, fusermount, umount)"
    for command in _unmount_commands(target, lazy or _is_stale(target)):
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        said = done.stderr.strip() or f"{command[0]} ended with {done.returncode}"
    else:
        hint = "; a program uses it (find it with lsof), or give --lazy" if "busy" in said.lower() else ""
        raise MountError(f"{target} cannot be unmounted: {said}{hint}")
    deadline = time.monotonic() + patience
    while is_mounted(target):
        if time.monotonic() > deadline:
            raise MountError(f"{target} is still mounted {patience:.0f} s after it was unmounted")
        time.sleep(0.01)


def _unmount_commands(target: str, lazy: bool) -> list[list[str]]:
    fuse = [["fusermount3", "-u"], ["fusermount", "-u"]]
    plain = [["umount"]]
    commands = plain + fuse if os.geteuid() == 0 else fuse + plain
    flag = {"fusermount3": "-z", "fusermount": "-z", "umount": "-l"}
    return [[*command, *([flag[command[0]]] if lazy else []), target] for command in commands]


def _is_stale(target: str) -> bool:
    try:
        os.stat(target)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False
