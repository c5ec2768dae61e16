"""A mount survives every hostile store, takes little memory for it, and goes on serving what is honest."""

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
from zarrfs.mount.mounting import is_mounted, unmount

pytestmark = needs_fuse

MEMORY = 192 << 20
"""Bytes that the mount's process may grow by while all of this is asked of it. A single read may take tens of
megabytes (the engine is held to 64 MiB); the kernel asks for several at once, each on a thread with its own arena.
"""

HONEST = np.arange(60, dtype="u2").reshape(6, 10)
CHUNKS = list(chunks.cases())
DOCUMENTS = list(documents.cases())


class Mount:
    """A mount in a process that can be watched."""

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
        """Bytes that were resident at most since ``forget_peak``."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def forget_peak(self) -> None:
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
    zarrfs.create_array(store / "honest", data=HONEST, chunks=(4, 4))
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
    """Read with plain system calls; errors of the mount are OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def test_it_lists_what_is_honest(mount: Mount) -> None:
    names = os.listdir(mount.path)
    assert {"honest.npy", "honest.raw", "honest.json", "endless.npy"} <= set(names)


def test_broken_chunks_are_input_output_errors(mount: Mount) -> None:
    read_all(mount.path / "honest.npy")
    mount.forget_peak()
    before = mount.peak()
    for number, case in enumerate(CHUNKS):
        file = mount.path / f"chunk{number}.raw"
        if not file.exists():
            # Elements of varying length have no bytes of their own; they are not shown as .raw.
            assert (mount.path / f"chunk{number}.json").exists(), case.name
            continue
        assert first_bytes(file) == errno.EIO, case.name
    assert mount.peak() - before < MEMORY
    assert np.array_equal(np.load(mount.path / "honest.npy"), HONEST)


def first_bytes(file: Path) -> int | bytes:
    """The first bytes, or the number of the error that there was instead."""
    fd = os.open(file, os.O_RDONLY)
    try:
        return os.read(fd, 48)
    except OSError as error:
        return error.errno or 0
    finally:
        os.close(fd)


def test_broken_metadata_show_no_files(mount: Mount) -> None:
    mount.forget_peak()
    before = mount.peak()
    for number, case in enumerate(DOCUMENTS):
        assert not (mount.path / f"document{number}.npy").exists(), case.name
        assert not (mount.path / f"document{number}.raw").exists(), case.name
    assert mount.peak() - before < MEMORY


def test_a_petabyte_of_absent_chunks_is_instant(mount: Mount) -> None:
    raw = mount.path / "endless.raw"
    assert raw.stat().st_size == 10**15
    assert (mount.path / "endless.npy").stat().st_size == 10**15 + 128
    assert raw.stat().st_blocks <= 8, "its metadata alone are there"
    fd = os.open(raw, os.O_RDONLY)
    try:
        for offset in (0, 123_456_789_012_345, 10**15 - 3):
            assert os.pread(fd, 3, offset) == b"\7\7\7"
        assert os.pread(fd, 3, 10**15) == b""
    finally:
        os.close(fd)


def test_it_lives_on(mount: Mount) -> None:
    assert mount.process.poll() is None
    assert np.array_equal(np.load(mount.path / "honest.npy"), HONEST)
