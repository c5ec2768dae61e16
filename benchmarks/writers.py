"""Write benchmark of one contender: ``python -m benchmarks.writers NAME VOLUME``.

The program reads requests ``[directory, task, number]`` from standard input and writes the measured seconds to standard
output, one JSON document per line. Thus the parent process can alternate between the contenders. The metadata document
of the array exists. The array is opened outside the measured time, without cached chunks. ``VOLUME`` is an ``.npy``
file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contenders import peak_memory

__all__ = ["WRITERS", "plane_index"]

VOXELS = 50
"""The number of voxels that one request writes. The reported time is that of one voxel."""

Volume = np.ndarray[Any, Any]
Writer = Callable[[Any, Any], object]
Opener = Callable[[str], Writer]


def _zarrfs() -> Opener:
    import zarrfs

    return lambda directory: zarrfs.open_array(directory, mode="r+", cache_size=0).__setitem__


def _zarr_python(pipeline: str | None) -> Opener:
    import zarr

    if pipeline is not None:
        zarr.config.set({"codec_pipeline.path": pipeline})
    return lambda directory: zarr.open_array(directory, mode="r+").__setitem__


def _tensorstore() -> Opener:
    import tensorstore

    # As the other contenders: a temporary file that is renamed, no fsync, no locks between processes.
    settings = {"file_io_sync": False, "file_io_locking": {"mode": "none"}}

    def opener(directory: str) -> Writer:
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": directory}}
        context = tensorstore.Context(settings)
        array = tensorstore.open(spec, context=context, open=True, read=True, write=True).result()

        def write(selection: Any, value: Any) -> None:
            # The data does not change before the write is complete, so that no copy is necessary.
            target = array if selection is Ellipsis else array[selection]
            target.write(value, can_reference_source_data_indefinitely=True).result()

        return write

    return opener


WRITERS: dict[str, Callable[[], Opener]] = {
    "zarrfs": _zarrfs,
    "zarr-python": lambda: _zarr_python(None),
    "TensorStore": _tensorstore,
    "zarrs": lambda: _zarr_python("zarrs.ZarrsCodecPipeline"),
}
"""The contenders. zarrs overwrites files in place: concurrent readers and crashes can see partial chunks."""


def plane_index(axis: int, side: int, number: int) -> tuple[Any, ...]:
    """Return the selection of a plane along an axis. It depends on the number and is equal for all contenders."""
    index = int(np.random.default_rng([axis, number]).integers(side))
    return tuple(index if dimension == axis else slice(None) for dimension in range(3))


def changes(task: str, number: int, first: Volume, second: Volume) -> list[tuple[Any, Any]]:
    """Return the writes of one request as pairs of selection and values."""
    kind, _, axis = task.partition(":")
    if kind == "everything":
        return [(Ellipsis, first)]
    if kind == "overwriting":
        return [(Ellipsis, second)]
    if kind == "plane":
        plane = plane_index(int(axis), first.shape[0], number)
        return [(plane, np.ascontiguousarray(first[plane]))]
    rng = np.random.default_rng(number)
    return [(tuple(map(int, rng.integers(first.shape[0], size=3))), 1 + n) for n in range(VOXELS)]


def main(name: str, volume: str) -> None:
    opener = WRITERS[name]()
    first = np.load(volume)
    second = first + np.uint16(1)
    for line in sys.stdin:
        directory, task, number = json.loads(line)
        writes = changes(task, number, first, second)
        write = opener(directory)
        start = time.perf_counter()
        for selection, values in writes:
            write(selection, values)
        elapsed = time.perf_counter() - start
        del write
        print(json.dumps({"seconds": elapsed / len(writes), "peak": peak_memory()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
