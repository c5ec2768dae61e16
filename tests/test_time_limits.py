"""A test that continues after its time limit ends the process, and the stacks of its threads are printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.processes import TIMEOUT

ROOT = Path(__file__).resolve().parents[1]

HANGING = """
import threading
from hypothesis.stateful import RuleBasedStateMachine, rule

class Machine(RuleBasedStateMachine):
    @rule()
    def wait_for_ever(self):
        threading.Event().wait()

TestMachine = Machine.TestCase

def test_before():
    pass
"""


def test_a_state_machine_that_hangs_ends(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 1\ntimeout_grace = 1\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.time_limits",
            "-p",
            "no:cacheprovider",
            "test_hanging.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert done.returncode not in (0, -9)
    assert "wait_for_ever" in done.stderr
    assert "Timeout (0:00:02)!" in done.stderr
