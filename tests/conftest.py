"""Fixtures for all tests. A test fails if it logs unexpected records or leaves threads, processes or mounts.

Unexpected warnings are errors through ``filterwarnings`` in pyproject.toml.
"""

# ruff: noqa: E402  the environment is set before other modules read it

from __future__ import annotations

from tests import environment

environment.prepare()

import gc
import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from tests.processes import child_ids, child_processes, end, lasting, lasting_processes
from tests.time_limits import (  # noqa: F401  hooks
    pytest_addoption,
    pytest_configure,
    pytest_runtest_protocol,
    pytest_unconfigure,
)
from zarrfs.mount import mounts

hypothesis.settings.register_profile("default", deadline=None, max_examples=60)
# In CI the examples are deterministic, so that a failure can be reproduced.
hypothesis.settings.register_profile(
    "ci", parent=hypothesis.settings.get_profile("default"), derandomize=True, max_examples=40
)
# For runs by hand: --hypothesis-profile=fuzz.
hypothesis.settings.register_profile(
    "fuzz", parent=hypothesis.settings.get_profile("default"), max_examples=3000
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")

pytest.register_assert_rewrite("zarrfs.testing")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and the programs that the tests start would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# gcsfs reads this when it is imported, which any test may do. Otherwise it tries gRPC with TLS for a minute or hangs,
# because the emulator lacks it.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"

OUR_LOGGERS = ("zarrfs", "zarrfs_viewer")

PERMANENT_THREADS = (
    "ThreadPoolExecutor-",
    "zarrfs-",
    "zarr_io",
    "asyncio_",
    "fsspecIO",
    "Dask-Offload",
    "pytest_timeout",
)
"""Prefixes of the names of threads that run until the process exits: our worker pool, and threads of other
libraries.
"""

THREAD_EXIT_TIMEOUT_SECONDS = 5.0
"""The time within which a thread must exit after a test."""


EMULATED_STORES = frozenset({"s3", "azure", "fsspec, s3", "fsspec, azure", "fsspec, gcs"})
"""Parameters of tests that use an emulator of a cloud service. Other tests have the marker ``emulators``."""

EMULATOR_MODULES = ("moto", "gcp_storage_emulator", "s3fs", "gcsfs", "adlfs")


LONG_FILES = (
    "tests/documentation/test_examples.py",
    "tests/mount/writing/test_write_mount.py",
    "tests/tools/test_dask.py",
    "tests/mount/test_mounting.py",
    "tests/mount/test_mount.py",
    "tests/tools/test_cluster_failures.py",
    "tests/files/test_hdf5.py",
    "tests/test_site.py",
    "tests/engine/test_writers.py",
    "tests/documentation/test_command_examples.py",
    "tests/faults/test_hostile.py",
    "tests/faults/test_mount.py",
    "tests/viewer/qt/test_window.py",
    "tests/mount/test_members.py",
    "tests/packaging/test_distributions.py",
    "tests/test_benchmarks.py",
    "tests/test_linear_time.py",
    "tests/engine/stores/test_contract.py",
    "tests/ngff/test_labels_check.py",
    "tests/test_architecture.py",
    "tests/test_registration.py",
    "tests/files/test_orientation.py",
    "tests/tools/test_copying.py",
    "tests/tools/test_conventions.py",
    "tests/mount/test_servers.py",
    "tests/interop/test_pyramid_peers.py",
    "tests/engine/test_array.py",
)
"""The files that take longest, the longest first. They are started first, so that all processes end at the same time:
packaging/test.sh runs the tests of a file in one process, and starts the files in the order of the tests.
"""


@pytest.hookimpl(tryfirst=True)  # --random-order comes after it
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files. Mark the tests that use emulators of cloud services, and skip them if the extra is not
    installed.
    """
    places = {Path(__file__).parents[1] / name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    missing = [name for name in EMULATOR_MODULES if find_spec(name) is None]
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if any(isinstance(value, str) and value in EMULATED_STORES for value in parameters):
            item.add_marker("emulators")
        if missing and item.get_closest_marker("emulators") is not None:
            reason = f"{', '.join(missing)}: not installed (the extra emulators)"
            item.add_marker(pytest.mark.skip(reason=reason))


def shared_directory(variable: str, name: str, content: str) -> Path:
    """Return the directory that a variable names, or ``shared/NAME`` beside the checkout. Skip if there is none."""
    default = Path(__file__).resolve().parents[2] / "shared" / name
    directory = Path(os.environ.get(variable) or default)
    if not directory.is_dir():
        pytest.skip(f"the directory of {content} {directory} does not exist; set {variable}")
    return directory


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data sets: $ZARRFS_DATA, or ``shared/data`` beside the checkout."""
    return shared_directory("ZARRFS_DATA", "data", "data sets")


@pytest.fixture(scope="session")
def shared_specifications() -> Path:
    """The directory of specifications: $ZARRFS_SPECIFICATIONS, or ``shared/specs`` beside the checkout."""
    return shared_directory("ZARRFS_SPECIFICATIONS", "specs", "specifications")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {result.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


class _RecordingHandler(logging.Handler):
    """Records the messages of level WARNING and above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(f"{record.levelname} {record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def _nothing_unexpected_is_logged(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that expects warnings of our loggers uses ``caplog`` and checks its records."""
    handler = _RecordingHandler()
    for name in OUR_LOGGERS:
        logging.getLogger(name).addHandler(handler)
    yield
    for name in OUR_LOGGERS:
        logging.getLogger(name).removeHandler(handler)
    if handler.messages and "caplog" not in request.fixturenames:
        pytest.fail("unexpected log records:\n" + "\n".join(handler.messages))


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = []
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith(PERMANENT_THREADS) or isinstance(thread, threading._DummyThread):
            continue
        thread.join(THREAD_EXIT_TIMEOUT_SECONDS)
        if thread.is_alive():
            left.append(thread.name)
    if left:
        pytest.fail(f"threads left running: {', '.join(sorted(left))}")


STANDARD_LIBRARY_PROCESSES = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Processes that the standard library starts once and that exit with the interpreter."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    if fixturedef.scope == "function":
        return (yield)
    with lasting():
        return (yield)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """A process that has exited but was not waited for also counts: its ``Popen`` would warn in a later test."""
    before = child_ids()
    yield
    new = child_ids() - before
    if not new:
        return
    left = {
        child: command
        for child, command in child_processes().items()
        if child[0] in new
        and child not in lasting_processes
        and not any(name in command for name in STANDARD_LIBRARY_PROCESSES)
    }
    if left:
        pids = {pid for pid, _ in left}
        for process in [item for item in gc.get_objects() if isinstance(item, subprocess.Popen)]:
            if process.pid in pids:
                end(process)
        pytest.fail("child processes left: " + "; ".join(f"{pid}: {left[pid, t]}" for pid, t in sorted(left)))


@pytest.fixture(autouse=True)
def _no_mount_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Only mounts in the temporary directory of this run count: other programs may mount and unmount."""
    directory = str(tmp_path_factory.getbasetemp()) + "/"
    before = _fuse_mounts(directory)
    yield
    left = _fuse_mounts(directory) - before
    for mountpoint in left:
        subprocess.run(["fusermount3", "-u", "-z", mountpoint], check=False, capture_output=True)
    if left:
        pytest.fail(f"mounts left: {', '.join(sorted(left))}")


def _fuse_mounts(prefix: str) -> set[str]:
    with suppress(OSError), open("/proc/self/mounts", "rb") as file:
        if re.search(r"[\s\\#]", prefix) is None and prefix.encode() not in file.read():
            return set()  # This is called before and after each test, and parsing takes longer.
    return {path for path, kind, *_ in mounts() if kind.startswith("fuse") and path.startswith(prefix)}
