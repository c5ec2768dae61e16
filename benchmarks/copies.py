"""The benchmark of ``copy``, ``convert`` and ``rechunk``: ``python -m benchmarks.copies``.

Each operation is compared with its parts: reading the whole source, and writing the same values to an array with the
metadata of the result. For a copy the parts are reading and writing the bytes of all files. The operation and its parts
alternate. Wall-clock time and processor time are shown; the processor time depends less on other load.

The volume is repeated along the first axis. Source and result are in memory (``/dev/shm``), if there is enough.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from benchmarks.contenders import memory, reset_peak_memory
from benchmarks.engine import describe, line
from benchmarks.writing import default_directory, volume_file
from zarrfs import tools

__all__ = ["OPERATIONS", "measure", "table"]

SIDE = 512
CHUNKS = (64, 64, 64)
READ_NBYTES = 256 << 20
"""The parts are read and written in slabs of this size, as a program with limited memory does."""

Operation = Callable[[Path, Path], object]

OPERATIONS: dict[str, Operation] = {
    "copy": tools.copy_store,
    "convert to Zarr v2": lambda source, target: tools.convert(source, target, zarr_format=2),
    "convert to zstd": lambda source, target: tools.convert(source, target, compressors="zstd"),
    "convert to N5": lambda source, target: tools.convert(source, target, zarr_format="n5"),
    "rechunk to 128": lambda source, target: tools.rechunk(source, target, (128, 128, 128)),
    "rechunk to planes": lambda source, target: tools.rechunk(source, target, (1, 512, 512)),
    "rechunk to shards": lambda source, target: tools.convert(
        source, target, chunks=(32, 32, 32), shards=(256, 256, 256)
    ),
}


def make_source(directory: Path, nbytes: int) -> Path:
    """Write the source array and return its directory."""
    volume = np.load(volume_file(SIDE))
    count = max(1, nbytes // volume.nbytes)
    path = directory / "source.zarr"
    codecs = [
        "bytes",
        {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}},
    ]
    array = zarrfs.create_array(
        path,
        shape=(count * SIDE, SIDE, SIDE),
        dtype=volume.dtype,
        chunks=CHUNKS,
        codecs=codecs,
        zarr_format=3,
    )
    for number in range(count):
        array[number * SIDE : (number + 1) * SIDE] = volume
    return path


def read_and_write(source: Path, result: Path, target: Path) -> None:
    """Read all values of ``source``, and write them to ``target`` with the metadata of ``result``."""
    read = zarrfs.open_array(source, cache_size=0)
    write = zarrfs.open_like(zarrfs.open_array(result), target, mode="w", cache_size=0)
    rows = max(1, READ_NBYTES // (read.nbytes // read.shape[0]))
    for low in range(0, read.shape[0], rows):
        write[low : low + rows] = read[low : low + rows]


def copy_files(source: Path, target: Path) -> None:
    """Copy all files, one after the other."""
    shutil.copytree(source, target)


def measure(name: str, source: Path, directory: Path, rounds: int) -> dict[str, Any]:
    """Return the seconds of an operation and of its parts, and the peak memory of the operation in MiB."""
    seconds: dict[str, list[float]] = {key: [] for key in ("operation", "parts", "cpu", "parts_cpu")}
    result, target = directory / "result.zarr", directory / "parts.zarr"
    peak = 0
    for number in range(rounds + 1):
        shutil.rmtree(result, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        reset_peak_memory()
        before = memory("VmRSS")
        wall, cpu = _time(lambda: OPERATIONS[name](source, result))
        peak = max(peak, memory("VmHWM") - before)
        if name == "copy":
            parts = _time(lambda: copy_files(source, target))
        else:
            parts = _time(lambda: read_and_write(source, result, target))
        if number:
            for key, value in zip(seconds, (wall, parts[0], cpu, parts[1]), strict=True):
                seconds[key].append(value)
        else:
            _check_equal(source, result)
    shutil.rmtree(result)
    shutil.rmtree(target)
    return {"operation": name, "seconds": seconds, "peak": round(peak / 2**20, 1)}


def _check_equal(source: Path, result: Path) -> None:
    one, other = zarrfs.open_array(source, cache_size=0), zarrfs.open_array(result, cache_size=0)
    for low in range(0, one.shape[0], SIDE):
        if not np.array_equal(one[low : low + SIDE], other[low : low + SIDE]):
            raise SystemExit(f"{result}: the values differ from those of {source}")


def _time(function: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def table(results: list[dict[str, Any]]) -> list[list[str]]:
    """Return the cells of the table: name, seconds, seconds of the parts, both ratios, and memory."""
    rows = []
    for result in results:
        medians = {key: statistics.median(values) for key, values in result["seconds"].items()}
        rows.append(
            [
                result["operation"],
                f"{medians['operation']:.2f}",
                f"{medians['parts']:.2f}",
                f"{medians['operation'] / medians['parts']:.2f}",
                f"{medians['cpu'] / medians['parts_cpu']:.2f}",
                f"{result['peak']:.0f}",
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.copies",
        description="Compare copy, convert and rechunk with reading the source and writing the result.",
    )
    parser.add_argument("--mib", type=int, default=2048, help="size of the source (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (default: %(default)s)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only operations whose name contains TEXT")
    parser.add_argument(
        "--directory",
        type=Path,
        default=default_directory(),
        help="the directory to write to (default: %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write all timings to FILE")
    options = parser.parse_args()
    scratch = options.directory / "zarrfs-benchmarks-copies"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    results = []
    try:
        print(
            describe(SIDE)
            + f"{options.mib} MiB, Blosc-LZ4, chunks of 64; medians of {options.rounds} rounds\n"
        )
        print(line("seconds", ["operation", "read and write", "ratio", "ratio of CPU"], "peak memory, MiB"))
        source = make_source(scratch, options.mib << 20)
        for name in OPERATIONS:
            if options.only.lower() in name.lower():
                results.append(measure(name, source, scratch, options.rounds))
                cells = table(results[-1:])[0]
                print(line(cells[0], cells[1:-1], cells[-1]), flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
