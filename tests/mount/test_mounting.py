"""Mounting and unmounting: several sources, mount points, signals, options, mount(8), and credentials."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import BINDINGS, is_library_missing, mounted, needs_fuse, zarrfs_command
from tests.processes import TIMEOUT, running, wait_until
from tests.programs import find_program, needs_program
from zarrfs.errors import MountError
from zarrfs.mount import MountOptions, is_mounted, mount, mounts, unmount
from zarrfs.mount.process.filesystem import Filesystem
from zarrfs.mount.process.listing import list_mounts, read_statistics
from zarrfs.mount.process.records import find_record
from zarrfs.mount.process.serving import _Ending

pytestmark = needs_fuse

DATA = np.arange(60_000, dtype="u2").reshape(60, 1000)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mounting") / "data.zarr"
    root = zarrfs.create_group(path)
    root.create_array("image", data=DATA, chunks=(10, 1000))
    root.create_group("inner").create_array("0", data=np.arange(5))
    return path


@pytest.fixture(autouse=True)
def _state_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def run_in(directory: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "zarrfs", *map(str, arguments)]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=environment
    )


@contextmanager
def foreground(mountpoint: Path, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Mount in the foreground."""
    mountpoint.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "zarrfs", "mount", "-f", *map(str, arguments), str(mountpoint)]
    with running(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_mounted(str(mountpoint)), process)
            # The mount table has the mount shortly before it is ready.
            wait_until(lambda: find_record(str(mountpoint)) is not None, process)
            yield process
        finally:
            if is_mounted(str(mountpoint)):
                unmount(str(mountpoint), lazy=True)


