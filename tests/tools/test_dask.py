"""Copies on a Dask cluster: the same results as on threads, and clear words where it cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
import zarr

import zarrfs
from tests.engine.stores.servers import free_port, web_server
from tests.processes import TIMEOUT, running, wait_for_event
from tests.tools.dask_servers import Elsewhere, Note, dask_cluster, scheduler, worker
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import FailingStore
from zarrfs.errors import (
    ChunkDecodeError,
    LocationError,
    NodeExistsError,
    StoreError,
    UnsupportedError,
)
from zarrfs.tools import convert, rechunk
from zarrfs.tools.copying.dask_cluster import AHEAD, Cluster

RNG = np.random.default_rng(0)
DATA = RNG.integers(1, 999, (40, 50)).astype("u2")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of two workers with a thread each, on this machine."""
    with dask_cluster(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[distributed.Client]:
    with distributed.Client(address, set_as_default=False) as found:
        yield found


def make(path: Path, **options: Any) -> zarrfs.Group:
    group = zarrfs.create_group(path, attributes={"title": "t"})
    group.create_array(
        "a", data=DATA, chunks=(8, 9), dimension_names=["y", "x"], attributes={"k": 1}, **options
    )
    group.create_array("inner/words", data=np.array(["a", "größe", ""], object), dtype="string", chunks=2)
    return group


def same(one: Path, other: Any) -> None:
    first, second = (dict(zarrfs.open_group(place).walk()) for place in (one, other))
    assert sorted(first) == sorted(second)
    for path, node in first.items():
        if isinstance(node, zarrfs.Array):
            assert np.array_equal(node[...], second[path][...])


@pytest.mark.parametrize(
    "options",
    [{}, {"zarr_format": 2}, {"compressors": "gzip"}, {"chunks": -1}],
    ids=["as they are", "v2", "gzip", "one chunk"],
)
def test_a_copy_is_the_same_as_on_threads(options: dict[str, Any], address: str, tmp_path: Path) -> None:
    make(tmp_path / "s")
    told: list[tuple[str, int, int]] = []
    lines = convert(
        tmp_path / "s",
        tmp_path / "t",
        dask=address,
        verify=True,
        progress=lambda *what: told.append(what),
        **options,
    )
    assert lines == convert(tmp_path / "s", tmp_path / "threads", **options)
    same(tmp_path / "s", tmp_path / "t")
    # What was stored is the same too, and nothing else is.
    files = [
        {f.relative_to(tmp_path / name): f.read_bytes() for f in (tmp_path / name).rglob("*") if f.is_file()}
        for name in ("t", "threads")
    ]
    assert files[0] == files[1]
    counts = [(done, total) for name, done, total in told if name == "/a"]
    assert counts[0][0] == 0
    assert counts[-1][0] == counts[-1][1]
    assert counts == sorted(counts)


def test_shards_are_made_of_planes_on_a_client(client: distributed.Client, tmp_path: Path) -> None:
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


def test_stores_of_other_kinds(address: str, tmp_path: Path) -> None:
    make(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "s.zip")
    convert(tmp_path / "s.zip", f"sqlite://{tmp_path}/t.sqldb", dask=address, verify=True)
    with web_server(tmp_path) as web:
        zarrfs.tools.consolidate_metadata(tmp_path / "s")
        convert(f"{web.url}/s", tmp_path / "t", dask=address, verify=True)
    same(tmp_path / "s", f"sqlite://{tmp_path}/t.sqldb")
    same(tmp_path / "s", tmp_path / "t")


def test_what_cannot_be_reached_is_told_before_anything_is_written(address: str, tmp_path: Path) -> None:
    make(tmp_path / "s")
    with pytest.raises(UnsupportedError, match=r"memory of this process.*without dask"):
        convert(tmp_path / "s", MemoryStore(), dask=address)
    kept = MemoryStore()
    convert(tmp_path / "s", kept)
    with pytest.raises(UnsupportedError, match="memory of this process"):
        convert(kept, tmp_path / "t", dask=address)
    failing = FailingStore(LocalStore(tmp_path / "t"), lambda operation, key: None)
    with pytest.raises(UnsupportedError, match="cannot be pickled"):
        convert(tmp_path / "s", failing, dask=address)
    with pytest.raises(UnsupportedError, match="open for writing and cannot be pickled"):
        convert(tmp_path / "s", tmp_path / "t.zip", dask=address)
    assert not (tmp_path / "t").exists()
    zarrfs.create_group(tmp_path / "there")
    with pytest.raises(NodeExistsError):
        convert(tmp_path / "s", tmp_path / "there", dask=address)


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_path_of_another_machine(which: str, address: str, tmp_path: Path) -> None:
    make(tmp_path / "s")
    apart = Elsewhere(str(tmp_path / "data"), os.getpid())
    source: Any = tmp_path / "s"
    target: Any = tmp_path / "t"
    if which == "source":
        convert(source, apart)
        source = apart
    else:
        target = apart
    with pytest.raises(
        StoreError, match=r"worker tcp://127.0.0.1:\d+ cannot take part.*that all machines share"
    ):
        convert(source, target, dask=address)
    assert not (tmp_path / "t").exists()
    if which == "target":
        assert list(apart.list_prefix()) == []


def test_no_cluster_is_told_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "s")
    monkeypatch.setattr("zarrfs.tools.copying.dask_cluster.ANSWER_TIMEOUT_SECONDS", 1)
    with web_server(tmp_path) as web:
        for wrong in (
            "nonsense",
            "gopher://x",
            f"tcp://127.0.0.1:{free_port()}",
            web.url.replace("http", "tcp"),
        ):
            with pytest.raises(LocationError, match="no Dask scheduler answers"):
                convert(tmp_path / "s", tmp_path / "t", dask=wrong)
    for no_address in ("", 3):
        with pytest.raises(LocationError, match="expected an address"):
            convert(tmp_path / "s", tmp_path / "t", dask=no_address)  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()


