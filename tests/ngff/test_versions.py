"""Conversion of OME-NGFF between 0.4 and 0.5 with the Zarr format: both are valid, and the round trip loses nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from zarrfs.cli.main import main
from zarrfs.errors import OptionError, UnsupportedError
from zarrfs.ngff import check_attributes, check_node, parse
from zarrfs.ngff.editing import with_axis_name, with_axis_unit, with_pixel_size
from zarrfs.ngff.versions import for_zarr_format, to_version
from zarrfs.tools import build_pyramid, convert, migrate

AXES = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]


def multiscales(rank: int = 3) -> list[dict[str, Any]]:
    datasets = [
        {
            "path": str(n),
            "coordinateTransformations": [{"type": "scale", "scale": [1.0, 2.0**n, 2.0**n][-rank:]}],
        }
        for n in range(2)
    ]
    return [{"version": "0.4", "name": "i", "axes": AXES[-rank:], "datasets": datasets}]


def create_image_arrays(group: zarrfs.Group, rank: int = 3) -> None:
    for n in range(2):
        data = np.arange(2 * 8 * 8, dtype="u2").reshape(2, 8, 8)[:, :: 1 + n, :: 1 + n]
        chunks = (1, 4, 4)[-rank:]
        group.create_array(
            str(n), data=data if rank == 3 else data[0], chunks=chunks, dimension_separator="/"
        )


@pytest.fixture
def plate(tmp_path: Path) -> Path:
    """A plate with one well, one image with labels, and an attribute that is not OME-NGFF metadata."""
    path = tmp_path / "plate.zarr"
    root = zarrfs.create_group(
        path,
        zarr_format=2,
        attributes={
            "mine": 1,
            "plate": {
                "version": "0.4",
                "rows": [{"name": "A"}],
                "columns": [{"name": "1"}],
                "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}],
            },
        },
    )
    root.create_group("A/1", attributes={"well": {"version": "0.4", "images": [{"path": "0"}]}})
    image = root.create_group("A/1/0", attributes={"multiscales": multiscales(), "omero": omero()})
    create_image_arrays(image)
    image.create_group("labels", attributes={"labels": ["cells"]})
    label = {"version": "0.4", "colors": [{"label-value": 1, "rgba": [1, 2, 3, 4]}]}
    cells = image.create_group(
        "labels/cells", attributes={"multiscales": multiscales(2), "image-label": label}
    )
    create_image_arrays(cells, 2)
    return path


def omero() -> dict[str, Any]:
    window = {"start": 0, "end": 9, "min": 0, "max": 9}
    return {"channels": [{"color": "FF0000", "window": window, "label": "a", "active": True}] * 2}


IMAGES = ("", "A/1", "A/1/0", "A/1/0/labels", "A/1/0/labels/cells")


def assert_valid(path: Path, version: str, zarr_format: int) -> None:
    for below in IMAGES:
        node = zarrfs.open_group(path, below)
        report = check_node(node)
        assert node.zarr_format == zarr_format
        assert report.valid, (below, report)
        assert [message.message for message in report.messages if message.tier == "semantic"] == []
        assert report.version in (version, None), below


def test_convert_changes_the_ngff_version_with_the_format(plate: Path, tmp_path: Path) -> None:
    report = convert(plate, tmp_path / "three.zarr", zarr_format=3, verify=True)
    assert "A/1/0: group; OME-NGFF 0.4 converted to 0.5" in report
    assert "A/1/0/0: chunks copied unchanged" in report
    assert_valid(tmp_path / "three.zarr", "0.5", 3)
    format_3 = zarrfs.open_group(tmp_path / "three.zarr")
    assert set(format_3.attrs) == {"mine", "ome"}
    assert format_3["A/1/0"].attrs["ome"]["omero"] == omero()
    assert format_3["A/1/0/0"].dimension_names == ("c", "y", "x")
    assert format_3["A/1/0/labels/cells/1"].dimension_names == ("y", "x")
    assert format_3["A/1/0/0"].fill_value == 0
    report = convert(tmp_path / "three.zarr", tmp_path / "two.zarr", zarr_format=2, verify=True)
    assert "A/1/0: group; OME-NGFF 0.5 converted to 0.4" in report
    assert_valid(tmp_path / "two.zarr", "0.4", 2)
    format_2 = zarrfs.open_group(tmp_path / "two.zarr")
    before = zarrfs.open_group(plate)
    for below in IMAGES:
        assert dict(zarrfs.open_group(format_2.store, below).attrs) == dict(
            zarrfs.open_group(before.store, below).attrs
        )


def test_chunk_keys_of_converted_shards_follow_0_4(tmp_path: Path) -> None:
    ome = {"version": "0.5", "multiscales": [{k: v for k, v in multiscales()[0].items() if k != "version"}]}
    group = zarrfs.create_group(tmp_path / "s.zarr", attributes={"ome": ome})
    for n in range(2):
        group.create_array(str(n), data=np.ones((2, 8 >> n, 8 >> n)), chunks=(1, 2, 2), shards=(2, 4, 4))
    report = convert(tmp_path / "s.zarr", tmp_path / "t.zarr", zarr_format=2)
    assert "0: re-encoded; shards (2, 4, 4) are dropped: format 2 does not support sharding" in report
    checked = check_node(zarrfs.open_group(tmp_path / "t.zarr"))
    assert checked.valid
    assert [message for message in checked.messages if message.tier == "semantic"] == []


def test_migrate_changes_the_ngff_version(plate: Path) -> None:
    lines = migrate(plate, remove_old=True)
    assert "A/1: format 2 to 3; OME-NGFF 0.4 converted to 0.5" in lines
    assert_valid(plate, "0.5", 3)
    assert zarrfs.open_array(plate, "A/1/0/0").dimension_names == ("c", "y", "x")


def test_keep_ngff_keeps_the_version(plate: Path, tmp_path: Path) -> None:
    attributes = dict(zarrfs.open_group(plate, "A/1/0").attrs)
    convert(plate, tmp_path / "t.zarr", zarr_format=3, keep_ngff=True)
    shutil.copytree(plate, tmp_path / "m.zarr")
    migrate(tmp_path / "m.zarr", keep_ngff=True, remove_old=True)
    result = CliRunner().invoke(
        main, ["convert", str(plate), str(tmp_path / "c.zarr"), "--format", "3", "--keep-ngff"]
    )
    assert result.exit_code == 0, result.output
    for name in "tmc":
        group = zarrfs.open_group(tmp_path / f"{name}.zarr", "A/1/0")
        assert dict(group.attrs) == attributes
        assert group["0"].dimension_names is None


def test_other_attributes_are_unchanged() -> None:
    others = {"labels": ["a"], "series": ["b"], "plate": 3, "multiscales": [1], "ome": {"version": "0.6"}}
    for zarr_format in (2, 3, "n5"):
        assert for_zarr_format(others, "labelled", zarr_format).attributes == others
    assert for_zarr_format({"labels": ["a"]}, "labels", 3).attributes == {
        "ome": {"version": "0.5", "labels": ["a"]}
    }
    assert for_zarr_format({"series": ["0"]}, "OME", 3).attributes == {
        "ome": {"version": "0.5", "series": ["0"]}
    }
    layout = {"bioformats2raw.layout": 3}
    upgraded = for_zarr_format(layout, "", 3)
    assert upgraded.attributes == {"ome": {"version": "0.5", **layout}}
    assert for_zarr_format(upgraded.attributes, "", 2).attributes == layout


@pytest.mark.parametrize("version", ["0.1", "0.3"])
def test_older_versions_are_unchanged_and_reported(version: str) -> None:
    attributes = {"multiscales": [{"version": version, "datasets": [{"path": "0"}]}]}
    change = for_zarr_format(attributes, "", 3)
    assert change.attributes == attributes
    assert change.note == f"OME-NGFF {version} is unchanged: only 0.4, 0.5, 0.6rc0 can be converted"
    later = {"ome": {"version": "0.7", "multiscales": []}}
    assert "OME-NGFF 0.7 is unchanged: only 0.4" in for_zarr_format(later, "", 2).note


@pytest.mark.parametrize("version", ["absent", "0.4", 0.4])
def test_a_version_that_is_absent_or_a_number_is_that_of_0_4(version: Any) -> None:
    item = multiscales()[0]
    del item["version"]
    if version != "absent":
        item["version"] = version
    change = for_zarr_format({"multiscales": [item]}, "image", 3)
    assert change.note == "OME-NGFF 0.4 converted to 0.5"
    assert "version" not in change.attributes["ome"]["multiscales"][0]


def test_images_are_converted_to_0_6_and_back_without_loss() -> None:
    item = {**multiscales()[0], "coordinateTransformations": [{"type": "scale", "scale": [1.0, 0.5, 0.5]}]}
    item["datasets"][1]["coordinateTransformations"].append({"type": "translation", "translation": [0, 1, 1]})
    attributes = {"mine": 1, "multiscales": [item], "omero": omero()}
    newest = to_version(attributes, "", "0.6")
    assert (newest.note, newest.lost) == ("OME-NGFF 0.4 converted to 0.6rc0", ())
    assert newest.axes == {"0": ("c", "y", "x"), "1": ("c", "y", "x")}
    ome = newest.attributes["ome"]
    assert (newest.attributes["mine"], ome["version"], ome["omero"]) == (1, "0.6rc0", omero())
    assert ome["multiscales"][0]["coordinateSystems"] == [{"name": "physical", "axes": AXES}]
    before, after = (parse(each).multiscales[0] for each in (attributes, newest.attributes))
    assert before.levels[1].translation == (0, 0.5, 0.5)
    assert [(level.scale, level.translation or (0.0,) * 3) for level in before.levels] == [
        (level.scale, level.translation or (0.0,) * 3) for level in after.levels
    ]
    back = to_version(newest.attributes, "", "0.4")
    assert (back.note, back.lost) == ("OME-NGFF 0.6rc0 converted to 0.4", ())
    assert parse(back.attributes).multiscales[0].levels == after.levels
    assert (
        to_version(to_version(back.attributes, "", "0.5").attributes, "", "0.6").attributes
        == newest.attributes
    )
    for version, change in (("0.4", back), ("0.6rc0", newest)):
        report = check_attributes(change.attributes)
        assert (report.valid, report.version) == (True, version), report.messages


def test_what_an_earlier_version_cannot_state_is_named() -> None:
    systems = [{"name": "w", "axes": AXES}]
    step = {"type": "mapAxis", "mapAxis": [0, 2, 1], "input": {"name": "physical"}, "output": {"name": "w"}}
    document = to_version({"multiscales": multiscales()}, "", "0.6").attributes
    item = document["ome"]["multiscales"][0]
    item["coordinateSystems"] += systems
    item["coordinateTransformations"] = [step]
    change = to_version(document, "", "0.5")
    assert change.lost == ("the coordinate systems 'w'",)
    assert change.attributes["ome"]["multiscales"][0]["axes"] == AXES
    kept = for_zarr_format(document, "", 2)
    assert kept.attributes == document
    assert kept.note == "OME-NGFF 0.6rc0 is unchanged: 0.4 cannot state the coordinate systems 'w'"
    assert to_version({"ome": {"version": "0.6rc0", "scene": {}}}, "", "0.5").lost == ("the scene",)
    del item["datasets"][1]["coordinateTransformations"]
    change = to_version(document, "", "0.5")
    assert (change.refused, change.attributes) == (True, document)
    assert "the scales of its levels are not known" in change.note
    assert for_zarr_format(document, "", 3).attributes == document


def test_convert_writes_the_given_version(plate: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["convert", str(plate), str(tmp_path / "six.zarr"), "--ome-version", "0.6"]
    )
    assert result.exit_code == 0, result.output
    assert "A/1/0: group; OME-NGFF 0.4 converted to 0.6rc0" in result.output
    assert_valid(tmp_path / "six.zarr", "0.6rc0", 3)
    assert zarrfs.open_array(tmp_path / "six.zarr", "A/1/0/0").dimension_names == ("c", "y", "x")
    convert(tmp_path / "six.zarr", tmp_path / "four.zarr", ome_version="0.4")
    assert_valid(tmp_path / "four.zarr", "0.4", 2)
    group = zarrfs.open_group(tmp_path / "six.zarr", "A/1/0", mode="r+")
    ome = group.attrs["ome"]
    ome["multiscales"][0]["coordinateSystems"].append({"name": "w", "axes": AXES})
    group.attrs["ome"] = ome
    with pytest.raises(UnsupportedError, match=r"OME-NGFF 0\.5 cannot state the coordinate systems 'w'"):
        convert(tmp_path / "six.zarr", tmp_path / "five.zarr", ome_version="0.5")
    assert not (tmp_path / "five.zarr").exists()
    report = convert(tmp_path / "six.zarr", tmp_path / "five.zarr", ome_version="0.5", allow_loss=True)
    assert any("0.6rc0 converted to 0.5, without the coordinate systems 'w'" in line for line in report)
    with pytest.raises(OptionError, match="is stored in Zarr format 2, and the copy has format 3"):
        convert(plate, tmp_path / "x.zarr", zarr_format=3, ome_version="0.4")
    with pytest.raises(OptionError, match="cannot be combined"):
        convert(plate, tmp_path / "x.zarr", keep_ngff=True, ome_version="0.5")
    with pytest.raises(OptionError, match=r"expected 0.4, 0.5 or 0.6, found '0.7'"):
        convert(plate, tmp_path / "x.zarr", ome_version="0.7")


def test_pyramids_of_0_6_keep_the_other_coordinate_systems(tmp_path: Path) -> None:
    array = zarrfs.create_array(
        tmp_path / "a.zarr", data=np.zeros((40, 60), "u1"), dimension_names=("y", "x")
    )
    array.store.close()
    result = CliRunner().invoke(
        main,
        [
            "pyramid",
            str(tmp_path / "a.zarr"),
            str(tmp_path / "i.zarr"),
            "--levels",
            "2",
            "--ome-version",
            "0.6",
        ],
    )
    assert result.exit_code == 0, result.output
    report = check_node(zarrfs.open_group(tmp_path / "i.zarr"))
    assert (report.valid, report.version) == (True, "0.6rc0"), report.messages
    group = zarrfs.open_group(tmp_path / "i.zarr", mode="r+")
    ome = json.loads(json.dumps(group.attrs["ome"]).replace('"physical"', '"here"'))
    item = ome["multiscales"][0]
    item["coordinateSystems"].append({"name": "w", "axes": item["coordinateSystems"][0]["axes"]})
    item["coordinateTransformations"] = [
        {"type": "mapAxis", "mapAxis": [1, 0], "input": {"name": "here"}, "output": {"name": "w"}}
    ]
    group.attrs["ome"] = ome
    build_pyramid(tmp_path / "i.zarr", levels=3, if_exists="replace")
    group = zarrfs.open_group(tmp_path / "i.zarr")
    (image,) = parse(group.attrs).multiscales
    assert (image.system_name, [system.name for system in image.other_systems]) == ("here", ["w"])
    assert len(image.levels) == 3
    assert len(image.transformations) == 1
    report = check_node(group)
    assert report.valid, report.messages


def test_images_of_0_6_can_be_edited() -> None:
    attributes = to_version({"multiscales": multiscales()}, "", "0.6").attributes
    edited = with_pixel_size(attributes, 2, 0.25)
    assert [level.scale for level in parse(edited).multiscales[0].levels] == [(1, 1, 0.25), (1, 2, 0.5)]
    edited = with_axis_unit(with_axis_name(edited, 1, "row"), 1, "micrometer")
    axis = parse(edited).multiscales[0].axes[1]
    assert (axis.name, axis.unit) == ("row", "micrometer")
    assert check_attributes(edited).valid
