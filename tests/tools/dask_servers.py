"""A Dask cluster for the tests: a scheduler and workers, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import distributed

from tests.engine.stores.servers import free_port, wait_for

__all__ = ["dask_cluster", "scheduler", "worker"]


@contextmanager
def _process(*words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(log, "wb") as file:
        process = subprocess.Popen([sys.executable, "-m", *words], stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


@contextmanager
def scheduler(log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler without workers; yields its address and process."""
    port = free_port()
    words = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    with _process(*words, log=log) as process:
        wait_for(port, process)
        yield f"tcp://127.0.0.1:{port}", process


@contextmanager
def worker(address: str, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with one thread. It may not be there yet: wait for it by a client."""
    words = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with _process(*words, "--local-directory", str(log.parent), *options, log=log) as process:
        yield process


@contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """A scheduler and its workers; yields its address."""
    with ExitStack() as processes:
        address, _ = processes.enter_context(scheduler(folder / "scheduler.log"))
        for number in range(workers):
            processes.enter_context(worker(address, folder / f"worker{number}.log"))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield address
