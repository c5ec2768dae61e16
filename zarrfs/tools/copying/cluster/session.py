"""What a worker of a Dask cluster has for one command: a plugin of Dask, with which the worker processes the items.

This module imports Dask. ``worker`` has the other functions that run on workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Worker, WorkerPlugin
from tornado.ioloop import PeriodicCallback

from zarrfs.engine.parallel import limit_threads
from zarrfs.logs import logger
from zarrfs.tools.copying.cluster.results import BatchResult
from zarrfs.tools.copying.cluster.settings import TaskSettings, unpickled_with_settings

__all__ = ["Session"]

IDLE_SECONDS = 60.0
"""The stores and caches of a command without tasks are released after this time: it may have been killed."""

CHECK_SECONDS = 5.0
"""The longest time between two checks of the running items."""

CLOSE_SECONDS = 2.0
"""The time within which the tasks of a worker that is closed may end."""


class Session(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """The function of the current run of a command, with the stores and caches that it has opened.

    It is sent to each worker once, also to those that are started later, and is removed from them at the end of the
    command. A command has several runs, one after the other. The functions of earlier runs are released: their caches
    of decoded chunks can each be as large as the memory of a run.

    If an item takes longer than ``task_timeout`` seconds, the worker is closed. Its tasks then run on others, as after
    the end of its process. Dask finds processes that do not respond by itself (``distributed.scheduler.worker-ttl``),
    but not threads that wait forever, for instance for a file system.
    """

    def __init__(self, name: str, task_timeout: float | None) -> None:
        self.name = name
        self.task_timeout = task_timeout

    def setup(self, worker: Worker) -> None:
        self._worker = worker
        self._changed = threading.Condition()
        self._function: tuple[bytes, TaskSettings, Callable[[Any], object]] | None = None
        self._running: dict[int, tuple[str, float]] = {}
        """Thread -> the run, and the time at which its current item was started."""
        self._stopped: set[str] = set()
        """Runs of which no further item is started, because a task may arrive after its cancellation."""
        self._used = time.monotonic()
        seconds = CHECK_SECONDS if self.task_timeout is None else min(CHECK_SECONDS, self.task_timeout / 4)
        self._checks = PeriodicCallback(self._check, seconds * 1000)
        self._checks.start()

    def teardown(self, worker: Worker) -> None:
        self._checks.stop()
        self._function = None

    @property
    def has_function(self) -> bool:
        """Whether the worker has stores and caches of the command."""
        return self._function is not None

    def run(self, job: str, payload: bytes, items: Sequence[Any], keeps_values: bool) -> BatchResult:
        """Process the items of a run. ``payload`` is its function; see ``pickled_with_settings``."""
        values: list[Any] = []
        done, start = 0, time.perf_counter()
        try:
            self._note_start(job)
            settings, work = self._unpickled(payload)
            with settings.applied(), limit_threads(1):  # each thread of the worker runs a task of its own
                for item in items:
                    if job in self._stopped:
                        break
                    self._note_start(job)
                    value = work(item)
                    done += 1
                    if keeps_values:
                        values.append(value)
        finally:
            with self._changed:
                self._running.pop(threading.get_ident(), None)
                self._used = time.monotonic()
                self._changed.notify_all()
        return BatchResult(done, values, str(self._worker.address), time.perf_counter() - start)

    def stop(self, job: str, seconds: float) -> bool:
        """Start no further items of a run, and wait at most ``seconds`` for those that are being processed. Return
        whether all of them have ended.
        """
        with self._changed:
            self._stopped.add(job)
            return self._changed.wait_for(
                lambda: all(running != job for running, _ in self._running.values()), seconds
            )

    def _note_start(self, job: str) -> None:
        with self._changed:
            self._running[threading.get_ident()] = job, time.monotonic()

    def _unpickled(self, payload: bytes) -> tuple[TaskSettings, Callable[[Any], object]]:
        """Return the settings and the function of a payload, the same objects for all tasks that have it."""
        with self._changed:
            kept = self._function
        if kept is None or kept[0] != payload:
            settings, work = unpickled_with_settings(payload)  # without the lock, because it opens stores
            with self._changed:
                kept = self._function
                if kept is None or kept[0] != payload:  # otherwise another thread was faster
                    self._function = kept = payload, settings, work
        return kept[1], kept[2]

    def _check(self) -> None:
        now = time.monotonic()
        with self._changed:
            longest = max((now - start for _, start in self._running.values()), default=0.0)
            if not self._running and now - self._used > IDLE_SECONDS:
                self._function = None
        if self.task_timeout is not None and longest > self.task_timeout:
            self._checks.stop()
            logger.warning(
                "an item has not ended within %g s; the worker is closed, and its tasks run on others",
                self.task_timeout,
            )
            self._worker.loop.add_callback(
                self._worker.close,
                timeout=CLOSE_SECONDS,
                executor_wait=False,
                nanny=False,  # which starts the process again
                reason="zarrfs-task-timeout",
            )
