"""The read benchmark: creates the data and lets all contenders read all data sets in turn."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS, LIMIT
from benchmarks.plan import DataSet, Read, reads
from benchmarks.workers import Worker, rotated
from zarrfs import synthetic

__all__ = [
    "IMPORTS",
    "Budget",
    "describe",
    "installed_environment",
    "line",
    "machine",
    "make_data",
    "ratio",
    "run_reads",
    "scratch_directory",
    "summarize",
    "time_imports",
]

IMPORTS = ("numpy", "zarrfs", "zarr", "tensorstore")

MIN_ROUNDS = 3
MIN_SHORT_ROUNDS = 9
MAX_ROUNDS = 15
MAX_SMALL_ROUNDS = 60
"""Rounds of each read: at least the first number, of planes at least the second one, and then until the time of the
data set is used up. With fewer rounds the ratios of planes, which take milliseconds, would be random.
"""

SLOW_RATIO = 6
"""A contender that takes so many times as long as the fastest one in the warm-up is measured once only."""

SECONDS_PER_FULL_ROUND = {"none": 0.9, "Blosc-LZ4": 1.0, "Blosc-zstd": 1.6, "zstd": 1.7, "gzip": 2.6}
"""A rough estimate, by which the time is divided between the data sets."""


class Budget:
    """Divides a total time between tasks of different weight. A task that ends early leaves its time to the others."""

    def __init__(self, seconds: float, weights: Sequence[float]) -> None:
        self._deadline = time.monotonic() + seconds
        self._left = list(weights)

    def next(self) -> float:
        """Return the seconds of the next task."""
        share = self._left[0] / sum(self._left)
        self._left.pop(0)
        return max(0.0, (self._deadline - time.monotonic()) * share)


def scratch_directory() -> Path:
    """Return the directory of the data: $ZARRFS_BENCHMARKS, or a directory in the cache directory of the user."""
    configured = os.environ.get("ZARRFS_BENCHMARKS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(configured) if configured else cache / "zarrfs-benchmarks"


def make_data(selected: list[DataSet], scratch: Path) -> None:
    """Write the data sets that do not exist. TensorStore writes them, so that they are not tuned to zarrfs."""
    import tensorstore

    scratch.mkdir(parents=True, exist_ok=True)
    volumes: dict[int, Any] = {}
    for data_set in selected:
        target = scratch / data_set.directory
        if target.exists():
            continue
        if data_set.side not in volumes:
            side = data_set.side
            volumes[side] = synthetic.volume((side, side, side), seed=1)
        print(f"writing {target}", file=sys.stderr)
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": str(partial)},
            "metadata": data_set.metadata(),
        }
        tensorstore.open(spec, create=True).result().write(volumes[data_set.side]).result()
        partial.rename(target)


def run_reads(
    selected: list[DataSet],
    names: list[str],
    seconds: float,
    report: Callable[[str], None],
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Let the contenders read the data sets, which exist, in about ``seconds`` seconds. Return the summarized results.

    ``report`` is called with each line of the table, and ``progress`` with the name of each read before it begins.
    """
    report(line("milliseconds, median", names, "best peer / zarrfs; zarrfs / limit"))
    report(line("", ["---"] * len(names), "---", fill="-"))
    weights = [
        4.0 if s.is_small else SECONDS_PER_FULL_ROUND[s.codec] * (64 / s.chunk) ** 0.5 * 8 for s in selected
    ]
    budget = Budget(seconds, weights)
    results = []
    workers = {name: Worker("benchmarks.contenders", name) for name in names}
    try:
        for data_set in selected:
            chosen = reads(data_set)
            # A full read takes about four times as long as the other reads together.
            shares = Budget(budget.next(), [4.0] + [1.0] * (len(chosen) - 1))
            for read in chosen:
                progress(f"{data_set.name}: {read.name}")
                result = _measure(data_set, read, workers, shares.next())
                results.append(result)
                medians = {name: timing["median"] / 1000 for name, timing in result["contenders"].items()}
                cells = [f"{1000 * medians[name]:.3g}" if name in medians else "" for name in names]
                report(line(f"{data_set.name}: {read.name}", cells, ratio(medians)))
    finally:
        for worker in workers.values():
            worker.close()
    return results


