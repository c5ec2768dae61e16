"""Execution of the tasks of a copy or a verification on a Dask cluster, with a bounded number of Dask tasks in flight.

A Dask task is a pickled function and a batch of items. Dask sends the results, repeats tasks that fail, and runs those
of a lost worker on others. What a worker keeps between the tasks is in a plugin (``session``).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError as AnswerCancelledError
from concurrent.futures import Future as Answer
from concurrent.futures import wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.base import Store
from zarrfs.errors import StoreError, ZarrError
from zarrfs.logs import logger
from zarrfs.tools.copying.cluster.batches import Batches
from zarrfs.tools.copying.cluster.checks import check_source_on_workers, check_workers, pickled
from zarrfs.tools.copying.cluster.results import BatchResult, Statistics, WorkerStatistics
from zarrfs.tools.copying.cluster.waiting import Stall, ask_worker, deferred_interrupt, request
from zarrfs.tools.copying.cluster.worker import run_batch, stop_job

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["ClusterExecutor"]

T = TypeVar("T")

IN_FLIGHT_PER_THREAD = 2
"""Dask tasks in flight per thread of the cluster: one that runs and one that is queued, so that no thread is idle."""

RETRIES = 2
"""How often Dask repeats a task that has failed, perhaps on another worker: the access to a store may have failed."""

POLL_SECONDS = 0.02
"""The time between two checks for completed tasks if none is complete. The queued tasks keep the workers busy."""

THREADS_SECONDS = 1.0
"""After this time the scheduler is asked again for the number of threads, which also detects that it was lost."""

REQUEST_SECONDS = 60.0
"""The time within which the scheduler must respond."""

STOP_SECONDS = 10.0
"""The time for the end of running tasks after an interruption or an error."""

RELEASE_SECONDS = 2.0
"""The time within which the workers release what they keep."""

REGISTRATIONS = 3
"""How often the plugin is sent to the workers, if one of them is lost meanwhile."""

RESUME_HINT = "continue the copy with if_exists='resume'"


class ClusterExecutor:
    """Runs tasks on the workers of a Dask cluster, which need the same version of zarrfs and access to the stores.

    Attributes:
        session: the name of the plugin of this executor on the workers.
        task_timeout: the time limit in seconds for one item on a worker; None: no limit. A worker that exceeds it is
            closed, and others process its items. If it has a nanny (the default of Dask), that starts it again.
        statistics: the statistics of each worker, by its address.
        on_statistics: called with the statistics whenever they have changed, or None.
    """

    def __init__(
        self,
        client: Client,
        resume_hint: str = RESUME_HINT,
        task_timeout: float | None = None,
        on_statistics: Callable[[Statistics], object] | None = None,
    ) -> None:
        self.client = client
        self.on_statistics = on_statistics
        self.resume_hint = resume_hint
        self.task_timeout = task_timeout
        self.session = f"zarrfs-{secrets.token_hex(8)}"
        self.statistics: dict[str, WorkerStatistics] = {}
        self.address: str = client.scheduler.address
        self._is_registered = False

    def check(self, source: Array | Group, target: Store) -> None:
        """See ``check_workers``."""
        check_workers(self.client, source, target)

    def check_readable(self, *nodes: Array | Group) -> None:
        """Raise a ZarrError unless every worker can read the nodes."""
        for node in nodes:
            check_source_on_workers(self.client, node)

    def run(
        self,
        work: Callable[[T], object],
        items: Iterable[T],
        workers: int,
        on_done: Callable[[int], object],
        item_nbytes: float = 0.0,
        on_result: Callable[[Any], object] | None = None,
        count: int | None = None,
    ) -> None:
        """See ``Executor``. ``workers`` is ignored: the number of threads of the cluster applies, which may change.

        ``on_result`` is called with what ``work`` returned for each item, in any order, in this thread. ``items`` is
        iterated in this thread while tasks are running. ``count`` is the number of items, by default ``len(items)``; it
        can be larger than the real one.
        """
        from distributed import as_completed

        payload, job = pickled(work), secrets.token_hex(8)
        batches = Batches(items, len(items) if count is None else count)  # type: ignore[arg-type]
        self._register()
        threads, asked = self._threads(), time.monotonic()
        in_flight: set[Future] = set()
        # The results are fetched in the background, many at once.
        completed = as_completed(loop=self.client.loop, with_results=True, raise_errors=False)
        stall = Stall()

        def submit(batch: Sequence[T]) -> Future:
            arguments = self.session, job, payload, batch, on_result is not None
            key = f"zarrfs-{secrets.token_hex(8)}"
            try:
                return self.client.submit(run_batch, *arguments, key=key, pure=False, retries=RETRIES)
            except (OSError, RuntimeError):  # the client has been closed, because the scheduler was lost
                raise self._lost_error() from None

        with deferred_interrupt() as interrupted:
            try:
                while True:
                    if time.monotonic() - asked > THREADS_SECONDS:
                        threads, asked = self._threads(), time.monotonic()
                    free_slots = IN_FLIGHT_PER_THREAD * threads - len(in_flight)
                    submitted = [submit(batch) for batch in batches.take(free_slots, threads)]
                    in_flight.update(submitted)
                    completed.update(submitted)
                    if not in_flight:
                        return
                    results = completed.next_batch(block=False)
                    if interrupted.is_set():
                        raise KeyboardInterrupt
                    if not results:
                        if stall.is_due():
                            self._report_stall(stall.seconds, in_flight)
                        interrupted.wait(POLL_SECONDS)
                        continue
                    stall.restart()
                    while results:  # The scheduler forgets a task when there is no reference to its future.
                        future, value = results.pop()
                        in_flight.discard(future)
                        result = self._result(future, value)
                        del future
                        self._count(result, item_nbytes)
                        batches.measure(result)
                        if on_result is not None:
                            for each in result.values:
                                on_result(each)
                        on_done(result.done)
            except BaseException as error:
                self._stop(job, in_flight, isinstance(error, KeyboardInterrupt))
                raise

    def release(self) -> None:
        """Let the workers release the stores and caches of the runs. Those that do not respond keep them."""
        if not self._is_registered or self.client.status != "running":
            return
        with suppress(Exception):
            answer = request(self.client, lambda: self.client.unregister_worker_plugin(self.session))
            wait([answer], RELEASE_SECONDS)
            answer.cancel()

    def _register(self) -> None:
        """Send the plugin to the workers. Dask sends it to those that are started later."""
        from zarrfs.tools.copying.cluster.session import Session

        if self._is_registered:
            return
        plugin = Session(self.session, self.task_timeout)
        for attempt in range(1, REGISTRATIONS + 1):
            try:
                self._answer(lambda: self.client.register_plugin(plugin, name=self.session))
                break
            except TimeoutError:
                raise self._lost_error("does not respond, or one of its workers does not") from None
            except (AnswerCancelledError, OSError, RuntimeError) as error:
                self._threads()  # raises an error if the scheduler is lost
                if attempt == REGISTRATIONS:
                    raise StoreError(
                        f"the workers of the Dask cluster at {self.address} cannot be used: {error!r}"
                    ) from None
        self._is_registered = True

    def _report_stall(self, seconds: float, in_flight: Iterable[Future]) -> None:
        """Log which workers have tasks, or results that they have not sent. Raises StoreError if there are none."""
        finished = [future for future in in_flight if future.status == "finished"]
        try:
            processing: Mapping[str, Sequence[str]] = self._answer(self.client.processing)
            holders: Mapping[str, Sequence[str]] = {}
            if finished:
                holders = self._answer(lambda: self.client.who_has(finished))
        except (AnswerCancelledError, OSError, RuntimeError):
            raise self._lost_error("does not respond") from None
        if not processing:
            raise StoreError(
                f"the Dask cluster at {self.address} has no workers any more; start some, and {self.resume_hint}"
            )
        workers = {address for address, keys in processing.items() if keys}.union(*holders.values())
        logger.warning(
            "no task has been completed for %.0f s; tasks are on the workers %s. If one of them hangs, end its "
            "process: its tasks then run on other workers. The option task_timeout does this after some time",
            *(seconds, ", ".join(sorted(workers)) or "(none)"),
        )

    def _count(self, result: BatchResult, item_nbytes: float) -> None:
        statistics = self.statistics.setdefault(result.worker, WorkerStatistics())
        statistics.add(result.done, result.done * item_nbytes, result.seconds)
        if self.on_statistics is not None:
            self.on_statistics(self.statistics)

    def threads(self, workers: int) -> int:
        """Return the number of threads of the cluster. Raises StoreError if it is lost."""
        return self._threads()

    def _threads(self) -> int:
        """Return the number of threads of the workers, at least 1. Raises StoreError if the cluster is lost."""
        try:
            threads: dict[str, int] = self._answer(self.client.nthreads)
        except (AnswerCancelledError, OSError, RuntimeError):  # RuntimeError: the client has been closed
            raise self._lost_error() from None
        return max(1, sum(threads.values()))

    def _answer(self, call: Callable[[], Any]) -> Any:
        """Return the answer of the scheduler. Raises TimeoutError if it does not respond."""
        answer = request(self.client, call)
        try:
            return answer.result(REQUEST_SECONDS)
        finally:
            answer.cancel()

    def _lost_error(self, what: str = "was stopped or restarted") -> StoreError:
        return StoreError(f"the Dask cluster at {self.address} {what}; {self.resume_hint}")

    def _result(self, future: Future, value: Any) -> BatchResult:
        """Return the result of a task, or raise the error that ended it. ``value`` is from ``as_completed``."""
        from distributed import KilledWorker

        if isinstance(value, BatchResult):
            return value
        error = value[1] if isinstance(value, tuple) else value
        if isinstance(error, KilledWorker):
            timeout = (
                "" if self.task_timeout is None else f", or an item took longer than {self.task_timeout:g} s"
            )
            raise StoreError(
                f"workers of the Dask cluster at {self.address} were killed while they ran one task (the last was "
                f"{error.last_worker.address}), possibly for lack of memory{timeout}; reduce the option memory"
                f"{'' if self.task_timeout is None else ', use a longer task_timeout'}, and {self.resume_hint}"
            ) from None
        self._threads()  # raises an error if the scheduler is lost
        if future.status != "error":  # cancelled
            raise self._lost_error()
        if isinstance(error, ZarrError | OSError | MemoryError):
            raise error.with_traceback(None) from None
        raise StoreError(
            f"a worker of the Dask cluster at {self.address} failed: {type(error).__name__}: {error}"
        )

    def _stop(self, job: str, in_flight: Iterable[Future], interrupted: bool) -> None:
        """Cancel queued tasks and wait for running ones, so that nothing is written after this returns.

        The time is limited, because workers that hang do not end their tasks. They are reported.
        """
        if interrupted:
            logger.warning("stopping: running tasks are completed, no others are started")
        # The caller raises the first error.
        with suppress(Exception):
            self.client.cancel(list(in_flight), force=True)
            workers = self._answer(self.client.nthreads)
            answers = {
                worker: ask_worker(self.client, worker, stop_job, self.session, job, STOP_SECONDS)
                for worker in workers
            }
            try:
                wait(answers.values(), STOP_SECONDS + 1)
                left = [worker for worker, answer in answers.items() if not answer.done() or _is_busy(answer)]
            finally:
                for answer in answers.values():
                    answer.cancel()
            if left:
                logger.warning(
                    "the tasks of the workers %s have not ended; until they do, or the processes of the workers end, "
                    "they can write",
                    ", ".join(sorted(left)),
                )


def _is_busy(answer: Answer[Any]) -> bool:
    """Return whether a worker has answered that tasks are still running. One that was lost has none."""
    return not answer.cancelled() and answer.exception() is None and answer.result() is False
