"""An environment with zarr-python 2.18, which cannot be installed together with zarr-python 3, and a process in it.

The environment is built once in ``.venv-zarr2`` of the checkout. ``Zarr2`` is a process that calls the functions of
``zarr2_worker.py`` and returns their results.
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
    "zarr==2.18.7",  # the last release of version 2
    "numcodecs>=0.15.1,<0.16",  # zarr 2.18 requires a version below 0.16
    # 2.1 is the first version with wheels for Python 3.13; 2.2 was the newest one when zarr 2.18.7 was released.
    "numpy>=2.1,<2.3",
    "msgpack>=1.0",
    "fsspec>=2024.6",
    "fasteners>=0.19",  # for ProcessSynchronizer
    # No bsddb3: it is built against a Berkeley DB of the system and has no wheels.
    "lmdb>=1.6",
    "h5py>=3.12",
    "redis>=5.0",
    "pymongo>=4.6",
)
"""All have wheels for Python 3.11 to 3.13, except asciitree, a dependency of zarr 2 that pip builds."""


class Zarr2MissingError(RuntimeError):
    """The environment cannot be built; the message contains the reason."""


def python_with_zarr2() -> Path:
    """Return the interpreter of the environment; build it if necessary. Raises Zarr2MissingError.

    Concurrent test runs are safe: one builds the environment, the others wait.
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
            # Remains of an interrupted build, or an environment with other requirements.
            for old in FOLDER.glob(f"{version}-*"):
                shutil.rmtree(old)
            # The pip of this environment installs into the other one: to install pip there would take 10 seconds.
            _run([sys.executable, "-m", "venv", "--without-pip", str(place)])
            options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
            pip = [sys.executable, "-m", "pip", "--python", str(python)]
            _run([*pip, "install", *options, *REQUIREMENTS])
            complete.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise Zarr2MissingError(f"zarr-python 2 cannot be installed: {' '.join(output[-2:]) or command}")


class Zarr2Error(Exception):
    """An exception of zarr-python 2. ``kind`` is the name of its class."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}\n{trace}")
        self.kind = kind


class Zarr2:
    """A process with zarr-python 2. Not thread-safe.

    ``zarr2("create", store, ...)`` calls the function ``create`` of the worker and returns its result. It raises
    Zarr2Error if the function raises an exception.
    """

    def __init__(self, python: Path) -> None:
        self._stderr_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [str(python), "-u", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr_file,
            env={**os.environ, "ZARR_V3_EXPERIMENTAL_API": "1", "PYTHONPATH": ""},
        )

    def __call__(self, function: str, *arguments: Any, **options: Any) -> Any:
        self.start(function, *arguments, **options)
        return self.result()

    def start(self, function: str, *arguments: Any, **options: Any) -> None:
        """Start a call. ``result`` waits for it."""
        assert self._process.stdin is not None
        send((function, arguments, options), self._process.stdin)

    def result(self) -> Any:
        """Wait for the started call and return its result."""
        assert self._process.stdout is not None
        try:
            kind, value = receive(self._process.stdout)
        except EOFError:
            self._stderr_file.seek(0)
            raise RuntimeError(
                f"the process with zarr-python 2 exited: {self._stderr_file.read().decode()}"
            ) from None
        if kind == "error":
            raise Zarr2Error(*value)
        return value

    def close(self) -> None:
        """Close the input of the process, after which it exits, and wait for it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(TIMEOUT)
        finally:
            end(self._process)
            self._stderr_file.close()
