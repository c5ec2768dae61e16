"""Programs that are run as processes of their own, all beginning at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

__all__ = ["run_together"]


def run_together(program: str, arguments: Sequence[Sequence[object]]) -> None:
    """Run the text of a program once with each list of arguments, and wait for all. It prints ``ready``, and goes on
    when it has read a line, which all get once all are ready.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, own)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in arguments
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
