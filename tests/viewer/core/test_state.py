"""The functions that update all_settings and viewports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    DisplaySettings,
    LabelsSettings,
    Projection,
    Viewport,
    cropped,
    fit,
    one_to_one,
    pan,
    with_channel,
    with_displayed,
    with_labels,
    with_level_lock,
    with_position,
    with_projection,
    zoom_at,
)

INTENT = DisplaySettings(
    (1, 2), (3.0, 4.0, 5.0), (ChannelSettings(0), ChannelSettings(1)), (LabelsSettings(),)
)

viewports = st.builds(
    Viewport,
    st.integers(1, 4000),
    st.integers(1, 4000),
    st.tuples(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4)),
    st.floats(1e-3, 1e3),
    st.floats(0.1, 10),
)


def test_an_update_returns_changed_settings_and_leaves_the_argument_unchanged() -> None:
    assert with_position(INTENT, 0, 7).position == (7.0, 4.0, 5.0)
    assert with_channel(INTENT, 1, gamma=2.0).channels == (ChannelSettings(0), ChannelSettings(1, gamma=2.0))

    assert with_labels(INTENT, 0, opacity=1.0).labels == (LabelsSettings(opacity=1.0),)
    assert with_level_lock(INTENT, 2).level_lock == 2
    assert (
        DisplaySettings(
            (1, 2), (3.0, 4.0, 5.0), (ChannelSettings(0), ChannelSettings(1)), (LabelsSettings(),)
        )
        == INTENT
    )


def test_displaying_the_projected_axis_removes_the_projection() -> None:
    projected = with_projection(INTENT, Projection(0, "max", 5))
    assert with_displayed(projected, 0, 2).projection is None
    assert with_displayed(projected, 2, 1).projection == Projection(0, "max", 5)
    with pytest.raises(ValueError, match="two different axes"):
        with_displayed(INTENT, 1, 1)


def test_a_solo_channel_is_the_only_shown_channel_even_if_it_is_not_visible() -> None:
    assert INTENT.shown_channels == INTENT.channels
    hidden = with_channel(INTENT, 0, visible=False)
    assert [channel.index for channel in hidden.shown_channels] == [1]
    solo = with_channel(hidden, 0, solo=True)
    assert [channel.index for channel in solo.shown_channels] == [0]


@given(viewports, st.floats(0, 4000), st.floats(0, 4000))
def test_to_device_is_the_inverse_of_to_data(viewport: Viewport, x: float, y: float) -> None:
    device = viewport.to_device(*viewport.to_data(x, y))
    assert device == pytest.approx((x, y), rel=1e-6, abs=1e-4 * max(1.0, viewport.zoom * viewport.aspect))


@given(viewports, st.floats(0.1, 10), st.floats(0, 4000), st.floats(0, 4000))
def test_zooming_does_not_move_the_point_at_the_pointer(
    viewport: Viewport, factor: float, x: float, y: float
) -> None:
    before = viewport.to_data(x, y)
    after = zoom_at(viewport, factor, x, y)
    assert after.zoom == pytest.approx(viewport.zoom * factor)
    assert after.to_data(x, y) == pytest.approx(before, rel=1e-6, abs=1e-3 / min(viewport.zoom, after.zoom))


def test_the_zoom_is_limited() -> None:
    viewport = Viewport(100, 100, (0, 0), 1.0)
    assert zoom_at(viewport, 1e9, 0, 0).zoom == 1e4
    assert zoom_at(viewport, 1e-9, 0, 0).zoom == 1e-6


@given(
    st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 5000), st.integers(1, 5000), st.floats(0.1, 10)
)
def test_fit_shows_the_whole_plane_and_fills_the_viewport_along_one_axis(
    width: int, height: int, rows: int, columns: int, aspect: float
) -> None:
    top, left, bottom, right = fit(width, height, rows, columns, aspect).rect
    tolerance = 1e-6 * (rows + columns)
    assert top <= -0.5 + tolerance
    assert left <= -0.5 + tolerance
    assert bottom >= rows - 0.5 - tolerance
    assert right >= columns - 0.5 - tolerance
    assert min(-0.5 - top, -0.5 - left) == pytest.approx(0, abs=tolerance)


def test_panning_moves_the_picture_right_and_down() -> None:
    viewport = Viewport(100, 100, (50.0, 50.0), 2.0, aspect=2.0)
    moved = pan(viewport, 10, 20)
    assert moved.center == (45.0, 45.0)
    assert one_to_one(viewport).zooms == (2.0, 1.0)


@given(viewports, st.integers(1, 300), st.integers(1, 300))
def test_a_cropped_viewport_shows_the_same_pixels_at_the_same_place(
    viewport: Viewport, rows: int, columns: int
) -> None:
    part = cropped(viewport, rows, columns)
    assert part.zooms == viewport.zooms
    top, left, bottom, right = viewport.rect
    if top >= rows - 0.5 or left >= columns - 0.5 or bottom <= -0.5 or right <= -0.5:
        assert part == viewport
        return
    row_error, column_error = (0.51 / zoom + 1e-6 for zoom in part.zooms)
    expected = (max(top, -0.5), max(left, -0.5), min(bottom, rows - 0.5), min(right, columns - 0.5))
    for value, wanted, error in zip(part.rect, expected, (row_error, column_error) * 2, strict=True):
        assert abs(value - wanted) <= error or part.width == 1 or part.height == 1
