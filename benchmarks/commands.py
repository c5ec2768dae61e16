"""The benchmark of short commands: ``python -m benchmarks.commands``.

It measures the time of whole processes, start of Python included: ``zarrfs --help``, ``zarrfs info``, ``zarrfs tree``
of a hierarchy of 10 000 nodes with and without consolidated metadata, the import of zarrfs and of NumPy, and the same
listing with zarr-python. The tasks alternate, in another order in each round. Medians and quartiles are shown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.engine import describe, installed_environment
from benchmarks.workers import rotated

__all__ = ["commands", "make_hierarchy", "measure", "table"]

GROUPS = 100
ARRAYS_PER_GROUP = 99
ROUNDS = 7

TARGETS = {
    "import zarrfs": "NumPy + 0.04",
    "zarrfs --help": "0.15",
    "zarrfs info": "0.25",
    "zarrfs tree, 10 000 nodes": "2",
    "zarrfs tree, consolidated": "0.3",
}

LIST_WITH_ZARR = (
    "import sys, zarr; group = zarr.open_group(sys.argv[1], mode='r', use_consolidated={consolidated});"
    "print(sum(1 for _ in group.members(max_depth=None)))"
)


def make_hierarchy(directory: Path) -> int:
    """Write a Zarr v3 hierarchy of empty arrays and return the number of its nodes, the root group included."""
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    array = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [100, 100],
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 10]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"unit": "counts"},
    }
    nodes: dict[str, dict[str, Any]] = {"": group}
    for i in range(GROUPS):
        nodes[f"group{i:03}"] = group
        nodes |= {f"group{i:03}/array{j:02}": array for j in range(ARRAYS_PER_GROUP)}
    for path, document in nodes.items():
        folder = directory / path
        folder.mkdir(parents=True)
        (folder / "zarr.json").write_text(json.dumps(document), encoding="utf-8")
    return len(nodes)


def consolidate(directory: Path) -> None:
    """Write consolidated metadata."""
    run([sys.executable, "-m", "zarrfs", "consolidate", str(directory)])


def commands(plain: Path, consolidated: Path) -> dict[str, list[str]]:
    """Return the command of each task."""
    python = sys.executable
    zarrfs = [python, "-m", "zarrfs"]
    array = str(plain / "group000" / "array00")
    return {
        "import numpy": [python, "-c", "import numpy"],
        "import zarrfs": [python, "-c", "import zarrfs"],
        "zarrfs --help": [*zarrfs, "--help"],
        "zarrfs info": [*zarrfs, "info", array],
        "zarrfs tree, 10 000 nodes": [*zarrfs, "tree", str(plain)],
        "zarrfs tree, consolidated": [*zarrfs, "tree", "--consolidated", str(consolidated)],
        "zarr-python members, 10 000 nodes": [
            python,
            "-c",
            LIST_WITH_ZARR.format(consolidated=False),
            str(plain),
        ],
        "zarr-python members, consolidated": [
            python,
            "-c",
            LIST_WITH_ZARR.format(consolidated=True),
            str(consolidated),
        ],
    }


def run(command: list[str]) -> float:
    """Run a command and return its seconds. Raises SystemExit with its messages if it fails."""
    start = time.perf_counter()
    done = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=installed_environment(),
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return seconds


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each task in each round. A first round, which compiles modules, is not counted."""
    directory = Path(tempfile.mkdtemp(prefix="zarrfs-commands-"))
    plain, consolidated = directory / "plain.zarr", directory / "consolidated.zarr"
    try:
        make_hierarchy(plain)
        make_hierarchy(consolidated)
        consolidate(consolidated)
        chosen = commands(plain, consolidated)
        seconds: dict[str, list[float]] = {name: [] for name in chosen}
        for number in range(rounds + 1):
            for name in rotated(list(chosen), number):
                elapsed = run(chosen[name])
                if number:
                    seconds[name].append(elapsed)
    finally:
        shutil.rmtree(directory)
    return seconds


def table(seconds: dict[str, list[float]]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| seconds | median | quartiles | target |", "|---|---:|---:|---:|"]
    for name, values in seconds.items():
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        lines.append(f"| {name} | {median:.3f} | {low:.3f} to {high:.3f} | {TARGETS.get(name, '')} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.commands",
        description="Measure short commands of zarrfs, start of Python included.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 2 (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results to FILE")
    options = parser.parse_args()
    seconds = measure(max(2, options.rounds))
    print(describe(0).split("; ", 1)[1])
    print(table(seconds))
    if options.json:
        options.json.write_text(json.dumps(seconds, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
