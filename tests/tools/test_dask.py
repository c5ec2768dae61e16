"""Copies on a Dask cluster have the same results as copies by threads, and errors state why a cluster cannot be
used.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import distributed
import numpy as np
import pytest
import tensorstore
import xarray
import zarr

import zarrfs
from tests.engine.stores.servers import free_port, web_server
from tests.processes import TIMEOUT, output_of, running, wait_for_event
from tests.tools.dask_servers import (
    FailingItem,
    ProcessLocalStore,
    RecordItem,
    dask_cluster,
    scheduler,
    worker,
)
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import (
    ChunkDecodeError,
    LocationError,
    NodeExistsError,
    StoreError,
    UnsupportedError,
)
from zarrfs.testing import FailingStore
from zarrfs.tools import build_pyramid, convert, rechunk, verify
from zarrfs.tools.copying import cells
from zarrfs.tools.copying.cells import Cells
from zarrfs.tools.copying.cluster import batches as batches_module
from zarrfs.tools.copying.cluster.batches import (
    MAX_BATCH_SIZE,
    MAX_UNMEASURED_BATCH_SIZE,
    Batches,
    batch_size,
)
from zarrfs.tools.copying.cluster.executor import IN_FLIGHT_PER_THREAD, ClusterExecutor
from zarrfs.tools.copying.cluster.results import BatchResult, WorkerStatistics
from zarrfs.tools.copying.cluster.worker import canonical_document
from zarrfs.tools.copying.copy_tasks import CopyChunk
from zarrfs.tools.copying.sampling import DiscardingStore, Sampling
from zarrfs.tools.verification import chunks
from zarrfs.tools.verification.chunks import missing_between

RNG = np.random.default_rng(0)
DATA = RNG.integers(1, 999, (40, 50)).astype("u2")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a local cluster with two single-threaded workers."""
    with dask_cluster(tmp_path_factory.mktemp("dask")) as yielded:
        yield yielded


@pytest.fixture
def client(address: str) -> Iterator[distributed.Client]:
    with distributed.Client(address, set_as_default=False) as yielded:
        yield yielded


def create_hierarchy(path: Path, **options: Any) -> zarrfs.Group:
    group = zarrfs.create_group(path, attributes={"title": "t"})
    group.create_array(
        "a", data=DATA, chunks=(8, 9), dimension_names=["y", "x"], attributes={"k": 1}, **options
    )
    group.create_array("inner/words", data=np.array(["a", "größe", ""], object), dtype="string", chunks=2)
    return group


def assert_equal_arrays(one: Path, other: Any) -> None:
    remaining, second = (dict(zarrfs.open_group(place).walk()) for place in (one, other))
    assert sorted(remaining) == sorted(second)
    for path, node in remaining.items():
        if isinstance(node, zarrfs.Array):
            assert np.array_equal(node[...], second[path][...])


def test_xarray_opens_many_datasets_on_a_cluster(client: distributed.Client, tmp_path: Path) -> None:
    """``parallel=True`` opens them on the workers, which send the datasets back. Workers keep what they import."""
    stores = [tmp_path / f"{number}.zarr" for number in range(3)]
    for number, path in enumerate(stores):
        group = zarrfs.create_group(path)
        group.create_array("a", data=DATA + number, chunks=(8, 9), dimension_names=["y", "x"])
        group.create_array("y", data=np.arange(40) + 40 * number, dimension_names=["y"])
    document = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C", "fill_value": 0}
    references = {
        ".zgroup": '{"zarr_format": 2}',
        "a/.zarray": json.dumps({**document, "compressor": None, "filters": None}),
        "a/.zattrs": '{"_ARRAY_DIMENSIONS": ["x"]}',
        "a/0": "base64:AQI=",
    }
    in_memory = {"storage_options": {"fo": {"version": 1, "refs": references}}}
    with client.as_current():
        for _ in range(2):
            options = {"engine": "zarrfs", "parallel": True, "access": zarrfs.Access(fill_missing=False)}
            with xarray.open_mfdataset(stores, **options) as opened:
                assert np.array_equal(opened.a, np.concatenate([DATA + number for number in range(3)]))
            with xarray.open_mfdataset(["reference://"], **options, **in_memory) as opened:
                assert opened.a.values.tolist() == [1, 2]


