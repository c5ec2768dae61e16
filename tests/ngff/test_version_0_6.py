"""OME-Zarr 0.6rc0: documents with each violation, the documents of the specification, and composed matrices."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from tests.ngff.test_checks import pointer_exists
from tests.ngff.test_coordinate_graphs import (
    TILES,
    WORLD,
    YX,
    bad_scene,
    edge,
    image,
    reference,
    scene_store,
    stitched,
)
from zarrfs.cli.check import command
from zarrfs.ngff import Report, check_attributes, check_node, compose, coordinate_graph, parse
from zarrfs.ngff.model import Multiscales, SystemReference

pytest.importorskip("yaozarrs", reason="the model library of the schema tier is not installed")

EDGES = "/ome/multiscales/0/coordinateTransformations"
LEVEL = "/ome/multiscales/0/datasets/0/coordinateTransformations/0"


def with_edge(kind: str, **members: Any) -> dict[str, Any]:
    return image([WORLD], [edge(kind, {"name": "physical"}, {"name": "world"}, **members)])


def changed(document: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """Return a copy of a document with another value at a place; None removes it."""
    document = copy.deepcopy(document)
    *parts, last = place.strip("/").split("/")
    target: Any = document
    for part in parts:
        target = target[int(part)] if isinstance(target, list) else target[part]
    if value is None:
        del target[last]
    else:
        target[int(last) if isinstance(target, list) else last] = value
    return document


VALID = {
    "image": image(),
    "scene": stitched(),
    "identity": with_edge("identity"),
    "mapAxis": with_edge("mapAxis", mapAxis=[1, 0]),
    "affine": with_edge("affine", affine=[[1, 2, 3], [4, 5, 6]]),
    "affine in an array": with_edge("affine", path="m"),
    "rotation": with_edge("rotation", rotation=[[0, -1], [1, 0]]),
    "field": with_edge("displacements", path="f", interpolation="bspline-cubic"),
    "bijection": with_edge(
        "bijection",
        forward={"type": "scale", "scale": [2, 4]},
        inverse={"type": "scale", "scale": [0.5, 0.25]},
    ),
    "byDimension": with_edge(
        "byDimension",
        transformations=[
            {"transformation": {"type": "scale", "scale": [2]}, "inputAxes": [1], "outputAxes": [0]},
            {"transformation": {"type": "identity"}, "inputAxes": [0], "outputAxes": [1]},
        ],
    ),
    "plate": {
        "version": "0.6rc0",
        "plate": {
            "rows": [{"name": "A"}],
            "columns": [{"name": "1"}],
            "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}],
        },
    },
    "well": {"version": "0.6rc0", "well": {"images": [{"path": "0"}]}},
    "labels": {"version": "0.6rc0", "labels": ["a"]},
}

FIRST = "multiscales/0/datasets/0/coordinateTransformations/0"
OUTER = "multiscales/0/coordinateTransformations/0"
INVALID: list[tuple[dict[str, Any], str, str]] = [
    (changed(image(), "version", "0.6"), "/ome/version", "expected version '0.6rc0', found '0.6'"),
    ({"version": "0.6rc0"}, "/ome", "expected one of the members multiscales"),
    (changed(image(), "multiscales/0/coordinateSystems", None), "/ome/multiscales/0", "is missing"),
    (changed(image(), "multiscales/0/coordinateSystems/0/name", ""), "name", "a non-empty string"),
    (changed(image(), "multiscales/0/coordinateSystems/0/axes/0/name", None), "axes/0", "'name' is missing"),
    (changed(image(), "multiscales/0/coordinateSystems/0/axes/0/discrete", 1), "discrete", "true or false"),
    (changed(image(), "multiscales/0/coordinateSystems/0/axes/0/type", "a"), "axes", "two or three axes"),
    (changed(image(), f"{FIRST}/input", "s0"), f"{LEVEL}/input", "expected an object, found 's0'"),
    (changed(image(), f"{FIRST}/input/path", None), f"{LEVEL}/input", "'path' is missing"),
    (changed(image(), f"{FIRST}/output/name", None), f"{LEVEL}/output", "'name' is missing"),
    (changed(image(), f"{FIRST}/type", "affine"), f"{LEVEL}/type", "of a level must be a scale"),
    (
        changed(image(), f"{FIRST}/transformations/1/type", "rotation"),
        f"{LEVEL}/transformations",
        "a scale and a translation",
    ),
    (changed(image(), f"{FIRST}/transformations/0/scale", [0, 1]), "scale/0", "a number above 0, found 0"),
    (changed(VALID["affine"], f"{OUTER}/type", "magic"), f"{EDGES}/0/type", "expected one of identity"),
    (changed(VALID["affine"], f"{OUTER}/affine", None), f"{EDGES}/0", "either 'affine' or 'path'"),
    (changed(VALID["affine"], f"{OUTER}/path", "x"), f"{EDGES}/0", "found both"),
    (changed(VALID["affine"], f"{OUTER}/affine/1", ["1"]), f"{EDGES}/0/affine/1", "a list of numbers"),
    (
        changed(VALID["affine"], f"{OUTER}/affine/1/0", float("nan")),
        f"{EDGES}/0/affine/1",
        "a list of numbers",
    ),
    (
        changed(VALID["rotation"], f"{OUTER}/rotation", [[1, 0, 0], [0, 1, 0]]),
        "rotation/0",
        "a square matrix",
    ),
    (changed(VALID["mapAxis"], f"{OUTER}/mapAxis", [0, 0]), "mapAxis", "must be distinct"),
    (changed(VALID["mapAxis"], f"{OUTER}/mapAxis", [0, 5]), "mapAxis/1", "an integer from 0 to 4"),
    (with_edge("projectAxis"), f"{EDGES}/0", "'droppedInputs' or 'createdOutputs' is missing"),
    (with_edge("projectAxis", droppedInputs=[]), "droppedInputs", "expected 1 to 3 items"),
    (changed(VALID["bijection"], f"{OUTER}/inverse", None), f"{EDGES}/0", "'inverse' is missing"),
    (changed(VALID["bijection"], f"{OUTER}/forward", {"type": "scale"}), "forward", "'scale' is missing"),
    (
        changed(VALID["byDimension"], f"{OUTER}/transformations/0/inputAxes", ["x"]),
        "inputAxes/0",
        "an integer",
    ),
    (changed(VALID["field"], f"{OUTER}/interpolation", "best"), "interpolation", "expected one of nearest"),
    (changed(VALID["field"], f"{OUTER}/input", None), f"{EDGES}/0", "'input' is missing"),
    (changed(stitched(), "scene/coordinateTransformations", None), "/ome/scene", "is missing"),
    (bad_scene(output="world"), "/ome/scene/coordinateTransformations/1/output", "expected an object"),
    (bad_scene(input={"path": "t1", "name": "a", "x": 1}), "1/input", "unknown members: 'x'"),
    (changed(VALID["plate"], "plate/rows/0/name", "A-1"), "rows/0/name", "letters and digits"),
    (changed(VALID["plate"], "plate/wells/0/path", "A"), "wells/0/path", "the name of a row"),
    (changed(VALID["well"], "well/images/0/path", "__a"), "images/0/path", "not reserved"),
]


@pytest.mark.parametrize("name", VALID)
def test_valid_documents(name: str) -> None:
    report = check_attributes({"ome": VALID[name]})
    assert (report.valid, report.version) == (True, "0.6rc0"), report.messages
    assert all(message.tier == "strict" for message in report.messages), report.messages


@pytest.mark.parametrize(("document", "place", "text"), INVALID)
def test_invalid_documents(document: dict[str, Any], place: str, text: str) -> None:
    report = check_attributes({"ome": document})
    assert not report.valid
    found = [message for message in report.messages if message.tier == "schema"]
    assert any(message.pointer.endswith(place) and text in message.message for message in found), found
    for message in report.messages:
        assert pointer_exists({"ome": document}, message.pointer), message


AFFINE = VALID["affine"]
MILLIMETERS = {"name": "world", "axes": [{**axis, "unit": "millimeter"} for axis in YX]}
DISCRETE = {"name": "world", "axes": [{**axis, "discrete": True} for axis in YX]}
CONTINUOUS = {"name": "physical", "axes": [{**axis, "discrete": False} for axis in YX]}


@pytest.mark.parametrize(
    ("document", "place", "text"),
    [
        (changed(AFFINE, f"{OUTER}/affine", [[1, 2, 3], [2, 4, 6]]), f"{EDGES}/0", "the matrix is singular"),
        (changed(AFFINE, f"{OUTER}/affine", [[1, 2], [2, 4]]), f"{EDGES}/0", "its matrix have 2 numbers"),
        (changed(AFFINE, f"{OUTER}/output/name", "none"), f"{EDGES}/0", "'none' does not exist"),
        (changed(AFFINE, f"{OUTER}/input/name", "world"), f"{EDGES}/0", "are the same coordinate system"),
        (changed(VALID["rotation"], f"{OUTER}/rotation", [[0, 1], [1, 0]]), f"{EDGES}/0", "orthonormal"),
        (
            changed(VALID["bijection"], f"{OUTER}/inverse/scale", [2, 4]),
            f"{EDGES}/0",
            "are not inverse functions",
        ),
        (image([WORLD]), "/ome/multiscales", "no transformation connects the coordinate system 'world'"),
        (image([WORLD, WORLD]), "coordinateSystems/2/name", "'world' occurs more than once"),
        (image([{"name": "physical", "axes": YX}]), "coordinateSystems/1/name", "'physical' occurs more"),
        (changed(image(), f"{FIRST}/output/name", "other"), f"{LEVEL}/output/name", "'other' does not exist"),
        (
            changed(image(), f"{FIRST}/input/path", "s1"),
            f"{LEVEL}/input/path",
            "must be the path of the level",
        ),
        (
            image([MILLIMETERS], [edge("identity", {"name": "physical"}, {"name": "world"})]),
            f"{EDGES}/0",
            "expected the factor 0.001, found 1",
        ),
        (
            changed(
                image([DISCRETE], [edge("identity", {"name": "physical"}, {"name": "world"})]),
                "multiscales/0/coordinateSystems/0",
                CONTINUOUS,
            ),
            f"{EDGES}/0",
            "the discrete axis 'y' depends on 'y'",
        ),
        (
            image(
                [WORLD], [edge("affine", {"name": "physical"}, {"name": "b", "path": "labels/a"}, path="m")]
            ),
            f"{EDGES}/0/type",
            "between an image and its label image must be an identity",
        ),
        (
            changed(image(), f"{FIRST}/transformations/1/translation", [1]),
            "translation",
            "one per axis, found 1",
        ),
        (
            changed(image(), "multiscales/0/coordinateSystems/0/axes/0/unit", "micron"),
            "unit",
            "not a UDUNITS",
        ),
    ],
)
def test_the_meaning_of_documents_is_checked(document: dict[str, Any], place: str, text: str) -> None:
    report = check_attributes({"ome": document})
    assert report.valid, "the schema has no rule for it"
    found = [message for message in report.messages if message.pointer.endswith(place)]
    assert any(text in message.message for message in found), report.messages
    for message in report.messages:
        assert pointer_exists({"ome": document}, message.pointer), message


def test_levels_with_their_translation_before_their_scale_are_reported() -> None:
    document = image()
    document["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["transformations"].reverse()
    messages = [message.message for message in check_attributes({"ome": document}).messages]
    assert "the translation must come after the scale" in messages


def check_of_scene(scene: dict[str, Any]) -> Report:
    return check_node(zarrfs.open(scene_store(scene, TILES)))


def test_a_scene_with_its_images_is_valid() -> None:
    report = check_of_scene(stitched(2))
    assert (report.valid, report.messages) == (True, ())


@pytest.mark.parametrize(
    ("members", "place", "text"),
    [
        ({"input": {"path": "missing", "name": "physical"}}, "1/input/path", "'missing' cannot be read"),
        ({"input": {"path": "t1", "name": "none"}}, "1", "'none' of 't1' does not exist"),
        ({"input": {"path": "../t1", "name": "physical"}}, "1", "leaves the hierarchy"),
        ({"translation": [1, 2, 3]}, "1", "it has 3 numbers, but its input has 2 axes"),
        ({"type": "affine", "translation": 0, "path": "t1/s0"}, "1", "the rows of its matrix have 5 numbers"),
        ({"input": {"path": "t0", "name": "physical"}}, "1", "contradict each other"),
    ],
)
def test_transformations_of_a_scene_that_cannot_be_used_are_errors(
    members: dict[str, Any], place: str, text: str
) -> None:
    report = check_of_scene(bad_scene(**members))
    assert not report.valid
    place = f"/ome/scene/coordinateTransformations/{place}"
    assert any(m.is_error and m.pointer == place and text in m.message for m in report.messages), (
        report.messages
    )


def test_the_command_states_the_version_and_counts_messages(tmp_path: Any) -> None:
    document = image([WORLD])
    root = zarrfs.create_group(str(tmp_path / "a.zarr"), attributes={"ome": document})
    root.create_array("s0", data=np.zeros((4, 5), "uint8"), dimension_names=("y", "x"))
    runner = CliRunner()
    result = runner.invoke(command, [str(tmp_path / "a.zarr")])
    assert result.exit_code == 0
    assert result.output.startswith("OME-NGFF 0.6rc0: valid, 5 warnings\n")
    strict = runner.invoke(command, [str(tmp_path / "a.zarr"), "--strict"])
    assert strict.exit_code == 1
    assert strict.output.startswith("OME-NGFF 0.6rc0: NOT valid, 5 warnings\n")


# -- the documents of the specification ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def specification(shared_specifications: Path) -> Path:
    directory = shared_specifications / "ome-zarr-0.6rc0"
    if not directory.is_dir():
        pytest.skip(f"{directory} does not exist")
    return directory


def test_the_documents_of_the_specification_are_accepted_and_refused(specification: Path) -> None:
    counts = {True: 0, False: 0}
    for path in sorted((specification / "tests").rglob("*.json")):
        if path.name != "zarr.json":
            attributes = json.loads(path.read_text(encoding="utf-8"))
        else:
            try:
                attributes = json.loads(path.read_text(encoding="utf-8"))["attributes"]
            except json.JSONDecodeError:
                assert "invalid" in path.parts  # two are not valid JSON
                counts[False] += 1
                continue
        valid = "valid" in path.parts
        attributes.pop("_conformance", None)
        if valid and path.name == "zarr.json" and has_string_references(attributes):
            # Ten documents of an earlier draft, which the schemas of 0.6rc0 refuse, too.
            valid = False
        report = check_attributes(attributes)
        if "strict" in path.parts and not valid and report.valid:
            assert any(message.tier == "strict" for message in report.messages), path
        else:
            assert report.valid == valid, (path, report.messages)
        counts[valid] += 1
        for message in report.messages:
            assert pointer_exists(attributes, message.pointer), (path, message)
    assert counts == {True: 48, False: 180}


def has_string_references(attributes: dict[str, Any]) -> bool:
    images = attributes["ome"].get("multiscales", [])
    return any(
        isinstance(step.get("input"), str)
        for item in images
        for dataset in item["datasets"]
        for step in dataset["coordinateTransformations"]
    )


def examples(specification: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((specification / "examples").rglob("*.json")):
        text = path.read_text(encoding="utf-8")
        if path.name != ".config.json":
            text = re.sub(r"(?m)^\s*//.*$|(?<=[\s,{\[])//[^\n\"]*$", "", text)
            yield str(path.relative_to(specification / "examples")), json.loads(text)


def test_the_examples_of_the_specification_are_accepted(specification: Path) -> None:
    count = 0
    for name, document in examples(specification):
        attributes = document.get("attributes", document)
        if isinstance(attributes.get("ome"), dict):
            report = check_attributes(attributes)
            assert report.valid, (name, report.messages)
            count += 1
    assert count == 15


def rows_by_hand(step: dict[str, Any], rank: int) -> Any:
    """Return the homogeneous matrix of a transformation as the specification defines it, None if it has none."""
    kind = step["type"]
    matrix = np.eye(rank + 1)
    if kind == "scale":
        matrix = np.diag([*step["scale"], 1.0])
    elif kind == "translation":
        matrix[:-1, -1] = step["translation"]
    elif kind == "mapAxis":
        matrix = np.eye(rank + 1)[[*step["mapAxis"], rank]]
    elif kind == "affine" and "affine" in step:
        matrix = np.vstack([step["affine"], np.eye(rank + 1)[-1]])
    elif kind == "rotation" and "rotation" in step:
        matrix[:-1, :-1] = step["rotation"]
    elif kind == "projectAxis":
        columns = [i for i in range(rank + 1) if i not in step.get("droppedInputs", [])]
        matrix = np.eye(rank + 1)[columns]
        for index in sorted(step.get("createdOutputs", [])):
            matrix = np.insert(matrix, index, 0, axis=0)
    elif kind == "sequence":
        for part in step["transformations"]:
            block = rows_by_hand(part, len(matrix) - 1)
            if block is None:
                return None
            matrix = block @ matrix
    elif kind == "byDimension":
        parts = step["transformations"]
        size = sum(len(part["outputAxes"]) for part in parts)
        matrix = np.zeros((size + 1, rank + 1))
        matrix[-1, -1] = 1
        for part in parts:
            block = rows_by_hand(part.get("transformation", part), len(part["inputAxes"]))
            if block is None:
                return None
            for i, output in enumerate(part["outputAxes"]):
                matrix[output, [*part["inputAxes"], rank]] = block[i]
    elif kind == "bijection":
        return rows_by_hand(step["forward"], rank)
    elif kind != "identity":
        return None
    return matrix


def test_the_composed_matrices_of_the_examples(specification: Path) -> None:
    """Each transformation of the examples, from the indices of level 0 where there is one."""
    names = []
    for name, document in examples(specification):
        if name.startswith("transformations/byDimensionInvalid") or "coordinateSystems" not in str(document):
            continue
        attributes = document.get("attributes", document)
        if isinstance(attributes.get("ome"), dict):
            model = parse(attributes)
            graph = coordinate_graph([("", item) for item in model.multiscales], model.scene)
            stored = attributes["ome"].get("multiscales", [])
        elif "multiscales" in document:
            model = parse({"multiscales": document["multiscales"]})
            graph = coordinate_graph([("", item) for item in model.multiscales])
            stored = document["multiscales"]
        else:
            item = {**document, "datasets": [{"path": "none"}]}
            model = parse({"ome": {"multiscales": [item]}})
            graph = coordinate_graph([("", without_levels(model.multiscales[0]))])
            stored = [item]
        for item in stored:
            for step in item.get("coordinateTransformations", []):
                source, target = step["input"], step["output"]
                if not isinstance(source, dict) or not isinstance(target, dict) or "path" in target:
                    continue
                rank = next(len(s["axes"]) for s in item["coordinateSystems"] if s["name"] == source["name"])
                expected = rows_by_hand(step, rank)
                if expected is None:
                    continue
                found = compose(graph, reference(source["name"]), reference(target["name"])).matrix
                np.testing.assert_allclose(found, expected[:-1], err_msg=name)
                names.append(name)
                for dataset in item["datasets"]:
                    inner = dataset.get("coordinateTransformations")
                    if inner and inner[0]["output"] == source:
                        level = SystemReference(dataset["path"])
                        both = compose(graph, level, reference(target["name"])).matrix
                        product = expected @ rows_by_hand(inner[0], rank)
                        np.testing.assert_allclose(both, product[:-1], err_msg=name)
                        names.append(f"{name} {dataset['path']}")
    assert len(names) >= 18, names


def without_levels(item: Multiscales) -> Multiscales:
    return Multiscales(
        item.name,
        item.axes,
        (),
        system_name=item.system_name,
        other_systems=item.other_systems,
        transformations=item.transformations,
    )
