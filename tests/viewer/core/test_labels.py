"""Drawing of label images over a picture."""

from __future__ import annotations

import numpy as np
import pytest
from zarrfs_viewer.rendering.labels import blend_labels, label_color, outlines
from zarrfs_viewer.state.view_state import LabelsSettings

from zarrfs.ngff import ImageLabel

GRAY = 0xFF646464


def blended(
    labels: np.ndarray, settings: LabelsSettings, image_label: ImageLabel | None = None
) -> np.ndarray:
    pixels = np.full(labels.shape, GRAY, np.uint32)
    blend_labels(pixels, labels, settings, image_label)
    return pixels


DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_colour_of_a_label_does_not_depend_on_the_data_type(dtype: str) -> None:
    labels = np.array([[0, 1, 2, 100, 1]], dtype)
    result = blended(labels, LabelsSettings(opacity=1.0))
    assert result[0, 0] == GRAY
    for index, value in enumerate((1, 2, 100), 1):
        red, green, blue, alpha = label_color(value)
        assert alpha == 255
        assert result[0, index] == 0xFF000000 | red << 16 | green << 8 | blue
    assert result[0, 4] == result[0, 1]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_negative_labels_have_colours(dtype: str) -> None:
    result = blended(np.array([[-1, -5]], dtype), LabelsSettings(opacity=1.0))
    for index, value in enumerate((-1, -5)):
        red, green, blue, _ = label_color(value)
        assert result[0, index] == 0xFF000000 | red << 16 | green << 8 | blue


def test_consecutive_labels_have_clearly_different_colours() -> None:
    colors = np.array([label_color(value)[:3] for value in range(1, 2000)], int)
    assert (np.abs(np.diff(colors, axis=0)).sum(axis=1) > 60).mean() > 0.97
    assert (colors.max(axis=1) >= 150).all()
    assert len(np.unique(colors, axis=0)) > 1000


@pytest.mark.parametrize("dtype", DTYPES)
def test_declared_colours_take_precedence_and_have_alpha(dtype: str) -> None:
    declared = ImageLabel({1: (255, 0, 0, 255), 0: (0, 0, 255, 255), 3: (0, 255, 0, 0), 4: (0, 255, 0, 128)})
    result = blended(np.array([[0, 1, 2, 3, 4]], dtype), LabelsSettings(opacity=1.0), declared)[0]
    assert result[:2].tolist() == [0xFF0000FF, 0xFFFF0000]
    assert result[3] == GRAY
    red, green, blue = (int(result[4]) >> shift & 255 for shift in (16, 8, 0))
    assert (red, blue) == (round(100 * 127 / 255),) * 2
    assert green == pytest.approx((100 * 127 + 255 * 128) / 255, abs=1)
    assert label_color(4, declared) == (0, 255, 0, 128)


@pytest.mark.parametrize("opacity", [0.0, 0.3, 0.5, 1.0])
def test_opacity_blends_the_label_with_the_picture(opacity: float) -> None:
    declared = ImageLabel({1: (200, 0, 50, 255)})
    result = int(blended(np.array([[1]]), LabelsSettings(opacity=opacity), declared)[0, 0])
    for shift, color in ((16, 200), (8, 0), (0, 50)):
        assert result >> shift & 255 == pytest.approx(100 + (color - 100) * opacity, abs=1)


def test_contours_draw_only_the_outline() -> None:
    labels = np.zeros((9, 9), np.uint16)
    labels[2:7, 2:7] = 5
    outline = outlines(labels, 1)
    assert outline[2, 2:7].all()
    assert outline[1, 3]  # the outline includes the background side, which has no colour
    assert not outline[3:6, 3:6].any()
    drawn = blended(labels, LabelsSettings(opacity=1.0, contour=1)) != GRAY
    expected = labels > 0
    expected[3:6, 3:6] = False
    np.testing.assert_array_equal(drawn, expected)
    wide = blended(labels, LabelsSettings(opacity=1.0, contour=2)) != GRAY
    assert wide.sum() == 24


def test_only_the_selected_label_is_drawn() -> None:
    drawn = blended(np.array([[1, 2, 0]]), LabelsSettings(selected=2)) != GRAY
    assert drawn.tolist() == [[False, True, False]]


def test_a_label_makes_transparent_pixels_opaque() -> None:
    pixels = np.zeros((1, 2), np.uint32)
    blend_labels(pixels, np.array([[0, 3]]), LabelsSettings(opacity=0.5))
    assert pixels[0, 0] == 0
    assert pixels[0, 1] >> 24 == 255


def test_labels_and_picture_of_different_shapes_are_rejected() -> None:
    with pytest.raises(ValueError, match="expected the picture's shape"):
        blend_labels(np.zeros((2, 2), np.uint32), np.zeros((3, 3), int), LabelsSettings())
