"""Failures of a Dask cluster: killed workers, a slow worker, and a lost scheduler. The result is correct, or the error
states how to resume, and resuming is correct.

``ZARRFS_KILLS=10`` kills ten workers instead of two; by default the test takes seconds.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask.config
import distributed
import numpy as np
import pytest
from distributed.comm import CommClosedError

import zarrfs
from tests.engine.stores.servers import s3_server, web_server
from tests.processes import TIMEOUT, end, lasting, running, wait_for_event, wait_until
from tests.tools.dask_servers import (
    FailingOnce,
    RecordItem,
    SlowItem,
    remove_time_limits,
    scheduler,
    worker,
)
from zarrfs.errors import OptionError, StoreError
from zarrfs.tools import convert, rechunk, verify
from zarrfs.tools.copying.cluster import checks, waiting
from zarrfs.tools.copying.cluster.executor import ClusterExecutor
from zarrfs.tools.copying.cluster.worker import check_target

KILLS = int(os.environ.get("ZARRFS_KILLS", "2"))
WORKERS = 4
DATA = np.random.default_rng(0).integers(1, 60000, (32, 24, 24), "u2")
CHUNK = (1, 12, 12)


class KilledCluster:
    """A cluster of worker processes of which some are killed in the course of a run, and replaced.

    ``progress`` is the progress callback of the run: it kills a worker whenever another part of the tasks is done.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kills = 0
        self.killed = 0
        self._started = 0
        self._random = random.Random(0)
        self._stack = ExitStack()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def __enter__(self) -> KilledCluster:
        self.address, self.scheduler = self._stack.enter_context(scheduler(self.folder / "scheduler.log"))
        for _ in range(WORKERS):
            self._start()
        self.client = self._stack.enter_context(distributed.Client(self.address, set_as_default=False))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prepare(self, kills: int) -> None:
        """Wait for all workers. Kill some of them in the next run."""
        wait_until(lambda: len(self.client.nthreads()) == WORKERS, self.scheduler)
        self.kills, self.killed = kills, 0

    def _start(self) -> None:
        self._started += 1
        log = self.folder / f"worker{self._started}.log"
        with lasting():
            self._workers.append(self._stack.enter_context(worker(self.address, log)))

    def progress(self, name: str, done: int, total: int) -> None:
        with self._lock:
            if self.killed < self.kills and total and done * (self.kills + 1) > total * (self.killed + 1):
                self.killed += 1
                self.replace(self._random.choice(self._workers))

    def replace(self, victim: subprocess.Popen[bytes]) -> None:
        """Kill a worker and start another one."""
        self._workers.remove(victim)
        end(victim)
        self._start()

    def hanging_worker(self) -> tuple[subprocess.Popen[bytes], str]:
        """Return the worker that a test will stop, and its address."""
        addresses = {pid: address for address, pid in self.client.run(os.getpid).items()}
        return self._workers[0], addresses[self._workers[0].pid]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledCluster]:
    with KilledCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def killed(cluster: KilledCluster) -> KilledCluster:
    cluster.prepare(KILLS)
    return cluster


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.zarr"
    zarrfs.create_group(path).create_array("a", data=DATA, chunks=CHUNK)
    return path


def until_complete(cluster: KilledCluster, run: Callable[[str], Any]) -> Any:
    """Call ``run`` with ``raise``, and with ``resume`` as long as the error states that the run can be resumed."""
    mode = "raise"
    while True:
        try:
            return run(mode)
        except StoreError as error:
            if "resume" not in str(error):
                raise
            mode = "resume"


