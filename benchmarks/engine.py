"""The read benchmark: creates the data, runs all contenders on all data sets, measures imports, and prints a table."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.plan import SMALL_SIDE, DataSet, data_sets, reads
from zarrfs import synthetic

__all__ = ["IMPORTS", "describe", "line", "make_data", "ratio", "run", "scratch_directory"]

IMPORTS = ("numpy", "zarrfs", "zarr", "tensorstore")


def scratch_directory() -> Path:
    """Return the directory of the data: $ZARRFS_BENCHMARKS, or a directory in the cache directory of the user."""
    configured = os.environ.get("ZARRFS_BENCHMARKS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(configured) if configured else cache / "zarrfs-benchmarks"


def make_data(selected: list[DataSet], scratch: Path) -> None:
    """Write the data sets that do not exist. TensorStore writes them, so that they are not tuned to zarrfs."""
    import tensorstore

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


def run(
    side: int,
    repeats: int,
    contenders: list[str],
    is_selected: Callable[[DataSet], bool],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Run the benchmark, report each line of the table when it is complete, and return all results."""
    selected = [data_set for data_set in data_sets(side) if is_selected(data_set)]
    scratch = scratch_directory()
    scratch.mkdir(parents=True, exist_ok=True)
    make_data(selected, scratch)
    report(_heading(side, repeats))
    report(line("milliseconds, median", contenders, "fastest peer / zarrfs"))
    report(line("", ["---"] * len(contenders), "---", fill="-"))
    results = []
    for data_set in selected:
        measurements = {
            name: _measure(name, data_set, scratch / data_set.directory, repeats) for name in contenders
        }
        for read in reads(data_set):
            timings = {name: measurements[name]["reads"][read.key] for name in contenders}
            if len({timing["checksum"] for timing in timings.values()}) > 1:
                raise SystemExit(
                    f"{data_set.name}, {read.name}: the contenders read different values: {timings}"
                )
            seconds = {name: statistics.median(timing["seconds"]) for name, timing in timings.items()}
            label = f"{data_set.name}: {read.name}"
            report(line(label, [f"{1000 * seconds[name]:.3g}" for name in contenders], ratio(seconds)))
            results.append(
                {"data": data_set.name, "side": data_set.side, "task": read.name, "seconds": timings}
            )
        peaks = [f"{measurements[name]['peak'] / 2**20:.0f}" for name in contenders]
        report(line(f"{data_set.name}: peak memory, MiB", peaks, ""))
    imports = time_imports(repeats=max(5, repeats))
    report("\nimport, ms: " + ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in imports.items()))
    return {"machine": machine(), "side": side, "repeats": repeats, "results": results, "imports": imports}


def _measure(name: str, data_set: DataSet, directory: Path, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.contenders", name, str(directory)]
    # Tasks that take milliseconds are repeated more often.
    repetitions = repeats * 5 if data_set.side == SMALL_SIDE else repeats
    command += [str(data_set.side), str(repetitions), *(read.key for read in reads(data_set))]
    completed = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(completed.stdout)
    return result


def time_imports(repeats: int) -> dict[str, float]:
    """Return the median seconds to import each package, without the time to start Python."""
    seconds_by_name: dict[str, list[float]] = {name: [] for name in ("", *IMPORTS)}
    # The first round compiles the modules, as an installation does, and is not counted.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats + 1):
        for name, seconds in seconds_by_name.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", f"import {name}" if name else ""], check=True, env=environment
            )
            seconds.append(time.perf_counter() - start)
    medians = {name: statistics.median(seconds[1:]) for name, seconds in seconds_by_name.items()}
    return {name: medians[name] - medians[""] for name in IMPORTS}


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


def _heading(side: int, repeats: int) -> str:
    return describe(side) + (
        f"Each contender runs in its own process with {repeats} repetitions. The array is opened again before each "
        "repetition, without cached chunks. The files are in the page cache.\n"
        "'zarrfs' uses its default cache of decoded chunks; 'zarrfs, no cache' is opened with cache_size=0, because "
        "TensorStore and zarr-python do not cache decoded chunks.\n"
    )


def line(label: str, cells: list[str], last: str, fill: str = " ") -> str:
    """Return one line of the table."""
    return (
        f"| {label:{fill}<58} | "
        + " | ".join(f"{cell:{fill}>16}" for cell in cells)
        + f" | {last:{fill}<24} |"
    )


def ratio(seconds: dict[str, float]) -> str:
    """Return the time of the fastest peer divided by that of each zarrfs contender. Above 1, zarrfs is faster."""
    peers = {name: value for name, value in seconds.items() if not name.startswith("zarrfs")}
    zarrfs_seconds = [value for name, value in seconds.items() if name.startswith("zarrfs")]
    if not zarrfs_seconds or not peers:
        return ""
    fastest = min(peers, key=lambda name: peers[name])
    return f"{fastest}: " + ", ".join(f"{peers[fastest] / value:.2f}" for value in zarrfs_seconds)


ALL_CONTENDERS = list(CONTENDERS)
