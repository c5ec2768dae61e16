"""A Dask cluster for tests, whose scheduler and workers are separate processes, and objects that are sent to it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import distributed

from tests.engine.stores.servers import free_port, wait_for
from tests.processes import TIMEOUT, running
from zarrfs.engine.codecs.limits import variable_limit
from zarrfs.engine.formats.json_document import current_limit
from zarrfs.engine.native.library import native_library
from zarrfs.engine.stores.local.store import LocalStore

ROOT = Path(__file__).resolve().parents[2]

__all__ = [
    "FailingItem",
    "FailingOnce",
    "ProcessLocalStore",
    "RecordItem",
    "SlowItem",
    "WorkerSettings",
    "dask_cluster",
    "kept_sessions",
    "remove_time_limits",
    "scheduler",
    "worker",
]


@contextmanager
def _process(
    *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with open(log, "wb") as file:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        command = [sys.executable, "-m", *arguments]
        with running(command, stdout=file, stderr=file, env=environment, cwd=log.parent) as process:
            yield process


@contextmanager
def scheduler(
    log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler without workers. Yield its address and process. ``environment`` has variables that this process
    does not have.
    """
    port = free_port()
    arguments = (
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-dashboard",
        "--idle-timeout",
        "3600s",
    )
    with _process(*arguments, log=log, environment=environment) as process:
        wait_for(port, process)
        yield f"tcp://127.0.0.1:{port}", process


@contextmanager
def worker(
    address: str, log: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker with one thread. It may not have registered yet: use ``Client.wait_for_workers``. ``environment``
    has variables that this process does not have.
    """
    arguments = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    directory = ("--local-directory", str(log.parent))
    with _process(*arguments, *directory, *options, log=log, environment=environment) as process:
        yield process


@contextmanager
def dask_cluster(
    folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start a scheduler and workers, with this environment of theirs. Yield the address."""
    with ExitStack() as processes:
        address, _ = processes.enter_context(scheduler(folder / "scheduler.log"))
        for number in range(workers):
            log = folder / f"worker{number}.log"
            processes.enter_context(worker(address, log, environment=environment))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=TIMEOUT)
        yield address


class ProcessLocalStore(LocalStore):
    """A store with the same URL but a different directory in each process, like a local path on several machines."""

    def __init__(self, home: str, process: int) -> None:
        super().__init__(f"{home}/{'here' if process == os.getpid() else os.getpid()}")
        self.home, self.process = home, process

    @property
    def url(self) -> str:
        return "file:///data"

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessLocalStore, (self.home, self.process)


@dataclass(frozen=True)
class RecordItem:
    """Appends a line for each item. With ``gate``, a named pipe, each call blocks until a writer opens the pipe; with
    ``process`` only the calls in that process.
    """

    path: str
    gate: str | None = None
    process: int | None = None

    def __call__(self, item: int) -> None:
        if self.gate is not None and self.process in (None, os.getpid()):
            with open(self.gate, "rb"):
                pass
        with open(self.path, "a", encoding="ascii") as file:
            file.write(f"{item}\n")


class _UnsendableError(OSError):
    """An exception that can be pickled, but not unpickled."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)


@dataclass(frozen=True)
class FailingItem:
    """Raises an exception for the third item. Dask can neither send ``RecursionError`` with its traceback, nor the
    exception of ``unsendable``, nor convert that of ``nested`` to text.
    """

    kind: Literal["recursion", "unsendable", "nested", "disk"]

    def __call__(self, item: int) -> None:
        if item != 2:
            return
        match self.kind:
            case "recursion":
                self(item)
            case "unsendable":
                raise _UnsendableError(1, "unsendable")
            case "nested":
                error = ValueError()
                for _ in range(sys.getrecursionlimit() * 10):
                    error = ValueError(error)
                raise error
            case "disk":
                raise OSError(errno.ENOSPC, "full")


@dataclass(frozen=True)
class FailingOnce:
    """Creates a file for each item. The first call for the items 3 and 12 fails, as an access to a store can."""

    folder: str

    def __call__(self, item: int) -> None:
        path = Path(self.folder) / str(item)
        is_first = not path.exists()
        path.touch()
        if is_first and item in (3, 12):
            raise OSError(errno.EIO, "an access has failed")


@dataclass(frozen=True)
class SlowItem:
    """Appends a line for each item. It takes much longer in the process ``slow_process`` than in others."""

    path: str
    slow_process: int

    def __call__(self, item: int) -> None:
        if os.getpid() == self.slow_process:
            sum(number * number for number in range(1_000_000))
        with open(self.path, "a", encoding="ascii") as file:
            file.write(f"{item}\n")


@dataclass(frozen=True)
class WorkerSettings:
    """Returns the settings that apply to a task on its worker."""

    def __call__(self, item: int) -> tuple[int, int, bool]:
        return current_limit(), variable_limit(0), native_library() is not None


def kept_sessions(dask_worker: Any) -> list[str]:
    """Return the sessions of which this worker keeps stores and caches."""
    return [name for name, plugin in dask_worker.plugins.items() if getattr(plugin, "has_function", False)]


def remove_time_limits(dask_worker: Any) -> None:
    """Let the items on this worker take any time: on a busy machine ordinary ones can exceed a short limit."""
    for plugin in dask_worker.plugins.values():
        if hasattr(plugin, "task_timeout"):
            plugin.task_timeout = None
