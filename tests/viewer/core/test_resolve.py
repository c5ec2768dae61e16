"""Resolution of settings, image and viewport to level, planes, tiles and frame grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.display.levels import choose_level, frame_grid, levels_in_use, pixel_aspect
from zarrfs_viewer.display.prefetch import next_positions
from zarrfs_viewer.display.resolve import DisplayState, plane_key, resolve
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.tile_grid import ALL, Rank, Slab, TileKey
from zarrfs_viewer.state.view_state import (
    LabelsSettings,
    Projection,
    Viewport,
    fit,
    with_channel,
    with_displayed,
    with_position,
    with_projection,
)

from tests.viewer.core.doubles import array_image, open_pyramid, pyramid, random_values


def deep(levels: int = 4) -> Image:
    """Return an image with axes z, y, x whose levels are halved along all axes."""
    return open_pyramid(pyramid(random_values((32, 256, 256)), "zyx", levels, (8, 32, 32), halve="zyx"))


def whole(image: Image, size: int) -> Viewport:
    return fit(size, size, 256, 256)


def show(
    image: Image, size: int = 256, previous: DisplayState | None = None, z: float = 16.0
) -> DisplayState:
    return resolve(with_position(initial_settings(image), 0, z), image, whole(image, size), previous=previous)


@pytest.mark.parametrize(
    ("size", "level"), [(256, 0), (1000, 0), (128, 1), (64, 2), (32, 3), (8, 3), (165, 1), (180, 0)]
)
def test_the_level_depends_on_the_zoom(size: int, level: int) -> None:
    assert show(deep(), size).level == level


def test_the_level_changes_with_hysteresis() -> None:
    image = deep()
    thresholds = [size for size in range(150, 230) if show(image, size).level != show(image, size + 1).level]
    assert len(thresholds) == 1
    state = show(image, thresholds[0] - 10)
    coarse = state.level
    for size in (thresholds[0] + 5, thresholds[0] - 5, thresholds[0] + 5):
        state = show(image, size, state)
        assert state.level == coarse
    assert show(image, 256, state).level == coarse - 1


@given(st.floats(0.01, 50), st.integers(0, 3))
def test_hysteresis_is_limited_to_its_factor(zoom: float, previous: int) -> None:
    image = SHARED_IMAGE
    viewport = Viewport(100, 100, (128, 128), zoom)
    level = choose_level(image, viewport, (1, 2), previous)
    neighbours = {
        choose_level(image, replace(viewport, zoom=zoom * factor), (1, 2)) for factor in (0.8, 1.0, 1.25)
    }
    assert min(neighbours) <= level <= max(neighbours)


SHARED_IMAGE = deep()


@pytest.mark.parametrize("shape", [(100_000, 1), (1, 100_000), (2, 5000)])
def test_a_plane_of_few_rows_or_columns_is_visible(shape: tuple[int, int]) -> None:
    image = array_image(np.broadcast_to(np.uint8(1), shape), (1, 1))
    aspect = pixel_aspect(image, (0, 1))
    viewport = fit(800, 600, *shape, aspect)
    height, width = shape[0] * viewport.zooms[0], shape[1] * viewport.zooms[1]
    assert min(height, width) >= 12
    assert height <= 600.001
    assert width <= 800.001


def test_a_fixed_level_does_not_depend_on_the_zoom() -> None:
    image = deep()
    settings = replace(initial_settings(image), level_lock=2)
    assert resolve(settings, image, whole(image, 2000)).level == 2
    assert resolve(replace(settings, level_lock=99), image, whole(image, 2000)).level == 3


def test_the_slice_of_a_level_is_computed_with_its_own_transform() -> None:
    state = show(deep(), 256, z=21.0)
    (layer,) = state.layers
    coarse, fine = layer.planes
    assert (coarse.level, coarse.indices[0]) == (3, 3)  # 21 / 8 = 2.6
    assert (fine.level, fine.indices[0]) == (0, 21)


def test_the_translation_of_a_level_moves_its_slices() -> None:
    group = pyramid(random_values((8, 16, 16)), "zyx", 2, halve="zyx", scale=(2.0, 1.0, 1.0))
    transformations = group.attrs["multiscales"][0]["datasets"][1]["coordinateTransformations"]
    transformations.append({"type": "translation", "translation": [1.0, 0.5, 0.5]})
    image = open_pyramid(group)
    # The planes of level 1 are at z = 1, 5, 9, 13, those of level 0 at 0, 2, 4, ...
    result = [image.level_index(1, 0, plane) for plane in range(8)]
    assert result == [0, 0, 1, 1, 2, 2, 3, 3]
    assert image.from_level(1, 0, 0) == 0.5
    assert image.to_physical(0, 3) == 6.0


def test_every_visible_tile_is_requested_once_by_level_and_then_by_distance() -> None:
    image = deep()
    state = show(image)
    keys = [request.key for request in state.tiles]
    assert len(keys) == len(set(keys))
    levels = [key.plane.level for key in keys]
    assert levels == sorted(levels, reverse=True)
    assert set(levels) == {0, 3}
    distances = [request.distance for request in state.tiles if request.key.plane.level == 0]
    assert distances == sorted(distances)
    zoomed = resolve(initial_settings(image), image, Viewport(32, 32, (16, 16), 4.0))
    assert len([r for r in zoomed.tiles if r.key.plane.level == 0]) == 1


def test_a_viewport_outside_of_the_image_requests_no_tiles() -> None:
    image = deep()
    state = resolve(initial_settings(image), image, Viewport(100, 100, (5000, 5000), 1.0))
    assert state.tiles == ()
    assert 0 in state.grid.shape


@given(
    st.floats(0.02, 20),
    st.floats(-50, 300),
    st.floats(-50, 300),
    st.integers(1, 500),
    st.integers(1, 500),
    st.integers(0, 3),
)
def test_a_frame_covers_the_visible_part_and_is_not_much_larger_than_the_viewport(
    zoom: float, row: float, column: float, width: int, height: int, level: int
) -> None:
    viewport = Viewport(width, height, (row, column), zoom)
    settings = initial_settings(SHARED_IMAGE)
    grid = frame_grid(SHARED_IMAGE, level, settings, viewport)
    if 0 in grid.shape:
        return
    top, left, bottom, right = viewport.rect
    first = SHARED_IMAGE.from_level(level, 1, -0.5)
    last = SHARED_IMAGE.from_level(level, 1, SHARED_IMAGE.levels[level].shape[1] - 0.5)
    assert grid.rect[0] <= max(top, first) + 1e-6
    assert grid.rect[2] >= min(bottom, last) - 1e-6
    assert grid.rect[1] <= max(left, first) + 1e-6
    assert grid.rect[3] >= min(right, last) - 1e-6
    # A frame pixel is at least 2/3 of a device pixel long.
    assert grid.shape[0] <= height * 1.5 + 3
    assert grid.shape[1] <= width * 1.5 + 3


def test_the_pixel_aspect_follows_the_scales_if_the_units_are_equal() -> None:
    image = open_pyramid(pyramid(random_values((8, 16, 16)), "zyx", 1, scale=(2.0, 0.5, 0.5)))
    assert pixel_aspect(image, (0, 2)) == 4.0
    assert pixel_aspect(image, (1, 2)) == 1.0
    timed = open_pyramid(pyramid(random_values((8, 16, 16)), "tyx", 1, scale=(300.0, 0.5, 0.5)))
    assert pixel_aspect(timed, (0, 2)) == 1.0


def test_any_plane_can_be_displayed() -> None:
    image = deep()
    settings = with_displayed(initial_settings(image), 0, 2)
    state = resolve(settings, image, fit(256, 32, 32, 256))
    assert state.layers[0].planes[-1].displayed == (0, 2)
    assert state.grid.shape == (32, 256)


def test_every_visible_channel_is_a_layer_and_rgb_is_one_layer() -> None:
    data = random_values((3, 16, 16))
    image = open_pyramid(pyramid(data, "cyx", 1))
    settings = with_channel(initial_settings(image), 1, visible=False)
    state = resolve(settings, image, fit(16, 16, 16, 16))
    assert [layer.planes[-1].indices[0] for layer in state.layers] == [0, 2]
    rgb = array_image(random_values((16, 20, 3), np.uint8))
    (layer,) = resolve(initial_settings(rgb), rgb, fit(20, 16, 16, 20)).layers
    assert layer.planes[0].indices == (0, 0, ALL)


def test_a_projection_becomes_a_slab_of_each_level() -> None:
    image = deep()
    settings = with_projection(with_position(initial_settings(image), 0, 16), Projection(0, "max", 9))
    (layer,) = resolve(settings, image, whole(image, 256)).layers
    assert layer.planes[-1].slab == Slab(0, 12, 21, "max")
    assert layer.planes[0].slab == Slab(0, 2, 4, "max")  # 12 / 8 to 20 / 8, rounded
    thin = resolve(with_projection(settings, Projection(0, "max", 1)), image, whole(image, 256))
    assert thin.layers[0].planes[-1].slab is None


def test_positions_are_clipped_to_the_image() -> None:
    image = deep()
    assert show(image, z=1e9).settings.position[0] == 31
    assert show(image, z=float("nan")).settings.position[0] == 0


def prefetched_slices(state: DisplayState) -> list[int]:
    """Return the slices of the prefetched tiles of the displayed level."""
    return [r.key.plane.indices[0] for r in state.prefetch if r.key.plane.level == state.level]


def test_slices_are_prefetched_in_the_direction_of_the_slider() -> None:
    image = deep()
    first = show(image, z=10.0)
    assert set(prefetched_slices(first)) == {9, 11}
    up = show(image, previous=first, z=11.0)
    # The next three slices, and the first slice of the next chunk (chunks are 8 deep).
    assert set(prefetched_slices(up)) == {12, 13, 14, 16}
    down = show(image, previous=up, z=10.0)
    assert set(prefetched_slices(down)) == {9, 8, 7}
    assert all(r.rank is Rank.PREFETCH for r in down.prefetch)
    order = prefetched_slices(up)
    assert order == sorted(order)


def test_the_coarsest_level_is_prefetched_first_of_the_whole_plane_and_of_the_next_slices() -> None:
    image = deep()
    settings = with_position(initial_settings(image), 0, 10.0)
    viewport = replace(whole(image, 256), zoom=8.0)  # a part of the plane
    state = resolve(settings, image, viewport)
    coarsest = len(image.levels) - 1
    assert state.level < coarsest
    levels = [r.key.plane.level for r in state.prefetch]
    assert levels == sorted(levels, reverse=True)
    here = plane_key(image, coarsest, settings)
    keys = {r.key for r in (*state.tiles, *state.prefetch)}
    rows, columns = image.grid(coarsest, settings.displayed).counts
    assert {TileKey(here, row, column) for row in range(rows) for column in range(columns)} <= keys
    next_slice = plane_key(image, coarsest, with_position(settings, 0, 11.0))
    assert any(key.plane == next_slice for key in keys)


def test_prefetched_slices_have_the_step_of_the_slider() -> None:
    image = deep()
    state = show(image, previous=show(image, z=2.0), z=7.0)
    assert set(prefetched_slices(state)) == {12, 17, 22}


@given(st.integers(0, 31), st.integers(-31, 31), st.integers(0, 3))
def test_prefetched_positions_are_within_the_image(z: int, step: int, level: int) -> None:
    settings = with_position(initial_settings(SHARED_IMAGE), 0, z)
    before = with_position(settings, 0, z - step) if 0 <= z - step <= 31 else None
    for position in next_positions(SHARED_IMAGE, level, settings, before):
        assert -0.5 <= position[0] <= 31.5
        assert position[1:] == settings.position[1:]


def test_the_level_and_slice_of_an_overlay_follow_from_its_own_pyramid() -> None:
    labels = pyramid(
        random_values((16, 128, 128), np.uint16), "zyx", 3, scale=(2.0, 2.0, 2.0), image_label={}
    )
    image = open_pyramid(pyramid(random_values((32, 256, 256)), "zyx", 1, labels={"a": labels}))
    overlay = open_pyramid(labels)
    state = resolve(with_position(initial_settings(image), 0, 20), image, whole(image, 256), [overlay])
    layer = state.layers[1]
    assert layer.image is overlay
    assert layer.planes[-1].level == 0
    assert layer.planes[-1].indices[0] == 10
    small = resolve(initial_settings(image), image, whole(image, 32), [overlay])
    assert small.layers[1].planes[-1].level == 2
    hidden = replace(initial_settings(image), labels=(LabelsSettings(visible=False),))
    assert len(resolve(hidden, image, whole(image, 32), [overlay]).layers) == 1


def test_equal_arguments_result_in_equal_states() -> None:
    image = deep()
    assert show(image) == show(image)


@pytest.mark.parametrize(
    ("ratio", "aspect"), [(2.0, 2.0), (999.0, 999.0), (1001.0, 1.0), (1e9, 1.0), (1e-9, 1.0)]
)
def test_pixels_with_an_extreme_aspect_are_drawn_square(ratio: float, aspect: float) -> None:
    image = open_pyramid(pyramid(random_values((8, 8)), "yx", 1, (8, 8), scale=(ratio, 1.0)))
    assert pixel_aspect(image, (0, 1)) == pytest.approx(aspect)


@pytest.mark.parametrize(("thickness", "slab"), [(1.0, None), (2.0, (3, 5)), (3.0, (2, 5))])
def test_a_slab_has_as_many_slices_as_its_thickness(thickness: float, slab: tuple[int, int] | None) -> None:
    image = open_pyramid(pyramid(random_values((8, 8, 8)), "zyx", 1, (1, 8, 8)))
    settings = with_position(initial_settings(image), 0, 3)
    result = plane_key(image, 0, with_projection(settings, Projection(0, "max", thickness))).slab
    assert (None if result is None else (result.start, result.stop)) == slab


def test_the_backdrop_is_omitted_if_it_is_the_target_level() -> None:
    image = open_pyramid(pyramid(random_values((64, 64)), "yx", 3, (16, 16)))
    assert [levels_in_use(image, level, (0, 1)) for level in range(3)] == [(2, 0), (2, 1), (2,)]


@pytest.mark.parametrize(("zoom", "stride"), [(1.0, 1), (0.65, 1), (0.59, 2), (0.4, 2), (0.3, 3)])
def test_a_level_without_coarser_ones_is_drawn_with_a_stride(zoom: float, stride: int) -> None:
    image = array_image(random_values((256, 256)))
    viewport = Viewport(100, 100, (128.0, 128.0), zoom)
    assert frame_grid(image, 0, initial_settings(image), viewport).stride == (stride, stride)
