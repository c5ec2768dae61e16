"""The benchmark of reads from a web server, and with ``--s3`` from a bucket: ``python -m benchmarks.remote``.

A server on this machine answers each request after 20 ms (``--latency``). zarrfs, zarr-python and TensorStore read the
same arrays in turn, each in its own process, and each time the array is opened again. A time is shown in milliseconds
and in round trips, that is divided by the latency, with the number of requests and the processor time of the client.
The values must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
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
SMALL_CHUNKS = (16, 16, 16)
CODECS = ["bytes", {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}]
ROUNDS = 9

Read = Callable[[Any], Any]


def _tensorstore(url: str) -> Read:
    import tensorstore

    spec = {"driver": "zarr3", "kvstore": url + "/"}
    array = tensorstore.open(spec, context=tensorstore.Context(), open=True, read=True).result()
    return lambda selection: array[selection].read().result()


BUCKET = "bench"
"""The directory with the arrays, which is a bucket for clients of S3. Signatures are not checked."""


def _bucket_options(url: str) -> tuple[str, str]:
    """Return the endpoint and the path in the bucket for a URL of the server."""
    endpoint, _, path = url.partition(f"/{BUCKET}/")
    return endpoint, path


def _s3_zarrfs(url: str) -> Read:
    endpoint, path = _bucket_options(url)
    options = {"endpoint_url": endpoint, "key": "x", "secret": "x"}
    array = zarrfs.open_array(f"s3://{BUCKET}/{path}", mode="r", cache_size=0, storage_options=options)
    return array.__getitem__


def _s3_zarr_python(url: str) -> Read:
    import zarr
    from obstore.store import S3Store

    endpoint, path = _bucket_options(url)
    store = S3Store(
        BUCKET,
        prefix=path,
        endpoint=endpoint,
        access_key_id="x",
        secret_access_key="x",
        region="us-east-1",
        client_options={"allow_http": True},
    )
    array = zarr.open_array(zarr.storage.ObjectStore(store, read_only=True), mode="r")
    return lambda selection: array[selection]


def _s3_tensorstore(url: str) -> Read:
    import tensorstore

    os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
    endpoint, path = _bucket_options(url)
    kvstore = {"driver": "s3", "bucket": BUCKET, "path": path + "/", "endpoint": endpoint}
    kvstore["aws_region"] = "us-east-1"
    array = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, open=True, read=True).result()
    return lambda selection: array[selection].read().result()


S3_CONTENDERS: dict[str, Callable[[str], Read]] = {
    "zarrfs": _s3_zarrfs,
    "zarr-python, obstore": _s3_zarr_python,
    "TensorStore": _s3_tensorstore,
}

CONTENDERS: dict[str, Callable[[str], Read]] = {
    "zarrfs": lambda url: contenders.CONTENDERS["zarrfs, no cache"]()(url, []),
    "zarr-python": lambda url: contenders.CONTENDERS["zarr-python"]()(url, []),
    "TensorStore": _tensorstore,
}

WHOLE = (slice(None),) * 3
TASKS: dict[str, tuple[str, Any]] = {
    "open": ("chunks.zarr", None),
    "all 64 chunks": ("chunks.zarr", WHOLE),
    "all 4096 small chunks": ("small.zarr", WHOLE),
    "plane of 16 chunks": ("chunks.zarr", (100, slice(None), slice(None))),
    "plane of a shard of 64 chunks": ("shard.zarr", (100, slice(None), slice(None))),
    "one voxel of a shard": ("shard.zarr", (100, 100, 100)),
}
"""The array and the selection of each task. Opening is measured separately and is not part of the other tasks."""


def work(name: str, contenders: Mapping[str, Callable[[str], Read]]) -> None:
    """Answer requests ``[url, task]`` on the standard input: the seconds, the processor seconds and a checksum of the
    values.
    """
    for line in sys.stdin:
        url, task = json.loads(line)
        selection = TASKS[task][1]
        start, processor = time.perf_counter(), time.process_time()
        read = contenders[name](url)
        print(json.dumps("opened"), flush=True)
        if selection is None:
            answer = {"seconds": time.perf_counter() - start, "checksum": 0}
        else:
            sys.stdin.readline()  # The server has been asked for the requests of the opening.
            start, processor = time.perf_counter(), time.process_time()
            values = read(selection)
            seconds = time.perf_counter() - start
            answer = {"seconds": seconds, "checksum": 0}
        answer["processor"] = time.process_time() - processor
        if selection is not None:
            answer["checksum"] = zlib.crc32(np.ascontiguousarray(values).data)
        print(json.dumps(answer), flush=True)


def make_arrays(directory: Path) -> None:
    """Write an array with 64 chunks in files, one with the same chunks in one shard, and one with small chunks."""
    volume = synthetic.volume((SIDE,) * 3, seed=1)
    for name, chunks, shards in (
        ("chunks.zarr", CHUNKS, None),
        ("shard.zarr", CHUNKS, (SIDE,) * 3),
        ("small.zarr", SMALL_CHUNKS, None),
    ):
        array = zarrfs.create_array(
            directory / name,
            shape=volume.shape,
            dtype=volume.dtype,
            chunks=chunks,
            shards=shards,
            codecs=CODECS,
            zarr_format=3,
        )
        array[...] = volume


@contextmanager
def latency_server(
    directory: Path, latency: float, rate: float = 0
) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Start the server. Yield its URL and a function that returns the requests since its previous call."""
    command = [sys.executable, "-m", "benchmarks.remote_server", str(directory), str(latency), str(rate)]
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


