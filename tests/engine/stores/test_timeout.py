"""The store that limits the time of operations."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.processes import TIMEOUT
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.timeout import REPEATED_SECONDS, DaemonThreads, TimeoutStore
from zarrfs.errors import StoreError
from zarrfs.testing import LatencyStore

LIMIT = 0.2
"""A time limit in seconds that passes in a test. Operations that must succeed have a longer one."""


class Gate:
    """Operations of a store wait while the gate is closed."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.opened.set()
        self.arrived = threading.Semaphore(0)

    def wait(self, operation: str, key: str) -> None:
        self.arrived.release()
        self.opened.wait()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()


def make_store(gate: Gate, timeout: float, stale: float = LIMIT) -> TimeoutStore:
    memory = MemoryStore()
    memory.set("a/zarr.json", b"{}")
    memory.set("a/c/0", b"chunk")
    return TimeoutStore(
        LatencyStore(memory, gate.wait), timeout, lambda key: key.endswith("zarr.json"), stale
    )


def test_an_operation_that_takes_too_long_is_an_error(gate: Gate) -> None:
    store = make_store(gate, LIMIT)
    gate.opened.clear()
    for operation in (lambda: store.get("a/c/0"), lambda: store.size("a/c/0"), lambda: store.set("b", b"x")):
        with pytest.raises(StoreError, match=r"did not respond within 0\.[12] s") as caught:
            operation()
        assert caught.value.errno == errno.ETIMEDOUT
    out = bytearray(5)
    with pytest.raises(StoreError, match="did not respond"):
        store.get_into("a/c/0", memoryview(out))
    gate.opened.set()
    assert out == bytes(5), "an operation that was given up does not change memory"


def test_known_metadata_is_used_while_the_server_does_not_respond(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store(gate, 100.0)
    assert store.get("a/zarr.json") == b"{}"
    assert store.list_dir("a")[0] == ["zarr.json"]
    gate.opened.clear()
    for _ in range(50):
        assert store.get("a/zarr.json") == b"{}"
        assert store.list_dir("a")[0] == ["zarr.json"]
    assert [record.message for record in caplog.records] == [
        f"{store.url}: the server does not respond; known metadata is used meanwhile"
    ]
    gate.opened.set()
    store.set("a/zarr.json", b"{1}")
    while store.get("a/zarr.json") != b"{1}":
        """The request that tells that the server responds again may be in progress."""


def test_reads_fail_early_while_no_request_is_answered(gate: Gate) -> None:
    """The first read waits for the time limit. Programs and the kernel then repeat it."""
    store = make_store(gate, 2 * LIMIT, stale=LIMIT)
    gate.opened.clear()
    with pytest.raises(StoreError, match=r"did not respond within 0\.4 s"):
        store.get("a/c/0")
    reads: list[Callable[[], object]] = [
        lambda: store.get("a/c/1"),
        lambda: store.get("a/zarr.json"),
        lambda: store.get_ranges("a/c/2", [(0, 2)]),
        lambda: store.size("a/c/3"),
    ]
    for read in reads:
        with pytest.raises(StoreError, match=r"did not respond within 0\.2 s"):
            read()
    with pytest.raises(StoreError, match=r"did not respond within 0\.4 s"):
        store.set("b", b"x")
    store.timeout = 100.0
    abandoned = store._threads.start(lambda: store._run(lambda: None))
    gate.opened.set()
    abandoned.done.wait()
    assert store.get("a/c/0") == b"chunk"
    assert not store._is_hung


def test_a_key_that_timed_out_fails_at_once_until_its_request_is_answered(gate: Gate) -> None:
    """The kernel sends the reads of the same data by several programs one after another."""
    store = make_store(gate, LIMIT)
    gate.opened.clear()
    with pytest.raises(StoreError, match=r"did not respond within 0\.2 s"):
        store.get("a/c/0")
    store.timeout = 100.0
    failure = store._failures["a/c/0"]
    failure.until = time.monotonic() + 100
    # Other requests are answered: the server does not hang.
    store._mark_response()
    arrived = gate.arrived._value
    for read in (lambda: store.get("a/c/0"), lambda: store.get_ranges("a/c/0", [(0, 2)])):
        with pytest.raises(StoreError, match=rf"did not respond within {REPEATED_SECONDS:g} s") as caught:
            read()
        assert caught.value.errno == errno.ETIMEDOUT
    assert gate.arrived._value == arrived, "no request is sent while one is in progress"
    gate.opened.set()
    failure.task.done.wait()
    assert store.get("a/c/0") == b"chunk"
    assert not store._failures


@pytest.mark.parametrize("number", [errno.ETIMEDOUT, None])
def test_a_time_limit_of_the_client_is_no_response(number: int | None, gate: Gate) -> None:
    """The client gives up at about the same time."""
    fails = True

    def fail_in_the_client(operation: str, key: str) -> None:
        if fails:
            error = StoreError(f"{key}: the client has given up", number)
            raise error from (None if number else TimeoutError())

    memory = MemoryStore()
    memory.set("c/0", b"chunk")
    store = TimeoutStore(LatencyStore(memory, fail_in_the_client), 100.0)
    store._is_hung = True
    for _ in range(2):
        with pytest.raises(StoreError, match="did not respond") as caught:
            store.get("c/0")
        assert caught.value.errno == errno.ETIMEDOUT
        assert store._is_hung
    fails = False
    assert store.get("c/0") == b"chunk"
    assert not store._is_hung


def test_a_slow_request_does_not_shorten_others_while_some_are_answered(gate: Gate) -> None:
    store = make_store(gate, LIMIT)
    started, release = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        release.wait()

    def answer_others() -> None:
        started.wait()
        store._run(lambda: None)

    other = threading.Thread(target=answer_others)
    other.start()
    with pytest.raises(StoreError, match="did not respond"):
        store._limit(slow, "slow")
    other.join()
    release.set()
    assert not store._is_hung


def test_errors_and_values_are_passed_on(gate: Gate) -> None:
    store = make_store(gate, 100.0)
    assert store.get("a/c/0") == b"chunk"
    assert store.get("missing") is None
    assert sorted(store.list_prefix("a")) == ["a/c/0", "a/zarr.json"]
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.get("a/c/0")


def test_closing_does_not_wait_for_the_server(gate: Gate) -> None:
    store = make_store(gate, 100.0)

    def close() -> None:
        gate.opened.wait()

    store.store.close = close  # type: ignore[method-assign]
    gate.opened.clear()
    store.close()


def test_no_task_waits_for_another_one_while_there_are_threads(gate: Gate) -> None:
    threads = DaemonThreads(16)
    for _ in range(20):
        gate.opened.clear()
        tasks = [threads.start(lambda: gate.wait("", "")) for _ in range(16)]
        for _ in tasks:
            assert gate.arrived.acquire(timeout=TIMEOUT)
        gate.opened.set()
        for task in tasks:
            task.done.wait()


def test_the_number_of_threads_is_bounded(gate: Gate) -> None:
    threads = DaemonThreads(2)
    gate.opened.clear()
    tasks = [threads.start(lambda: gate.wait("", "")) for _ in range(6)]
    for _ in range(2):
        gate.arrived.acquire()
    assert not gate.arrived.acquire(timeout=0.05)
    gate.opened.set()
    for task in tasks:
        task.done.wait()
        assert task.error is None
