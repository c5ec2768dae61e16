"""Documents of all versions are parsed to one model; invalid documents do not raise."""

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
def test_images_of_0_4_and_0_5_have_equal_models(attributes: dict[str, Any]) -> None:
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


def test_the_version_is_read_from_its_place_in_each_version() -> None:
    assert parse(V04).version == "0.4"
    assert parse(with_version_05(V04)).version == "0.5"
    assert parse({"plate": {"version": "0.2"}}).version == "0.2"
    assert parse({"well": {"version": "0.3"}}).version == "0.3"
    assert parse({"multiscales": [{"datasets": [{"path": "0"}]}]}).version is None


def test_old_axes_are_names_or_missing() -> None:
    old = {"multiscales": [{"version": "0.3", "axes": ["t", "y", "x"], "datasets": [{"path": "0"}]}]}
    (multiscales,) = parse(old).multiscales
    assert multiscales.axes == (Axis("t", "time"), Axis("y", "space"), Axis("x", "space"))
    assert multiscales.levels == (Level("0"),)
    oldest = {"multiscales": [{"version": "0.1", "datasets": [{"path": "0"}, {"path": "1"}]}]}
    assert parse(oldest).multiscales[0].axes == ()


def test_transformations_of_the_image_are_applied_after_those_of_a_level() -> None:
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
        ([{"type": "affine", "affine": []}], "'affine' is not supported"),
        ("nonsense", "expected a list"),
    ],
)
def test_an_invalid_transformation_is_ignored_and_recorded(transformations: Any, problem: str) -> None:
    document = {
        "multiscales": [
            {
                "axes": [{"name": "y"}, {"name": "x"}],
                "datasets": [{"path": "0", "coordinateTransformations": transformations}],
            }
        ]
    }
    parsed = parse(document)
    assert parsed.multiscales[0].levels == (Level("0"),)
    assert problem in parsed.problems[0]
    assert parsed.problems[0].startswith("/multiscales/0/datasets/0/coordinateTransformations")