def _measure(data_set: DataSet, read: Read, workers: dict[str, Worker], seconds: float) -> dict[str, Any]:
    """Measure one read in interleaved rounds. The first round is a warm-up, in which the values are compared."""
    directory = str(scratch_directory() / data_set.directory)
    names = [
        name for name in workers if name != LIMIT or read.kind not in ("open", "one voxel", "region again")
    ]
    timings: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    peaks = dict.fromkeys(names, 0)
    checksums = {}
    deadline = time.monotonic() + seconds
    max_rounds = MAX_SMALL_ROUNDS if data_set.is_small else MAX_ROUNDS
    min_rounds = MIN_SHORT_ROUNDS if "plane" in read.kind else MIN_ROUNDS
    warm_up: dict[str, float] = {}
    for number in range(max_rounds + 1):
        if number > min_rounds and time.monotonic() > deadline:
            break
        for name in rotated(names, number):
            if number > 1 and warm_up.get(name, 0.0) > SLOW_RATIO * min(warm_up.values()):
                continue
            answer = workers[name].request(directory, read.kind, read.axis, data_set.side, number)
            peaks[name] = max(peaks[name], answer["peak"])
            if number:
                timings[name].append(answer["seconds"])
                cpu[name].append(answer["cpu"])
                continue
            if name != LIMIT:
                warm_up[name] = answer["seconds"]
                checksums[name] = answer["checksum"]
    if len(set(checksums.values())) > 1:
        raise SystemExit(f"{data_set.name}, {read.name}: the contenders read different values: {checksums}")
    return {
        "data": data_set.name,
        "task": read.name,
        "contenders": {
            name: {
                **summarize(timings[name]),
                "cpu": summarize(cpu[name])["median"],
                "peak": round(peaks[name] / 2**20, 1),
            }
            for name in names
        },
    }


def summarize(seconds: list[float]) -> dict[str, Any]:
    """Return the median and the quartiles in milliseconds, and the number of values."""
    quartiles = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
    return {
        "median": _rounded(1000 * statistics.median(seconds)),
        "low": _rounded(1000 * quartiles[0]),
        "high": _rounded(1000 * quartiles[2]),
        "rounds": len(seconds),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def installed_environment() -> dict[str, str]:
    """Return the environment of processes that are measured: compiled modules are stored, as an installation does."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def time_imports(repeats: int) -> dict[str, float]:
    """Return the median seconds to import each package, without the time to start Python."""
    seconds_by_name: dict[str, list[float]] = {name: [] for name in ("", *IMPORTS)}
    environment = installed_environment()  # The first round compiles the modules and is not counted.
    for _ in range(repeats + 1):
        for name, seconds in seconds_by_name.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", f"import {name}" if name else ""], check=True, env=environment
            )
            seconds.append(time.perf_counter() - start)
    medians = {name: statistics.median(seconds[1:]) for name, seconds in seconds_by_name.items()}
    return {name: round(medians[name] - medians[""], 4) for name in IMPORTS}


def machine() -> dict[str, Any]:
    """Return the properties of the machine and the versions of the packages."""
    versions = {}
    for package in ("zarrfs", "numpy", "numcodecs", "zarr", "zarrs", "tensorstore"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    cores = len(os.sched_getaffinity(0))
    return {
        "cores": cores,
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def describe(side: int) -> str:
    """Return a description of the data, the machine and the versions."""
    properties = machine()
    versions = ", ".join(f"{name} {number}" for name, number in properties["versions"].items())
    return (
        f"a uint16 volume of {side} cubed with noisy nuclei, Zarr v3; {properties['cores']} cores of "
        f"{properties['processor']}, Python {properties['python']}\n{versions}\n"
    )


def line(label: str, cells: list[str], last: str, fill: str = " ") -> str:
    """Return one line of the table."""
    return (
        f"| {label:{fill}<58} | "
        + " | ".join(f"{cell:{fill}>16}" for cell in cells)
        + f" | {last:{fill}<24} |"
    )


def ratio(seconds: dict[str, float]) -> str:
    """Return the time of the fastest peer divided by that of each zarrfs contender: above 1, zarrfs is faster. If the
    limit was measured, also the time of the last of them divided by the limit.
    """
    peers = {n: value for n, value in seconds.items() if not n.startswith("zarrfs") and n != LIMIT}
    zarrfs_seconds = [value for name, value in seconds.items() if name.startswith("zarrfs")]
    if not zarrfs_seconds or not peers:
        return ""
    fastest = min(peers, key=lambda name: peers[name])
    text = f"{fastest}: " + ", ".join(f"{peers[fastest] / value:.2f}" for value in zarrfs_seconds)
    return text + (f"; {zarrfs_seconds[-1] / seconds[LIMIT]:.2f}" if LIMIT in seconds else "")


ALL_CONTENDERS = list(CONTENDERS)
