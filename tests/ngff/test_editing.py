"""Edits of channel names, colours, pixel sizes and units, in both places that the metadata can have."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from zarrfs.errors import MetadataError, OptionError
from zarrfs.ngff import check_attributes, parse
from zarrfs.ngff.editing import (
    with_axis_name,
    with_axis_orientation,
    with_axis_unit,
    with_channel_color,
    with_channel_label,
    with_channel_window,
    with_channels,
    with_image_name,
    with_pixel_size,
)
from zarrfs.ngff.orientation import ORIENTATIONS

AXES = [
    {"name": "c", "type": "channel"},
    {"name": "y", "type": "space", "unit": "micrometer"},
    {"name": "x", "type": "space", "unit": "micrometer"},
]


def level(path: str, scale: list[float], translation: list[float] | None = None) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
    if translation is not None:
        steps.append({"type": "translation", "translation": translation})
    return {"path": path, "coordinateTransformations": steps}


def document(version: str) -> dict[str, Any]:
    window = {"start": 0, "end": 9, "min": 0, "max": 255}
    ome = {
        "multiscales": [
            {
                "name": "cells",
                "axes": AXES,
                "datasets": [
                    level("0", [1, 0.3, 0.1], [0, 5, 0]),
                    level("1", [1, 0.6, 0.2], [0, 5.15, 0.05]),
                ],
            }
        ],
        "omero": {"channels": [{"label": "a", "color": "FF0000", "window": window, "active": True}]},
    }
    if version == "0.5":
        return {"ome": {"version": "0.5", **ome}, "other": [1]}
    ome["multiscales"][0]["version"] = version  # type: ignore[index]
    return {**ome, "other": [1]}


@pytest.fixture(params=["0.4", "0.5"])
def attributes(request: pytest.FixtureRequest) -> dict[str, Any]:
    return document(request.param)


def test_edits_change_one_value_of_a_valid_copy(attributes: dict[str, Any]) -> None:
    before = deepcopy(attributes)
    edited = with_channel_label(attributes, 0, "DAPI")
    edited = with_channel_color(edited, 0, (0, 128, 255))
    edited = with_pixel_size(edited, 2, 0.25)
    edited = with_axis_unit(edited, 1, "nanometer")
    assert attributes == before
    assert edited["other"] == [1]
    assert check_attributes(edited).valid
    model = parse(edited)
    assert model.omero is not None
    assert (model.omero.channels[0].label, model.omero.channels[0].color) == ("DAPI", (0, 128, 255))
    assert [axis.unit for axis in model.multiscales[0].axes] == [None, "nanometer", "micrometer"]
    fine, coarse = model.multiscales[0].levels
    assert fine.scale == (1, 0.3, 0.25)
    assert coarse.scale == (1, 0.6, 0.5)
    assert fine.translation == (0, 5, 0)
    assert coarse.translation == pytest.approx((0, 5.15, 0.125))


def test_the_origin_of_level_0_stays(attributes: dict[str, Any]) -> None:
    fine, coarse = parse(with_pixel_size(attributes, 1, 0.6)).multiscales[0].levels
    assert fine.translation is not None
    assert coarse.translation is not None
    assert (fine.translation[1], coarse.translation[1]) == pytest.approx((5, 5.3))


def test_a_transformation_of_the_whole_image_is_kept(attributes: dict[str, Any]) -> None:
    item = attributes.get("ome", attributes)["multiscales"][0]
    item["coordinateTransformations"] = [{"type": "scale", "scale": [1, 1, 2]}]
    edited = with_pixel_size(attributes, 2, 0.5)
    assert (
        edited.get("ome", edited)["multiscales"][0]["coordinateTransformations"]
        == item["coordinateTransformations"]
    )
    sizes = [level.scale for level in parse(edited).multiscales[0].levels]
    assert sizes == [pytest.approx((1, 0.3, 0.5)), pytest.approx((1, 0.6, 1.0))]


def test_an_orientation_is_set_and_removed(attributes: dict[str, Any]) -> None:
    edited = with_axis_orientation(attributes, 2, "left-to-right")
    axes = parse(edited).multiscales[0].axes
    assert [axis.orientation for axis in axes] == [None, None, "left-to-right"]
    assert parse(attributes).multiscales[0].axes[2].orientation is None
    assert with_axis_orientation(edited, 2, "") == attributes
    messages = [item for item in check_attributes(edited).messages if "orientation" in item.message]
    assert [(item.tier, item.message) for item in messages] == [
        ("strict", "1 of 2 spatial axes have an orientation, expected all")
    ]
    edited = with_axis_orientation(edited, 1, "right-to-left")
    assert "parallel: right-to-left, left-to-right" in str(check_attributes(edited).messages)
    edited = with_axis_orientation(edited, 1, "dorsal-to-ventral")
    assert "orientation" not in str(check_attributes(edited).messages)
    for axis, orientation, message in (
        (2, "leftwards", "expected one of the orientations of RFC-4"),
        (0, "left-to-right", "axis 0 is not of type space"),
        (3, "left-to-right", "axis 3 has no place"),
    ):
        with pytest.raises(MetadataError if axis == 3 else OptionError, match=message):
            with_axis_orientation(attributes, axis, orientation)


@pytest.mark.parametrize(
    ("axis", "orientation", "message"),
    [
        (2, {"type": "anatomical", "value": "up"}, "expected an orientation of RFC-4"),
        (2, {"type": "geographical", "value": "left-to-right"}, "expected an orientation of RFC-4"),
        (2, "left-to-right", "expected an orientation of RFC-4"),
        (0, {"type": "anatomical", "value": "left-to-right"}, "the axis is not spatial"),
    ],
)
def test_orientations_that_rfc_4_does_not_allow_are_reported(
    axis: int, orientation: Any, message: str, attributes: dict[str, Any]
) -> None:
    edited = deepcopy(attributes)
    edited.get("ome", edited)["multiscales"][0]["axes"][axis]["orientation"] = orientation
    (found,) = [item for item in check_attributes(edited).messages if item.pointer.endswith("orientation")]
    assert (found.tier, message in found.message) == ("strict", True)


def test_an_empty_unit_is_removed(attributes: dict[str, Any]) -> None:
    edited = with_axis_unit(attributes, 1, "")
    assert edited.get("ome", edited)["multiscales"][0]["axes"][1] == {"name": "y", "type": "space"}
    assert with_axis_unit(edited, 1, "") == edited


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf")])
def test_impossible_pixel_sizes_are_refused(size: float, attributes: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="pixel size"):
        with_pixel_size(attributes, 1, size)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"multiscales": 3},
        {"multiscales": [{"datasets": 5}]},
        {"multiscales": [{"datasets": [{"path": "0"}]}]},
    ],
)
def test_metadata_without_a_place_for_the_value_are_refused(broken: dict[str, Any]) -> None:
    for edit in (
        lambda: with_channel_label(broken, 0, "a"),
        lambda: with_channel_color(broken, 0, (1, 2, 3)),
        lambda: with_pixel_size(broken, 0, 1.0),
        lambda: with_axis_unit(broken, 0, "meter"),
    ):
        with pytest.raises(MetadataError):
            edit()


def test_colors_out_of_range_and_unknown_channels_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="255"):
        with_channel_color(attributes, 0, (0, 0, 256))
    with pytest.raises(MetadataError, match="channel 1"):
        with_channel_label(attributes, 1, "b")
    with pytest.raises(MetadataError, match="axis 7"):
        with_pixel_size(attributes, 7, 1.0)


def test_every_refusal_names_what_was_found_and_expected(attributes: dict[str, Any]) -> None:
    plain = {"multiscales": [{"axes": ["y", "x"], "datasets": [{"path": "0"}]}], "omero": {"channels": 5}}
    for edit, message in (
        (
            lambda: with_channel_color(attributes, 0, (0, 0, 256)),
            "expected a colour of three numbers from 0 to 255, found (0, 0, 256)",
        ),
        (
            lambda: with_channel_window(attributes, 0, 9, 1),
            "expected contrast limits in ascending order, found 9 and 1",
        ),
        (lambda: with_channels(plain, 2, 0, 1), "the metadata 'omero' has no list of channels"),
        (lambda: with_axis_name(attributes, 3, "t"), "the metadata has no axis 3"),
        (lambda: with_pixel_size(attributes, 1, -2), "expected a pixel size above 0, found -2"),
        (
            lambda: with_pixel_size(plain, 1, 2),
            "not every level has a scale for axis 1; only existing scales can be changed",
        ),
        (
            lambda: with_axis_unit(plain, 1, "meter"),
            "axis 1 has no place for a unit: axes are objects since OME-NGFF 0.4",
        ),
        (
            lambda: with_axis_orientation(plain, 1, "left-to-right"),
            "axis 1 has no place for an orientation: axes are objects since OME-NGFF 0.4",
        ),
        (
            lambda: with_axis_orientation(attributes, 2, "up"),
            f"expected one of the orientations of RFC-4, found 'up'; they are {', '.join(ORIENTATIONS)}",
        ),
        (
            lambda: with_axis_orientation(attributes, 0, "left-to-right"),
            "axis 0 is not of type space; only spatial axes have an orientation",
        ),
        (lambda: with_channel_label(plain, 0, "a"), "the metadata 'omero' has no channel 0"),
        (lambda: with_image_name(attributes, "a", 1), "the metadata 'multiscales' has no image 1"),
    ):
        with pytest.raises((MetadataError, OptionError)) as caught:
            edit()
        assert str(caught.value) == message