def test_a_scale_of_zero_is_replaced_with_one() -> None:
    document = {
        "multiscales": [
            {"datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [0, 2]}]}]}
        ]
    }
    assert parse(document).multiscales[0].levels[0].scale == (1, 2)


def test_all_members_of_channels_are_optional() -> None:
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
    parsed = parse({**V04, "omero": omero})
    assert parsed.omero is not None
    dapi, nothing, odd, wrong = parsed.omero.channels
    assert (dapi.label, dapi.color, dapi.active, dapi.inverted) == ("DAPI", (0, 255, 128), False, True)
    assert dapi.window == Window(1, 9, 0, 255)
    assert (nothing.color, nothing.window, nothing.active, nothing.label) == (None, None, True, None)
    assert (odd.color, odd.window, odd.label) == ((0x11, 0x22, 0x33), Window(2, 5, 2, 5), "7")
    assert (wrong.color, wrong.window) == (None, Window(1, 9, 1, 9))
    assert (parsed.omero.default_z, parsed.omero.default_t, parsed.omero.model) == (3, 0, "color")
    assert len(parsed.problems) == 3


def test_of_repeated_label_colors_the_last_is_used() -> None:
    parsed = parse(
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
    assert parsed is not None
    assert parsed.colors == {1: (5, 6, 7, 8), 2: (9, 9, 9, 255)}
    assert parsed.properties == {1: {"class": "cell"}}
    assert parsed.source == "../.."
    other = parse({"image-label": {"version": "0.4"}}).image_label
    assert other is not None
    assert other.source == "../../"


def test_plates_are_parsed_with_and_without_indices() -> None:
    plate = {
        "name": "screen",
        "rows": [{"name": "A"}, {"name": "B"}],
        "columns": [{"name": "1"}, {"name": "2"}],
        "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}, {"path": "B/2"}, {"path": "C/7"}],
        "acquisitions": [{"id": 1, "name": "first"}, {"id": 2}],
        "field_count": 4,
    }
    parsed = parse({"plate": plate}).plate
    assert parsed is not None
    assert parsed.rows == ("A", "B", "C")
    assert parsed.columns == ("1", "2", "7")
    assert parsed.wells == (PlateWell("A/1", 0, 0), PlateWell("B/2", 1, 1), PlateWell("C/7", 2, 2))
    assert parsed.acquisitions == {1: "first", 2: "acquisition 2"}
    assert parsed.field_count == 4


def test_an_invalid_well_index_is_recorded_and_the_path_is_used() -> None:
    plate = {"rows": [{"name": "A"}], "columns": [{"name": "1"}], "wells": [{"path": "A/1", "rowIndex": 9}]}
    parsed = parse({"plate": plate})
    assert parsed.plate is not None
    assert parsed.plate.wells == (PlateWell("A/1", 0, 0),)
    assert "found 9" in parsed.problems[0]


def test_drafts_of_0_6_are_parsed_as_far_as_they_can_be() -> None:
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
    parsed = parse(draft)
    assert parsed.draft == ()
    assert parsed.version == "0.6.dev3"
    (multiscales,) = parsed.multiscales
    assert [axis.name for axis in multiscales.axes] == ["y", "x"]
    assert multiscales.levels[0].scale == (2, 2)
    assert (multiscales.system_name, multiscales.other_systems) == ("world", ())
    assert any("rotation" in problem for problem in parsed.problems)
    assert parse({"ome": {"version": "0.7", "collection": {}}}).draft == ("collection",)


@pytest.mark.parametrize(
    ("step", "scale", "translation", "unapplied"),
    [
        ({"type": "affine", "affine": [[2, 0, 5], [0, 3, 7]]}, (8, 12), (9, 28), ()),
        ({"type": "rotation", "rotation": [[1, 0], [0, -1]]}, (4, -4), (2, -7), ()),
        ({"type": "affine", "affine": [[2, 1, 5], [0, 3, 7]]}, (4, 4), (2, 7), ("affine",)),
        ({"type": "affine", "affine": [[0, 0, 5], [0, 3, 7]]}, (4, 4), (2, 7), ("affine",)),
        ({"type": "affine", "affine": [[2, 0], [0, 3]]}, (4, 4), (2, 7), ("affine",)),
        ({"type": "affine", "affine": "2"}, (4, 4), (2, 7), ("affine",)),
        ({"type": "rotation", "path": "r"}, (4, 4), (2, 7), ("rotation",)),
        ({"type": "rotation", "rotation": [[0, -1], [1, 0]]}, (4, 4), (2, 7), ("rotation",)),
        ({"type": "displacements", "path": "d"}, (4, 4), (2, 7), ("displacements",)),
        ({"type": "identity"}, (4, 4), (2, 7), ()),
    ],
)
def test_a_matrix_along_the_axes_is_applied_and_any_other_transformation_is_reported(
    step: dict[str, Any],
    scale: tuple[float, ...],
    translation: tuple[float, ...],
    unapplied: tuple[str, ...],
) -> None:
    first = [{"type": "scale", "scale": [4, 4]}, {"type": "translation", "translation": [2, 7]}]
    (multiscales,) = parse(
        {
            "multiscales": [
                {
                    "axes": [{"name": "y"}, {"name": "x"}],
                    "datasets": [{"path": "0", "coordinateTransformations": [*first, step]}],
                }
            ]
        }
    ).multiscales
    (level,) = multiscales.levels
    assert (level.scale, level.translation) == (scale, translation)
    assert multiscales.unapplied == unapplied


def test_missing_metadata_is_falsy() -> None:
    assert not parse({})
    assert not parse({"ome": "text", "multiscale": 1, "labels": "not a list"})
    assert parse(V04)


class Node(dict[str, Any]):
    def __init__(self, attrs: dict[str, Any], **members: Any) -> None:
        super().__init__(members)
        self.attrs = attrs


def test_series_are_read_from_a_list_or_counted() -> None:
    image = Node(V04)
    listed = Node({"bioformats2raw.layout": 3}, OME=Node({"series": ["1", "0"]}), **{"0": image, "1": image})
    assert load(listed).series == ("1", "0")
    counted = Node({"bioformats2raw.layout": 3}, **{"0": image, "1": image, "3": image})
    assert load(counted).series == ("0", "1")
    assert load(Node({"bioformats2raw.layout": 3})).series == ()
    assert load(image).series is None


def test_a_plate_has_precedence_over_bioformats2raw() -> None:
    parsed = load(Node({"bioformats2raw.layout": 3, "plate": {"wells": []}}, **{"0": Node({})}))
    assert parsed.plate is not None
    assert parsed.series == ()


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
def test_arbitrary_documents_do_not_raise(attributes: dict[str, Any]) -> None:
    assert isinstance(parse(attributes), Ngff)


def test_the_declared_type_of_an_axis_precedes_the_type_that_its_name_implies() -> None:
    axes = [{"name": "t", "type": "angle"}, {"name": "Y"}, {"name": "q"}]
    (image,) = parse(
        {"multiscales": [{"version": "0.4", "axes": axes, "datasets": [{"path": "0"}]}]}
    ).multiscales
    assert [axis.type for axis in image.axes] == ["angle", "space", None]


def test_sequences_of_transformations_are_applied_to_a_limited_depth() -> None:
    def level(depth: int) -> tuple[float, ...] | None:
        step: dict[str, Any] = {"type": "scale", "scale": [2, 3]}
        for _ in range(depth):
            step = {"type": "sequence", "transformations": [step]}
        axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
        datasets = [{"path": "0", "coordinateTransformations": [step]}]
        document = {"multiscales": [{"version": "0.4", "axes": axes, "datasets": datasets}]}
        return parse(document).multiscales[0].levels[0].scale

    assert [level(depth) for depth in (1, 4)] == [(2, 3), (2, 3)]
    assert level(5) != (2, 3)
