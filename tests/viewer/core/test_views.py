"""Saved views as JSON, links and command lines: round trips, and errors for invalid ones."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.saved_views.views import (
    View,
    command_line,
    fitted_settings,
    from_json,
    from_link,
    load_views,
    save_views,
    to_json,
    to_link,
)
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    DisplaySettings,
    LabelsSettings,
    Projection,
    Viewport,
)

from tests.viewer.core.doubles import open_pyramid, pyramid, random_values
from zarrfs.errors import MetadataError

finite = st.floats(-1e9, 1e9)
pairs = st.none() | st.tuples(finite, finite)
channels = st.builds(
    ChannelSettings,
    index=st.integers(0, 60),
    label=st.text(max_size=8),
    colormap=st.sampled_from(["gray", "viridis", "#12AB9F"]),
    limits=pairs,
    limits_range=pairs,
    gamma=st.floats(0.1, 5),
    invert=st.booleans(),
    visible=st.booleans(),
    solo=st.booleans(),
    component=st.sampled_from(["value", "abs", "phase", "real", "imag"]),
    field=st.none() | st.text(max_size=5),
)
labels = st.builds(
    LabelsSettings,
    index=st.integers(0, 9),
    visible=st.booleans(),
    opacity=st.floats(0, 1),
    contour=st.integers(0, 5),
    selected=st.none() | st.integers(),
)
all_settings = st.builds(
    DisplaySettings,
    displayed=st.permutations([0, 1, 2]).map(lambda order: (order[0], order[1])),
    position=st.tuples(finite, finite, finite),
    channels=st.lists(channels, max_size=4).map(tuple),
    labels=st.lists(labels, max_size=2).map(tuple),
    level_lock=st.none() | st.integers(0, 9),
    projection=st.none()
    | st.builds(Projection, st.integers(0, 2), st.sampled_from(["max", "mean"]), st.floats(1, 50)),
)
viewports = st.none() | st.builds(
    Viewport,
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.tuples(finite, finite),
    st.floats(1e-3, 1e3),
    st.floats(0.1, 9),
)
locations = st.sampled_from(
    ["/data/it's here/a b.zarr", "https://example.org/x.zarr?token=1", "s3://bucket/é.zarr"]
)
views = st.builds(View, st.text(max_size=9), locations, st.text(max_size=9), all_settings, viewports)

EXAMPLE = View(
    "one",
    "/a.zarr",
    "",
    DisplaySettings((0, 1), (0.0, 0.0), (ChannelSettings(),)),
    Viewport(9, 9, (0.0, 0.0), 1.0),
)


@given(views)
def test_a_view_round_trips_through_json_links_and_command_lines(view: View) -> None:
    assert from_json(json.loads(json.dumps(to_json(view)))) == view
    assert from_link(to_link(view)) == (view.location, view)
    program, link = shlex.split(command_line(view))
    assert program == "zarrfs-viewer"
    assert from_link(link)[1] == view


def test_large_integers_in_limits_round_trip_exactly() -> None:
    view = View(
        "", "", "", DisplaySettings((0, 1), (0.0, 0.0), (ChannelSettings(limits=(2**62, 2**62 + 1)),))
    )
    assert from_link(to_link(view))[1] == view


def test_a_location_without_a_view_is_returned_unchanged() -> None:
    assert from_link("/data/a.zarr") == ("/data/a.zarr", None)
    assert from_link("https://x/y#page") == ("https://x/y#page", None)


@pytest.mark.parametrize("fragment", ["", "!!!", "AAAA", to_link(EXAMPLE).partition("#view=")[2][:-6]])
def test_a_damaged_link_is_rejected(fragment: str) -> None:
    with pytest.raises(MetadataError, match=r"the view in the link to /a\.zarr is damaged"):
        from_link(f"/a.zarr#view={fragment}")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), 99, "/format: expected 1"),
        (("name",), 5, "/name: expected a string"),
        (("intent",), [], "/intent: expected an object"),
        (("intent", "displayed"), [0, 0], "/intent/displayed: expected two different axes"),
        (("intent", "displayed"), [0, 7], "/intent/displayed"),
        (("intent", "position"), [0, "x"], "/intent/position: expected a list of finite numbers"),
        (("intent", "position"), [0, 10**400], "/intent/position"),
        (("intent", "channels", 0, "gamma"), 0, "/intent/channels/0/gamma: expected a positive number"),
        (("intent", "channels", 0, "colormap"), "jet", "unknown colour map 'jet'"),
        (("intent", "channels", 0, "component"), "x", "expected one of value, abs"),
        (("intent", "channels", 0, "visible"), 1, "expected true or false"),
        (("intent", "channels"), {}, "/intent/channels: expected a list"),
        (("intent", "level_lock"), 1.5, "/intent/level_lock: expected an integer"),
        (("viewport", "zoom"), float("nan"), "/viewport/zoom: expected a finite number"),
        (("viewport", "width"), 0, "/viewport/width"),
    ],
)
def test_an_error_contains_the_invalid_key(path: tuple[Any, ...], value: Any, message: str) -> None:
    document = to_json(EXAMPLE)
    container: Any = document
    for key in path[:-1]:
        container = container[key]
    container[path[-1]] = value
    with pytest.raises(MetadataError) as raised:
        from_json(document)
    assert message in str(raised.value)


def test_an_error_contains_the_missing_key() -> None:
    with pytest.raises(MetadataError, match="/location: is missing"):
        from_json({key: value for key, value in to_json(EXAMPLE).items() if key != "location"})


def test_views_are_saved_to_a_file_and_loaded(tmp_path: Path) -> None:
    file = tmp_path / "state" / "views.json"
    assert load_views(file) == ()
    save_views(file, (EXAMPLE, EXAMPLE))
    assert load_views(file) == (EXAMPLE, EXAMPLE)
    assert [entry.name for entry in file.parent.iterdir()] == ["views.json"]
    file.write_text("{")
    with pytest.raises(MetadataError, match="cannot be read"):
        load_views(file)
    file.write_text("[]")
    with pytest.raises(MetadataError, match="contains no saved views"):
        load_views(file)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from([*to_json(EXAMPLE), "position", "displayed", "channels"]), inner
            )
        ),
    )
)
def test_every_invalid_document_raises_a_metadata_error(document: Any) -> None:
    with pytest.raises(MetadataError):
        from_json(document)


def test_a_saved_view_is_adapted_to_the_image() -> None:
    image = open_pyramid(pyramid(random_values((9, 16, 16)), "zyx"))
    initial = initial_settings(image)
    view = View("a", "a.zarr", "", replace(initial, position=(20.0, -3.0, 4.0), level_lock=9), None)
    fitted = fitted_settings(view, image, initial)
    assert fitted == replace(initial, position=(8.0, 0.0, 4.0), level_lock=None)
    locked = replace(view, settings=replace(initial, level_lock=0))
    assert fitted_settings(locked, image, initial).level_lock == 0
    other = open_pyramid(pyramid(random_values((16, 16)), "yx"))
    with pytest.raises(MetadataError, match="belongs to an image with 3 axes"):
        fitted_settings(view, other, initial_settings(other))