def measure(latency: float, rounds: int, *, s3: bool = False) -> list[dict[str, Any]]:
    """Return, for each task and contender, the median seconds, the smallest number of processor seconds and the largest
    number of requests.
    """
    directory = Path(tempfile.mkdtemp(prefix="zarrfs-remote-"))
    results = []
    try:
        make_arrays(directory / BUCKET)
        with ExitStack() as stack:
            url, requests = stack.enter_context(latency_server(directory, latency))
            workers = {
                name: stack.enter_context(
                    Worker("benchmarks.remote", "--worker", name, *(["--s3"] if s3 else []))
                )
                for name in (S3_CONTENDERS if s3 else CONTENDERS)
            }
            for task, (array, selection) in TASKS.items():
                seconds: dict[str, list[float]] = {name: [] for name in workers}
                processor: dict[str, list[float]] = {name: [] for name in workers}
                counts = dict.fromkeys(workers, 0)
                checksums = set()
                for number in range(rounds + 1):
                    for name in rotated(list(workers), number):
                        worker = workers[name]
                        requests()
                        worker.request(f"{url}/{BUCKET}/{array}", task)
                        opening = requests()
                        answer = worker.receive() if selection is None else worker.request("read")
                        found = opening if selection is None else requests()
                        checksums.add(answer["checksum"])
                        counts[name] = max(counts[name], len(found))
                        if number:  # The first round is a warm-up.
                            seconds[name].append(answer["seconds"])
                            processor[name].append(answer["processor"])
                if len(checksums) > 1:
                    raise SystemExit(f"{task}: the contenders read different values")
                for name in workers:
                    median = statistics.median(seconds[name])
                    results.append(
                        {
                            "task": task,
                            "contender": name,
                            "seconds": median,
                            "processor": min(processor[name]),
                            "requests": counts[name],
                        }
                    )
    finally:
        shutil.rmtree(directory)
    return results


def table(results: list[dict[str, Any]], latency: float) -> str:
    """Return the results as a Markdown table: milliseconds (round trips, requests, processor milliseconds)."""
    by_task: dict[str, list[str]] = {}
    for result in results:
        trips = f"{result['seconds'] / latency:.1f}" if latency else "-"
        details = f"{trips}, {result['requests']}, {1000 * result['processor']:.0f}"
        text = f"{1000 * result['seconds']:.0f} ({details})"
        by_task.setdefault(result["task"], []).append(text)
    names = list(dict.fromkeys(result["contender"] for result in results))
    lines = [
        f"| ms (round trips, requests, processor ms) | {' | '.join(names)} |",
        "|---|" + "---:|" * len(names),
    ]
    return "\n".join([*lines, *(f"| {task} | {' | '.join(cells)} |" for task, cells in by_task.items())])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.remote",
        description="Compare reads of zarrfs, zarr-python and TensorStore from a web server with a fixed latency.",
    )
    parser.add_argument("--latency", type=float, default=0.02, help="seconds per request (default: 0.02)")
    parser.add_argument("--s3", action="store_true", help="read a bucket instead")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="default: %(default)s")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the results to FILE")
    parser.add_argument("--worker", choices=[*CONTENDERS, *S3_CONTENDERS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, S3_CONTENDERS if options.s3 else CONTENDERS)
        return
    results = measure(options.latency, options.rounds, s3=options.s3)
    print(describe(SIDE))
    print(table(results, options.latency))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
