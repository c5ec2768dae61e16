"""``for_each``: every item is processed, exceptions are raised, and nested calls do not deadlock."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from functools import partial

import numpy as np
import pytest

from tests.processes import TIMEOUT
from zarrfs.engine.parallel import MAX_THREADS, _get_pool, for_each


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_item_is_processed_once(workers: int) -> None:
    done: list[int] = []
    for_each(done.append, range(1000), workers)
    assert sorted(done) == list(range(1000))


def test_two_threads_run_concurrently() -> None:
    both = threading.Barrier(2, timeout=TIMEOUT)
    for_each(lambda item: both.wait(), range(2), 2)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_exception_is_raised_and_no_further_items_are_processed(workers: int) -> None:
    done = []

    def work(item: int) -> None:
        if item == 3:
            raise KeyError(item)
        done.append(item)

    with pytest.raises(KeyError):
        for_each(work, range(100_000), workers)
    assert len(done) < 100_000


def test_nested_calls_do_not_deadlock() -> None:
    done = []
    for_each(
        lambda i: for_each(lambda j: done.append((i, j)), range(3), 4), range(3 * MAX_THREADS), MAX_THREADS
    )
    assert len(done) == 9 * MAX_THREADS


def test_results_are_released_while_all_threads_of_the_pool_are_in_use() -> None:
    everyone, release = threading.Barrier(MAX_THREADS + 1, timeout=TIMEOUT), threading.Event()

    def occupy() -> None:
        everyone.wait()
        assert release.wait(TIMEOUT)

    pool = _get_pool()
    waiting = [pool.submit(occupy) for _ in range(MAX_THREADS)]
    try:
        everyone.wait()
        results = np.zeros(4)
        released = weakref.ref(results)
        for_each(partial(results.__setitem__, slice(None)), range(4), 2)
        assert results.tolist() == [3, 3, 3, 3]
        del results
        assert released() is None
    finally:
        release.set()
        for call in waiting:
            call.result()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_creates_its_own_threads() -> None:
    for_each(lambda item: None, range(4), 2)
    pid = os.fork()
    if pid == 0:
        both = threading.Barrier(2, timeout=TIMEOUT)
        for_each(lambda item: both.wait(), range(2), 2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_running_calls_end_early_after_an_interruption() -> None:
    """The other thread works on a sequence without an end, until it is stopped between two items of it."""
    started = threading.Barrier(2, timeout=TIMEOUT)

    def work(_: int) -> None:
        started.wait()
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        for_each(lambda item: None, itertools.count(), 1)

    with pytest.raises(KeyboardInterrupt):
        for_each(work, range(2), 2)
    for_each(
        lambda item: for_each(lambda part: None, range(3), 1), range(4), 2
    )  # later calls are not stopped
