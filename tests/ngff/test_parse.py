"""Documents of all versions become one model; nothing in a document raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.ngff import Axis, Level, Ngff, PlateWell, Window, load, parse

V04: dict[str, Any] = {
    "multiscales": [
        {
            "version": "0.4",
            "name": "cells",
            "type": "gaussian",
            "metadata": {"method": "none"},
            "axes": [
                {"name": "c", "type": "channel"},
                {"name": "y", "type": "space", "unit": "micrometer"},
                {"name": "x", "type": "space", "unit": "micrometer"},
            ],
            "datasets": [
                {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5, 0.5]}]},
                {
                    "path": "1",
                    "coordinateTransformations": [
                        {"type": "scale", "scale": [1, 1, 1]},
                        {"type": "translation", "translation": [0, 0.25, 0.25]},
                    ],
                },
            ],
        }
    ]
}


def with_version_05(document: dict[str, Any]) -> dict[str, Any]:
    return {"ome": {**document, "version": "0.5"}}


@pytest.mark.parametrize("attributes", [V04, with_version_05(V04), {"ome": V04}])
def test_an_image_is_the_same_wherever_its_keys_are(attributes: dict[str, Any]) -> None:
    (multiscales,) = parse(attributes).multiscales
    assert multiscales.name == "cells"
    assert multiscales.axes == (
        Axis("c", "channel"),
        Axis("y", "space", "micrometer"),
        Axis("x", "space", "micrometer"),
    )
    assert multiscales.levels == (
        Level("0", (1, 0.5, 0.5), (0, 0, 0)),
        Level("1", (1, 1, 1), (0, 0.25, 0.25)),
    )
    assert not parse(attributes).problems


def test_the_version_is_found_where_each_version_has_it() -> None:
    assert parse(V04).version == "0.4"
    assert parse(with_version_05(V04)).version == "0.5"
    assert parse({"plate": {"version": "0.2"}}).version == "0.2"
    assert parse({"well": {"version": "0.3"}}).version == "0.3"
    assert parse({"multiscales": [{"datasets": [{"path": "0"}]}]}).version is None


def test_old_axes_are_names_or_absent() -> None:
    old = {"multiscales": [{"version": "0.3", "axes": ["t", "y", "x"], "datasets": [{"path": "0"}]}]}
    (multiscales,) = parse(old).multiscales
    assert multiscales.axes == (Axis("t", "time"), Axis("y", "space"), Axis("x", "space"))
    assert multiscales.levels == (Level("0"),)
    oldest = {"multiscales": [{"version": "0.1", "datasets": [{"path": "0"}, {"path": "1"}]}]}
    assert parse(oldest).multiscales[0].axes == ()


def test_transformations_of_the_whole_pyramid_come_after_those_of_a_level() -> None:
    document = {
        "multiscales": [
            {
                "axes": [{"name": "y"}, {"name": "x"}],
                "datasets": [
                    {
                        "path": "0",
                        "coordinateTransformations": [
                            {"type": "scale", "scale": [2, 3]},
                            {"type": "translation", "translation": [1, 1]},
                        ],
                    }
                ],
                "coordinateTransformations": [
                    {"type": "scale", "scale": [10, 100]},
                    {"type": "translation", "translation": [5, 7]},
                ],
            }
        ]
    }
    (level,) = parse(document).multiscales[0].levels
    assert level.scale == (20, 300)
    assert level.translation == (15, 107)


@pytest.mark.parametrize(
    ("transformations", "problem"),
    [
        ([{"type": "scale", "scale": [1]}], "expected 2 numbers"),
        ([{"type": "scale", "scale": ["a", 1]}], "expected a list of finite numbers"),
        ([{"type": "scale"}], "expected a list of finite numbers"),
        ([{"type": "scale", "scale": [1, float("nan")]}], "expected a list of finite numbers"),
        ([{"type": "scale", "scale": [1, 10**400]}], "expected a list of finite numbers"),
        ([{"type": "affine", "affine": []}], "'affine' is not understood"),
        ("nonsense", "expected a list"),
    ],
)
def test_a_wrong_transformation_is_left_out_and_noted(transformations: Any, problem: str) -> None:
    document = {
        "multiscales": [
            {
                "axes": [{"name": "y"}, {"name": "x"}],
                "datasets": [{"path": "0", "coordinateTransformations": transformations}],
            }
        ]
    }
    found = parse(document)
    assert found.multiscales[0].levels == (Level("0"),)
    assert problem in found.problems[0]
    assert found.problems[0].startswith("/multiscales/0/datasets/0/coordinateTransformations")


def test_a_scale_of_zero_is_taken_as_one() -> None:
    document = {
        "multiscales": [
            {"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [0, 2]}]}]}
        ]
    }
    assert parse(document).multiscales[0].levels[0].scale == (1, 2)


def test_channels_may_lack_anything() -> None:
    omero = {
        "channels": [
            {
                "label": "DAPI",
                "color": "00ff80",
                "active": False,
                "inverted": True,
                "window": {"start": 1, "end": 9, "min": 0, "max": 255},
            },
            {},
            {"color": "#112233FF", "window": {"min": 2, "max": 5}, "label": 7},
            {"color": "green", "window": {"start": 9, "end": 1}},
            "nonsense",
        ],
        "rdefs": {"defaultZ": 3, "defaultT": 0, "model": "color"},
    }
    found = parse({**V04, "omero": omero})
    assert found.omero is not None
    dapi, nothing, odd, wrong = found.omero.channels
    assert (dapi.label, dapi.color, dapi.active, dapi.inverted) == ("DAPI", (0, 255, 128), False, True)
    assert dapi.window == Window(1, 9, 0, 255)
    assert (nothing.color, nothing.window, nothing.active, nothing.label) == (None, None, True, None)
    assert (odd.color, odd.window, odd.label) == ((0x11, 0x22, 0x33), Window(2, 5, 2, 5), "7")
    assert (wrong.color, wrong.window) == (None, Window(1, 9, 1, 9))
    assert (found.omero.default_z, found.omero.default_t, found.omero.model) == (3, 0, "color")
    assert len(found.problems) == 3


def test_of_repeated_label_colors_the_last_counts() -> None:
    found = parse(
        {
            "image-label": {
                "colors": [
                    {"label-value": 1, "rgba": [1, 2, 3, 4]},
                    {"label-value": 1, "rgba": [5, 6, 7, 8]},
                    {"label-value": 2, "rgba": [9, 9, 9]},
                    {"label-value": 3, "rgba": [0, 0, 300, 0]},
                    {"label-value": 4},
                ],
                "properties": [{"label-value": 1, "class": "cell"}, {"class": "lost"}],
                "source": {"image": "../.."},
            }
        }
    ).image_label
    assert found is not None
    assert found.colors == {1: (5, 6, 7, 8), 2: (9, 9, 9, 255)}
    assert found.properties == {1: {"class": "cell"}}
    assert found.source == "../.."
    other = parse({"image-label": {"version": "0.4"}}).image_label
    assert other is not None
    assert other.source == "../../"


def test_plates_with_and_without_indices() -> None:
    plate = {
        "name": "screen",
        "rows": [{"name": "A"}, {"name": "B"}],
        "columns": [{"name": "1"}, {"name": "2"}],
        "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}, {"path": "B/2"}, {"path": "C/7"}],
        "acquisitions": [{"id": 1, "name": "first"}, {"id": 2}],
        "field_count": 4,
    }
    found = parse({"plate": plate}).plate
    assert found is not None
    assert found.rows == ("A", "B", "C")
    assert found.columns == ("1", "2", "7")
    assert found.wells == (PlateWell("A/1", 0, 0), PlateWell("B/2", 1, 1), PlateWell("C/7", 2, 2))
    assert found.acquisitions == {1: "first", 2: "acquisition 2"}
    assert found.field_count == 4


def test_a_well_index_that_points_nowhere_is_noted_and_the_path_counts() -> None:
    plate = {"rows": [{"name": "A"}], "columns": [{"name": "1"}], "wells": [{"path": "A/1", "rowIndex": 9}]}
    found = parse({"plate": plate})
    assert found.plate is not None
    assert found.plate.wells == (PlateWell("A/1", 0, 0),)
    assert "found 9" in found.problems[0]


def test_drafts_are_recognised() -> None:
    draft = {
        "ome": {
            "version": "0.6.dev3",
            "multiscales": [
                {
                    "coordinateSystems": [{"name": "world", "axes": [{"name": "y"}, {"name": "x"}]}],
                    "datasets": [
                        {
                            "path": "0",
                            "coordinateTransformations": [
                                {
                                    "type": "sequence",
                                    "input": "0",
                                    "output": "world",
                                    "transformations": [
                                        {"type": "scale", "scale": [2, 2]},
                                        {"type": "rotation", "rotation": [[0, 1], [1, 0]]},
                                    ],
                                }
                            ],
                        }
                    ],
                }
            ],
        }
    }
    found = parse(draft)
    assert found.draft == ("multiscales/coordinateSystems",)
    assert found.version == "0.6.dev3"
    (multiscales,) = found.multiscales
    assert [axis.name for axis in multiscales.axes] == ["y", "x"]
    assert multiscales.levels[0].scale == (2, 2)
    assert any("rotation" in problem for problem in found.problems)
    assert parse({"ome": {"version": "0.6", "scene": {}}}).draft == ("scene",)


def test_no_metadata_is_false() -> None:
    assert not parse({})
    assert not parse({"ome": "text", "multiscale": 1, "labels": "not a list"})
    assert parse(V04)


class Node(dict[str, Any]):
    def __init__(self, attrs: dict[str, Any], **members: Any) -> None:
        super().__init__(members)
        self.attrs = attrs


def test_series_are_listed_or_counted() -> None:
    image = Node(V04)
    listed = Node({"bioformats2raw.layout": 3}, OME=Node({"series": ["1", "0"]}), **{"0": image, "1": image})
    assert load(listed).series == ("1", "0")
    counted = Node({"bioformats2raw.layout": 3}, **{"0": image, "1": image, "3": image})
    assert load(counted).series == ("0", "1")
    assert load(Node({"bioformats2raw.layout": 3})).series == ()
    assert load(image).series is None


def test_a_plate_wins_over_the_layout_of_bioformats2raw() -> None:
    found = load(Node({"bioformats2raw.layout": 3, "plate": {"wells": []}}, **{"0": Node({})}))
    assert found.plate is not None
    assert found.series == ()


KEYS = st.sampled_from(
    [
        "ome",
        "version",
        "multiscales",
        "axes",
        "datasets",
        "path",
        "coordinateTransformations",
        "type",
        "scale",
        "translation",
        "name",
        "unit",
        "omero",
        "channels",
        "window",
        "start",
        "end",
        "min",
        "max",
        "color",
        "label",
        "active",
        "rdefs",
        "labels",
        "image-label",
        "colors",
        "label-value",
        "rgba",
        "properties",
        "source",
        "image",
        "plate",
        "rows",
        "columns",
        "wells",
        "rowIndex",
        "acquisitions",
        "id",
        "well",
        "images",
        "series",
        "bioformats2raw.layout",
        "coordinateSystems",
        "transformations",
        "scene",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["scale", "translation", "sequence", "0.4", "0.5", "x", "", "A/1", "FF0000"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=40,
)


@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_no_document_makes_it_raise(attributes: dict[str, Any]) -> None:
    assert isinstance(parse(attributes), Ngff)
