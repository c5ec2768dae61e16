"""One image on another: by the names of axes and by physical position."""

from __future__ import annotations

import pytest
from zarrfs_viewer.display.overlay import level_map, match_axes, translate_intent
from zarrfs_viewer.images.dataset import initial_intent
from zarrfs_viewer.state.view_state import Projection, with_displayed, with_position, with_projection

from tests.viewer.core.doubles import numbers, open_pyramid, plain, pyramid


def test_axes_are_matched_by_name_else_from_the_last() -> None:
    image = open_pyramid(pyramid(numbers((2, 3, 8, 8)), "czyx", 1))
    labels = open_pyramid(pyramid(numbers((3, 8, 8)), "zyx", 1, image_label={}))
    assert match_axes(image, labels) == (1, 2, 3)
    assert match_axes(labels, image) == (None, 0, 1, 2)
    unnamed = plain(numbers((8, 8)), names=["p", "q"])
    assert match_axes(image, unnamed) == (2, 3)


def test_positions_are_physical() -> None:
    image = open_pyramid(pyramid(numbers((8, 16, 16)), "zyx", 1, scale=(2.0, 1.0, 1.0)))
    half = open_pyramid(pyramid(numbers((4, 8, 8)), "zyx", 1, scale=(4.0, 2.0, 2.0), image_label={}))
    theirs = translate_intent(with_position(initial_intent(image), 0, 6), image, half)
    assert theirs is not None
    assert theirs.position[0] == 3.0
    assert theirs.displayed == (1, 2)


def test_images_of_one_size_coincide_where_one_declares_no_scale() -> None:
    image = open_pyramid(pyramid(numbers((16, 16)), "yx", 1, scale=(0.5, 0.5)))
    plain_labels = plain(numbers((16, 16)), names=["y", "x"])
    assert level_map(image, plain_labels, 0, 0, 0) == (1.0, 0.0)
    scaled = open_pyramid(pyramid(numbers((16, 16)), "yx", 1, scale=(1.5, 1.5)))
    assert level_map(image, scaled, 0, 0, 0)[0] == pytest.approx(1 / 3)


def test_an_overlay_without_a_displayed_axis_is_not_shown() -> None:
    image = open_pyramid(pyramid(numbers((8, 16, 16)), "zyx", 1))
    flat = open_pyramid(pyramid(numbers((16, 16)), "yx", 1, image_label={}))
    assert translate_intent(with_displayed(initial_intent(image), 0, 2), image, flat) is None
    assert translate_intent(initial_intent(image), image, flat) is not None


def test_labels_are_never_averaged() -> None:
    image = open_pyramid(pyramid(numbers((8, 16, 16)), "zyx", 1, scale=(1.0, 1.0, 1.0)))
    labels = open_pyramid(pyramid(numbers((4, 16, 16)), "zyx", 1, scale=(2.0, 1.0, 1.0), image_label={}))
    intent = with_projection(initial_intent(image), Projection(0, "mean", 6.0))
    theirs = translate_intent(intent, image, labels)
    assert theirs is not None
    assert theirs.projection == Projection(0, "max", 3.0)
