"""Mounts that other programs read through the kernel."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import BINDINGS, is_library_missing, mounted, needs_fuse, zarrfs_command
from tests.processes import TIMEOUT, running, wait_until
from tests.programs import require_program
from zarrfs.mount import is_mounted, mounts

pytestmark = needs_fuse

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 60_000, (20, 60, 70), "u2")


def make_store(path: Path) -> None:
    root = zarrfs.create_group(path, attributes={"author": "test"})
    root.create_array("image", data=IMAGE, chunks=(10, 32, 32))
    root.create_array("sharded", data=IMAGE, chunks=(5, 16, 16), shards=(10, 32, 32))
    root.create_array("order_f", data=IMAGE, chunks=(10, 32, 32), order="F")
    root.create_array("scalar", data=np.float64(2.5))
    root.create_array("empty", shape=(0, 3), dtype="f4")
    root.create_array("missing", shape=(10**6, 10**9), dtype="u1", chunks=(1000, 1000), fill_value=7)
    root.create_array("words", data=np.array(["a", "größer"], object), dtype="string")
    root.create_group("größe").create_array("0", data=np.arange(5))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "data.zarr"
    make_store(path)
    return path


@pytest.fixture
def mountpoint(store: Path, tmp_path: Path) -> Iterator[Path]:
    with mounted(store, tmp_path / "mnt") as path:
        yield path


def inode_numbers(mountpoint: Path) -> dict[str, int]:
    """Return the inode numbers of all files and directories, which are the same in listings."""
    found = {}
    for directory, names, files in os.walk(mountpoint):
        for entry in os.scandir(directory):
            assert entry.inode() == os.stat(entry.path).st_ino, entry.path
        for name in (*names, *files):
            path = Path(directory, name)
            found[str(path.relative_to(mountpoint))] = path.stat().st_ino
    assert len(set(found.values())) == len(found) > 20
    assert os.stat(mountpoint).st_ino not in found.values()
    return found


@pytest.mark.parametrize("binding", BINDINGS)
def test_inode_numbers_are_the_same_in_every_mount(binding: str, store: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    with mounted(store, tmp_path / "first") as mnt:
        expected = inode_numbers(mnt)
    with mounted(store, tmp_path / "second", "-o", "use_ino", "--immutable", binding=binding) as mnt:
        assert inode_numbers(mnt) == expected


@pytest.mark.parametrize("binding", BINDINGS)
def test_every_binding_returns_the_same_bytes(binding: str, store: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    with mounted(store, tmp_path / "mnt", binding=binding) as mnt:
        for name in ("image", "sharded", "order_f"):
            np.testing.assert_array_equal(np.load(mnt / f"{name}.npy"), IMAGE)
            np.testing.assert_array_equal(np.fromfile(mnt / f"{name}.raw", "u2").reshape(IMAGE.shape), IMAGE)
        mapped = np.load(mnt / "image.npy", mmap_mode="r")
        np.testing.assert_array_equal(mapped[3:5, ::7, 60], IMAGE[3:5, ::7, 60])
        raw = np.memmap(mnt / "image.raw", "u2", "r", shape=IMAGE.shape)
        assert raw[19, 59, 69] == IMAGE[19, 59, 69]
        assert sorted(os.listdir(mnt / "größe")) == [".group.json", "0.json", "0.npy", "0.raw"]
        assert os.getxattr(mnt / "image.npy", "user.zarr.shape") == b"[20, 60, 70]"
        assert "user.zarr.codecs" in os.listxattr(mnt / "image.npy")
        with pytest.raises(OSError, match="No data available") as caught:
            os.getxattr(mnt / "image.npy", "user.nothing")
        assert caught.value.errno == errno.ENODATA
        with pytest.raises(FileNotFoundError):
            os.stat(mnt / "nothing.npy")
    assert not is_mounted(str(mnt))
    assert os.listdir(mnt) == []


def test_a_mount_contains_the_files_of_all_members(mountpoint: Path) -> None:
    listed = os.listdir(mountpoint)
    assert {"image.npy", "image.raw", "image.json", "words.json", "größe", ".group.json"} <= set(listed)
    assert "words.npy" not in listed
    assert float(np.load(mountpoint / "scalar.npy")) == 2.5
    assert np.load(mountpoint / "empty.npy").shape == (0, 3)
    found = os.stat(mountpoint / "image.npy")
    assert found.st_size == 128 + IMAGE.nbytes
    assert 0 < found.st_blocks * 512 <= found.st_size + 4096
    assert stat.S_IMODE(found.st_mode) == 0o444
    assert os.statvfs(mountpoint).f_bavail == 0
    assert b"vary in length" in (mountpoint / "words.json").read_bytes()


def test_a_very_large_array_of_missing_chunks_is_sparse(mountpoint: Path) -> None:
    found = os.stat(mountpoint / "missing.raw")
    assert found.st_size == 10**15
    assert found.st_blocks < 100
    with open(mountpoint / "missing.raw", "rb") as file:
        file.seek(10**15 - 3)
        assert file.read() == b"\7\7\7"


COMMANDS = [
    "cp {mnt}/image.npy {out}/copy.npy && cmp {mnt}/image.npy {out}/copy.npy",
    "dd if={mnt}/image.raw of={out}/dd.raw bs=64k status=none && cmp {mnt}/image.raw {out}/dd.raw",
    "dd if={mnt}/image.raw bs=1000 skip=3 count=2 status=none | cmp - <(tail -c +3001 {mnt}/image.raw | head -c 2000)",
    "md5sum {mnt}/image.npy && od -A d -t x1 {mnt}/scalar.raw",
    "test $( find {mnt} -type f -name '*.npy' | wc -l) = 7",
    "mkdir {out}/r && rsync -a --exclude 'missing*' {mnt}/ {out}/r && cmp {out}/r/sharded.npy {mnt}/sharded.npy",
    "cat {mnt}/image.raw | wc -c | grep -q 168000",
    "getfattr -n user.zarr.dtype --only-values {mnt}/image.npy | grep -q u2",
    "du -s {mnt}/image.npy && df {mnt} && ls -la {mnt}",
    "! touch {mnt}/new 2> {out}/error; grep -q 'Read-only file system' {out}/error",
    "! rm -f {mnt}/image.npy 2> {out}/error; grep -q 'Read-only file system' {out}/error",
    "! sh -c 'echo x >> {mnt}/image.npy' 2> {out}/error; grep -q 'Read-only file system' {out}/error",
    "! chmod 777 {mnt}/image.npy 2> {out}/error; grep -q 'Read-only file system' {out}/error",
    "! mv {mnt}/image.npy {mnt}/b 2> {out}/error; grep -q 'Read-only file system' {out}/error",
]


@pytest.mark.parametrize("command_line", COMMANDS)
def test_other_programs_can_read_the_files(command_line: str, mountpoint: Path, tmp_path: Path) -> None:
    for program in ("cp", "dd", "find", "getfattr", "rsync"):
        if program in command_line.split(" "):
            require_program(program)
    command = "set -e; " + command_line.format(mnt=mountpoint, out=tmp_path)
    completed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_numpy_can_map_a_file_in_another_process(mountpoint: Path) -> None:
    code = f"import numpy as np; a = np.load('{mountpoint}/image.npy', mmap_mode='r'); print(int(a[7].sum()))"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(completed.stdout) == int(IMAGE[7].sum())


def test_several_threads_read_concurrently(mountpoint: Path) -> None:
    expected = hashlib.md5((mountpoint / "image.raw").read_bytes()).digest()
    assert expected == hashlib.md5(IMAGE.tobytes()).digest()
    results: list[bytes] = []

    def read(name: str) -> None:
        with open(mountpoint / name, "rb", buffering=0) as file:
            digest = hashlib.md5()
            while block := file.read(10_007):
                digest.update(block)
            results.append(digest.digest())

    threads = [threading.Thread(target=read, args=(f"{n}.raw",)) for n in ("image", "sharded", "order_f") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 9


def test_one_slow_chunk_does_not_block_others(tmp_path: Path) -> None:
    path, mnt, pipe = tmp_path / "slow.zarr", tmp_path / "mnt", tmp_path / "pipe"
    data = np.arange(4_000_000, dtype="u4").astype("u2")
    zarrfs.create_array(path, data=data, chunks=2_000_000, compressors=None)
    # Opening a file that has changed recently waits for all reads of the file.
    for item in [path, *path.rglob("*")]:
        os.utime(item, (10**9, 10**9))
    mnt.mkdir()
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "tests.mount.gated", str(path), str(mnt), str(pipe), "c/0"]
    with running(command, cwd=Path(__file__).parents[2]) as process:
        try:
            wait_until(lambda: is_mounted(str(mnt)), process)
            results: dict[int, bytes] = {}

            def read_at(offset: int) -> None:
                with open(mnt / "slow.raw", "rb", buffering=0) as file:
                    # With read-ahead the kernel requests neighbouring ranges, which are read in blocks of whole chunks.
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                    file.seek(offset)
                    results[offset] = file.read(1000)

            slow = threading.Thread(target=read_at, args=(0,))
            slow.start()
            # In a thread, because a signal does not interrupt a read that waits for a page of the kernel's cache.
            other = threading.Thread(target=read_at, args=(6_000_000,))
            other.start()
            other.join(TIMEOUT)
            assert results == {6_000_000: data.tobytes()[6_000_000:6_001_000]}
            assert slow.is_alive()
            while slow.is_alive():
                # A blocked read ends when the pipe is opened for writing. O_NONBLOCK fails while there is no reader.
                with suppress(OSError):
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                slow.join(0.01)
            assert results[0] == data.tobytes()[:1000]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT)
    assert not is_mounted(str(mnt))


def test_a_corrupt_chunk_affects_only_its_bytes_and_is_logged_once(tmp_path: Path) -> None:
    path = tmp_path / "broken.zarr"
    data = np.arange(64 * 4096, dtype="u1").reshape(64, 4096)
    zarrfs.create_array(path, data=data, chunks=(8, 4096))
    corrupt_chunk = path / "c" / "3" / "0"
    corrupt_chunk.write_bytes(corrupt_chunk.read_bytes()[:20])
    os.unlink(path / "c" / "5" / "0")
    expected = data.copy()
    expected[40:48] = 0
    with mounted(path, tmp_path / "mnt") as mnt:
        descriptor = os.open(mnt / "broken.raw", os.O_RDONLY)
        try:
            for row in range(64):
                if 24 <= row < 32:
                    with pytest.raises(OSError, match="Input/output error"):
                        os.pread(descriptor, 4096, row * 4096)
                else:
                    assert os.pread(descriptor, 4096, row * 4096) == expected[row].tobytes(), row
            for _ in range(3):
                with pytest.raises(OSError, match="Input/output error"):
                    os.pread(descriptor, 100, 25 * 4096)
        finally:
            os.close(descriptor)
    log = (tmp_path / "mnt.log").read_text()
    assert len(log.splitlines()) == 1, log
    assert "c/3/0" in log
    assert "(3, 0)" in log


def test_a_mount_presents_changes_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "live.zarr"
    array = zarrfs.create_array(path, data=np.zeros(1000, "u1"), chunks=100)
    with mounted(path, tmp_path / "mnt") as mnt:
        assert (mnt / "live.raw").read_bytes() == bytes(1000)
        array[150] = 9
        os.utime(path / "c" / "1", ns=(10**18, 4 * 10**18))

        def is_visible() -> bool:
            return (mnt / "live.raw").read_bytes()[150] == 9

        for _ in range(10_000):
            if is_visible():
                break
        assert is_visible()


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_unmounts(signal_number: signal.Signals, store: Path, tmp_path: Path) -> None:
    mnt = tmp_path / "mnt"
    mnt.mkdir()
    command = [sys.executable, "-m", "zarrfs", "mount", "-f", str(store), str(mnt)]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: is_mounted(str(mnt)), process)
        assert (mnt / "scalar.npy").exists()
        process.send_signal(signal_number)
        _, error = process.communicate(timeout=TIMEOUT)
    assert not is_mounted(str(mnt))
    assert process.returncode == 0, error
    assert error == b""


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\nb", "a\rb", "a\\b", "a\x0c\x85\u2028b"])
def test_a_mount_point_with_separators_in_its_name_is_found(name: str, store: Path, tmp_path: Path) -> None:
    with mounted(store, tmp_path / name) as mnt:
        assert is_mounted(str(mnt))
    assert not is_mounted(str(tmp_path / name))


def test_a_stale_mount_is_detected_and_removed(store: Path, tmp_path: Path) -> None:
    mnt = tmp_path / "mnt"
    mnt.mkdir()
    with running([sys.executable, "-m", "zarrfs", "mount", "-f", str(store), str(mnt)]) as process:
        wait_until(lambda: is_mounted(str(mnt)), process)
    with pytest.raises(OSError, match="not connected"):
        os.listdir(mnt)
    with mounted(store, mnt):
        assert (mnt / "scalar.npy").exists()
    with running([sys.executable, "-m", "zarrfs", "mount", "-f", str(store), str(mnt)]) as process:
        wait_until(lambda: is_mounted(str(mnt)), process)
    completed = zarrfs_command("umount", mnt)
    assert completed.returncode == 0, completed.stderr
    assert os.listdir(mnt) == []


def test_an_incorrect_use_prints_one_line(store: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "no.zarr").mkdir()
    for arguments, expected in [
        (("mount", store, tmp_path / "nowhere"), "no such directory"),
        (("mount", store, full), "not empty"),
        (("mount", store, full / "file"), "is not a directory. Choose an empty directory"),
        (("mount", tmp_path / "missing.zarr", empty), "no such file or directory"),
        (("mount", tmp_path / "no.zarr", empty), "no Zarr array or group here"),
        (("mount", full / "file", empty), "is empty"),
        (("mount", store, empty, "--path", "nothing"), "no Zarr array or group here"),
        (("mount", store, empty, "-o", "nonsense=1"), "libfuse could not mount"),
        (("umount", empty), "is not a zarrfs mount"),
    ]:
        completed = zarrfs_command(
            *arguments, *(["--log-file", tmp_path / "log"] if arguments[0] == "mount" else [])
        )
        lines = [line for line in completed.stderr.splitlines() if not line.startswith("fuse:")]
        assert completed.returncode == 1, arguments
        assert len(lines) == 1, completed.stderr
        assert lines[0].startswith("zarrfs: ")
        assert expected in lines[0]
        assert not completed.stdout
    with mounted(store, empty):
        completed = zarrfs_command("mount", store, empty)
        assert "is already a zarrfs mount" in completed.stderr
    assert not [path for path, *_ in mounts() if str(tmp_path) in path]


def test_zip_files_groups_and_single_arrays_can_be_mounted(store: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "data.zarr"), "zip", store)
    with mounted(archive, tmp_path / "a") as mnt:
        np.testing.assert_array_equal(np.load(mnt / "image.npy"), IMAGE)
    with mounted(f"{archive}/größe", tmp_path / "b") as mnt:
        np.testing.assert_array_equal(np.load(mnt / "0.npy"), np.arange(5))
    with mounted(store / "image", tmp_path / "c") as mnt:
        np.testing.assert_array_equal(np.load(mnt / "image.npy"), IMAGE)
    with mounted(store, tmp_path / "d", "--path", "größe", "--immutable", "--cache-size", "1M") as mnt:
        np.testing.assert_array_equal(np.load(mnt / "0.npy"), np.arange(5))


def test_the_mount_table_contains_no_control_characters(store: Path, tmp_path: Path) -> None:
    location = tmp_path / "a\x1b]0;x\x07\r\x85\nb, c\\d.zarr"
    location.symlink_to(store)
    mountpoint = tmp_path / "mnt\r\x85 \n"
    with mounted(location, mountpoint) as mnt:
        assert (mnt / "scalar.npy").exists()
        assert is_mounted(str(mnt))
        table = Path("/proc/self/mounts").read_bytes().decode("utf-8", "surrogateescape")
        (line,) = [line for line in table.split("\n") if str(tmp_path) in line]
        assert "\x1b" not in line
        assert line.split(" ")[0].isprintable()
    assert not is_mounted(str(mountpoint))


CLOSE_FAILS = """
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import StoreError


class CloseFails(LocalStore):
    def close(self):
        raise StoreError("the disk was removed\\n\\x1b[31m")


def open_store(url, mode):
    return CloseFails(url.partition("://")[2], read_only=True)
"""


def test_an_error_after_the_mount_was_ready_is_logged(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent process has exited by then, so the error can only be logged."""
    packages = tmp_path / "packages"
    information = packages / "close_fails-1.0.dist-info"
    information.mkdir(parents=True)
    (packages / "close_fails.py").write_text(CLOSE_FAILS)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: close-fails\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[zarrfs.stores]\nfailing = close_fails:open_store\n")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    log = tmp_path / "mnt.log"
    with mounted(f"failing://{store}", tmp_path / "mnt") as mnt:
        assert (mnt / "scalar.npy").exists()
        assert log.read_text() == ""
    while not log.read_text().endswith("\n"):
        os.sched_yield()  # the process exits after the unmount; the time limit of pytest applies
    (line,) = log.read_text().splitlines()
    assert "ERROR the disk was removed\\n\\x1b[31m" in line
    assert not is_mounted(str(mnt))
