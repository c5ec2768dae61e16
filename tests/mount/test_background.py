"""The process of a mount in the background: it ends in the function that started it, and depends on nothing of its
surroundings.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse, zarrfs_command
from tests.processes import output_of
from zarrfs.errors import MountError
from zarrfs.mount import unmount
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process import background


class Exited(BaseException):
    """The process would have ended with this status."""


@pytest.mark.parametrize(
    ("outcome", "expected"), [(0, 0), (3, 3), (MountError("no"), 1), (KeyboardInterrupt(), 1)], ids=repr
)
def test_the_child_process_never_returns_to_the_caller(
    outcome: int | BaseException, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the program of the caller would run twice."""

    def serve(location: Any, mountpoint: str, options: Any, write_end: int, is_created: bool) -> int:
        os.close(write_end)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def leave(status: int) -> None:
        raise Exited(status)

    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(background, "_serve_in_child", serve)
    with pytest.raises(Exited) as caught:
        background.serve_in_background("image.zarr", "mountpoint", MountOptions())
    assert caught.value.args == (expected,)


@needs_fuse
@pytest.mark.parametrize("place", ["home", "state", "log"])
def test_a_log_that_cannot_be_written_does_not_prevent_mounting(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state directory is in a file, is below a file, or has a directory with the name of the log."""
    store, mountpoint = tmp_path / "line.zarr", tmp_path / "mnt"
    zarrfs.create_array(store, data=np.arange(9))
    (tmp_path / "file").touch()
    (tmp_path / "state" / "zarrfs" / "mount.log").mkdir(parents=True)
    if place == "home":
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("file" if place == "state" else "state")))
    mountpoint.mkdir()
    completed = zarrfs_command("mount", store, mountpoint)
    try:
        assert completed.returncode == 0, completed.stderr
        (line,) = completed.stderr.splitlines()
        assert line.startswith("zarrfs: WARNING: the log of the mount cannot be written")
        np.testing.assert_array_equal(np.load(mountpoint / "line.npy"), np.arange(9))
    finally:
        unmount(str(mountpoint), lazy=True)
    completed = zarrfs_command("mount", store, mountpoint, "--log-file", tmp_path / "file" / "log")
    assert (completed.returncode, completed.stderr.count("\n")) == (1, 1)
    assert "the log cannot be written: " in completed.stderr


@needs_fuse
def test_a_mount_does_not_keep_the_descriptors_of_its_caller(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "line.zarr", data=np.arange(9))
    with (tmp_path / "lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        os.set_inheritable(first.fileno(), True)
        command = [sys.executable, "-m", "zarrfs", "mount", tmp_path / "line.zarr", tmp_path / "mnt"]
        (tmp_path / "mnt").mkdir()
        script = f"exec {shlex.join(map(str, command))}"
        # subprocess closes descriptors, a shell does not.
        read = os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", script])
        assert read == 0
    try:
        with (tmp_path / "lock").open("w") as second:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        unmount(str(tmp_path / "mnt"), lazy=True)


@needs_fuse
@pytest.mark.skipif(
    not sys.prefix.isascii(), reason="NumPy is not importable from such a path in an ASCII locale"
)
def test_names_are_utf_8_in_each_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for location in (tmp_path / "directory.zarr", tmp_path / "archive.zip"):
        with zarrfs.create_group(location) as group:
            group.create_array("größe", data=np.arange(9, dtype="u1"))
        with monkeypatch.context() as patch:
            for name, value in (("LC_ALL", "POSIX"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
                patch.setenv(name, value)
            context = mounted(location, tmp_path / "mnt")
            mountpoint = context.__enter__()
        try:
            listed = output_of(["ls", mountpoint], cwd=None, env={**os.environ, "LC_ALL": "C.UTF-8"})
            assert listed.split() == ["größe.json", "größe.npy", "größe.raw"]
            assert (mountpoint / "größe.raw").read_bytes() == bytes(range(9))
        finally:
            context.__exit__(None, None, None)
