"""The tests run in the same environment on each machine, and use only the programs that they mean."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import programs
from tests.processes import TIMEOUT

ROOT = Path(__file__).parents[1]

PROGRAM = """
import os, time
from tests import environment
environment.prepare()
mask = os.umask(0)
print(os.strerror(30), time.strftime("%z", time.gmtime(0)), oct(mask), os.environ["HOME"], sorted(os.environ), sep="|")
"""


def test_settings_of_the_user_are_not_those_of_the_tests(tmp_path: Path) -> None:
    other = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "LC_ALL": "de_DE.utf8",
        "LANGUAGE": "de",
        "TZ": "Asia/Kathmandu",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "ZARRFS_LOG": "debug",
        "ZARRFS_NATIVE": "0",
        "COLUMNS": "20",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=other,
        umask=0o077,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT,
    )
    message, zone, mask, home, names = done.stdout.strip().split("|")
    assert (message, zone, mask) == ("Read-only file system", "+0000", "0o22")
    assert home != str(tmp_path)
    assert not Path(home).exists()  # It is removed at the end.
    assert "ZARRFS_NATIVE" in names
    for name in ("XDG_CONFIG_HOME", "ZARRFS_LOG", "COLUMNS", "LANGUAGE"):
        assert f"'{name}'" not in names


def test_this_run_has_the_environment_of_tests() -> None:
    mask = os.umask(0o022)
    assert mask == 0o022
    assert time.timezone == 0
    assert os.environ["LC_ALL"] == "C.UTF-8"


@pytest.mark.parametrize("script", ["echo something else", "exit 0", "exit 3", None])
def test_another_program_of_the_same_name_is_not_used(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script is not None:
        (tmp_path / "rsync").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for function in (programs.find_program, programs.missing_reason, programs._other_identity):
        function.cache_clear()
    try:
        assert programs.find_program("rsync") is None
        expected = "is not installed" if script is None else f"{tmp_path / 'rsync'} is not rsync"
        assert expected in programs.missing_reason("rsync")
        with pytest.raises(pytest.skip.Exception, match="rsync"):
            programs.require_program("rsync")
    finally:
        monkeypatch.undo()
        for function in (programs.find_program, programs.missing_reason, programs._other_identity):
            function.cache_clear()
