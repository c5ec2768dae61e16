"""Counts of the work of zarrfs: system calls, decoded chunks and instructions of single reads.

Unlike times they hardly depend on other load of the machine, so that a regression is visible on any machine. ``strace``
counts the system calls and ``valgrind`` the instructions; a count is left out if the program is not installed. Each
program runs twice, without the read and with many repetitions of it. The difference is the work of the read. The number
of repetitions is such that their work is far larger than what varies between two processes; the hash seed is fixed, the
garbage collector does not run, and addresses are not random where ``setarch`` is installed.

``python -m benchmarks.counts CHILD ...`` is the program that is counted.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contenders import selections
from benchmarks.engine import scratch_directory
from benchmarks.plan import SMALL_SIDE, DataSet, Read

__all__ = ["COUNTED", "count_all", "counted_sets"]


class CountedRead(NamedTuple):
    """A read that is counted, whether the default cache is used, and how often the read is repeated."""

    data_set: DataSet
    read: Read
    is_cached: bool
    repeats: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.data_set.name}: {self.read.name}" + (", cached" if self.is_cached else "")


_CHUNKS = DataSet(SMALL_SIDE, 10, None, "Blosc-LZ4")
_SHARD = DataSet(SMALL_SIDE, 10, SMALL_SIDE, "Blosc-LZ4")

COUNTED = (
    CountedRead(_CHUNKS, Read("one voxel"), False, 1000),
    CountedRead(_CHUNKS, Read("one voxel"), True, 4000),
    CountedRead(_SHARD, Read("one voxel"), False, 1000),
    CountedRead(_SHARD, Read("one voxel"), True, 4000),
    CountedRead(_CHUNKS, Read("plane", 0), False, 100),
    CountedRead(_CHUNKS, Read("full read"), False, 20),
    CountedRead(_SHARD, Read("full read"), False, 20),
    CountedRead(_CHUNKS, Read("open"), False, 200),
)


def counted_sets() -> list[DataSet]:
    """Return the data sets that ``count_all`` reads."""
    return [_CHUNKS, _SHARD]


def count_all(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Count all reads. The data sets exist."""
    counters: dict[str, Callable[[list[str]], int]] = {}
    if shutil.which("strace"):
        counters["system calls"] = _system_calls
    if shutil.which("valgrind"):
        counters["instructions"] = _instructions
    results = []
    # Counts do not depend on what runs at the same time.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        pending = {
            (case, name, repeats): pool.submit(counter, _child(case, repeats))
            for case in COUNTED
            for name, counter in counters.items()
            for repeats in (0, case.repeats)
        }
        for case in COUNTED:
            progress(f"counting: {case.name}")
            decoded = subprocess.run(_child(case, case.repeats), capture_output=True, text=True, check=True)
            result = {
                "read": case.name,
                "decoded chunks": round(json.loads(decoded.stdout) / case.repeats, 1),
            }
            for name in counters:
                base, total = (pending[case, name, repeats].result() for repeats in (0, case.repeats))
                result[name] = round((total - base) / case.repeats)
            results.append(result)
    return results


def _child(case: CountedRead, repeats: int) -> list[str]:
    directory = str(scratch_directory() / case.data_set.directory)
    arguments = [directory, case.read.kind, str(case.read.axis), str(int(case.is_cached)), str(repeats)]
    return [sys.executable, "-W", "ignore", "-m", "benchmarks.counts", *arguments]


def _system_calls(command: list[str]) -> int:
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "strace"
        subprocess.run(["strace", "-f", "-c", "-o", output, *command], check=True, capture_output=True)
        total = next(line for line in output.read_text().splitlines() if line.endswith(" total"))
    return int(total.split()[3])


def _instructions(command: list[str]) -> int:
    options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    # The order of sets, and with it the work, depends on the hash seed. The threads of OpenBLAS, which NumPy starts,
    # wait in a loop for some time: their instructions would differ between two processes by millions.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    prefix = ["setarch", "-R"] if shutil.which("setarch") else []
    done = subprocess.run(
        [*prefix, "valgrind", *options, *command],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"valgrind failed:\n{done.stderr}")
    return int(found[1].replace(",", ""))


def main(directory: str, kind: str, axis: str, is_cached: str, repeats: str) -> None:
    """Read the first selection twice, then ``repeats`` times. Print how many chunks the repetitions decoded."""
    import zarrfs
    from zarrfs.engine.counters import decoded
    from zarrfs.engine.parallel import limit_threads

    cache_size = None if is_cached == "1" else 0
    selection = selections(kind, None if axis == "None" else int(axis), SMALL_SIDE, 0)[0]
    array = zarrfs.open_array(directory, cache_size=cache_size)
    warm_up, before = 2, 0
    # With several threads the number of instructions depends on when each of them runs.
    gc.disable()
    with limit_threads(1):
        for number in range(warm_up + int(repeats)):
            if number == warm_up:
                before = decoded.chunks
            if kind == "open":
                zarrfs.open_array(directory, cache_size=cache_size)
            else:
                array[selection]
    print(decoded.chunks - before if int(repeats) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
