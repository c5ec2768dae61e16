"""The functions that run on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from zarrfs._version import __version__
from zarrfs.errors import StoreError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.tools.copying.cluster.results import BatchResult
from zarrfs.tools.copying.cluster.settings import unpickled_with_settings

__all__ = ["canonical_document", "check_source", "check_target", "reply_key", "run_batch", "stop_job"]


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


def run_batch(
    session: str, job: str, payload: bytes, items: Sequence[Any], keeps_values: bool
) -> BatchResult:
    """Process items in the session of a command (``Session.run``).

    Raises exceptions that the client can unpickle, without their tracebacks: Dask cannot send the traceback of a
    RecursionError, for instance, and the run would not end.
    """
    from distributed import get_worker

    worker = get_worker()
    try:
        result: BatchResult = worker.plugins[session].run(job, payload, items, keeps_values)
        return result
    except Exception as error:
        raised = _sendable(error, str(worker.address))
    raise raised.with_traceback(None) from None


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


async def stop_job(session: str, job: str, seconds: float, dask_worker: Any) -> bool:
    """Stop a run of a session; see ``Session.stop``."""
    plugin = dask_worker.plugins.get(session)
    return plugin is None or await asyncio.to_thread(plugin.stop, job, seconds)
