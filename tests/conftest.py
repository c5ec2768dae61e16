"""What holds for every test: nothing unexpected is logged, no thread, process and mount outlives it. And the
shared data.

Unexpected warnings fail a test too; that is ``filterwarnings`` in pyproject.toml.
"""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.processes import child_processes, end, lasting, lasting_processes
from zarrfs.mount.mounting import mounts

hypothesis.settings.register_profile("default", deadline=None, max_examples=60)
# In CI the same examples every time: a failure there must be one that can be had again.
hypothesis.settings.register_profile(
    "ci", parent=hypothesis.settings.get_profile("default"), derandomize=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")

OUR_LOGGERS = ("zarrfs", "zarrfs_viewer")

PERMANENT_THREADS = ("ThreadPoolExecutor-", "zarrfs-", "zarr_io", "asyncio_", "fsspecIO", "pytest_timeout")
"""Threads that stay for the life of the process: our worker pool, and those of the libraries we are held
against."""

MAX_SECONDS_TO_END = 5.0
"""How long a thread that was told to end may take to do so."""


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data sets: $ZARRFS_DATA, or ``shared/data`` beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    directory = Path(os.environ.get("ZARRFS_DATA") or beside)
    if not directory.is_dir():
        pytest.skip(f"no real data sets here: {directory} is missing; set ZARRFS_DATA")
    return directory


class _Listener(logging.Handler):
    """Keeps what is logged at WARNING and above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.levelname} {record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def _nothing_unexpected_is_logged(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that expects our loggers to warn asks for ``caplog`` and looks at what it holds."""
    listener = _Listener()
    for name in OUR_LOGGERS:
        logging.getLogger(name).addHandler(listener)
    yield
    for name in OUR_LOGGERS:
        logging.getLogger(name).removeHandler(listener)
    if listener.messages and "caplog" not in request.fixturenames:
        pytest.fail("unexpected log records:\n" + "\n".join(listener.messages))


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = []
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith(PERMANENT_THREADS) or isinstance(thread, threading._DummyThread):
            continue
        thread.join(MAX_SECONDS_TO_END)
        if thread.is_alive():
            left.append(thread.name)
    if left:
        pytest.fail(f"threads left running: {', '.join(sorted(left))}")


HELPERS_OF_PYTHON = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Processes that the standard library starts once and ends with the interpreter."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    with lasting():
        return (yield)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """A child that has ended but was not waited for counts too: its ``Popen`` would warn in some later test."""
    before = child_processes()
    yield
    left = {
        child: command
        for child, command in child_processes().items()
        if child not in before
        and child not in lasting_processes
        and not any(name in command for name in HELPERS_OF_PYTHON)
    }
    if left:
        numbers = {number for number, _ in left}
        for process in [found for found in gc.get_objects() if isinstance(found, subprocess.Popen)]:
            if process.pid in numbers:
                end(process)
        pytest.fail("child processes left: " + "; ".join(f"{n}: {left[n, t]}" for n, t in sorted(left)))


@pytest.fixture(autouse=True)
def _no_mount_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Mounts below the temporary directory of this run: other programs may come and go with theirs."""
    ours = str(tmp_path_factory.getbasetemp()) + "/"
    before = _fuse_mounts(ours)
    yield
    left = _fuse_mounts(ours) - before
    for mountpoint in left:
        subprocess.run(["fusermount3", "-u", "-z", mountpoint], check=False, capture_output=True)
    if left:
        pytest.fail(f"mounts left: {', '.join(sorted(left))}")


def _fuse_mounts(prefix: str) -> set[str]:
    return {place for place, kind in mounts() if kind.startswith("fuse") and place.startswith(prefix)}
