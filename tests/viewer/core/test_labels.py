"""Labels over a picture."""

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
def test_a_label_has_one_colour_whatever_its_type(dtype: str) -> None:
    labels = np.array([[0, 1, 2, 100, 1]], dtype)
    found = blended(labels, LabelsSettings(opacity=1.0))
    assert found[0, 0] == GRAY
    for place, value in enumerate((1, 2, 100), 1):
        red, green, blue, alpha = label_color(value)
        assert alpha == 255
        assert found[0, place] == 0xFF000000 | red << 16 | green << 8 | blue
    assert found[0, 4] == found[0, 1]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_negative_labels_have_colours_too(dtype: str) -> None:
    found = blended(np.array([[-1, -5]], dtype), LabelsSettings(opacity=1.0))
    for place, value in enumerate((-1, -5)):
        red, green, blue, _ = label_color(value)
        assert found[0, place] == 0xFF000000 | red << 16 | green << 8 | blue


def test_neighbouring_labels_differ_visibly() -> None:
    colors = np.array([label_color(value)[:3] for value in range(1, 2000)], int)
    assert (np.abs(np.diff(colors, axis=0)).sum(axis=1) > 60).mean() > 0.97
    assert (colors.max(axis=1) >= 150).all()
    assert len(np.unique(colors, axis=0)) > 1000


@pytest.mark.parametrize("dtype", DTYPES)
def test_declared_colours_win_and_bring_their_alpha(dtype: str) -> None:
    declared = ImageLabel({1: (255, 0, 0, 255), 0: (0, 0, 255, 255), 3: (0, 255, 0, 0), 4: (0, 255, 0, 128)})
    found = blended(np.array([[0, 1, 2, 3, 4]], dtype), LabelsSettings(opacity=1.0), declared)[0]
    assert found[:2].tolist() == [0xFF0000FF, 0xFFFF0000]
    assert found[3] == GRAY
    red, green, blue = (int(found[4]) >> shift & 255 for shift in (16, 8, 0))
    assert (red, blue) == (round(100 * 127 / 255),) * 2
    assert green == pytest.approx((100 * 127 + 255 * 128) / 255, abs=1)
    assert label_color(4, declared) == (0, 255, 0, 128)


@pytest.mark.parametrize("opacity", [0.0, 0.3, 0.5, 1.0])
def test_opacity_mixes(opacity: float) -> None:
    declared = ImageLabel({1: (200, 0, 50, 255)})
    found = int(blended(np.array([[1]]), LabelsSettings(opacity=opacity), declared)[0, 0])
    for shift, color in ((16, 200), (8, 0), (0, 50)):
        assert found >> shift & 255 == pytest.approx(100 + (color - 100) * opacity, abs=1)


def test_contours_draw_only_the_rim() -> None:
    labels = np.zeros((9, 9), np.uint16)
    labels[2:7, 2:7] = 5
    rim = outlines(labels, 1)
    assert rim[2, 2:7].all()
    assert rim[1, 3]  # the background side touches as well, but has no colour
    assert not rim[3:6, 3:6].any()
    drawn = blended(labels, LabelsSettings(opacity=1.0, contour=1)) != GRAY
    expected = labels > 0
    expected[3:6, 3:6] = False
    np.testing.assert_array_equal(drawn, expected)
    wide = blended(labels, LabelsSettings(opacity=1.0, contour=2)) != GRAY
    assert wide.sum() == 24


def test_one_label_alone() -> None:
    drawn = blended(np.array([[1, 2, 0]]), LabelsSettings(selected=2)) != GRAY
    assert drawn.tolist() == [[False, True, False]]


def test_where_nothing_was_drawn_labels_become_opaque() -> None:
    pixels = np.zeros((1, 2), np.uint32)
    blend_labels(pixels, np.array([[0, 3]]), LabelsSettings(opacity=0.5))
    assert pixels[0, 0] == 0
    assert pixels[0, 1] >> 24 == 255


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        blend_labels(np.zeros((2, 2), np.uint32), np.zeros((3, 3), int), LabelsSettings())
