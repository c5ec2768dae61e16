"""Makes the data, runs every contender on every data set, times imports, and prints the table."""

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
from benchmarks.plan import SMALL, DataSet, data_sets, reads
from zarrfs import synthetic

__all__ = ["IMPORTS", "describe", "line", "make_data", "ratio", "run", "scratch_directory"]

IMPORTS = ("numpy", "zarrfs", "zarr", "tensorstore")


def scratch_directory() -> Path:
    """Where the data are kept from one run to the next: $ZARRFS_BENCHMARKS, or below the user's cache directory."""
    given = os.environ.get("ZARRFS_BENCHMARKS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "zarrfs-benchmarks"


def make_data(wanted: list[DataSet], scratch: Path) -> None:
    """Write the data sets that are not there yet. TensorStore writes them: none of them is to our own measure."""
    import tensorstore

    volumes: dict[int, Any] = {}
    for data_set in wanted:
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
    chosen: Callable[[DataSet], bool],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Measure, report each line as it is known, and return everything."""
    wanted = [data_set for data_set in data_sets(side) if chosen(data_set)]
    scratch = scratch_directory()
    scratch.mkdir(parents=True, exist_ok=True)
    make_data(wanted, scratch)
    report(_heading(side, repeats))
    report(line("milliseconds, median", contenders, "best peer / each of ours"))
    report(line("", ["---"] * len(contenders), "---", fill="-"))
    results = []
    for data_set in wanted:
        found = {name: _measure(name, data_set, scratch / data_set.directory, repeats) for name in contenders}
        for read in reads(data_set):
            timings = {name: found[name]["reads"][read.key] for name in contenders}
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
        peaks = [f"{found[name]['peak'] / 2**20:.0f}" for name in contenders]
        report(line(f"{data_set.name}: peak memory, MiB", peaks, ""))
    imports = time_imports(repeats=max(5, repeats))
    report("\nimport, ms: " + ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in imports.items()))
    return {"machine": machine(), "side": side, "repeats": repeats, "results": results, "imports": imports}


def _measure(name: str, data_set: DataSet, directory: Path, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.contenders", name, str(directory)]
    # What takes milliseconds is repeated more often than what takes seconds.
    times = repeats * 5 if data_set.side == SMALL else repeats
    command += [str(data_set.side), str(times), *(read.key for read in reads(data_set))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def time_imports(repeats: int) -> dict[str, float]:
    """Seconds to start Python and import each package, less those to start Python alone; medians."""
    taken: dict[str, list[float]] = {name: [] for name in ("", *IMPORTS)}
    # The first round leaves compiled modules behind, as an installation does, and does not count.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats + 1):
        for name, seconds in taken.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", f"import {name}" if name else ""], check=True, env=environment
            )
            seconds.append(time.perf_counter() - start)
    medians = {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}
    return {name: medians[name] - medians[""] for name in IMPORTS}


def machine() -> dict[str, Any]:
    """What the numbers were measured on and with."""
    versions = {}
    for package in ("zarrfs", "numpy", "numcodecs", "zarr", "zarrs", "tensorstore"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
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
    """Say what is measured on what, and with which versions."""
    about = machine()
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (
        f"{side} cubed uint16 of noisy nuclei, Zarr v3; {about['cores']} cores of {about['processor']}, "
        f"Python {about['python']}\n{versions}\n"
    )


def _heading(side: int, repeats: int) -> str:
    return describe(side) + (
        f"Each contender in its own process, {repeats} repetitions, the array opened anew before each "
        "(nothing decoded is left over), files in the page cache.\n"
        "'zarrfs' keeps decoded chunks as it does by default; 'zarrfs, no cache' was opened with cache_size=0, as "
        "TensorStore and zarr-python keep none.\n"
    )


def line(label: str, cells: list[str], last: str, fill: str = " ") -> str:
    """Return one line of the table."""
    return (
        f"| {label:{fill}<58} | "
        + " | ".join(f"{cell:{fill}>16}" for cell in cells)
        + f" | {last:{fill}<24} |"
    )


def ratio(seconds: dict[str, float]) -> str:
    """The time of the fastest peer against each of ours: above 1 we are ahead."""
    peers = {name: value for name, value in seconds.items() if not name.startswith("zarrfs")}
    ours = [value for name, value in seconds.items() if name.startswith("zarrfs")]
    if not ours or not peers:
        return ""
    best = min(peers, key=lambda name: peers[name])
    return f"{best}: " + ", ".join(f"{peers[best] / value:.2f}" for value in ours)


ALL_CONTENDERS = list(CONTENDERS)
