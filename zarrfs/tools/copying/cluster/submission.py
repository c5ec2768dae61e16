"""The Dask tasks of one run: submission, resubmission to other workers, and detection of workers that hang."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future as Answer
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zarrfs.tools.copying.cluster.waiting import ask_worker, request
from zarrfs.tools.copying.cluster.worker import run_batch, running_seconds

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["DaskTask", "Submission", "TaskMonitor"]


@dataclass(frozen=True)
class DaskTask:
    """A Dask task.

    Attributes:
        future: its future.
        items: the items that it processes.
        allowed: the workers on which it may run, or None for all.
        hung_on: the workers on which it has exceeded the time limit before.
        excluded: the workers on which it does not run as long as there are others: those in ``hung_on``, and those that
            did not send its result.
    """

    future: Future
    items: Sequence[Any]
    allowed: frozenset[str] | None
    hung_on: tuple[str, ...]
    excluded: frozenset[str]


class Submission:
    """The Dask tasks of one run that have no result yet.

    Attributes:
        session: the name of the command on the workers; see ``run_batch``.
        job: the name of the run on the workers.
        tasks: the tasks, by the key of Dask.
        avoided: the workers that hang. No further task is submitted to them.
    """

    def __init__(
        self, client: Client, session: str, payload: bytes, keeps_values: bool, workers: Iterable[str]
    ) -> None:
        self.client = client
        self.session = session
        self.job = secrets.token_hex(8)
        self.tasks: dict[str, DaskTask] = {}
        self.avoided: set[str] = set()
        self._workers = frozenset(workers)
        self._payload = payload
        self._keeps_values = keeps_values

    def submit(
        self, items: Sequence[Any], hung_on: tuple[str, ...] = (), excluded: frozenset[str] = frozenset()
    ) -> Future:
        """Submit a task for the items. It may run on any worker that does not hang and is not in ``excluded``. If all
        others are excluded, it may run on them.
        """
        allowed = None
        if self.avoided or excluded:
            allowed = self.usable_workers - excluded or self.usable_workers or None
        key = f"zarrfs-{secrets.token_hex(8)}"
        future = self.client.submit(
            *(run_batch, self._payload, self.session, self.job, key, items, self._keeps_values),
            key=key,
            pure=False,
            workers=None if allowed is None else sorted(allowed),
        )
        self.tasks[key] = DaskTask(future, items, allowed, hung_on, excluded)
        return future

    def submit_again(self, key: str, hung_on: str | None, silent: Iterable[str] = ()) -> Future:
        """Cancel a task and submit its items as a new task. ``hung_on`` is the worker on which it exceeded the time
        limit, and ``silent`` are workers that did not send its result. It runs on others, if there are any: a worker
        that responds again can hang again on the same items, which would be another of few attempts. A result of the
        cancelled task is ignored, because ``tasks`` no longer contains it.
        """
        task = self.tasks.pop(key)
        self.client.cancel([task.future], force=True)
        attempts = task.hung_on if hung_on is None else (*task.hung_on, hung_on)
        return self.submit(task.items, attempts, task.excluded.union(attempts, silent))

    def avoid(
        self, hanging: set[str], processing: Mapping[str, Sequence[str]]
    ) -> list[tuple[str, str | None]]:
        """Avoid the workers that hang. Return the keys of the tasks that have to be submitted again, each with the
        worker on which it has exceeded the time limit, or None if it has not.

        Args:
            hanging: all workers on which a task exceeds the time limit.
            processing: all workers, with the keys of the tasks that they have.
        """
        self._workers = frozenset(processing)
        new = hanging - self.avoided
        self.avoided = set(hanging)
        moved: dict[str, str | None] = {}
        for worker in self.avoided:
            for key in processing.get(worker, ()):
                if key in self.tasks:
                    moved[key] = worker if worker in new else None
        for key, task in self.tasks.items():
            if task.allowed is not None and task.allowed.isdisjoint(self._workers):
                moved.setdefault(key, None)
        return list(moved.items())

    @property
    def usable_workers(self) -> frozenset[str]:
        return self._workers - self.avoided


class TaskMonitor:
    """Finds the workers on which an item takes longer than the time limit, or that do not respond within it.

    It queries them in the background, because a worker that hangs never answers.

    Attributes:
        processing: the workers, with the keys of the tasks that they have, as the scheduler has last reported.
    """

    def __init__(self, client: Client, job: str, seconds: float) -> None:
        self.client = client
        self.processing: dict[str, Sequence[str]] = {}
        self._job = job
        self._limit = seconds
        self._next = time.monotonic()
        self._scheduler: tuple[Answer[Any], float] | None = None
        self._workers: dict[str, tuple[Answer[Any], float]] = {}
        self._hanging: set[str] = set()
        self._all_hang_since: float | None = None

    def is_updated(self) -> bool:
        """Return whether the scheduler has sent a new report. Requests the next one if the interval has passed."""
        now = time.monotonic()
        if self._scheduler is None:
            if now < self._next:
                return False
            self._next = now + self._limit / 4
            self._scheduler = self._ask(self.client.processing)
            return False
        answer, _ = self._scheduler
        if not answer.done():
            return False
        self._scheduler = None
        if answer.cancelled() or answer.exception() is not None:
            return False  # The loss of the scheduler is detected by the tasks.
        self.processing = {worker: tuple(keys) for worker, keys in answer.result().items()}
        for worker, keys in self.processing.items():
            if (keys or worker in self._hanging) and worker not in self._workers:
                self._workers[worker] = (ask_worker(self.client, worker, running_seconds, self._job), now)
        return True

    def hanging(self) -> set[str]:
        """Return the workers that hang. One that responds, and has no task that exceeds the limit, hangs no longer."""
        now = time.monotonic()
        for worker, (answer, start) in list(self._workers.items()):
            if not answer.done():
                if now - start > self._limit:
                    self._hanging.add(worker)
                continue
            del self._workers[worker]
            reply = None if answer.cancelled() or answer.exception() is not None else answer.result()
            if isinstance(reply, list) and max(reply, default=0.0) > self._limit:
                self._hanging.add(worker)
            elif isinstance(reply, list):
                self._hanging.discard(worker)
        self._hanging.intersection_update(self.processing)
        if self._hanging != set(self.processing):
            self._all_hang_since = None
        elif self._all_hang_since is None:
            self._all_hang_since = now
        return set(self._hanging)

    def has_timed_out(self) -> bool:
        """Return whether all workers have been hanging for the time limit. A busy network or file system can stop all
        for some time.
        """
        return self._all_hang_since is not None and time.monotonic() - self._all_hang_since > self._limit

    def seconds_without_scheduler(self) -> float:
        """Return how long the scheduler has not responded."""
        return 0.0 if self._scheduler is None else time.monotonic() - self._scheduler[1]

    def close(self) -> None:
        """Cancel the requests that are not answered."""
        for answer, _ in [*self._workers.values(), *([] if self._scheduler is None else [self._scheduler])]:
            answer.cancel()

    def _ask(self, call: Callable[[], Any]) -> tuple[Answer[Any], float]:
        return request(self.client, call), time.monotonic()
