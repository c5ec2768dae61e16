"""The fixtures of tests/conftest.py detect a child process that a test leaves, but not one of a module fixture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

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


TESTS = {"left": LEFT, "not_waited_for": NOT_WAITED_FOR, "of_a_module": OF_A_MODULE}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The message for each of the tests that fails. They run in one process, because its start takes most of the
    time.
    """
    folder = tmp_path_factory.mktemp("tests")
    report = folder / "report.xml"
    for name, test in TESTS.items():
        (folder / f"test_{name}.py").write_text(SLEEPER + test)
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--junit-xml={report}", str(folder)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert {name_of(case) for case in cases} == set(TESTS)
    return {
        name_of(case): "".join(error.itertext())
        for case in cases
        for error in (*case.iter("error"), *case.iter("failure"))
    }


def name_of(case: ElementTree.Element) -> str:
    return str(case.get("classname")).rpartition("test_")[2]


@pytest.mark.parametrize(
    ("name", "reason"), [("left", "child processes left"), ("not_waited_for", "(has exited)")]
)
def test_a_test_that_leaves_a_child_process_fails(name: str, reason: str, outcomes: dict[str, str]) -> None:
    assert reason in outcomes[name]


def test_a_child_process_of_a_module_is_not_left(outcomes: dict[str, str]) -> None:
    assert "of_a_module" not in outcomes


def test_waiting_fails_when_the_process_has_exited() -> None:
    with running([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        assert process.pid in {pid for pid, _ in child_processes()}
        with pytest.raises(AssertionError, match="exited with 3"):
            wait_until(lambda: False, process)
    assert process.pid not in {pid for pid, _ in child_processes()}