@contextmanager
def opened(path: Path) -> Iterator[None]:
    """Open a file. Closing it fails if its mount no longer exists."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield
    finally:
        with suppress(OSError):
            os.close(descriptor)


# -- sources and mount points ----------------------------------------------------------------------------------


@pytest.mark.parametrize("binding", BINDINGS)
def test_several_sources_are_directories_of_one_mount(binding: str, store: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    zarrfs.create_array(tmp_path / "line.zarr", data=np.arange(9))
    (tmp_path / "other").mkdir()
    zarrfs.create_group(tmp_path / "other" / "data.zarr", attributes={"number": 2})
    zarrfs.create_group(tmp_path / "blocks.n5", zarr_format="n5")
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    sources = [store, tmp_path / "line.zarr", tmp_path / "other" / "data.zarr", tmp_path / "blocks.n5"]
    completed = zarrfs_command("mount", *sources, mountpoint, "--log-file", tmp_path / "log", binding=binding)
    assert completed.returncode == 0, completed.stderr
    try:
        assert sorted(os.listdir(mountpoint)) == ["blocks", "data", "data-2", "line"]
        assert os.statvfs(mountpoint).f_bavail == 0
        assert not os.access(mountpoint / "line" / "line.npy", os.X_OK)
        assert os.access(mountpoint / "line", os.X_OK)
        np.testing.assert_array_equal(np.load(mountpoint / "data" / "image.npy"), DATA)
        np.testing.assert_array_equal(np.load(mountpoint / "line" / "line.npy"), np.arange(9))
        assert json.loads((mountpoint / "data-2" / ".group.json").read_text())["attributes"] == {"number": 2}
        with pytest.raises(FileNotFoundError):
            os.stat(mountpoint / "image.npy")
        statistics = read_statistics(str(mountpoint / "data" / "image.npy"))
        assert statistics["mount"]["sources"] == list(map(str, sources))
        assert statistics["requests"]["read"] > 0
    finally:
        unmount(str(mountpoint), lazy=True)


def test_a_mount_point_is_derived_from_the_source_and_removed_with_the_mount(
    store: Path, tmp_path: Path
) -> None:
    completed = run_in(tmp_path, "mount", store)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == f"{tmp_path}/data\n"
    np.testing.assert_array_equal(np.load(tmp_path / "data" / "image.npy"), DATA)
    assert run_in(tmp_path, "umount", "data").returncode == 0
    assert os.listdir(tmp_path) == []


def test_a_derived_mount_point_that_is_in_use_is_not_touched(store: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    completed = run_in(tmp_path, "mount", store)
    assert completed.returncode == 0, completed.stderr
    assert run_in(tmp_path, "umount", "data").returncode == 0
    assert os.listdir(tmp_path) == ["data"], "it was not created by the mount"
    (tmp_path / "data" / "file").touch()
    completed = run_in(tmp_path, "mount", store)
    assert completed.returncode == 1
    assert "is not empty" in completed.stderr
    completed = run_in(tmp_path, "mount", store, tmp_path / "data", "-o", "ro,nonempty")
    assert completed.returncode == 0, completed.stderr
    assert "image.npy" in os.listdir(tmp_path / "data")
    assert run_in(tmp_path, "umount", "data").returncode == 0
    assert os.listdir(tmp_path / "data") == ["file"]
    failed = run_in(tmp_path, "mount", tmp_path / "missing.zarr")
    assert failed.returncode == 1
    assert os.listdir(tmp_path) == ["data"]


def test_a_relative_location_becomes_absolute(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    assert run_in(store.parent, "mount", "data.zarr", tmp_path / "mnt").returncode == 0
    try:
        (entry,) = [entry for entry in mounts() if entry.mountpoint == str(tmp_path / "mnt")]
        assert entry.source == str(store)
        np.testing.assert_array_equal(np.load(tmp_path / "mnt" / "image.npy"), DATA)
    finally:
        unmount(str(tmp_path / "mnt"))


def test_several_mount_points_are_unmounted_even_if_one_fails(store: Path, tmp_path: Path) -> None:
    with mounted(store, tmp_path / "a"), mounted(store, tmp_path / "b"):
        completed = zarrfs_command("umount", tmp_path / "a", tmp_path / "none", tmp_path / "b")
        assert completed.returncode == 1
        assert "none is not a zarrfs mount" in completed.stderr
        assert not is_mounted(str(tmp_path / "a"))
        assert not is_mounted(str(tmp_path / "b"))


def test_the_process_has_exited_when_umount_returns(store: Path, tmp_path: Path) -> None:
    with mounted(store, tmp_path / "mnt"):
        pid = read_statistics(str(tmp_path / "mnt"))["mount"]["pid"]
        assert Path(f"/proc/{pid}").exists()
        unmount(str(tmp_path / "mnt"))
        status = Path(f"/proc/{pid}/stat")
        assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_an_unmount_by_another_program_at_the_same_time_is_no_error(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("umount", "fusermount", "fusermount3"):
        found = find_program(name)
        if found is not None:
            text = f'#!/bin/sh\n{found} "$@"\necho "not mounted" >&2\nexit 1\n'
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
    with mounted(store, tmp_path / "mnt"):
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
            unmount(str(tmp_path / "mnt"))
        assert not is_mounted(str(tmp_path / "mnt"))
    # A signal can arrive after the unmount, and before the process has exited.
    ending = _Ending(str(tmp_path / "mnt"), False, False)
    ending.stop()
    ending.finish()
    assert caplog.records == []


# -- mounts ----------------------------------------------------------------------------------------------------


def test_mounts_lists_running_and_stale_mounts(store: Path, tmp_path: Path) -> None:
    mountpoint = tmp_path / "mnt"
    with foreground(mountpoint, store, "--cache-size", "1M") as process:
        (listed,) = [each for each in list_mounts() if each.mountpoint == str(mountpoint)]
        assert (listed.sources, listed.state, listed.pid) == ([str(store)], "mounted", process.pid)
        assert listed.cache_size == 1 << 20
        text = zarrfs_command("mounts").stdout
        (line,) = [line for line in text.splitlines() if str(mountpoint) in line]
        assert str(process.pid) in line
        assert "1.0 MiB" in line
        process.kill()
        process.wait()
        (stale,) = [each for each in list_mounts() if each.mountpoint == str(mountpoint)]
        assert (stale.state, stale.pid) == ("stale", None)
        with pytest.raises(MountError, match="no longer exists"):
            read_statistics(str(mountpoint))
        completed = zarrfs_command("umount", mountpoint)
        assert completed.returncode == 0, completed.stderr
    assert str(mountpoint) not in zarrfs_command("mounts").stdout


def test_a_stale_mount_whose_files_are_open_is_removed(store: Path, tmp_path: Path) -> None:
    mountpoint = tmp_path / "mnt"
    with foreground(mountpoint, store) as process, opened(mountpoint / "image.npy"):
        process.kill()
        process.wait()
        unmount(str(mountpoint))
        assert not is_mounted(str(mountpoint))


def findings() -> dict[str, list[str]]:
    """Return what `zarrfs doctor` found, by check."""
    document = json.loads(zarrfs_command("doctor", "--json").stdout)
    return {each["name"]: each["found"].split(", ") for each in document["findings"]}


@pytest.mark.parametrize("option", ["--immutable", "--rw"])
def test_commands_do_not_wait_for_the_stopped_process_of_a_mount(
    option: str, store: Path, tmp_path: Path
) -> None:
    mountpoint = tmp_path / "mnt"
    with foreground(mountpoint, store, option) as process:
        os.stat(mountpoint / "image.raw")  # The kernel has cached attributes.
        process.send_signal(signal.SIGSTOP)
        try:
            found = findings()
            assert str(mountpoint) in found["unresponsive mounts"]
            assert str(mountpoint) not in found["stale mounts"]
            completed = zarrfs_command("umount", mountpoint)
            assert (completed.returncode, is_mounted(str(mountpoint))) == (0, False), completed.stderr
            assert f"the process {process.pid} of the mount is still running" in completed.stderr
        finally:
            process.send_signal(signal.SIGCONT)


HANGING_SERVER = """
import sys, threading, mfusepy
class Operations(mfusepy.Operations):
    def getattr(self, path, fh=None):
        threading.Event().wait()
    statfs = getattr
