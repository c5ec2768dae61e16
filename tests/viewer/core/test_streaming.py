"""Streams of tiles: order, generations, sharing, bounds, failures. Reads are held up by gates; nothing sleeps."""

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
from tests.viewer.core.doubles import FakeArray, numbers, plain

TILE = 16 * 16 * 2
"""Bytes of a tile of the images here: chunks of 256 x 256 would be grouped, so tiles are cut from one-chunk rows."""


class Listener:
    """Keeps what a stream calls back, and waits for it."""

    def __init__(self, streamer: TileStreamer) -> None:
        self.tiles: list[tuple[TileKey, int]] = []
        self.errors: list[tuple[TileError, int]] = []
        self.exact: list[int] = []
        self._arrived = threading.Condition()
        self.stream: TileStream = streamer.open(
            on_tile=lambda key, generation: self._note(self.tiles, (key, generation)),
            on_error=lambda error, generation: self._note(self.errors, (error, generation)),
            on_exact=lambda generation: self._note(self.exact, generation),
        )

    def _note(self, where: list[Any], what: Any) -> None:
        with self._arrived:
            where.append(what)
            self._arrived.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._arrived:
            assert self._arrived.wait_for(condition, TIMEOUT), "it did not come"


def slices(count: int = 8) -> Image:
    """A stack of planes of one tile each."""
    return plain(numbers((count, 16, 16)), (1, 16, 16), names="zyx")


class BrokenOnce(set[tuple[int, ...]]):
    """Chunks that are broken for the first read."""

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        chunks = list(super().__iter__())
        self.clear()
        return iter(chunks)


def array_of(image: Image) -> FakeArray:
    array = image.levels[0].array
    assert isinstance(array, FakeArray)
    return array


def want(image: Image, *planes: int, rank: Rank = Rank.VISIBLE) -> list[TileRequest]:
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


