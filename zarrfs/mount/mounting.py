"""Mounting and unmounting, including background processes, signals and stale mounts."""

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
MOUNT_TYPES = (f"fuse.{SUBTYPE}", "fuse.ZarrOperations")

READY_MESSAGE = b"ready"

LIBFUSE_SIGNAL_STATUS = 8
"""The status of libfuse 3 after SIGINT, SIGTERM or SIGHUP. The file system is then unmounted."""

CACHE_MEMORY_DIVISOR = 4
"""The default chunk cache uses at most a quarter of the memory. A sequential read of a file accesses each chunk once
for every plane that the chunk contains.
"""

MIN_SHARED_CACHE_NBYTES = 256 << 20
"""A smaller cache is used for decoded chunks only."""

MAX_LOG_NBYTES = 1 << 20

MAX_SOURCE_LENGTH = 1000
"""The maximum number of characters of the location in the mount table."""


@dataclass(frozen=True)
class MountOptions:
    """The options of a mount.

    Attributes:
        path: the node below the location that becomes the root of the mount.
        cache_size: the size of the chunk cache in bytes; None for a quarter of the memory.
        list_all_views: whether directory listings contain all views, not only the default ones.
        immutable: whether the store is guaranteed not to change, so that the kernel may cache without revalidation.
        allow_other: whether other users can access the mount. The kernel then checks file permissions.
        log_file: the log file of a background mount; None for ``mount.log`` in the state directory of the user.
        fuse_options: additional ``-o`` options of libfuse.
        storage_options: the fsspec options for a URL, such as credentials.
        max_document: the maximum size of a metadata document in bytes; None for the default.
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
    """Mount, and serve requests until the file system is unmounted or SIGINT or SIGTERM is received.

    ``ready`` is called when libfuse has initialized the mount. Raises ZarrError if the store cannot be opened or the
    mount fails. It must be called on the main thread because libfuse installs signal handlers.
    """
    import zarrfs
    from zarrfs.mount.binding import load_binding
    from zarrfs.mount.blocks import DEFAULT_POOL_NBYTES, BlockPool
    from zarrfs.mount.operations import ZarrOperations
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
        is_ready = False

        def mark_ready() -> None:
            nonlocal is_ready
            is_ready = True
            ready()

        operations = ZarrOperations(tree, mark_ready, pool=pool)
        try:
            binding.run(operations, target, _fuse_arguments(source, options))
        except RuntimeError as error:
            if is_ready and error.args == (LIBFUSE_SIGNAL_STATUS,):
                return
            if is_ready:
                raise MountError(f"{target}: the mount terminated with the libfuse status {error}") from error
            raise MountError(
                f"{target}: libfuse could not mount (status {error}). Its own message is printed above; "
                "`zarrfs doctor` shows missing requirements"
            ) from error
    finally:
        pool.close()
        node.store.close()


def _fuse_arguments(location: str, options: MountOptions) -> dict[str, object]:
    arguments: dict[str, object] = {
        "ro": True,
        "fsname": _escape_option(safe_text(location, MAX_SOURCE_LENGTH)),
        "subtype": SUBTYPE,
        "allow_other": options.allow_other,
        "default_permissions": options.allow_other,
    }
    if options.immutable:
        arguments.update(kernel_cache=True, attr_timeout=3600, entry_timeout=3600)
    else:
        # On open, the kernel drops cached pages of a file whose size or modification time has changed.
        arguments.update(auto_cache=True)
    for option in options.fuse_options:
        key, separator, value = option.partition("=")
        arguments[key] = value if separator else True
    return arguments


def _escape_option(text: str) -> str:
    """Escape the characters that separate libfuse options."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def root_name(location: str) -> str:
    """Return the file name of an array that is the root of a store: the name of the location without .zarr and .zip."""
    name = Path(location.rstrip("/")).name
    for suffix in (".zip", ".zarr"):
        name = name.removesuffix(suffix)
    return name or "array"


def default_cache_size() -> int:
    """Return the default size of the chunk cache of a mount in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // CACHE_MEMORY_DIVISOR
    except (ValueError, OSError):
        return 1 << 30


def serve_in_background(location: str, mountpoint: str, options: MountOptions) -> int:
    """Mount in a child process. Return its process ID when the mount is ready. Raises MountError if the mount fails.

    The process is forked before the store is opened and before threads are started because neither survives a fork.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        status = 1
        try:
            os.setsid()
            status = _serve_in_child(location, mountpoint, options, write_end)
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        message = pipe.read()
    if message != READY_MESSAGE:
        os.waitpid(child, 0)
        raise MountError(
            message.decode("utf-8", "replace") or "the mount process exited without an error message"
        )
    os.stat(mountpoint)
    return child


def _serve_in_child(location: str, mountpoint: str, options: MountOptions, write_end: int) -> int:
    pipe = write_end

    def send(message: bytes) -> None:
        nonlocal pipe
        if pipe >= 0:
            os.write(pipe, message)
            os.close(pipe)
            pipe = -1

    def ready() -> None:
        _detach()
        send(READY_MESSAGE)

    try:
        _log_to_file(options.log_file)
        serve(location, mountpoint, options, ready)
    except BaseException as error:
        if isinstance(error, ZarrError | OSError):
            logger.error("%s", error)
        else:
            logger.exception("unexpected error in the mount")
        send(describe_error(error).encode("utf-8", "replace"))
        return 1
    return 0