mfusepy.FUSE(Operations(), sys.argv[1], foreground=True, subtype="zarrfs", fsname="hanging")
"""


def test_commands_do_not_wait_for_a_process_that_has_taken_a_request_and_hangs(
    store: Path, tmp_path: Path
) -> None:
    """A process in such a request cannot be killed."""
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    with running([sys.executable, "-c", HANGING_SERVER, str(mountpoint)]) as process:
        wait_until(lambda: is_mounted(str(mountpoint)), process)
        assert zarrfs_command("mounts").returncode == 0
        assert str(mountpoint) in findings()["unresponsive mounts"]
        assert "did not respond" in zarrfs_command("stats", mountpoint / "inner" / "0.raw").stderr
        assert "already a zarrfs mount" in zarrfs_command("mount", store, mountpoint).stderr
        completed = zarrfs_command("mount", store, mountpoint / "inner")
        assert f"is in the mount {mountpoint}" in completed.stderr
        assert "is not a zarrfs mount" in zarrfs_command("umount", mountpoint / "inner").stderr
        completed = zarrfs_command("umount", mountpoint, "--lazy")
        assert (completed.returncode, is_mounted(str(mountpoint))) == (0, False), completed.stderr


def test_a_mount_is_found_through_symbolic_links_and_with_another_subtype(
    store: Path, tmp_path: Path
) -> None:
    (tmp_path / "real" / "mnt").mkdir(parents=True)
    (tmp_path / "directory").symlink_to("real")
    (tmp_path / "link").symlink_to(tmp_path / "directory" / "mnt")
    mountpoint = str(tmp_path / "real" / "mnt")
    for options in ([], ["-o", "subtype=other"]):
        completed = zarrfs_command("mount", store, tmp_path / "directory" / "mnt", *options)
        assert completed.returncode == 0, completed.stderr
        (listed,) = [each for each in list_mounts() if each.mountpoint == mountpoint]
        assert (listed.state, listed.sources) == ("mounted", [str(store)])
        assert listed.pid is not None
        for path in (tmp_path / "link" / "image.raw", tmp_path / "link" / ".." / "mnt"):
            assert read_statistics(str(path))["mount"]["mountpoint"] == mountpoint
        completed = zarrfs_command("umount", tmp_path / "link")
        assert completed.returncode == 0, completed.stderr
        assert not is_mounted(mountpoint)
        assert not is_mounted(str(tmp_path / "link"))


# -- statistics ------------------------------------------------------------------------------------------------


def test_sources_that_are_not_complete_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = tmp_path / "a.zarr"
    zarrfs.create_group(store, attributes={"zarrfs_unfinished": {"command": "copy"}})
    with caplog.at_level("WARNING", "zarrfs"):
        filesystem = Filesystem([str(store)], "/mnt", MountOptions())
    try:
        assert filesystem.statistics.snapshot()["mount"]["unfinished"] == filesystem.sources
        assert f"{filesystem.sources[0]} is unfinished: the command that writes it" in caplog.text
    finally:
        filesystem.close()


@pytest.mark.parametrize("cache_size", [64 << 20, 512 << 20])
def test_chunks_and_blocks_share_the_cache(cache_size: int, store: Path) -> None:
    """Half of a large cache holds blocks of files. A small one holds chunks only."""
    filesystem = Filesystem([str(store)], "/mnt", MountOptions(cache_size=cache_size))
    try:
        snapshot = filesystem.statistics.snapshot()
        chunks = snapshot["chunk_cache"]["capacity"]
        assert chunks == (cache_size if cache_size < 256 << 20 else cache_size // 2)
        assert chunks + (0 if chunks == cache_size else snapshot["blocks"]["capacity"]) == cache_size
    finally:
        filesystem.close()


@pytest.mark.parametrize("immutable", [False, True])
def test_chunks_of_an_immutable_mount_are_not_compared_with_the_store(immutable: bool, store: Path) -> None:
    filesystem = Filesystem([str(store)], "/mnt", MountOptions(immutable=immutable))
    try:
        assert [node.access.recheck_data for node in filesystem._nodes] == [False if immutable else None]
    finally:
        filesystem.close()


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_statistics_count_what_happened(binding: str, store: Path, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    with mounted(store, tmp_path / "mnt", "--cache-size", "64M", binding=binding) as mnt:
        assert ".zarrfs" not in os.listdir(mnt)
        assert os.listdir(mnt / ".zarrfs") == ["stats.json"]
        before = json.loads((mnt / ".zarrfs" / "stats.json").read_text())
        assert before["decoded"] == {"chunks": 0, "nbytes": 0}
        np.testing.assert_array_equal(np.fromfile(mnt / "image.raw", "u2"), DATA.reshape(-1))
        with pytest.raises(OSError, match="not supported"):
            os.getxattr(mnt / "image.raw", "security.capability")  # as the kernel does before a write
        statistics = json.loads((mnt / ".zarrfs" / "stats.json").read_text())
        assert statistics["decoded"]["chunks"] >= 6
        assert statistics["decoded"]["nbytes"] >= DATA.nbytes
        assert statistics["read_nbytes"] >= DATA.nbytes
        assert statistics["requests"]["open"] > before["requests"]["open"]
        assert statistics["errors"] == {}
        assert 0 <= statistics["queue"]["active"] <= statistics["queue"]["max_active"] > 0
        assert statistics["memory"]["resident_nbytes"] > 1 << 20
        with pytest.raises(OSError, match="Read-only"):
            (mnt / ".zarrfs" / "stats.json").write_text("")
        text = zarrfs_command("stats", mnt / "image.raw").stdout
        for name in ("source", "requests", "chunk cache", "decoded", "memory", "errors"):
            assert any(line.startswith(name) for line in text.splitlines()), name
        as_json = zarrfs_command("stats", "--json", mnt).stdout
        assert json.loads(as_json)["mount"]["mountpoint"] == str(mnt)
    completed = zarrfs_command("stats", tmp_path)
    assert completed.returncode == 1
    assert "is not in a zarrfs mount" in completed.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_metrics_are_served_as_prometheus_text(store: Path, tmp_path: Path) -> None:
    port = free_port()
    with mounted(store, tmp_path / "mnt", "--metrics", str(port)) as mnt:
        (mnt / "image.raw").read_bytes()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = response.read().decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert float(values[f'zarrfs_read_bytes_total{{mountpoint="{mnt}"}}']) >= DATA.nbytes
        assert any(name.startswith("zarrfs_requests_total{") for name in values)
        (tmp_path / "second").mkdir()
        completed = zarrfs_command("mount", store, tmp_path / "second", "--metrics", str(port))
        assert completed.returncode == 1
        assert "cannot be served" in completed.stderr


# -- signals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_mount_whose_files_are_open(
    binding: str, signal_number: signal.Signals, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    for name, value in BINDINGS[binding].items():
        monkeypatch.setenv(name, value)
    mountpoint = tmp_path / "mnt"
    with foreground(mountpoint, store) as process, opened(mountpoint / "image.npy"):
        process.send_signal(signal_number)
        assert process.wait(TIMEOUT) == 0
        assert not is_mounted(str(mountpoint))


def test_sighup_rescans_and_does_not_end_the_mount(store: Path, tmp_path: Path) -> None:
    mountpoint, copy = tmp_path / "mnt", tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    with foreground(mountpoint, copy, "--immutable", "-o", "attr_timeout=0,entry_timeout=0") as process:
        before = os.stat(mountpoint / "image.raw").st_size
        zarrfs.open_array(copy / "image", mode="r+").resize((70, 1000))
        assert os.stat(mountpoint / "image.raw").st_size == before, "promised not to change"
        process.send_signal(signal.SIGHUP)
        while os.stat(mountpoint / "image.raw").st_size == before:
            assert process.poll() is None


def shape_in_document(path: Path) -> object:
    """Return the shape that a .json file of a mount states; None if the array changes while it is read."""
    try:
        return json.loads(path.read_text())["shape"]
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        return None


def test_a_file_is_opened_with_its_new_size_although_the_kernel_has_the_former_one(
    store: Path, tmp_path: Path
) -> None:
    mountpoint, copy = tmp_path / "mnt", tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    with foreground(mountpoint, copy) as process:
        before = os.stat(mountpoint / "image.raw").st_size
        zarrfs.open_array(copy / "image", mode="r+").resize((70, 1000))
        process.send_signal(signal.SIGHUP)
        while shape_in_document(mountpoint / "image.json") != [70, 1000]:
            assert process.poll() is None
        with (mountpoint / "image.raw").open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            assert size == len(file.read()) != before


# -- options ---------------------------------------------------------------------------------------------------


def test_owner_group_umask_and_views_can_be_chosen(store: Path, tmp_path: Path) -> None:
    options = ["--uid", "1234", "--gid", "4321", "--umask", "027", "--views", "raw,nii"]
    with mounted(store, tmp_path / "mnt", *options) as mnt:
        found = os.stat(mnt / "image.raw")
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o440)
        assert stat.S_IMODE(os.stat(mnt / "inner").st_mode) == 0o550
        assert set(os.listdir(mnt)) == {".group.json", "image.raw", "image.nii", "inner"}
        np.testing.assert_array_equal(np.load(mnt / "image.npy"), DATA)
    with mounted(
        store, tmp_path / "mnt", "-o", "uid=7,umask=077,views=npy:json,max_read=65536,noauto"
    ) as mnt:
        found = os.stat(mnt / "image.npy")
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (7, 0o400)
        assert set(os.listdir(mnt)) == {".group.json", "image.npy", "image.json", "inner"}
        np.testing.assert_array_equal(np.load(mnt / "image.npy"), DATA)
        (entry,) = [entry for entry in mounts() if entry.mountpoint == str(mnt)]
        assert "max_read=65536" in entry.options.split(",")
    (tmp_path / "mnt").mkdir(exist_ok=True)
    completed = zarrfs_command("mount", store, tmp_path / "mnt", "--views", "npy,nothing")
    assert completed.returncode == 1
    assert "'nothing' is not a view" in completed.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs user_allow_other or root")
def test_allow_other_uses_the_permissions_of_the_store(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zarr"
    shutil.copytree(store, copy)
    os.chmod(tmp_path, 0o755)
    os.chmod(copy, 0o750)
    os.chmod(copy / "image" / "zarr.json", 0o640)
    os.chown(copy / "image" / "zarr.json", 1234, 4321)
    with mounted(copy, tmp_path / "mnt", "--allow-other") as mnt:
        found = os.stat(mnt / "image.npy")
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o440)
        assert stat.S_IMODE(os.stat(mnt).st_mode) == 0o550
        (entry,) = [entry for entry in mounts() if entry.mountpoint == str(mnt)]
        assert {"allow_other", "default_permissions"} <= set(entry.options.split(","))


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_corrupt_chunk_can_read_as_the_fill_value(
    native: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZARRFS_NATIVE", native)
    root = zarrfs.create_group(tmp_path / "broken.zarr")
    root.create_array("plain", data=DATA, chunks=(10, 1000), fill_value=7)
    root.create_array("shards", data=DATA, chunks=(10, 1000), shards=(30, 1000), fill_value=7)
    chunk = tmp_path / "broken.zarr" / "plain" / "c" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:20])
    shard = tmp_path / "broken.zarr" / "shards" / "c" / "0" / "0"
    damaged = bytearray(shard.read_bytes())
    damaged[4:8] = b"\xff\xff\xff\xff"
    shard.write_bytes(damaged)
    plain, shards = DATA.copy(), DATA.copy()
    plain[10:20] = 7
    shards[:10] = 7
    with mounted(tmp_path / "broken.zarr", tmp_path / "mnt", "--on-error", "fill") as mnt:
        np.testing.assert_array_equal(np.load(mnt / "plain.npy"), plain)
        np.testing.assert_array_equal(np.load(mnt / "shards.npy"), shards)
        np.testing.assert_array_equal(np.load(mnt / "plain.npy", mmap_mode="r")[5:25, 3], plain[5:25, 3])
    log = (tmp_path / "mnt.log").read_text().splitlines()
    assert len(log) == 2, log
    assert all("it reads as the fill value" in line for line in log)
    assert any("c/1/0" in line for line in log)


def test_debug_prints_requests(store: Path, tmp_path: Path) -> None:
    with foreground(tmp_path / "mnt", "-d", store) as process:
        os.stat(tmp_path / "mnt" / "image.npy")
        unmount(str(tmp_path / "mnt"))
        _, error = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, error
    assert b"LOOKUP" in error
    assert b"image.npy" in error


# -- mount(8) --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can call mount(8)")
@needs_program("mount.fuse")
def test_mount_8_mounts_with_the_options_of_fstab(store: Path, tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    script = commands / "zarrfs"
    script.write_text(f'#!/bin/sh\nexec env PYTHONPATH="{ROOT}" "{sys.executable}" -m zarrfs "$@"\n')
    script.chmod(0o755)
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    ignored = "noauto,user,_netdev,nofail,x-systemd.automount,defaults"
    options = f"{ignored},uid=77,cache_size=1M,views=npy:nii,log_file={tmp_path / 'log'}"
    completed = subprocess.run(
        ["mount", "-t", f"fuse.{script}", str(store), str(mountpoint), "-o", options],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    try:
        assert completed.returncode == 0, completed.stderr
        assert os.stat(mountpoint / "image.npy").st_uid == 77
        assert set(os.listdir(mountpoint)) == {".group.json", "image.npy", "image.nii", "inner"}
        with pytest.raises(OSError, match="Read-only"):
            (mountpoint / "new.npy").touch()
        assert subprocess.run(["umount", str(mountpoint)], check=False, timeout=TIMEOUT).returncode == 0
    finally:
        if is_mounted(str(mountpoint)):
            unmount(str(mountpoint), lazy=True)


def test_the_helper_of_mount_8_mounts(store: Path, tmp_path: Path) -> None:
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    helper = [sys.executable, "-c", "from zarrfs.cli.mount_helper import main; main()"]
    options = f"rw,nosuid,log_file={tmp_path / 'log'}"
    run = subprocess.run(
        [*helper, str(store), str(mountpoint), "-n", "-o", options, "-t", "fuse.zarrfs"],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert run.returncode == 0, run.stderr
    np.testing.assert_array_equal(np.load(mountpoint / "image.npy"), DATA)
    unmount(str(mountpoint))
    failed = subprocess.run(
        [*helper, str(tmp_path / "missing"), str(mountpoint)],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert failed.returncode == 32
    assert "no such file or directory" in failed.stderr
    wrong = subprocess.run([*helper, "one"], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert wrong.returncode == 1
    assert "usage: mount.zarrfs" in wrong.stderr


# -- the function mount ----------------------------------------------------------------------------------------


def test_the_options_of_the_function_reach_the_mount(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    options = MountOptions(
        path="inner",
        cache_size=1 << 20,
        views=("raw",),
        uid=5,
        log_file=str(tmp_path / "log"),
        fuse_options=("max_read=65536",),
    )
    mount(str(store), str(tmp_path / "mnt"), options)
    try:
        assert set(os.listdir(tmp_path / "mnt")) == {".group.json", "0.raw"}
        assert os.stat(tmp_path / "mnt" / "0.raw").st_uid == 5
        assert read_statistics(str(tmp_path / "mnt"))["mount"]["cache_size"] == 1 << 20
    finally:
        unmount(str(tmp_path / "mnt"))
    with pytest.raises(MountError, match="no such file or directory"):
        mount(str(tmp_path / "missing"), str(tmp_path / "mnt"))
    with pytest.raises(MountError, match="not JSON"):
        mount(str(store), str(tmp_path / "mnt"), MountOptions(storage_options={"client": object()}))


def test_threads_of_the_caller_do_not_disturb_the_function(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        mount(str(store), str(tmp_path / "mnt"), MountOptions(log_file=str(tmp_path / "log")))
        unmount(str(tmp_path / "mnt"))
    finally:
        stop.set()
        thread.join()
