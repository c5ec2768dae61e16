"""Coordinate transformations: matrices, points, inverses, and what does not fit."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.errors import MetadataError
from zarrfs.ngff.reader import Reader
from zarrfs.ngff.transformations import (
    Affine,
    Bijection,
    ByDimension,
    DimensionPart,
    Identity,
    MapAxis,
    ProjectAxis,
    Rotation,
    Scale,
    Sequence,
    Transformation,
    Translation,
    VectorField,
)
from zarrfs.ngff.vector_fields import FieldValues
from zarrfs.ngff.version_0_6 import parse_transformation, transformation_document

NUMBERS = st.floats(-8, 8).map(lambda value: round(value, 3))
FACTORS = NUMBERS.filter(lambda value: abs(value) > 0.1)


def rotations(rank: int) -> st.SearchStrategy[Transformation]:
    def rotation(angle: float) -> Transformation:
        matrix = np.eye(rank)
        matrix[:2, :2] = [[cos(angle), -sin(angle)], [sin(angle), cos(angle)]]
        return Rotation(tuple(map(tuple, matrix.tolist())))

    return NUMBERS.map(rotation)


def affines(rank: int) -> st.SearchStrategy[Transformation]:
    """Matrices with a large diagonal, which have an inverse."""

    def affine(values: list[float]) -> Transformation:
        matrix = np.array(values).reshape(rank, rank + 1) / 8
        matrix[:, :-1] += 3 * rank * np.eye(rank)
        return Affine(tuple(map(tuple, matrix.tolist())))

    return st.lists(NUMBERS, min_size=rank * (rank + 1), max_size=rank * (rank + 1)).map(affine)


def simple(rank: int) -> st.SearchStrategy[Transformation]:
    choices: list[st.SearchStrategy[Transformation]] = [
        st.just(Identity()),
        st.tuples(*[FACTORS] * rank).map(Scale),
        st.tuples(*[NUMBERS] * rank).map(Translation),
        st.permutations(range(rank)).map(lambda axes: MapAxis(tuple(axes))),
        affines(rank),
    ]
    return st.one_of(*choices, *([rotations(rank)] if rank > 1 else []))


def by_dimension(rank: int) -> st.SearchStrategy[Transformation]:
    """Two parts, whose axes are in any order."""

    def build(drawn: tuple[list[int], list[int], Transformation, Transformation]) -> Transformation:
        inputs, outputs, first, second = drawn
        return ByDimension(
            (
                DimensionPart(first, (inputs[0],), (outputs[0],)),
                DimensionPart(second, tuple(inputs[1:]), tuple(outputs[1:])),
            )
        )

    orders = st.permutations(range(rank))
    return st.tuples(orders, orders, simple(1), simple(rank - 1)).map(build)


def transformations(rank: int) -> st.SearchStrategy[Transformation]:
    """Transformations of all types that have a matrix and an inverse."""
    base = simple(rank) | by_dimension(rank) if rank > 1 else simple(rank)
    nested = st.lists(base, min_size=1, max_size=3).map(lambda steps: Sequence(tuple(steps)))
    both = base.map(lambda one: Bijection(one, one.inverse() or Identity()))
    return base | nested | both


RANKS = st.integers(1, 4)
DRAWN = RANKS.flatmap(lambda rank: st.tuples(*[transformations(rank)] * 3, st.just(rank)))


def square(transformation: Transformation, rank: int) -> Any:
    """Return the matrix in homogeneous coordinates."""
    matrix = transformation.matrix(rank)
    assert matrix is not None
    return np.vstack([matrix, np.eye(rank + 1)[-1]])


@given(DRAWN)
def test_composition_is_associative_and_the_product_of_matrices(drawn: Any) -> None:
    one, two, three, rank = drawn
    left = Sequence((Sequence((one, two)), three))
    right = Sequence((one, Sequence((two, three))))
    expected = square(three, rank) @ square(two, rank) @ square(one, rank)
    np.testing.assert_allclose(square(left, rank), square(right, rank), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(square(left, rank), expected, rtol=1e-9, atol=1e-9)
    points = np.arange(3.0 * rank).reshape(3, rank)
    np.testing.assert_allclose(
        left.apply(points), three.apply(two.apply(one.apply(points))), rtol=1e-9, atol=1e-6
    )


@given(DRAWN)
def test_inverses_undo_transformations(drawn: Any) -> None:
    *steps, rank = drawn
    transformation = Sequence(tuple(steps))
    inverse = transformation.inverse()
    assert inverse is not None
    points = np.linspace(-3, 5, 4 * rank).reshape(4, rank)
    np.testing.assert_allclose(inverse.apply(transformation.apply(points)), points, atol=1e-6)
    np.testing.assert_allclose(transformation.apply(inverse.apply(points)), points, atol=1e-6)
    for step in steps:
        again = (step.inverse() or Identity()).inverse()
        assert again is not None
        np.testing.assert_allclose(square(again, rank), square(step, rank), rtol=1e-6, atol=1e-6)


@given(DRAWN)
def test_documents_of_transformations_are_parsed_to_the_same(drawn: Any) -> None:
    one, two, _, _ = drawn
    problems: list[str] = []
    for transformation in (one, Sequence((one, two))):
        document = transformation_document(transformation)
        assert parse_transformation(Reader(document, "", problems)) == transformation
    assert problems == []


def test_axes_are_dropped_before_others_are_created() -> None:
    project = ProjectAxis(dropped=(0,), created=(0, 3))
    assert project.output_rank(3) == 4
    assert project.apply([[1, 2, 3]]).tolist() == [[0, 2, 3, 0]]
    assert project.inverse() is None
    assert ProjectAxis().inverse() == ProjectAxis()


ROWS = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))


@pytest.mark.parametrize(
    ("transformation", "rank", "message"),
    [
        (Scale((1.0, 2.0)), 3, "'scale': it has 2 numbers, but its input has 3 axes"),
        (Translation((1.0,)), 2, "'translation': it has 1 numbers"),
        (MapAxis((0, 0)), 2, "is not a permutation of 0 to 1"),
        (MapAxis((1, 0)), 3, "is not a permutation of 0 to 2"),
        (Affine(ROWS), 3, "the rows of its matrix have 3 numbers, but its input has 3 axes"),
        (Rotation(ROWS), 2, r"its matrix has the shape \(2, 3\)"),
        (ProjectAxis(dropped=(2,)), 2, r"it drops the axes \[2\]"),
        (ProjectAxis(created=(4,)), 2, r"it creates the axes \[4\] of 3 output axes"),
        (Sequence((Affine(ROWS), Scale((1.0,)))), 2, "'scale': it has 1 numbers, but its input has 2 axes"),
        (ByDimension((DimensionPart(Scale((1.0,)), (0,), (2,)),)), 2, r"its output axes \[2\]"),
        (ByDimension((DimensionPart(Scale((1.0,)), (5,), (0,)),)), 2, r"it has the input axes \[5\]"),
        (
            ByDimension((DimensionPart(Scale((1.0, 1.0)), (0, 1), (0,)),)),
            2,
            "a part with 2 output axes has the axes",
        ),
        (Bijection(Affine(((1.0, 0.0, 0.0),)), Identity()), 2, "its forward part has 1 output axes"),
        (Affine(None, "m"), 2, "in 'm' has not been read"),
    ],
)
def test_transformations_that_do_not_fit_are_refused(
    transformation: Transformation, rank: int, message: str
) -> None:
    with pytest.raises(MetadataError, match=message):
        transformation.output_rank(rank)


def test_points_have_two_dimensions() -> None:
    with pytest.raises(MetadataError, match=r"expected points of shape \(number, axes\), found shape \(1,\)"):
        Identity().apply([1.0])


@pytest.mark.parametrize(
    "transformation",
    [
        Scale((0.0, 1.0)),
        Affine(((1.0, 2.0, 0.0), (2.0, 4.0, 0.0))),
        Affine(((1.0, 2.0, 0.0),)),
        Affine(((1.0, 1.0, 0.0), (1.0, 1.0 + 1e-15, 0.0))),
        Sequence((Identity(), Scale((0.0, 1.0)))),
        ByDimension((DimensionPart(Scale((1.0,)), (0,), (0,)), DimensionPart(Scale((1.0,)), (0,), (1,)))),
        VectorField("f", True),
    ],
)
def test_some_transformations_have_no_inverse(transformation: Transformation) -> None:
    assert transformation.inverse() is None


def test_axes_of_very_different_scales_have_an_inverse() -> None:
    inverse = Affine(((1e-9, 0.0, 1.0), (0.0, 1e6, 2.0))).inverse()
    assert inverse is not None
    np.testing.assert_allclose(inverse.apply([[1 + 3e-9, 2 + 4e6]]), [[3, 4]], rtol=1e-6)


def field(values: Any, scale: tuple[float, ...], vector_axis: int = 0) -> FieldValues:
    array = np.asarray(values, np.float32)
    return FieldValues(array.__getitem__, array.shape, vector_axis, scale, (0.0,) * len(scale))


def test_vectors_are_interpolated_as_in_the_example_of_the_specification() -> None:
    values = np.zeros((2, 3, 3))
    values[:, 0, 0], values[:, 1, 0] = (1.0, 2.0), (0.5, 1.2)
    shift = VectorField("f", True, "linear", field(values, (2.0, 2.0)))
    np.testing.assert_allclose(shift.apply([[0, 0], [2, 0], [1, 0]]), [[1, 2], [2.5, 1.2], [1.75, 1.6]])
    nearest = VectorField("f", True, "nearest", field(values, (2.0, 2.0)))
    np.testing.assert_allclose(nearest.apply([[0.9, 0], [1.1, 0]]), [[1.9, 2], [1.6, 1.2]])
    assert shift.matrix(2) is None
    outside = shift.apply([[0, 5.1], [-1.1, 0], [5.0, 0]])
    assert np.isnan(outside).tolist() == [[True, True], [True, True], [False, False]]


@given(
    st.lists(st.tuples(st.floats(0, 6), st.floats(0, 8)), min_size=1, max_size=6), st.sampled_from([0, 1, 2])
)
def test_linear_fields_are_linear_between_their_points(points: Any, vector_axis: int) -> None:
    y, x = np.meshgrid(np.arange(4) * 2.0, np.arange(9) * 1.0, indexing="ij")
    values = np.moveaxis(np.stack([2 * y - x + 1, x / 2 + y]), 0, vector_axis)
    coordinates = VectorField("f", False, "linear", field(values, (2.0, 1.0), vector_axis))
    expected = [[2 * y - x + 1, x / 2 + y] for y, x in points]
    np.testing.assert_allclose(coordinates.apply(points), expected, atol=1e-5)


def test_distant_points_are_read_in_groups_of_bounded_size() -> None:
    read: list[int] = []

    def elements(region: tuple[slice, ...]) -> Any:
        shape = [part.stop - part.start for part in region]
        read.append(int(np.prod(shape)))
        return np.zeros(shape, np.float32)

    values = FieldValues(elements, (2, 1_000_000, 1_000_000), 0, (1.0, 1.0), (0.0, 0.0))
    VectorField("f", True, "linear", values).apply([[0, 0], [999_999, 999_999], [5, 999_999]])
    assert max(read) <= 2 << 24
