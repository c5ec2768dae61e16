"""Long runs of a mount: random reads that are compared with NumPy, and many readers whose server must not grow.

Long form: ``python -m tests.mount.endurance --reads 1000000 --readers 32 --seconds 600``. ``test_endurance.py`` runs a
short one.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from tests.mount.mounted import mounted
from tests.threads import run_in_threads

__all__ = ["Resources", "make_store", "random_reads", "resources", "soak"]

MAX_READ_NBYTES = 300 << 10
PAGE_NBYTES = 4096
ZSTD = zarrfs.codecs.ZstdCodec(level=1)

LAYOUTS: dict[str, dict[str, Any]] = {
    "blosc": {"chunks": (16, 32, 64)},
    "zstd": {"chunks": (16, 32, 64), "compressors": ZSTD},
    "raw": {"chunks": (16, 32, 64), "compressors": None},
    "shards": {"chunks": (8, 16, 32), "shards": (32, 64, 64)},
    "zstd_shards": {"chunks": (8, 16, 32), "shards": (32, 64, 64), "compressors": ZSTD},
    "thin": {"chunks": (1, 200, 256)},
    "tall": {"chunks": (80, 8, 8), "compressors": ZSTD},
}
SUFFIXES = (".raw", ".npy", ".F.npy")


@dataclass(frozen=True)
class Resources:
    """What a process has at one time: resident bytes, open descriptors, and threads."""

    nbytes: int
    descriptors: int
    threads: int


@dataclass
class Soak:
    """The result of ``soak``.

    Attributes:
        read_nbytes: the number of bytes that all readers read.
        wrong: the reads with other bytes than expected, as text.
        samples: the resources of the server, from the first to the last sample.
    """

    read_nbytes: int = 0
    wrong: list[str] = field(default_factory=list)
    samples: list[Resources] = field(default_factory=list)


def make_store(path: Path, shape: tuple[int, int, int] = (80, 200, 256)) -> dict[str, bytes]:
    """Write a group with one array per layout. Return the bytes of their files by name."""
    values = np.random.default_rng(3).integers(0, 2000, shape, dtype="u2")
    values[: shape[0] // 3, : shape[1] // 3] = 0  # chunks of the fill value are not stored
    root = zarrfs.create_group(path)
    files: dict[str, bytes] = {}
    for name, options in LAYOUTS.items():
        root.create_array(name, data=values, **options)
    c_order, f_order = values.tobytes(), values.tobytes(order="F")
    for name in LAYOUTS:
        files |= {name + ".raw": c_order, name + ".npy": c_order, name + ".F.npy": f_order}
    return files


def resources(pid: int) -> Resources:
    """Return the resources of a process. Raises OSError if it does not exist."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return Resources(
        int(fields["VmRSS"].split()[0]) << 10, len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"])
    )


def server_of(mountpoint: Path) -> int:
    """Return the process that serves a mount."""
    return int(json.loads((mountpoint / ".zarrfs" / "stats.json").read_text())["mount"]["pid"])


def random_reads(
    mountpoint: Path, files: Mapping[str, bytes], count: int, *, threads: int = 2, seed: int = 0
) -> list[str]:
    """Read ``count`` random ranges of the files and compare them. Return a description of each wrong read."""
    wrong: list[str] = []
    names = sorted(files)

    def read(number: int) -> None:
        rng = np.random.default_rng((seed, number))
        remaining = count // threads + (number < count % threads)
        while remaining:
            name = names[int(rng.integers(len(names)))]
            some = min(remaining, int(rng.integers(1, 200)))
            wrong.extend(_read_some(mountpoint / name, files[name], some, rng))
            remaining -= some

    run_in_threads(read, range(threads))
    return wrong


