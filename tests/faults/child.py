"""Read every hostile store in a process with limited memory, and print the outcomes.

Run as ``python -m tests.faults.child engine|info|files DIRECTORY``. The output is a JSON object with the outcome of
each case. A separate process is used because a memory limit cannot be raised again, and because a crash or an
endless loop must not affect the tests.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from tests.documents import named
from tests.faults import chunks, documents, files
from tests.faults.hostile import Case, StoreDict, little, v2, v3

MEMORY_LIMIT_NBYTES = 64 << 20
"""Bytes of address space that reading one hostile array may allocate."""


def cases() -> Iterator[Case]:
    yield from documents.cases()
    yield from chunks.cases()


def limit_memory(nbytes: int = MEMORY_LIMIT_NBYTES) -> None:
    """Limit the address space of the process to its current size plus ``nbytes``."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + nbytes, resource.RLIM_INFINITY)
    )


def initialize_lazy_state() -> None:
    """Allocate what is allocated on first use, such as codecs, worker threads and stack pages, before the memory limit
    is set.
    """
    with contextlib.suppress(RecursionError):
        json.loads("[" * 100_000)
    for name in ("zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc"):
        read(v2(compressor={"id": name}, chunk=None))
        zarrfs.create_array({}, data=np.arange(9), chunks=2, zarr_format=2, compressors={"id": name})[...]
    read(v3(codecs=[little(), named("gzip", level=1), {"name": "crc32c"}], chunk=None))
    zarrfs.create_array({}, data=np.arange(99), chunks=2, shards=10)[...]


def read(location: StoreDict | str) -> None:
    """Open a node, print it, list its members or its storage usage, and read all its data."""
    node = zarrfs.open(location)
    repr(node)
    if isinstance(node, zarrfs.Array):
        node.usage()
        node[(slice(0, 4),) * node.ndim]
        node[...]
    else:
        node.tree()
        for _, member in node.walk():
            repr(member)


def info(path: Path) -> None:
    """Run ``zarrfs info`` on a directory. Raises ZarrError with its error message if it fails."""
    from zarrfs.cli.main import run

    errors = io.StringIO()
    sys.argv = ["zarrfs", "info", str(path)]
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            run()
        except SystemExit as system_exit:
            if system_exit.code:
                raise zarrfs.ZarrError(errors.getvalue().strip()) from None


def attempt(action: Callable[[], None]) -> dict[str, Any]:
    """Call a function. Returns the name of its error, whether it is a ZarrError, its message, and the CPU seconds."""
    start = time.process_time()
    error: BaseException | None = None
    try:
        action()
    except BaseException as caught:
        error = caught
    return {
        "error": type(error).__name__,
        "is_zarr_error": isinstance(error, zarrfs.ZarrError),
        "message": str(error),
        "seconds": time.process_time() - start,
    }


def prepare(mode: str, directory: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name and the action of each case."""
    if mode == "files":
        for file_case in files.cases():
            path = directory / file_case.name
            file_case.make(path)
            yield file_case.name, partial(read, str(path))
        return
    for number, case in enumerate(cases()):
        store = case.make()
        if mode == "engine":
            yield case.name, partial(read, store)
        else:
            path = directory / str(number)
            files.write(path, store)
            yield case.name, partial(info, path)
    if mode == "info":
        zarrfs.create_array(directory / "endless", shape=(10**9, 10**6), dtype="u1", chunks=(1000, 1000))
        yield "endless", partial(info, directory / "endless")


def main(mode: str, directory: str) -> None:
    prepared = list(prepare(mode, Path(directory)))
    initialize_lazy_state()
    if mode == "info":
        files.write(Path(directory) / "warm", v3())
        info(Path(directory) / "warm")
    limit_memory()
    outcomes = {name: attempt(action) for name, action in prepared}
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
