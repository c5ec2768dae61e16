"""The settings of a command arrive at the workers of a Dask cluster with its tasks. The workers are processes with
another environment and another working directory.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import distributed
import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from tests.tools.dask_servers import FailingItem, RecordItem, WorkerSettings, dask_cluster, kept_sessions
from zarrfs.cli.main import main
from zarrfs.engine.codecs.limits import VARIABLE_LIMIT_VARIABLE, variable_limit
from zarrfs.engine.formats.json_document import LIMIT_VARIABLE, current_limit
from zarrfs.engine.native.library import DISABLING_VARIABLE, native_library
from zarrfs.storage import RemoteStore
from zarrfs.tools.copying import conversion
from zarrfs.tools.copying.cluster import session as session_module
from zarrfs.tools.copying.cluster.connection import connect_cluster
from zarrfs.tools.copying.cluster.executor import ClusterExecutor
from zarrfs.tools.copying.cluster.session import IDLE_SECONDS, Session
from zarrfs.tools.copying.cluster.settings import (
    TaskSettings,
    pickled_with_settings,
    unpickled_with_settings,
)
from zarrfs.tools.copying.copy_tasks import CompareBlock, CopyBlock
from zarrfs.tools.copying.executors import ThreadExecutor
from zarrfs.tools.pyramids import building
from zarrfs.tools.pyramids.tasks import BuildBlock, CompareLevels

DATA = np.random.default_rng(0).integers(1, 999, (20, 30)).astype("u2")
WORDS = np.array(["a" * 40, "größe", "c"], object)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster whose worker accepts no metadata document and no text by its own environment."""
    environment = {LIMIT_VARIABLE: "1", VARIABLE_LIMIT_VARIABLE: "1", "HOME": "/nonexistent"}
    with dask_cluster(tmp_path_factory.mktemp("dask"), 1, environment) as yielded:
        yield yielded


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a hierarchy whose array ``image/0`` has a chunk outside of it."""
    monkeypatch.chdir(tmp_path)
    group = zarrfs.create_group("s.zarr")
    group.create_array("image/0", data=DATA, chunks=(10, 10), dimension_names=["y", "x"])
    group.create_array("words", data=WORDS, dtype="string", chunks=2)
    chunk = tmp_path / "s.zarr/image/0/c/1/2"
    chunk.rename(tmp_path / "outside")
    chunk.symlink_to(tmp_path / "outside")
    return tmp_path


def run(*arguments: str) -> str:
    """Run a command in this process. Return what it prints."""
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    "command",
    [
        "copy s.zarr t.zarr --verify",
        "copy local://s.zarr local://t.zarr",
        "convert s.zarr t.zarr --compressor gzip --verify --storage-option durable=true",
        "convert s.zarr t.zarr --compressor gzip --dry-run --sample-writes",
        "rechunk s.zarr t.zarr --chunks -1 --verify --memory 1k",
        "pyramid s.zarr/image t.zarr --levels 2 --verify",
        "verify s.zarr",
        "verify s.zarr local://s.zarr",
    ],
)
def test_options_and_limits_apply_to_the_workers(
    command: str, address: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE_LIMIT_VARIABLE, "1000")
    output = run(*command.split(), "--allow-external", "--max-document", "1M", "--dask", address)
    assert os.environ.get(LIMIT_VARIABLE) is None
    if command.startswith("verify"):
        assert "no problems" in output
    if Path("t.zarr").exists():
        root = zarrfs.open_group("t.zarr")
        assert np.array_equal(root["0" if command.startswith("pyramid") else "image/0"][...], DATA)
        if "words" in root:
            assert root["words"][...].tolist() == WORDS.tolist()
    else:
        assert command.startswith("verify") or "dry-run" in command


def test_without_settings_of_the_command_those_of_the_workers_apply(
    address: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["copy", "s.zarr/words", "t.zarr", "--dask", address]
    result = CliRunner().invoke(main, arguments)
    assert "the document is too large: expected at most 1 bytes" in str(result.exception)
    assert not Path("t.zarr").exists()


def test_tasks_have_the_settings_of_the_process_that_submits_them(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[int, int, bool]] = []
    with distributed.Client(address, set_as_default=False) as client:
        executor = ClusterExecutor(client)
        executor.run(WorkerSettings(), [0], 1, lambda count: None, on_result=found.append)
        monkeypatch.setenv(LIMIT_VARIABLE, "12345")
        monkeypatch.setenv(VARIABLE_LIMIT_VARIABLE, "678")
        monkeypatch.setenv(DISABLING_VARIABLE, "0")
        executor.run(WorkerSettings(), [0], 1, lambda count: None, on_result=found.append)
        monkeypatch.undo()
        executor.run(WorkerSettings(), [0], 1, lambda count: None, on_result=found.append)
    own = (1, 1, native_library() is not None)
    assert found == [own, (12345, 678, False), own]


def test_settings_apply_only_within_their_context() -> None:
    before = current_limit(), variable_limit(0), native_library()
    with TaskSettings(12345, 678, True).applied(), TaskSettings(None, None, False).applied():
        assert (current_limit(), variable_limit(0), native_library()) == (12345, 678, None)
        assert TaskSettings.current() == TaskSettings(12345, 678, True)
    assert (current_limit(), variable_limit(0), native_library()) == before


class SendingExecutor(ThreadExecutor):
    """Runs the tasks on threads, after they were pickled and unpickled as for a worker."""

    def __init__(self, sent: list[Any]) -> None:
        self.sent = sent

    def run(self, work: Callable[[Any], object], items: Sequence[Any], *arguments: Any) -> None:
        self.sent.append(unpickled_with_settings(pickled_with_settings(work))[1])
        super().run(self.sent[-1], items, *arguments)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that are sent to a cluster."""
    tasks: list[Any] = []
    for module in (conversion, building):
        monkeypatch.setattr(f"{module.__name__}.executor_of", lambda *_: nullcontext(SendingExecutor(tasks)))
    return tasks


