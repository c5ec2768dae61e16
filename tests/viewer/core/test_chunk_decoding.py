"""How often chunks are read while the slice moves: each chunk is decoded once and cached, if the layer fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from time import monotonic, sleep

import pytest
from zarrfs_viewer.display.resolve import DisplayState, resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_array
from zarrfs_viewer.images.tile_grid import PlaneKey, Rank, TileKey, TileRequest
from zarrfs_viewer.state.view_state import fit, with_position
from zarrfs_viewer.streaming.streamer import TileStreamer

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.core.doubles import FakeArray, array_image, random_values
from zarrfs.storage import MemoryStore
from zarrfs.testing import CountingStore

DEPTH = 8
LAYERS = 4
LAYER_NBYTES = DEPTH * 256 * 512
"""A plane has two tiles of four chunks, because a read of a single chunk always caches it."""


@pytest.fixture
def streamer() -> Iterator[TileStreamer]:
    streamer = TileStreamer(workers=2, budget=1 << 24)
    yield streamer
    assert streamer.close(TIMEOUT)


def counted_image(capacity: int) -> tuple[Image, CountingStore]:
    """Return a stack of compressed chunks, and the store that counts the reads of each chunk."""
    memory = MemoryStore()
    values = random_values((DEPTH * LAYERS, 256, 512), "uint8")
    zarrfs.create_array(
        memory,
        data=values,
        chunks=(DEPTH, 128, 128),
        compressors={"name": "gzip", "configuration": {"level": 1}},
    )
    store = CountingStore(memory)
    array = zarrfs.open_array(store, mode="r", cache_size=capacity)
    store.reset()
    return image_from_array(array, "array"), store


def step_through(streamer: TileStreamer, image: Image, positions: Iterable[int], budget: int) -> None:
    """Show slices one after the other. Each waits until its tiles and the prefetched ones are read."""
    stream = streamer.open()
    state: DisplayState | None = None
    for position in positions:
        settings = with_position(initial_settings(image), 0, position)
        state = resolve(settings, image, fit(512, 256, 256, 512), (), state, budget)
        stream.show(state.images, state.tiles, state.prefetch)
        end = monotonic() + TIMEOUT
        while streamer.memory.queued or streamer.memory.running:
            assert monotonic() < end
            sleep(0.0005)
    stream.close()


def reads_per_layer(store: CountingStore) -> list[set[int]]:
    """Return for each layer of chunks the numbers of reads of its chunks."""
    layers: dict[int, Counter[int]] = {}
    for key, count in store.keys.items():
        if key.startswith("c/"):
            layers.setdefault(int(key.split("/")[1]), Counter())[count] += 1
    return [set(layers[layer]) for layer in sorted(layers)]


@pytest.mark.parametrize("direction", [1, -1])
def test_each_chunk_is_decoded_once_when_a_key_is_held(streamer: TileStreamer, direction: int) -> None:
    image, store = counted_image(3 * LAYER_NBYTES)
    step_through(streamer, image, range(DEPTH * LAYERS)[::direction], 3 * LAYER_NBYTES)
    reads = reads_per_layer(store)[::direction]
    # The first picture needs a part of its chunks at once; the prefetched neighbour then decodes them completely.
    assert reads == [{2}, {1}, {1}, {1}]


def test_chunks_are_decoded_at_most_twice_if_two_layers_do_not_fit(streamer: TileStreamer) -> None:
    image, store = counted_image(3 * LAYER_NBYTES // 2)
    step_through(streamer, image, range(DEPTH * LAYERS), 3 * LAYER_NBYTES // 2)
    assert all(max(counts) <= 2 for counts in reads_per_layer(store))


def test_nothing_is_kept_if_a_layer_does_not_fit() -> None:
    image, _ = counted_image(LAYER_NBYTES)
    state = resolve(initial_settings(image), image, fit(512, 256, 256, 512), (), None, LAYER_NBYTES - 1)
    assert not any(request.keeps_chunks for request in (*state.tiles, *state.prefetch))
    state = resolve(initial_settings(image), image, fit(512, 256, 256, 512), (), None, LAYER_NBYTES)
    assert all(request.keeps_chunks for request in (*state.tiles, *state.prefetch))


def test_two_workers_never_read_planes_of_the_same_chunks_at_the_same_time(streamer: TileStreamer) -> None:
    image = array_image(random_values((16, 16, 16)), (4, 16, 16), names="zyx")
    array = image.levels[0].array
    assert isinstance(array, FakeArray)
    array.gate.clear()
    stream = streamer.open()

    def request(z: int, rank: Rank) -> TileRequest:
        return TileRequest(TileKey(PlaneKey(image.uid, 0, (1, 2), (z, 0, 0)), 0, 0), rank)

    stream.show([image], [request(1, Rank.VISIBLE)], [request(z, Rank.PREFETCH) for z in (2, 3, 5)])
    for _ in range(2):
        assert array.started.acquire(timeout=TIMEOUT)
    # The planes 2 and 3 have the chunk of plane 1, which is being read; plane 5 has another one.
    assert sorted(selection[0] for selection in array.reads) == [1, 5]
    array.gate.set()
    for _ in range(2):
        assert array.started.acquire(timeout=TIMEOUT)
    assert sorted(selection[0] for selection in array.reads) == [1, 2, 3, 5]


def test_the_chunks_of_planes_are_compared_by_layer_tile_and_level() -> None:
    image = array_image(random_values((16, 16, 16)), (4, 16, 16), names="zyx")

    def chunks(z: int, row: int = 0) -> object:
        return image.chunks_of(TileKey(PlaneKey(image.uid, 0, (1, 2), (z, 0, 0)), row, 0))

    assert chunks(0) == chunks(3) != chunks(4)
    assert chunks(0) != chunks(0, row=1)


def test_expected_reads_are_recorded_in_the_cache_of_the_array() -> None:
    image, store = counted_image(4 * LAYER_NBYTES)
    key = TileKey(PlaneKey(image.uid, 0, (1, 2), (0, 0, 0)), 0, 0)
    image.cache_on_next_read(key)
    assert store.keys == {}  # nothing is read
    image.read_tile(key)
    image.read_tile(TileKey(key.plane._replace(indices=(1, 0, 0)), 0, 0))
    assert set(store.keys.values()) == {1}
