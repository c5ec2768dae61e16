"""The pieces of a copy on a Dask cluster: tasks of ``distributed``, a bounded number of them at a time.

A task is a pickled piece of work with some items. Its worker unpickles it once and keeps what it opens for the tasks
that follow. What is not of Dask's doing (a broken chunk, a full disk) a task returns, so that it is raised here as it
was there.
"""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from zarrfs._version import __version__
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.hierarchy import STAGING
from zarrfs.engine.parallel import at_most
from zarrfs.engine.stores.base import Store
from zarrfs.errors import LocationError, StoreError, UnsupportedError, ZarrError
from zarrfs.logs import logger
from zarrfs.plugins import install_hint

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Cluster", "on_cluster"]

T = TypeVar("T")

ANSWER_TIMEOUT_SECONDS = 30
"""How long a scheduler may take to answer: as long as distributed's own default, as it may be busy."""

SECONDS_FOR_WORKERS = 10
"""How long a cluster that has no worker may take to start one."""

AHEAD = 2
"""Tasks in flight for each thread of the cluster: one that is done and one that waits, so that none is idle."""

TASKS_PER_THREAD = 32
MAX_ITEMS = 32
"""Of a task. Small pieces go together, since each task costs the scheduler about a millisecond; not too many, for the
sake of progress and of what an interruption has to wait for.
"""

RESUME = "go on with if_exists='resume' (--if-exists resume)"


