"""Sample runs of the tasks of a copy, for the estimates of a dry run: where their results are written, and their time.

The tasks run as in the copy, on the same threads or workers, and write below a temporary prefix of the destination,
which is deleted afterwards. Their time therefore contains the latency of both stores and the load of all threads.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.staging import StagingStore, staging_name
from zarrfs.engine.stores.base import DOCUMENT_NAMES, Buffer, Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import Location, open_store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError, ZarrError
from zarrfs.tools.copying.cluster.executor import ClusterExecutor
from zarrfs.tools.copying.destinations import file_path
from zarrfs.tools.copying.executors import Executor
from zarrfs.tools.copying.reports import ArrayEstimate

__all__ = ["Measurement", "Sampling", "estimated", "measured_rounds"]

PROBE = "probe"
"""The key that is written first, to find out whether the destination can be written."""

MAX_SAMPLE_SECONDS = 2.0
"""No further tasks of an array are measured after this time."""

MAX_TOTAL_SECONDS = 20.0
"""After this time only a few tasks of each further array are measured."""

MIN_ROUND_SECONDS = 0.25
"""The number of tasks that are run at once is doubled until they take this time."""


@dataclass(frozen=True)
class Measurement:
    """The measured tasks of an array.

    Attributes:
        task_seconds: the time that a thread spends on one task while all threads are busy.
        nbytes_written: the stored bytes per task.
        tasks: the number of tasks that were run.
        threads: the number of threads.
    """

    task_seconds: float
    nbytes_written: float
    tasks: int
    threads: int

    def expected_seconds(self, tasks: int, relative: float = 1.0) -> float:
        """Return the time of so many tasks. Each takes ``relative`` times as long as the measured ones."""
        return self.task_seconds * relative * tasks / max(1, min(self.threads, tasks))


class DiscardingStore(MemoryStore):
    """A store in memory that keeps documents, and only counts the bytes of other values. Tasks that write to it can be
    sent to other processes, with the documents.
    """

    def __init__(self, documents: dict[str, bytes] | None = None) -> None:
        super().__init__(documents)
        self._written = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return DiscardingStore, (dict(self.values),)

    def set(self, key: str, value: Buffer) -> None:
        if key.rpartition("/")[2] in DOCUMENT_NAMES:
            super().set(key, value)
        else:
            self._written.nbytes = self.take_nbytes() + len(value)

    def take_nbytes(self) -> int:
        """Return the bytes that this thread has written since the last call."""
        nbytes: int = getattr(self._written, "nbytes", 0)
        self._written.nbytes = 0
        return nbytes


@dataclass(frozen=True)
class CountedTask:
    """A task that writes to a DiscardingStore on its own thread. Returns the number of bytes."""

    work: Callable[[Any], object]
    store: DiscardingStore

    def __call__(self, item: Any) -> int:
        self.work(item)
        return self.store.take_nbytes()


class Sampling:
    """Runs samples of tasks.

    Attributes:
        store: the store to which they write: a temporary prefix of the destination, or memory.
        reason: why the time does not contain writing to the destination; None if it does.
    """

    def __init__(self, store: Store, executor: Executor, reason: str | None) -> None:
        self.store = store
        self.reason = reason
        self._executor = executor
        self._seconds = 0.0

    def measure(
        self, work: Callable[[Any], object], targets: Sequence[Array], items: Sequence[Any], workers: int
    ) -> Measurement:
        """Run ``work``, which writes to ``targets`` in ``store``, on samples of the items, and measure it.

        ``workers`` is the number of threads if threads of this process are used.
        """
        executor, store = self._executor, self.store
        cluster = executor if isinstance(executor, ClusterExecutor) else None
        counted = (
            CountedTask(work, store) if cluster is not None and isinstance(store, DiscardingStore) else None
        )
        before, written = self._nbytes(targets), 0
        threads = self.threads(workers)
        busy: list[float] = []

        def count_nbytes(nbytes: Any) -> None:
            nonlocal written
            written += nbytes

        def run(part: Sequence[Any]) -> float:
            begin, busy_before = time.perf_counter(), _busy_seconds(cluster)
            if cluster is not None and counted is not None:
                cluster.run(counted, part, 1, lambda count: None, on_result=count_nbytes)
            else:
                executor.run(work, part, workers, lambda count: None)
            seconds = time.perf_counter() - begin
            # A round on a cluster has more Dask tasks for each task than the copy, in which Dask takes a thousandth of
            # the time (``cluster.batches``). So the time of the tasks counts.
            is_local = cluster is None
            busy.append(
                seconds * min(threads, len(part)) if is_local else _busy_seconds(cluster) - busy_before
            )
            return seconds

        rounds = measured_rounds(run, items, threads, self._limit())
        self._seconds += sum(seconds for _, seconds in rounds)
        written += self._nbytes(targets) - before
        count = sum(number for number, _ in rounds)
        # The first round imports modules and opens connections. It counts only if there is no other.
        first = min(1, len(rounds) - 1) if rounds else 0
        task_seconds = sum(busy[first:]) / max(1, sum(number for number, _ in rounds[first:]))
        return Measurement(task_seconds, written / max(1, count), count, threads)

    def check(self, source: Array | Group) -> None:
        """Raise a ZarrError unless the tasks can be run. See ``Executor.check``, for the store of the samples."""
        if self.reason is None and not self.store.in_process:
            self._executor.check(source, self.store)
        elif isinstance(self._executor, ClusterExecutor):
            self._executor.check_readable(source)

    def threads(self, workers: int) -> int:
        """Return the number of threads of the copy. See ``Executor.threads``."""
        return self._executor.threads(workers)

    def _limit(self) -> float:
        return MAX_SAMPLE_SECONDS if self._seconds < MAX_TOTAL_SECONDS else 0.0

    def _nbytes(self, targets: Sequence[Array]) -> int:
        return sum(target.store.usage(target.path).nbytes for target in targets)


def _busy_seconds(cluster: ClusterExecutor | None) -> float:
    """Return the time that the threads of the workers have spent on tasks."""
    return 0.0 if cluster is None else sum(worker.busy_seconds for worker in cluster.statistics.values())


def measured_rounds(
    run: Callable[[Sequence[Any]], float], items: Sequence[Any], at_once: int, limit: float
) -> list[tuple[int, float]]:
    """Run rounds of tasks for ``limit`` seconds after the first one, at least two, and return the number of tasks and
    the time of each. ``run`` returns the time.

    A round has neighbouring items, as in the copy, where they share chunks of the source. The rounds are spread over
    all items and do not begin with the first ones: chunks at the edge of an image are often smaller or emptier.
    """
    rounds: list[tuple[int, float]] = []
    used: set[int] = set()
    size = at_once
    while len(used) < len(items) and (len(rounds) < 2 or sum(seconds for _, seconds in rounds[1:]) < limit):
        start = round(_fraction(len(rounds) + 1) * max(0, len(items) - size))
        part = [number for number in range(start, min(start + size, len(items))) if number not in used]
        if not part:
            part = [number for number in range(len(items)) if number not in used][:size]
        used.update(part)
        rounds.append((len(part), run([items[number] for number in part])))
        if len(rounds) > 1 and rounds[-1][1] < MIN_ROUND_SECONDS:
            size *= 2
    return rounds


def _fraction(number: int) -> float:
    """Return 1/2, 1/4, 3/4, 1/8, 5/8, ... (the van der Corput sequence) for 1, 2, 3, 4, 5, ..."""
    fraction, step = 0.0, 0.5
    while number:
        number, digit = divmod(number, 2)
        fraction += digit * step
        step /= 2
    return fraction


def estimated(
    estimate: Callable[[Sampling], list[ArrayEstimate]],
    location: Location,
    options: Mapping[str, Any] | None,
    executor: Executor,
    sample_writes: bool,
) -> list[ArrayEstimate]:
    """Return what ``estimate`` returns for samples of a copy to ``location``; see ``sampling``. If the destination has
    no space for the samples, their results stay in memory.
    """
    try:
        with sampling(location, options, executor, sample_writes) as samples:
            return estimate(samples)
    except StoreError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        reason = str(error)
    return estimate(Sampling(_memory_store(executor), executor, reason))


def _memory_store(executor: Executor) -> MemoryStore:
    """Return a store for samples in memory. The workers of a cluster cannot write to memory of this process."""
    return DiscardingStore() if isinstance(executor, ClusterExecutor) else MemoryStore()


@contextmanager
def sampling(
    location: Location, options: Mapping[str, Any] | None, executor: Executor, sample_writes: bool
) -> Iterator[Sampling]:
    """Yield the place for samples of a copy to ``location``; what they write is deleted at the end.

    A destination that is a file or a directory, or in one, gets a temporary directory next to it. If nothing can be
    written to the destination, or ``sample_writes`` is False, the results stay in memory.
    """
    if not sample_writes:
        yield Sampling(
            _memory_store(executor),
            executor,
            "use sample_writes=True to write temporary keys for this",
        )
        return
    with _sample_store(location, options) as store:
        if isinstance(store, Store):
            yield Sampling(store, executor, None)
        else:
            yield Sampling(_memory_store(executor), executor, store)


@contextmanager
def _sample_store(location: Location, options: Mapping[str, Any] | None) -> Iterator[Store | str]:
    """Yield a store, or the reason why nothing can be written."""
    path = file_path(location)
    if path is not None:
        with _temporary_directory(path) as directory:
            yield directory
        return
    prefix = staging_name()
    try:
        store, _ = open_store(location, mode="a", storage_options=options)
        if store.in_process:
            place: Store | str = MemoryStore()
        elif isinstance(location, str) or store.is_remote:
            place = StagingStore(store, prefix)
            place.set(PROBE, b"")
        else:
            place = f"{store.url}: a sample would change the archive or database"
    except ZarrError as error:
        yield str(error)
        return
    try:
        yield place
    finally:
        if isinstance(place, StagingStore):
            store.delete_prefix(prefix)
        if isinstance(location, str):
            store.close()


@contextmanager
def _temporary_directory(path: str) -> Iterator[Store | str]:
    """Yield a store in a new directory on the file system of ``path``, or the reason why there is none."""
    parent = path if os.path.ismount(path) else os.path.dirname(path)
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    directory = os.path.join(parent, staging_name())
    try:
        os.mkdir(directory, 0o700)
    except OSError as error:
        yield f"{parent} cannot be written: {error.strerror}"
        return
    try:
        yield LocalStore(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
