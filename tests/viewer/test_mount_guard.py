"""Mounts of the viewer are removed when its process ends, also by SIGTERM and SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.mount_guard import MountGuard, remove_mounts
from zarrfs_viewer.mounts import Mounts

import zarrfs
from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT, running
from zarrfs.mount import is_mounted

VIEWER = """
import sys
from pathlib import Path
from PyQt6.QtCore import QTimer
from zarrfs_viewer import main
from zarrfs_viewer.qt.window import application
from zarrfs_viewer import mounts
from zarrfs_viewer.mounts import Mounts

mounts.Mounts = lambda: Mounts(Path(sys.argv[2]))
original = application._show_window

def show_window(*arguments):
    window = original(*arguments)
    mount = lambda: window.mounts.mount(sys.argv[1])
    window.call_when_complete(
        lambda: window.session.run_in_worker(mount, lambda path: print(path, flush=True), "mount")
    )
    return window

application._show_window = show_window
main.run([sys.argv[1]])
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.zeros((8, 8), "u1"))
    return tmp_path / "a.zarr"


@needs_fuse
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_mount_is_left_behind_by_a_signal(store: Path, tmp_path: Path, number: signal.Signals) -> None:
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, "-c", VIEWER, str(store), str(tmp_path / "mounts")]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running(command, env=environment, **pipes) as viewer:
        assert viewer.stdout is not None
        mount_point = viewer.stdout.readline().strip()
        assert is_mounted(mount_point)
        viewer.send_signal(number)
        status = viewer.wait(TIMEOUT)
    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    if number != signal.SIGKILL:
        assert "geometry" in (tmp_path / "config" / "zarrfs" / "viewer.conf").read_text()
    # After SIGKILL the guard removes the mount, in its own time.
    deadline = monotonic() + TIMEOUT
    while is_mounted(mount_point) or os.path.lexists(mount_point):
        assert monotonic() < deadline, f"{mount_point} was left behind"
        Event().wait(0.02)


@needs_fuse
def test_mounts_are_removed_with_their_directories(store: Path, tmp_path: Path) -> None:
    mounts = Mounts(tmp_path / "mounts")
    mount_point = mounts.mount(str(store))
    assert np.load(mounts.file(str(store), "", True)).shape == (8, 8)
    assert mounts.mount(str(store)) == mount_point
    mounts.close()
    assert not is_mounted(str(mount_point))
    assert list((tmp_path / "mounts").iterdir()) == []


def test_a_guard_removes_directories_without_a_mount(tmp_path: Path) -> None:
    (tmp_path / "a" / "m").mkdir(parents=True)
    (tmp_path / "b" / "m").mkdir(parents=True)
    (tmp_path / "b" / "m" / "file").write_text("kept")
    (message,) = remove_mounts([tmp_path / "a" / "m", tmp_path / "b" / "m", tmp_path / "c" / "missing"])
    assert "could not be unmounted" in message
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "b" / "m" / "file").read_text() == "kept"


def test_a_guard_that_was_not_started_closes(tmp_path: Path) -> None:
    MountGuard().close()
    guard = MountGuard()
    guard.add(tmp_path / "missing")
    guard.close()
    guard.close()
