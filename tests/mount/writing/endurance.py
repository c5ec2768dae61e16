"""Long runs of a writable mount: random writes that are compared with a plain file.

Long form: ``python -m tests.mount.writing.endurance --writes 1000000``. ``test_write_mount.py`` runs a short one.
``ZARRFS_TEST_KILLS=34 pytest tests/mount/writing/test_write_processes.py -k kill --timeout=0`` kills mounts a hundred
times.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from tests.mount.endurance import resources, server_of
from tests.mount.mounted import mounted
from tests.threads import run_in_threads
from zarrfs.mount import unmount

__all__ = ["LAYOUTS", "make_store", "random_writes", "stored_differences"]

SHAPE = (40, 100, 128)
NBYTES = 2 * 40 * 100 * 128

LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {"chunks": (8, 25, 64), "compressors": None},
    "compressed": {"chunks": (8, 25, 64)},
    "sharded": {"chunks": (4, 25, 32), "shards": (8, 50, 64)},
}
SUFFIXES = (".raw", ".npy")
MAX_WRITE_NBYTES = 20_000
COMPARED = 500
"""After so many writes the file is compared with the plain file."""


def make_store(path: Path, directory: Path) -> None:
    """Write a group with one array of zeros per layout, and the plain files with the same bytes in ``directory``."""
    root = zarrfs.create_group(path)
    for name, options in LAYOUTS.items():
        root.create_array(name, shape=SHAPE, dtype="<u2", **options)
        (directory / name).write_bytes(bytes(NBYTES))


def random_writes(mountpoint: Path, directory: Path, count: int, *, seed: int = 0) -> list[str]:
    """Write ``count`` random ranges of the files, and the same ranges of plain files in ``directory``.

    One thread writes to each array. Return a description of each difference that a comparison finds.
    """
    wrong: list[str] = []
    names = [*LAYOUTS]

    def write(number: int) -> None:
        rng = np.random.default_rng((seed, number))
        name = names[number]
        with open(directory / name, "r+b", buffering=0) as plain:
            remaining = count // len(names) + (number < count % len(names))
            while remaining:
                some = min(remaining, int(rng.integers(1, COMPARED)))
                suffix = SUFFIXES[int(rng.integers(len(SUFFIXES)))]
                wrong.extend(_write_some(mountpoint / f"{name}{suffix}", plain.fileno(), some, rng))
                remaining -= some

    run_in_threads(write, range(len(names)))
    return wrong


def _write_some(path: Path, plain: int, count: int, rng: np.random.Generator) -> list[str]:
    """Write ``count`` ranges through one descriptor, and compare the file."""
    wrong: list[str] = []
    descriptor = os.open(path, os.O_RDWR)
    try:
        header = os.fstat(descriptor).st_size - NBYTES
        length = int(rng.choice([1, 2, 100, 4096, MAX_WRITE_NBYTES]))
        step = int(rng.choice([0, 0, length, 256]))
        offset = int(rng.integers(NBYTES))
        for _ in range(count):
            size = min(length, NBYTES - offset)
            data = rng.bytes(size)
            os.pwrite(plain, data, offset)
            if os.pwrite(descriptor, data, header + offset) != size:
                wrong.append(f"{path.name}: a write of {size} bytes at {offset} was incomplete")
            if rng.integers(100) == 0:
                start = int(rng.integers(NBYTES))
                expected = os.pread(plain, MAX_WRITE_NBYTES, start)
                if os.pread(descriptor, MAX_WRITE_NBYTES, header + start) != expected:
                    wrong.append(f"{path.name}: other bytes at {start}")
            if rng.integers(500) == 0:
                os.fsync(descriptor)
            offset += step
            if not step or offset >= NBYTES:
                offset = int(rng.integers(NBYTES))
        if rng.integers(2):
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if os.pread(descriptor, NBYTES, header) != os.pread(plain, NBYTES, 0):
            wrong.append(f"{path.name}: the file differs")
    finally:
        os.close(descriptor)
    return wrong


def stored_differences(store: Path, directory: Path) -> list[str]:
    """Return the arrays of the store whose elements differ from the plain files. The mount has ended."""
    root = zarrfs.open_group(store, mode="r")
    return [name for name in LAYOUTS if root[name][...].tobytes() != (directory / name).read_bytes()]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mount.writing.endurance")
    parser.add_argument("--writes", type=int, default=1_000_000, help="number of random writes")
    parser.add_argument("--parts", type=int, default=20, help="number of mounts among which they are divided")
    options = parser.parse_args(arguments)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="zarrfs-endurance-") as name:
        directory = Path(name)
        make_store(directory / "store", directory)
        start = time.monotonic()
        for part in range(options.parts):
            with mounted(directory / "store", directory / "mnt", "--rw", "--cache-size", "8M") as mountpoint:
                wrong += random_writes(mountpoint, directory, options.writes // options.parts, seed=part)
                used = resources(server_of(mountpoint))
                unmount(str(mountpoint))
            wrong += stored_differences(directory / "store", directory)
            print(
                f"{(part + 1) * (options.writes // options.parts)} random writes in "
                f"{time.monotonic() - start:.0f} s, {len(wrong)} wrong, {used.nbytes >> 20} MiB, "
                f"{used.descriptors} descriptors, {used.threads} threads",
                flush=True,
            )
            print(*wrong[:20], sep="\n", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
