"""The graph of coordinate systems: paths, inverses, contradictions, and references that do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.ngff.test_transformations import square, transformations
from zarrfs.errors import MetadataError
from zarrfs.ngff import compose, coordinate_graph, load_graph, parse
from zarrfs.ngff.coordinate_graphs import CoordinateGraph, joined_path
from zarrfs.ngff.model import Axis, CoordinateSystem, CoordinateTransformation, SystemReference
from zarrfs.ngff.transformations import Sequence, Transformation, Translation


def reference(name: str, path: str = "") -> SystemReference:
    return SystemReference(path, name)


def graph_of(edges: list[tuple[str, str, Transformation]], rank: int = 2) -> CoordinateGraph:
    names = dict.fromkeys(name for edge in edges for name in edge[:2])
    axes = tuple(Axis(f"a{number}") for number in range(rank))
    return CoordinateGraph(
        {reference(name): CoordinateSystem(name, axes) for name in names},
        tuple(
            CoordinateTransformation(reference(one), reference(two), transformation)
            for one, two, transformation in edges
        ),
    )


@st.composite
def trees(draw: Any) -> tuple[CoordinateGraph, dict[str, Transformation], int]:
    """Return a random tree of systems, and the transformation from each of them to the first one."""
    rank = draw(st.integers(1, 3))
    to_root: dict[str, Transformation] = {"s0": Sequence(())}
    edges = []
    for number in range(1, draw(st.integers(2, 6))):
        parent = draw(st.sampled_from(sorted(to_root)))
        step = draw(transformations(rank))
        inverse = step.inverse()
        assert inverse is not None
        if draw(st.booleans()):
            edges.append((f"s{number}", parent, step))
            to_root[f"s{number}"] = Sequence((step, to_root[parent]))
        else:
            edges.append((parent, f"s{number}", step))
            to_root[f"s{number}"] = Sequence((inverse, to_root[parent]))
    return graph_of(draw(st.permutations(edges)), rank), to_root, rank


@given(trees(), st.data())
def test_transformations_of_random_graphs(drawn: Any, data: Any) -> None:
    graph, to_root, rank = drawn
    one, two, three = (data.draw(st.sampled_from(sorted(to_root))) for _ in range(3))
    forth = compose(graph, reference(one), reference(two))
    back = compose(graph, reference(two), reference(one))
    onward = compose(graph, reference(two), reference(three))
    whole = compose(graph, reference(one), reference(three))
    expected = np.linalg.inv(square(to_root[two], rank)) @ square(to_root[one], rank)
    np.testing.assert_allclose(square(forth.transformation, rank), expected, rtol=1e-6, atol=1e-5)
    product = square(back.transformation, rank) @ square(forth.transformation, rank)
    np.testing.assert_allclose(product, np.eye(rank + 1), atol=1e-6)
    product = square(onward.transformation, rank) @ square(forth.transformation, rank)
    np.testing.assert_allclose(product, square(whole.transformation, rank), rtol=1e-6, atol=1e-5)


@given(trees(), st.data())
def test_an_edge_that_agrees_with_a_random_graph_changes_nothing(drawn: Any, data: Any) -> None:
    graph, to_root, rank = drawn
    one, two = (data.draw(st.sampled_from(sorted(to_root))) for _ in range(2))
    if one == two:
        return
    step = compose(graph, reference(one), reference(two)).transformation
    edges = (*graph.transformations, CoordinateTransformation(reference(one), reference(two), step))
    larger = CoordinateGraph(graph.systems, edges)
    found = square(compose(larger, reference(one), reference(two)).transformation, rank)
    np.testing.assert_allclose(found, square(step, rank), rtol=1e-5, atol=1e-5)
    shifted = Sequence((step, Translation((1000.0,) * rank)))
    edges = (*graph.transformations, CoordinateTransformation(reference(one), reference(two), shifted))
    with pytest.raises(MetadataError, match="contradict each other"):
        compose(CoordinateGraph(graph.systems, edges), reference(one), reference(two))


def move(*offsets: float) -> Transformation:
    return Translation(offsets)


def test_a_contradiction_elsewhere_in_the_graph_does_not_matter() -> None:
    edges = [
        ("a", "b", move(1, 0)),
        ("b", "c", move(1, 0)),
        ("c", "d", move(1, 0)),
        ("c", "e", move(1, 0)),
        ("d", "e", move(5, 0)),
    ]
    graph = graph_of(edges)
    assert compose(graph, reference("a"), reference("c")).matrix == ((1, 0, 2), (0, 1, 0))
    for source in "abcd":
        with pytest.raises(MetadataError, match=r"two paths .* contradict each other"):
            compose(graph, reference(source), reference("e"))


def test_a_cycle_that_agrees_is_used() -> None:
    graph = graph_of([("a", "b", move(1, 0)), ("b", "c", move(2, 0)), ("c", "a", move(-3, 0))])
    assert compose(graph, reference("a"), reference("c")).matrix == ((1, 0, 3), (0, 1, 0))


SPACE = {"type": "space", "unit": "micrometer"}
YX = [{"name": "y", **SPACE}, {"name": "x", **SPACE}]


def image(systems: list[Any] | None = None, edges: Any = (), scale: Any = (2, 3)) -> dict[str, Any]:
    level = {
        "type": "sequence",
        "input": {"path": "s0"},
        "output": {"name": "physical"},
        "transformations": [
            {"type": "scale", "scale": list(scale)},
            {"type": "translation", "translation": [10, 20]},
        ],
    }
    item = {
        "coordinateSystems": [{"name": "physical", "axes": YX}, *(systems or [])],
        "datasets": [{"path": "s0", "coordinateTransformations": [level]}],
    }
    return {
        "version": "0.6rc0",
        "multiscales": [{**item, **({"coordinateTransformations": edges} if edges else {})}],
    }


def edge(kind: str, source: Any, target: Any, **members: Any) -> dict[str, Any]:
    return {"type": kind, "input": source, "output": target, **members}


WORLD = {"name": "world", "axes": YX}


def stitched(tiles: int = 3) -> dict[str, Any]:
    steps = [
        edge(
            "translation", {"path": f"t{i}", "name": "physical"}, {"name": "world"}, translation=[0, 348 * i]
        )
        for i in range(tiles)
    ]
    return {"version": "0.6rc0", "scene": {"coordinateSystems": [WORLD], "coordinateTransformations": steps}}


def scene_store(scene: dict[str, Any], tiles: dict[str, Any]) -> dict[str, bytes]:
    store: dict[str, bytes] = {}
    root = zarrfs.create_group(store, attributes={"ome": scene})
    for path, document in tiles.items():
        group = root.create_group(path, attributes={"ome": document})
        group.create_array("s0", data=np.zeros((4, 5), "uint8"), dimension_names=("y", "x"))
    return store


def test_the_tiles_of_a_scene_have_positions_relative_to_each_other() -> None:
    graph = load_graph(zarrfs.open(scene_store(stitched(), {f"t{i}": image() for i in range(3)})))
    assert graph.problems == ()
    assert graph.shown == reference("world")
    between = compose(graph, SystemReference("t2/s0"), reference("physical", "t1"))
    assert between.matrix == ((2, 0, 10), (0, 3, 368))
    assert [axis.unit for axis in between.output.axes] == ["micrometer", "micrometer"]
    assert [axis.name for axis in between.input.axes] == ["y", "x"]
    assert between.apply([[1, 1]]).tolist() == [[12, 371]]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_earlier_versions_have_the_same_graph(version: str) -> None:
    steps = [{"type": "scale", "scale": [2, 3]}, {"type": "translation", "translation": [10, 20]}]
    item = {"axes": YX, "datasets": [{"path": "s0", "coordinateTransformations": steps}]}
    document = {"multiscales": [{"version": version, **item}]}
    model = parse(document if version == "0.4" else {"ome": {"version": version, **document}})
    newer = parse({"ome": image()})
    graphs = [coordinate_graph([("", each.multiscales[0])]) for each in (model, newer)]
    assert graphs[0].systems == graphs[1].systems
    assert graphs[0].transformations == graphs[1].transformations
    assert compose(graphs[0], SystemReference("s0"), reference("physical")).matrix == ((2, 0, 10), (0, 3, 20))


def test_images_without_axes_have_a_graph() -> None:
    (old,) = parse({"multiscales": [{"version": "0.1", "datasets": [{"path": "0"}]}]}).multiscales
    assert compose(coordinate_graph([("", old)]), SystemReference("0"), reference("physical")).matrix == ()


def test_matrices_and_fields_are_read_from_the_store() -> None:
    systems = [{"name": "a", "axes": YX}, {"name": "b", "axes": YX}]
    edges = [
        edge("affine", {"name": "physical"}, {"name": "a"}, path="parameters/affine"),
        edge("displacements", {"name": "physical"}, {"name": "b"}, path="parameters/field"),
    ]
    store: dict[str, bytes] = {}
    root = zarrfs.create_group(store, attributes={"ome": image(systems, edges)})
    root.create_array("s0", data=np.zeros((4, 5), "uint8"))
    parameters = root.create_group("parameters")
    parameters.create_array("affine", data=np.array([[1, 2, 3], [4, 5, 6.5]]))
    axes = [{"name": "d", "type": "displacement", "discrete": True}, *YX]
    step = edge("scale", {"path": "s0"}, {"name": "p"}, scale=[1, 50, 50])
    item = {
        "coordinateSystems": [{"name": "p", "axes": axes}],
        "datasets": [{"path": "s0", "coordinateTransformations": [step]}],
    }
    field = parameters.create_group("field", attributes={"ome": {"version": "0.6rc0", "multiscales": [item]}})
    values = np.zeros((2, 3, 3), "float32")
    values[:, 0, 0] = 4, 8
    field.create_array("s0", data=values)
    graph = load_graph(zarrfs.open(store))
    assert graph.problems == ()
    affine = compose(graph, SystemReference("s0"), reference("a"))
    assert affine.matrix is not None
    np.testing.assert_allclose(affine.matrix, [[2, 6, 53], [8, 15, 146.5]])
    warped = compose(graph, SystemReference("s0"), reference("b"))
    assert warped.matrix is None
    # The first element is at (10, 20) of the field, whose points are 50 apart.
    weight = (1 - 10 / 50) * (1 - 20 / 50)
    np.testing.assert_allclose(warped.apply([[0, 0]]), [[10 + 4 * weight, 20 + 8 * weight]], rtol=1e-6)
    with pytest.raises(MetadataError, match="displacements from 'physical' to 'b' has no inverse"):
        compose(graph, reference("b"), reference("physical"))


TILES = {f"t{number}": image() for number in range(2)}


def bad_scene(**members: Any) -> dict[str, Any]:
    document = stitched(2)
    document["scene"]["coordinateTransformations"][1].update(members)
    return document


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"input": {"path": "missing", "name": "physical"}}, "'missing'"),
        ({"input": {"path": "t1", "name": "none"}}, "'none' of 't1' does not exist"),
        ({"output": {"name": "nowhere"}}, "'nowhere' does not exist"),
        ({"input": {"path": "../t1", "name": "physical"}}, "leaves the hierarchy"),
        ({"input": {"path": "t1/s0", "name": "physical"}}, "is not an image"),
        ({"translation": [1, 2, 3]}, "it has 3 numbers, but its input has 2 axes"),
        ({"type": "affine", "affine": [[1, 0], [0, 1]]}, "the rows of its matrix have 2 numbers"),
        ({"type": "affine", "path": "t1/s0"}, "the rows of its matrix have 5 numbers"),
        ({"type": "affine", "path": "t1"}, "expected a matrix in 't1', found a group"),
        ({"type": "rotation", "path": "../../x"}, "leaves the hierarchy"),
        ({"type": "rotation", "path": "absent"}, "absent"),
        ({"type": "displacements", "path": "t1"}, "needs one axis of type 'displacement'"),
        ({"type": "coordinates", "path": "t1/s0"}, "is not a multiscale image"),
        ({"output": {"path": "t1", "name": "physical"}}, "are the same coordinate system"),
    ],
)
def test_a_part_that_is_not_valid_is_a_problem_and_the_others_are_usable(members: Any, message: str) -> None:
    graph = load_graph(zarrfs.open(scene_store(bad_scene(**members), TILES)))
    assert any(message in str(problem) for problem in graph.problems), graph.problems
    assert compose(graph, reference("physical", "t0"), reference("world")).matrix == ((1, 0, 0), (0, 1, 0))
    with pytest.raises(MetadataError, match=r"there is no transformation from|does not exist"):
        compose(graph, reference("physical", "t1"), reference("world"))


def test_numbers_that_are_not_finite_are_not_used() -> None:
    scene = bad_scene(translation=[float("nan"), 1])
    assert "expected a list of finite numbers" in str(parse({"ome": scene}).problems)
    store = scene_store(bad_scene(type="affine", path="m"), TILES)
    zarrfs.open_group(store, mode="r+").create_array("m", data=np.full((2, 3), np.nan))
    assert "numbers that are not finite" in str(load_graph(zarrfs.open(store)).problems)


def test_a_system_that_does_not_exist_is_an_error() -> None:
    graph = graph_of([("a", "b", move(1, 0))])
    with pytest.raises(MetadataError, match=r"'z' does not exist \(existing: 'a', 'b'\)"):
        compose(graph, reference("z"), reference("a"))


def test_paths_cannot_leave_the_hierarchy() -> None:
    assert joined_path("a/b", "../c//./d") == "a/c/d"
    assert joined_path("", "/a/") == "a"
    with pytest.raises(MetadataError, match="leaves the hierarchy"):
        joined_path("a", "../..")


def test_very_many_tiles_are_composed_without_recursion() -> None:
    chain = [(f"s{number}", f"s{number + 1}", move(1, 0)) for number in range(3000)]
    graph = graph_of(chain)
    assert compose(graph, reference("s0"), reference("s3000")).matrix == ((1, 0, 3000), (0, 1, 0))
