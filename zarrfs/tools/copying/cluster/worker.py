"""The functions that run on the workers of a Dask cluster. A worker unpickles the task of a job once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from zarrfs._version import __version__
from zarrfs.engine.parallel import limit_threads
from zarrfs.errors import StoreError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.tools.copying.cluster.results import BatchResult
from zarrfs.tools.copying.cluster.settings import TaskSettings, unpickled_with_settings

__all__ = [
    "canonical_document",
    "check_source",
    "check_target",
    "end_session",
    "reply_key",
    "run_batch",
    "running_seconds",
    "stop_job",
]

_running_tasks: dict[str, dict[str, float]] = {}
"""The running Dask tasks of this process: job -> key of the task -> the time at which its current item was started."""

_stopped_jobs: deque[str] = deque(maxlen=64)
"""Jobs of which no further item is started, because a task may arrive after its cancellation."""

MAX_SESSIONS = 4
"""The maximum number of sessions of which a worker keeps a function. Some end without ``end_session``."""

_functions: OrderedDict[str, tuple[bytes, TaskSettings, Callable[[Any], object]]] = OrderedDict()
"""The payload, settings and function of the last run of each session: a command, whose runs follow each other. The
functions of earlier runs would keep caches of decoded chunks, each of which can be as large as the memory of a run.
"""

_changed = threading.Condition()


def reply_key(probe_key: str, worker: str) -> str:
    return f"{probe_key}-{hashlib.sha256(worker.encode()).hexdigest()[:16]}"


def canonical_document(metadata: Mapping[str, Any]) -> str:
    """Return a document as text that is equal for equal documents, also with another order of their members."""
    return json.dumps(metadata, sort_keys=True)


async def check_source(version: str, payload: bytes, document: str) -> str | None:
    """Check that the worker reads the same source. Return an error message, or None."""

    def check() -> str | None:
        try:
            _, (source, _) = unpickled_with_settings(payload)
        except ZarrError as error:
            return str(error)
        if canonical_document(source.metadata) != document:
            return f"it reads a different node at {source.store.url}, {source.name}"
        return None

    if version != __version__:
        return f"it has zarrfs {__version__}, this process has {version}"
    return await asyncio.to_thread(check)


async def check_target(payload: bytes, probe_key: str, dask_worker: Any) -> str | None:
    """Read the probe key in the target and write the reply key. Return an error message, or None."""

    def reply() -> str | None:
        try:
            _, (_, target) = unpickled_with_settings(payload)
            if target.get(probe_key) is None:
                return f"it cannot read what this process writes to {target.url}"
            target.set(reply_key(probe_key, dask_worker.address), b"")
        except ZarrError as error:
            return str(error)
        return None

    return await asyncio.to_thread(reply)


def _unpickled(session: str, payload: bytes) -> tuple[TaskSettings, Callable[[Any], object]]:
    """Return the settings and the function of a payload, the same objects for all tasks that have it."""
    with _changed:
        kept = _functions.get(session)
    if kept is None or kept[0] != payload:
        settings, work = unpickled_with_settings(payload)  # without the lock, because it opens stores
        with _changed:
            kept = _functions.get(session)
            if kept is None or kept[0] != payload:  # otherwise another thread was faster
                _functions.pop(session, None)
                _functions[session] = kept = (payload, settings, work)
                if len(_functions) > MAX_SESSIONS:
                    _functions.popitem(last=False)
    return kept[1], kept[2]


async def end_session(session: str) -> None:
    """Release the stores and caches that this process keeps for a session."""
    with _changed:
        _functions.pop(session, None)


def run_batch(
    payload: bytes, session: str, job: str, key: str, items: Sequence[Any], keeps_values: bool
) -> BatchResult:
    """Process the items. ``key`` is the key of the Dask task, and ``session`` that of the command.

    Exceptions are returned. Those that Dask cannot pickle with their traceback, such as a RecursionError, would end
    neither the task nor the run if they were raised.
    """
    from distributed import get_worker

    count, values = 0, []
    worker, start = str(get_worker().address), time.perf_counter()
    stopped_by: ZarrError | OSError | MemoryError | None = None
    try:
        _note_start(job, key)
        settings, work = _unpickled(session, payload)
        with settings.applied(), limit_threads(1):  # each thread of the worker runs a task of its own
            for item in items:
                if job in _stopped_jobs:
                    break
                _note_start(job, key)
                value = work(item)
                count += 1
                if keeps_values:
                    values.append(value)
    except Exception as error:
        stopped_by = _sendable(error, worker)
    finally:
        with _changed:
            _running_tasks[job].pop(key, None)
            if not _running_tasks[job]:
                del _running_tasks[job]
            _changed.notify_all()
    return BatchResult(count, stopped_by, values, worker, time.perf_counter() - start)


def _sendable(error: Exception, worker: str) -> ZarrError | OSError | MemoryError:
    """Return the exception, or a StoreError that describes it if the client cannot unpickle or does not expect it."""
    if isinstance(error, ZarrError | OSError | MemoryError):
        with suppress(Exception):
            copy = pickle.loads(pickle.dumps(error))
            if type(copy) is type(error):
                return error
    logger.warning("a task failed", exc_info=error)
    description = type(error).__name__
    with suppress(Exception):
        description = describe_error(error)
    return StoreError(f"the Dask worker {worker} failed: {description}")


def _note_start(job: str, key: str) -> None:
    with _changed:
        _running_tasks.setdefault(job, {})[key] = time.monotonic()


async def running_seconds(job: str) -> list[float]:
    """Return, for each running Dask task of a job in this process, the time since its current item was started."""
    now = time.monotonic()
    with _changed:
        return [now - start for start in _running_tasks.get(job, {}).values()]


async def stop_job(job: str, seconds: float) -> bool:
    """Start no further items of a job, and wait at most ``seconds`` for those that run in this process. Return whether
    all of them have ended.
    """
    _stopped_jobs.append(job)
    return await asyncio.to_thread(_wait_until_idle, job, seconds)


def _wait_until_idle(job: str, seconds: float) -> bool:
    with _changed:
        return _changed.wait_for(lambda: job not in _running_tasks, seconds)
