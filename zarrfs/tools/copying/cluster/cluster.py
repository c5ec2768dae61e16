"""Execution of the tasks of a copy or a verification on a Dask cluster, with a bounded number of Dask tasks in flight.

A Dask task is a pickled function and a batch of items. A worker unpickles the function once and reuses the stores that
it opens. Errors of the copy itself (a corrupt chunk, a full disk) are returned by the task rather than raised, so that
they can be distinguished from errors of Dask and are raised unchanged in this process.
"""

from __future__ import annotations

import pickle
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from zarrfs._version import __version__
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.hierarchy import STAGING
from zarrfs.engine.stores.base import Store
from zarrfs.errors import LocationError, StoreError, UnsupportedError
from zarrfs.logs import logger
from zarrfs.tools.copying.cluster.results import BatchResult, WorkerStatistics
from zarrfs.tools.copying.cluster.waiting import Stall, deferred_interrupt
from zarrfs.tools.copying.cluster.worker import check_source, check_target, reply_key, run_batch, stop_job

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Cluster"]

T = TypeVar("T")

WORKER_TIMEOUT_SECONDS = 10
"""Timeout for a cluster without workers to start one."""

IN_FLIGHT_PER_THREAD = 2
"""Dask tasks in flight per thread of the cluster: one that runs and one that is queued, so that no thread is idle."""

POLL_SECONDS = 0.02
"""The time between two checks for completed tasks if none is complete. The queued tasks keep the workers busy."""

RESULT_SECONDS = 5.0
"""The time for the transfer of the result of a completed task, after which its worker may hang."""

MIN_TASKS_PER_THREAD = 32
MAX_BATCH_SIZE = 32
"""The maximum batch size. Batches are used because each Dask task costs the scheduler about a millisecond. Large ones
would make progress reports coarse and delay interruption.
"""

RESUME_HINT = "continue the copy with if_exists='resume' (--if-exists resume)"


