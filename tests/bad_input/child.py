"""Meets every hostile store in a process that may take only tens of megabytes more, and prints what came of each.

Run as ``python -m tests.bad_input.child engine|info DIRECTORY``; the answer is JSON by name of case. A process of
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
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from tests.bad_input import chunks, documents
from tests.bad_input.hostile import Case, StoreDict, codec, little, v2, v3

MEMORY = 64 << 20
"""What reading one hostile array may take, in bytes of address space."""


def cases() -> Iterator[Case]:
    yield from documents.cases()
    yield from chunks.cases()


def limit_memory() -> None:
    """From here on the process has MEMORY bytes more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + MEMORY, resource.RLIM_INFINITY)
    )


def warm_up() -> None:
    """Load what is loaded on first use: codecs, worker threads. That is not what the limit is about."""
    for name in ("zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc"):
        read(v2(compressor={"id": name}, chunk=None))
        zarrfs.create_array({}, data=np.arange(9), chunks=2, zarr_format=2, compressors={"id": name})[...]
    read(v3(codecs=[little(), codec("gzip", level=1), {"name": "crc32c"}], chunk=None))
    zarrfs.create_array({}, data=np.arange(99), chunks=2, shards=10)[...]


def read(store: StoreDict) -> None:
    """What anybody would do first: open it, look at it, read all of it, and read it as bytes."""
    node = zarrfs.open(store)
    repr(node)
    if isinstance(node, zarrfs.Array):
        node[...]
    else:
        list(node.members())


def info(path: Path) -> None:
    """``zarrfs info`` on a directory; its exit code and its message become an exception again."""
    from zarrfs.cli.main import run

    errors, code = io.StringIO(), 0
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = run(["info", str(path)]) or 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    if code:
        raise zarrfs.ZarrError(errors.getvalue().strip())


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


def main(what: str, directory: str) -> None:
    prepared: list[tuple[str, Callable[[], None]]] = []
    for number, case in enumerate(cases()):
        store = case.make()
        if what == "engine":
            prepared.append((case.name, lambda store=store: read(store)))  # type: ignore[misc]
        else:
            path = Path(directory) / str(number)
            for key, value in store.items():
                (path / key).parent.mkdir(parents=True, exist_ok=True)
                (path / key).write_bytes(value)
            prepared.append((case.name, lambda path=path: info(path)))  # type: ignore[misc]
    warm_up()
    limit_memory()
    outcomes = {}
    for name, action in prepared:
        outcomes[name] = attempt(action)
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
