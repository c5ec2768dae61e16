"""N5 pyramids are one image with a physical scale, in the conventions of several programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.images.dataset import open_dataset

import zarrfs
from tests.viewer.core.doubles import random_values

SHAPE = (8, 32, 64)
FACTORS = [[1, 1, 1], [2, 2, 1], [4, 4, 2]]
"""Downsampling factors per level as N5 stores them, along x, y and z."""


def write_pyramid(
    path: Path, group: dict[str, Any], levels: list[dict[str, Any]], name: str = "vol"
) -> np.ndarray:
    data = random_values(SHAPE)
    zarrfs.create_group(str(path), zarr_format="n5")
    zarrfs.create_group(str(path), name, attributes=group, zarr_format="n5")
    for number, attributes in enumerate(levels):
        x, y, z = FACTORS[number]
        zarrfs.create_array(
            str(path),
            f"{name}/s{number}",
            data=data[::z, ::y, ::x],
            chunks=(4, 16, 16),
            attributes=attributes,
            zarr_format="n5",
        )
    return data


FACTORS_OF_LEVELS = [{"downsamplingFactors": factors} for factors in FACTORS]
NEUROGLANCER = {"axes": ["x", "y", "z"], "units": ["nm", "nm", "nm"], "resolution": [4, 5, 40]}


@pytest.mark.parametrize(
    ("group", "levels", "unit"),
    [
        (NEUROGLANCER, FACTORS_OF_LEVELS, "nm"),
        (NEUROGLANCER | {"downsamplingFactors": FACTORS}, [{}, {}, {}], "nm"),
        (NEUROGLANCER, [{}, {}, {}], "nm"),
        ({"resolution": [4, 5, 40], "scales": FACTORS}, [{}, {}, {}], None),
        ({"pixelResolution": {"dimensions": [4, 5, 40], "unit": "um"}}, FACTORS_OF_LEVELS, "um"),
        ({}, [{"pixelResolution": {"dimensions": [4, 5, 40], "unit": "um"}}, *FACTORS_OF_LEVELS[1:]], "um"),
    ],
)
def test_an_n5_pyramid_is_one_image_with_a_physical_scale(
    tmp_path: Path, group: dict[str, Any], levels: list[dict[str, Any]], unit: str | None
) -> None:
    data = write_pyramid(tmp_path / "a.n5", group, levels)
    dataset = open_dataset(str(tmp_path / "a.n5"), "vol")
    assert (dataset.kind, [entry.path for entry in dataset.images]) == ("image", [""])
    image = dataset.open_image()
    assert [axis.name for axis in image.axes] == ["z", "y", "x"]
    assert [axis.type for axis in image.axes] == ["space"] * 3
    assert [axis.unit for axis in image.axes] == [unit] * 3
    assert [level.shape for level in image.levels] == [(8, 32, 64), (8, 16, 32), (4, 8, 16)]
    assert [level.scale for level in image.levels] == [(40, 5, 4), (40, 10, 8), (80, 20, 16)]
    assert image.levels[2].translation == (20, 7.5, 6)
    np.testing.assert_array_equal(image.levels[1].array[:, :, :], data[:, ::2, ::2])
    assert not image.notes
    root = open_dataset(str(tmp_path / "a.n5"))
    assert [entry.path for entry in root.images] == ["vol"]
    assert len(root.open_image().levels) == 3


@pytest.mark.parametrize(
    "broken",
    [
        {"axes": ["x"], "units": 3, "resolution": "fine"},
        {"axes": [1, 2, 3], "units": ["nm"] * 9, "resolution": [0, -1, 10**400]},
        {"downsamplingFactors": [[0, 0, 0]] * 3, "pixelResolution": []},
        {"scales": {"a": 1}, "pixelResolution": {"dimensions": [True, None, {}]}},
    ],
)
def test_invalid_attributes_of_an_n5_pyramid_are_ignored(tmp_path: Path, broken: dict[str, Any]) -> None:
    write_pyramid(tmp_path / "a.n5", broken, [{}, {}, {}])
    image = open_dataset(str(tmp_path / "a.n5"), "vol").open_image()
    assert [level.scale for level in image.levels] == [(1, 1, 1), (1, 2, 2), (2, 4, 4)]


def test_the_levels_end_at_the_first_array_that_does_not_fit(tmp_path: Path) -> None:
    write_pyramid(tmp_path / "a.n5", NEUROGLANCER, [{}, {}])
    zarrfs.create_array(str(tmp_path / "a.n5"), "vol/s2", data=np.zeros((4, 4)), zarr_format="n5")
    assert len(open_dataset(str(tmp_path / "a.n5"), "vol").open_image().levels) == 2


def test_a_single_n5_array_has_its_physical_scale(tmp_path: Path) -> None:
    zarrfs.create_array(
        str(tmp_path / "a.n5"), "s", data=np.zeros((4, 8, 8)), attributes=NEUROGLANCER, zarr_format="n5"
    )
    image = open_dataset(str(tmp_path / "a.n5"), "s").open_image()
    assert image.levels[0].scale == (40, 5, 4)
    assert [axis.unit for axis in image.axes] == ["nm"] * 3


def test_a_zarr_group_with_such_names_is_no_pyramid(tmp_path: Path) -> None:
    zarrfs.create_group(str(tmp_path / "a.zarr"), attributes=NEUROGLANCER)
    zarrfs.create_array(str(tmp_path / "a.zarr"), "s0", data=np.zeros((8, 8)))
    assert [entry.path for entry in open_dataset(str(tmp_path / "a.zarr")).images] == ["s0"]
