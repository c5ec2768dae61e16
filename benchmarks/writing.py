"""The write benchmark: ``python -m benchmarks.writing``.

Each contender runs in one process per data set. The contenders alternate at each task, in another order in each round,
so that other load on the machine affects all of them equally. Medians are shown. TensorStore reads the written values,
which must be equal for all contenders.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine import describe, line, ratio, scratch_directory
from benchmarks.plan import SMALL_SIDE, VOLUME_SIDE, DataSet, written_sets
from benchmarks.workers import Worker, rotated
from benchmarks.writers import WRITERS
from zarrfs import synthetic

MIN_ROUNDS = 3
SMALL_ROUNDS_FACTOR = 5
"""Tasks of the small volume take milliseconds. They are repeated more often by this factor."""


def tasks(data_set: DataSet) -> list[str]:
    """Return the tasks in order. Each task writes to the array that the previous tasks have written."""
    if data_set.side == SMALL_SIDE:
        return ["everything", "overwriting", "one voxel"]
    return ["everything", "overwriting", *(f"plane:{axis}" for axis in range(3))]


def task_name(task: str) -> str:
    """Return the name of a task in tables."""
    kind, _, axis = task.partition(":")
    return f"{kind} along {'zyx'[int(axis)]}" if axis else kind


def volume_file(side: int) -> Path:
    """Return the file of the data to be written. It is created on the first call."""
    path = scratch_directory() / f"volume-{side}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npy")
        np.save(partial, synthetic.volume((side, side, side), seed=1))
        partial.rename(path)
    return path


def make_empty(directory: Path, data_set: DataSet) -> None:
    """Write the metadata document of an array without chunks. It is equal for all contenders."""
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
    """Return the number of stored bytes."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def default_directory() -> Path:
    """Return the directory to write to: a file system in memory if there is one.

    On a disk, each round would be slowed by the previous one. ext4 scans all inodes that were freed in the last seconds
    when it creates a file, which takes up to a millisecond per file, and it writes back dirty pages.
    """
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else scratch_directory()


def measure(
    data_set: DataSet, names: list[str], rounds: int, budget: float, directory: Path
) -> dict[str, Any]:
    """Measure all contenders on a data set in ``rounds`` rounds, or in fewer (at least ``MIN_ROUNDS``) if they take
    more than ``budget`` seconds; in one round if ``budget`` is 0. The first round is a warm-up and is not counted.
    """
    task_keys = tasks(data_set)
    seconds: dict[str, dict[str, list[float]]] = {task: {name: [] for name in names} for task in task_keys}
    volume = volume_file(data_set.side)
    scratch = directory / "zarrfs-benchmarks-written"
    shutil.rmtree(scratch, ignore_errors=True)
    workers = {name: Worker("benchmarks.writers", name, str(volume)) for name in names}
    stored, peaks = {}, {}
    started = time.monotonic()
    min_rounds = MIN_ROUNDS if budget > 0 else 1
    try:
        for number in range(rounds + 1):
            if number > min_rounds and time.monotonic() - started > budget:
                break
            targets = {name: scratch / name.replace(" ", "-") for name in names}
            for target in targets.values():
                make_empty(target, data_set)
            for position, task in enumerate(task_keys):
                for name in rotated(names, number + position):
                    answer = workers[name].request(str(targets[name]), task, number)
                    peaks[name] = answer["peak"]
                    if number:
                        seconds[task][name].append(answer["seconds"])
            if number == 0:
                _check_equal_values(data_set, targets)
                stored = {name: stored_nbytes(target) for name, target in targets.items()}
            shutil.rmtree(scratch)
    finally:
        for worker in workers.values():
            worker.close()
        shutil.rmtree(scratch, ignore_errors=True)
    return {"seconds": seconds, "stored": stored, "peak": peaks}


def _check_equal_values(data_set: DataSet, targets: dict[str, Path]) -> None:
    checksums = {name: checksum(target) for name, target in targets.items()}
    if len(set(checksums.values())) > 1:
        raise SystemExit(f"{data_set.name}: the contenders wrote different values: {checksums}")


def run(
    side: int, rounds: int, names: list[str], only: str, budget: float, directory: Path
) -> dict[str, Any]:
    """Run the benchmark, print each line of the table when it is complete, and return all results."""
    print(
        describe(side)
        + f"Writes: medians of at most {rounds} rounds. Each contender runs in its own process, and they alternate.\n"
        "The array is opened again before each task, outside the measured time. All write a temporary file and\n"
        "rename it, without fsync and without locks between processes. Chunks that contain only the fill value\n"
        f"are not stored. Decoded chunks are not cached. The data is written to {directory}.\n"
    )
    print(line("milliseconds, median", names, "fastest peer / zarrfs"))
    print(line("", ["---"] * len(names), "---", fill="-"), flush=True)
    results = []
    for data_set in written_sets(side):
        if only.lower() not in data_set.name.lower():
            continue
        repetitions = rounds * SMALL_ROUNDS_FACTOR if data_set.side == SMALL_SIDE else rounds
        measurements = measure(data_set, names, repetitions, budget, directory)
        for task, timings in measurements["seconds"].items():
            medians = {name: statistics.median(duration) for name, duration in timings.items()}
            label = f"{data_set.name}: {task_name(task)}"
            print(line(label, [f"{1000 * medians[name]:.3g}" for name in names], ratio(medians)), flush=True)
            results.append(
                {
                    "data": data_set.name,
                    "side": data_set.side,
                    "task": task_name(task),
                    "seconds": {name: {"seconds": duration} for name, duration in timings.items()},
                }
            )
        for quantity in ("stored", "peak"):
            cells = [f"{measurements[quantity][name] / 2**20:.3g}" for name in names]
            print(line(f"{data_set.name}: {quantity}, MiB", cells, ""), flush=True)
    return {"side": side, "rounds": rounds, "results": results}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.writing",
        description="Compare writes of zarrfs, zarr-python, zarr-python with zarrs, and TensorStore.",
    )
    parser.add_argument("--quick", action="store_true", help="a volume of 256 cubed and 3 rounds")
    parser.add_argument("--rounds", type=int, help="number of rounds (default: 7)")
    parser.add_argument(
        "--budget",
        type=float,
        default=60.0,
        help="seconds per data set after which no more rounds start (default: 60)",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=default_directory(),
        help="the directory to write to (default: %(default)s)",
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="only data sets whose name contains TEXT")
    parser.add_argument(
        "--contenders",
        metavar="NAMES",
        default="; ".join(list(WRITERS)[:3]),
        help=f"implementations, separated by ';': {', '.join(WRITERS)} (default: %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write all timings to FILE")
    options = parser.parse_args()
    names = [name.strip() for name in options.contenders.split(";") if name.strip()]
    unknown = set(names) - set(WRITERS)
    if unknown:
        parser.error(f"unknown contenders: {', '.join(sorted(unknown))}")
    side = 256 if options.quick else VOLUME_SIDE
    rounds = options.rounds or (3 if options.quick else 7)
    results = run(side, rounds, names, options.only, options.budget, options.directory)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
