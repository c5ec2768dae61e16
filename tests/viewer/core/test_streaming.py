"""Tile streams: order, generations, sharing, limits and failures. Gates block reads; nothing sleeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import PlaneKey, Rank, TileKey, TileRequest
from zarrfs_viewer.streaming.streamer import TileError, TileStream, TileStreamer

from tests.processes import TIMEOUT
from tests.viewer.core.doubles import FakeArray, array_image, random_values

TILE = 16 * 16 * 2
"""The size in bytes of a tile of the images of ``slices``, which have one tile per plane."""


class Listener:
    """A stream whose callbacks are recorded."""

    def __init__(self, streamer: TileStreamer) -> None:
        self.tiles: list[tuple[TileKey, int]] = []
        self.errors: list[tuple[TileError, int]] = []
        self.complete: list[int] = []
        self._callback_arrived = threading.Condition()
        self.stream: TileStream = streamer.open(
            on_tile=lambda key, generation: self._record(self.tiles, (key, generation)),
            on_error=lambda error, generation: self._record(self.errors, (error, generation)),
            on_finished=lambda generation: self._record(self.complete, generation),
        )

    def _record(self, calls: list[Any], call: Any) -> None:
        with self._callback_arrived:
            calls.append(call)
            self._callback_arrived.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._callback_arrived:
            assert self._callback_arrived.wait_for(condition, TIMEOUT), "the callback was not called"


def slices(count: int = 8) -> Image:
    """Return a stack of planes of one tile each."""
    return array_image(random_values((count, 16, 16)), (1, 16, 16), names="zyx")


class BrokenOnce(set[tuple[int, ...]]):
    """Chunks that fail to decode at the first read only."""

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        chunks = list(super().__iter__())
        self.clear()
        return iter(chunks)


def array_of(image: Image) -> FakeArray:
    array = image.levels[0].array
    assert isinstance(array, FakeArray)
    return array


def requests(image: Image, *planes: int, rank: Rank = Rank.VISIBLE) -> list[TileRequest]:
    return [
        TileRequest(TileKey(PlaneKey(image.uid, 0, (1, 2), (plane, 0, 0)), 0, 0), rank, float(number))
        for number, plane in enumerate(planes)
    ]


def read_planes(image: Image) -> list[int]:
    return [selection[0] for selection in array_of(image).reads]


@pytest.fixture
def streamer() -> Iterator[TileStreamer]:
    streamer = TileStreamer(workers=1)
    yield streamer
    assert streamer.close()


def test_tiles_are_reported_and_then_the_generation_is_exact(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    generation = listener.stream.show([image], requests(image, 2, 5))
    listener.wait(lambda: bool(listener.complete))
    assert listener.complete == [generation]
    assert [key.plane.indices[0] for key, _ in listener.tiles] == [2, 5]
    tile = streamer.get(requests(image, 5)[0].key)
    assert tile is not None
    np.testing.assert_array_equal(tile, array_of(image).data[5])
    assert not tile.flags.writeable


def test_cached_tiles_are_exact_immediately(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    listener.stream.show([image], requests(image, 1))
    listener.wait(lambda: bool(listener.complete))
    generation = listener.stream.show([image], requests(image, 1))
    assert listener.complete[-1] == generation
    assert len(array_of(image).reads) == 1
    assert streamer.memory.hits == 1


def test_replaced_requests_are_not_read(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], requests(image, 0, 1, 2, 3))
    assert array_of(image).started.acquire(timeout=TIMEOUT)  # the first read has started and is blocked
    newest = listener.stream.show([image], requests(image, 6))
    array_of(image).gate.set()
    listener.wait(lambda: bool(listener.complete))
    assert read_planes(image) == [0, 6]
    assert listener.complete == [newest]
    assert [(key.plane.indices[0], generation) for key, generation in listener.tiles] == [(6, newest)]
    assert streamer.get(requests(image, 0)[0].key) is not None  # the running read was completed and cached


def test_a_running_tile_that_is_requested_again_is_not_read_twice(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], requests(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    newest = listener.stream.show([image], requests(image, 0, 1))
    array_of(image).gate.set()
    listener.wait(lambda: bool(listener.complete))
    assert read_planes(image) == [0, 1]
    assert {generation for _, generation in listener.tiles} == {newest}


def test_a_tile_requested_by_two_streams_is_read_once_and_reported_to_both(streamer: TileStreamer) -> None:
    image, first, second = slices(), Listener(streamer), Listener(streamer)
    array_of(image).gate.clear()
    first.stream.show([image], requests(image, 0, 1))
    second.stream.show([image], requests(image, 1))
    array_of(image).gate.set()
    first.wait(lambda: bool(first.complete))
    second.wait(lambda: bool(second.complete))
    assert sorted(read_planes(image)) == [0, 1]
    second.stream.show([image], [])
    assert streamer.get(requests(image, 1)[0].key) is not None


def test_prefetched_tiles_are_read_last_and_not_reported(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], requests(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    listener.stream.show([image], requests(image, 0, 3), requests(image, 7, rank=Rank.PREFETCH))
    array_of(image).gate.set()
    for _ in range(2):
        assert array_of(image).started.acquire(timeout=TIMEOUT)
    assert read_planes(image) == [0, 3, 7]
    listener.wait(lambda: bool(listener.complete))
    assert 7 not in [key.plane.indices[0] for key, _ in listener.tiles]


def test_the_cache_stays_within_its_budget_except_for_visible_tiles() -> None:
    image = slices(8)
    streamer = TileStreamer(workers=1, budget=3 * TILE)
    listener = Listener(streamer)
    try:
        for plane in range(6):
            done = listener.stream.show([image], requests(image, plane))
            listener.wait(lambda done=done: done in listener.complete)
            assert streamer.memory.nbytes <= 3 * TILE
        assert streamer.get(requests(image, 5)[0].key) is not None
        assert streamer.get(requests(image, 2)[0].key) is None
        done = listener.stream.show([image], requests(image, 0, 1, 2, 3, 4))
        listener.wait(lambda: done in listener.complete)
        assert all(streamer.get(request.key) is not None for request in requests(image, 0, 1, 2, 3, 4))
        assert streamer.memory.nbytes == 5 * TILE
        done = listener.stream.show([image], requests(image, 5))
        listener.wait(lambda: done in listener.complete)
        memory = streamer.memory
        assert (memory.nbytes, memory.tiles, memory.budget) == (3 * TILE, 3, 3 * TILE)
    finally:
        assert streamer.close()


def test_a_tile_that_is_a_view_of_a_larger_array_is_copied(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    base = np.zeros((64, 16, 16), np.uint16)
    array_of(image).__class__ = type(
        "ViewArray", (FakeArray,), {"__getitem__": lambda self, selection: base[selection]}
    )
    listener.stream.show([image], requests(image, 0))
    listener.wait(lambda: bool(listener.complete))
    tile = streamer.get(requests(image, 0)[0].key)
    assert tile is not None
    assert tile.base is None
    assert base.flags.writeable


def test_a_failing_tile_is_reported_to_each_generation_and_read_once(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).broken = {(3, 0, 0)}
    first = listener.stream.show([image], requests(image, 3, 4))
    listener.wait(lambda: first in listener.complete)
    second = listener.stream.show([image], requests(image, 3))
    assert second in listener.complete
    assert [generation for _, generation in listener.errors] == [first, second]
    error = listener.errors[0][0]
    assert error.failed == ((0, 0, 16, 16),)
    assert "chunk (3, 0, 0) is broken" in error.message
    assert read_planes(image).count(3) == 1
    array_of(image).broken = set()
    streamer.retry()
    listener.wait(lambda: len(listener.complete) == 3)
    assert streamer.get(requests(image, 3)[0].key) is not None


def test_a_retry_repeats_a_running_read_that_fails(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array = array_of(image)
    array.broken = BrokenOnce({(3, 0, 0)})
    array.gate.clear()
    done = listener.stream.show([image], requests(image, 3))
    assert array.started.acquire(timeout=TIMEOUT)
    streamer.retry()
    array.gate.set()
    listener.wait(lambda: done in listener.complete)
    assert not listener.errors
    assert streamer.get(requests(image, 3)[0].key) is not None
    assert read_planes(image).count(3) == 2


def test_an_unexpected_exception_is_reported_and_does_not_end_the_worker(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).data = None  # type: ignore[assignment]
    done = listener.stream.show([image], requests(image, 0))
    listener.wait(lambda: done in listener.complete)
    assert isinstance(listener.errors[0][0].error, TypeError)
    other = slices()
    done = listener.stream.show([other], requests(other, 0))
    listener.wait(lambda: done in listener.complete)


def test_the_queue_is_bounded_and_all_requests_are_read() -> None:
    streamer = TileStreamer(workers=1, max_queued=3)
    image, listener = slices(8), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], requests(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    done = listener.stream.show([image], requests(image, *range(8)))
    assert streamer.memory.queued == 3
    array_of(image).gate.set()
    listener.wait(lambda: done in listener.complete)
    assert sorted(read_planes(image)) == list(range(8))
    assert streamer.close()


def test_a_closed_stream_reports_nothing(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], requests(image, 0, 1))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    listener.stream.close()
    array_of(image).gate.set()
    other_image, other_listener = slices(), Listener(streamer)
    other_listener.stream.show([other_image], requests(other_image, 0))
    other_listener.wait(lambda: bool(other_listener.complete))
    assert (listener.tiles, listener.complete) == ([], [])
    assert read_planes(image) == [0]


def test_close_returns_false_if_a_read_is_blocked() -> None:
    streamer = TileStreamer(workers=1)
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], requests(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    assert not streamer.close(timeout=0.0)
    array_of(image).gate.set()
    assert streamer.close()
    assert streamer.memory.nbytes == 0


def test_the_tiles_of_a_forgotten_image_are_removed(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    listener.stream.show([image], requests(image, 0, 1))
    listener.wait(lambda: bool(listener.complete))
    streamer.forget(image)
    assert streamer.memory.nbytes == 0


def test_a_callback_may_call_show(streamer: TileStreamer) -> None:
    image = slices()
    done = threading.Event()

    def request_next(generation: int) -> None:
        if generation < 4:
            stream.show([image], requests(image, generation))
        else:
            done.set()

    stream = streamer.open(on_finished=request_next)
    stream.show([image], requests(image, 0))
    assert done.wait(TIMEOUT)
    assert read_planes(image) == [0, 1, 2, 3]


def test_the_memory_is_reported_while_a_worker_holds_the_lock(streamer: TileStreamer) -> None:
    """The GUI thread asks for it with each picture."""
    reported: list[int] = []
    with streamer._lock:
        thread = threading.Thread(target=lambda: reported.append(streamer.memory.nbytes), daemon=True)
        thread.start()
        thread.join(TIMEOUT)
    assert reported == [0]
