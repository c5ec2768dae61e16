"""Checks of a Dask cluster before a run: every worker has the same version and access to the same stores."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, wait
from typing import TYPE_CHECKING, Any

from zarrfs._version import __version__
from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.staging import staging_name
from zarrfs.engine.stores.base import Store
from zarrfs.errors import LocationError, StoreError, UnsupportedError
from zarrfs.tools.copying.cluster.settings import pickled_with_settings
from zarrfs.tools.copying.cluster.waiting import ask_worker, request
from zarrfs.tools.copying.cluster.worker import canonical_document, check_source, check_target, reply_key

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["check_source_on_workers", "check_workers", "pickled"]

WORKER_TIMEOUT_SECONDS = 10
"""Timeout for a cluster without workers to start one."""

REPLY_SECONDS = 60.0
"""The time within which a worker must respond."""


def check_workers(client: Client, source: Array | Group, target: Store) -> None:
    """Raise a ZarrError unless every worker can read the node and writes to the same target as this process.

    This process writes a probe key to the target, and each worker reads it and writes a reply key. The keys are
    deleted before this returns. A directory that did not exist may remain, empty.
    """
    payload = check_source_on_workers(client, source, target)
    probe_key = staging_name()
    workers = _workers(client)
    try:
        target.set(probe_key, b"")
        _run_on_workers(client, workers, check_target, payload, probe_key)
        # A worker that was lost in the meantime does not matter: its tasks run on others.
        for worker in set(workers).intersection(_workers(client)):
            if target.get(reply_key(probe_key, worker)) is None:
                raise _worker_error(
                    worker, f"this process cannot read what the worker writes to {target.url}"
                )
    finally:
        for key in [probe_key, *(reply_key(probe_key, worker) for worker in workers)]:
            target.delete(key)


def check_source_on_workers(client: Client, source: Array | Group, target: Store | None = None) -> bytes:
    """Check that every worker can read the node. Return the pickled node and target."""
    for store in (source.store, *(() if target is None else (target,))):
        if store.in_process:
            raise UnsupportedError(
                f"{store.url} is in the memory of this process and not accessible to a Dask cluster; run this "
                "without the option dask, or use a store that the workers can access"
            )
    payload = pickled((source, target))
    _wait_for_workers(client)
    document = canonical_document(source.metadata)
    _run_on_workers(client, _workers(client), check_source, __version__, payload, document)
    return payload


def _wait_for_workers(client: Client) -> None:
    """Wait for the first worker: an adaptive cluster starts none before there is a task."""
    from distributed import TimeoutError as DaskTimeoutError

    if _workers(client):
        return
    address = client.scheduler.address
    future = client.submit(int, pure=False)
    try:
        future.result(timeout=WORKER_TIMEOUT_SECONDS)
    except DaskTimeoutError:
        raise LocationError(
            f"the Dask cluster at {address} has no workers; start some: dask worker {address}"
        ) from None
    finally:
        future.release()


def _run_on_workers(
    client: Client, workers: Sequence[str], check_worker: Callable[..., Any], *arguments: Any
) -> None:
    """Run ``check_worker`` on the workers. Raises StoreError for a worker that returns an error message, or that does
    not respond, unless the scheduler has lost it.
    """
    answers = {worker: ask_worker(client, worker, check_worker, *arguments) for worker in workers}
    try:
        wait(answers.values(), REPLY_SECONDS)
        silent = [worker for worker, answer in answers.items() if not answer.done()]
    finally:
        for answer in answers.values():
            answer.cancel()
    if silent:
        raise _worker_error(silent[0], f"it does not respond within {REPLY_SECONDS:.0f} s")
    for worker, answer in answers.items():
        try:
            reply = answer.result()
        except (CancelledError, OSError, RuntimeError) as error:  # RuntimeError: the client has been closed
            reply = error
        if isinstance(reply, Exception) and worker not in _workers(client):
            continue
        if reply is not None:
            # An exception is raised by Dask itself if the worker cannot import the function.
            raise _worker_error(
                worker,
                reply if isinstance(reply, str) else f"zarrfs {__version__} cannot be run on it ({reply!r})",
            )


def _workers(client: Client) -> list[str]:
    """Return the addresses of the workers. Raises StoreError if the scheduler does not respond."""
    answer = request(client, client.nthreads)
    try:
        return list(answer.result(REPLY_SECONDS))
    except (CancelledError, OSError, RuntimeError):  # RuntimeError: the client has been closed
        raise _lost_error(client) from None
    finally:
        answer.cancel()


def _lost_error(client: Client) -> StoreError:
    return StoreError(
        f"the Dask cluster at {client.scheduler.address} was stopped or restarted, and nothing was done; start it "
        "and run this again"
    )


def pickled(value: Any) -> bytes:
    """Return a value and the settings of this process as bytes for the workers; see ``unpickled_with_settings``.

    Raises UnsupportedError.
    """
    try:
        return pickled_with_settings(value)
    except StoreError as error:
        raise UnsupportedError(f"the workers of a Dask cluster cannot use this store: {error}") from error
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise UnsupportedError(
            f"a location cannot be sent to a Dask cluster because it cannot be pickled: {error}; "
            "run this without the option dask"
        ) from error


def _worker_error(worker: str, reason: str) -> StoreError:
    return StoreError(
        f"the Dask worker {worker} cannot be used, and nothing was done: {reason}. Every worker must access all "
        "locations by the same names: a file system that all machines share, a database or a URL. Credentials that are "
        "not storage options (--storage-option) are those of the worker"
    )
