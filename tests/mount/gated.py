"""A program that mounts a store and blocks the reads of one chunk until a named pipe is opened for writing.

Usage: python -m tests.mount.gated STORE MOUNTPOINT PIPE CHUNK
"""

from __future__ import annotations

import sys
from pathlib import Path

from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.serving import serve
from zarrfs.testing import LatencyStore


def main(store: str, mountpoint: str, pipe: str, chunk: str) -> None:
    def wait(operation: str, key: str) -> None:
        if key == chunk and operation.startswith("get"):
            Path(pipe).read_bytes()

    serve(LatencyStore(LocalStore(store), wait), mountpoint, MountOptions(cache_size=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