def _detach() -> None:
    """Detach from the terminal, so that it can be closed while the mount is running."""
    null_descriptor = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null_descriptor, descriptor)
    os.close(null_descriptor)
    os.chdir("/")


def _log_to_file(path: str | None) -> None:
    target = Path(path) if path else _state_directory() / "mount.log"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(target, maxBytes=MAX_LOG_NBYTES, backupCount=1, delay=True)
    except OSError as error:
        raise MountError(f"{target}: the log cannot be written: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s [%(process)d] %(levelname)s %(message)s"))
    # Replaces the terminal: the parent process prints the error message.
    logger.handlers[:] = [handler]
    logger.propagate = False


def _state_directory() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "zarrfs"


def mount(location: str, mountpoint: str, options: MountOptions | None = None) -> None:
    """Mount in the background, and return when the mount is ready. Raises MountError if the mount fails.

    The function runs ``zarrfs mount`` in a new process, so that it can be called from a program with threads.
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
    command += [flag for flag, is_set in flags.items() if is_set]
    for option in options.fuse_options:
        command += ["-o", option]
    for key, value in (options.storage_options or {}).items():
        command += ["--storage-option", f"{key}={value}"]
    completed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise MountError(
            completed.stderr.strip().removeprefix("zarrfs: ")
            or f"zarrfs mount exited with status {completed.returncode}"
        )


# -- mount points ----------------------------------------------------------------------------------------------


def prepare_mountpoint(mountpoint: str) -> str:
    """Return the absolute path of a mount point. A stale mount at the path is removed. Raises MountError."""
    target = os.path.abspath(mountpoint)
    try:
        status = os.stat(target)
    except FileNotFoundError:
        raise MountError(f"{target}: no such directory. Create it first (mkdir {target})") from None
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise MountError(f"{target} cannot be used as a mount point: {error.strerror}") from error
        logger.info("%s: removing a stale mount (its process no longer exists)", target)
        unmount(target)
        status = os.stat(target)
    if not stat.S_ISDIR(status.st_mode):
        raise MountError(f"{target} is not a directory")
    if is_mounted(target):
        raise MountError(f"{target} is already a zarrfs mount. Unmount it with `zarrfs umount {target}`")
    if os.listdir(target):
        raise MountError(
            f"{target} is not empty, and a mount would hide its content. Choose an empty directory"
        )
    return target


def mounts() -> Iterator[tuple[str, str]]:
    """Yield (mount point, file system type) of every mount of the system, in the order of mounting."""
    try:
        # The kernel escapes spaces, tabs and \n in names, but no other line breaks.
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


def _resolve_parent(mountpoint: str) -> str:
    """Return the path in the form of the mount table. The mount itself is not accessed: it may hang or be stale."""
    absolute = os.path.abspath(mountpoint)
    return os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute))


def is_mounted(mountpoint: str) -> bool:
    """Return whether the path is a zarrfs mount. A stale mount counts as a mount."""
    target = _resolve_parent(mountpoint)
    return any(path == target and type_name in MOUNT_TYPES for path, type_name in mounts())


def unmount(mountpoint: str, *, lazy: bool = False, timeout: float = 10.0) -> None:
    """Remove a zarrfs mount, and return when it is removed. Stale mounts are removed too. Raises MountError.

    ``lazy`` detaches the mount immediately even if files are open. Open files remain readable until they are closed.
    ``timeout`` is the maximum time in seconds to wait until the mount is removed.
    """
    target = _resolve_parent(mountpoint)
    if not is_mounted(target):
        raise MountError(f"{target} is not a zarrfs mount")
    message = "no unmount program was found (fusermount3, fusermount or umount)"
    for command in _unmount_commands(target, lazy or _is_stale(target)):
        if shutil.which(command[0]) is None:
            continue
        completed = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if completed.returncode == 0:
            break
        message = completed.stderr.strip() or f"{command[0]} exited with status {completed.returncode}"
    else:
        hint = (
            ". Close the files that are open (lsof lists them) or use --lazy"
            if "busy" in message.lower()
            else ""
        )
        raise MountError(f"{target} cannot be unmounted: {message}{hint}")
    deadline = time.monotonic() + timeout
    while is_mounted(target):
        if time.monotonic() > deadline:
            raise MountError(f"{target} is still mounted {timeout:.0f} s after the unmount command")
        time.sleep(0.01)


def _unmount_commands(target: str, lazy: bool) -> list[list[str]]:
    fusermount = [["fusermount3", "-u"], ["fusermount", "-u"]]
    umount = [["umount"]]
    commands = umount + fusermount if os.geteuid() == 0 else fusermount + umount
    lazy_flags = {"fusermount3": "-z", "fusermount": "-z", "umount": "-l"}
    return [[*command, *([lazy_flags[command[0]]] if lazy else []), target] for command in commands]


def _is_stale(target: str) -> bool:
    try:
        os.stat(target)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False
