"""Sampling of tiles on a frame's grid, compared with indexing of the whole plane."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.display.levels import FrameGrid, frame_grid
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.rendering.sampling import LayerBuffer, resample, sample_plane
from zarrfs_viewer.state.view_state import Viewport

from tests.viewer.core.doubles import open_pyramid, pyramid, random_values

IMAGE = open_pyramid(pyramid(random_values((90, 70)), "yx", 3, (32, 32)))
INTENT = initial_settings(IMAGE)


@given(
    zoom=st.floats(0.05, 8),
    row=st.floats(-30, 120),
    column=st.floats(-30, 100),
    size=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    grid_level=st.integers(0, 2),
    plane_level=st.integers(0, 2),
)
def test_a_frame_pixel_is_the_nearest_pixel_of_the_level(
    zoom: float, row: float, column: float, size: tuple[int, int], grid_level: int, plane_level: int
) -> None:
    grid = frame_grid(IMAGE, grid_level, INTENT, Viewport(*size, (row, column), zoom))
    plane = plane_key(IMAGE, plane_level, INTENT)
    paint = sample_plane(IMAGE, IMAGE, plane, (0, 1), grid, IMAGE.read_tile)
    buffer, complete = paint(None)
    assert complete
    if 0 in grid.shape:
        assert buffer is None
        return
    assert buffer is not None
    assert buffer.covered is None
    rows, columns = IMAGE.grid(plane_level, plane.displayed).shape
    expected = IMAGE.read_region(plane, slice(0, rows), slice(0, columns))
    for side, start in ((0, grid.top), (1, grid.left)):
        pixels = start + grid.stride[side] * np.arange(grid.shape[side])
        indices = [
            IMAGE.level_index(plane_level, side, IMAGE.from_level(grid_level, side, i)) for i in pixels
        ]
        expected = np.take(expected, indices, axis=side)
    np.testing.assert_array_equal(buffer.values, expected)


def test_missing_tiles_do_not_change_the_buffer() -> None:
    grid = frame_grid(IMAGE, 0, INTENT, Viewport(70, 90, (44.5, 34.5), 1.0))
    old = LayerBuffer(np.full(grid.shape, 7, np.uint16), None, grid)
    paint = sample_plane(IMAGE, IMAGE, plane_key(IMAGE, 0, INTENT), (0, 1), grid, lambda key: None)
    buffer, complete = paint(old)
    assert not complete
    assert buffer is old
    assert paint(None) == (None, False)


def test_covered_is_the_mask_of_the_painted_pixels() -> None:
    image = open_pyramid(pyramid(random_values((600, 600)), "yx", 1, (256, 256)))
    settings = initial_settings(image)
    grid = frame_grid(image, 0, settings, Viewport(600, 600, (299.5, 299.5), 1.0))
    plane = plane_key(image, 0, settings)
    paint = sample_plane(
        image, image, plane, (0, 1), grid, lambda key: image.read_tile(key) if key.row == key.column else None
    )
    buffer, complete = paint(None)
    assert not complete
    assert buffer is not None
    assert buffer.covered is not None
    assert buffer.covered.sum() == 256 * 256 * 2 + 88 * 88


def grid_at(top: float, left: float, rows: int, columns: int, pixel: float) -> FrameGrid:
    return FrameGrid(
        0, 0, 0, (rows, columns), (1, 1), (top, left, top + rows * pixel, left + columns * pixel)
    )


def test_old_pixels_are_resampled_for_a_moved_or_zoomed_viewport() -> None:
    values = np.arange(20).reshape(4, 5)
    old = LayerBuffer(values, None, grid_at(0, 0, 4, 5, 1.0))
    same = resample(old, old.grid)
    np.testing.assert_array_equal(same.values, values)
    assert same.values is not values
    moved = resample(old, grid_at(1, 2, 4, 5, 1.0))
    np.testing.assert_array_equal(moved.values[:3, :3], values[1:, 2:])
    assert moved.covered is not None
    assert moved.covered.sum() == 9
    larger = resample(old, grid_at(0, 0, 8, 10, 0.5))
    np.testing.assert_array_equal(larger.values, values.repeat(2, 0).repeat(2, 1))
    assert larger.covered is None
    outside = resample(old, grid_at(100, 100, 2, 2, 1.0))
    assert outside.covered is not None
    assert not outside.covered.any()
