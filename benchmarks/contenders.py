"""Read benchmark of one contender: ``python -m benchmarks.contenders NAME``.

The program reads requests ``[directory, read, axis, side, number]`` from standard input and writes one JSON document
per line to standard output, so that the parent process can alternate between the contenders. Before each read the
array is opened again, outside the measured time, so that no contender reuses what it decoded for an earlier request.
The files are in the page cache for all contenders.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CONTENDERS", "LIMIT", "peak_memory", "selections"]

REPEATED = {"one voxel": 200, "region": 1000, "region again": 1000, "open": 20}
"""How often a request performs a short read. The reported time is that of one read."""

REGION_SIDE = 64
BATCH = 50
LIMIT = "limit"

Reader = Callable[[Any], Any]
Opener = Callable[[str, list[Any]], Reader]


def _zarrfs(cache_size: int | None) -> Opener:
    import zarrfs

    return lambda directory, _: zarrfs.open_array(directory, cache_size=cache_size).__getitem__


def _zarr_python(pipeline: str | None) -> Opener:
    import zarr

    if pipeline is not None:
        zarr.config.set({"codec_pipeline.path": pipeline})
    return lambda directory, _: zarr.open_array(directory, mode="r").__getitem__


def _tensorstore() -> Opener:
    import tensorstore

    def opener(directory: str, _: list[Any]) -> Reader:
        # A new context, so that no cache is shared with previous requests.
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": directory}}
        array = tensorstore.open(spec, context=tensorstore.Context(), open=True, read=True).result()
        return lambda selection: array[selection].read().result()

    return opener


def _limit() -> Opener:
    from benchmarks.limit import LimitReader

    latest: dict[str, LimitReader] = {}

    def opener(directory: str, chosen: list[Any]) -> Reader:
        reader = latest.get(directory)
        if reader is None:
            latest.clear()
            reader = latest[directory] = LimitReader(directory)
        for selection in chosen:
            reader.load(selection)
        return reader.read

    return opener


CONTENDERS: dict[str, Callable[[], Opener]] = {
    "zarrfs": lambda: _zarrfs(None),
    "zarrfs, no cache": lambda: _zarrfs(0),
    "zarr-python": lambda: _zarr_python(None),
    "zarrs": lambda: _zarr_python("zarrs.ZarrsCodecPipeline"),
    "TensorStore": _tensorstore,
    LIMIT: _limit,
}


def selections(kind: str, axis: int | None, side: int, number: int) -> list[Any]:
    """Return the selections of one request: another plane for each number, or random places. They are equal for all
    contenders. The first selection of "next plane" is not timed.
    """
    if kind in ("full read", "open"):
        return [(slice(None),) * 3] * REPEATED.get(kind, 1)
    rng = np.random.default_rng(number)
    if axis is not None:
        # An even index, so that the next plane is in the same chunks for all chunk sizes.
        index = int(rng.integers(side // 2)) * 2
        indices = [index] if kind == "plane" else [index, index + 1]
        return [tuple(i if dimension == axis else slice(None) for dimension in range(3)) for i in indices]
    if kind == "one voxel":
        return [tuple(map(int, rng.integers(side, size=3))) for _ in range(REPEATED[kind])]
    corners = rng.integers(side - REGION_SIDE + 1, size=(REPEATED[kind], 3))
    return [tuple(slice(int(low), int(low) + REGION_SIDE) for low in corner) for corner in corners]


def measure(
    opener: Opener, directory: str, kind: str, axis: int | None, side: int, number: int
) -> dict[str, Any]:
    """Perform one request. Return the seconds and the processor time of all threads per read, the peak memory beyond
    the result in bytes, and for request number 0 a checksum of the values.
    """
    chosen = selections(kind, axis, side, number)
    if kind == "open":
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in chosen:
            opener(directory, [])
        elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        return {"seconds": elapsed / len(chosen), "cpu": cpu / len(chosen), "peak": 0, "checksum": 0}
    reader = opener(directory, chosen)
    if kind == "next plane":
        reader(chosen.pop(0))
    if kind == "region again":
        for selection in chosen:
            reader(selection)
    reset_peak_memory()
    before = memory("VmRSS")
    checksum = nbytes = 0
    elapsed = cpu = 0.0
    # Results are dropped in batches: 1000 regions would need half a gigabyte.
    for low in range(0, len(chosen), BATCH):
        start, cpu_start = time.perf_counter(), time.process_time()
        values = [reader(selection) for selection in chosen[low : low + BATCH]]
        elapsed += time.perf_counter() - start
        cpu += time.process_time() - cpu_start
        nbytes = max(nbytes, sum(part.nbytes for part in map(np.asarray, values)))
        for part in values if number == 0 else ():
            checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
        del values
    peak = memory("VmHWM") - before - nbytes
    return {
        "seconds": elapsed / len(chosen),
        "cpu": cpu / len(chosen),
        "peak": max(0, peak),
        "checksum": checksum,
    }


def main(name: str) -> None:
    opener = CONTENDERS[name]()
    for line in sys.stdin:
        print(json.dumps(measure(opener, *json.loads(line))), flush=True)


def memory(field: str) -> int:
    """Return a size in /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def peak_memory() -> int:
    """Return the peak resident memory in bytes. getrusage also counts the memory of the parent before exec."""
    return memory("VmHWM")


def reset_peak_memory() -> None:
    """Let the peak begin at the present memory, where the kernel permits it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main(sys.argv[1])
