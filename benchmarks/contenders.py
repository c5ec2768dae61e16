"""One contender in a process of its own: ``python -m benchmarks.contenders NAME DIRECTORY SIDE REPEATS READ...``.

Prints JSON: for each read the seconds of every repetition and a checksum of what was read. An array is opened anew,
outside the time taken, before each repetition, so that nobody has decoded chunks left over from the one before;
the files are in the page cache for everybody.
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
"""Single voxels read in one repetition; the time given is that of one."""

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
        # A context of its own for each opening: nothing is shared with the one before.
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
    """What one repetition reads: another plane each time, voxels all over the place; the same for everybody. Of the
    reads of "next plane" the first is not timed.
    """
    kind, _, axis = read.partition(":")
    if kind == "everything":
        return [(slice(None),) * 3]
    rng = np.random.default_rng(repetition)
    if axis:
        # The plane after it lies in the same chunks, for all chunk sizes there are.
        index = int(rng.integers(side // 2)) * 2
        indices = [index] if kind == "plane" else [index, index + 1]
        return [
            tuple(i if dimension == int(axis) else slice(None) for dimension in range(3)) for i in indices
        ]
    return [tuple(map(int, rng.integers(side, size=3))) for _ in range(VOXELS)]


def measure(opener: Opener, directory: str, side: int, repeats: int, read: str) -> dict[str, Any]:
    """Time one read; the first repetition warms up and does not count."""
    seconds = []
    checksum = 0
    for repetition in range(repeats + 1):
        chosen = selections(read, side, repetition)
        reader = opener(directory)
        if read.startswith("next"):
            reader(chosen.pop(0))
        start = time.perf_counter()
        found = [reader(selection) for selection in chosen]
        elapsed = time.perf_counter() - start
        if repetition:
            seconds.append(elapsed / len(chosen))
        for piece in found:
            checksum = zlib.crc32(np.ascontiguousarray(piece).data, checksum)
        del found
    return {"seconds": seconds, "checksum": checksum}


def main(name: str, directory: str, side: str, repeats: str, *wanted: str) -> None:
    opener = CONTENDERS[name]()
    results = {read: measure(opener, directory, int(side), int(repeats), read) for read in wanted}
    json.dump({"reads": results, "peak": peak_memory()}, sys.stdout)


def peak_memory() -> int:
    """Bytes that were resident at most. Not from getrusage, which counts the parent's before the exec too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(*sys.argv[1:])
