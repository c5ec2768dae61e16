"""Images in the coordinate systems of scenes: each value is where the transformations put it.

The expected values are computed from the original arrays by NumPy, point by point.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zarrfs_viewer.analysis.chunk_overlay import chunk_grid, missing_chunks
from zarrfs_viewer.analysis.image_summary import image_summary, stored_summary
from zarrfs_viewer.display.levels import frame_grid
from zarrfs_viewer.display.overlay import level_map
from zarrfs_viewer.display.resolve import plane_key
from zarrfs_viewer.images.dataset import Dataset, describe, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_array
from zarrfs_viewer.images.placement import placed
from zarrfs_viewer.images.resampling import ResampledArray
from zarrfs_viewer.rendering.contrast import channel_values
from zarrfs_viewer.rendering.sampling import footprint
from zarrfs_viewer.state.view_state import Projection, Viewport, fit, with_projection

import zarrfs
from tests.viewer.scenes import MICROMETERS, affine_rows, value_at, write_scene
from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs.ngff import Axis

YX = (Axis("y", "space", "micrometer"), Axis("x", "space", "micrometer"))
ZYX = (Axis("z", "space", "micrometer"), *YX)


def rotation(degrees: float) -> npt.NDArray[np.float64]:
    angle = np.deg2rad(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def oblique() -> npt.NDArray[np.float64]:
    """A rotation about two axes, with a shear."""
    about_x = np.eye(3)
    about_x[:2, :2] = rotation(30)
    about_z = np.eye(3)
    about_z[1:, 1:] = rotation(-20)
    shear = np.eye(3)
    shear[0, 2] = 0.2
    return np.asarray(about_x @ about_z @ shear)


def scene(path: Path, *arguments: Any, **options: Any) -> Dataset:
    write_scene(path, *arguments, **options)
    return describe(zarrfs.open(path), str(path))


def values(image: Image, level: int = 0) -> npt.NDArray[Any]:
    return np.asarray(image.levels[level].array[(slice(None),) * len(image.axes)])


def positions(image: Image, level: int = 0) -> npt.NDArray[np.float64]:
    """The physical positions of all pixels of a level, as (..., axis)."""
    found = image.levels[level]
    grids = [
        t + s * np.arange(n) for t, s, n in zip(found.translation, found.scale, found.shape, strict=True)
    ]
    return np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1)


def test_an_axis_aligned_transformation_changes_scales_and_axes_only(tmp_path: Path) -> None:
    data = np.arange(20 * 24, dtype="u2").reshape(20, 24)
    step = {
        "type": "sequence",
        "transformations": [
            {"type": "mapAxis", "mapAxis": [1, 0]},
            {"type": "scale", "scale": [2, -3]},
            {"type": "translation", "translation": [100, 7]},
        ],
    }
    dataset = scene(tmp_path / "a.zarr", {"a": (data, (0.5, 0.25), step)})
    image = dataset.open_image("a")
    assert not isinstance(image.levels[0].array, ResampledArray)
    assert [axis.name for axis in image.axes] == ["x", "y"]
    assert image.shape == (20, 24)
    for row, column in ((0, 0), (19, 23), (4, 9)):
        assert image.to_physical(0, row) == pytest.approx(-3 * 0.5 * row + 7)
        assert image.to_physical(1, column) == pytest.approx(2 * 0.25 * column + 100)
    # Rows are those of the first axis of the scene, which is the second one of the array.
    assert image.default_displayed == (1, 0)


@pytest.mark.parametrize("kind", ["image", "labels"])
def test_a_rotated_image_has_its_values_where_numpy_says(tmp_path: Path, kind: str) -> None:
    data = np.random.default_rng(1).integers(1, 60_000, (20, 30)).astype("u2")
    matrix, offset, size = rotation(30) @ np.diag([1.0, 2.0]), (5.0, -8.0), (0.5, 0.25)
    dataset = scene(tmp_path / "a.zarr", {"a": (data, size, affine_rows(matrix, offset))})
    image = dataset.open_image("a", as_labels=kind == "labels", is_layer=True)
    assert image.kind == kind
    found, points = values(image), positions(image).reshape(-1, 2)
    expected = [value_at(data, size, matrix, offset, point) for point in points]
    inside = np.array([value is not None for value in expected])
    array = image.levels[0].array
    assert isinstance(array, ResampledArray)
    grid = np.meshgrid(*map(np.arange, image.shape), indexing="ij")
    assert np.array_equal(array.covers(tuple(grid)).ravel(), inside)
    assert not found.ravel()[~inside].any()
    if kind == "labels":
        assert np.array_equal(found.ravel()[inside], [value for value in expected if value is not None])
        return
    # Interpolated linearly between the centres of the pixels, at the border not at all.
    index = np.linalg.solve(matrix, (points - offset).T).T / size
    index = np.clip(index, 0, np.array(data.shape) - 1)
    low = np.minimum(index.astype(int), np.array(data.shape) - 2)
    (row, column), (down, right) = low.T, (index - low).T
    blend = (
        data[row, column] * (1 - down) * (1 - right)
        + data[row + 1, column] * down * (1 - right)
        + data[row, column + 1] * (1 - down) * right
        + data[row + 1, column + 1] * down * right
    )
    assert np.allclose(found.ravel()[inside], blend[inside], atol=0.51)


def test_planes_of_an_oblique_volume_have_their_values_where_numpy_says(tmp_path: Path) -> None:
    data = np.random.default_rng(2).integers(1, 200, (12, 20, 24)).astype("u1")
    matrix, offset, size = oblique(), (3.0, 4.0, -5.0), (2.0, 0.5, 0.5)
    dataset = scene(
        tmp_path / "a.zarr", {"a": (data, size, affine_rows(matrix, offset))}, names="zyx", chunk=8
    )
    image = dataset.open_image("a", as_labels=True)
    assert all(isinstance(level.array, ResampledArray) for level in image.levels)
    level, points = image.levels[0], positions(image)
    for axis in range(3):
        selection: list[Any] = [slice(None)] * 3
        selection[axis] = level.shape[axis] // 2
        plane, place = level.array[tuple(selection)], points[tuple(selection)]
        assert plane.any()
        expected = [value_at(data, size, matrix, offset, point) or 0 for point in place.reshape(-1, 3)]
        assert np.array_equal(plane.ravel(), expected)
    # A region of a plane, with steps, is the same part of the plane.
    part = level.array[3, 2:19:3, 4:20:2]
    assert np.array_equal(part, level.array[3, :, :][2:19:3, 4:20:2])


def test_the_levels_of_a_resampled_image_cover_the_same_region(tmp_path: Path) -> None:
    data = np.full((40, 64), 100, "u1")
    dataset = scene(tmp_path / "a.zarr", {"a": (data, (1, 1), affine_rows(rotation(45), (0, 0)))})
    image = dataset.open_image("a", is_layer=True)
    assert [round(level.scale[0], 3) for level in image.levels] == [0.125, 0.25, 0.5, 1, 2]
    for level in image.levels:
        low = [t - s / 2 for t, s in zip(level.translation, level.scale, strict=True)]
        high = [a + s * n for a, s, n in zip(low, level.scale, level.shape, strict=True)]
        assert np.allclose(high, np.array(low) + 104 / np.sqrt(2), atol=2 * level.scale[0])
    assert len(dataset.open_image("a").levels) == 2


@settings(max_examples=40, deadline=None)
@given(
    entries=st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    offset=st.tuples(st.floats(-20, 20), st.floats(-20, 20)),
    size=st.tuples(st.floats(0.2, 3), st.floats(0.2, 3)),
)
def test_any_affine_transformation_puts_labels_where_numpy_says(
    entries: list[float], offset: tuple[float, float], size: tuple[float, float]
) -> None:
    matrix = np.array(entries).reshape(2, 2)
    if abs(np.linalg.det(matrix)) < 0.05:
        return
    data = np.arange(1, 43, dtype="u1").reshape(6, 7)
    array = zarrfs.create_array(zarrfs.MemoryStore(), data=data, chunks=(4, 4), dimension_names=["y", "x"])
    source = image_from_array(array, as_labels=True)
    level = replace(source.levels[0], scale=size)
    image = placed(replace(source, levels=(level,)), YX, np.column_stack([matrix, offset]))
    names = [axis.name for axis in image.axes]
    found, points = values(image), positions(image)[..., [names.index("y"), names.index("x")]]
    for value, point in zip(found.ravel(), points.reshape(-1, 2), strict=True):
        position = np.linalg.solve(matrix, point - offset) / size + 0.5
        if np.abs(position - np.rint(position)).min() > 1e-6:  # rounding decides at the borders of pixels
            assert value == (value_at(data, size, matrix, offset, point) or 0)


def test_values_between_pixels_do_not_wrap_and_ignore_missing_ones() -> None:
    data = np.array([[0, 2**64 - 1], [2**64 - 1, 2**64 - 1]], "u8")
    source = image_from_array(zarrfs.create_array(zarrfs.MemoryStore(), data=data, chunks=(2, 2)))
    image = placed(source, YX, np.column_stack([rotation(45), (0, 0)]))
    assert values(image).max() > 2**63
    floats = np.array([[1.0, np.nan], [1.0, 1.0]])
    source = image_from_array(zarrfs.create_array(zarrfs.MemoryStore(), data=floats, chunks=(2, 2)))
    array = ResampledArray(source.levels[0].array, (0, 1), np.array([[1.0, 0, 0], [0, 1, 0]]), (2, 2), False)
    assert np.array_equal(array[:, :], floats, equal_nan=True)


def test_images_of_a_scene_with_equal_shapes_are_not_matched_by_index(tmp_path: Path) -> None:
    data = np.zeros((32, 32), "u1")
    steps = {
        name: (data, (1, 1), {"type": "translation", "translation": [0, offset]})
        for name, offset in (("a", 0), ("b", 348))
    }
    dataset = scene(tmp_path / "a.zarr", steps)
    first, second = dataset.open_image("a"), dataset.open_image("b")
    assert level_map(first, second, 0, 1, 1) == pytest.approx((1, -348))


def test_what_cannot_be_placed_is_stated(tmp_path: Path) -> None:
    data = np.zeros((8, 8), "u1")
    nan = {"type": "affine", "affine": [[1, 0, float("nan")], [0, 1, 0]]}
    wrong = {"type": "affine", "affine": [[1, 0, 0, 5], [0, 1, 0, 5]]}
    singular = {"type": "affine", "affine": [[1, 1, 0], [1, 1, 0]]}
    steps = {"a": {"type": "identity"}, "nan": nan, "wrong": wrong, "singular": singular, "none": None}
    dataset = scene(tmp_path / "a.zarr", {name: (data, (1, 1), step) for name, step in steps.items()})
    assert dataset.open_image("a").is_placed
    assert [entry.path for entry in dataset.images] == ["a", "nan", "wrong", "singular"]
    for name, text in (
        ("nan", "nan"),
        ("wrong", "4"),
        ("singular", "no inverse"),
        ("none", "no transformation|no coordinate system"),
        ("missing", "missing|does not exist"),
    ):
        with pytest.raises(ZarrError, match=text):
            dataset.open_image(name)


def test_an_image_is_not_projected_to_fewer_axes() -> None:
    array = zarrfs.create_array(zarrfs.MemoryStore(), data=np.zeros((4, 8, 8), "u1"), chunks=(4, 8, 8))
    image = image_from_array(array)
    with pytest.raises(UnsupportedError, match="no inverse"):
        placed(image, YX, [[1, 1, 0, 0], [0, 0, 1, 0]])
    kept = placed(image, YX, [[0, 2, 0, 5], [0, 0, 3, 0]])
    assert [axis.name for axis in kept.axes] == [image.axes[0].name, "y", "x"]
    assert kept.levels[0].scale == (1, 2, 3)


def test_axes_that_are_created_are_missing_from_the_image() -> None:
    array = zarrfs.create_array(zarrfs.MemoryStore(), data=np.zeros((8, 8), "u1"), chunks=(8, 8))
    image = placed(image_from_array(array), ZYX, [[0, 0, 4], [1, 0, 0], [0, 1, 0]])
    assert [axis.name for axis in image.axes] == ["y", "x"]


def test_labels_are_placed_with_their_image(tmp_path: Path) -> None:
    data = np.arange(1, 20 * 20 + 1, dtype="u2").reshape(20, 20)
    write_scene(tmp_path / "a.zarr", {"a": (data, (0.5, 0.5), affine_rows(rotation(90), (3, 4)))})
    group = zarrfs.open_group(tmp_path / "a.zarr", mode="r+")["a"]
    item = dict(group.attrs["ome"]["multiscales"][0])
    labels = group.create_group("labels", attributes={"ome": {"version": "0.6rc0", "labels": ["cells"]}})
    cells = labels.create_group(
        "cells", attributes={"ome": {"version": "0.6rc0", "multiscales": [item], "image-label": {}}}
    )
    for number in range(2):
        cells.create_array(f"s{number}", data=group[f"s{number}"][...], chunks=(20, 20))
    dataset = describe(zarrfs.open(tmp_path / "a.zarr"), str(tmp_path / "a.zarr"))
    image = dataset.open_image("a")
    (overlay,) = dataset.open_labels(image, pytest.fail)
    assert overlay.kind == "labels"
    assert [(level.scale, level.translation) for level in overlay.levels] == [
        (level.scale, level.translation) for level in image.levels
    ]
    assert initial_settings(image, 1).labels


def displacement_scene(path: Path) -> Dataset:
    """An image whose transformation to the scene is a displacement field and a translation."""
    data = np.zeros((8, 8), "u1")
    step = {
        "type": "bijection",
        "forward": {
            "type": "sequence",
            "transformations": [
                {"type": "displacements", "path": "field"},
                {"type": "translation", "translation": [10, 20]},
            ],
        },
        "inverse": {"type": "identity"},
    }
    write_scene(path, {"a": (data, (1, 1), step)})
    axes = [{"name": "d", "type": "displacement"}, *({"name": name, **MICROMETERS} for name in "yx")]
    level = {"type": "scale", "scale": [1, 1, 1], "input": {"path": "0"}, "output": {"name": "physical"}}
    item = {
        "coordinateSystems": [{"name": "physical", "axes": axes}],
        "datasets": [{"path": "0", "coordinateTransformations": [level]}],
    }
    field = zarrfs.open_group(path, mode="r+").create_group(
        "field", attributes={"ome": {"version": "0.6rc0", "multiscales": [item]}}
    )
    field.create_array("0", data=np.ones((2, 8, 8), "f4"), chunks=(2, 8, 8))
    return describe(zarrfs.open(path), str(path))


def test_displacements_are_not_applied_and_stated(tmp_path: Path) -> None:
    image = displacement_scene(tmp_path / "a.zarr").open_image("a")
    assert image.levels[0].translation == (10, 20)
    assert any("without the displacements 'field'" in note for note in image.notes)


def test_an_image_with_several_systems_is_opened_in_the_one_that_is_chosen() -> None:
    axes = [{"name": name, **MICROMETERS} for name in "yx"]
    level = {"type": "scale", "scale": [2, 2], "input": {"path": "0"}, "output": {"name": "physical"}}
    item = {
        "coordinateSystems": [{"name": name, "axes": axes} for name in ("physical", "stage")],
        "datasets": [{"path": "0", "coordinateTransformations": [level]}],
        "coordinateTransformations": [
            {
                "type": "translation",
                "translation": [100, 200],
                "input": {"name": "physical"},
                "output": {"name": "stage"},
            }
        ],
    }
    group = zarrfs.create_group(
        zarrfs.MemoryStore(), attributes={"ome": {"version": "0.6rc0", "multiscales": [item]}}
    )
    group.create_array("0", data=np.zeros((8, 8), "u1"), chunks=(8, 8))
    dataset = describe(group)
    assert dataset.coordinates is not None
    assert [system.name for system in dataset.coordinates.systems] == ["physical", "stage"]
    assert dataset.open_image().levels[0].translation == (0, 0)
    stage = replace(dataset, system=dataset.coordinates.systems[1])
    assert stage.open_image().levels[0].translation == (100, 200)


def test_a_resampled_image_is_summarized_as_it_is_stored_and_has_no_chunk_grid(tmp_path: Path) -> None:
    data = np.zeros((40, 64), "u1")
    dataset = scene(tmp_path / "a.zarr", {"a": (data, (1, 1), affine_rows(rotation(45), (0, 0)))})
    image = dataset.open_image("a", is_layer=True)
    summary = image_summary(image, None)
    assert (summary["Shape"], summary["Chunks"]) == ("40 x 64", "32 x 32")
    assert list(summary["Levels"].values()) == ["40 x 64", "20 x 32"]
    assert (
        stored_summary(image)["Stored size"]
        == stored_summary(Dataset.open_image(replace(dataset, coordinates=None), "a"))["Stored size"]
    )
    viewport = Viewport(400, 400, (300.0, 300.0), 1.0)
    grid = chunk_grid(image, initial_settings(image), viewport, 0)
    assert not grid.chunk_rows
    assert missing_chunks(image, initial_settings(image), viewport, 0) == ()


@pytest.mark.parametrize("names", [("c", "y", "x"), ("y", "x", "c")])
def test_channels_and_colours_are_not_resampled(names: tuple[str, ...]) -> None:
    shape = {"c": 3, "y": 20, "x": 24}
    data = np.random.default_rng(3).integers(1, 250, [shape[name] for name in names]).astype("u1")
    array = zarrfs.create_array(
        zarrfs.MemoryStore(), data=data, chunks=data.shape, dimension_names=list(names)
    )
    axes = {"c": Axis("c", "channel"), "y": YX[0], "x": YX[1]}
    rows = np.zeros((3, 4))
    block, places = rotation(30), [names.index("y"), names.index("x")]
    rows[np.ix_(places, places)] = block
    rows[names.index("c"), names.index("c")] = 1
    source = image_from_array(array)
    image = placed(source, tuple(axes[name] for name in names), rows)
    channel = names.index("c")
    assert (image.channel_axis, image.rgb_axis) == (source.channel_axis, source.rgb_axis)
    assert image.shape[channel] == 3
    for number in range(3):
        alone = image_from_array(
            zarrfs.create_array(
                zarrfs.MemoryStore(),
                data=np.take(data, number, channel),
                chunks=(20, 24),
                dimension_names=["y", "x"],
            )
        )
        expected = values(placed(alone, YX, np.column_stack([block, (0, 0)])))
        assert np.array_equal(np.take(values(image), number, channel), expected)


def test_a_slab_of_an_oblique_volume_is_the_projection_of_its_planes(tmp_path: Path) -> None:
    data = np.random.default_rng(4).integers(1, 200, (12, 20, 24)).astype("u1")
    dataset = scene(
        tmp_path / "a.zarr",
        {"a": (data, (1, 1, 1), affine_rows(oblique(), (0, 0, 0)))},
        names="zyx",
        chunk=8,
    )
    image = dataset.open_image("a")
    slab = with_projection(initial_settings(image), Projection(0, "max", 5))
    plane = plane_key(image, 0, slab)
    assert plane.slab is not None
    rows, columns = (slice(0, image.shape[axis]) for axis in plane.displayed)
    found = image.read_region(plane, rows, columns)
    planes = values(image)[plane.slab.start : plane.slab.stop]
    assert np.array_equal(found, planes.max(axis=0))
    # What no plane of the slab contains is transparent; between two planes it may be covered.
    row, column = plane.displayed
    viewport = fit(400, 300, image.shape[row], image.shape[column])
    grid = frame_grid(image, 0, slab, viewport)
    mask = footprint(image, image, plane, plane.displayed, grid)
    assert mask is not None
    assert grid.stride == (1, 1)
    assert mask[planes.any(axis=0)].all()
    assert np.count_nonzero(mask & ~planes.any(axis=0)) < 0.1 * mask.size
    assert not mask.all()


def test_the_histogram_of_a_rotated_image_does_not_contain_the_corners_of_its_box(tmp_path: Path) -> None:
    data = np.full((40, 64), 100, "u1")
    dataset = scene(tmp_path / "a.zarr", {"a": (data, (1, 1), affine_rows(rotation(45), (0, 0)))})
    image = dataset.open_image("a")
    settings = initial_settings(image)
    assert not values(image).all()
    assert set(channel_values(image, settings.channels[0], settings).tolist()) == {100}
