"""Extrapolates the conversion of a petabyte on a Dask cluster, by simulation with measured task times.

    python -m benchmarks.petabyte [--write docs/petabyte.md]

The times of tasks, of the scheduler and of listings are measured on this machine, in about a minute. The simulation
then runs the queue of ``zarrfs convert --dask``: one scheduler that needs some time for each Dask task, and threads of
workers that take the next batch of tasks when they have completed one.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import zarrfs
from zarrfs.engine.parallel import limit_threads
from zarrfs.tools.copying.cells import MAX_INDICES_IN_MEMORY, Cells
from zarrfs.tools.copying.cluster.batches import (
    BATCH_SECONDS,
    MAX_BATCH_SIZE,
    SCHEDULING_SECONDS,
    batch_size,
)
from zarrfs.tools.copying.cluster.executor import IN_FLIGHT_PER_THREAD, ClusterExecutor
from zarrfs.tools.copying.copy_tasks import CopyBlock

PETABYTE = 10**15
SHARD = (4, 1024, 1024)
"""The block of a measured task: 8 MiB of 16-bit values in inner chunks of 256 KiB."""

TASKS = 24
SCHEDULED = 400
SCHEDULER_RUNS = 20
LISTING_REQUEST_KEYS = 1000
LISTING_REQUEST_SECONDS = 0.1
"""One request for 1000 keys of an object store: an assumption, not a measurement."""

SIZES = {"1 TB": 10**12, "100 TB": 10**14, "1 PB": PETABYTE}
THREADS = (64, 1024, 16384)
SHARD_SIZES = {"1 MiB": 1 << 20, "64 MiB": 64 << 20, "1 GiB": 1 << 30}


@dataclass(frozen=True)
class Measurements:
    """The measurements of this machine.

    Attributes:
        rates: decoded bytes per second and thread, of each measured task.
        schedule_seconds: the time that scheduler and client need for one Dask task.
        list_nbytes: the largest memory of the client for the list of the chunks to copy.
        compression: stored bytes per decoded byte.
        load: the load of the machine when the measurement began.
    """

    rates: tuple[float, ...]
    schedule_seconds: float
    list_nbytes: int
    compression: float
    load: float


def measure(folder: Path) -> Measurements:
    """Measure tasks of a conversion, the scheduler, and the memory of the list of chunks."""
    from zarrfs.synthetic import make_picture

    load = os.getloadavg()[0]
    picture = make_picture((SHARD[0] * 2, SHARD[1], SHARD[2])).intensities[0]
    inner = (1, 256, 512)
    source = zarrfs.create_array(
        folder / "source", shape=(TASKS * SHARD[0], *SHARD[1:]), dtype="u2", chunks=inner, shards=SHARD
    )
    for number in range(0, TASKS * SHARD[0], len(picture)):
        source[number : number + len(picture)] = picture[: source.shape[0] - number]
    target = zarrfs.create_array(
        folder / "target",
        shape=source.shape,
        dtype="u2",
        chunks=(4, 128, 128),
        shards=SHARD,
        compressors="zstd",
    )
    copy, rates = CopyBlock(source, target, False), []
    nbytes = int(np.prod(SHARD)) * 2
    with limit_threads(1):
        for number in range(TASKS):
            block = (
                slice(number * SHARD[0], (number + 1) * SHARD[0]),
                slice(0, SHARD[1]),
                slice(0, SHARD[2]),
            )
            start = time.process_time()
            copy(block)
            rates.append(nbytes / (time.process_time() - start))
    compression = target.nbytes_stored() / target.nbytes
    return Measurements(tuple(rates), _schedule_seconds(), _list_nbytes(), compression, load)


def _schedule_seconds() -> float:
    """Return the processor time of scheduler, client and worker for one empty task of zarrfs."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        seconds = []
        for _ in range(SCHEDULER_RUNS):
            batches: list[int] = []
            start = time.process_time()
            ClusterExecutor(client).run(abs, range(SCHEDULED), 1, batches.append)
            seconds.append((time.process_time() - start) / len(batches))
        return float(np.median(seconds))


def _list_nbytes() -> int:
    """Return the largest memory for a list of chunks that is long enough to be in a temporary file."""
    import tracemalloc

    side, depth = 1000, 4 * MAX_INDICES_IN_MEMORY // 10**6
    tracemalloc.start()
    Cells((depth, side, side), np.ndindex(depth, side, side))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def simulate(measured: Measurements, tasks: int, task_nbytes: int, threads: int) -> tuple[float, float]:
    """Return the seconds of a run and the fraction of the time in which the threads work."""
    item_seconds = task_nbytes / float(np.median(measured.rates))
    generator = random.Random(0)
    # When each thread is free, and when it began its last batch.
    free = [(0.0, 0.0)] * min(threads, tasks)
    scheduler = busy = end = 0.0
    remaining, batches = tasks, 0
    while remaining:
        # One batch is queued while another one runs. The scheduler handles one batch at a time.
        available, submitted = heapq.heappop(free)
        is_measured = batches >= IN_FLIGHT_PER_THREAD * threads
        batch = batch_size(remaining, threads, item_seconds if is_measured else None)
        remaining -= batch
        batches += 1
        scheduler = max(scheduler, submitted) + measured.schedule_seconds
        duration = batch * task_nbytes / generator.choice(measured.rates)
        begin = max(available, scheduler)
        busy += duration
        end = max(end, begin + duration)
        heapq.heappush(free, (begin + duration, begin))
    return end, busy / (end * len(free))


