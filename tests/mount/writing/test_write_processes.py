"""Several mounts and programs that write to one store, and mounts that are killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse
from tests.processes import running, wait_until
from zarrfs.mount.process.mount_table import is_mounted
from zarrfs.mount.process.unmounting import unmount

pytestmark = needs_fuse

CHUNK = 8192
KILLED = "its process was killed; data that were written last may not be stored"

KILLS = int(os.environ.get("ZARRFS_TEST_KILLS", "6"))
"""The number of times that a mount is killed. A thorough run uses some hundred."""

WRITER = """
import sys, zarrfs
location, locks = sys.argv[1:]
array = zarrfs.open_array(location, "img", mode="r+", synchronizer=zarrfs.ProcessSynchronizer(locks))
for start in range(2, array.nbytes, 3 * 7):
    array.write_bytes(start, b"c")
"""


def test_two_mounts_and_a_program_with_the_same_synchronizer_lose_nothing(tmp_path: Path) -> None:
    store, locks = tmp_path / "a.zarr", tmp_path / "locks"
    root = zarrfs.create_group(store)
    root.create_array("img", data=np.zeros(3000, "u1"), chunks=500)
    expected = bytearray(3000)
    options = ("--rw", "--synchronizer", str(locks))

    def write(path: Path, first: int, value: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY)
        for start in range(first, 3000, 3 * 7):
            os.pwrite(descriptor, value, start)
            if start % 4 == 0:
                os.fsync(descriptor)
        os.close(descriptor)

    for first, value in ((0, b"a"), (1, b"b"), (2, b"c")):
        for start in range(first, 3000, 3 * 7):
            expected[start : start + 1] = value
    with (
        mounted(store, tmp_path / "one", *options) as one,
        mounted(store, tmp_path / "two", *options) as two,
        running([sys.executable, "-c", WRITER, store, locks]) as program,
    ):
        threads = [
            threading.Thread(target=write, args=(one / "img.raw", 0, b"a")),
            threading.Thread(target=write, args=(two / "img.raw", 1, b"b")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert program.wait() == 0
    assert bytes(zarrfs.open_array(store, "img").read_bytes(0, 3000)) == expected


def test_two_mounts_of_a_directory_exclude_each_other_by_default(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    root = zarrfs.create_group(store)
    root.create_array("img", data=np.zeros(400, "u1"), chunks=400)
    with mounted(store, tmp_path / "one", "--rw") as one, mounted(store, tmp_path / "two", "--rw") as two:

        def write(path: Path, first: int) -> None:
            for start in range(first, 400, 2):
                with open(path, "r+b", buffering=0) as file:
                    file.seek(start)
                    file.write(b"x")

        threads = [
            threading.Thread(target=write, args=(mount / "img.raw", first))
            for first, mount in enumerate((one, two))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert bytes(zarrfs.open_array(store, "img").read_bytes(0, 400)) == b"x" * 400


@pytest.mark.parametrize(
    "layout", [{"compressors": None}, {}, {"shards": 4 * CHUNK}], ids=["plain", "zstd", "shards"]
)
def test_after_a_kill_each_chunk_is_old_or_new(
    layout: dict[str, int | None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, mnt = tmp_path / "a.zarr", tmp_path / "mnt"
    root = zarrfs.create_group(store)
    count = 16
    root.create_array("img", data=np.zeros(count * CHUNK, "u1"), chunks=CHUNK, **layout)  # type: ignore[typeddict-item]
    mnt.mkdir()
    rng = np.random.default_rng(1)
    value = 0
    for _ in range(KILLS):
        with running([sys.executable, "-m", "zarrfs", "mount", "-f", "--rw", store, mnt]) as process:
            wait_until(lambda: is_mounted(str(mnt)), process)
            wait_until(lambda: (mnt / "img.raw").exists(), process)
            descriptor = os.open(mnt / "img.raw", os.O_WRONLY)
            limit = int(rng.integers(1, 60))
            killer = threading.Timer(float(rng.uniform(0, 0.3)), process.send_signal, [signal.SIGKILL])
            try:
                for step in range(10_000):
                    value = value % 255 + 1
                    index = int(rng.integers(count))
                    os.pwrite(descriptor, bytes([value]) * CHUNK, index * CHUNK)
                    if step % limit == 0:
                        os.fsync(descriptor)
                    if step == 0:
                        killer.start()  # with busy processors a server could be killed before it stored anything
            except OSError:
                pass
            killer.join()
            with suppress(OSError):
                os.close(descriptor)
            process.wait()
        caplog.clear()
        unmount(str(mnt))
        assert [record.message.partition(": ")[2] for record in caplog.records] == [KILLED]
        array = zarrfs.open_array(store, "img")[...].reshape(count, CHUNK)
        for index in range(count):
            assert len(set(array[index].tolist())) == 1, f"chunk {index} is neither old nor new"
    assert array.any()
