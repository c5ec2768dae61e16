"""Changes of intent and viewport are pure, and keep what they promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    LabelsSettings,
    Projection,
    ViewIntent,
    Viewport,
    fit,
    one_to_one,
    pan,
    with_channel,
    with_displayed,
    with_labels,
    with_level_lock,
    with_limits,
    with_position,
    with_projection,
    zoom_at,
)

INTENT = ViewIntent((1, 2), (3.0, 4.0, 5.0), (ChannelSettings(0), ChannelSettings(1)), (LabelsSettings(),))

viewports = st.builds(
    Viewport,
    st.integers(1, 4000),
    st.integers(1, 4000),
    st.tuples(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4)),
    st.floats(1e-3, 1e3),
    st.floats(0.1, 10),
)


def test_one_thing_changes_and_the_rest_stays() -> None:
    assert with_position(INTENT, 0, 7).position == (7.0, 4.0, 5.0)
    assert with_channel(INTENT, 1, gamma=2.0).channels == (ChannelSettings(0), ChannelSettings(1, gamma=2.0))
    assert with_limits(INTENT, 0, 9, 2).channels[0].limits == (2, 9)
    assert with_labels(INTENT, 0, opacity=1.0).labels == (LabelsSettings(opacity=1.0),)
    assert with_level_lock(INTENT, 2).level_lock == 2
    assert (
        ViewIntent((1, 2), (3.0, 4.0, 5.0), (ChannelSettings(0), ChannelSettings(1)), (LabelsSettings(),))
        == INTENT
    )


def test_displaying_the_projected_axis_ends_the_projection() -> None:
    projected = with_projection(INTENT, Projection(0, "max", 5))
    assert with_displayed(projected, 0, 2).projection is None
    assert with_displayed(projected, 2, 1).projection == Projection(0, "max", 5)
    with pytest.raises(ValueError, match="two different axes"):
        with_displayed(INTENT, 1, 1)


def test_solo_hides_the_others_even_where_it_is_itself_hidden() -> None:
    assert INTENT.shown_channels == INTENT.channels
    hidden = with_channel(INTENT, 0, visible=False)
    assert [channel.index for channel in hidden.shown_channels] == [1]
    solo = with_channel(hidden, 0, solo=True)
    assert [channel.index for channel in solo.shown_channels] == [0]


@given(viewports, st.floats(0, 4000), st.floats(0, 4000))
def test_device_and_data_positions_are_inverse(viewport: Viewport, x: float, y: float) -> None:
    back = viewport.to_device(*viewport.to_data(x, y))
    assert back == pytest.approx((x, y), rel=1e-6, abs=1e-4 * max(1.0, viewport.zoom * viewport.aspect))


@given(viewports, st.floats(0.1, 10), st.floats(0, 4000), st.floats(0, 4000))
def test_zooming_keeps_the_point_below_the_pointer(
    viewport: Viewport, factor: float, x: float, y: float
) -> None:
    before = viewport.to_data(x, y)
    after = zoom_at(viewport, factor, x, y)
    assert after.zoom == pytest.approx(viewport.zoom * factor)
    assert after.to_data(x, y) == pytest.approx(before, rel=1e-6, abs=1e-3 / min(viewport.zoom, after.zoom))


def test_zoom_has_bounds() -> None:
    viewport = Viewport(100, 100, (0, 0), 1.0)
    assert zoom_at(viewport, 1e9, 0, 0).zoom == 1e4
    assert zoom_at(viewport, 1e-9, 0, 0).zoom == 1e-6


@given(
    st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 5000), st.integers(1, 5000), st.floats(0.1, 10)
)
def test_fitting_shows_the_whole_plane_and_touches_a_border(
    width: int, height: int, rows: int, columns: int, aspect: float
) -> None:
    top, left, bottom, right = fit(width, height, rows, columns, aspect).rect
    slack = 1e-6 * (rows + columns)
    assert top <= -0.5 + slack
    assert left <= -0.5 + slack
    assert bottom >= rows - 0.5 - slack
    assert right >= columns - 0.5 - slack
    assert min(-0.5 - top, -0.5 - left) == pytest.approx(0, abs=slack)


def test_dragging_right_moves_the_picture_right() -> None:
    viewport = Viewport(100, 100, (50.0, 50.0), 2.0, aspect=2.0)
    moved = pan(viewport, 10, 20)
    assert moved.center == (45.0, 45.0)
    assert one_to_one(viewport).zooms == (2.0, 1.0)
