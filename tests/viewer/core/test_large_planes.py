"""Planes that are too large to be read as a whole: they are sampled, so that their tiles fit in the cache."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.analysis.readout import readout
from zarrfs_viewer.display.resolve import MAX_TILES_NBYTES, resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_array
from zarrfs_viewer.images.tile_grid import MAX_TILE_LENGTH, MAX_TILE_NBYTES, TileGrid
from zarrfs_viewer.rendering.compose import compose
from zarrfs_viewer.rendering.renderer import complete_frame
from zarrfs_viewer.rendering.thumbnail import thumbnail
from zarrfs_viewer.state.view_state import LabelsSettings, Viewport, fit, with_channel
from zarrfs_viewer.streaming.streamer import TileStreamer

from tests.viewer.core.doubles import FakeArray, array_image, random_values
from tests.viewer.core.test_pipeline import Pane

LENGTH = 100_000
SMALL = random_values((333, 290))


def large(shape: tuple[int, ...] = (LENGTH, LENGTH), chunks: tuple[int, ...] = (256, 256)) -> Image:
    """Return an image of one level, of which every value is 7. It needs no memory."""
    return image_from_array(FakeArray(np.broadcast_to(np.array(7, "u1"), shape), chunks))


@given(
    zoom=st.floats(0.01, 2),
    row=st.floats(-30, 360),
    column=st.floats(-30, 320),
    size=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    chunks=st.tuples(st.integers(1, 300), st.integers(1, 300)),
)
def test_a_sampled_frame_has_the_values_of_its_grid(
    zoom: float, row: float, column: float, size: tuple[int, int], chunks: tuple[int, int]
) -> None:
    image = array_image(SMALL, chunks)
    settings = with_channel(initial_settings(image), 0, limits=(0, 65535))
    state = resolve(settings, image, Viewport(*size, (row, column), zoom), tile_budget=0)
    frame = complete_frame(state)
    grid = frame.grid
    assert frame.complete
    assert all(stride % step == 0 for stride, step in zip(grid.stride, grid.steps, strict=True))
    if 0 in grid.shape:
        assert not state.tiles
        return
    assert state.is_sampled == (max(grid.stride) > 1)
    rows, columns = (
        start + stride * np.arange(count)
        for start, stride, count in zip((grid.top, grid.left), grid.stride, grid.shape, strict=True)
    )
    np.testing.assert_array_equal(
        frame.pixels, compose([SMALL[np.ix_(rows, columns)]], [settings.channels[0]])
    )


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((LENGTH, LENGTH), (256, 256)),
        ((LENGTH, LENGTH), (LENGTH, 1)),
        ((LENGTH, LENGTH), (20_000, 20_000)),
        ((1, 340_000_000), (1, 1_000_000)),
        ((3_000_000, 3_000_000), (16, 16)),
    ],
)
@pytest.mark.parametrize("zoom", [0.0, 0.3, 1.0, 20.0])
def test_the_visible_tiles_are_limited(shape: tuple[int, int], chunks: tuple[int, int], zoom: float) -> None:
    image = large(shape, chunks)
    viewport = fit(1600, 1000, *shape)
    if zoom:
        viewport = Viewport(1600, 1000, (shape[0] / 2, shape[1] / 2), zoom)
    state = resolve(initial_settings(image), image, viewport)
    rects = [image.rect(request.key) for request in state.tiles]
    pixels = sum((rows.stop - rows.start) * (columns.stop - columns.start) for rows, columns in rects)
    assert pixels * image.pixel_nbytes <= max(MAX_TILES_NBYTES, 4 * MAX_TILE_NBYTES)
    assert len(state.tiles) < 4096
    assert not state.is_sampled or not state.prefetch


def test_labels_over_an_image_are_sampled() -> None:
    image, labels = large((4000, 4000)), large()
    settings = initial_settings(image, 1)
    assert settings.labels == (LabelsSettings(),)
    state = resolve(settings, image, fit(500, 500, 4000, 4000), [labels], tile_budget=1 << 20)
    assert [layer.planes[-1].steps for layer in state.layers] == [(8, 8), (8, 8)]


def test_a_large_plane_is_displayed_within_the_budget_of_the_cache() -> None:
    streamer = TileStreamer(budget=16 << 20)
    pane = Pane(streamer)
    image = large((20_000, 20_000))
    try:
        frame = pane.finished(image, initial_settings(image), fit(300, 300, 20_000, 20_000))
        assert frame.complete
        assert frame.state.is_sampled
        assert streamer.memory.nbytes <= 1 << 20
        shown = readout(frame.state, streamer, 10_007, 70)
        assert shown is not None
        assert shown.values == (("", 7),)
        assert shown.pixel == (10_007 // 64 * 64, 64)  # the pixel whose value was read
    finally:
        assert pane.pipeline.close()
        assert streamer.close()


def test_a_thumbnail_of_a_large_plane_reads_only_what_it_draws() -> None:
    assert 64 <= max(thumbnail(large(), 64).shape) < 128


def test_chunks_of_any_size_are_divided_into_tiles_of_limited_size() -> None:
    for chunk in ((1 << 20, 1 << 20), (1, 1 << 30), (4096, 4097)):
        grid = TileGrid.for_plane((1 << 30, 1 << 30), chunk, itemsize=8)
        assert max(grid.tile) <= MAX_TILE_LENGTH
        assert grid.tile[0] * grid.tile[1] * 8 <= MAX_TILE_NBYTES
