"""Frames of the rendering pipeline, compared with pictures composed by NumPy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.rendering.pipeline import Frame, ViewPipeline
from zarrfs_viewer.state.view_state import (
    DisplaySettings,
    Projection,
    Viewport,
    fit,
    with_channel,
    with_position,
    with_projection,
)
from zarrfs_viewer.streaming.streamer import TileError, TileStreamer

from tests.processes import TIMEOUT
from tests.viewer.core.doubles import FakeArray, FakeGroup, array_image, open_pyramid, pyramid, random_values


class Pane:
    """A pipeline that records its frames, errors and failures."""

    def __init__(self, streamer: TileStreamer) -> None:
        self.frames: list[Frame] = []
        self.errors: list[TileError] = []
        self.failures: list[BaseException] = []
        self._frame_arrived = threading.Condition()
        self.pipeline = ViewPipeline(
            streamer, on_frame=self._frame, on_error=self.errors.append, on_failure=self.failures.append
        )

    def _frame(self, frame: Frame) -> None:
        with self._frame_arrived:
            self.frames.append(frame)
            self._frame_arrived.notify_all()

    def wait(self, condition: Any) -> Frame:
        """Return the first frame that satisfies a condition. Fails after a timeout."""
        with self._frame_arrived:
            frame = self._frame_arrived.wait_for(
                lambda: next((f for f in self.frames if condition(f)), None), TIMEOUT
            )
        assert not self.failures, self.failures
        assert frame is not None, "no frame satisfied the condition"
        return frame

    def finished(
        self, image: Image, settings: DisplaySettings, viewport: Viewport, *overlays: Image
    ) -> Frame:
        """Replace the display request and return its last frame."""
        self.frames.clear()
        self.pipeline.show(image, settings, viewport, overlays)
        return self.wait(
            lambda f: f.finished and f.state.settings == settings and f.state.viewport == viewport
        )


@pytest.fixture
def pane(streamer: TileStreamer) -> Iterator[Pane]:
    pane = Pane(streamer)
    yield pane
    assert pane.pipeline.close()
    assert not pane.failures


def whole(image: Image, width: int, height: int) -> Viewport:
    """Return the viewport that shows the whole image."""
    rows, columns = (image.shape[axis] for axis in image.default_displayed)
    return fit(width, height, rows, columns)


def test_a_settled_frame_is_the_composed_slice(pane: Pane) -> None:
    data = random_values((2, 5, 96, 80))
    image = open_pyramid(pyramid(data, "czyx", levels=3, chunks=(1, 4, 32, 32)))
    settings = initial_settings(image)
    for number in range(2):
        settings = with_channel(settings, number, limits=(1000.0, 50000.0))
    frame = pane.finished(image, settings, whole(image, 80, 96))
    assert frame.complete
    assert frame.grid.shape == (96, 80)
    assert frame.grid.rect == (-0.5, -0.5, 95.5, 79.5)
    np.testing.assert_array_equal(frame.pixels, compose([data[0, 2], data[1, 2]], settings.channels))


def test_the_drawn_level_depends_on_the_zoom(pane: Pane) -> None:
    data = random_values((64, 64))
    image = open_pyramid(pyramid(data, "yx", levels=3, chunks=(16, 16)))
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 65535.0))
    out = pane.finished(image, settings, whole(image, 16, 16))
    assert out.state.level == 2
    np.testing.assert_array_equal(out.pixels, compose([data[::4, ::4]], settings.channels))
    close = pane.finished(image, settings, Viewport(64, 64, (31.5, 31.5), 8.0))
    assert close.state.level == 0
    top, left = close.grid.top, close.grid.left
    rows, columns = close.grid.shape
    np.testing.assert_array_equal(
        close.pixels, compose([data[top : top + rows, left : left + columns]], settings.channels)
    )


def test_a_large_image_without_a_pyramid_is_drawn_with_a_stride(pane: Pane) -> None:
    data = random_values((300, 400))
    image = array_image(data, (64, 64))
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 65535.0))
    frame = pane.finished(image, settings, whole(image, 100, 75))
    np.testing.assert_array_equal(frame.pixels, compose([data[::4, ::4].copy()], settings.channels))


def test_old_pixels_are_drawn_until_the_new_slice_is_read(pane: Pane) -> None:
    data = np.zeros((2, 32, 32), np.uint8)
    data[0], data[1] = 100, 200
    array = FakeArray(data, (1, 16, 16), names="zyx")
    image = array_image(data, (1, 16, 16), names="zyx")
    image = type(image)(
        **{**image.__dict__, "levels": (type(image.levels[0])("", array, (1.0,) * 3, (0.0,) * 3),)}
    )
    settings = with_channel(with_position(initial_settings(image), 0, 0), 0, limits=(0.0, 255.0))
    viewport = whole(image, 32, 32)
    first = pane.finished(image, settings, viewport)
    assert (first.pixels & 0xFF == 100).all()
    array.gate.clear()
    pane.frames.clear()
    pane.pipeline.show(image, with_position(settings, 0, 1), viewport)
    array.gate.set()
    last = pane.wait(lambda f: f.finished and f.state.settings.position[0] == 1)
    assert (last.pixels & 0xFF == 200).all()
    for frame in pane.frames:
        assert set(np.unique(frame.pixels & 0xFF)) <= {100, 200}, "a pixel was cleared between the slices"


def test_a_broken_chunk_is_hatched_and_reported(pane: Pane) -> None:
    data = np.full((64, 64), 200, np.uint8)
    image = array_image(data, (16, 16))
    array: Any = image.levels[0].array
    array.broken = {(1, 2)}
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 255.0))
    frame = pane.finished(image, settings, whole(image, 64, 64))
    assert frame.finished
    assert (frame.pixels[:16] & 0xFF == 200).all()
    assert set(np.unique(frame.pixels[16:32, 32:48])) == {0xFF200020, 0xFF600060}
    assert not frame.complete
    assert [error.failed for error in pane.errors] == [((16, 32, 32, 48),)]
    assert "chunk (1, 2) is broken" in pane.errors[0].message


def test_a_frame_settles_if_all_tiles_fail(pane: Pane) -> None:
    image = array_image(random_values((32, 32)), (32, 32))
    array: Any = image.levels[0].array
    array.broken = {(0, 0)}
    frame = pane.finished(image, initial_settings(image), whole(image, 32, 32))
    assert not frame.complete
    assert set(np.unique(frame.pixels)) == {0xFF200020, 0xFF600060}
    assert pane.errors


@pytest.mark.parametrize("mode", ["max", "mean"])
def test_a_slab_is_projected(pane: Pane, mode: Any) -> None:
    data = random_values((9, 40, 40))
    image = array_image(data, (4, 16, 16), names="zyx")
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 65535.0))
    settings = with_projection(with_position(settings, 0, 4), Projection(0, mode, 5))
    frame = pane.finished(image, settings, whole(image, 40, 40))
    slab = data[2:7].max(0) if mode == "max" else data[2:7].mean(0).astype(np.float32)
    np.testing.assert_array_equal(frame.pixels, compose([slab], settings.channels))


def test_labels_are_drawn_at_their_physical_position(pane: Pane) -> None:
    data = np.zeros((32, 32), np.uint8)
    small = np.zeros((16, 16), np.uint16)
    small[4:8, 4:8] = 7
    labels = pyramid(
        small,
        "yx",
        levels=1,
        scale=(2.0, 2.0),
        image_label={"colors": [{"label-value": 7, "rgba": [255, 0, 0, 255]}]},
    )
    image = open_pyramid(pyramid(data, "yx", levels=1, labels={"cells": labels}))
    overlay = open_pyramid(labels)
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 255.0))
    settings = DisplaySettings(**{**settings.__dict__, "labels": (type(settings.labels[0])(opacity=1.0),)})
    frame = pane.finished(image, settings, whole(image, 32, 32), overlay)
    red = frame.pixels == 0xFFFF0000
    # According to the scales, label pixel i has its centre on image pixel 2 i: it covers pixels 2 i - 1 and 2 i.
    expected = np.zeros((32, 32), bool)
    expected[7:15, 7:15] = True
    np.testing.assert_array_equal(red, expected)


def test_automatic_limits_are_reported_and_do_not_change_with_the_slice(pane: Pane) -> None:
    data = random_values((3, 64, 64)) // 60
    data[1, 5, 5] = 65535
    image = array_image(data, (1, 32, 32), names="zyx")
    settings = initial_settings(image)
    frame = pane.finished(image, settings, whole(image, 64, 64))
    limits = frame.channels[0].limits
    assert limits is not None
    assert 0 <= limits[0] < limits[1] < 1100
    moved = pane.finished(image, with_position(settings, 0, 2), whole(image, 64, 64))
    assert moved.channels[0].limits == limits


def test_automatic_limits_come_from_the_displayed_level(pane: Pane) -> None:
    group = pyramid(np.tile(np.arange(1000, 1064, dtype="u2"), (64, 1)), "yx", chunks=(32, 32))
    group["1"].data = np.tile(np.arange(32, dtype="u2"), (32, 1))
    group["0"].gate.clear()
    image = open_pyramid(group)
    pane.pipeline.show(image, initial_settings(image), whole(image, 64, 64))
    coarse = pane.wait(lambda frame: bool(frame.channels) and not frame.complete)
    assert coarse.channels[0].limits is not None
    assert coarse.channels[0].limits[1] < 100
    group["0"].gate.set()
    limits = pane.wait(lambda frame: frame.complete).channels[0].limits
    assert limits is not None
    assert limits[0] >= 1000
    assert limits[1] > 1050


def test_a_cleared_pipeline_draws_the_same_request_again(pane: Pane) -> None:
    image = array_image(random_values((16, 16)))
    pane.finished(image, initial_settings(image), whole(image, 16, 16))
    pane.pipeline.clear()
    frame = pane.finished(image, initial_settings(image), whole(image, 16, 16))
    assert frame.complete


def test_a_label_image_as_the_front_image_is_drawn_with_its_declared_colours(pane: Pane) -> None:
    data = np.arange(64, dtype=np.int32).reshape(8, 8)
    image = open_pyramid(
        pyramid(data, "yx", levels=1, image_label={"colors": [{"label-value": 9, "rgba": [1, 2, 3, 255]}]})
    )
    frame = pane.finished(image, initial_settings(image), whole(image, 8, 8))
    assert frame.pixels[1, 1] == 0xFF010203
    assert frame.pixels[0, 0] == 0
    assert len(np.unique(frame.pixels)) > 50


def test_an_image_whose_listed_labels_do_not_exist_is_drawn(pane: Pane) -> None:
    group = pyramid(random_values((20, 30)), "yx", levels=1)
    group["labels"] = FakeGroup({"labels": ["missing"]})
    image = open_pyramid(group)
    assert [entry.path for entry in image.labels] == ["labels/missing"]
    assert pane.finished(image, initial_settings(image), whole(image, 30, 20)).complete


def slices(array: FakeArray) -> Image:
    """Return the image of an array of unsigned bytes with the axes z, y, x."""
    image = array_image(array.data, array.chunks, names="zyx")
    (level,) = image.levels
    return replace(image, levels=(replace(level, array=array),))


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds. Fails after a timeout."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def planes_read(array: FakeArray) -> set[int]:
    return {selection[0] for selection in array.reads}


def test_tiles_are_prefetched_after_the_complete_frame(streamer: TileStreamer) -> None:
    array = FakeArray(np.zeros((8, 32, 32), np.uint8), (1, 16, 16))
    image = slices(array)
    before: list[tuple[int, set[int]]] = []
    finished = threading.Event()

    def on_frame(frame: Frame) -> None:
        memory = streamer.memory
        before.append((memory.queued + memory.running, planes_read(array)))
        if frame.finished:
            finished.set()

    pipeline = ViewPipeline(streamer, on_frame=on_frame)
    settings = with_channel(with_position(initial_settings(image), 0, 3), 0, limits=(0.0, 255.0))
    pipeline.show(image, settings, whole(image, 32, 32))
    assert finished.wait(TIMEOUT)
    assert before[-1] == (0, {3})
    wait_for(lambda: planes_read(array) == {2, 3, 4})
    assert pipeline.close()


def test_prefetching_is_not_postponed_while_requests_follow_each_other(
    streamer: TileStreamer, pane: Pane
) -> None:
    array = FakeArray(np.zeros((8, 32, 32), np.uint8), (1, 32, 32))
    image = slices(array)
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 255.0))
    viewport = whole(image, 32, 32)
    array.gate.clear()
    pane.pipeline.show(image, with_position(settings, 0, 1), viewport)
    assert array.started.acquire(timeout=TIMEOUT)
    assert streamer.memory.queued == 0
    pane.pipeline.show(image, with_position(settings, 0, 2), viewport)
    # The tile of slice 2 is being read, and those of 3 to 5 follow.
    wait_for(lambda: streamer.memory.queued >= 3)
    array.gate.set()
    wait_for(lambda: {3, 4, 5} <= planes_read(array))
