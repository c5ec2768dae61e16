"""Read benchmark of one contender: ``python -m benchmarks.contenders NAME DIRECTORY SIDE REPEATS READ...``.

The program prints JSON: for each read, the seconds of all repetitions and a checksum of the values. Before each
repetition the array is opened again, outside the measured time, so that no contender reuses decoded chunks of the
previous repetition. The files are in the page cache for all contenders.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

VOXELS = 200
"""The number of voxels that one repetition reads. The reported time is that of one voxel."""

Reader = Callable[[Any], Any]
Opener = Callable[[str], Reader]


def _zarrfs(cache_size: int | None) -> Opener:
    import zarrfs

    return lambda directory: zarrfs.open_array(directory, cache_size=cache_size).__getitem__


def _zarr_python(pipeline: str | None) -> Opener:
    import zarr

    if pipeline is not None:
        zarr.config.set({"codec_pipeline.path": pipeline})
    return lambda directory: zarr.open_array(directory, mode="r").__getitem__


def _tensorstore() -> Opener:
    import tensorstore

    def opener(directory: str) -> Reader:
        # A new context, so that no cache is shared with previous repetitions.
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": directory}}
        array = tensorstore.open(spec, context=tensorstore.Context(), open=True, read=True).result()
        return lambda selection: array[selection].read().result()

    return opener


CONTENDERS: dict[str, Callable[[], Opener]] = {
    "zarrfs": lambda: _zarrfs(None),
    "zarrfs, no cache": lambda: _zarrfs(0),
    "zarr-python": lambda: _zarr_python(None),
    "zarrs": lambda: _zarr_python("zarrs.ZarrsCodecPipeline"),
    "TensorStore": _tensorstore,
}


def selections(read: str, side: int, repetition: int) -> list[Any]:
    """Return the selections of one repetition: another plane in each repetition, or random voxels. They are equal
    for all contenders. The first selection of "next plane" is not timed.
    """
    kind, _, axis = read.partition(":")
    if kind == "everything":
        return [(slice(None),) * 3]
    rng = np.random.default_rng(repetition)
    if axis:
        # An even index, so that the next plane is in the same chunks for all chunk sizes.
        index = int(rng.integers(side // 2)) * 2
        indices = [index] if kind == "plane" else [index, index + 1]
        return [
            tuple(i if dimension == int(axis) else slice(None) for dimension in range(3)) for i in indices
        ]
    return [tuple(map(int, rng.integers(side, size=3))) for _ in range(VOXELS)]


def measure(opener: Opener, directory: str, side: int, repeats: int, read: str) -> dict[str, Any]:
    """Measure one read. The first repetition is a warm-up and is not counted."""
    seconds = []
    checksum = 0
    for repetition in range(repeats + 1):
        chosen_selections = selections(read, side, repetition)
        reader = opener(directory)
        if read.startswith("next"):
            reader(chosen_selections.pop(0))
        start = time.perf_counter()
        values = [reader(selection) for selection in chosen_selections]
        elapsed = time.perf_counter() - start
        if repetition:
            seconds.append(elapsed / len(chosen_selections))
        for part in values:
            checksum = zlib.crc32(np.ascontiguousarray(part).data, checksum)
        del values
    return {"seconds": seconds, "checksum": checksum}


def main(name: str, directory: str, side: str, repeats: str, *reads: str) -> None:
    opener = CONTENDERS[name]()
    results = {read: measure(opener, directory, int(side), int(repeats), read) for read in reads}
    json.dump({"reads": results, "peak": peak_memory()}, sys.stdout)


def peak_memory() -> int:
    """Return the peak resident memory in bytes. getrusage also counts the memory of the parent before exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(*sys.argv[1:])
