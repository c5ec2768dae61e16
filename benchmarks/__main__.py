"""The command ``python -m benchmarks``: reads, writes and counts, in a limited time."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import counts, engine, writing
from benchmarks.plan import SMALL_SIDE, VOLUME_SIDE, DataSet, data_sets, written_sets
from benchmarks.writers import WRITERS

PARTS = {"reads": 0.66, "writes": 0.22, "counts": 0.12}
"""The parts, and which fraction of the time each of them takes."""

WRITE_ROUNDS = 5
WRITE_CONTENDERS = [name for name in WRITERS if name != "zarrs"]


class Progress:
    """A line on the standard error: the time since the beginning, the time limit, and what is being measured."""

    def __init__(self, minutes: float) -> None:
        self._begin = time.monotonic()
        self._minutes = minutes

    def __call__(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._begin), 60)
        ending = "\r" if sys.stderr.isatty() else "\n"
        shown = f"[{minutes}:{seconds:02} of {self._minutes:g}:00] {text}"
        print(f"{shown:<100}", end=ending, file=sys.stderr, flush=True)


def main() -> None:
    options = parse_arguments()
    side = 256 if options.quick else VOLUME_SIDE
    minutes = options.minutes or (3.0 if options.quick else 11.0)
    directory = engine.scratch_directory()
    selected = [data_set for data_set in data_sets(side) if options.only.lower() in data_set.name.lower()]
    written = [s for s in written_sets(side) if options.only.lower() in s.name.lower() and is_typical(s)]
    engine.make_data([*(selected if "reads" in options.parts else []), *counts.counted_sets()], directory)
    if "writes" in options.parts:
        for volume_side in sorted({data_set.side for data_set in written}):
            writing.volume_file(volume_side)
    progress = Progress(minutes)
    results: dict[str, Any] = {}
    if options.json and options.json.exists():
        earlier = json.loads(options.json.read_text(encoding="utf-8"))
        results = {name: earlier[name] for name in (*PARTS, "imports") if name in earlier}
    results |= {"machine": engine.machine(), "side": side, "load": [os.getloadavg()[0]]}
    print(engine.describe(side))
    total = sum(PARTS[part] for part in options.parts)
    for part in options.parts:
        seconds = 60 * minutes * PARTS[part] / total
        if part == "reads":
            results["reads"] = engine.run_reads(selected, options.contenders, seconds, report, progress)
        elif part == "writes":
            results["writes"] = run_writes(written, seconds, progress)
        else:
            results["counts"] = counts.count_all(progress)
            for result in results["counts"]:
                report(", ".join(f"{key} {value}" for key, value in result.items()))
            results["imports"] = engine.time_imports(repeats=5)
            report(f"import, seconds: {results['imports']}")
        results["load"][1:] = [os.getloadavg()[0]]
        if options.json:  # After each part, so that an interruption does not lose the others.
            options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    progress("done")
    if options.json:
        report(
            f"\nwritten: {options.json}; the tables and the chart: python -m benchmarks.report {options.json}"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare reads and writes of zarrfs, zarr-python, zarr-python with zarrs, and TensorStore, and "
        "count system calls, decoded chunks and instructions of zarrfs. "
        f"The data (about 4 GB) is created once in $ZARRFS_BENCHMARKS or {engine.scratch_directory()}.",
    )
    parser.add_argument("--quick", action="store_true", help="a volume of 256 cubed, 3 minutes")
    parser.add_argument(
        "--minutes", type=float, help="the time limit, after the data is created (default: 11)"
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="only data sets whose name contains TEXT")
    parser.add_argument(
        "--parts", metavar="NAMES", default=",".join(PARTS), help="some of: %(default)s (default: all)"
    )
    parser.add_argument(
        "--contenders",
        metavar="NAMES",
        default=";".join(engine.ALL_CONTENDERS),
        help="readers, separated by ';' (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=Path,
        help="write the results to FILE; parts that are not run are kept in it",
    )
    options = parser.parse_args()
    options.contenders = [name.strip() for name in options.contenders.split(";") if name.strip()]
    options.parts = [name.strip() for name in options.parts.split(",") if name.strip()]
    for kind, found, known in (
        ("contenders", options.contenders, engine.ALL_CONTENDERS),
        ("parts", options.parts, PARTS),
    ):
        if unknown := set(found) - set(known):
            parser.error(
                f"unknown {kind}: {', '.join(sorted(unknown))}; expected some of: {', '.join(known)}"
            )
    return options


def is_typical(data_set: DataSet) -> bool:
    """Return whether a data set is written here. ``python -m benchmarks.writing`` writes all of them."""
    if data_set.side == SMALL_SIDE:
        return True
    if data_set.shard is not None:
        return data_set.codec == "Blosc-LZ4" and data_set.shard != 128
    if data_set.codec == "Blosc-LZ4":
        return True
    return data_set.chunk == 64 and data_set.codec in ("none", "zstd")


def run_writes(written: list[DataSet], seconds: float, progress: Progress) -> list[dict[str, Any]]:
    """Measure the writes of the data sets in about ``seconds`` seconds. Return the summarized results."""
    names = WRITE_CONTENDERS
    report(engine.line("writes: milliseconds, median", names, "best peer / zarrfs"))
    budget = engine.Budget(seconds, [1.0 if s.is_small else 4.0 for s in written])
    results = []
    for data_set in written:
        progress(f"writing: {data_set.name}")
        rounds = WRITE_ROUNDS * (writing.SMALL_ROUNDS_FACTOR if data_set.is_small else 1)
        measured = writing.measure(data_set, names, rounds, budget.next(), writing.default_directory())
        for task, timings in measured["seconds"].items():
            summaries = {name: engine.summarize(durations) for name, durations in timings.items()}
            medians = {name: summary["median"] / 1000 for name, summary in summaries.items()}
            label = f"{data_set.name}: {writing.task_name(task)}"
            cells = [f"{1000 * medians[name]:.3g}" for name in names]
            report(engine.line(label, cells, engine.ratio(medians)))
            results.append({"data": data_set.name, "task": writing.task_name(task), "contenders": summaries})
    return results


def report(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