def test_tiles_come_and_then_it_is_exact(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    generation = listener.stream.show([image], want(image, 2, 5))
    listener.wait(lambda: bool(listener.exact))
    assert listener.exact == [generation]
    assert [key.plane.indices[0] for key, _ in listener.tiles] == [2, 5]
    tile = streamer.get(want(image, 5)[0].key)
    assert tile is not None
    np.testing.assert_array_equal(tile, array_of(image).data[5])
    assert not tile.flags.writeable


def test_what_is_there_is_exact_at_once(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    listener.stream.show([image], want(image, 1))
    listener.wait(lambda: bool(listener.exact))
    generation = listener.stream.show([image], want(image, 1))
    assert listener.exact[-1] == generation
    assert len(array_of(image).reads) == 1
    assert streamer.memory.hits == 1


def test_stale_requests_are_dropped_before_they_are_read(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], want(image, 0, 1, 2, 3))
    assert array_of(image).started.acquire(timeout=TIMEOUT)  # the first read is under way, held by the gate
    newest = listener.stream.show([image], want(image, 6))
    array_of(image).gate.set()
    listener.wait(lambda: bool(listener.exact))
    assert read_planes(image) == [0, 6]
    assert listener.exact == [newest]
    assert [(key.plane.indices[0], generation) for key, generation in listener.tiles] == [(6, newest)]
    assert streamer.get(want(image, 0)[0].key) is not None  # what was read all the same is not thrown away


def test_a_tile_still_wanted_is_not_read_twice(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], want(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    newest = listener.stream.show([image], want(image, 0, 1))
    array_of(image).gate.set()
    listener.wait(lambda: bool(listener.exact))
    assert read_planes(image) == [0, 1]
    assert {generation for _, generation in listener.tiles} == {newest}


def test_two_panes_share_reads_and_each_is_told(streamer: TileStreamer) -> None:
    image, first, second = slices(), Listener(streamer), Listener(streamer)
    array_of(image).gate.clear()
    first.stream.show([image], want(image, 0, 1))
    second.stream.show([image], want(image, 1))
    array_of(image).gate.set()
    first.wait(lambda: bool(first.exact))
    second.wait(lambda: bool(second.exact))
    assert sorted(read_planes(image)) == [0, 1]
    second.stream.show([image], [])
    assert streamer.get(want(image, 1)[0].key) is not None


def test_visible_before_prefetch_and_prefetch_is_not_announced(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], want(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    listener.stream.show([image], want(image, 0, 3), want(image, 7, rank=Rank.PREFETCH))
    array_of(image).gate.set()
    for _ in range(2):
        assert array_of(image).started.acquire(timeout=TIMEOUT)
    assert read_planes(image) == [0, 3, 7]
    listener.wait(lambda: bool(listener.exact))
    assert 7 not in [key.plane.indices[0] for key, _ in listener.tiles]


def test_the_cache_keeps_its_budget_but_never_drops_what_is_shown() -> None:
    image = slices(8)
    streamer = TileStreamer(workers=1, budget=3 * TILE)
    listener = Listener(streamer)
    try:
        for plane in range(6):
            done = listener.stream.show([image], want(image, plane))
            listener.wait(lambda done=done: done in listener.exact)
            assert streamer.memory.nbytes <= 3 * TILE
        assert streamer.get(want(image, 5)[0].key) is not None
        assert streamer.get(want(image, 2)[0].key) is None
        done = listener.stream.show([image], want(image, 0, 1, 2, 3, 4))
        listener.wait(lambda: done in listener.exact)
        assert all(streamer.get(request.key) is not None for request in want(image, 0, 1, 2, 3, 4))
        streamer.set_budget(TILE)
        listener.stream.show([image], want(image, 4))
        streamer.set_budget(TILE)
        memory = streamer.memory
        assert (memory.nbytes, memory.tiles, memory.budget) == (TILE, 1, TILE)
    finally:
        assert streamer.close()


def test_a_tile_cut_from_something_larger_does_not_keep_that_alive(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    whole = np.zeros((64, 16, 16), np.uint16)
    array_of(image).__class__ = type(
        "Cutting", (FakeArray,), {"__getitem__": lambda self, selection: whole[selection]}
    )
    listener.stream.show([image], want(image, 0))
    listener.wait(lambda: bool(listener.exact))
    tile = streamer.get(want(image, 0)[0].key)
    assert tile is not None
    assert tile.base is None
    assert whole.flags.writeable


def test_a_failing_tile_is_reported_to_each_generation_and_read_once(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).broken = {(3, 0, 0)}
    first = listener.stream.show([image], want(image, 3, 4))
    listener.wait(lambda: first in listener.exact)
    second = listener.stream.show([image], want(image, 3))
    assert second in listener.exact
    assert [generation for _, generation in listener.errors] == [first, second]
    error = listener.errors[0][0]
    assert error.failed == ((0, 0, 16, 16),)
    assert "chunk (3, 0, 0) is broken" in error.message
    assert read_planes(image).count(3) == 1
    array_of(image).broken = set()
    streamer.retry()
    listener.wait(lambda: len(listener.exact) == 3)
    assert streamer.get(want(image, 3)[0].key) is not None


def test_a_retry_repeats_a_read_that_is_running_and_then_fails(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array = array_of(image)
    array.broken = BrokenOnce({(3, 0, 0)})
    array.gate.clear()
    done = listener.stream.show([image], want(image, 3))
    assert array.started.acquire(timeout=TIMEOUT)
    streamer.retry()
    array.gate.set()
    listener.wait(lambda: done in listener.exact)
    assert not listener.errors
    assert streamer.get(want(image, 3)[0].key) is not None
    assert read_planes(image).count(3) == 2


def test_whatever_goes_wrong_is_reported_and_the_worker_lives(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).data = None  # type: ignore[assignment]
    done = listener.stream.show([image], want(image, 0))
    listener.wait(lambda: done in listener.exact)
    assert isinstance(listener.errors[0][0].error, TypeError)
    other = slices()
    done = listener.stream.show([other], want(other, 0))
    listener.wait(lambda: done in listener.exact)


def test_paused_nothing_is_read(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    streamer.pause()
    listener.stream.show([image], want(image, 0, 1))
    assert streamer.memory.queued == 2
    assert read_planes(image) == []
    streamer.resume()
    listener.wait(lambda: bool(listener.exact))


def test_the_queue_is_bounded() -> None:
    streamer = TileStreamer(workers=1, queue_limit=3)
    image, listener = slices(8), Listener(streamer)
    streamer.pause()
    listener.stream.show([image], want(image, *range(8)))
    assert streamer.memory.queued == 3
    streamer.resume()
    listener.wait(lambda: bool(listener.exact))
    assert sorted(read_planes(image)) == list(range(8))
    assert streamer.close()


def test_a_closed_stream_is_silent(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], want(image, 0, 1))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    listener.stream.close()
    array_of(image).gate.set()
    other, heard = slices(), Listener(streamer)
    heard.stream.show([other], want(other, 0))
    heard.wait(lambda: bool(heard.exact))
    assert (listener.tiles, listener.exact) == ([], [])
    assert read_planes(image) == [0]


def test_closing_does_not_wait_for_ever_for_a_read_that_hangs() -> None:
    streamer = TileStreamer(workers=1)
    image, listener = slices(), Listener(streamer)
    array_of(image).gate.clear()
    listener.stream.show([image], want(image, 0))
    assert array_of(image).started.acquire(timeout=TIMEOUT)
    assert not streamer.close(timeout=0.0)
    array_of(image).gate.set()
    assert streamer.close()
    assert streamer.memory.nbytes == 0


def test_a_forgotten_image_leaves_nothing_behind(streamer: TileStreamer) -> None:
    image, listener = slices(), Listener(streamer)
    listener.stream.show([image], want(image, 0, 1))
    listener.wait(lambda: bool(listener.exact))
    streamer.forget(image)
    assert streamer.memory.nbytes == 0


def test_a_callback_may_ask_for_more(streamer: TileStreamer) -> None:
    image = slices()
    done = threading.Event()

    def onward(generation: int) -> None:
        if generation < 4:
            stream.show([image], want(image, generation))
        else:
            done.set()

    stream = streamer.open(on_exact=onward)
    stream.show([image], want(image, 0))
    assert done.wait(TIMEOUT)
    assert read_planes(image) == [0, 1, 2, 3]
