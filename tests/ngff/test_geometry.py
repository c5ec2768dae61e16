"""The geometry of arrays: axes, units, scales and positions, from each of their sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import astropy.units
import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.ngff.geometry import MAX_UNIT_LENGTH, Ancestor, ArrayAxis, Geometry, array_geometry
from zarrfs.ngff.parse import parse
from zarrfs.ngff.units import LENGTHS, PREFIXES, SYMBOL_PREFIXES, TIMES, convert, unit_name

SPACE = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]


def multiscales(*datasets: Mapping[str, Any], axes: Any = SPACE, **members: Any) -> dict[str, Any]:
    item = {"name": "cells", "axes": axes, "datasets": list(datasets), **members}
    return {"multiscales": [{key: value for key, value in item.items() if value is not None}]}


def dataset(path: str, *transformations: tuple[str, list[float]]) -> dict[str, Any]:
    return {
        "path": path,
        "coordinateTransformations": [{"type": kind, kind: values} for kind, values in transformations],
    }


def geometry_of(
    shape: tuple[int, ...], *ancestors: tuple[str, Mapping[str, Any]], **options: Any
) -> Geometry:
    array = zarrfs.create_array(MemoryStore(), shape=shape, dtype="u1", **options)
    return array_geometry(array.spec, [Ancestor(path, attrs, parse(attrs)) for path, attrs in ancestors])


def roles(geometry: Geometry) -> str:
    return "".join(axis.role or "-" for axis in geometry.axes)


def test_the_transformations_of_a_level_and_of_the_image_are_composed() -> None:
    attributes = multiscales(
        dataset("0", ("scale", [2, 0.5, 0.5])),
        dataset("1", ("scale", [2, 1, 1]), ("translation", [0, 0.25, 0.25])),
        coordinateTransformations=[{"type": "scale", "scale": [1, 2, 2]}],
    )
    geometry = geometry_of((4, 5, 6), ("1", attributes))
    assert geometry.image_name == "cells"
    assert geometry.axes[1] == ArrayAxis("y", "space", "micrometer", 2.0, 0.5, "y")
    assert roles(geometry) == "zyx"


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_a_level_below_a_group_is_found_in_any_ancestor(version: str) -> None:
    attributes = multiscales(dataset("scale0/image", ("scale", [3, 2, 1])))
    if version == "0.5":
        attributes = {"ome": {"version": "0.5", **attributes}}
    geometry = geometry_of((4, 5, 6), ("image", {}), ("scale0/image", attributes))
    assert [axis.scale for axis in geometry.axes] == [3, 2, 1]


def test_metadata_that_do_not_fit_the_array_are_ignored() -> None:
    attributes = multiscales(dataset("0", ("scale", [3, 2, 1])))
    assert [axis.name for axis in geometry_of((4, 5), ("0", attributes)).axes] == [None, None]
    assert [axis.name for axis in geometry_of((4, 5, 6), ("1", attributes)).axes] == [None] * 3


def test_documents_before_0_3_have_the_axes_t_c_z_y_x() -> None:
    geometry = geometry_of((1, 2, 3, 4, 5), ("0", multiscales({"path": "0"}, axes=None)))
    assert roles(geometry) == "tczyx"


def test_channels_come_from_the_rendering_settings() -> None:
    axes = [{"name": "c", "type": "channel"}, *SPACE]
    attributes = multiscales({"path": "0"}, axes=axes) | {"omero": {"channels": [{"label": "DAPI"}]}}
    geometry = geometry_of((1, 2, 3, 4), ("0", attributes))
    assert [channel.label for channel in geometry.channels] == ["DAPI"]
    assert geometry.find("c") == 0


def test_dimension_names_and_units_of_the_array() -> None:
    geometry = geometry_of((2, 3, 4), dimension_names=("time", "lat", "lon"))
    assert roles(geometry) == "tyx"
    array = zarrfs.create_array(
        MemoryStore(), shape=(2, 3), dtype="u1", zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["y", "x"]}
    )
    assert [axis.name for axis in array_geometry(array.spec).axes] == ["y", "x"]


def test_units_of_tensorstore_contain_the_scale() -> None:
    geometry = geometry_of(
        (2, 3, 4), dimension_names=("z", "y", "x"), attributes={"dimension_units": ["40 nm", "nm", None]}
    )
    assert [(axis.scale, axis.unit) for axis in geometry.axes] == [(40, "nm"), (1, "nm"), (1, None)]


def test_n5_resolutions_and_downsampling_factors_begin_with_x() -> None:
    root = zarrfs.create_group(MemoryStore(), zarr_format="n5")
    attributes = {
        "pixelResolution": {"unit": "um", "dimensions": [0.1, 0.2, 1.5]},
        "downsamplingFactors": [2, 2, 1],
    }
    array = root.create_array("s1", shape=(4, 5, 6), dtype="u1", attributes=attributes)
    axes = array_geometry(array.spec).axes
    assert [axis.scale for axis in axes] == [1.5, 0.4, 0.2]
    assert [axis.translation for axis in axes] == [0, 0.1, 0.05]
    assert {axis.unit for axis in axes} == {"um"}
    del attributes["downsamplingFactors"]
    other = root.create_array("s0", shape=(4, 5, 6), dtype="u1")
    scales = [axis.scale for axis in array_geometry(other.spec, [Ancestor("s0", attributes, parse({}))]).axes]
    assert scales == [1.5, 0.2, 0.1]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((None, None, None, None), "-zyx"),
        ((None, None), "yx"),
        (("x", "y", "z"), "xyz"),
        (("c", "t", "y", "x"), "ctyx"),
        (("y", "x", "rgb"), "yxc"),
        (("frame", "band", "row", "column"), "tcyx"),
        (("station", "level"), "yx"),
        (("row", "col"), "yx"),
        (("col", "row"), "yx"),
        (("station", "x"), "yx"),
        (("band", "row", "col"), "cyx"),
        (("q", "row", "column"), "-yx"),
        (("station", "y", "x"), "-yx"),
        (("c", "band", "x"), "c-x"),
        (("channel", "c", "x"), "-cx"),
        (("lat", "x", "lon"), "zxy"),
    ],
)
def test_roles_follow_the_names_of_the_axes(names: tuple[str | None, ...], expected: str) -> None:
    assert roles(geometry_of((2,) * len(names), dimension_names=names)) == expected


def test_an_array_without_dimensions_has_no_axes() -> None:
    assert geometry_of(()).axes == ()


def test_invalid_numbers_and_units_are_replaced() -> None:
    axes = [
        {"name": "y", "type": "space", "unit": "a\nb"},
        {"name": "x", "type": "space", "unit": "m" * 1000},
    ]
    geometry = geometry_of((2, 3), ("0", multiscales(dataset("0", ("scale", [0, 1e307])), axes=axes)))
    assert [(axis.scale, axis.unit) for axis in geometry.axes] == [(1.0, None), (1e307, None)]


def test_units_above_the_limit_are_ignored() -> None:
    for length, expected in ((MAX_UNIT_LENGTH, "u" * MAX_UNIT_LENGTH), (MAX_UNIT_LENGTH + 1, None)):
        axes = [{"name": "x", "type": "space", "unit": "u" * length}]
        geometry = geometry_of((3,), ("0", multiscales(dataset("0", ("scale", [2.0])), axes=axes)))
        assert [axis.unit for axis in geometry.axes] == [expected]
    assert MAX_UNIT_LENGTH == 64


def test_physical_grids_have_one_unit() -> None:
    axes = [{"name": "z", "type": "space"}, *SPACE[1:]]
    attributes = multiscales(
        dataset("0", ("scale", [2, 0.65, 0.65]), ("translation", [0, 10, 20])), axes=axes
    )
    geometry = geometry_of((4, 5, 6), ("0", attributes))
    assert geometry.physical_grid((2, 1, 0), "millimeter") == (
        (0.00065, 0.00065, 0.002),
        (0.02, 0.01, 0.0),
        "millimeter",
    )
    assert geometry.physical_grid((2, 1, 0), "second").unit is None
    assert geometry.physical_grid((2, 1, 0), "second").scale == (0.65, 0.65, 2.0)
    assert geometry_of((2, 3)).physical_grid((1, 0), "millimeter").unit is None


@pytest.mark.parametrize(
    ("value", "unit", "target", "expected"),
    [
        (0.65, "micrometer", "millimeter", 0.00065),
        (0.1, "µm", "nanometer", 100.0),
        (0.1, "μm", "micrometer", 0.1),
        (5, "Angstrom", "nm", 0.5),
        (2, "microns", "um", 2.0),
        (1, "Micrometres", "um", 1.0),
        (1, "inch", "mm", 25.4),
        (90, "minutes", "hour", 1.5),
        (1, "s", "ms", 1000.0),
        (1, "Mm", "meter", None),
        (1, "second", "meter", None),
        (1, "pixel", "meter", None),
        (1, None, "meter", None),
        (1e308, "yottameter", "ym", None),
        (1e-300, "yoctometer", "yottameter", None),
    ],
)
def test_units_are_converted_exactly(
    value: float, unit: str | None, target: str, expected: float | None
) -> None:
    assert convert(value, unit, target) == expected


def test_the_prefixes_of_units_are_those_of_astropy() -> None:
    for prefix in PREFIXES:
        for unit in ("meter", "second"):
            expected = float(astropy.units.Unit(f"{prefix}{unit}").to(unit))
            assert convert(1.0, f"{prefix}{unit}", unit) == pytest.approx(expected, rel=1e-12, abs=0)
    for prefix in SYMBOL_PREFIXES:
        for unit in ("m", "s"):
            expected = float(astropy.units.Unit(f"{prefix}{unit}").to(unit))
            assert convert(1.0, f"{prefix}{unit}", unit) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("unit", [*LENGTHS, *TIMES])
def test_each_known_unit_has_a_name_of_the_same_size(unit: str) -> None:
    name = unit_name(unit)
    assert name is not None
    assert convert(1.0, unit, name) == 1.0
    assert unit_name(name) == name