def test_without_distributed_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "s")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'dask>=.*' 'distributed>="):
        convert(tmp_path / "s", tmp_path / "t", dask="tcp://127.0.0.1:8786")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("options", [{"compressors": "gzip"}, {"chunks": 20}], ids=["gzip", "chunks"])
def test_a_failing_block_stops_the_copy_with_its_error_and_it_goes_on(
    options: dict[str, Any], address: str, tmp_path: Path
) -> None:
    make(tmp_path / "s")
    chunk = tmp_path / "s" / "a" / "c" / "3" / "2"
    sound = chunk.read_bytes()
    chunk.write_bytes(b"broken")
    with pytest.raises(ChunkDecodeError, match=r"chunk \(3, 2\)") as caught:
        convert(tmp_path / "s", tmp_path / "t", dask=address, **options)
    assert caught.value.__cause__ is None
    chunk.write_bytes(sound)
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "t" / "a").rglob("*") if f.is_file()}
    convert(tmp_path / "s", tmp_path / "t", dask=address, if_exists="resume", verify=True, **options)
    same(tmp_path / "s", tmp_path / "t")
    assert {f: f.stat().st_mtime_ns for f in before} == before


def test_a_difference_is_found(address: str, tmp_path: Path) -> None:
    make(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "t")
    zarrfs.open_array(tmp_path / "t", "a", mode="r+")[5, 7] = 0
    with pytest.raises(StoreError, match="differs from the source"):
        convert(tmp_path / "s", tmp_path / "t", dask=address, if_exists="resume", verify=True)


def test_a_replacement_that_fails_leaves_the_old_array(address: str, tmp_path: Path) -> None:
    make(tmp_path / "s")
    zarrfs.create_array(tmp_path / "t", "a", data=np.arange(3))
    before = {f: f.read_bytes() for f in (tmp_path / "t").rglob("*") if f.is_file()}
    (tmp_path / "s" / "a" / "c" / "4" / "5").write_bytes(b"broken")
    with pytest.raises(ChunkDecodeError):
        convert(tmp_path / "s", tmp_path / "t", if_exists="replace", compressors="gzip", dask=address)
    assert {f: f.read_bytes() for f in (tmp_path / "t").rglob("*") if f.is_file()} == before


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_each_piece_is_done_once(count: int, client: distributed.Client, tmp_path: Path) -> None:
    done: list[int] = []
    Cluster(client).run(Note(str(tmp_path / "notes")), range(count), 1, done.append)
    lines = (tmp_path / "notes").read_text().split() if count else []
    assert Counter(map(int, lines)) == Counter(range(count))
    assert sum(done) == count


