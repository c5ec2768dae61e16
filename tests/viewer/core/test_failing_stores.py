"""Frames and errors of images in stores that are slow, corrupt or unavailable."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.analysis.chunk_overlay import unreadable_chunks
from zarrfs_viewer.analysis.measure import Roi, line_profile, roi_means, roi_statistics, statistics_csv
from zarrfs_viewer.analysis.readout import Unreadable, readout
from zarrfs_viewer.analysis.regions import Region, measure_region
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.display.resolve import plane_key, resolve
from zarrfs_viewer.images.dataset import describe, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileKey
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.rendering.contrast import channel_histogram
from zarrfs_viewer.rendering.renderer import FrameRenderer
from zarrfs_viewer.state.view_state import DisplaySettings, with_channel
from zarrfs_viewer.streaming.streamer import TileError, TileStreamer
from zarrfs_viewer.streaming.tile_reading import read_intact, read_tile

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.core.doubles import open_pyramid, pyramid, random_values
from tests.viewer.core.test_pipeline import Pane, whole
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ServerError, StoreError
from zarrfs.testing import FailingStore, LatencyStore

DATA = random_values((128, 128), "uint8")


@pytest.fixture
def pane(streamer: TileStreamer) -> Iterator[Pane]:
    pane = Pane(streamer)
    yield pane
    assert pane.pipeline.close()


def with_data(store: Store) -> Store:
    zarrfs.create_array(store, data=DATA, chunks=(32, 32))
    return store


def image_and_settings(store: Store) -> tuple[Image, DisplaySettings]:
    image = describe(zarrfs.open(store, cache_size=0)).open_image()
    return image, with_channel(initial_settings(image), 0, limits=(0.0, 255.0))


def test_a_blocked_chunk_does_not_block_the_pipeline(pane: Pane) -> None:
    gate = threading.Event()
    reached = threading.Semaphore(0)

    def wait(operation: str, key: str) -> None:
        if key == "c/3/3" and operation != "stamp":
            reached.release()
            gate.wait(TIMEOUT)

    image, settings = image_and_settings(LatencyStore(with_data(MemoryStore()), wait))
    pane.pipeline.show(image, settings, whole(image, 128, 128))
    assert reached.acquire(timeout=TIMEOUT)
    assert pane.pipeline.state is not None
    pane.pipeline.show(image, with_channel(settings, 0, gamma=2.0), whole(image, 128, 128))  # does not block
    gate.set()
    frame = pane.wait(lambda f: f.complete and f.channels[0].gamma == 2.0)
    np.testing.assert_array_equal(frame.pixels, compose([DATA], frame.channels))


def test_a_corrupt_chunk_is_reported_and_the_others_are_drawn(tmp_path: Path, pane: Pane) -> None:
    with_data(LocalStore(str(tmp_path / "a.zarr")))
    (tmp_path / "a.zarr" / "c" / "1" / "2").write_bytes(b"nonsense")
    image, settings = image_and_settings(LocalStore(str(tmp_path / "a.zarr")))
    frame = pane.finished(image, settings, whole(image, 128, 128))
    assert frame.finished
    assert not frame.complete
    assert frame.errors == tuple(pane.errors)
    (error,) = pane.errors
    assert error.failed == ((32, 64, 64, 96),)
    assert "(1, 2)" in error.message
    corrupt = np.zeros(DATA.shape, np.bool_)
    corrupt[32:64, 64:96] = True
    expected = compose([DATA], frame.channels)
    np.testing.assert_array_equal(frame.pixels[~corrupt], expected[~corrupt])
    np.testing.assert_array_equal(
        np.unique(frame.pixels[corrupt]), [0xFF200020, 0xFF600060]
    )  # hatched like NaN, and nowhere black


def test_a_corrupt_chunk_is_read_out_as_unreadable_and_not_as_zero(
    tmp_path: Path, pane: Pane, streamer: TileStreamer
) -> None:
    with_data(LocalStore(str(tmp_path / "a.zarr")))
    (tmp_path / "a.zarr" / "c" / "1" / "2").write_bytes(b"nonsense")
    image, settings = image_and_settings(LocalStore(str(tmp_path / "a.zarr")))
    state = pane.finished(image, settings, whole(image, 128, 128)).state
    intact, corrupt = readout(state, streamer, 31, 64), readout(state, streamer, 32, 64)
    assert intact is not None
    assert corrupt is not None
    assert intact.values == (("", int(DATA[31, 64])),)
    ((_, value),) = corrupt.values
    assert isinstance(value, Unreadable)
    assert "(1, 2)" in value.reason
    assert value.reason.endswith(value.summary)
    assert value.summary.startswith("chunk (1, 2)")
    assert f"unreadable: {value.summary}" in corrupt.text()


def test_measurements_state_the_pixels_of_corrupt_chunks(tmp_path: Path) -> None:
    store = with_data(MemoryStore())
    store.set("c/1/2", b"broken")
    image, settings = image_and_settings(store)
    rect = (20.0, 50.0, 109.0, 100.0)
    inside = DATA[20:110, 50:101].astype(float)
    inside[32 - 20 : 64 - 20, 64 - 50 : 96 - 50] = np.nan
    (found,) = roi_statistics(image, settings, Roi("rectangle", rect))
    assert (found.unreadable, found.nans, found.count) == (1024, 0, inside.size - 1024)
    assert found.area == inside.size
    assert found.mean == pytest.approx(np.nanmean(inside))
    assert (found.minimum, found.maximum) == (np.nanmin(inside), np.nanmax(inside))
    assert "unreadable" in statistics_csv([found])
    means, unreadable = roi_means(image, settings, Roi("rectangle", rect))
    assert means == [pytest.approx(np.nanmean(inside))]
    assert unreadable == (1024,)
    profile = line_profile(image, settings, (40.0, 0.0), (40.0, 127.0))
    expected = DATA[40].astype(float)
    expected[64:96] = np.nan
    np.testing.assert_allclose(profile.values[0], expected)
    assert profile.unreadable == (32,)
    (region,) = measure_region(image, settings, Region("a", Shape("line", ((40.0, 0.0), (40.0, 127.0)))))
    assert (region.count, region.nans, region.unreadable) == (96, 0, 32)
    (ellipse,) = roi_statistics(image, settings, Roi("ellipse", (32.0, 64.0, 63.0, 95.0)))
    assert (ellipse.count, ellipse.unreadable > 700, np.isnan(ellipse.mean)) == (0, True, True)


def failing_chunks(error: Exception, *keys: str) -> FailingStore:
    """A store that raises an error for chunks, and has the other ones of DATA."""

    def failure(operation: str, key: str) -> Exception | None:
        return error if key in keys and operation != "stamp" else None

    return FailingStore(with_data(MemoryStore()), failure)


def test_a_chunk_that_the_store_cannot_read_is_reported_and_the_others_are_drawn(pane: Pane) -> None:
    image, settings = image_and_settings(failing_chunks(StoreError("bad sector"), "c/1/2"))
    frame = pane.finished(image, settings, whole(image, 128, 128))
    (error,) = pane.errors
    assert error.failed == ((32, 64, 64, 96),)
    assert "bad sector" in error.message
    intact = np.ones(DATA.shape, np.bool_)
    intact[32:64, 64:96] = False
    np.testing.assert_array_equal(frame.pixels[intact], compose([DATA], frame.channels)[intact])
    (found,) = roi_statistics(image, settings, Roi("rectangle", (0.0, 0.0, 127.0, 127.0)))
    assert (found.unreadable, found.count) == (1024, DATA.size - 1024)
    histogram = channel_histogram(image, settings.channels[0], settings)
    assert (histogram.unreadable, int(histogram.counts.sum())) == (1024, DATA.size - 1024)


def test_the_chunks_of_a_tile_are_not_tried_one_after_the_other_in_a_store_that_fails() -> None:
    tried: list[str] = []

    def failure(operation: str, key: str) -> Exception | None:
        if key.startswith("c/") and operation != "stamp":
            tried.append(key)
            return StoreError("the disk is damaged")
        return None

    image, settings = image_and_settings(FailingStore(with_data(MemoryStore()), failure))
    tile, found = read_tile(image, TileKey(plane_key(image, 0, settings), 0, 0))
    assert tile is None
    assert found is not None
    assert found.failed == ((0, 0, 128, 128),)
    assert len(set(tried)) < 16, "all 16 chunks were tried"


def test_the_error_of_a_server_is_that_of_the_whole_tile() -> None:
    image, settings = image_and_settings(failing_chunks(ServerError("no connection"), "c/1/2"))
    tile, found = read_tile(image, TileKey(plane_key(image, 0, settings), 0, 0))
    assert tile is None
    assert found is not None
    assert found.failed == ((0, 0, 128, 128),)
    with pytest.raises(ServerError):
        list(roi_statistics(image, settings, Roi("rectangle", (0.0, 0.0, 127.0, 127.0))))


def test_a_tile_of_which_a_part_is_unreadable_is_read_again_after_it_was_evicted(pane: Pane) -> None:
    image, settings = image_and_settings(failing_chunks(StoreError("bad sector"), "c/1/2"))
    streamer = pane.pipeline._streamer
    expected = pane.finished(image, settings, whole(image, 128, 128))
    assert pane.errors[0].is_partial
    with streamer._lock:
        streamer._cache.clear()
    pane.frames.clear()
    changed = with_channel(settings, 0, limits=(0.0, 254.0))
    frame = pane.finished(image, changed, whole(image, 128, 128))
    intact = np.ones(DATA.shape, np.bool_)
    intact[32:64, 64:96] = False
    np.testing.assert_array_equal(frame.pixels[intact], compose([DATA], frame.channels)[intact])
    np.testing.assert_array_equal(frame.pixels[~intact], expected.pixels[~intact])


def test_the_zeros_of_an_unreadable_chunk_are_not_drawn_while_another_picture_loads() -> None:
    """A tile has zeros in the place of an unreadable chunk. They must not remain as old pixels."""
    image, settings = image_and_settings(failing_chunks(StoreError("bad sector"), "c/1/2"))
    settings = with_channel(settings, 0, invert=True)
    state = resolve(settings, image, whole(image, 128, 128), (), None)
    (request,) = state.tiles
    tile, found = read_tile(image, request.key)
    assert tile is not None
    assert found is not None
    errors = (TileError(request.key, found.message, found.failed, found.error, True),)
    renderer = FrameRenderer()
    assert renderer.render(state, {request.key: tile}.get, True, lambda: errors) is not None
    frame = renderer.render(state, lambda key: None)  # for instance after a retry
    assert frame is not None
    assert (frame.pixels[32:64, 64:96] == 0).all()
    assert (frame.pixels[:32] != 0).all()


def test_an_unreadable_chunk_of_a_coarser_level_is_neither_drawn_nor_read_out_while_the_finer_level_loads(
    streamer: TileStreamer,
) -> None:
    image = open_pyramid(pyramid(DATA, "yx", chunks=(32, 32)))
    coarse_array: Any = image.levels[1].array
    coarse_array.broken.add((0, 1))
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 255.0), invert=True)
    state = resolve(settings, image, whole(image, 128, 128), (), None)
    coarse = [request for request in state.tiles if request.key.plane.level == 1]
    finished = threading.Event()
    stream = streamer.open(on_finished=lambda generation: finished.set())
    stream.show([image], coarse)
    assert finished.wait(TIMEOUT)
    errors = streamer.failures([request.key for request in coarse])
    frame = FrameRenderer().render(state, streamer.get, False, lambda: errors)
    assert frame is not None
    assert (frame.pixels[:62, 66:] == 0).all()
    assert (frame.pixels[66:] != 0).all()
    found = readout(state, streamer, 10, 100)
    assert found is not None
    assert [value for _, value in found.values] == [None]
    stream.close()


def test_unreadable_chunks_are_marked_in_the_chunk_grid(pane: Pane) -> None:
    image, settings = image_and_settings(failing_chunks(StoreError("bad sector"), "c/1/2"))
    frame = pane.finished(image, settings, whole(image, 128, 128))
    assert unreadable_chunks(frame.state, frame.errors) == ((31.5, 63.5, 63.5, 95.5),)
    assert unreadable_chunks(frame.state, ()) == ()


def test_a_frame_is_not_exact_if_a_tile_fails_during_drawing() -> None:
    image, settings = image_and_settings(with_data(MemoryStore()))
    state = resolve(settings, image, whole(image, 128, 128), (), None)
    errors: list[TileError] = []

    def fetch_with_error(key: TileKey) -> np.ndarray[Any, Any]:
        errors.append(TileError(key, "broken", ((0, 0, 1, 1),), ValueError()))
        tile, _ = read_tile(image, key)
        assert tile is not None
        return tile

    frame = FrameRenderer().render(state, fetch_with_error, False, lambda: tuple(errors))
    assert frame is not None
    assert frame.errors == tuple(errors) != ()
    assert not frame.complete
    assert not frame.finished


def test_a_missing_chunk_is_drawn_as_the_fill_value_without_an_error(tmp_path: Path, pane: Pane) -> None:
    with_data(LocalStore(str(tmp_path / "a.zarr")))
    (tmp_path / "a.zarr" / "c" / "1" / "2").unlink()
    image, settings = image_and_settings(LocalStore(str(tmp_path / "a.zarr")))
    frame = pane.finished(image, settings, whole(image, 128, 128))
    assert frame.complete
    assert not pane.errors
    assert (frame.pixels[32:64, 64:96] == 0xFF000000).all()


def test_the_error_of_an_unavailable_store_is_reported_and_a_retry_reads_again(
    pane: Pane, streamer: TileStreamer
) -> None:
    unavailable = threading.Event()

    def failure(operation: str, key: str) -> Exception | None:
        is_failing = unavailable.is_set() and key.startswith("c/")
        return StoreError("the network is unreachable") if is_failing else None

    image, settings = image_and_settings(FailingStore(with_data(MemoryStore()), failure))
    unavailable.set()
    frame = pane.finished(image, settings, whole(image, 128, 128))
    assert not frame.complete
    assert "the network is unreachable" in pane.errors[0].message
    assert pane.errors[0].failed == ((0, 0, 128, 128),)
    unavailable.clear()
    pane.frames.clear()
    streamer.retry()
    frame = pane.wait(lambda f: f.complete)
    np.testing.assert_array_equal(frame.pixels, compose([DATA], frame.channels))


def test_a_tile_with_a_repaired_chunk_is_drawn_completely_after_a_retry(
    tmp_path: Path, pane: Pane, streamer: TileStreamer
) -> None:
    with_data(LocalStore(str(tmp_path / "a.zarr")))
    chunk = tmp_path / "a.zarr" / "c" / "1" / "2"
    valid_bytes = chunk.read_bytes()
    chunk.write_bytes(valid_bytes[:5])
    image, settings = image_and_settings(LocalStore(str(tmp_path / "a.zarr")))
    assert not pane.finished(image, settings, whole(image, 128, 128)).complete
    chunk.write_bytes(valid_bytes)
    pane.frames.clear()
    streamer.retry()
    frame = pane.wait(lambda f: f.complete)
    np.testing.assert_array_equal(frame.pixels, compose([DATA], frame.channels))


def test_a_frame_has_the_errors_of_its_tiles_if_a_retry_starts_during_drawing() -> None:
    image, settings = image_and_settings(with_data(MemoryStore()))
    state = resolve(settings, image, whole(image, 128, 128), (), None)
    errors: list[TileError] = []

    def fetch_and_retry(key: TileKey) -> np.ndarray[Any, Any]:
        tile, _ = read_tile(image, key)
        assert tile is not None
        errors.clear()
        return tile

    renderer = FrameRenderer()
    errors += [TileError(request.key, "broken", ((0, 0, 1, 1),), ValueError()) for request in state.tiles]
    frame = renderer.render(state, fetch_and_retry, False, lambda: tuple(errors))
    assert frame is not None
    assert not frame.complete
    fetched: list[TileKey] = []

    def fetch(key: TileKey) -> np.ndarray[Any, Any]:
        fetched.append(key)
        return fetch_and_retry(key)

    frame = renderer.render(state, fetch, False, lambda: ())
    assert frame is not None
    assert frame.complete
    assert fetched


def test_only_the_values_of_corrupt_chunks_are_omitted_from_a_region() -> None:
    image, settings = image_and_settings(with_data(MemoryStore()))
    plane = plane_key(image, 0, settings)
    rows, columns = slice(20, 110), slice(50, 101)  # begins and ends inside of chunks
    expected = DATA[rows, columns].astype(float)
    (part,), unreadable = read_intact(image, plane, rows, columns)
    assert unreadable == 0
    np.testing.assert_array_equal(part, expected)
    store = with_data(MemoryStore())
    store.set("c/1/2", b"broken")
    broken_image, _ = image_and_settings(store)
    parts, unreadable = read_intact(broken_image, plane_key(broken_image, 0, settings), rows, columns)
    assert unreadable == 32 * 32
    expected[32 - 20 : 64 - 20, 64 - 50 : 96 - 50] = np.nan
    values = np.sort(np.concatenate([part.reshape(-1) for part in parts]))
    np.testing.assert_array_equal(values, np.sort(expected[~np.isnan(expected)]))
