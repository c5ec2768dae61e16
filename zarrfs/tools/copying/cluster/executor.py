"""Execution of the tasks of a copy or a verification on a Dask cluster, with a bounded number of Dask tasks in flight.

A Dask task is a pickled function and a batch of items. A worker unpickles the function once and reuses the stores that
it opens. Errors of the copy itself (a corrupt chunk, a full disk) are returned by the task rather than raised, so that
they can be distinguished from errors of Dask and are raised unchanged in this process.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError as AnswerCancelledError
from concurrent.futures import Future as Answer
from concurrent.futures import wait
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.base import Store
from zarrfs.errors import StoreError
from zarrfs.logs import logger
from zarrfs.tools.copying.cluster.batches import Batches
from zarrfs.tools.copying.cluster.checks import check_source_on_workers, check_workers, pickled
from zarrfs.tools.copying.cluster.results import BatchResult, Statistics, WorkerStatistics
from zarrfs.tools.copying.cluster.submission import Submission, TaskMonitor
from zarrfs.tools.copying.cluster.waiting import Stall, ask_worker, deferred_interrupt, request
from zarrfs.tools.copying.cluster.worker import end_session, stop_job

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["ClusterExecutor"]

T = TypeVar("T")

IN_FLIGHT_PER_THREAD = 2
"""Dask tasks in flight per thread of the cluster: one that runs and one that is queued, so that no thread is idle."""

POLL_SECONDS = 0.02
"""The time between two checks for completed tasks if none is complete. The queued tasks keep the workers busy."""

RESULT_SECONDS = 5.0
"""If the transfer of the result of a completed task takes longer, its worker or the scheduler may hang."""

REQUEST_SECONDS = 60.0
"""The time within which the scheduler must respond."""

STOP_SECONDS = 10.0
"""The time for the end of running tasks after an interruption or an error, unless the task timeout is longer."""

RELEASE_SECONDS = 2.0
"""The time within which the workers release what they keep."""

MAX_ATTEMPTS = 3
"""The number of workers on which a task may exceed the time limit."""

RESUME_HINT = "continue the copy with if_exists='resume'"


class ClusterExecutor:
    """Runs tasks on the workers of a Dask cluster, which need the same version of zarrfs and access to the stores.

    Attributes:
        session: the name of this executor on the workers.
        task_timeout: the time limit in seconds for one item on a worker; None: no limit. If it is exceeded, another
            worker processes the items of the Dask task.
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
        self.session = secrets.token_hex(8)
        self.statistics: dict[str, WorkerStatistics] = {}
        self.address: str = client.scheduler.address

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
        items: Sequence[T],
        workers: int,
        on_done: Callable[[int], object],
        item_nbytes: float = 0.0,
        on_result: Callable[[Any], object] | None = None,
    ) -> None:
        """See ``Executor``. ``workers`` is ignored: the number of threads of the cluster applies, which may change.

        ``on_result`` is called with what ``work`` returned for each item, in any order, in this thread.
        """
        from distributed import as_completed

        payload, by_worker = pickled(work), self.worker_threads()
        submission = Submission(self.client, self.session, payload, on_result is not None, by_worker)
        monitor = (
            None if self.task_timeout is None else TaskMonitor(self.client, submission.job, self.task_timeout)
        )
        threads = max(1, sum(by_worker.values()))
        batches = Batches(items)
        stall = Stall()
        with deferred_interrupt() as interrupted:
            in_flight = as_completed(
                [submission.submit(batch) for batch in batches.take(IN_FLIGHT_PER_THREAD * threads, threads)],
                loop=self.client.loop,
            )
            try:
                while submission.tasks:
                    if interrupted.is_set():
                        raise KeyboardInterrupt
                    if monitor is not None:
                        in_flight.update(self._resubmit(submission, monitor))
                    completed = in_flight.next_batch(block=False)
                    if not completed:
                        if stall.is_due():
                            self._report_stall(stall.seconds, [])
                        interrupted.wait(POLL_SECONDS)
                        continue
                    for future in completed:
                        if future.key not in submission.tasks:
                            continue  # It was submitted again.
                        result = self._result(future, interrupted, stall, submission)
                        if result is None:
                            in_flight.add(submission.submit_again(future.key, None, self._holders(future)))
                            continue
                        del submission.tasks[future.key]
                        stall.restart()
                        self._count(result, item_nbytes)
                        batches.measure(result)
                        if on_result is not None:
                            for value in result.values:
                                on_result(value)
                        on_done(result.done)
                        if result.error is not None:
                            raise result.error
                    threads = self._threads()
                    free_slots = IN_FLIGHT_PER_THREAD * threads - len(submission.tasks)
                    in_flight.update(
                        [submission.submit(batch) for batch in batches.take(free_slots, threads)]
                    )
            except BaseException as error:
                self._stop(submission, isinstance(error, KeyboardInterrupt))
                raise
            finally:
                if monitor is not None:
                    monitor.close()

    def release(self) -> None:
        """Let the workers release the stores and caches of the runs. Those that do not respond keep them."""
        with suppress(Exception):
            answer = request(
                self.client, lambda: self.client.run(end_session, self.session, on_error="return")
            )
            wait([answer], RELEASE_SECONDS)
            answer.cancel()

    def _resubmit(self, submission: Submission, monitor: TaskMonitor) -> list[Future]:
        """Resubmit the tasks of workers that hang, to run on other workers. Return their futures.

        Raises StoreError if there is no other worker, or if a task has exceeded the time limit on several workers.
        """
        if not monitor.is_updated():
            if monitor.seconds_without_scheduler() > max(REQUEST_SECONDS, self.task_timeout or 0.0):
                raise self._lost_error("does not respond")
            return []
        hanging = monitor.hanging()
        for worker in sorted(hanging - submission.avoided):
            logger.warning(
                "the worker %s has a task that has not ended within %g s; its tasks run on other workers",
                *(worker, self.task_timeout),
            )
        moved = submission.avoid(hanging, monitor.processing)
        if moved and not submission.usable_workers and not monitor.has_timed_out():
            return []
        for key, hung_on in moved:
            workers = (*submission.tasks[key].hung_on, *(() if hung_on is None else (hung_on,)))
            if len(workers) >= MAX_ATTEMPTS or not submission.usable_workers:
                raise self._timeout_error(workers or sorted(submission.avoided), submission)
        return [submission.submit_again(key, hung_on) for key, hung_on in moved]

    def _timeout_error(self, workers: Sequence[str], submission: Submission) -> StoreError:
        others = "" if submission.usable_workers else ", and there is no other worker"
        return StoreError(
            f"a task did not end within {self.task_timeout:g} s on the workers "
            f"{', '.join(dict.fromkeys(workers))} of the Dask "
            f"cluster at {self.address}{others}; end the processes of workers that hang, start others or use a longer "
            f"time for the option task_timeout, and {self.resume_hint}"
        )

    def _report_stall(self, seconds: float, futures: list[Future]) -> None:
        """Log which workers have tasks, or results of the futures. The scheduler may not respond either; its loss is
        detected elsewhere.
        """
        with suppress(Exception):
            processing = self._answer(self.client.processing)
            workers = {address for address, keys in processing.items() if keys}
            if futures:
                workers.update(*self._answer(lambda: self.client.who_has(futures)).values())
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

    def worker_threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by its address. Raises StoreError if the cluster is lost."""
        try:
            threads: dict[str, int] = self._answer(self.client.nthreads)
        except (AnswerCancelledError, OSError, RuntimeError):  # RuntimeError: the client has been closed
            raise self._lost_error() from None
        return threads

    def _threads(self) -> int:
        return max(1, sum(self.worker_threads().values()))

    def _answer(self, call: Callable[[], Any]) -> Any:
        """Return the answer of the scheduler. Raises TimeoutError if it does not respond."""
        answer = request(self.client, call)
        try:
            return answer.result(REQUEST_SECONDS)
        finally:
            answer.cancel()

    def _lost_error(self, what: str = "was stopped or restarted") -> StoreError:
        return StoreError(f"the Dask cluster at {self.address} {what}; {self.resume_hint}")

    def _result(
        self, future: Future, interrupted: threading.Event, stall: Stall, submission: Submission
    ) -> BatchResult | None:
        """Return the result of a completed task, or None if its worker did not send it within the time limit.

        A worker that hangs does not send it. Without a limit such workers are reported, and if the process of the
        worker is ended, the task runs again on another one.
        """
        limit = inf if self.task_timeout is None else self.task_timeout
        if submission.avoided:
            limit = min(limit, RESULT_SECONDS)
        start = check = time.monotonic()
        fetch = request(self.client, lambda: self.client.gather(future))
        try:
            while not wait([fetch], POLL_SECONDS).done:
                now = time.monotonic()
                if interrupted.is_set():
                    raise KeyboardInterrupt
                if now - start > limit:
                    return None
                if now - check > RESULT_SECONDS:
                    self._threads()  # raises an error if the scheduler is lost
                    check = now
                if stall.is_due():
                    self._report_stall(stall.seconds, [future])
            return self._fetched(fetch)
        finally:
            fetch.cancel()

    def _holders(self, future: Future) -> Sequence[str]:
        """Return the workers that have the result of a completed task; none if the scheduler does not respond."""
        with suppress(Exception):
            holders: Sequence[str] = self._answer(lambda: self.client.who_has([future])).get(future.key, ())
            return holders
        return ()

    def _fetched(self, fetch: Answer[Any]) -> BatchResult:
        """Return the result of a task that was fetched, or raise the error that ended it."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        try:
            result: BatchResult = fetch.result()
        except KilledWorker as error:
            raise StoreError(
                f"workers of the Dask cluster at {self.address} were killed while they ran one task (the last was "
                f"{error.last_worker.address}), possibly for lack of memory; reduce the option "
                f"memory, and {self.resume_hint}"
            ) from None
        except (CancelledError, AnswerCancelledError, CommClosedError):
            raise self._lost_error() from None
        except (MemoryError, OSError) as error:
            self._threads()  # raises an error if the scheduler is lost
            raise error.with_traceback(None) from None
        except Exception as error:
            raise StoreError(
                f"a worker of the Dask cluster at {self.address} failed: {type(error).__name__}: {error}"
            ) from None
        return result

    def _stop(self, submission: Submission, interrupted: bool) -> None:
        """Cancel queued tasks and wait for running ones, so that nothing is written after this returns.

        The time is limited, because workers that hang do not end their tasks. They are reported.
        """
        if interrupted:
            logger.warning("stopping: running tasks are completed, no others are started")
        seconds = STOP_SECONDS if interrupted else max(STOP_SECONDS, self.task_timeout or 0.0)
        # The caller raises the first error.
        with suppress(Exception):
            self.client.cancel([task.future for task in submission.tasks.values()], force=True)
            workers = self._answer(self.client.nthreads)
            answers = {
                worker: ask_worker(self.client, worker, stop_job, submission.job, seconds)
                for worker in workers
            }
            waited = [answer for worker, answer in answers.items() if worker not in submission.avoided]
            try:
                wait(waited, seconds + 1)
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
