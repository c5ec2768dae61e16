"""The benchmark of the mount: ``python -m benchmarks.mount``.

Each task is measured on the mount, in the engine, and on a FUSE file system in Python that does nothing but return
bytes, in one run. The ratio is the time of the slower of the two references divided by that of the mount: 1 means that
the mount is as fast as the slower one of them. Times are seconds.

"Cold" is a new mount, with the files of the store in the page cache of the kernel. "Cached" means that the server has
decoded the chunks before, and has kept them. The pages of the files of the mount are dropped before each task.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from benchmarks.engine import describe, machine, scratch_directory
from benchmarks.mount_data import (
    CHUNK_LENGTH,
    THIN,
    VOLUMES,
    Volume,
    make_many_arrays,
    make_many_chunks,
    make_volume,
)
from benchmarks.mount_servers import Server, counting_server, memory_server, null_server, zarrfs_server
from zarrfs.mount.process.unmounting import unmount

__all__ = ["Result", "Sizes", "run"]

SMALL_CACHE_NBYTES = 16 << 20
PAGE_NBYTES = 4096
READ_NBYTES = 1 << 20
PASSES = 5
"""The number of passes over bytes in memory, of which the shortest counts: an interruption can take as long as one."""

LISTINGS = (("ls", "-f"), ("ls", "-l"), ("find",), ("du", "-s"))


@dataclass(frozen=True)
class Sizes:
    """The amount of data. ``preads`` is the number of random reads, ``arrays`` the sizes of the listed groups,
    ``chunks`` the number of chunks of the array of which one changes.
    """

    side: int = 512
    arrays: tuple[int, ...] = (2000, 20_000)
    preads: int = 500
    readers: tuple[int, ...] = (8, 32)
    chunks: int = 100_000


@dataclass(frozen=True)
class Result:
    """One row of the table. ``value`` and the references are seconds; ``unit`` names other quantities."""

    task: str
    value: float
    engine: float | None = None
    null: float | None = None
    cpu: float | None = None
    target: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        """The time of the slower reference divided by that of the mount."""
        references = [seconds for seconds in (self.engine, self.null) if seconds is not None]
        return max(references) / self.value if references and self.value else None


class Benchmark:
    """The tasks. Each yields its results in the order of the table."""

    def __init__(self, sizes: Sizes, scratch: Path, directory: Path) -> None:
        self._sizes = sizes
        self._scratch = scratch
        self._mountpoint = directory / "files"
        self._report = directory / "reads.json"
        self._null_seconds: dict[int, float] = {}

    def tasks(self) -> dict[str, Callable[[], Iterator[Result]]]:
        """Return the tasks by name."""
        tasks: dict[str, Callable[[], Iterator[Result]]] = {"ready": self.ready}
        for volume in VOLUMES:
            tasks[f"cat {volume.name}"] = partial(self.cat, volume)
        tasks |= {
            "cat of memory": self.cat_of_memory,
            "small cache": self.small_cache,
            "decoded": self.decoded,
            "pread": self.pread,
            "plane": self.plane,
            "readers": self.readers,
            "memory": self.memory,
            "change": self.change,
        }
        for count in self._sizes.arrays:
            targets = ("1", "5", "5", "5") if count > 5000 else ("0.5",) * 4
            for command, target in zip(LISTINGS, targets, strict=True):
                tasks[f"{' '.join(command)} of {count} arrays"] = partial(
                    self.listing, command, count, target
                )
        return tasks

    # -- throughput ----------------------------------------------------------------------------------------------

    def ready(self) -> Iterator[Result]:
        store = self._volume(VOLUMES[0])
        self._mountpoint.mkdir(exist_ok=True)
        # As with an installed package, the modules have been compiled before.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(self._report.parent / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        mount = ["-m", "zarrfs", "mount", str(store), str(self._mountpoint)]
        seconds: dict[str, float] = {}
        for _ in range(3):
            for name, arguments in (("mount", mount), ("numpy", ["-c", "import numpy"])):
                start = time.perf_counter()
                subprocess.run([sys.executable, *arguments], check=True, env=environment)
                elapsed = time.perf_counter() - start
                seconds[name] = min(elapsed, seconds.get(name, elapsed))
            unmount(str(self._mountpoint))
        yield Result("`zarrfs mount` until ready", seconds["mount"], seconds["numpy"], target="0.5")

    def cat(self, volume: Volume) -> Iterator[Result]:
        store = self._volume(volume)
        engine = self._engine_seconds(store)
        null = self._null(_file_nbytes(store))
        with self._mount(store) as server:
            seconds, cpu = self._cat(server)
            yield Result(f"cat, {volume.name}, cold", seconds, engine, null, cpu, "80 %")
            self._cat(server)  # Blocks that are read again are kept.
            seconds, cpu = min(self._cat(server) for _ in range(PASSES))
            yield Result(f"cat, {volume.name}, cached", seconds, None, null, cpu, "80 %")

    def cat_of_memory(self) -> Iterator[Result]:
        """A FUSE file system in Python that returns bytes of memory: what the mount could be at best."""
        nbytes = _file_nbytes(self._volume(VOLUMES[0]))
        null = self._null(nbytes)
        with memory_server(nbytes, self._mountpoint) as server:
            seconds, cpu = min(self._cat(server) for _ in range(PASSES))
        yield Result("cat, not zarrfs: bytes in the memory of a Python process", seconds, None, null, cpu)

    def small_cache(self) -> Iterator[Result]:
        store = self._volume(VOLUMES[0])
        engine, null = self._engine_seconds(store), self._null(_file_nbytes(store))
        with self._mount(store, "--cache-size", str(SMALL_CACHE_NBYTES)) as server:
            seconds, cpu = self._cat(server)
        yield Result("cat, cache of 16 MB", seconds, engine, null, cpu, "1.0")

    def decoded(self) -> Iterator[Result]:
        for volume in VOLUMES:
            store = self._volume(volume)
            for name, cache_size in (("", 1 << 30), (", cache of 16 MB", SMALL_CACHE_NBYTES)):
                if name and volume is THIN:
                    continue
                with counting_server(store, self._mountpoint, cache_size, self._report) as server:
                    self._cat(server)
                label = f"times that a chunk is read in one cat, {volume.name}{name}"
                yield Result(label, self._max_reads(store), target="1", unit="times")
        store = self._volume(VOLUMES[0])
        for count in self._sizes.readers:
            ranges = [(0, _file_nbytes(store))] * count
            with counting_server(store, self._mountpoint, 1 << 30, self._report):
                _read_in_threads(self._mountpoint / "a.raw", ranges)
            label = f"times that a chunk is read by {count} readers of the whole file"
            yield Result(label, self._max_reads(store), target="1", unit="times")

    def _max_reads(self, store: Path) -> float:
        """Return how many times the bytes of one chunk were read, at most, by the report of a counting server."""
        counts: dict[str, int] = json.loads(self._report.read_text())
        return max(
            nbytes / (store / key).stat().st_size
            for key, nbytes in counts.items()
            if not key.endswith(".json") and nbytes
        )

    def pread(self) -> Iterator[Result]:
        store = self._volume(VOLUMES[0])
        nbytes = _file_nbytes(store)
        rng = np.random.default_rng(0)
        offsets = [int(n) * PAGE_NBYTES for n in rng.integers(nbytes // PAGE_NBYTES, size=self._sizes.preads)]
        array = zarrfs.open_array(store, cache_size=0)
        start = time.perf_counter()
        for offset in offsets[:50]:
            array.read_bytes(offset, PAGE_NBYTES)
        engine = (time.perf_counter() - start) / len(offsets[:50])
        with null_server(nbytes, self._mountpoint) as server:
            null = self._preads(server, offsets)[0]
        with self._mount(store) as server:
            seconds, cpu = self._preads(server, offsets)
            yield Result("pread of 4 KiB at random, cold", seconds, engine, null, cpu, "+ decoding")
            for _ in range(2):
                self._preads(server, offsets)
            seconds, cpu = self._preads(server, offsets)
            yield Result("pread of 4 KiB at random, cached", seconds, None, null, cpu, "0.0001")

    def plane(self) -> Iterator[Result]:
        store = self._volume(VOLUMES[0])
        side = self._sizes.side
        engine = min(_seconds(lambda: self._open(store)[:, side // 2, :]) for _ in range(3))
        with null_server(_file_nbytes(store), self._mountpoint) as server:
            null = self._plane_of_null(server)
        with self._mount(store) as server:
            for name, row, target in (("cold", side // 2, "0.3"), ("cached", side // 2 + 1, "0.1")):
                path = self._mountpoint / "a.npy"
                _drop_pages(path)
                cpu = server.cpu_seconds()
                mapped = np.load(path, mmap_mode="r")
                seconds = _seconds(partial(np.array, mapped[:, row, :]))
                del mapped  # A mount with a mapped file cannot be removed.
                cpu = server.cpu_seconds() - cpu
                yield Result(
                    f"x-z plane through np.load(mmap_mode='r'), {name}", seconds, engine, null, cpu, target
                )

    def readers(self) -> Iterator[Result]:
        store = self._volume(VOLUMES[0])
        nbytes = _file_nbytes(store)
        engine, null = self._engine_seconds(store), self._null(nbytes)
        for count in self._sizes.readers:
            edges = [nbytes * index // count for index in range(count + 1)]
            parts = list(pairwise(edges))
            for name, ranges in (("of disjoint parts", parts), ("of the whole file", [(0, nbytes)] * count)):
                with self._mount(store) as server:
                    cpu = server.cpu_seconds()
                    seconds = _seconds(partial(_read_in_threads, self._mountpoint / "a.raw", ranges))
                    cpu = server.cpu_seconds() - cpu
                yield Result(f"{count} readers {name}", seconds, engine, null, cpu, "one pass")

    # -- memory and listings ---------------------------------------------------------------------------------------

    def memory(self) -> Iterator[Result]:
        for volume, cache_size in (
            (VOLUMES[0], SMALL_CACHE_NBYTES),
            (VOLUMES[0], 64 << 20),
            (THIN, SMALL_CACHE_NBYTES),
        ):
            store = self._volume(volume)
            with self._mount(store, "--cache-size", str(cache_size)) as server:
                os.listdir(self._mountpoint)
                before = server.memory()
                server.reset_peak_memory()
                for _ in range(2):  # Blocks that are read again are kept.
                    self._cat(server)
                peak = server.peak_memory()
            label = (
                f"memory of two passes, {volume.name}, "
                f"beyond {before >> 20} MiB at the start and a cache of {cache_size >> 20} MiB"
            )
            yield Result(label, (peak - cache_size - before) / (1 << 20), target="64", unit="MiB")

    def change(self) -> Iterator[Result]:
        """A chunk is read several times, so that the caches contain it, changed, and read until the change is seen."""
        store = make_many_chunks(self._sizes.chunks, self._scratch)
        array = zarrfs.open_array(store / "a", mode="r+")
        row = self._sizes.chunks // 2
        with self._mount(store) as server:
            path = server.mountpoint / "a.raw"

            def read() -> int:
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    return int.from_bytes(os.pread(descriptor, 2, row * CHUNK_LENGTH * 2), "little")
                finally:
                    os.close(descriptor)

            longest = 0.0
            for _ in range(5):
                values = {read() for _ in range(10)}
                (old,) = values
                array[row] = (old + 1) % 1000
                start = time.perf_counter()
                while read() == old:
                    time.sleep(0.001)
                longest = max(longest, time.perf_counter() - start)
        label = f"time until a changed chunk of {self._sizes.chunks} is seen, longest of 5"
        yield Result(label, longest, target="1")

    def listing(self, command: tuple[str, ...], count: int, target: str) -> Iterator[Result]:
        store = make_many_arrays(count, self._scratch)
        for document in store.rglob("zarr.json"):  # The files are in the page cache in all measurements.
            document.read_bytes()
        with self._mount(store) as server:
            cpu = server.cpu_seconds()
            seconds = _seconds(partial(_run, command, self._mountpoint))
            cpu = server.cpu_seconds() - cpu
        engine = _seconds(partial(_run, command, store)) if command[0] == "ls" else None
        yield Result(f"{' '.join(command)} of {count} arrays", seconds, engine, None, cpu, target)

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _volume(self, volume: Volume) -> Path:
        return make_volume(volume, self._sizes.side, self._scratch)

    @staticmethod
    def _open(store: Path) -> Any:
        return zarrfs.open_array(store, cache_size=0)

    def _engine_seconds(self, store: Path) -> float:
        return min(_seconds(lambda: self._open(store)[...]) for _ in range(3))

    @contextmanager
    def _mount(self, store: Path, *options: str) -> Iterator[Server]:
        with zarrfs_server(store, self._mountpoint, *options) as server:
            yield server

    def _null(self, nbytes: int) -> float:
        if nbytes not in self._null_seconds:
            with null_server(nbytes, self._mountpoint) as server:
                self._null_seconds[nbytes] = min(self._cat(server)[0] for _ in range(PASSES))
        return self._null_seconds[nbytes]

    def _cat(self, server: Server) -> tuple[float, float]:
        path = server.mountpoint / "a.raw"
        _drop_pages(path)
        cpu = server.cpu_seconds()
        seconds = _seconds(lambda: _run(("cat",), path))
        return seconds, server.cpu_seconds() - cpu

    def _preads(self, server: Server, offsets: list[int]) -> tuple[float, float]:
        path = server.mountpoint / "a.raw"
        _drop_pages(path)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            cpu = server.cpu_seconds()
            start = time.perf_counter()
            for offset in offsets:
                os.pread(descriptor, PAGE_NBYTES, offset)
            seconds = time.perf_counter() - start
        finally:
            os.close(descriptor)
        return seconds / len(offsets), (server.cpu_seconds() - cpu) / len(offsets)

    def _plane_of_null(self, server: Server) -> float:
        side = self._sizes.side
        path = server.mountpoint / "a.raw"
        mapped = np.memmap(path, np.uint16, "r", shape=(side, side, side))
        return _seconds(lambda: np.array(mapped[:, side // 2, :]))


def _file_nbytes(store: Path) -> int:
    return zarrfs.open_array(store).nbytes


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _run(command: tuple[str, ...], path: Path) -> None:
    subprocess.run([*command, str(path)], stdout=subprocess.DEVNULL, check=True)


def _drop_pages(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _read_in_threads(path: Path, ranges: list[tuple[int, int]]) -> None:
    def read(start: int, stop: int) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            while start < stop:
                start += len(os.pread(descriptor, min(READ_NBYTES, stop - start), start))
        finally:
            os.close(descriptor)

    threads = [threading.Thread(target=read, args=part) for part in ranges]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(sizes: Sizes, scratch: Path, only: str, report: Callable[[str], None]) -> dict[str, Any]:
    """Run the tasks whose names contain ``only``, report each line of the table, and return all results."""
    scratch.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    report(describe(sizes.side))
    report("| task | zarrfs mount | engine | do-nothing FUSE | ratio | server CPU | target |")
    report("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="zarrfs-benchmark-") as directory:
        tasks = Benchmark(sizes, scratch, Path(directory)).tasks()
        chosen = {name: task for name, task in tasks.items() if only in name}
        if not chosen:
            raise SystemExit(f"no task contains {only!r}; the tasks are: {', '.join(tasks)}")
        for task in chosen.values():
            for result in task():
                report(line(result))
                results.append(result)
    return {
        "command": "python -m benchmarks.mount",
        "machine": machine(),
        "sizes": asdict(sizes),
        "results": [asdict(result) | {"ratio": result.ratio} for result in results],
    }


def line(result: Result) -> str:
    """Return one line of the table, in Markdown."""

    def text(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    value = text(result.value) + ("" if result.unit == "s" else f" {result.unit}")
    cells = [value, *map(text, (result.engine, result.null, result.ratio, result.cpu)), result.target]
    return f"| {result.task} | {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mount", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--side", type=int, default=512, help="edge length of the volumes (default: 512)")
    parser.add_argument(
        "--arrays", type=int, nargs="*", default=[2000, 20_000], help="sizes of the listed groups"
    )
    parser.add_argument("--preads", type=int, default=500, help="number of random reads")
    parser.add_argument(
        "--readers", type=int, nargs="*", default=[8, 32], help="numbers of concurrent readers"
    )
    parser.add_argument(
        "--chunks", type=int, default=100_000, help="number of chunks of the array of which one changes"
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="only tasks whose name contains TEXT")
    parser.add_argument("--scratch", type=Path, default=None, help="directory of the data, which are kept")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results to FILE")
    options = parser.parse_args(arguments)
    sizes = Sizes(options.side, tuple(options.arrays), options.preads, tuple(options.readers), options.chunks)
    results = run(
        sizes, options.scratch or scratch_directory(), options.only, lambda text: print(text, flush=True)
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
