"""Metadata is exchanged with other implementations: consolidated metadata, dimension names and units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
import zarr

import zarrfs
from tests.interop.zarr_python import quietly
from zarrfs.tools import consolidate_metadata

DATA = np.arange(12, dtype="u2").reshape(3, 4)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_metadata_consolidated_by_zarr_python_is_read(zarr_format: Any, tmp_path: Path) -> None:
    path = tmp_path / "g"
    with quietly():
        root = zarr.create_group(path, zarr_format=zarr_format, attributes={"a": 1})
        root.create_array("x/y", data=DATA, chunks=(2, 2), attributes={"b": [2]})
        zarr.consolidate_metadata(path)
    group = zarrfs.open_group(path)
    assert dict(group.attrs) == {"a": 1}
    assert {name: type(node).__name__ for name, node in group.walk()} == {"x": "Group", "x/y": "Array"}
    assert dict(group["x/y"].attrs) == {"b": [2]}
    assert np.array_equal(group["x/y"][...], DATA)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_python_reads_metadata_consolidated_by_zarrfs(zarr_format: Any, tmp_path: Path) -> None:
    path = tmp_path / "g"
    root = zarrfs.create_group(path, zarr_format=zarr_format, attributes={"a": 1})
    root.create_array("x/y", data=DATA, chunks=(2, 2), attributes={"b": [2]})
    consolidate_metadata(path)
    with quietly():
        group = zarr.open_consolidated(str(path), zarr_format=zarr_format)
        assert sorted(name for name, _ in group.members(max_depth=None)) == ["x", "x/y"]
        assert dict(group.attrs) == {"a": 1}
        assert dict(group["x/y"].attrs) == {"b": [2]}
        assert np.array_equal(group["x/y"][...], DATA)


@pytest.mark.parametrize("names", [["y", "x"], ["y", None], None])
def test_dimension_names_are_exchanged_with_zarr_python(
    names: list[str | None] | None, tmp_path: Path
) -> None:
    with quietly():
        zarr.create_array(tmp_path / "theirs", data=DATA, dimension_names=names)
    ours = zarrfs.open_array(tmp_path / "theirs").dimension_names
    assert (ours and list(ours)) == names
    zarrfs.create_array(tmp_path / "ours", data=DATA, dimension_names=names)
    theirs = zarr.open_array(tmp_path / "ours", mode="r").metadata.dimension_names
    assert (theirs and list(theirs)) == names
    labels = ts.open(_spec("zarr3", tmp_path / "ours"), open=True).result().domain.labels
    assert list(labels) == [name or "" for name in names or (None, None)]


def _spec(driver: str, path: Path) -> dict[str, Any]:
    return {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}


@pytest.mark.parametrize(("driver", "zarr_format"), [("zarr3", 3), ("n5", "n5")])
def test_dimension_units_are_exchanged_with_tensorstore(
    driver: str, zarr_format: Any, tmp_path: Path
) -> None:
    units = ["4 nm", "2.5 um"]
    theirs = ts.open(
        _spec(driver, tmp_path / "theirs") | {"schema": {"dimension_units": units}},
        create=True,
        dtype="uint16",
        shape=DATA.shape,
    ).result()
    ours = zarrfs.open_array(tmp_path / "theirs").dimension_units
    assert ours is not None
    # TensorStore keeps the dimension order of N5, with the fastest dimension first.
    step = -1 if driver == "n5" else 1
    assert [ts.Unit(unit) for unit in ours][::step] == list(theirs.dimension_units)
    zarrfs.create_array(
        tmp_path / "ours", data=DATA, chunks=(2, 2), zarr_format=zarr_format, dimension_units=units
    )
    opened = ts.open(_spec(driver, tmp_path / "ours"), open=True).result()
    assert list(opened.dimension_units)[::step] == [ts.Unit(unit) for unit in units]
    array = zarrfs.open_array(tmp_path / "ours", mode="r+")
    array.attrs["more"] = 1
    assert zarrfs.open_array(tmp_path / "ours").dimension_units == tuple(units), (
        "an attribute changed the units"
    )
    created = zarrfs.create_array({}, data=DATA, zarr_format=zarr_format, dimension_units=units)
    created.attrs["more"] = 1
    assert created.dimension_units == tuple(units)
    created.refresh()
    assert created.dimension_units == tuple(units)
