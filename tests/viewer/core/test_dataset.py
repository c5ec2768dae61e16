"""Datasets of locations and images of nodes: valid metadata, invalid metadata, and nodes that cannot be displayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from zarrfs_viewer.images.axes import guess_axes, legacy_axes, named_axes, split_unit
from zarrfs_viewer.images.dataset import (
    MAX_MEMBERS_INSPECTED,
    describe,
    initial_settings,
    open_dataset,
)
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_array
from zarrfs_viewer.images.opening import open_first_image
from zarrfs_viewer.rendering.thumbnail import thumbnail
from zarrfs_viewer.state.view_state import LabelsSettings

import zarrfs
from tests.viewer.core.doubles import FakeArray, FakeGroup, array_image, open_pyramid, pyramid, random_values
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import LocationError, NodeNotFoundError, StoreError, UnsupportedError
from zarrfs.files.recognition import open_node


def axis_names(image: Image) -> str:
    return " ".join(axis.name for axis in image.axes)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), ""),
        ((9,), "x"),
        ((9, 9), "y x"),
        ((40, 90, 90), "z y x"),
        ((3, 90, 90), "c y x"),
        ((90, 90, 3), "y x s"),
        ((90, 90, 4), "y x s"),
        ((8, 8, 4), "z y x"),
        ((2, 40, 90, 90), "c z y x"),
        ((30, 40, 90, 90), "t z y x"),
        ((10, 3, 90, 90), "z c y x"),
        ((20, 3, 40, 90, 90), "t c z y x"),
        ((5, 90, 90, 3), "z y x s"),
        ((9, 8, 20, 3, 40, 90, 90), "dim 0 dim 1 t c z y x"),
    ],
)
def test_axes_are_guessed_from_the_shape(shape: tuple[int, ...], expected: str) -> None:
    assert " ".join(axis.name for axis in guess_axes(shape)) == expected


def test_axes_of_dimension_names_and_of_old_metadata_versions() -> None:
    assert [axis.type for axis in named_axes(["time", "band", "depth", None, "X"])] == [
        "time", "channel", "space", None, "space",
    ]  # fmt: skip
    assert [axis.name for axis in named_axes([None, "y"])] == ["dim 0", "y"]
    assert [axis.name for axis in legacy_axes(5)] == ["t", "c", "z", "y", "x"]
    assert [axis.name for axis in legacy_axes(3)] == ["z", "y", "x"]
    assert [axis.name for axis in legacy_axes(6)] == ["dim 0", "t", "c", "z", "y", "x"]


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (5, 6), (3, 4, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5), (2,) * 7]
)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bool", "complex64"])
def test_arrays_of_any_rank_can_be_drawn(shape: tuple[int, ...], dtype: str) -> None:
    data = np.asarray(random_values(shape, dtype))
    image = array_image(data, [max(1, n // 2) for n in shape])
    assert len(image.shape) >= 2
    assert len(image.axes) == len(image.shape) == len(image.default_position)
    picture = thumbnail(image, 32)
    assert picture.any()


EVERY_DTYPE = [
    "bool", "i1", "u1", ">i2", "<u2", ">i4", "<u4", ">i8", "<u8", ">f2", "<f2", ">f4", "<f8", ">c8", "<c16",
    "datetime64[s]", "timedelta64[ms]", "longdouble", "clongdouble", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
    ml_dtypes.int4, ml_dtypes.uint4, [("a", ">u2"), ("b", "f4")],
]  # fmt: skip


@pytest.mark.parametrize("dtype", EVERY_DTYPE, ids=str)
def test_every_numeric_data_type_can_be_drawn(dtype: Any) -> None:
    data = (np.arange(20 * 30).reshape(20, 30) % 7).astype(np.uint8)
    dtype = np.dtype(dtype)
    if dtype.names is None:
        values = data.astype(dtype)
    else:
        values = np.zeros(data.shape, dtype)
        values["a"], values["b"] = data, data
    picture = thumbnail(array_image(values), 40)
    assert len(np.unique(picture)) > 1


@pytest.mark.parametrize("dtype", ["S5", "U3", "V4", [("name", "S3")], [("inner", [("a", "u1")])]], ids=str)
def test_an_array_that_is_not_numeric_cannot_be_opened_and_has_attributes(dtype: Any) -> None:
    array = FakeArray(np.zeros((4, 4), dtype), attrs={"hello": 1})
    with pytest.raises(UnsupportedError, match="data type"):
        image_from_array(array)
    dataset = describe(array, "somewhere/words.zarr")
    assert (dataset.kind, dataset.images) == ("undisplayable", ())
    assert "cannot be drawn" in dataset.problems[0]
    assert dataset.attributes == {"hello": 1}
    with pytest.raises(UnsupportedError, match="no image can be displayed"):
        dataset.open_image()


def test_an_empty_array_cannot_be_displayed() -> None:
    dataset = describe(FakeArray(np.zeros((0, 4)), (1, 4)))
    assert dataset.kind == "undisplayable"
    assert "empty" in dataset.problems[0]


def test_dimension_names_define_the_axes() -> None:
    image = array_image(random_values((4, 8, 8)), names=["c", "y", "x"])
    assert (axis_names(image), image.channel_axis) == ("c y x", 0)
    xarray = array_image(random_values((5, 8, 8)), attrs={"_ARRAY_DIMENSIONS": ["time", "lat", "lon"]})
    assert axis_names(xarray) == "time lat lon"
    assert xarray.default_displayed == (1, 2)
    transposed = array_image(random_values((8, 9, 10)), names=["x", "y", "z"])
    assert transposed.default_displayed == (1, 0)


def test_channel_settings_are_those_of_omero() -> None:
    omero = {
        "channels": [
            {"label": "DAPI", "color": "0000FF", "window": {"start": 5, "end": 90, "min": 0, "max": 255}},
            {"color": "00FF00", "active": False, "inverted": True},
            {"window": {"start": 0, "end": 65535, "min": 0, "max": 65535}},
        ],
        "rdefs": {"defaultZ": 3},
    }
    image = open_pyramid(pyramid(random_values((4, 9, 16, 16)), "czyx", omero=omero))
    first, second, third, fourth = image.channels
    assert (first.label, first.colormap, first.limits, first.limits_range) == (
        "DAPI",
        "#0000FF",
        (5, 90),
        (0, 255),
    )
    assert (second.visible, second.invert, second.limits) == (False, True, None)
    assert third.limits is None, "the range of uint16 would draw most images black"
    assert (fourth.visible, fourth.label) == (False, "Channel 3"), "more than three channels are visible"
    assert image.default_position == (0, 3, 7, 7)


def test_the_first_channel_is_visible_if_all_are_inactive() -> None:
    omero = {"channels": [{"active": False}, {"active": False}]}
    image = open_pyramid(pyramid(random_values((2, 8, 8)), "cyx", omero=omero))
    assert [channel.visible for channel in image.channels] == [True, False]


@pytest.mark.parametrize(
    ("active", "visible"),
    [([True] * 8, 8), ([True] * 9, 3), ([True] * 8 + [False], 8), ([False] * 8 + [True], 1)],
)
def test_many_channels_that_are_all_declared_active_are_not_all_visible(
    active: list[bool], visible: int
) -> None:
    omero = {"channels": [{"active": value} for value in active]}
    image = open_pyramid(pyramid(random_values((len(active), 8, 8)), "cyx", omero=omero))
    assert sum(channel.visible for channel in image.channels) == visible


def test_a_long_channel_axis_has_a_slider() -> None:
    image = open_pyramid(pyramid(random_values((100, 8, 8)), "cyx"))
    assert image.channel_axis is None
    assert image.slider_axes == (0, 1, 2)
    assert len(image.channels) == 1


def test_a_structured_data_type_has_a_channel_per_numeric_field() -> None:
    data = np.zeros((2, 8, 8), [("a", "u1"), ("b", "f4"), ("name", "S2")])
    image = array_image(data, names=["c", "y", "x"])
    assert [(c.index, c.field) for c in image.channels] == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_scales_that_are_not_declared_follow_from_the_shapes() -> None:
    data = random_values((1, 1, 4, 16, 16))
    group = FakeGroup(
        {"multiscales": [{"version": "0.1", "datasets": [{"path": "0"}, {"path": "1"}]}]},
        {"0": FakeArray(data), "1": FakeArray(data[..., ::2, ::2])},
    )
    image = open_pyramid(group)
    assert axis_names(image) == "t c z y x"
    assert image.levels[1].scale == (1, 1, 1, 2, 2)
    assert image.levels[1].translation == (0, 0, 0, 0.5, 0.5)
    assert image.to_level(1, 3, 0.5) == 0


def test_levels_that_cannot_be_used_are_omitted_with_a_note() -> None:
    group = pyramid(random_values((32, 32)), "yx", 4)
    del group["1"]
    group["2"] = FakeArray(random_values((8, 8), "float32"))
    group["3"] = FakeGroup()
    image = open_pyramid(group)
    assert [level.path for level in image.levels] == ["0"]
    assert len(image.notes) == 3
    for level in range(4):
        group.pop(str(level), None)
    with pytest.raises(NodeNotFoundError):
        open_pyramid(group)


def test_levels_are_sorted_from_fine_to_coarse() -> None:
    group = pyramid(random_values((32, 32)), "yx", 3)
    group.attrs["multiscales"][0]["datasets"].reverse()
    assert [level.path for level in open_pyramid(group).levels] == ["0", "1", "2"]


def test_axes_are_guessed_with_a_note_if_their_number_is_wrong() -> None:
    group = pyramid(random_values((32, 32)), "yx", 1)
    group.attrs["multiscales"][0]["axes"] *= 2
    image = open_pyramid(group)
    assert axis_names(image) == "y x"
    assert "4 axes are declared" in image.notes[0]


def test_plates_and_wells_are_described() -> None:
    image = pyramid(random_values((16, 16)), "yx")
    well = FakeGroup(
        {"well": {"images": [{"path": "0", "acquisition": 2}, {"path": "1"}]}}, {"0": image, "1": image}
    )
    plate = FakeGroup(
        {"plate": {"name": "screen", "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}]}},
        {"A": FakeGroup(members={"1": well})},
    )
    dataset = describe(plate, "plate.zarr")
    assert (dataset.kind, dataset.images, dataset.plate.name) == ("plate", (), "screen")  # type: ignore[union-attr]
    fields = dataset.fields("A/1")
    assert [(field.path, field.acquisition) for field in fields] == [("A/1/0", 2), ("A/1/1", None)]
    assert dataset.open_image(fields[1].path).shape == (16, 16)
    with pytest.raises(UnsupportedError, match="plate"):
        dataset.open_image()
    with pytest.raises(NodeNotFoundError, match="B"):
        dataset.fields("B/7")
    opened = describe(well, "well.zarr")
    assert (opened.kind, [entry.path for entry in opened.images]) == ("well", ["0", "1"])


def test_all_series_of_bioformats2raw_are_listed() -> None:
    image = pyramid(random_values((16, 16)), "yx")
    root = FakeGroup({"bioformats2raw.layout": 3}, {"0": image, "1": image})
    dataset = describe(root, "two.zarr")
    assert (dataset.kind, [entry.path for entry in dataset.images]) == ("series", ["0", "1"])
    assert dataset.open_image("1").path == "1"
    empty = describe(FakeGroup({"bioformats2raw.layout": 3}), "none.zarr")
    assert (empty.kind, empty.images) == ("undisplayable", ())


def test_label_images_are_listed_and_opened() -> None:
    labels = pyramid(random_values((16, 16)), "yx", image_label={"colors": []})
    image = pyramid(random_values((16, 16)), "yx", labels={"cells": labels})
    image["labels"].attrs["labels"].append("missing")
    dataset = describe(image, "cells.zarr")
    opened = dataset.open_image()
    assert [entry.name for entry in opened.labels] == ["cells", "missing"]
    problems: list[str] = []
    (overlay,) = dataset.open_labels(opened, problems.append)
    assert len(problems) == 1
    assert "label image 'missing' cannot be displayed" in problems[0]
    assert (overlay.kind, overlay.name) == ("labels", "test image")
    settings = initial_settings(opened, 1)
    assert settings.labels == (LabelsSettings(index=0),)
    assert describe(labels).kind == "labels"
    assert initial_settings(overlay).labels[0].opacity == 1.0
    listed = describe(image["labels"], "cells.zarr/labels")
    assert [entry.kind for entry in listed.images] == ["labels", "labels"]


def test_all_multiscales_of_a_group_are_listed() -> None:
    group = pyramid(random_values((16, 16)), "yx", 2)
    group.attrs["multiscales"].append({**group.attrs["multiscales"][0], "name": "second"})
    dataset = describe(group)
    assert [(entry.name, entry.path) for entry in dataset.images] == [("test image", ""), ("second", "#1")]
    assert dataset.open_image("#1").name == "second"
    with pytest.raises(NodeNotFoundError):
        dataset.open_image("#7")


def test_the_images_of_a_group_without_metadata_are_its_members() -> None:
    group = FakeGroup(
        members={
            "a": FakeArray(random_values((8, 8))),
            "words": FakeArray(np.zeros((3,), "S3")),
            "image": pyramid(random_values((16, 16)), "yx"),
            "nothing": FakeGroup(),
        }
    )
    dataset = describe(group)
    assert dataset.kind == "group"
    assert [entry.path for entry in dataset.images] == ["a", "image"]
    assert describe(FakeGroup()).problems


def test_at_most_some_members_of_a_large_group_are_opened() -> None:
    class CountingGroup(FakeGroup):
        opened = 0

        def __getitem__(self, path: str) -> Any:
            CountingGroup.opened += 1
            return super().__getitem__(path)

    group = CountingGroup(members={f"{n:04d}": FakeArray(random_values((4, 4))) for n in range(500)})
    assert len(describe(group).images) == MAX_MEMBERS_INSPECTED
    assert CountingGroup.opened <= 2 * MAX_MEMBERS_INSPECTED


def test_metadata_of_a_later_draft_are_reported() -> None:
    dataset = describe(FakeGroup({"ome": {"version": "0.7", "collection": {}}}))
    assert dataset.kind == "undisplayable"
    assert any("draft later than OME-NGFF 0.6" in problem for problem in dataset.problems)


def test_a_scene_lists_its_images() -> None:
    edges = [
        {"type": "identity", "input": {"path": f"./{path}", "name": "physical"}, "output": {"name": "world"}}
        for path in ("b", "a/c", "../outside", "b")
    ]
    scene = {"coordinateTransformations": [*edges, 7], "coordinateSystems": []}
    dataset = describe(FakeGroup({"ome": {"version": "0.6rc0", "scene": scene}}))
    assert dataset.kind == "scene"
    assert [entry.path for entry in dataset.images] == ["b", "a/c"]


def test_a_scene_without_images_is_reported() -> None:
    dataset = describe(FakeGroup({"ome": {"version": "0.6rc0", "scene": {"coordinateTransformations": []}}}))
    assert not dataset.images
    assert any("list no image" in problem for problem in dataset.problems)


def test_a_transformation_that_is_not_applied_is_reported_with_the_image() -> None:
    group = pyramid(random_values((20, 30)), "yx", 1)
    multiscales = group.attrs["multiscales"][0]
    multiscales["coordinateTransformations"] = [{"type": "rotation", "rotation": [[0, 1], [1, 0]]}]
    image = describe(group).open_image()
    assert any("rotation" in note for note in image.notes)
    assert image.levels[0].scale == (1, 1)


def test_datasets_in_directories_are_opened(tmp_path: Path) -> None:
    with pytest.raises(LocationError):
        open_dataset(str(tmp_path / "nothing.zarr"))
    zarrfs.create_array(str(tmp_path / "a.zarr"), data=random_values((20, 30)))
    dataset = open_dataset(str(tmp_path / "a.zarr"))
    assert (dataset.kind, dataset.name) == ("array", "a.zarr")
    assert dataset.open_image().shape == (20, 30)
    zarrfs.create_array(str(tmp_path / "g.zarr"), "inner/a", data=random_values((20, 30)))
    inner = open_dataset(str(tmp_path / "g.zarr"), "inner")
    assert inner.open_image().path == "a"


def test_the_shared_test_data_can_be_opened_and_drawn(shared_data: Path) -> None:
    expected = {
        "dna_conf_wf_v04.ome.zarr": ("image", "0.4", 3, 2),
        "golgi_timelapse_v05.ome.zarr": ("image", "0.5", 2, 1),
        "nuclei_labels.zarr.zip": ("group", None, 1, 0),
        "xy_8bit__nuclei_PLK1_control.ome.zarr": ("image", "0.4", 3, 1),
    }
    for name, (kind, version, levels, channels) in expected.items():
        dataset = open_dataset(str(shared_data / name))
        assert (dataset.kind, dataset.version) == (kind, version)
        image = dataset.open_image()
        assert (len(image.levels), len(image.channels)) == (levels, channels)
        assert not image.notes
        picture = thumbnail(image, 200)
        assert (picture & 0xFFFFFF).std() > 0


@pytest.mark.parametrize(("start", "end", "expected"), [(5, 5, None), (6, 5, (5, 6)), (5, 6, (5, 6))])
def test_a_window_without_extent_is_ignored(start: int, end: int, expected: tuple[int, int] | None) -> None:
    window = {"start": start, "end": end, "min": 0, "max": 255}
    image = open_pyramid(pyramid(random_values((1, 16, 16)), "cyx", omero={"channels": [{"window": window}]}))
    assert image.channels[0].limits == expected


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("4 nm", (4.0, "nm")),
        ("nm", (1.0, "nm")),
        ("0 nm", (1.0, "0 nm")),
        ("-4 nm", (1.0, "-4 nm")),
        ("inf nm", (1.0, "inf nm")),
        ("4", (1.0, "4")),
        ("", (1.0, None)),
        (None, (1.0, None)),
    ],
)
def test_units_with_a_spacing_are_divided(unit: str | None, expected: tuple[float, str | None]) -> None:
    assert split_unit(unit) == expected


def test_a_group_without_an_image_states_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    class UnlistedGroup(FakeGroup):
        name = "/"

        def names(self) -> list[str]:
            raise StoreError("the server does not list")

        def known_names(self, listing: object = None) -> list[str] | None:
            return None

    (problem,) = describe(FakeGroup(members={"a": FakeGroup()})).problems
    assert "Double-click an array" in problem
    group = UnlistedGroup(members={"a": FakeGroup()})
    group.store = MemoryStore()
    group.store.listable = False
    (problem,) = describe(group).problems
    assert "its server does not list them" in problem
    assert "the store cannot list" in caplog.text


def test_a_dataset_that_a_command_has_not_completed_has_a_note() -> None:
    group = zarrfs.create_group(MemoryStore(), attributes={"zarrfs_unfinished": {"command": "copy"}})
    group.create_array("a", data=np.zeros((4, 5), "u2"))
    _, image, _, notes = open_first_image(describe(group), None)
    assert image is not None
    assert notes[0].startswith("unfinished: the command that writes it has not completed")
    del group.attrs["zarrfs_unfinished"]
    assert open_first_image(describe(group), None)[3] == ()


def test_the_largest_image_of_a_file_is_opened_first_also_from_an_inner_group(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    file = tmp_path / "data.h5"
    with h5py.File(file, "w") as stored:
        stored["a_table"] = np.array([(1, 2.0), (3, 4.0)], dtype=[("id", "i4"), ("v", "f8")])
        stored["calibration"] = np.ones((2, 3))
        stored["measured/raw"] = np.ones((4, 50, 60), "u2")
        stored["measured/time"] = np.arange(1000.0)
        stored["measured/thumbnails/raw"] = np.ones((5, 6), "u1")
    dataset = describe(open_node(str(file), ""), str(file))
    names = ["calibration", "measured/raw", "measured/thumbnails/raw"]
    assert [entry.path for entry in dataset.images] == names
    assert dataset.open_image().path == "measured/raw"
    assert dataset.open_image().shape == (4, 50, 60)
    assert dataset.open_image("calibration").shape == (2, 3)


def test_a_declared_image_precedes_larger_arrays() -> None:
    members = {"a": FakeArray(np.ones((500, 500))), "b": pyramid(random_values((8, 8)), "yx")}
    dataset = describe(FakeGroup({}, members))
    assert dataset.open_image().path == "b"
