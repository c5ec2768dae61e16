"""Signals of a process that serves a mount.

The handlers of libfuse end its loop, which waits for all requests in progress, including those that wait for a server
that does not respond. libfuse installs no handler for a signal that has one. Python runs handlers in the main thread,
which is in the loop of libfuse, but it writes the number of a signal to a file descriptor at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from zarrfs.logs import logger

__all__ = ["handled_signals"]

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

JOIN_SECONDS = 5.0


@contextmanager
def handled_signals(stop: Callable[[], None], rescan: Callable[[], None]) -> Iterator[None]:
    """Within the context, SIGTERM and SIGINT call ``stop``, and SIGHUP calls ``rescan``, in a separate thread.

    SIGHUP calls ``stop`` instead if the process had a controlling terminal at the beginning, and this terminal has been
    closed. The context must be entered in the main thread.
    """
    session = os.getsid(0) if _has_terminal() else None
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    previous_handlers: dict[signal.Signals, Any] = {
        number: signal.signal(number, lambda *_: None) for number in HANDLED
    }
    previous_descriptor = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def wait() -> None:
        while received := os.read(read_end, 1):
            if received[0] not in HANDLED:
                continue
            name = signal.Signals(received[0]).name
            try:
                is_hangup = os.getsid(0) == session and not _has_terminal()
                if received[0] == signal.SIGHUP and not is_hangup:
                    logger.info("%s: rescanning", name)
                    rescan()
                else:
                    logger.info("%s: unmounting", name)
                    stop()
            except Exception:
                logger.exception("unexpected error while handling %s", name)

    thread = threading.Thread(target=wait, name="zarrfs-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous_descriptor)
        for number, handler in previous_handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        os.close(write_end)
        thread.join(JOIN_SECONDS)
        if not thread.is_alive():
            os.close(read_end)


def _has_terminal() -> bool:
    """Return whether the process has a controlling terminal."""
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
        return True
    return False