class Cluster:
    """An Executor that uses the workers of a Dask cluster. They need the same version of zarrfs and access to the
    stores.

    Attributes:
        statistics: the statistics of each worker, by its address.
    """

    def __init__(self, client: Client, resume_hint: str = RESUME_HINT) -> None:
        self.client = client
        self.resume_hint = resume_hint
        self.statistics: dict[str, WorkerStatistics] = {}
        self.address: str = client.scheduler.address

    # -- checks before the copy --------------------------------------------------------------------------------

    def check(self, source: Array | Group, target: Store) -> None:
        """Raise a ZarrError unless every worker can read the node and writes to the same target as this process.

        This process writes a probe key to the target, and each worker reads it and writes a reply key. The keys are
        deleted before this returns. A directory that did not exist may remain, empty.
        """
        payload = self._check_source(source, target)
        probe_key = f"{STAGING}{secrets.token_hex(4)}"
        try:
            target.set(probe_key, b"")
            self._check_workers(check_target, payload, probe_key)
            for worker in self.client.nthreads():
                if target.get(reply_key(probe_key, worker)) is None:
                    raise _worker_error(
                        worker, f"this process cannot read what the worker writes to {target.url}"
                    )
        finally:
            for key in [probe_key, *(reply_key(probe_key, worker) for worker in self.client.nthreads())]:
                target.delete(key)

    def check_readable(self, *nodes: Array | Group) -> None:
        """Raise a ZarrError unless every worker can read the nodes."""
        for node in nodes:
            self._check_source(node, None)

    def _check_source(self, source: Array | Group, target: Store | None) -> bytes:
        """Check that every worker can read the node. Return the pickled node and target."""
        for store in (source.store, *(() if target is None else (target,))):
            if store.in_process:
                raise UnsupportedError(
                    f"{store.url} is in the memory of this process and not accessible to a Dask cluster; run this "
                    "without dask (--dask), or use a store that the workers can access"
                )
        payload = _pickled((source, target))
        self._wait_for_workers()
        self._check_workers(check_source, __version__, payload, repr(source.metadata))
        return payload

    def _wait_for_workers(self) -> None:
        """Wait for the first worker: an adaptive cluster starts none before there is a task."""
        from distributed import TimeoutError as DaskTimeoutError

        if self.client.nthreads():
            return
        future = self.client.submit(int, pure=False)
        try:
            future.result(timeout=WORKER_TIMEOUT_SECONDS)
        except DaskTimeoutError:
            raise LocationError(
                f"the Dask cluster at {self.address} has no workers; start some: dask worker {self.address}"
            ) from None
        finally:
            future.release()

    def _check_workers(self, check_worker: Callable[..., Any], *arguments: Any) -> None:
        """Run ``check`` on every worker. Raises StoreError for the first worker that returns an error message."""
        for worker, reply in self.client.run(check_worker, *arguments, on_error="return").items():
            if reply is not None:
                # An exception is raised by Dask itself if the worker cannot import the function.
                raise _worker_error(
                    worker,
                    reply
                    if isinstance(reply, str)
                    else f"zarrfs {__version__} cannot be run on it ({reply!r})",
                )

    # -- execution ---------------------------------------------------------------------------------------------

    def run(
        self,
        work: Callable[[T], object],
        items: Sequence[T],
        workers: int,
        on_done: Callable[[int], object],
        on_result: Callable[[Any], object] | None = None,
    ) -> None:
        """See ``Executor``. ``workers`` is ignored: the number of threads of the cluster applies, which may change.

        ``on_result`` is called with what ``work`` returned for each item, in any order, in this thread.
        """
        from distributed import as_completed

        payload, job = _pickled(work), secrets.token_hex(8)
        threads = self._threads()
        batches = _batches(items, threads)

        def submit(batch: Sequence[T]) -> Future:
            return self.client.submit(
                *(run_batch, payload, job, batch, on_result is not None),
                key=f"zarrfs-{secrets.token_hex(8)}",
                pure=False,
            )

        stall = Stall()
        with deferred_interrupt() as interrupted:
            in_flight = as_completed(
                [submit(batch) for batch in islice(batches, IN_FLIGHT_PER_THREAD * threads)],
                loop=self.client.loop,
            )
            try:
                while in_flight.count():
                    if interrupted.is_set():
                        raise KeyboardInterrupt
                    completed = in_flight.next_batch(block=False)
                    if not completed:
                        if stall.is_due():
                            self._report_stall(stall.seconds, [])
                        interrupted.wait(POLL_SECONDS)
                        continue
                    stall = Stall()
                    for future in completed:
                        result = self._result(future, interrupted)
                        self._count(result)
                        if on_result is not None:
                            for value in result.values:
                                on_result(value)
                        on_done(result.done)
                        if result.error is not None:
                            raise result.error
                    free_slots = IN_FLIGHT_PER_THREAD * self._threads() - in_flight.count()
                    in_flight.update([submit(batch) for batch in islice(batches, max(0, free_slots))])
            except BaseException as error:
                self._stop(job, list(in_flight.futures), isinstance(error, KeyboardInterrupt))
                raise

    def _report_stall(self, seconds: float, futures: list[Future]) -> None:
        """Log which workers have tasks, or results of the futures. The scheduler may not respond either; its loss is
        detected elsewhere.
        """
        with suppress(Exception):
            workers = {address for address, keys in self.client.processing().items() if keys}
            if futures:
                workers.update(*self.client.who_has(futures).values())
            logger.warning(
                "no task has been completed for %.0f s; tasks are on the workers %s. If one of them hangs, end its "
                "process: its tasks then run on other workers",
                seconds,
                ", ".join(sorted(workers)) or "(none)",
            )

    def _count(self, result: BatchResult) -> None:
        statistics = self.statistics.setdefault(result.worker, WorkerStatistics())
        statistics.tasks += result.done
        statistics.seconds += result.seconds

    def threads(self, workers: int) -> int:
        """Return the number of threads of the cluster. Raises StoreError if it is lost."""
        return self._threads()

    def _threads(self) -> int:
        from distributed.comm import CommClosedError

        try:
            threads: dict[str, int] = self.client.nthreads()
        except (CommClosedError, TimeoutError):
            raise self._lost_error() from None
        return max(1, sum(threads.values()))

    def _lost_error(self) -> StoreError:
        return StoreError(f"the Dask cluster at {self.address} was stopped or restarted; {self.resume_hint}")

    def _result(self, future: Future, interrupted: threading.Event) -> BatchResult:
        """Return the result of a completed task. A worker that hangs does not send it: such workers are reported, and
        if the process of the worker is ended, the task runs again on another one.
        """
        stall, seconds = Stall(), RESULT_SECONDS
        while True:
            result = self._result_within(future, seconds)
            if result is not None:
                return result
            if interrupted.is_set():
                raise KeyboardInterrupt
            self._threads()  # raises an error if the scheduler is lost
            if stall.is_due():
                self._report_stall(stall.seconds, [future])
            seconds *= 2  # A slow transfer is not started again and again.

    def _result_within(self, future: Future, seconds: float) -> BatchResult | None:
        """Return the result of a completed task, or None if its worker does not send it within some seconds."""
        from distributed import CancelledError, KilledWorker
        from distributed import TimeoutError as DaskTimeoutError
        from distributed.comm import CommClosedError

        try:
            result: BatchResult = future.result(timeout=seconds)
        except DaskTimeoutError:
            if future.status == "error":
                raise self._lost_error() from None
            return None
        except KilledWorker as error:
            raise StoreError(
                f"workers of the Dask cluster at {self.address} were killed while they ran one task (the last was "
                f"{error.last_worker.address}), possibly for lack of memory; reduce --memory, and {self.resume_hint}"
            ) from None
        except (CancelledError, CommClosedError):
            raise self._lost_error() from None
        except (MemoryError, OSError) as error:
            raise error.with_traceback(None) from None
        except Exception as error:
            raise StoreError(
                f"a worker of the Dask cluster at {self.address} failed: {type(error).__name__}: {error}"
            ) from None
        return result

    def _stop(self, job: str, futures: list[Future], interrupted: bool) -> None:
        """Cancel queued tasks and wait for running ones, so that nothing is written after this returns."""
        if interrupted:
            logger.warning("stopping: running tasks are completed, no others are started")
        # Workers that are unreachable cannot be waited for. The caller raises the first error.
        with suppress(Exception):
            self.client.cancel(futures, force=True)
            self.client.run(stop_job, job, on_error="ignore")


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except StoreError as error:
        raise UnsupportedError(f"the workers of a Dask cluster cannot use this store: {error}") from error
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise UnsupportedError(
            f"a location cannot be sent to a Dask cluster because it cannot be pickled: {error}; "
            "run this without dask (--dask)"
        ) from error


def _batches(items: Sequence[T], threads: int) -> Iterator[Sequence[T]]:
    count = min(MAX_BATCH_SIZE, max(1, len(items) // (threads * MIN_TASKS_PER_THREAD)))
    return (items[start : start + count] for start in range(0, len(items), count))


def _worker_error(worker: str, reason: str) -> StoreError:
    return StoreError(
        f"the Dask worker {worker} cannot be used, and nothing was done: {reason}. Every worker must access all "
        "locations by the same names: a file system that all machines share, a database or a URL"
    )
