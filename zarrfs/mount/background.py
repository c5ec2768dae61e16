"""Mounts in the background: a child process serves, and its parent returns when the mount is ready."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from zarrfs.errors import MountError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.options import CreationOptions, MountOptions
from zarrfs.mount.serving import serve

__all__ = ["mount", "serve_in_background"]

READY_MESSAGE = b"ready"

MAX_LOG_NBYTES = 1 << 20


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
    if options.synchronizer is not None:
        command += ["--synchronizer", options.synchronizer]
    command += _creation_arguments(options.creation)
    flags = {
        "--views": options.list_all_views,
        "--immutable": options.immutable,
        "--allow-other": options.allow_other,
        "--rw": options.writable,
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


def _creation_arguments(creation: CreationOptions) -> list[str]:
    """Return the arguments of ``zarrfs mount`` for the options of new arrays."""
    arguments = []
    if creation.zarr_format is not None:
        arguments += ["--create-format", str(creation.zarr_format)]
    if creation.chunks is not None:
        chunks = creation.chunks
        text = ",".join(map(str, chunks)) if isinstance(chunks, tuple) else str(chunks)
        arguments += ["--create-chunks", text]
    if creation.compressors is not None:
        if not isinstance(creation.compressors, str):
            raise MountError(
                f"the compressors of a mount in the background must be a name such as 'zstd' or 'gzip:5', found "
                f"{creation.compressors!r}"
            )
        arguments += ["--create-codec", creation.compressors]
    return arguments