def test_a_pyramid_equals_a_pyramid_by_threads(address: str, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "s").create_array("a", data=DATA, chunks=(8, 9))
    for target, dask in (("threads", None), ("cluster", address)):
        build_pyramid(tmp_path / "s", tmp_path / target, levels=3, memory=1, dask=dask, verify=True)
    assert_equal_arrays(tmp_path / "threads", tmp_path / "cluster")


@pytest.mark.parametrize(
    "options",
    [{}, {"zarr_format": 2}, {"compressors": "gzip"}, {"chunks": -1}],
    ids=["unchanged", "v2", "gzip", "one-chunk"],
)
def test_a_copy_equals_a_copy_by_threads(options: dict[str, Any], address: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s")
    progress_calls: list[tuple[str, int, int]] = []
    lines = convert(
        tmp_path / "s",
        tmp_path / "t",
        dask=address,
        verify=True,
        progress=lambda *what: progress_calls.append(what),
        **options,
    )
    assert lines == convert(tmp_path / "s", tmp_path / "threads", **options)
    assert_equal_arrays(tmp_path / "s", tmp_path / "t")
    # The stored files are identical.
    files = [
        {f.relative_to(tmp_path / name): f.read_bytes() for f in (tmp_path / name).rglob("*") if f.is_file()}
        for name in ("t", "threads")
    ]
    assert files[0] == files[1]
    counts = [(done, total) for name, done, total in progress_calls if name == "/a"]
    assert counts[0][0] == 0
    assert counts[-1][0] == counts[-1][1]
    assert counts == sorted(counts)


def test_rechunk_to_shards_uses_a_given_client(client: distributed.Client, tmp_path: Path) -> None:
    data = RNG.integers(0, 2**16, (16, 64, 64)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(1, 64, 64))
    rechunk(
        tmp_path / "s",
        tmp_path / "t",
        (16, 8, 8),
        shards=(16, 16, 16),
        memory=16 << 10,
        dask=client,
        verify=True,
    )
    assert client.status == "running"
    assert np.array_equal(np.asarray(zarr.open_array(tmp_path / "t", mode="r")[...]), data)


WRITERS = {
    "zarr-python, v3": lambda path: zarr.create_array(
        path, data=DATA, chunks=(8, 9), attributes={"b": np.nan, "a": [1]}, dimension_names=["y", "x"]
    ),
    "zarr-python, v3 with shards": lambda path: zarr.create_array(
        path, data=DATA, chunks=(8, 9), shards=(16, 27), attributes={"b": 1, "a": 2}
    ),
    "zarr-python, v2": lambda path: zarr.create_array(
        path, data=DATA, chunks=(8, 9), zarr_format=2, attributes={"b": 1, "a": 2}
    ),
    "TensorStore, v3": lambda path: (
        tensorstore.open(
            {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}},
            create=True,
            dtype=tensorstore.uint16,
            shape=DATA.shape,
            chunk_layout=tensorstore.ChunkLayout(chunk_shape=(8, 9)),
        )
        .result()
        .write(DATA)
        .result()
    ),
    "zarrfs, N5": lambda path: zarrfs.create_array(
        path, data=DATA, chunks=(8, 9), zarr_format="n5", attributes={"b": 1, "a": 2}
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_commands_run_repeatedly_on_one_cluster(writer: str, address: str, tmp_path: Path) -> None:
    """The workers have opened the array before, except for the first command. A new process is another client."""
    source = str(tmp_path / "s")
    WRITERS[writer](source)
    verify(source, dask=address)
    command = [sys.executable, "-m", "zarrfs", "convert", source, f"{tmp_path}/copy", "--dask", address]
    output_of(command, cwd=tmp_path, env=os.environ)
    rechunk(source, tmp_path / "rechunked", (20, 25), shards=False, dask=address)
    build_pyramid(source, tmp_path / "pyramid", levels=2, dask=address)
    for name in ("copy", "rechunked"):
        assert np.array_equal(zarrfs.open_array(tmp_path / name)[...], DATA)


def test_the_check_of_a_source_compares_documents_by_their_meaning() -> None:
    one = {"shape": [2], "attributes": {"a": float("nan"), "b": 1}}
    other = {"attributes": {"b": 1, "a": float("nan")}, "shape": [2]}
    assert canonical_document(one) == canonical_document(other)
    assert canonical_document(one) != canonical_document({**other, "shape": [3]})


def test_zip_sqlite_and_http_stores_are_copied(address: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "s.zip")
    convert(tmp_path / "s.zip", f"sqlite://{tmp_path}/t.sqldb", dask=address, verify=True)
    with web_server(tmp_path) as web:
        zarrfs.tools.consolidate_metadata(tmp_path / "s")
        convert(f"{web.url}/s", tmp_path / "t", dask=address, verify=True)
    assert_equal_arrays(tmp_path / "s", f"sqlite://{tmp_path}/t.sqldb")
    assert_equal_arrays(tmp_path / "s", tmp_path / "t")


def test_inaccessible_stores_are_rejected_before_anything_is_written(address: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s")
    with pytest.raises(UnsupportedError, match=r"memory of this process.*without the option dask"):
        convert(tmp_path / "s", MemoryStore(), dask=address)
    memory_store = MemoryStore()
    convert(tmp_path / "s", memory_store)
    with pytest.raises(UnsupportedError, match="memory of this process"):
        convert(memory_store, tmp_path / "t", dask=address)
    failing = FailingStore(LocalStore(tmp_path / "t"), lambda operation, key: None)
    with pytest.raises(UnsupportedError, match="cannot be pickled"):
        convert(tmp_path / "s", failing, dask=address)
    with pytest.raises(UnsupportedError, match="open for writing and cannot be pickled"):
        convert(tmp_path / "s", tmp_path / "t.zip", dask=address)
    assert not (tmp_path / "t").exists()
    zarrfs.create_group(tmp_path / "there")
    with pytest.raises(NodeExistsError):
        convert(tmp_path / "s", tmp_path / "there", dask=address)


@pytest.mark.parametrize("location_kind", ["source", "target"])
def test_stores_that_differ_between_processes_are_rejected(
    location_kind: str, address: str, tmp_path: Path
) -> None:
    create_hierarchy(tmp_path / "s")
    process_local = ProcessLocalStore(str(tmp_path / "data"), os.getpid())
    source: Any = tmp_path / "s"
    target: Any = tmp_path / "t"
    if location_kind == "source":
        convert(source, process_local)
        source = process_local
    else:
        target = process_local
    with pytest.raises(
        StoreError, match=r"worker tcp://127.0.0.1:\d+ cannot be used.*that all machines share"
    ):
        convert(source, target, dask=address)
    assert not (tmp_path / "t").exists()
    if location_kind == "target":
        assert list(process_local.list_prefix()) == []


def test_an_invalid_scheduler_address_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_hierarchy(tmp_path / "s")
    monkeypatch.setattr("zarrfs.tools.copying.cluster.connection.ANSWER_TIMEOUT_SECONDS", 1)
    with web_server(tmp_path) as web:
        for invalid_address in (
            "nonsense",
            "gopher://x",
            f"tcp://127.0.0.1:{free_port()}",
            web.url.replace("http", "tcp"),
        ):
            with pytest.raises(LocationError, match="no Dask scheduler responds"):
                convert(tmp_path / "s", tmp_path / "t", dask=invalid_address)
    for no_address in ("", 3):
        with pytest.raises(LocationError, match="expected an address"):
            convert(tmp_path / "s", tmp_path / "t", dask=no_address)  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()


def test_a_missing_distributed_package_is_reported_with_an_install_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_hierarchy(tmp_path / "s")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'dask>=.*' 'distributed>="):
        convert(tmp_path / "s", tmp_path / "t", dask="tcp://127.0.0.1:8786")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("options", [{"compressors": "gzip"}, {"chunks": 20}], ids=["gzip", "chunks"])
def test_a_corrupt_chunk_stops_the_copy_which_can_be_resumed(
    options: dict[str, Any], address: str, tmp_path: Path
) -> None:
    create_hierarchy(tmp_path / "s")
    chunk = tmp_path / "s" / "a" / "c" / "3" / "2"
    original_bytes = chunk.read_bytes()
    chunk.write_bytes(b"broken")
    with pytest.raises(ChunkDecodeError, match=r"chunk \(3, 2\)") as caught:
        convert(tmp_path / "s", tmp_path / "t", dask=address, **options)
    assert caught.value.__cause__ is None
    chunk.write_bytes(original_bytes)
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "t" / "a").rglob("*") if f.is_file()}
    convert(tmp_path / "s", tmp_path / "t", dask=address, if_exists="resume", verify=True, **options)
    assert_equal_arrays(tmp_path / "s", tmp_path / "t")
    assert {f: f.stat().st_mtime_ns for f in before} == before


def test_verify_detects_a_difference(address: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "t")
    zarrfs.open_array(tmp_path / "t", "a", mode="r+")[5, 7] = 0
    with pytest.raises(StoreError, match="differs from the source"):
        convert(tmp_path / "s", tmp_path / "t", dask=address, if_exists="resume", verify=True)


def test_a_failed_replacement_keeps_the_old_array(address: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s")
    zarrfs.create_array(tmp_path / "t", "a", data=np.arange(3))
    before = {f: f.read_bytes() for f in (tmp_path / "t" / "a").rglob("*") if f.is_file()}
    (tmp_path / "s" / "a" / "c" / "4" / "5").write_bytes(b"broken")
    with pytest.raises(ChunkDecodeError):
        convert(tmp_path / "s", tmp_path / "t", if_exists="replace", compressors="gzip", dask=address)
    assert {f: f.read_bytes() for f in (tmp_path / "t" / "a").rglob("*") if f.is_file()} == before
    with zarrfs.open_group(tmp_path / "t") as group:
        assert list(group) == ["a"]
        assert not group.attrs  # nothing in the group has changed, so that it is complete


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_each_item_is_processed_once(count: int, client: distributed.Client, tmp_path: Path) -> None:
    done: list[int] = []
    ClusterExecutor(client).run(RecordItem(str(tmp_path / "notes")), range(count), 1, done.append)
    lines = (tmp_path / "notes").read_text().split() if count else []
    assert Counter(map(int, lines)) == Counter(range(count))
    assert sum(done) == count


def test_tasks_in_flight_are_bounded(client: distributed.Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    work = RecordItem(str(tmp_path / "notes"), str(gate))
    in_flight: list[int] = []
    caller = threading.Thread(
        target=ClusterExecutor(client).run,
        args=(work, range(500), 1, lambda count: in_flight.append(len(client.futures))),
    )
    caller.start()
    while caller.is_alive():
        try:
            # Succeeds while a reader is waiting.
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            caller.join(0.001)
    assert len((tmp_path / "notes").read_text().split()) == 500
    assert max(in_flight) <= 2 * IN_FLIGHT_PER_THREAD * 2  # the scheduler forgets completed ones later


def test_a_cluster_without_workers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_hierarchy(tmp_path / "s")
    monkeypatch.setattr("zarrfs.tools.copying.cluster.checks.WORKER_TIMEOUT_SECONDS", 0.1)
    with scheduler(tmp_path / "scheduler.log") as (address, _):
        with pytest.raises(LocationError, match="has no workers; start some: dask worker tcp://"):
            convert(tmp_path / "s", tmp_path / "t", dask=address)
        assert not (tmp_path / "t").exists()


def test_a_task_that_kills_its_workers_is_an_error(tmp_path: Path) -> None:
    with scheduler(tmp_path / "scheduler.log") as (address, _), ExitStack() as workers:
        for number in range(5):
            workers.enter_context(worker(address, tmp_path / f"{number}.log"))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(5, timeout=TIMEOUT)
            with pytest.raises(StoreError, match=r"were killed while they ran one task.*resume"):
                ClusterExecutor(client).run(os._exit, [1], 1, lambda count: None)


def test_a_scheduler_that_stops_is_an_error(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with (
        scheduler(tmp_path / "scheduler.log") as (address, process),
        worker(address, tmp_path / "worker.log"),
        distributed.Client(address, set_as_default=False) as client,
    ):
        # The timeout of reconnection. The argument of Client would also limit the first connection.
        client._timeout = 1
        client.wait_for_workers(1, timeout=TIMEOUT)
        work = RecordItem(str(tmp_path / "notes"), str(gate))

        def end() -> None:
            with open(gate, "wb"):  # the first task is running
                process.kill()

        ending = threading.Thread(target=end)
        ending.start()
        with pytest.raises(StoreError, match=r"was stopped or restarted.*resume"):
            ClusterExecutor(client).run(work, range(100), 1, lambda count: None)
        ending.join()


def test_an_interrupted_command_can_be_resumed(address: str, tmp_path: Path) -> None:
    """A web server serves ten chunks, and the others after the command has handled the interruption."""
    data = RNG.integers(1, 99, (100, 4)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(1, 4))
    remaining, gate, lock = [10], threading.Event(), threading.Lock()
    blocked = threading.Event()

    def wait(path: str) -> None:
        if "/c/" in path:
            with lock:
                remaining[0] -= 1
                is_free = remaining[0] >= 0
            if not is_free:
                blocked.set()
                gate.wait()

    with web_server(tmp_path) as web:
        web.before_response = wait
        command = [sys.executable, "-m", "zarrfs", "convert", f"{web.url}/s", str(tmp_path / "t")]
        command += ["--compressor", "gzip", "--dask", address]
        with running(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                wait_for_event(blocked, process)
                process.send_signal(signal.SIGINT)
                assert "stopping: running tasks are completed" in process.stderr.readline()
            finally:
                gate.set()
            stderr = process.stderr.read()
            assert process.wait(TIMEOUT) == 130
        assert stderr == "zarrfs: interrupted; run the same command with --if-exists resume to continue\n"
        copied_chunks = [path for path in (tmp_path / "t" / "c").rglob("*") if path.is_file()]
        assert 0 < len(copied_chunks) < 30
        before = {path: path.stat().st_mtime_ns for path in copied_chunks}
        web.requests.clear()
        done = subprocess.run(
            [*command, "--if-exists", "resume", "--verify"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        # The rates of the workers, and nothing else.
        assert re.fullmatch(r"(worker tcp://\S+: \d+ tasks, .+B in .+ s, .+B per second\n)+", done.stderr)
        assert {path: path.stat().st_mtime_ns for path in copied_chunks} == before
    assert np.array_equal(zarrfs.open_array(tmp_path / "t")[...], data)


def test_a_dask_task_takes_seconds_and_is_smaller_near_the_end() -> None:
    many = 10**9
    assert batch_size(many, 64, None) == MAX_UNMEASURED_BATCH_SIZE
    assert batch_size(many, 64, 0.01) == 200  # two seconds
    assert batch_size(many, 1000, 0.1) == 200  # the scheduler starts a task in 20 ms
    assert batch_size(many, 64, 0.0) == batch_size(many, 10_000, 0.01) == MAX_BATCH_SIZE
    assert batch_size(many, 64, 5.0) == 1
    assert [batch_size(remaining, 2, 0.01) for remaining in (800, 80, 8, 1)] == [100, 10, 1, 1]


def test_all_items_of_a_run_are_submitted_once_in_batches_of_changing_size() -> None:
    batches, taken = Batches(iter(range(5000)), 5000), []
    for threads in (2, 5, 1):
        for batch in batches.take(7, threads):
            taken.append(batch)
            batches.measure(BatchResult(len(batch), [], "", 0.01 * len(batch)))
    taken += batches.take(10**6, 3)
    assert [item for batch in taken for item in batch] == list(range(5000))
    assert len({len(batch) for batch in taken}) > 3


@pytest.mark.parametrize("sample_writes", [False, True])
def test_a_dry_run_measures_on_the_workers(sample_writes: bool, address: str, tmp_path: Path) -> None:
    """Without writes, the workers count the bytes; they cannot write to memory of this process."""
    values = np.random.default_rng(0).integers(0, 99, (64, 64)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=values, chunks=(8, 8), dimension_names=("y", "x"))
    options: dict[str, Any] = {"dry_run": True, "sample_writes": sample_writes}
    for run in (
        lambda **more: convert(tmp_path / "s", tmp_path / "t", **more),
        lambda **more: rechunk(tmp_path / "s", tmp_path / "t", (4, 16), shards=(16, 32), memory=1, **more),
        lambda **more: build_pyramid(tmp_path / "s", tmp_path / "t", levels=2, memory=1, **more),
    ):
        estimates = run(dask=address, **options).estimates
        expected = run(**options).estimates
        assert [(item.path, item.tasks) for item in estimates] == [
            (item.path, item.tasks) for item in expected
        ]
        assert estimates[0].sampled >= 1
        assert estimates[0].seconds > 0
        assert estimates[0].nbytes_written == pytest.approx(expected[0].nbytes_written, rel=0.1)
        assert all((item.not_written is None) == sample_writes for item in estimates)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(("limit", "tasks"), [(64 << 20, 2), (5 * 800, 8), (0, 40)])
def test_a_task_of_a_verification_has_chunks_of_a_limited_size(
    limit: int, tasks: int, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several large shards in one task would keep one worker busy, and the others idle."""
    monkeypatch.setattr("zarrfs.tools.verification.verification.CLUSTER_BATCH_NBYTES", limit)
    values = np.arange(1, 16001, dtype="u2").reshape(40, 400)
    zarrfs.create_array(tmp_path / "s", data=values, chunks=(1, 400))
    report = verify(tmp_path / "s", dask=address)
    assert report.chunks == 40
    assert sum(worker.tasks for worker in report.workers.values()) == tasks
    assert sum(worker.nbytes for worker in report.workers.values()) == values.nbytes


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("recursion", StoreError, "the Dask worker tcp://.* failed: RecursionError: maximum recursion depth"),
        ("unsendable", StoreError, "the Dask worker tcp://.* failed: unsendable"),
        ("nested", StoreError, "the Dask worker tcp://.* failed: "),
        ("disk", OSError, "full"),
    ],
)
def test_an_exception_of_a_task_ends_the_run_also_if_dask_cannot_send_it(
    kind: Any, error: type[Exception], message: str, address: str
) -> None:
    done: list[int] = []
    with distributed.Client(address, set_as_default=False) as client:
        with pytest.raises(error, match=message) as raised:
            ClusterExecutor(client).run(FailingItem(kind), range(4), 1, done.append)
        assert kind != "disk" or getattr(raised.value, "errno", None) == errno.ENOSPC
        ClusterExecutor(client).run(FailingItem(kind), range(2), 1, done.append)


class TimedCluster(ClusterExecutor):
    """A cluster of four workers with a thread each, whose items take two seconds. Dask takes 0.25 s for each."""

    def __init__(self) -> None:
        self.statistics = {f"worker {number}": WorkerStatistics() for number in range(4)}

    def threads(self, workers: int) -> int:
        return 4

    def run(self, work: Any, items: Any, *arguments: Any, on_result: Any = None, **options: Any) -> None:
        for number, item in enumerate(items):
            self.statistics[f"worker {number % 4}"].add(1, 0, 2.0)
            value = work(item)
            if on_result is not None:
                on_result(value)


@pytest.mark.parametrize("count", [1, 3, 4, 40])
def test_the_expected_time_on_a_cluster_is_that_of_the_items(count: int) -> None:
    source = zarrfs.create_array(
        MemoryStore(), data=np.arange(1, count + 1, dtype="u1"), chunks=1, compressors=None
    )
    store = DiscardingStore()
    target = zarrfs.create_array(store, shape=count, dtype="u1", chunks=1, compressors=None)
    samples = Sampling(store, TimedCluster(), "")
    measured = samples.measure(CopyChunk(source, target, False), [target], [(n,) for n in range(count)], 2)
    assert measured.tasks >= min(count, 8)
    assert measured.nbytes_written == 1
    assert measured.expected_seconds(count) == pytest.approx(2.0 * count / min(count, 4))
    assert measured.expected_seconds(count, 3.0) == pytest.approx(6.0 * count / min(count, 4))


class CountedItem:
    """An item of a run. ``alive`` is the number of those that are in the memory of this process."""

    alive = largest = 0

    def __init__(self, number: int) -> None:
        self.number = number
        CountedItem.alive += 1
        CountedItem.largest = max(CountedItem.largest, CountedItem.alive)

    def __del__(self) -> None:
        CountedItem.alive -= 1

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (self.number,)


def test_the_client_holds_only_the_items_of_the_tasks_in_flight(client: distributed.Client) -> None:
    largest = []
    for count in (2000, 8000):
        gc.collect()
        CountedItem.alive = CountedItem.largest = 0
        done: list[int] = []
        items = (CountedItem(number) for number in range(count))
        with patch.object(batches_module, "MAX_BATCH_SIZE", 16):
            ClusterExecutor(client).run(abs, items, 1, done.append, count=count)
        assert sum(done) == count
        largest.append(CountedItem.largest)
    # The scheduler and the client release the tasks that have ended after some time.
    assert max(largest) < 2000


def test_the_memory_for_the_list_of_chunks_does_not_depend_on_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cells, "MAX_INDICES_IN_MEMORY", 1 << 12)
    monkeypatch.setattr(cells, "BLOCK", 1 << 10)
    monkeypatch.setattr(chunks, "WINDOW", 1 << 10)
    peaks = []
    for depth in (50, 400):
        grid = (depth, 20, 20)
        stored = (coords for coords in np.ndindex(*grid) if coords != (7, 7, 7))
        tracemalloc.start()
        listed = Cells(grid, stored)
        assert len(listed) == depth * 400 - 1
        assert list(missing_between(listed)) == [(7, 7, 7)]
        assert sum(1 for _ in listed) == len(listed)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_cells_are_sorted_and_each_once(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MAX_INDICES_IN_MEMORY", limit)
    monkeypatch.setattr(cells, "BLOCK", 7)
    generator = np.random.default_rng(0)
    for grid in ((5, 1, 6), (100,), (), (0, 3), (1 << 40, 1 << 40)):
        count = 60 if 0 not in grid else 0
        given = [tuple(int(generator.integers(0, n)) for n in grid) for _ in range(count)]
        found = Cells(grid, given)
        expected = sorted(set(given))
        assert list(found) == found[:] == expected
        assert len(found) == len(expected)
        assert [found[number] for number in range(len(found))] == expected
        assert found[2:9:3] == expected[2:9:3]
        assert count == 0 or found[-1] == expected[-1]


def test_a_list_of_chunks_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(cells, "MAX_INDICES_IN_MEMORY", 0)
    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    with pytest.raises(StoreError, match=r"list of chunks cannot be written .* full; set TMPDIR") as caught:
        Cells((3,), [(1,)])
    assert caught.value.errno == errno.ENOSPC
