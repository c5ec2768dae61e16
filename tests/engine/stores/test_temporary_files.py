"""Recognition and removal of temporary files that killed writers have abandoned."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.processes import running
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.temporary_files import (
    TEMPORARY_PREFIX,
    create_temporary,
    is_abandoned,
    lock_file,
    remove_abandoned,
)
from zarrfs.errors import ReadOnlyError
from zarrfs.tools import clean

WRITER = """
import os, sys, zarrfs
from zarrfs.engine.stores.local import store as local
replace = os.replace
def wait(*names):
    if "c/" in names[1]:
        print("ready", flush=True)
        sys.stdin.readline()
    replace(*names)
os.replace = wait
array = zarrfs.open_array(sys.argv[1], mode="r+")
array[1, 1] = 7
print("done", flush=True)
"""


@contextmanager
def waiting_writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has written a temporary file for a chunk and waits for a line before it renames the file."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        yield writer


def temporary_files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.name.startswith(TEMPORARY_PREFIX)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    zarrfs.create_group(tmp_path / "g").create_array("a", data=np.ones((4, 4)), chunks=(2, 2))
    return tmp_path / "g"


def test_files_of_a_running_writer_are_not_removed(path: Path) -> None:
    with waiting_writer(path / "a") as writer:
        assert len(temporary_files(path)) == 1
        assert clean(path) == []
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "done\n"
    assert temporary_files(path) == []
    assert zarrfs.open_array(path, "a")[1, 1] == 7


def test_files_of_a_killed_writer_are_removed(path: Path) -> None:
    with waiting_writer(path / "a") as writer:
        writer.send_signal(signal.SIGKILL)
    (abandoned,) = temporary_files(path)
    assert is_abandoned(str(abandoned))
    assert clean(path, dry_run=True) == [str(abandoned)]
    with pytest.raises(ReadOnlyError):
        LocalStore(path, read_only=True).clean()
    assert abandoned.exists()
    assert clean(path) == [str(abandoned)]
    assert temporary_files(path) == []
    assert (zarrfs.open_array(path, "a")[...] == 1).all()


def test_files_of_a_zombie_are_removed(path: Path) -> None:
    with waiting_writer(path / "a") as writer:
        writer.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)
        assert len(clean(path)) == 1


def test_deleting_a_node_deletes_abandoned_files(path: Path) -> None:
    with waiting_writer(path / "a") as writer:
        writer.send_signal(signal.SIGKILL)
    del zarrfs.open_group(path, mode="r+")["a"]
    assert sorted(os.listdir(path)) == ["zarr.json"]


def test_files_of_an_earlier_process_with_the_same_id_are_abandoned(tmp_path: Path) -> None:
    fd, own_file = create_temporary(str(tmp_path))
    os.close(fd)
    machine, process, start, number = os.path.basename(own_file).removeprefix(TEMPORARY_PREFIX).split("-")
    earlier_file = tmp_path / f"{TEMPORARY_PREFIX}{machine}-{process}-{int(start, 16) - 1:x}-{number}"
    earlier_file.write_bytes(b"half")
    assert not is_abandoned(own_file)
    assert is_abandoned(str(earlier_file))


@pytest.mark.parametrize("name", ["0123456789ab-1-2-3", "0123456789ab-1-2", "xyz", "k3j2_8", ""])
def test_unlocked_files_of_other_machines_are_abandoned_after_a_day(name: str, tmp_path: Path) -> None:
    abandoned = tmp_path / f"{TEMPORARY_PREFIX}{name}"
    abandoned.write_bytes(b"half")
    assert not is_abandoned(str(abandoned))
    old = time.time() - 25 * 60 * 60
    os.utime(abandoned, (old, old))
    assert is_abandoned(str(abandoned))
    fd = os.open(abandoned, os.O_RDWR)
    lock_file(fd)
    assert not is_abandoned(str(abandoned))
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)
    remove_abandoned(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_other_files_are_not_removed(tmp_path: Path) -> None:
    old = time.time() - 25 * 60 * 60
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"{TEMPORARY_PREFIX}x").write_bytes(b"1")
    os.utime(tmp_path / "elsewhere" / f"{TEMPORARY_PREFIX}x", (old, old))
    root = tmp_path / "s"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / f"{TEMPORARY_PREFIX}directory").mkdir()
    for name in ("a", ".temporary_files", f"x{TEMPORARY_PREFIX}"):
        (root / name).write_bytes(b"1")
        os.utime(root / name, (old, old))
    os.utime(root / f"{TEMPORARY_PREFIX}directory", (old, old))
    before = sorted(os.listdir(root))
    assert LocalStore(root).clean() == []
    assert sorted(os.listdir(root)) == before


def test_clean_removes_abandoned_files_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    zarrfs.create_group(path).store.close()
    code = f"""
import os, signal, zarrfs
zarrfs.create_array({str(path)!r}, "a", data=[1, 2]).store.close()
array = zarrfs.create_array({str(path)!r}, "b", data=[1, 2])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (abandoned,) = temporary_files(tmp_path)
    before = path.read_bytes()
    assert clean(path, dry_run=True) == [str(abandoned)]
    assert clean(path) == [str(abandoned)]
    assert os.listdir(tmp_path) == ["a.zip"]
    assert path.read_bytes() == before
    assert "a" in zarrfs.open_group(path)
