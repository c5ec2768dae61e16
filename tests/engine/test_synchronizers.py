"""Locks of ``ProcessSynchronizer``. Their files are those of zarr-python 2, with record locks of whole files."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import zarrfs
from tests.processes import running
from tests.threads import run_in_threads

OTHER_PROGRAM = """
import fcntl, pathlib, sys
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True, exist_ok=True)
with path.open("w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if sys.argv[2] == "try" else 0))
    print("locked", flush=True)
    sys.stdin.read()
"""
"""What zarr-python 2 does with fasteners.InterProcessLock, until its input is closed."""


@pytest.mark.parametrize("key", ["0.0", "group/array/3/1/2"])
def test_a_lock_of_another_program_and_ours_exclude_each_other(key: str, tmp_path: Path) -> None:
    locks = zarrfs.ProcessSynchronizer(tmp_path)

    def is_free(name: str) -> bool:
        command = [sys.executable, "-c", OTHER_PROGRAM, str(tmp_path / name), "try"]
        return subprocess.run(command, input="", capture_output=True, text=True, check=False).returncode == 0

    with locks.lock(key):
        assert not is_free(key)
        assert is_free(key + "0")
    assert is_free(key)

    happened = []
    begun = threading.Event()

    def take() -> None:
        begun.set()
        with locks.lock(key):
            happened.append("acquired")

    command = [sys.executable, "-c", OTHER_PROGRAM, str(tmp_path / key), "wait"]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        thread = threading.Thread(target=take)
        thread.start()
        begun.wait()
        happened.append("released")
        process.stdin.close()
        thread.join()
        process.wait()
    assert happened == ["released", "acquired"]


def test_a_lock_excludes_other_threads(tmp_path: Path) -> None:
    """A process-wide file lock alone would be acquired by all threads at once."""
    locks = zarrfs.ProcessSynchronizer(tmp_path)
    inside: list[int] = []
    holders: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            with locks.lock("0.0"):
                inside.append(number)
                holders.append(len(inside))
                inside.remove(number)

    run_in_threads(work, range(4))
    assert max(holders) == 1
    assert len(holders) == 200


def test_a_lock_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    locks = zarrfs.ProcessSynchronizer(tmp_path)
    with locks.lock("a"):
        pass
    with pytest.raises(zarrfs.StoreError, match="cannot be used as a lock"), locks.lock("a/0"):
        pass
    with pytest.raises(zarrfs.KeyNameError), locks.lock("../outside"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(zarrfs.StoreError, match="cannot be used for locks"):
        zarrfs.ProcessSynchronizer(tmp_path / "file")
