"""A mount with hostile arrays keeps running, allocates little memory, and still serves valid arrays."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.faults import chunks, documents, files
from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT, end, wait_until
from zarrfs.mount import is_mounted, unmount

pytestmark = needs_fuse

MEMORY_LIMIT_NBYTES = 192 << 20
"""Bytes by which the mount process may grow in one test. A single read may allocate tens of megabytes (the limit of the
engine is 64 MiB). The kernel sends several requests at once, each served by a thread with its own malloc arena.
"""

VALID_DATA = np.arange(60, dtype="u2").reshape(6, 10)
CHUNKS = list(chunks.cases())
DOCUMENTS = list(documents.cases())


class Mount:
    """A mount in a separate process whose memory can be measured."""

    def __init__(self, location: Path, mountpoint: Path) -> None:
        self.path = mountpoint
        mountpoint.mkdir()
        command = [
            sys.executable,
            "-m",
            "zarrfs",
            "--log-level",
            "error",
            "mount",
            "-f",
            "--cache-size",
            "16M",
        ]
        self.log = mountpoint.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, str(location), str(mountpoint)], stdout=log, stderr=log
            )
        try:
            wait_until(lambda: is_mounted(str(mountpoint)), self.process)
        except BaseException:
            end(self.process)
            raise

    def peak(self) -> int:
        """Return the peak resident memory in bytes since ``reset_peak``."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def reset_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(TIMEOUT)
        finally:
            end(self.process)
            if is_mounted(str(self.path)):
                unmount(str(self.path), lazy=True)


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mount]:
    directory = tmp_path_factory.mktemp("hostile")
    store = directory / "store.zarr"
    files.write(store, files.GROUP)
    zarrfs.create_array(store / "honest", data=VALID_DATA, chunks=(4, 4))
    zarrfs.create_array(
        store / "endless", shape=(10**9, 10**6), dtype="u1", chunks=(1000, 1000), fill_value=7
    )
    for number, case in enumerate(CHUNKS):
        files.write(store / f"chunk{number}", case.make())
    for number, document in enumerate(DOCUMENTS):
        files.write(store / f"document{number}", document.make())
    mount = Mount(store, directory / "mnt")
    yield mount
    mount.close()


def read_all(path: Path) -> bytes:
    """Read a file with system calls. Errors of the mount raise OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        blocks = []
        while block := os.read(fd, 1 << 20):
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(fd)


def test_valid_arrays_are_listed(mount: Mount) -> None:
    names = os.listdir(mount.path)
    assert {"honest.npy", "honest.raw", "honest.json", "endless.npy"} <= set(names)


def test_reading_a_corrupt_chunk_fails_with_eio(mount: Mount) -> None:
    read_all(mount.path / "honest.npy")
    mount.reset_peak()
    before = mount.peak()
    for number, case in enumerate(CHUNKS):
        file = mount.path / f"chunk{number}.raw"
        if not file.exists():
            # Arrays of variable-length elements have no .raw file.
            assert (mount.path / f"chunk{number}.json").exists(), case.name
            continue
        assert first_bytes(file) == errno.EIO, case.name
    assert mount.peak() - before < MEMORY_LIMIT_NBYTES
    assert np.array_equal(np.load(mount.path / "honest.npy"), VALID_DATA)


def first_bytes(file: Path) -> int | bytes:
    """Return the first bytes of a file, or the errno if reading fails."""
    fd = os.open(file, os.O_RDONLY)
    try:
        return os.read(fd, 48)
    except OSError as error:
        return error.errno or 0
    finally:
        os.close(fd)


def test_nodes_with_invalid_metadata_have_no_files(mount: Mount) -> None:
    mount.reset_peak()
    before = mount.peak()
    for number, case in enumerate(DOCUMENTS):
        assert not (mount.path / f"document{number}.npy").exists(), case.name
        assert not (mount.path / f"document{number}.raw").exists(), case.name
    assert mount.peak() - before < MEMORY_LIMIT_NBYTES


def test_a_petabyte_of_missing_chunks_reads_as_the_fill_value(mount: Mount) -> None:
    raw = mount.path / "endless.raw"
    assert raw.stat().st_size == 10**15
    assert (mount.path / "endless.npy").stat().st_size == 10**15 + 128
    assert raw.stat().st_blocks <= 8, "only the metadata document is stored"
    fd = os.open(raw, os.O_RDONLY)
    try:
        for offset in (0, 123_456_789_012_345, 10**15 - 3):
            assert os.pread(fd, 3, offset) == b"\7\7\7"
        assert os.pread(fd, 3, 10**15) == b""
    finally:
        os.close(fd)


def test_the_mount_still_serves_a_valid_array(mount: Mount) -> None:
    assert mount.process.poll() is None
    assert np.array_equal(np.load(mount.path / "honest.npy"), VALID_DATA)
