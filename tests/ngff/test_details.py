"""Details of parsing and checking that larger documents do not reach: the order of steps, bounds, equal values."""

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
def test_steps_are_applied_in_turn(steps: list[Any], expected: Any) -> None:
    found = level(*steps)
    assert (found.scale, found.translation) == expected


def window(**values: float) -> Any:
    return {"omero": {"channels": [{"color": "FF0000", "window": values}]}}


def test_a_window_that_shows_one_value_is_kept_as_it_is() -> None:
    found = parse(window(start=5, end=5, min=0, max=9))
    assert found.problems == ()
    assert found.omero is not None
    assert found.omero.channels[0].window is not None
    assert (found.omero.channels[0].window.start, found.omero.channels[0].window.end) == (5, 5)


def test_what_is_possible_includes_what_is_shown() -> None:
    found = parse(window(start=2, end=20, min=5, max=9)).omero
    assert found is not None
    assert found.channels[0].window is not None
    assert (found.channels[0].window.min, found.channels[0].window.max) == (2, 20)


def test_the_index_of_a_well_counts_before_its_path() -> None:
    rows = [{"name": "A"}, {"name": "B"}]
    wells = [
        {"path": "X/1", "rowIndex": 0, "columnIndex": 0},
        {"path": "B/1", "rowIndex": 1, "columnIndex": 0},
    ]
    found = parse({"plate": {"rows": rows, "columns": [{"name": "1"}], "wells": wells}})
    assert found.problems == ()
    assert found.plate is not None
    assert [(well.row, well.column) for well in found.plate.wells] == [(0, 0), (1, 0)]
    assert found.plate.rows == ("A", "B")


def test_of_repeated_rows_the_first_counts() -> None:
    rows = [{"name": "A"}, {"name": "A"}]
    found = parse({"plate": {"rows": rows, "columns": [{"name": "1"}], "wells": [{"path": "A/1"}]}}).plate
    assert found is not None
    assert found.wells[0].row == 0


def test_labels_that_are_no_whole_numbers_are_left_out_and_noted() -> None:
    found = parse({"image-label": {"colors": [{"label-value": 1.5, "rgba": [1, 2, 3, 4]}]}})
    assert found.image_label is not None
    assert found.image_label.colors == {}
    assert found.problems == (
        "/image-label/colors/0/label-value: expected a whole number, found 1.5: left out",
    )


def image(steps: list[Any], **dataset: Any) -> dict[str, Any]:
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    entry = {"path": "0", "coordinateTransformations": steps, **dataset}
    return {"multiscales": [{"version": "0.4", "axes": axes, "datasets": [entry]}]}


def semantic(attributes: dict[str, Any]) -> list[str]:
    return [m.message for m in check_attributes(attributes).messages if m.tier == "semantic"]


@pytest.mark.parametrize("number", [0, -1, -0.5])
def test_scales_are_above_zero(number: float) -> None:
    pytest.importorskip("yaozarrs")
    assert semantic(image([scale(1, number)])) == [f"a scale must be above 0, found [1, {number}]"]
    assert semantic(image([scale(1, 1e-9)])) == []


@pytest.mark.parametrize(
    ("path", "out"), [("a..b", False), ("..", True), ("a/../b", True), ("/a", True), ("a/b", False)]
)
def test_paths_stay_in_their_group(path: str, out: bool) -> None:
    pytest.importorskip("yaozarrs")
    assert any("leads out" in message for message in semantic(image([scale(1, 1)], path=path))) == out


@pytest.mark.parametrize(("names", "differ"), [(["y", "x"], False), (["x", "y"], True), (None, False)])
def test_names_of_dimensions_are_those_of_the_axes(names: list[str] | None, differ: bool) -> None:
    pytest.importorskip("yaozarrs")
    store: dict[str, bytes] = {}
    multiscales = image([scale(1, 1)])["multiscales"]
    del multiscales[0]["version"]
    group = zarrfs.create_group(store, attributes={"ome": {"version": "0.5", "multiscales": multiscales}})
    group.create_array("0", shape=(4, 4), dtype="u1", dimension_names=names)
    found = [message.message for message in check_node(zarrfs.open(store)).messages]
    assert any("dimension names" in message for message in found) == differ
