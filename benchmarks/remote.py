"""The benchmark of reads from a web server: ``python -m benchmarks.remote``.

A server on this machine answers each request after 20 ms (``--latency``). zarrfs, zarr-python and TensorStore read the
same arrays in turn, each in its own process, and each time the array is opened again. A time is shown in milliseconds
and in round trips, that is divided by the latency, with the number of requests. The values must be equal.
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
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from benchmarks import contenders
from benchmarks.engine import describe
from benchmarks.workers import Worker, rotated
from zarrfs import synthetic

__all__ = ["TASKS", "measure"]

SIDE = 256
CHUNKS = (64, 64, 64)
CODECS = ["bytes", {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}]
ROUNDS = 9

Read = Callable[[Any], Any]


def _tensorstore(url: str) -> Read:
    import tensorstore

    spec = {"driver": "zarr3", "kvstore": url + "/"}
    array = tensorstore.open(spec, context=tensorstore.Context(), open=True, read=True).result()
    return lambda selection: array[selection].read().result()


CONTENDERS: dict[str, Callable[[str], Read]] = {
    "zarrfs": lambda url: contenders.CONTENDERS["zarrfs, no cache"]()(url, []),
    "zarr-python": lambda url: contenders.CONTENDERS["zarr-python"]()(url, []),
    "TensorStore": _tensorstore,
}

WHOLE = (slice(None),) * 3
TASKS: dict[str, tuple[str, Any]] = {
    "open": ("chunks.zarr", None),
    "all 64 chunks": ("chunks.zarr", WHOLE),
    "plane of 16 chunks": ("chunks.zarr", (100, slice(None), slice(None))),
    "plane of a shard of 64 chunks": ("shard.zarr", (100, slice(None), slice(None))),
    "one voxel of a shard": ("shard.zarr", (100, 100, 100)),
}
"""The array and the selection of each task. Opening is measured separately and is not part of the other tasks."""


def work(name: str) -> None:
    """Answer requests ``[url, task]`` on the standard input: the seconds and a checksum of the values."""
    for line in sys.stdin:
        url, task = json.loads(line)
        selection = TASKS[task][1]
        start = time.perf_counter()
        read = CONTENDERS[name](url)
        print(json.dumps("opened"), flush=True)
        if selection is None:
            answer = {"seconds": time.perf_counter() - start, "checksum": 0}
        else:
            sys.stdin.readline()  # The server has been asked for the requests of the opening.
            start = time.perf_counter()
            values = read(selection)
            seconds = time.perf_counter() - start
            answer = {"seconds": seconds, "checksum": zlib.crc32(np.ascontiguousarray(values).data)}
        print(json.dumps(answer), flush=True)


def make_arrays(directory: Path) -> None:
    """Write an array with 64 chunks in files, and one with the same chunks in one shard."""
    volume = synthetic.volume((SIDE,) * 3, seed=1)
    for name, shards in (("chunks.zarr", None), ("shard.zarr", (SIDE,) * 3)):
        array = zarrfs.create_array(
            directory / name,
            shape=volume.shape,
            dtype=volume.dtype,
            chunks=CHUNKS,
            shards=shards,
            codecs=CODECS,
            zarr_format=3,
        )
        array[...] = volume


@contextmanager
def latency_server(directory: Path, latency: float) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Start the server. Yield its URL and a function that returns the requests since its previous call."""
    command = [sys.executable, "-m", "benchmarks.remote_server", str(directory), str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())

        def requests() -> list[str]:
            print(file=process.stdin, flush=True)
            assert process.stdout is not None
            found: list[str] = json.loads(process.stdout.readline())
            return found

        yield f"http://127.0.0.1:{port}", requests
        process.stdin.close()


def measure(latency: float, rounds: int) -> list[dict[str, Any]]:
    """Return, for each task and contender, the median seconds and the largest number of requests."""
    directory = Path(tempfile.mkdtemp(prefix="zarrfs-remote-"))
    results = []
    try:
        make_arrays(directory)
        with ExitStack() as stack:
            url, requests = stack.enter_context(latency_server(directory, latency))
            workers = {
                name: stack.enter_context(Worker("benchmarks.remote", "--worker", name))
                for name in CONTENDERS
            }
            for task, (array, selection) in TASKS.items():
                seconds: dict[str, list[float]] = {name: [] for name in workers}
                counts = dict.fromkeys(workers, 0)
                checksums = set()
                for number in range(rounds + 1):
                    for name in rotated(list(workers), number):
                        worker = workers[name]
                        requests()
                        worker.request(f"{url}/{array}", task)
                        opening = requests()
                        answer = worker.receive() if selection is None else worker.request("read")
                        found = opening if selection is None else requests()
                        checksums.add(answer["checksum"])
                        counts[name] = max(counts[name], len(found))
                        if number:  # The first round is a warm-up.
                            seconds[name].append(answer["seconds"])
                if len(checksums) > 1:
                    raise SystemExit(f"{task}: the contenders read different values")
                for name in workers:
                    median = statistics.median(seconds[name])
                    results.append(
                        {"task": task, "contender": name, "seconds": median, "requests": counts[name]}
                    )
    finally:
        shutil.rmtree(directory)
    return results


def table(results: list[dict[str, Any]], latency: float) -> str:
    """Return the results as a Markdown table: milliseconds (round trips, requests)."""
    by_task: dict[str, list[str]] = {}
    for result in results:
        text = f"{1000 * result['seconds']:.0f} ({result['seconds'] / latency:.1f}, {result['requests']})"
        by_task.setdefault(result["task"], []).append(text)
    lines = [
        f"| ms (round trips, requests) | {' | '.join(CONTENDERS)} |",
        "|---|" + "---:|" * len(CONTENDERS),
    ]
    return "\n".join([*lines, *(f"| {task} | {' | '.join(cells)} |" for task, cells in by_task.items())])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.remote",
        description="Compare reads of zarrfs, zarr-python and TensorStore from a web server with a fixed latency.",
    )
    parser.add_argument("--latency", type=float, default=0.02, help="seconds per request (default: 0.02)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results to FILE")
    parser.add_argument("--worker", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
        return
    results = measure(options.latency, options.rounds)
    print(describe(SIDE))
    print(table(results, options.latency))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