def test_tasks_in_flight_are_bounded(client: distributed.Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    work = Note(str(tmp_path / "notes"), str(gate))
    most: list[int] = []
    caller = threading.Thread(
        target=Cluster(client).run,
        args=(work, range(500), 1, lambda count: most.append(len(client.futures))),
    )
    caller.start()
    while caller.is_alive():
        try:
            # Opens for as long as somebody waits to read.
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            caller.join(0.001)
    assert len((tmp_path / "notes").read_text().split()) == 500
    assert max(most) <= AHEAD * 2 + 1


def test_a_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "s")
    monkeypatch.setattr("zarrfs.tools.copying.dask_cluster.SECONDS_FOR_WORKERS", 0.1)
    with scheduler(tmp_path / "scheduler.log") as (address, _):
        with pytest.raises(LocationError, match="has no workers; start some: dask worker tcp://"):
            convert(tmp_path / "s", tmp_path / "t", dask=address)
        assert not (tmp_path / "t").exists()


def test_a_piece_that_kills_its_workers(tmp_path: Path) -> None:
    with scheduler(tmp_path / "scheduler.log") as (address, _), ExitStack() as workers:
        for number in range(5):
            workers.enter_context(worker(address, tmp_path / f"{number}.log"))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(5, timeout=TIMEOUT)
            with pytest.raises(StoreError, match=r"died of one piece.*resume"):
                Cluster(client).run(os._exit, [1], 1, lambda count: None)


def test_a_scheduler_that_goes(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with (
        scheduler(tmp_path / "scheduler.log") as (address, process),
        worker(address, tmp_path / "worker.log"),
        distributed.Client(address, set_as_default=False) as client,
    ):
        client._timeout = (
            1  # how long it tries to connect again; as an argument it would bound the first time too
        )
        client.wait_for_workers(1, timeout=TIMEOUT)
        work = Note(str(tmp_path / "notes"), str(gate))

        def end() -> None:
            with open(gate, "wb"):  # the first piece is being done
                process.kill()

        ending = threading.Thread(target=end)
        ending.start()
        with pytest.raises(StoreError, match=r"has gone, or was restarted.*resume"):
            Cluster(client).run(work, range(100), 1, lambda count: None)
        ending.join()


def test_an_interrupted_command_says_how_to_go_on_and_does(address: str, tmp_path: Path) -> None:
    """The chunks come from a web server, which gives out a few, and the others when the command has understood."""
    data = RNG.integers(1, 99, (100, 4)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(1, 4))
    first, gate, lock = [10], threading.Event(), threading.Lock()
    blocked = threading.Event()

    def wait(path: str) -> None:
        if "/c/" in path:
            with lock:
                first[0] -= 1
                free = first[0] >= 0
            if not free:
                blocked.set()
                gate.wait()

    with web_server(tmp_path) as web:
        web.waiting = wait
        command = [sys.executable, "-m", "zarrfs", "convert", f"{web.url}/s", str(tmp_path / "t")]
        command += ["--compressor", "gzip", "--dask", address]
        with running(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                wait_for_event(blocked, process)
                process.send_signal(signal.SIGINT)
                assert "stopping: what the workers are at is finished" in process.stderr.readline()
            finally:
                gate.set()
            said = process.stderr.read()
            assert process.wait(TIMEOUT) == 130
        assert said == "zarrfs: interrupted; run the same command with --if-exists resume to continue\n"
        there = [path for path in (tmp_path / "t" / "c").rglob("*") if path.is_file()]
        assert 0 < len(there) < 30
        before = {path: path.stat().st_mtime_ns for path in there}
        web.requests.clear()
        done = subprocess.run(
            [*command, "--if-exists", "resume", "--verify"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert {path: path.stat().st_mtime_ns for path in there} == before
    assert np.array_equal(zarrfs.open_array(tmp_path / "t")[...], data)
