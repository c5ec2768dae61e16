"""Meets every hostile store in a process that may take only tens of megabytes more, and prints what came of each.

Run as ``python -m tests.faults.child engine|info|files DIRECTORY``; the answer is JSON by name of case. A process of
its own, since a limit of memory cannot be taken back, and since what crashes or hangs must not take the tests along.
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
from tests.faults import chunks, documents, files
from tests.faults.hostile import Case, StoreDict, codec, little, v2, v3

MEMORY = 64 << 20
"""What reading one hostile array may take, in bytes of address space."""


def cases() -> Iterator[Case]:
    yield from documents.cases()
    yield from chunks.cases()


def limit_memory(nbytes: int = MEMORY) -> None:
    """From here on the process has ``nbytes`` more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + nbytes, resource.RLIM_INFINITY)
    )


def warm_up() -> None:
    """Load what is loaded on first use: codecs, worker threads, and the pages of the stack, for which there may be
    no room later. That is not what the limit is about.
    """
    with contextlib.suppress(RecursionError):
        json.loads("[" * 100_000)
    for name in ("zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc"):
        read(v2(compressor={"id": name}, chunk=None))
        zarrfs.create_array({}, data=np.arange(9), chunks=2, zarr_format=2, compressors={"id": name})[...]
    read(v3(codecs=[little(), codec("gzip", level=1), {"name": "crc32c"}], chunk=None))
    zarrfs.create_array({}, data=np.arange(99), chunks=2, shards=10)[...]


def read(location: StoreDict | str) -> None:
    """What anybody would do first: open it, look at it, look at what is in it, and read all of it."""
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
    """``zarrfs info`` on a directory; its exit code and its message become an exception again."""
    from zarrfs.cli.main import run

    errors = io.StringIO()
    sys.argv = ["zarrfs", "info", str(path)]
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            run()
        except SystemExit as end:
            if end.code:
                raise zarrfs.ZarrError(errors.getvalue().strip()) from None


def attempt(action: Callable[[], None]) -> dict[str, Any]:
    """Do it, and say what came of it: the error, whether it is one of ours, its message, the CPU seconds taken."""
    start = time.process_time()
    error: BaseException | None = None
    try:
        action()
    except BaseException as caught:
        error = caught
    return {
        "error": type(error).__name__,
        "ours": isinstance(error, zarrfs.ZarrError),
        "message": str(error),
        "seconds": time.process_time() - start,
    }


def prepare(what: str, directory: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name of each case and what is to be done."""
    if what == "files":
        for file_case in files.cases():
            path = directory / file_case.name
            file_case.make(path)
            yield file_case.name, partial(read, str(path))
        return
    for number, case in enumerate(cases()):
        store = case.make()
        if what == "engine":
            yield case.name, partial(read, store)
        else:
            path = directory / str(number)
            files.write(path, store)
            yield case.name, partial(info, path)
    if what == "info":
        zarrfs.create_array(directory / "endless", shape=(10**9, 10**6), dtype="u1", chunks=(1000, 1000))
        yield "endless", partial(info, directory / "endless")


def main(what: str, directory: str) -> None:
    prepared = list(prepare(what, Path(directory)))
    warm_up()
    if what == "info":
        files.write(Path(directory) / "warm", v3())
        info(Path(directory) / "warm")
    limit_memory()
    outcomes = {name: attempt(action) for name, action in prepared}
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
