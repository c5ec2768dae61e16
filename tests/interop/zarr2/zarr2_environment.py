"""zarr-python 2.18 in an environment of its own, as it cannot stand beside zarr-python 3, and a process in it.

The environment is built once, in ``.venv-zarr2`` of the checkout, and used again. ``Zarr2`` is the process: it is
told what to do (``zarr2_worker.py`` has the functions) and answers with values, arrays among them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.interop.zarr2.zarr2_messages import receive, send
from tests.processes import TIMEOUT, end

__all__ = ["Zarr2", "Zarr2Error", "Zarr2MissingError", "python_with_zarr2"]

CHECKOUT = Path(__file__).resolve().parents[3]
FOLDER = CHECKOUT / ".venv-zarr2"
WORKER = Path(__file__).with_name("zarr2_worker.py")

REQUIREMENTS = (
    "zarr==2.18.7",  # the last of its line
    "numcodecs>=0.15.1,<0.16",  # below 0.16, as zarr 2.18 demands
    # 2.1 is the first with wheels for Python 3.13, 2.2 was the newest when zarr 2.18.7 was made.
    "numpy>=2.1,<2.3",
    "msgpack>=1.0",
    "fsspec>=2024.6",
    "fasteners>=0.19",  # its ProcessSynchronizer
    # No bsddb3: it is built against a Berkeley DB of the system and has no wheels.
    "lmdb>=1.6",
    "h5py>=3.12",
    "redis>=5.0",
    "pymongo>=4.6",
)
"""All have wheels for Python 3.11, 3.12 and 3.13, but for asciitree, which zarr 2 needs and pip builds."""


class Zarr2MissingError(RuntimeError):
    """The environment cannot be had here; the message says why."""


def python_with_zarr2() -> Path:
    """Return the Python of the environment, built if it is not there. Raises Zarr2MissingError.

    Safe when several test runs ask at once: one builds, the others wait for it.
    """
    key = hashlib.sha256("\n".join(REQUIREMENTS).encode()).hexdigest()[:8]
    version = "{}.{}".format(*sys.version_info[:2])
    try:
        FOLDER.mkdir(exist_ok=True)
    except OSError as error:
        raise Zarr2MissingError(f"zarr-python 2 cannot be installed: {FOLDER}: {error.strerror}") from error
    place = FOLDER / f"{version}-{key}"
    python, complete = place / "bin" / "python", place / "complete"
    with open(FOLDER / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            # What was left of a build that was interrupted, or of other requirements.
            for old in FOLDER.glob(f"{version}-*"):
                shutil.rmtree(old)
            _run([sys.executable, "-m", "venv", str(place)])
            options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
            _run([str(python), "-m", "pip", "install", *options, *REQUIREMENTS])
            complete.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Zarr2MissingError(f"zarr-python 2 cannot be installed: {' '.join(said[-2:]) or command}")


class Zarr2Error(Exception):
    """zarr-python 2 raised an exception; ``kind`` is the name of its class."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}\n{trace}")
        self.kind = kind


class Zarr2:
    """A process with zarr-python 2. One caller at a time.

    ``zarr2("create", store, ...)`` calls the function ``create`` of the worker and returns what it returns; it raises
    Zarr2Error where that raised.
    """

    def __init__(self, python: Path) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [str(python), "-u", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "ZARR_V3_EXPERIMENTAL_API": "1", "PYTHONPATH": ""},
        )

    def __call__(self, function: str, *arguments: Any, **options: Any) -> Any:
        self.start(function, *arguments, **options)
        return self.answer()

    def start(self, function: str, *arguments: Any, **options: Any) -> None:
        """Begin a call; ``answer`` waits for its end."""
        assert self._process.stdin is not None
        send((function, arguments, options), self._process.stdin)

    def answer(self) -> Any:
        """Return what the call that was begun returns."""
        assert self._process.stdout is not None
        try:
            kind, value = receive(self._process.stdout)
        except EOFError:
            self._said.seek(0)
            raise RuntimeError(f"zarr-python 2 has ended: {self._said.read().decode()}") from None
        if kind == "error":
            raise Zarr2Error(*value)
        return value

    def close(self) -> None:
        """End the process: it ends by itself when its input is closed."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(TIMEOUT)
        finally:
            end(self._process)
            self._said.close()
