"""The chunk grid of the displayed plane, and its missing chunks."""

from __future__ import annotations

import numpy as np
from zarrfs_viewer.analysis.chunk_overlay import chunk_grid, missing_chunks
from zarrfs_viewer.images.dataset import describe, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.state.view_state import Viewport, fit, with_position

import zarrfs
from tests.viewer.core.doubles import array_image, open_pyramid, pyramid, random_values


def partly_stored(**options: object) -> Image:
    """Return an image of which two chunks of plane 2 are stored."""
    store: dict[str, bytes] = {}
    array = zarrfs.create_array(
        store, shape=(4, 50, 60), dtype="u2", chunks=(1, 16, 16), dimension_names=["z", "y", "x"], **options
    )
    array[2, 0:16, 16:32] = 1
    array[2, 48:50, 48:60] = 1
    return describe(zarrfs.open(store)).open_image()


def test_grid_lines_are_at_the_visible_chunk_borders() -> None:
    image = array_image(random_values((50, 60)), (16, 16))
    grid = chunk_grid(image, initial_settings(image), fit(600, 500, 50, 60), 0)
    assert grid.chunk_rows == (-0.5, 15.5, 31.5, 47.5, 49.5)
    assert grid.chunk_columns == (-0.5, 15.5, 31.5, 47.5, 59.5)
    assert grid.shard_rows == ()
    assert grid.rect == (-0.5, -0.5, 49.5, 59.5)
    part = chunk_grid(image, initial_settings(image), Viewport(100, 100, (16, 16), 10), 0)
    assert part.chunk_rows == (15.5,)


def test_grid_lines_of_coarser_levels_are_in_data_coordinates() -> None:
    image = open_pyramid(pyramid(random_values((64, 64)), "yx", 2, (16, 16)))
    grid = chunk_grid(image, initial_settings(image), fit(640, 640, 64, 64), 1)
    # Coarse pixel i has its centre at fine pixel 2 i, so its border is at 2 i - 1.
    assert grid.chunk_rows == (31.0, 63.0)
    assert grid.rect == (-1.0, -1.0, 63.0, 63.0)
    assert chunk_grid(image, initial_settings(image), Viewport(900, 900, (30, 30), 9), 1).chunk_rows == (
        -1.0,
        31.0,
        63.0,
    )


def test_grid_lines_that_are_too_close_are_omitted() -> None:
    image = array_image(random_values((500, 500)), (4, 4))
    grid = chunk_grid(image, initial_settings(image), fit(500, 500, 500, 500), 0)
    assert grid.dense
    assert grid.chunk_rows == ()


def test_a_sharded_array_has_lines_for_chunks_and_shards() -> None:
    image = partly_stored(shards=(1, 32, 32))
    grid = chunk_grid(image, initial_settings(image), fit(600, 600, 50, 60), 0)
    assert grid.chunk_rows == (-0.5, 15.5, 31.5, 47.5, 49.5)
    assert grid.shard_rows == (-0.5, 31.5, 49.5)


def test_missing_chunks_are_the_visible_chunks_that_are_not_stored() -> None:
    image = partly_stored()
    settings = with_position(initial_settings(image), 0, 2)
    result = missing_chunks(image, settings, fit(600, 600, 50, 60), 0)
    assert len(result) == 16 - 2
    assert (-0.5, 15.5, 15.5, 31.5) not in result
    assert (47.5, 47.5, 49.5, 59.5) not in result
    assert (-0.5, -0.5, 15.5, 15.5) in result
    assert len(missing_chunks(image, with_position(settings, 0, 1), fit(600, 600, 50, 60), 0)) == 16


def test_missing_chunks_of_a_sharded_array_are_whole_shards() -> None:
    image = partly_stored(shards=(1, 32, 32))
    result = missing_chunks(image, with_position(initial_settings(image), 0, 2), fit(600, 600, 50, 60), 0)
    assert set(result) == {(-0.5, 31.5, 31.5, 59.5), (31.5, -0.5, 49.5, 31.5)}


def test_missing_chunks_are_limited_to_the_viewport_and_to_a_number() -> None:
    image = partly_stored()
    settings = initial_settings(image)
    assert len(missing_chunks(image, settings, Viewport(10, 10, (8, 8), 10), 0)) == 1
    assert missing_chunks(image, settings, fit(600, 600, 50, 60), 0, limit=3) == ()
    assert missing_chunks(image, settings, Viewport(10, 10, (900, 900), 1), 0) == ()


def test_an_array_without_a_store_has_no_missing_chunks() -> None:
    image = array_image(np.zeros((50, 60)), (16, 16))
    assert missing_chunks(image, initial_settings(image), fit(60, 50, 50, 60), 0) == ()