def test_the_tasks_of_a_copy_contain_its_options(folder: Path, sent: list[Any]) -> None:
    options = {"durable": True, "allow_external": True}
    for if_exists in ("raise", "resume"):
        conversion.convert(
            "s.zarr/image/0",
            "t.zarr",
            compressors="gzip",
            verify=True,
            memory=54321,
            if_exists=if_exists,  # type: ignore[arg-type]
            storage_options=options,
        )
    assert [type(task) for task in sent] == [CopyBlock, CompareBlock] * 2
    assert [task.resume for task in sent[::2]] == [False, True]
    for task in sent:
        assert (task.source.store.allow_external, task.source.read_only) == (True, True)
        assert task.source._cache.capacity == 54321
        assert task.target._cache.capacity == 0
        assert task.target.store.durable


def test_the_tasks_of_a_pyramid_contain_its_options_and_share_one_cache(
    folder: Path, sent: list[Any]
) -> None:
    building.build_pyramid(
        "s.zarr/image",
        "t.zarr",
        method="max",
        levels=3,
        verify=True,
        memory=54321,
        storage_options={"durable": True, "allow_external": True},
    )
    assert {type(task) for task in sent} == {BuildBlock, CompareLevels}
    for task in sent:
        assert (task.method, task.memory) == ("max", 54321)
        assert all(level.array.store.durable for level in task.levels)
        assert {level.array._cache.capacity for level in task.levels} == {54321}
        assert len({id(level.array._cache) for level in task.levels}) == 1
        assert len({id(level.array.store) for level in task.levels}) == 1


@pytest.mark.parametrize(
    "url",
    ["local://s.zarr/words", "file://s.zarr/words", "simplecache::file://s.zarr/words", "zip::file://s.zip"],
)
def test_pickled_nodes_do_not_depend_on_the_working_directory(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversion.convert("s.zarr/words", "s.zip")
    node = zarrfs.open_array(RemoteStore(url) if url.startswith("file:") else url)
    data = pickle.dumps(node)
    monkeypatch.chdir("/")
    assert pickle.loads(data)[...].tolist() == WORDS.tolist()


def test_workers_keep_the_stores_and_caches_of_one_run_of_a_command(address: str, folder: Path) -> None:
    """A hierarchy has one run for each array. The caches of several would take several times the memory."""
    with distributed.Client(address, set_as_default=False) as client:

        def kept() -> list[str]:
            return [session for sessions in client.run(kept_sessions).values() for session in sessions]

        before = kept()
        first, second = ClusterExecutor(client), ClusterExecutor(client)
        for executor in (first, first, second):
            executor.run(RecordItem(f"notes{len(executor.statistics)}"), [0], 1, lambda count: None)
        assert kept() == [*before, first.session, second.session]
        for executor in (first, second):
            executor.release()
        assert kept() == before
        run("copy", "s.zarr", "t.zarr", "--allow-external", "--max-document", "1M", "--dask", address)
        with pytest.raises(OSError, match="full"), connect_cluster(client) as executor:
            executor.run(FailingItem("disk"), range(4), 1, lambda count: None)
        assert kept() == before


class FakeWorker:
    """A worker that is closed later."""

    address = "worker"

    def __init__(self) -> None:
        self.closed: list[Any] = []
        self.loop = self

    def close(self) -> None:
        raise AssertionError

    def add_callback(self, callback: Any, **options: Any) -> None:
        assert callback == self.close
        self.closed.append(options)


def set_clock(monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    """Set the time that sessions read."""
    clock = SimpleNamespace(monotonic=lambda: now, perf_counter=time.perf_counter)
    monkeypatch.setattr(session_module, "time", clock)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session with a time limit of 10 s on a worker, without its periodic checks."""
    monkeypatch.setattr(session_module, "PeriodicCallback", MagicMock())
    session = Session("session", 10.0)
    session.setup(FakeWorker())
    yield session
    session.teardown(session._worker)


def test_stores_of_a_command_without_tasks_are_released_after_some_time(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that was killed does not remove its session."""
    now = time.monotonic()
    payload = pickled_with_settings(RecordItem("notes"))
    session.run("job", payload, [1], False)
    for seconds, is_kept in ((0, True), (IDLE_SECONDS / 2, True), (IDLE_SECONDS + 60, False)):
        set_clock(monkeypatch, now + seconds)
        session._check()
        assert session.has_function == is_kept
    session.run("job", payload, [2], False)
    assert session.has_function
    assert Path("notes").read_text() == "1\n2\n"


def test_an_item_that_exceeds_the_time_limit_closes_the_worker_once(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = time.monotonic()
    session._note_start("job")
    for seconds, closed in ((9, 0), (11, 1)):
        set_clock(monkeypatch, now + seconds)
        session._check()
        assert len(session._worker.closed) == closed
    assert session._worker.closed[0]["nanny"] is False  # which starts the worker again
    assert "an item has not ended within 10 s; the worker is closed" in caplog.text
