"""The command: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import engine
from benchmarks.plan import VOLUME


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Reads of ours beside zarr-python, zarrs in zarr-python, and TensorStore, in one run. "
        f"The data (about 4 GB) are made once, in {engine.scratch_directory()} or where $ZARRFS_BENCHMARKS says.",
    )
    parser.add_argument("--quick", action="store_true", help="a volume of 256 cubed and 3 repetitions")
    parser.add_argument("--repeats", type=int, help="repetitions (7)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only data sets whose name has this in it")
    parser.add_argument(
        "--contenders", metavar="NAMES", help=f"of {', '.join(engine.ALL_CONTENDERS)}; separate by ;"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all timings there as well")
    options = parser.parse_args()
    contenders = [name.strip() for name in (options.contenders or "").split(";") if name.strip()]
    unknown = set(contenders) - set(engine.ALL_CONTENDERS)
    if unknown:
        parser.error(f"unknown contenders: {', '.join(sorted(unknown))}")
    results = engine.run(
        256 if options.quick else VOLUME,
        options.repeats or (3 if options.quick else 7),
        contenders or engine.ALL_CONTENDERS,
        lambda data_set: options.only.lower() in data_set.name.lower(),
        lambda line: print(line, flush=True),
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