def test_copies_are_complete_although_workers_are_killed(
    killed: KilledCluster, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.zarr"
    until_complete(
        killed,
        lambda mode: rechunk(
            source,
            target,
            (2, 6, 24),
            dask=killed.address,
            if_exists=mode,
            verify=True,
            memory=1,
            progress=killed.progress,
        ),
    )
    assert np.array_equal(zarrfs.open_array(target, "a")[...], DATA)
    assert killed.killed == KILLS


def test_verification_is_complete_although_workers_are_killed(
    killed: KilledCluster, source: Path, tmp_path: Path
) -> None:
    broken = source / "a" / "c" / "5" / "1" / "0"
    broken.write_bytes(b"broken")
    report_file = tmp_path / "report.jsonl"
    report = until_complete(
        killed,
        lambda mode: verify(
            source,
            dask=killed.address,
            report_file=report_file,
            resume=mode == "resume",
            progress=killed.progress,
        ),
    )
    assert [(problem.kind, problem.chunk) for problem in report.problems] == [("corrupt", (5, 1, 0))]
    assert report.chunks == 32 * 4
    assert sum(worker.tasks for worker in report.workers.values()) >= 1
    again = verify(source, report_file=tmp_path / "other.jsonl")
    assert again.problems == report.problems


@pytest.mark.emulators
def test_a_copy_to_s3_is_complete_although_workers_are_killed(
    killed: KilledCluster, source: Path, tmp_path: Path
) -> None:
    import s3fs

    with s3_server() as endpoint:
        options = {"endpoint_url": endpoint, "key": "x", "secret": "x"}
        s3fs.S3FileSystem(**options).mkdir("bucket")
        until_complete(
            killed,
            lambda mode: convert(
                source,
                "s3://bucket/target.zarr",
                compressors="gzip",
                dask=killed.address,
                if_exists=mode,
                storage_options=options,
                progress=killed.progress,
            ),
        )
        copied = zarrfs.open_array("s3://bucket/target.zarr", "a", storage_options=options)
        with copied.store:
            assert np.array_equal(copied[...], DATA)


def test_a_slow_worker_delays_only_its_own_tasks(cluster: KilledCluster, tmp_path: Path) -> None:
    """Each task takes much longer on one worker. All tasks are done once, most of them by the other workers."""
    cluster.prepare(0)
    processes = {address: int(pid) for address, pid in cluster.client.run(os.getpid).items()}
    slow, pid = next(iter(processes.items()))
    executor = ClusterExecutor(cluster.client)
    executor.run(SlowItem(str(tmp_path / "notes"), pid), range(100), 1, lambda count: None)
    lines = (tmp_path / "notes").read_text().split()
    assert Counter(map(int, lines)) == Counter(range(100))
    assert sum(worker.tasks for worker in executor.statistics.values()) == 100
    assert slow not in executor.statistics or executor.statistics[slow].tasks < 50


@pytest.mark.parametrize("when", ["after a task", "before its result is fetched"])
def test_a_worker_that_hangs_is_named_and_its_tasks_run_on_others_when_it_is_ended(
    when: str,
    cluster: KilledCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(waiting, "STALLED_SECONDS", 1.0)
    cluster.prepare(0)
    client = cluster.client
    hanging, address = cluster.hanging_worker()
    stopped: list[int] = []

    def stop() -> None:
        hanging.send_signal(signal.SIGSTOP)
        stopped.append(hanging.pid)

    class EndWorker(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # On a busy machine a message can appear before the worker is stopped. Messages are repeated.
            if stopped and address in record.getMessage():
                hanging.kill()

    handler = EndWorker()
    logging.getLogger("zarrfs").addHandler(handler)
    done: list[int] = []

    def progress(count: int) -> None:
        if not stopped and when == "after a task":
            stop()
        done.append(count)

    fetch = distributed.Future._result

    async def result(self: distributed.Future, *arguments: Any, **options: Any) -> Any:
        holders = (await client.who_has([self])).get(self.key, ())
        if not stopped and address in holders and when != "after a task":
            stop()
        return await fetch(self, *arguments, **options)

    monkeypatch.setattr(distributed.Future, "_result", result)
    try:
        ClusterExecutor(client).run(RecordItem(str(tmp_path / "notes")), range(200), 1, progress)
    finally:
        logging.getLogger("zarrfs").removeHandler(handler)
        cluster.replace(hanging)
    assert set(map(int, (tmp_path / "notes").read_text().split())) == set(range(200))
    assert sum(done) == 200
    assert "no task has been completed for" in caplog.text
    assert address in caplog.text
    assert stopped == [hanging.pid]


def test_tasks_of_a_worker_whose_process_is_stopped_run_on_others_after_its_time_to_live(
    tmp_path: Path,
) -> None:
    """Dask detects it, also if nothing limits the time of tasks. The shortest time is 5 s."""
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    os.mkfifo(gate)
    environment = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1s"}
    done: list[int] = []
    with (
        scheduler(tmp_path / "scheduler.log", environment) as (address, _),
        worker(address, tmp_path / "stopped.log") as stopped,
        worker(address, tmp_path / "other.log"),
        distributed.Client(address, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=TIMEOUT)

        def progress(count: int) -> None:
            if not done:
                stopped.send_signal(signal.SIGSTOP)
            done.append(count)

        # The worker has a task when it is stopped: the first item that it processes waits for the gate.
        executor = ClusterExecutor(client)
        executor.run(RecordItem(str(notes), str(gate), stopped.pid), range(100), 1, progress)
        assert len(client.nthreads()) == 1
        executor.release()
    assert sum(done) == 100
    assert set(map(int, notes.read_text().split())) == set(range(100))


def test_a_worker_with_an_item_that_hangs_is_closed_after_the_task_timeout(
    cluster: KilledCluster, tmp_path: Path
) -> None:
    """Its process responds, so that Dask alone would wait forever. Its tasks run on others."""
    cluster.prepare(0)
    hanging, address = cluster.hanging_worker()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    work = RecordItem(str(tmp_path / "notes"), str(gate), hanging.pid)
    done: list[int] = []
    executor = ClusterExecutor(cluster.client, task_timeout=1.0)
    executor._register()
    others = [other for other in cluster.client.nthreads() if other != address]
    cluster.client.run(remove_time_limits, workers=others)
    try:
        executor.run(work, range(100), 1, done.append)
        wait_until(lambda: address not in cluster.client.nthreads(), cluster.scheduler)
        assert hanging.wait(TIMEOUT) == 0
    finally:
        executor.release()
        cluster.replace(hanging)
    assert sum(done) == 100
    assert set(map(int, (tmp_path / "notes").read_text().split())) == set(range(100))
    assert address not in executor.statistics


@pytest.mark.parametrize("workers", [1, 5])
def test_a_task_that_hangs_on_all_workers_is_an_error_that_states_how_to_resume(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # messages about tasks that do not end are expected
    monkeypatch.setattr(waiting, "STALLED_SECONDS", 1.0)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    work = RecordItem(str(tmp_path / "notes"), str(gate))
    with scheduler(tmp_path / "scheduler.log") as (address, _), ExitStack() as processes:
        for number in range(workers):
            processes.enter_context(worker(address, tmp_path / f"{number}.log"))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=TIMEOUT)
            executor = ClusterExecutor(client, task_timeout=0.5)
            message = (
                r"has no workers any more; start some, and .*if_exists='resume'"
                if workers == 1
                else r"(took longer than 0.5 s; .*|has no workers any more; .*)if_exists='resume'"
            )
            with pytest.raises(StoreError, match=message):
                executor.run(work, range(1), 1, lambda count: None)


def test_a_task_that_fails_once_is_repeated(cluster: KilledCluster, tmp_path: Path) -> None:
    cluster.prepare(0)
    done: list[int] = []
    work = FailingOnce(str(tmp_path))
    ClusterExecutor(cluster.client).run(work, range(20), 1, done.append)
    assert sum(done) == 20
    assert {int(path.name) for path in tmp_path.iterdir()} == set(range(20))


INTERRUPTED_COMMAND = """
import sys
from zarrfs.tools.copying.cluster import executor
executor.STOP_SECONDS = 0.5
from zarrfs.cli.main import run
run(sys.argv[1:])
"""


def test_one_interrupt_ends_a_command_whose_workers_hang(
    cluster: KilledCluster, source: Path, tmp_path: Path
) -> None:
    """A web server that never sends a chunk blocks the workers. The command waits for a limited time."""
    blocked, gate = threading.Event(), threading.Event()

    def block(path: str) -> None:
        if "/c/" in path:
            blocked.set()
            gate.wait()

    cluster.prepare(0)
    with web_server(source.parent) as web:
        web.before_response = block
        command = [sys.executable, "-c", INTERRUPTED_COMMAND, "convert", f"{web.url}/source.zarr/a"]
        command += [str(tmp_path / "t"), "--compressor", "gzip", "--dask", cluster.address]
        try:
            with running(command, stderr=subprocess.PIPE, text=True) as process:
                wait_for_event(blocked, process)
                process.send_signal(signal.SIGINT)
                _, stderr = process.communicate(timeout=TIMEOUT)
        finally:
            gate.set()
    assert process.returncode == 130
    assert "stopping: running tasks are completed, no others are started" in stderr
    assert "have not ended; until they do" in stderr
    assert stderr.splitlines()[-1] == (
        "zarrfs: interrupted; run the same command with --if-exists resume to continue"
    )


def test_the_task_timeout_needs_a_cluster_and_is_positive(source: Path, tmp_path: Path) -> None:
    with pytest.raises(
        OptionError,
        match="option task_timeout applies to the workers of a Dask cluster, and needs the option dask",
    ):
        convert(source, tmp_path / "t", task_timeout=5)
    for seconds in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="positive number of seconds"):
            verify(source, dask="tcp://127.0.0.1:1", task_timeout=seconds)
    command = [sys.executable, "-m", "zarrfs", "pyramid", str(source / "a"), "--task-timeout", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "--task-timeout applies to the workers of a Dask cluster, and needs the option --dask" in done.stderr
    )


def test_a_scheduler_that_is_lost_during_the_check_is_an_error_and_nothing_is_left(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scheduler(tmp_path / "scheduler.log") as (address, process),
        worker(address, tmp_path / "worker.log"),
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        distributed.Client(address, set_as_default=False, timeout=TIMEOUT) as client,
    ):
        client.wait_for_workers(1, timeout=TIMEOUT)
        client._timeout = 1
        run_on_workers = checks._run_on_workers

        def run(client: distributed.Client, workers: Any, check: Any, *arguments: Any) -> None:
            if check is check_target:
                process.kill()
                process.wait()
            run_on_workers(client, workers, check, *arguments)

        monkeypatch.setattr(checks, "_run_on_workers", run)
        with pytest.raises(StoreError, match="was stopped or restarted, and nothing was done"):
            convert(source, tmp_path / "target.zarr", dask=client)
    assert not any(path.is_file() for path in (tmp_path / "target.zarr").rglob("*"))


class ImpatientClient(distributed.Client):
    """A client that stops to reconnect after a second."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timeout = 1


def test_a_lost_scheduler_is_an_error_and_the_verification_is_resumed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    report_file = tmp_path / "report.jsonl"
    monkeypatch.setattr(distributed, "Client", ImpatientClient)
    monkeypatch.setattr(
        checks, "WORKER_TIMEOUT_SECONDS", TIMEOUT
    )  # the worker starts slowly on a busy machine
    with (
        scheduler(tmp_path / "scheduler.log") as (address, process),
        worker(address, tmp_path / "worker.log"),
    ):

        def progress(name: str, done: int, total: int) -> None:
            if done == total // 4:
                process.kill()
                # As by a client that is closed while it connects or fetches results, as happens in some of the runs.
                logging.getLogger("distributed.client").error("", exc_info=CancelledError())
                logging.getLogger("tornado.application").error("", exc_info=CommClosedError())

        with pytest.raises(StoreError, match=r"was stopped or restarted; continue with resume=True"):
            verify(source, dask=address, report_file=report_file, progress=progress)
    assert not [record for record in caplog.records if record.exc_info]
    command = [
        sys.executable,
        "-m",
        "zarrfs",
        "verify",
        str(source),
        "--report",
        str(report_file),
        "--resume",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "128 chunks of 1 array verified" in done.stdout
