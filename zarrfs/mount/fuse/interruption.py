"""Requests that are answered when the program that waits for them is interrupted (Ctrl-C).

The kernel announces the interruption and then waits for the answer. The thread that serves the request waits for a
server, possibly by means of other threads, so that the operation is executed by another thread and abandoned.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zarrfs.engine.codecs.pipeline.scratch import release_scratch
from zarrfs.engine.stores.wrappers.timeout import DaemonThreads

__all__ = ["InterruptibleCalls", "has_ending_signal", "process_of"]

POLL_SECONDS = 0.25
"""How often a waiting request checks whether it was interrupted. Requests that take less time are not checked."""

ENDING_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM")
    if hasattr(signal, name)
)


class InterruptibleCalls:
    """Calls functions so that the caller can be released before they return.

    ``is_interrupted`` returns whether the request that the calling thread serves was interrupted.
    """

    def __init__(self, is_interrupted: Callable[[], bool]) -> None:
        self._is_interrupted = is_interrupted
        self._threads = DaemonThreads()

    def __call__(
        self, function: Callable[..., Any], *arguments: Any, undo: Callable[[Any], object] | None = None
    ) -> Any:
        """Return the result of a function. Raises its exceptions, and OSError (EINTR) if the request is interrupted.

        The function then continues in its thread, and ``undo`` is called with its result. It must not use memory of the
        caller.
        """
        lock = threading.Lock()
        is_abandoned = is_finished = False

        def run() -> Any:
            nonlocal is_finished
            try:
                result = function(*arguments)
            finally:
                release_scratch()
            with lock:
                is_finished = True
            if is_abandoned and undo is not None:
                undo(result)
            return result

        task = self._threads.start(run)
        while not task.done.wait(POLL_SECONDS):
            if self._is_interrupted():
                with lock:
                    is_abandoned = not is_finished
                if is_abandoned:
                    raise OSError(errno.EINTR, os.strerror(errno.EINTR))
        if task.error is not None:
            raise task.error
        return task.result


def has_ending_signal(thread: int) -> bool:
    """Return whether a signal that ends programs waits to be delivered to a thread; True if that is unknown.

    Other signals, such as those of timers and profilers, also interrupt a request. Programs do not expect that they
    make the read of a file fail.
    """
    status = thread_status(thread)
    if status is None:
        return True
    pending = int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)
    return any(pending >> (number - 1) & 1 for number in ENDING_SIGNALS)


def process_of(thread: int) -> int:
    """Return the process of a thread; 0 if it is not known."""
    status = thread_status(thread)
    return 0 if status is None else int(status["Tgid"])


def thread_status(thread: int) -> dict[str, str] | None:
    """Return what the system tells about a thread, such as ``Tgid`` and ``SigPnd``. None if it is not known.

    The number of a thread in another container is not known: it is 0 or that of another thread.
    """
    try:
        text = Path(f"/proc/{thread}/status").read_text(errors="replace")
    except OSError:
        return None
    fields = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in fields}