@contextmanager
def on_cluster(dask: str | Client) -> Iterator[Cluster]:
    """Yield what runs pieces on the cluster of a scheduler's address (``tcp://host:8786``), or of a client, which stays
    the caller's to close.

    Raises UnsupportedError where ``distributed`` is not installed, LocationError where no cluster answers.
    """
    try:
        import distributed
    except ImportError as error:
        raise UnsupportedError(
            f"copying on a Dask cluster needs the package distributed: {install_hint('dask')}"
        ) from error
    if isinstance(dask, distributed.Client):
        if dask.asynchronous:
            raise UnsupportedError(
                f"{dask} is asynchronous; expected a client whose calls wait for their results"
            )
        yield Cluster(dask)
        return
    if not isinstance(dask, str) or not dask:
        raise LocationError(
            f"{dask!r} is no Dask cluster; expected an address such as tcp://host:8786, or a Client"
        )
    try:
        with ThreadPoolExecutor(1) as thread:  # the loop of this one, if it has one, may be running
            thread.submit(asyncio.run, _greet(dask)).result()
        client = distributed.Client(dask, timeout=ANSWER_TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise LocationError(
            f"{dask}: no Dask scheduler answers there ({str(error) or type(error).__name__}); expected the address "
            "that `dask scheduler` prints, such as tcp://host:8786"
        ) from error
    with client:
        yield Cluster(client)


async def _greet(address: str) -> None:
    """Raise OSError, ValueError or TimeoutError unless a server of Dask is at the address. A client would wait for ever
    for a server of another kind, and one that has never connected would not end.
    """
    from distributed.comm import connect
    from distributed.security import Security

    options = Security().get_connection_args("client")
    comm = await asyncio.wait_for(
        connect(address, timeout=ANSWER_TIMEOUT_SECONDS, **options), ANSWER_TIMEOUT_SECONDS
    )
    await comm.close()


class Cluster:
    """The workers of a Dask cluster as an Executor. They must have this version of zarrfs, and reach the stores."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.address: str = client.scheduler.address

    # -- can they? ---------------------------------------------------------------------------------------------

    def check(self, source: Array | Group, target: Store) -> None:
        """Raise a ZarrError unless every worker finds the node, and writes where this process writes.

        It puts a mark into the target, and has each worker answer by another; they are deleted before this returns. A
        directory that was not there may be left, empty.
        """
        for store in (source.store, target):
            if store.in_process:
                raise UnsupportedError(
                    f"{store.url} is in the memory of this process, where no worker of a Dask cluster can reach it: "
                    "copy it without dask (--dask), or keep it in a store that the workers reach"
                )
        payload = _pickled((source, target))
        self._await_workers()
        self._ask(_find, __version__, payload, repr(source.metadata))
        mark = f"{STAGING}{secrets.token_hex(4)}"
        try:
            target.set(mark, b"")
            self._ask(_answer, payload, mark)
            for worker in self.client.nthreads():
                if target.get(_answer_key(mark, worker)) is None:
                    raise _apart(worker, f"what it writes to {target.url} is not there for this process")
        finally:
            for key in [mark, *(_answer_key(mark, worker) for worker in self.client.nthreads())]:
                target.delete(key)

    def _await_workers(self) -> None:
        """A cluster that grows by need has none until there is a task."""
        from distributed import TimeoutError as TooLate

        if self.client.nthreads():
            return
        future = self.client.submit(int, pure=False)
        try:
            future.result(timeout=SECONDS_FOR_WORKERS)
        except TooLate:
            raise LocationError(
                f"the Dask cluster at {self.address} has no workers; start some: dask worker {self.address}"
            ) from None
        finally:
            future.release()

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> None:
        """Have every worker say what is wrong. Raises StoreError for the first that says something."""
        for worker, answer in self.client.run(question, *arguments, on_error="return").items():
            if answer is not None:
                # An exception comes from Dask itself, which has not found the function there.
                raise _apart(
                    worker,
                    answer
                    if isinstance(answer, str)
                    else f"zarrfs {__version__} does not run there ({answer!r})",
                )

    # -- they do -----------------------------------------------------------------------------------------------

    def run(
        self,
        work: Callable[[T], object],
        items: Sequence[T],
        workers: int,
        done: Callable[[int], object],
    ) -> None:
        """As ``Executor`` has it; how many work at once is for the cluster to say, which may grow meanwhile."""
        from distributed import as_completed

        payload, job = _pickled(work), secrets.token_hex(8)
        threads = self._threads()
        rest = _batches(items, threads)

        def submit(batch: Sequence[T]) -> Future:
            return self.client.submit(
                _do, payload, job, batch, key=f"zarrfs-{secrets.token_hex(8)}", pure=False
            )

        flying = as_completed(
            [submit(batch) for batch in islice(rest, AHEAD * threads)], loop=self.client.loop
        )
        try:
            for future in flying:
                count, error = self._result(future)
                done(count)
                if error is not None:
                    raise error
                wanted = AHEAD * self._threads() - flying.count()
                flying.update([submit(batch) for batch in islice(rest, max(0, wanted))])
        except BaseException as error:
            self._stop(job, list(flying.futures), isinstance(error, KeyboardInterrupt))
            raise

    def _threads(self) -> int:
        threads: dict[str, int] = self.client.nthreads()
        return max(1, sum(threads.values()))

    def _result(self, future: Future) -> tuple[int, ZarrError | None]:
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        try:
            result: tuple[int, ZarrError | None] = future.result()
        except KilledWorker as error:
            raise StoreError(
                f"workers of the Dask cluster at {self.address} died of one piece of the copy, perhaps for want of "
                f"memory ({error.last_worker.address} the last): give less memory to each (--memory), and {RESUME}"
            ) from None
        except (CancelledError, CommClosedError, TimeoutError):
            raise StoreError(
                f"the Dask cluster at {self.address} has gone, or was restarted: {RESUME}"
            ) from None
        except (MemoryError, OSError) as error:
            raise error.with_traceback(None) from None
        except Exception as error:
            raise StoreError(
                f"a worker of the Dask cluster at {self.address} failed: {type(error).__name__}: {error}"
            ) from None
        return result

    def _stop(self, job: str, futures: list[Future], interrupted: bool) -> None:
        """Cancel what waits, and wait until what is being done is done: nobody writes after this."""
        if interrupted:
            logger.warning("stopping: what the workers are at is finished, nothing else begun")
        # What cannot be reached any more cannot be waited for. The first error is the one to be told.
        with suppress(Exception):
            self.client.cancel(futures, force=True)
            self.client.run(_finish, job, on_error="ignore")


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except StoreError as error:
        raise UnsupportedError(f"no worker of a Dask cluster can use this: {error}") from error
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise UnsupportedError(
            f"this cannot be sent to the workers of a Dask cluster, because it cannot be pickled: {error}; copy it "
            "without dask (--dask)"
        ) from error


def _batches(items: Sequence[T], threads: int) -> Iterator[Sequence[T]]:
    count = min(MAX_ITEMS, max(1, len(items) // (threads * TASKS_PER_THREAD)))
    return (items[start : start + count] for start in range(0, len(items), count))


def _answer_key(mark: str, worker: str) -> str:
    return f"{mark}-{hashlib.sha256(worker.encode()).hexdigest()[:16]}"


def _apart(worker: str, trouble: str) -> StoreError:
    return StoreError(
        f"the Dask worker {worker} cannot take part, and nothing was copied: {trouble}. Every worker must reach source "
        "and destination by the same names: a file system that all machines share, a database or a URL"
    )


# -- on a worker -----------------------------------------------------------------------------------------------

_busy: Counter[str] = Counter()
"""By job, how many tasks of it are being done here."""

_stopped: deque[str] = deque(maxlen=64)
"""Jobs of which nothing more is to be begun: a task may arrive after its cancellation."""

_changed = threading.Condition()


async def _find(version: str, payload: bytes, document: str) -> str | None:
    """Look for the source. Return what is wrong, None where nothing is."""

    def find() -> str | None:
        try:
            source, _ = pickle.loads(payload)
        except ZarrError as error:
            return str(error)
        if repr(source.metadata) != document:
            return f"it finds another node at {source.store.url}, {source.name}"
        return None

    if version != __version__:
        return f"it has zarrfs {__version__}, and this is {version}"
    return await asyncio.to_thread(find)


async def _answer(payload: bytes, mark: str, dask_worker: Any) -> str | None:
    """Answer the mark in the target. Return what is wrong, None where nothing is."""

    def answer() -> str | None:
        try:
            _, target = pickle.loads(payload)
            if target.get(mark) is None:
                return f"what this process writes to {target.url} is not there for it"
            target.set(_answer_key(mark, dask_worker.address), b"")
        except ZarrError as error:
            return str(error)
        return None

    return await asyncio.to_thread(answer)


@lru_cache(maxsize=4)
def _unpickled(payload: bytes) -> Callable[[Any], object]:
    work: Callable[[Any], object] = pickle.loads(payload)
    return work


def _do(payload: bytes, job: str, items: Sequence[Any]) -> tuple[int, ZarrError | None]:
    """Do the items; return how many were done, and the error that kept it from the others."""
    with _changed:
        _busy[job] += 1
    count = 0
    try:
        work = _unpickled(payload)
        with at_most(1):  # the other threads of the worker have tasks of their own
            for item in items:
                if job in _stopped:
                    break
                work(item)
                count += 1
    except ZarrError as error:
        return count, error
    finally:
        with _changed:
            _busy[job] -= 1
            if not _busy[job]:
                del _busy[job]
            _changed.notify_all()
    return count, None


async def _finish(job: str) -> None:
    """Begin nothing more of a job, and return when nothing of it is being done here."""
    _stopped.append(job)
    await asyncio.to_thread(_await_end, job)


def _await_end(job: str) -> None:
    with _changed:
        _changed.wait_for(lambda: job not in _busy)
