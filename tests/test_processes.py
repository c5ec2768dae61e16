"""The fixtures of tests/conftest.py detect a child process that a test leaves, but not one of a module fixture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import TIMEOUT, child_processes, running, wait_until

CHECKOUT = Path(__file__).resolve().parents[1]

SLEEPER = "import subprocess, sys\nSLEEP = [sys.executable, '-c', 'import sys; sys.stdin.read()']\n"

LEFT = """
def test_it():
    global process
    process = subprocess.Popen(SLEEP, stdin=subprocess.PIPE)
"""

NOT_WAITED_FOR = """
import os
def test_it():
    global process
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
"""

OF_A_MODULE = """
import pytest
@pytest.fixture(scope="module")
def server():
    process = subprocess.Popen(SLEEP, stdin=subprocess.PIPE)
    yield process
    process.communicate()
def test_it(request):
    request.getfixturevalue("server")
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [(LEFT, "child processes left"), (NOT_WAITED_FOR, "(has exited)"), (OF_A_MODULE, "1 passed")],
    ids=["left", "not waited for", "of a module"],
)
def test_a_test_that_leaves_a_child_process_fails(test: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SLEEPER + test)
    options = [
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "-c",
        os.devnull,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert expected in done.stdout, done.stdout + done.stderr
    assert done.returncode == ("passed" not in expected)


def test_waiting_fails_when_the_process_has_exited() -> None:
    with running([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        assert process.pid in {pid for pid, _ in child_processes()}
        with pytest.raises(AssertionError, match="exited with 3"):
            wait_until(lambda: False, process)
    assert process.pid not in {pid for pid, _ in child_processes()}
