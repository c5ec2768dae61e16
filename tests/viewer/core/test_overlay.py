"""Registration of overlays by axis names and physical positions."""

from __future__ import annotations

import pytest
from zarrfs_viewer.display.overlay import level_map, match_axes, translate_settings
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.state.view_state import Projection, with_displayed, with_position, with_projection

from tests.viewer.core.doubles import array_image, open_pyramid, pyramid, random_values


def test_axes_are_matched_by_name_otherwise_from_the_last_axis() -> None:
    image = open_pyramid(pyramid(random_values((2, 3, 8, 8)), "czyx", 1))
    labels = open_pyramid(pyramid(random_values((3, 8, 8)), "zyx", 1, image_label={}))
    assert match_axes(image, labels) == (1, 2, 3)
    assert match_axes(labels, image) == (None, 0, 1, 2)
    unnamed = array_image(random_values((8, 8)), names=["p", "q"])
    assert match_axes(image, unnamed) == (2, 3)


def test_positions_are_translated_by_physical_coordinates() -> None:
    image = open_pyramid(pyramid(random_values((8, 16, 16)), "zyx", 1, scale=(2.0, 1.0, 1.0)))
    half = open_pyramid(pyramid(random_values((4, 8, 8)), "zyx", 1, scale=(4.0, 2.0, 2.0), image_label={}))
    translated = translate_settings(with_position(initial_settings(image), 0, 6), image, half)
    assert translated is not None
    assert translated.position[0] == 3.0
    assert translated.displayed == (1, 2)


def test_images_of_equal_shape_are_matched_by_index_if_one_declares_no_scale() -> None:
    image = open_pyramid(pyramid(random_values((16, 16)), "yx", 1, scale=(0.5, 0.5)))
    plain_labels = array_image(random_values((16, 16)), names=["y", "x"])
    assert level_map(image, plain_labels, 0, 0, 0) == (1.0, 0.0)
    scaled = open_pyramid(pyramid(random_values((16, 16)), "yx", 1, scale=(1.5, 1.5)))
    assert level_map(image, scaled, 0, 0, 0)[0] == pytest.approx(1 / 3)


def test_settings_are_not_translated_to_an_overlay_without_a_displayed_axis() -> None:
    image = open_pyramid(pyramid(random_values((8, 16, 16)), "zyx", 1))
    flat = open_pyramid(pyramid(random_values((16, 16)), "yx", 1, image_label={}))
    assert translate_settings(with_displayed(initial_settings(image), 0, 2), image, flat) is None
    assert translate_settings(initial_settings(image), image, flat) is not None


def test_a_mean_projection_becomes_a_maximum_projection_for_labels() -> None:
    image = open_pyramid(pyramid(random_values((8, 16, 16)), "zyx", 1, scale=(1.0, 1.0, 1.0)))
    labels = open_pyramid(
        pyramid(random_values((4, 16, 16)), "zyx", 1, scale=(2.0, 1.0, 1.0), image_label={})
    )
    settings = with_projection(initial_settings(image), Projection(0, "mean", 6.0))
    translated = translate_settings(settings, image, labels)
    assert translated is not None
    assert translated.projection == Projection(0, "max", 3.0)
