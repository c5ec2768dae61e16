"""Mounts in the background: a child process serves, and its parent returns when the mount is ready."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from zarrfs.credentials import hide_credentials, register_secrets, register_url
from zarrfs.errors import MountError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.options import CreationOptions, MountOptions
from zarrfs.mount.process.records import state_directory

__all__ = ["mount", "mount_requested", "serve_in_background"]

READY_MESSAGE = b"ready"

MAX_LOG_NBYTES = 1 << 20


def serve_in_background(
    location: str | Sequence[str], mountpoint: str, options: MountOptions, *, is_created: bool = False
) -> int:
    """Mount in a child process. Return its process ID when the mount is ready. Raises MountError if the mount fails.

    The process is forked before the store is opened and before threads are started because neither survives a fork.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        status = 1
        try:
            status = _serve_in_child(location, mountpoint, options, write_end, is_created)
        finally:
            os._exit(status)
    os.close(write_end)
    try:
        with os.fdopen(read_end, "rb") as pipe:
            message = pipe.read()
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)  # Ctrl-C has reached it too, unless the mount is ready.
        raise
    if message != READY_MESSAGE:
        os.waitpid(child, 0)
        raise MountError(
            message.decode("utf-8", "replace") or "the mount process exited without an error message"
        )
    return child


def _serve_in_child(
    location: str | Sequence[str], mountpoint: str, options: MountOptions, write_end: int, is_created: bool
) -> int:
    pipe = write_end
    # The child closes only what it has opened: a lock on a file lasts until all copies of the descriptor are closed.
    os.closerange(3, write_end)
    os.closerange(write_end + 1, os.sysconf("SC_OPEN_MAX"))

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
        from zarrfs.mount.process.serving import serve

        serve(location, mountpoint, options, ready, is_created=is_created)
    except BaseException as error:
        if isinstance(error, ZarrError | OSError):
            logger.error("%s", error)
        else:
            logger.exception("unexpected error in the mount")
        send(describe_error(error).encode("utf-8", "replace"))
        return 1
    return 0


def _detach() -> None:
    """Detach from the terminal, so that it can be closed while the mount is running.

    The process leaves the process group of its parent only now: while an automounter (autofs) mounts, only processes of
    its group can access the mount point. Other processes would wait for the mount that they have to create.
    """
    os.setsid()
    logger.handlers[:] = [handler for handler in logger.handlers if not isinstance(handler, _WarningHandler)]
    null_descriptor = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null_descriptor, descriptor)
    os.close(null_descriptor)
    os.chdir("/")


class _WarningHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints warnings on standard error. The parent process prints errors."""

    def __init__(self) -> None:
        super().__init__()
        self.setLevel(logging.WARNING)
        self.setFormatter(logging.Formatter("zarrfs: %(levelname)s: %(message)s"))
        self.addFilter(lambda record: record.levelno == logging.WARNING)


class _LogFileHandler(RotatingFileHandler):
    """The log of the mount. A message that cannot be written, for example because the disk is full, is dropped."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name in logging
        """Print no traceback."""


def _log_to_file(path: str | None) -> None:
    """Write messages to a file. Without ``path`` a warning is printed if the default file cannot be written."""
    logger.handlers[:] = [_WarningHandler()]
    logger.propagate = False
    try:
        target = Path(path) if path else state_directory() / "mount.log"
        target = target.absolute()
        target.parent.mkdir(parents=True, exist_ok=True)
        handler = _LogFileHandler(target, maxBytes=MAX_LOG_NBYTES, backupCount=1)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        if path is not None:
            raise MountError(f"{path}: the log cannot be written: {reason}") from error
        logger.warning(
            "the log of the mount cannot be written in %s: %s. The mount has no log; choose a file with --log-file",
            os.environ.get("XDG_STATE_HOME") or "the home directory",
            reason,
        )
        logger.addHandler(logging.NullHandler())
        return
    handler.setFormatter(logging.Formatter("%(asctime)s [%(process)d] %(levelname)s %(message)s"))
    logger.addHandler(handler)


def mount(location: str | Sequence[str], mountpoint: str, options: MountOptions | None = None) -> None:
    """Mount in the background, and return when the mount is ready. Raises MountError if the mount fails.

    Several locations become directories of the mount. The function starts a new process, so that it can be called from
    a program with threads. Locations and options are passed through a pipe: other users can see command lines.
    """
    options = options or MountOptions()
    locations = [location] if isinstance(location, str) else list(location)
    register_secrets(options.storage_options)
    for each in locations:
        register_url(each)
    try:
        request = json.dumps(
            {"locations": locations, "mountpoint": mountpoint, "options": asdict(options)}, allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise MountError(
            f"the options of the mount cannot be passed to its process, because they are not JSON values: {error}"
        ) from error
    shown = [hide_credentials(each) for each in locations]
    completed = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "zarrfs.mount", *shown, mountpoint],
        input=request,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if completed.returncode:
        raise MountError(
            completed.stderr.strip().removeprefix("zarrfs: ")
            or f"the process of the mount exited with status {completed.returncode}"
        )


def mount_requested(request: str) -> None:
    """Mount as a request of ``mount`` demands. Called in the process that ``mount`` starts."""
    document: dict[str, Any] = json.loads(request)
    given: dict[str, Any] = document["options"]
    for name in ("views", "fuse_options"):
        if given[name] is not None:
            given[name] = tuple(given[name])
    creation = given["creation"]
    if isinstance(creation["chunks"], list):
        creation["chunks"] = tuple(creation["chunks"])
    given["creation"] = CreationOptions(**creation)
    serve_in_background(document["locations"], document["mountpoint"], MountOptions(**given))
