"""Rotation and mirroring of viewports, and the lines of the cross-hair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.analysis.cross_hair import cross_part
from zarrfs_viewer.state.view_state import Viewport, fit, mirrored, pan, rotated, zoom_at

viewports = st.builds(
    Viewport,
    width=st.integers(1, 2000),
    height=st.integers(1, 2000),
    center=st.tuples(st.floats(-500, 500), st.floats(-500, 500)),
    zoom=st.floats(0.01, 50),
    aspect=st.floats(0.2, 5),
    turns=st.integers(0, 3),
    mirrored=st.booleans(),
)
points = st.tuples(st.floats(-500, 500), st.floats(-500, 500))


@given(viewports, points)
def test_positions_are_converted_to_pixels_and_back(viewport: Viewport, point: tuple[float, float]) -> None:
    assert viewport.to_data(*viewport.to_device(*point)) == pytest.approx(point, abs=1e-6)


@given(viewports, points)
def test_a_rotation_turns_clockwise_and_mirroring_swaps_left_and_right(
    viewport: Viewport, point: tuple[float, float]
) -> None:
    x, y = viewport.to_device(*point)
    x, y = x - viewport.width / 2, y - viewport.height / 2
    turned = rotated(viewport).to_device(*point)
    expected = viewport.width / 2 - y, viewport.height / 2 + x
    assert turned == pytest.approx(expected, rel=1e-6, abs=1e-6)
    flipped = mirrored(viewport).to_device(*point)
    assert flipped == pytest.approx((viewport.width / 2 - x, viewport.height / 2 + y), rel=1e-6, abs=1e-6)
    assert mirrored(mirrored(viewport)) == viewport


@given(viewports)
def test_the_visible_rectangle_has_the_corners_of_the_window(viewport: Viewport) -> None:
    corners = [viewport.to_data(x, y) for x in (0, viewport.width) for y in (0, viewport.height)]
    top, left, bottom, right = viewport.rect
    assert (top, bottom) == pytest.approx((min(r for r, _ in corners), max(r for r, _ in corners)), rel=1e-6)
    assert (left, right) == pytest.approx((min(c for _, c in corners), max(c for _, c in corners)), rel=1e-6)


@given(viewports, st.floats(-300, 300), st.floats(-300, 300))
def test_panning_follows_the_pointer(viewport: Viewport, dx: float, dy: float) -> None:
    point = viewport.to_data(10, 20)
    assert pan(viewport, dx, dy).to_device(*point) == pytest.approx((10 + dx, 20 + dy), abs=1e-3)


@given(viewports, st.floats(0.5, 2))
def test_zooming_keeps_the_point_below_the_pointer(viewport: Viewport, factor: float) -> None:
    point = viewport.to_data(30, 40)
    assert zoom_at(viewport, factor, 30, 40).to_device(*point) == pytest.approx((30, 40), abs=1e-3)


@pytest.mark.parametrize("turns", range(4))
def test_the_whole_plane_fits(turns: int) -> None:
    viewport = fit(600, 300, 20, 100, turns=turns)
    top, left, bottom, right = viewport.rect
    assert top <= -0.5 + 1e-9
    assert left <= -0.5 + 1e-9
    assert bottom >= 19.5 - 1e-9
    assert right >= 99.5 - 1e-9


@pytest.mark.parametrize("turns", range(4))
def test_lines_of_the_cross_hair_are_found(turns: int) -> None:
    viewport = Viewport(400, 300, (50.0, 50.0), 2.0, turns=turns)
    cross = (40.0, 60.0)
    assert cross_part(viewport, cross, *viewport.to_device(*cross)) == "both"
    assert cross_part(viewport, cross, *viewport.to_device(40.0, 20.0)) == "row"
    assert cross_part(viewport, cross, *viewport.to_device(80.0, 60.0)) == "column"
    assert cross_part(viewport, cross, *viewport.to_device(80.0, 20.0)) is None
