"""Processes of contenders, to which requests are sent in turn."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

__all__ = ["Worker", "rotated"]


class Worker:
    """The process of a contender: ``python -m MODULE ARGUMENT...``. Requests and results are JSON lines."""

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._name = " ".join([module, *arguments])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def request(self, *values: Any) -> Any:
        """Send a request and return the result."""
        assert self._process.stdin is not None
        print(json.dumps(values), file=self._process.stdin, flush=True)
        return self.receive()

    def receive(self) -> Any:
        """Return the next line of the process, if a request has more than one result."""
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self._name} exited with status {self._process.wait()}")
        return json.loads(answer)


def rotated(names: Sequence[str], number: int) -> Iterator[str]:
    """Yield the names, beginning with another one for each number."""
    shift = number % len(names)
    yield from names[shift:]
    yield from names[:shift]