def page(measured: Measurements) -> str:
    """Return the page with the figures."""
    rate = float(np.median(measured.rates))
    rows = [
        "| data | shard | tasks and objects | threads | time | threads busy | temporary file | listing |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for size_name, size in SIZES.items():
        for shard_name, shard in SHARD_SIZES.items():
            tasks = size // shard
            for threads in THREADS:
                seconds, used = simulate(measured, tasks, shard, threads)
                rows.append(
                    f"| {size_name} | {shard_name} | {tasks:,} | {threads} | {_time(seconds)} | {used:.0%} | "
                    f"{_size(tasks * 8 if tasks > MAX_INDICES_IN_MEMORY else 0)} | {_time(_listing(tasks))} |"
                )
    return PAGE.format(
        rate=rate / 1e6,
        schedule=measured.schedule_seconds * 1e3,
        memory=measured.list_nbytes / 1e6,
        compression=measured.compression,
        load=measured.load,
        processors=os.cpu_count(),
        table="\n".join(rows),
        core_years=PETABYTE / rate / 3600 / 24 / 365,
        batch=MAX_BATCH_SIZE,
        seconds=BATCH_SECONDS,
        scheduling=SCHEDULING_SECONDS,
        per_second=f"{1 / measured.schedule_seconds:,.0f}",
    )


def _listing(objects: int) -> float:
    return objects / LISTING_REQUEST_KEYS * LISTING_REQUEST_SECONDS


def _time(seconds: float) -> str:
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.1f} {name}"
    return f"{seconds:.0f} s"


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.0f} TB"


PAGE = """# A petabyte on a cluster

This page is written by `python -m benchmarks.petabyte --write docs/petabyte.md`. Nobody has converted a petabyte with
zarrfs: the figures are a simulation of the queue of `zarrfs convert --dask`, with task times that were measured on one
machine.

Measured, in processor time: one thread re-encodes {rate:.0f} MB of decoded 16-bit values per second (zstd, stored at
{compression:.0%} of their size). A Dask task costs {schedule:.1f} ms in scheduler, client and worker together. The
client needs {memory:.0f} MB for the list of the stored chunks or shards of the source, whatever their number: a list of
more than a million is in a temporary file, with eight bytes for each. A Dask task contains as many of them as one
thread copies in {seconds:g} s, or in {scheduling:g} s times the number of threads if that is longer. These are at most
{batch}, and fewer near the end of the run.

When the measurement began, the load of the machine was {load:.1f} on {processors} processors. Other load changed the
rate by up to a third between runs, and the cost of a Dask task by a factor of two.

The latency of messages is not part of the simulation. Neither is the bandwidth of network and storage: divide the size
by the bandwidth, and use the larger time. A listing is assumed to take 0.1 s for 1000 keys.

{table}

A petabyte takes {core_years:.1f} years of one thread.

## What fails first

1. **The number of objects.** With chunks of 1 MiB and without shards, a petabyte is about a billion objects. The client
   lists all of them before it starts. Many file systems are created for fewer files. Use
   shards (`--shards`) of 64 MiB to 1 GiB, also for a source that is to be converted later.
2. **The scheduler.** One scheduler handles about {per_second} Dask tasks per second. Where the column "threads busy" is
   low, the scheduler is the limit, or there are fewer shards than threads, or so few for each thread that the last ones
   are waited for: the shards are too small or too large for the number of threads.
3. **Memory of the workers.** A thread holds one decoded block, its encoded form, and the cache for decoded chunks of
   the source (`--memory`). Large shards need workers with few threads. `zarrfs convert --dry-run` prints the memory per
   thread.
4. **Metadata are not a limit.** There is one document per array. The client writes the documents once.

An interrupted run is resumed with `--if-exists resume`. The workers then ask the store for each chunk or shard of the
destination, with one request for each: if one takes 20 ms, a billion take 87 h with 64 threads and 5.4 h with 1024.
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", type=Path, help="the page to write; default: standard output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("ZARRFS_BENCHMARKS")) as folder:
        text = page(measure(Path(folder)))
    if arguments.write is None:
        print(text)
    else:
        arguments.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
