"""The connection to a Dask cluster, by the address of its scheduler or by a client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from typing import TYPE_CHECKING

from zarrfs.errors import LocationError, OptionError, UnsupportedError
from zarrfs.plugins import install_hint
from zarrfs.tools.copying.cluster.executor import RESUME_HINT, ClusterExecutor
from zarrfs.tools.copying.cluster.results import Statistics
from zarrfs.tools.copying.executors import Executor, ThreadExecutor

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["check_task_timeout", "connect_cluster", "executor_of"]

ANSWER_TIMEOUT_SECONDS = 30
"""Timeout for the connection to a scheduler, which may be busy. It is the default of distributed."""

LOGS_OF_LOST_CALLS = "distributed.client", "tornado.application"
"""The logs to which the calls of a client to a lost scheduler are written, with their tracebacks."""


def check_task_timeout(dask: str | Client | None, task_timeout: float | None) -> None:
    """Raise OptionError unless ``task_timeout`` is None, or a number of seconds for the tasks of a cluster."""
    if task_timeout is None:
        return
    if not 0 < task_timeout < inf:
        raise OptionError(
            f"task_timeout: expected a positive number of seconds, or None; found {task_timeout!r}"
        )
    if dask is None:
        raise OptionError(
            "the option task_timeout applies to the workers of a Dask cluster, and needs the option dask"
        )


@contextmanager
def connect_cluster(
    dask: str | Client,
    task_timeout: float | None = None,
    resume_hint: str = RESUME_HINT,
    on_statistics: Callable[[Statistics], object] | None = None,
) -> Iterator[ClusterExecutor]:
    """Yield an executor for the cluster of a scheduler address (``tcp://host:8786``) or of a client. A client that is
    passed in is not closed. ``resume_hint`` is the part of errors that states how to continue. ``on_statistics`` is
    called with the statistics of the workers whenever they have changed.

    Raises UnsupportedError if ``distributed`` is not installed, LocationError if the scheduler does not respond.
    """
    try:
        import distributed
    except ImportError as error:
        raise UnsupportedError(
            f"running on a Dask cluster needs the package distributed: {install_hint('dask')}"
        ) from error
    if isinstance(dask, distributed.Client):
        if dask.asynchronous:
            raise UnsupportedError(f"{dask} is asynchronous; expected a synchronous client")
        executor = ClusterExecutor(dask, resume_hint, task_timeout, on_statistics)
        try:
            yield executor
        finally:
            executor.release()
        return
    if not isinstance(dask, str) or not dask:
        raise LocationError(
            f"{dask!r} is not a Dask cluster; expected an address such as tcp://host:8786, or a Client"
        )
    try:
        with ThreadPoolExecutor(1) as thread:  # the event loop of the calling thread may be running
            thread.submit(asyncio.run, _check_scheduler(dask)).result()
        client = distributed.Client(dask, timeout=ANSWER_TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise LocationError(
            f"{dask}: no Dask scheduler responds ({str(error) or type(error).__name__}); expected the address that "
            "`dask scheduler` prints, such as tcp://host:8786"
        ) from error
    logs = [logging.getLogger(name) for name in LOGS_OF_LOST_CALLS]
    for log in logs:
        log.addFilter(_is_no_lost_call)
    try:
        with client:
            executor = ClusterExecutor(client, resume_hint, task_timeout, on_statistics)
            try:
                yield executor
            finally:
                executor.release()
    finally:
        for log in logs:
            log.removeFilter(_is_no_lost_call)


def _is_no_lost_call(record: logging.LogRecord) -> bool:
    """Return False for a record with the traceback of a call that was cancelled, or whose connection was closed. When
    a scheduler is lost, the client logs them for its calls, and the event loop for the results that
    ``as_completed`` was fetching; the loss is an error of the run.
    """
    from distributed.comm import CommClosedError

    if record.exc_info is None:
        return True
    return not isinstance(record.exc_info[1], asyncio.CancelledError | CommClosedError)


def executor_of(
    dask: str | Client | None,
    task_timeout: float | None,
    on_statistics: Callable[[Statistics], object] | None,
) -> AbstractContextManager[Executor]:
    """Return a context with the executor for a cluster, or for threads of this process if ``dask`` is None."""
    if dask is None:
        return nullcontext(ThreadExecutor())
    return connect_cluster(dask, task_timeout, on_statistics=on_statistics)


async def _check_scheduler(address: str) -> None:
    """Raise OSError, ValueError or TimeoutError unless a Dask server responds at the address.

    ``Client`` would wait forever for a server of another kind, and a client that has never connected does not close.
    """
    from distributed.comm import connect
    from distributed.security import Security

    options = Security().get_connection_args("client")
    comm = await asyncio.wait_for(
        connect(address, timeout=ANSWER_TIMEOUT_SECONDS, **options), ANSWER_TIMEOUT_SECONDS
    )
    await comm.close()
