"""The attribute ``transform`` of arrays."""

from __future__ import annotations

from typing import Any

import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.ngff.geometry import Geometry, array_geometry

TRANSFORM: dict[str, Any] = {
    "axes": ["t", "y", "x"],
    "units": ["s", "nm", "nm"],
    "scale": [0.5, 8.0, 4.0],
    "translate": [1.0, 2.0, 3.0],
}


def geometry_of(transform: Any) -> Geometry:
    array = zarrfs.create_array(
        MemoryStore(), shape=(2, 3, 4), dtype="u1", attributes={"transform": transform}
    )
    return array_geometry(array.spec)


def test_the_attribute_describes_each_dimension() -> None:
    axes = geometry_of(TRANSFORM).axes
    assert [(axis.name, axis.unit, axis.scale, axis.translation) for axis in axes] == [
        ("t", "s", 0.5, 1.0),
        ("y", "nm", 8.0, 2.0),
        ("x", "nm", 4.0, 3.0),
    ]
    assert [axis.role for axis in axes] == ["t", "y", "x"]
    backwards = {name: values[::-1] for name, values in TRANSFORM.items()} | {"ordering": "F"}
    assert geometry_of(backwards).axes == axes


@pytest.mark.parametrize(
    "transform",
    [None, 5, [1, 2, 3], {}, {**TRANSFORM, "scale": [1, 2]}, {**TRANSFORM, "scale": [1, "2", 3]}],
    ids=str,
)
def test_an_invalid_attribute_is_ignored(transform: Any) -> None:
    assert geometry_of(transform) == geometry_of(None)
    assert {axis.scale for axis in geometry_of(transform).axes} == {1.0}


def test_members_that_are_invalid_are_unknown() -> None:
    axes = geometry_of({"scale": [2, 0, 4], "units": "nm", "axes": [1, "", "x"], "translate": [0]}).axes
    assert [axis.scale for axis in axes] == [2.0, 1.0, 4.0]
    assert [axis.name for axis in axes] == [None, None, "x"]
    assert {axis.translation for axis in axes} == {0.0}
