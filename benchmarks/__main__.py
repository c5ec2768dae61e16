"""The command ``python -m benchmarks``: read benchmarks."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import engine
from benchmarks.plan import VOLUME_SIDE


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare reads of zarrfs, zarr-python, zarr-python with zarrs, and TensorStore. "
        f"The data (about 4 GB) is created once in $ZARRFS_BENCHMARKS or {engine.scratch_directory()}.",
    )
    parser.add_argument("--quick", action="store_true", help="a volume of 256 cubed and 3 repetitions")
    parser.add_argument("--repeats", type=int, help="number of repetitions (default: 7)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only data sets whose name contains TEXT")
    parser.add_argument(
        "--contenders",
        metavar="NAMES",
        help=f"implementations, separated by ';': {', '.join(engine.ALL_CONTENDERS)}",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write all timings to FILE")
    options = parser.parse_args()
    contenders = [name.strip() for name in (options.contenders or "").split(";") if name.strip()]
    unknown = set(contenders) - set(engine.ALL_CONTENDERS)
    if unknown:
        parser.error(f"unknown contenders: {', '.join(sorted(unknown))}")
    results = engine.run(
        256 if options.quick else VOLUME_SIDE,
        options.repeats or (3 if options.quick else 7),
        contenders or engine.ALL_CONTENDERS,
        lambda data_set: options.only.lower() in data_set.name.lower(),
        lambda line: print(line, flush=True),
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
