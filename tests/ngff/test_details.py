"""Details of parsing and checking: the order of transformations, bounds, and equal values."""

from __future__ import annotations

from typing import Any

import pytest

import zarrfs
from zarrfs.ngff import Level, check_attributes, check_node, parse


def scale(*numbers: Any) -> dict[str, Any]:
    return {"type": "scale", "scale": list(numbers)}


def translation(*numbers: Any) -> dict[str, Any]:
    return {"type": "translation", "translation": list(numbers)}


def sequence(*steps: Any) -> dict[str, Any]:
    return {"type": "sequence", "transformations": list(steps)}


def level(*steps: Any) -> Level:
    dataset = {"path": "0", "coordinateTransformations": list(steps)}
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    return parse({"multiscales": [{"axes": axes, "datasets": [dataset]}]}).multiscales[0].levels[0]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([translation(1, 2), scale(2, 3)], ((2, 3), (2, 6))),
        ([scale(2, 3), translation(1, 2)], ((2, 3), (1, 2))),
        ([scale("a", 1), translation(1, 2)], ((1, 1), (1, 2))),
        ([sequence(sequence(scale(2, 2)), translation(1, 1))], ((2, 2), (1, 1))),
        ([sequence(sequence(sequence(scale(2, 2))))], ((2, 2), (0, 0))),
    ],
)
def test_transformations_are_applied_in_order(steps: list[Any], expected: Any) -> None:
    parsed = level(*steps)
    assert (parsed.scale, parsed.translation) == expected


def window(**values: float) -> Any:
    return {"omero": {"channels": [{"color": "FF0000", "window": values}]}}


def test_a_window_of_one_value_is_valid() -> None:
    parsed = parse(window(start=5, end=5, min=0, max=9))
    assert parsed.problems == ()
    assert parsed.omero is not None
    assert parsed.omero.channels[0].window is not None
    assert (parsed.omero.channels[0].window.start, parsed.omero.channels[0].window.end) == (5, 5)


def test_the_range_of_a_window_includes_its_limits() -> None:
    parsed = parse(window(start=2, end=20, min=5, max=9)).omero
    assert parsed is not None
    assert parsed.channels[0].window is not None
    assert (parsed.channels[0].window.min, parsed.channels[0].window.max) == (2, 20)


def test_the_index_of_a_well_has_precedence_over_its_path() -> None:
    rows = [{"name": "A"}, {"name": "B"}]
    wells = [
        {"path": "X/1", "rowIndex": 0, "columnIndex": 0},
        {"path": "B/1", "rowIndex": 1, "columnIndex": 0},
    ]
    parsed = parse({"plate": {"rows": rows, "columns": [{"name": "1"}], "wells": wells}})
    assert parsed.problems == ()
    assert parsed.plate is not None
    assert [(well.row, well.column) for well in parsed.plate.wells] == [(0, 0), (1, 0)]
    assert parsed.plate.rows == ("A", "B")


def test_of_repeated_rows_the_first_is_used() -> None:
    rows = [{"name": "A"}, {"name": "A"}]
    parsed = parse({"plate": {"rows": rows, "columns": [{"name": "1"}], "wells": [{"path": "A/1"}]}}).plate
    assert parsed is not None
    assert parsed.wells[0].row == 0


def test_label_values_that_are_not_integers_are_ignored() -> None:
    parsed = parse({"image-label": {"colors": [{"label-value": 1.5, "rgba": [1, 2, 3, 4]}]}})
    assert parsed.image_label is not None
    assert parsed.image_label.colors == {}
    assert parsed.problems == ("/image-label/colors/0/label-value: expected an integer, found 1.5: ignored",)


def image(steps: list[Any], **dataset: Any) -> dict[str, Any]:
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    entry = {"path": "0", "coordinateTransformations": steps, **dataset}
    return {"multiscales": [{"version": "0.4", "axes": axes, "datasets": [entry]}]}


def semantic(attributes: dict[str, Any]) -> list[str]:
    return [m.message for m in check_attributes(attributes).messages if m.tier == "semantic"]


@pytest.mark.parametrize("number", [0, -1, -0.5])
def test_scale_factors_must_be_positive(number: float) -> None:
    pytest.importorskip("yaozarrs")
    assert semantic(image([scale(1, number)])) == [f"scale factors must be positive, found [1, {number}]"]
    assert semantic(image([scale(1, 1e-9)])) == []


@pytest.mark.parametrize(
    ("path", "out"), [("a..b", False), ("..", True), ("a/../b", True), ("/a", True), ("a/b", False)]
)
def test_paths_outside_the_group_are_reported(path: str, out: bool) -> None:
    pytest.importorskip("yaozarrs")
    assert any("points outside" in message for message in semantic(image([scale(1, 1)], path=path))) == out


@pytest.mark.parametrize(("names", "differ"), [(["y", "x"], False), (["x", "y"], True), (None, False)])
def test_dimension_names_must_match_the_axes(names: list[str] | None, differ: bool) -> None:
    pytest.importorskip("yaozarrs")
    store: dict[str, bytes] = {}
    multiscales = image([scale(1, 1)])["multiscales"]
    del multiscales[0]["version"]
    group = zarrfs.create_group(store, attributes={"ome": {"version": "0.5", "multiscales": multiscales}})
    group.create_array("0", shape=(4, 4), dtype="u1", dimension_names=names)
    parsed = [message.message for message in check_node(zarrfs.open(store)).messages]
    assert any("dimension names" in message for message in parsed) == differ
