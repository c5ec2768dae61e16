"""The processor time of reading a file of a mount from start to end, divided into its parts.

``python -m benchmarks.mount_processor`` reads a volume of 512 x 512 x 512 uint16 with ``cat``. The sum of what a FUSE
file system that does nothing needs (server and ``cat``) and what the engine needs to decode into memory that exists,
divided by the number of processors, is the shortest time that any mount can take. Processor time hardly depends on
other programs that are running, apart from the time in which the kernel clears new memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from benchmarks.mount_data import VOLUMES, make_volume
from benchmarks.mount_servers import Server, memory_server, null_server, zarrfs_server
from zarrfs.engine.parallel import CORES

__all__ = ["main"]

SETTLING_SECONDS = 0.2
"""The last requests of a pass are counted after this time."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mount_processor")
    parser.add_argument("--side", type=int, default=512, help="edge length of the volume (default: 512)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="number of measurements; the medians are printed"
    )
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm/zarrfs-benchmarks"))
    options = parser.parse_args(arguments)
    options.scratch.mkdir(exist_ok=True)
    store = make_volume(VOLUMES[0], options.side, options.scratch)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(options.rounds):
            for name, seconds in _measure(store, Path(directory) / "files"):
                times.setdefault(name, []).append(seconds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, seconds in medians.items():
        print(f"{name:55} {seconds:.3f} s")
    least = (medians["do-nothing FUSE, server and cat"] + medians["engine, into memory that exists"]) / CORES
    print(f"{f'least time of a cold pass on {CORES} processors':55} {least:.3f} s")


def _measure(store: Path, mountpoint: Path) -> Iterator[tuple[str, float]]:
    """Yield the names of the parts and their processor times in seconds."""
    nbytes = zarrfs.open_array(store).nbytes
    with null_server(nbytes, mountpoint) as server:
        _pass(server)
        yield "do-nothing FUSE, server and cat", _pass(server)
    with memory_server(nbytes, mountpoint) as server:
        _pass(server)
        yield "FUSE that returns bytes of memory", _pass(server)
    yield "engine, into memory that exists", _engine(store)
    with zarrfs_server(store, mountpoint) as server:
        yield "mount, cold", _pass(server)
        yield "mount, again, new memory for all blocks", _pass(server)
        yield "mount, chunks decoded before and kept", _pass(server)
    with zarrfs_server(store, mountpoint, "--cache-size", "16000000") as server:
        _pass(server)
        yield "mount, again, memory of blocks used again", _pass(server)


def _pass(server: Server) -> float:
    """Return the processor time of the server and of ``cat`` for one pass, without pages in the kernel."""
    path = server.mountpoint / "a.raw"
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    before = server.cpu_seconds() + _seconds_of(resource.RUSAGE_CHILDREN)
    subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)
    time.sleep(SETTLING_SECONDS)
    return server.cpu_seconds() + _seconds_of(resource.RUSAGE_CHILDREN) - before


def _engine(store: Path) -> float:
    array: Any = zarrfs.open_array(store, cache_size=0)
    out = np.ones(array.nbytes, np.uint8)
    read: Callable[[], object] = lambda: array.read_bytes_into(0, out)  # noqa: E731
    read()
    before = _seconds_of(resource.RUSAGE_SELF)
    read()
    return _seconds_of(resource.RUSAGE_SELF) - before


def _seconds_of(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
