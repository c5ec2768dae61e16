"""Writes of ours beside the peers: ``python -m benchmarks.writing``.

Every contender is a process of its own that lives through a whole data set. They take turns at each task, in another
order each round, so that whatever else the machine does meets all of them alike; medians are shown. What was written is
read back by TensorStore and must be the same for all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from benchmarks.engine import describe, line, ratio, scratch_directory
from benchmarks.plan import SMALL, VOLUME, DataSet, written_sets
from benchmarks.writers import WRITERS
from zarrfs import synthetic

MIN_ROUNDS = 3
MAX_ROUNDS_SMALL = 5
"""What takes milliseconds is repeated this many times as often."""


class Worker:
    """A contender in its process, told what to do line by line."""

    def __init__(self, name: str, volume: Path) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.writers", name, str(volume)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.peak = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def time(self, directory: Path, task: str, number: int) -> float:
        """Let it do a task; return the seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(directory), task, number]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the contender ended with {self._process.wait()}")
        found = json.loads(answer)
        self.peak = found["peak"]
        return float(found["seconds"])


def tasks(data_set: DataSet) -> list[str]:
    """What is written, in this order: each task finds what the ones before left."""
    if data_set.side == SMALL:
        return ["everything", "overwriting", "one voxel"]
    return ["everything", "overwriting", *(f"plane:{axis}" for axis in range(3))]


def task_name(task: str) -> str:
    """For tables."""
    kind, _, axis = task.partition(":")
    return f"{kind} along {'zyx'[int(axis)]}" if axis else kind


def volume_file(side: int) -> Path:
    """Return the data to be written, made when first wanted."""
    path = scratch_directory() / f"volume-{side}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npy")
        np.save(partial, synthetic.volume((side, side, side), seed=1))
        partial.rename(path)
    return path


def make_empty(directory: Path, data_set: DataSet) -> None:
    """Write the metadata document of an array without chunks, the same one for everybody."""
    directory.mkdir(parents=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "fill_value": 0,
        "attributes": {},
        **data_set.metadata(),
    }
    (directory / "zarr.json").write_text(json.dumps(document))


def checksum(directory: Path) -> int:
    """Return the checksum of the values of an array, as TensorStore reads them."""
    import tensorstore

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(directory)}}
    array = tensorstore.open(spec, context=tensorstore.Context(), open=True, read=True).result()
    return zlib.crc32(np.ascontiguousarray(array.read().result()).data)


def stored_nbytes(directory: Path) -> int:
    """Return how much was stored."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def default_directory() -> Path:
    """Return where to write: a file system in memory where there is one.

    On a disk each round would meet what the system still does for the round before: ext4, asked for a new file, looks
    through all inodes that were freed in the last seconds, up to a millisecond for each file, and writes back.
    """
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else scratch_directory()


def measure(
    data_set: DataSet, names: list[str], rounds: int, budget: float, directory: Path
) -> dict[str, Any]:
    """Let all contenders write a data set ``rounds`` times, fewer (but ``MIN_ROUNDS``) once ``budget`` seconds are
    over. The first round warms up and does not count.
    """
    todo = tasks(data_set)
    seconds: dict[str, dict[str, list[float]]] = {task: {name: [] for name in names} for task in todo}
    volume = volume_file(data_set.side)
    scratch = directory / "zarrfs-benchmarks-written"
    shutil.rmtree(scratch, ignore_errors=True)
    workers = {name: Worker(name, volume) for name in names}
    stored = {}
    began = time.monotonic()
    try:
        for number in range(rounds + 1):
            if number > MIN_ROUNDS and time.monotonic() - began > budget:
                break
            places = {name: scratch / name.replace(" ", "-") for name in names}
            for place in places.values():
                make_empty(place, data_set)
            for position, task in enumerate(todo):
                for name in _turns(names, number + position):
                    taken = workers[name].time(places[name], task, number)
                    if number:
                        seconds[task][name].append(taken)
            if number == 0:
                _check_alike(data_set, places)
                stored = {name: stored_nbytes(place) for name, place in places.items()}
            shutil.rmtree(scratch)
    finally:
        for worker in workers.values():
            worker.__exit__(None, None, None)
        shutil.rmtree(scratch, ignore_errors=True)
    return {
        "seconds": seconds,
        "stored": stored,
        "peak": {name: worker.peak for name, worker in workers.items()},
    }


def _turns(names: list[str], number: int) -> Iterator[str]:
    shift = number % len(names)
    yield from names[shift:]
    yield from names[:shift]


def _check_alike(data_set: DataSet, places: dict[str, Path]) -> None:
    found = {name: checksum(place) for name, place in places.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"{data_set.name}: the contenders wrote different values: {found}")


def run(
    side: int, rounds: int, names: list[str], only: str, budget: float, directory: Path
) -> dict[str, Any]:
    """Measure, print each line as it is known, and return everything."""
    print(
        describe(side)
        + f"Writes: each contender in its own process, taking turns, at most {rounds} rounds, medians. The array is "
        "opened anew\nbefore each task, outside the time taken. Temporary file and rename, no fsync, no locks between "
        "processes; chunks\nthat hold only the fill value are not stored (all compare); nothing decoded is kept.\n"
        f"Written below {directory}.\n"
    )
    print(line("milliseconds, median", names, "best peer / ours"))
    print(line("", ["---"] * len(names), "---", fill="-"), flush=True)
    results = []
    for data_set in written_sets(side):
        if only.lower() not in data_set.name.lower():
            continue
        times = rounds * MAX_ROUNDS_SMALL if data_set.side == SMALL else rounds
        found = measure(data_set, names, times, budget, directory)
        for task, timings in found["seconds"].items():
            medians = {name: statistics.median(taken) for name, taken in timings.items()}
            label = f"{data_set.name}: {task_name(task)}"
            print(line(label, [f"{1000 * medians[name]:.3g}" for name in names], ratio(medians)), flush=True)
            results.append(
                {
                    "data": data_set.name,
                    "side": data_set.side,
                    "task": task_name(task),
                    "seconds": {name: {"seconds": taken} for name, taken in timings.items()},
                }
            )
        for what in ("stored", "peak"):
            cells = [f"{found[what][name] / 2**20:.3g}" for name in names]
            print(line(f"{data_set.name}: {what}, MiB", cells, ""), flush=True)
    return {"side": side, "rounds": rounds, "results": results}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.writing",
        description="Writes of ours beside zarr-python, zarrs in zarr-python, and TensorStore, in one run.",
    )
    parser.add_argument("--quick", action="store_true", help="a volume of 256 cubed and 3 rounds")
    parser.add_argument("--rounds", type=int, help="rounds (7)")
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds for a data set, then no more rounds (60)"
    )
    parser.add_argument(
        "--directory", type=Path, default=default_directory(), help="where to write (%(default)s)"
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="only data sets whose name has this in it")
    parser.add_argument(
        "--contenders",
        metavar="NAMES",
        default="; ".join(list(WRITERS)[:3]),
        help=f"of {', '.join(WRITERS)}; separate by ; (%(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all timings there as well")
    options = parser.parse_args()
    names = [name.strip() for name in options.contenders.split(";") if name.strip()]
    unknown = set(names) - set(WRITERS)
    if unknown:
        parser.error(f"unknown contenders: {', '.join(sorted(unknown))}")
    side = 256 if options.quick else VOLUME
    rounds = options.rounds or (3 if options.quick else 7)
    results = run(side, rounds, names, options.only, options.budget, options.directory)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