def _read_some(path: Path, body: bytes, count: int, rng: np.random.Generator) -> Iterator[str]:
    """Read ``count`` ranges through one descriptor: random ones, runs, and reads at equal distances."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        header = size - len(body)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if rng.integers(2):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        step = int(rng.choice([0, 0, PAGE_NBYTES, 200 * 256 * 2, -200 * 256 * 2, 100_000]))
        length = int(rng.choice([1, 100, PAGE_NBYTES, PAGE_NBYTES, 70_000, MAX_READ_NBYTES]))
        offset = int(rng.integers(header, size))
        for _ in range(count):
            data = os.pread(descriptor, length, offset)
            if data != body[offset - header : offset - header + length]:
                yield f"{path.name}: {len(data)} bytes at {offset}, {length} were requested"
            offset += step
            if not step or not header <= offset < size:
                offset = int(rng.integers(header, size))
    finally:
        os.close(descriptor)


def soak(
    mountpoint: Path,
    files: Mapping[str, bytes],
    *,
    readers: int,
    seconds: float = float("inf"),
    passes: int | None = None,
    interval: float = 1.0,
) -> Soak:
    """Let readers read whole files until the time or the number of passes is over, and watch the server."""
    result = Soak()
    pid = server_of(mountpoint)
    end = time.monotonic() + seconds
    lock = threading.Lock()
    finished = threading.Event()
    names = sorted(files)

    def watch() -> None:
        while not finished.wait(interval):
            result.samples.append(resources(pid))

    def read(number: int) -> None:
        rng = np.random.default_rng(number)
        done = 0
        while time.monotonic() < end and done != passes:
            name = names[int(rng.integers(len(names)))]
            descriptor = os.open(mountpoint / name, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                header = os.fstat(descriptor).st_size - len(files[name])
                nbytes = 0
                while data := os.pread(descriptor, 1 << 20, header + nbytes):
                    if data != files[name][nbytes : nbytes + len(data)]:
                        with lock:
                            result.wrong.append(f"{name}: {len(data)} bytes at {header + nbytes}")
                    nbytes += len(data)
                if nbytes != len(files[name]):
                    with lock:
                        result.wrong.append(f"{name}: the file ends after {nbytes} bytes")
            finally:
                os.close(descriptor)
            done += 1
            with lock:
                result.read_nbytes += nbytes

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run_in_threads(read, range(readers))
    finally:
        finished.set()
        watcher.join()
    result.samples.append(resources(pid))
    return result


@contextmanager
def mounted_store(*options: str) -> Iterator[tuple[Path, dict[str, bytes]]]:
    with tempfile.TemporaryDirectory(prefix="zarrfs-endurance-") as directory:
        files = make_store(Path(directory) / "store")
        with mounted(Path(directory) / "store", Path(directory) / "mnt", *options) as mountpoint:
            yield mountpoint, files


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mount.endurance")
    parser.add_argument("--reads", type=int, default=1_000_000, help="number of random reads")
    parser.add_argument("--readers", type=int, default=32, help="number of readers of whole files")
    parser.add_argument("--seconds", type=float, default=600.0, help="duration of these readers")
    parser.add_argument("--cache-size", default="32M", help="the option of `zarrfs mount`")
    options = parser.parse_args(arguments)
    with mounted_store("--cache-size", options.cache_size) as (mountpoint, files):
        start = time.monotonic()
        wrong = random_reads(mountpoint, files, options.reads)
        print(
            f"{options.reads} random reads in {time.monotonic() - start:.0f} s, {len(wrong)} wrong",
            flush=True,
        )
        print(*wrong[:20], sep="\n")
        result = soak(mountpoint, files, readers=options.readers, seconds=options.seconds)
        print(
            f"{options.readers} readers: {result.read_nbytes / 1e9:.1f} GB, {len(result.wrong)} wrong reads"
        )
        print(*result.wrong[:20], sep="\n")
        for sample in result.samples[:: max(1, len(result.samples) // 20)]:
            print(f"{sample.nbytes >> 20} MiB, {sample.descriptors} descriptors, {sample.threads} threads")
    return 1 if wrong or result.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
