"""The chunk cache: its size limit, stamps, and concurrent loads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processes import TIMEOUT
from zarrfs.engine.cache import CacheEntry, ChunkCache, as_cacheable, available_memory


def test_a_value_is_returned_only_for_an_equal_stamp() -> None:
    cache = ChunkCache(1000)
    cache.put("key", 1, "value", 10)
    assert cache.get("key", 1) == "value"
    assert cache.get("key", 2) is None
    assert cache.get("key", 1) is None, "an outdated entry is removed"
    assert cache.nbytes == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 60)), max_size=60))
def test_the_capacity_is_not_exceeded_and_the_oldest_entries_are_evicted(puts: list[tuple[int, int]]) -> None:
    cache = ChunkCache(100)
    model: dict[int, int] = {}
    for key, size in puts:
        cache.put(key, None, size, size)
        if size * 2 <= 100:
            model.pop(key, None)
            model[key] = size
        while sum(model.values()) > 100:
            del model[next(iter(model))]
        assert cache.nbytes == sum(model.values()) <= 100
    for key in range(10):
        assert (cache.get(key, None) is not None) == (key in model)


def test_room_is_made_before_entries_are_added() -> None:
    cache = ChunkCache(100)
    for key in range(5):
        cache.put(key, None, key, 20)
    cache.make_room(30, used=[0])
    assert [key for key in range(5) if cache.get(key, None) is not None] == [0, 3, 4]
    cache.make_room(40)
    assert cache.nbytes == 60
    cache.make_room(1000, used=[0])
    assert [key for key in range(5) if cache.get(key, None) is not None] == [0]
    assert cache.nbytes == 20


def test_reducing_the_capacity_evicts_immediately() -> None:
    cache = ChunkCache(100)
    for key in range(10):
        cache.put(key, None, key, 10)
    cache.capacity = 25
    assert len(cache) == 2
    assert cache.nbytes == 20
    with pytest.raises(ValueError, match="must be at least 0, found -1"):
        ChunkCache(-1)


def test_nothing_is_cached_with_capacity_0() -> None:
    cache = ChunkCache(0)
    assert cache.load("key", None, lambda: ("value", 10)) == "value"
    assert len(cache) == 0


def test_concurrent_loads_of_one_key_call_the_loader_once() -> None:
    cache = ChunkCache(100)
    entered, gate = threading.Event(), threading.Event()
    calls = []

    def loader() -> tuple[str, int]:
        calls.append(1)
        entered.set()
        gate.wait(TIMEOUT)
        return "value", 1

    results: list[str] = []
    started = threading.Semaphore(0)

    def load() -> None:
        started.release()
        results.append(cache.load("key", None, loader))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in threads:
        started.acquire()
    assert entered.wait(TIMEOUT)
    gate.set()
    for thread in threads:
        thread.join()
    assert results == ["value"] * 8
    assert calls == [1]


def test_a_failed_load_is_not_cached() -> None:
    cache = ChunkCache(100)

    def fail() -> tuple[str, int]:
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            cache.load("key", None, fail)
    assert cache.load("key", None, lambda: ("fine", 1)) == "fine"


def test_a_changed_stamp_does_not_wait_for_the_old_load() -> None:
    cache = ChunkCache(100)

    def outer() -> tuple[str, int]:
        assert cache.load("key", 2, lambda: ("new", 1)) == "new"
        return "old", 1

    assert cache.load("key", 1, outer) == "old"
    assert cache.get("key", 2) is None, "the load that ended last replaces the entry"


def test_small_views_of_large_buffers_are_copied() -> None:
    large = np.zeros(1 << 20, np.uint8)
    kept, nbytes = as_cacheable(large[:100])
    assert kept.base is not large
    assert nbytes < 1000
    kept, nbytes = as_cacheable(np.frombuffer(bytes(4096), "u2"))
    assert nbytes < 5000
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_recent_partial_reads_are_recorded_up_to_a_limit() -> None:
    cache = ChunkCache(100)
    entry = CacheEntry(cache, (1, 0, (0, 0)), None)
    assert not entry.half_was_decoded()
    entry.record_read()
    assert entry.half_was_decoded()
    assert not entry.child((3,)).half_was_decoded()
    for key in range(5000):
        cache.record_reads([key])
    assert not entry.half_was_decoded()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_with_unlocked_locks() -> None:
    from zarrfs.engine import cache as module

    with module.default_cache()._lock:
        pid = os.fork()
        if pid == 0:
            module.default_cache().put("key", None, "value", 1)
            os._exit(0 if module.default_cache().get("key", None) == "value" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_entry_is_found_after_it_was_added() -> None:
    cache = ChunkCache(1000)
    entry = CacheEntry(cache, ("a",), 1)
    assert entry.get() is None
    entry.put(np.arange(3))
    found = entry.get()
    assert found is not None
    assert found.tolist() == [0, 1, 2]
    assert CacheEntry(cache, ("a",), 2).get() is None


def test_the_least_recent_partial_reads_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrfs.engine.cache.MAX_RECENT_READS", 2)
    cache = ChunkCache(1000)
    for key in ("a", "b", "a", "c"):
        cache.record_reads([key])
    assert [cache.half_was_decoded(key) for key in ("a", "b", "c")] == [True, False, True]


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        (
            "0::/job_7/step_0\n",
            {"job_7/memory.max": "300000000\n", "job_7/step_0/memory.max": "max\n"},
            300_000_000,
        ),
        ("0::/a\n", {"memory.max": "200000000\n", "a/memory.max": "500000000\n"}, 200_000_000),
        (
            "3:cpu:/x\n2:memory:/slurm/job\n0::/\n",
            {"memory/slurm/job/memory.limit_in_bytes": "100000000\n", "memory.max": "nonsense"},
            100_000_000,
        ),
        ("1:name=systemd:/x:y\nnonsense\n", {}, None),
        ("0::/../../../outside\n", {"outside/memory.max": "1"}, 1),
    ],
)
def test_the_available_memory_is_that_of_the_control_group(
    groups: str, limits: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(groups)
    for name, text in limits.items():
        path = tmp_path / "limits" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    machine = available_memory(str(tmp_path / "missing"))
    found = available_memory(str(tmp_path / "cgroup"), str(tmp_path / "limits"))
    assert found == (machine if expected is None else expected)
