"""Frames while tiles are missing: what is drawn in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from zarrfs_viewer.display.resolve import DisplayState, resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import TileKey
from zarrfs_viewer.rendering.renderer import FrameRenderer
from zarrfs_viewer.state.view_state import Viewport, with_channel, with_position

from tests.viewer.core.doubles import open_pyramid, pyramid

Fetch = Callable[[TileKey], npt.NDArray[Any] | None]


def volume() -> Image:
    """A volume whose planes have the values 10, 20 ... 80 in all of four levels."""
    data = np.repeat(np.arange(10, 90, 10, dtype="u1"), 256 * 256).reshape(8, 256, 256)
    return open_pyramid(pyramid(data, "zyx", 4, (1, 32, 32)))


def state_at(image: Image, z: int, viewport: Viewport) -> DisplayState:
    settings = with_channel(initial_settings(image), 0, limits=(0.0, 255.0))
    return resolve(with_position(settings, 0, z), image, viewport)


def resident(image: Image, *levels: int) -> Fetch:
    """A function that returns the tiles of some levels, as if only they were in the cache."""
    return lambda key: image.read_tile(key) if key.plane.level in levels else None


def greys(pixels: npt.NDArray[np.uint32]) -> set[int]:
    """The grey values of a frame; -1 for pixels without values."""
    return {int(value) & 0xFF if value else -1 for value in np.unique(pixels)}


PART = Viewport(64, 64, (60.0, 60.0), 2.0)
"""A part of the plane that needs level 0."""


def test_tiles_of_any_coarser_level_in_the_cache_are_drawn_while_the_displayed_level_is_loaded() -> None:
    image = volume()
    renderer = FrameRenderer()
    for center in ((60.0, 60.0), (180.0, 200.0)):
        state = state_at(image, 2, replace(PART, center=center))
        assert (state.level, [plane.level for plane in state.layers[0].planes]) == (0, [3, 0])
        frame = renderer.render(state, resident(image, 2))
        assert frame is not None
        assert greys(frame.pixels) == {30}
        assert not frame.complete


def test_the_former_slice_is_drawn_and_marked_until_a_level_of_the_next_one_arrives() -> None:
    image, renderer = volume(), FrameRenderer()
    first = renderer.render(state_at(image, 2, PART), resident(image, 0), True)
    assert first is not None
    assert (greys(first.pixels), first.is_replaced) == ({30}, False)
    late = renderer.render(state_at(image, 3, PART), resident(image))
    assert late is not None
    assert (greys(late.pixels), late.is_replaced, late.complete) == ({30}, True, False)
    for levels in ((3,), (3, 0)):
        frame = renderer.render(state_at(image, 3, PART), resident(image, *levels))
        assert frame is not None
        assert (greys(frame.pixels), frame.is_replaced) == ({40}, False)


def test_complete_pixels_of_the_same_slice_are_not_covered_by_coarser_ones() -> None:
    data = np.arange(256 * 256, dtype="u4").reshape(256, 256)
    image, renderer = open_pyramid(pyramid(data, "yx", 4, (32, 32))), FrameRenderer()
    settings = with_channel(initial_settings(image), 0, limits=(0.0, float(data.max())))
    state = resolve(settings, image, PART)
    sharp = renderer.render(state, resident(image, 0), True)
    moved = resolve(settings, image, replace(PART, center=(60.0, 65.0)))
    frame = renderer.render(moved, resident(image, 3))
    assert sharp is not None
    assert frame is not None
    shift = moved.grid.left - state.grid.left
    np.testing.assert_array_equal(frame.pixels[:, :-shift], sharp.pixels[:, shift:])
    assert (frame.pixels != 0).all()
