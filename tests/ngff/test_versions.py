"""Conversion of OME-NGFF between 0.4 and 0.5 with the Zarr format: both are valid, and the round trip loses nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from zarrfs.cli.main import main
from zarrfs.ngff import check_node
from zarrfs.ngff.versions import for_zarr_format
from zarrfs.tools import convert, migrate

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
    assert change.note == f"OME-NGFF {version} is unchanged: only 0.4 can be converted to 0.5"
    later = {"ome": {"version": "0.6", "multiscales": []}}
    assert "only 0.5 can be converted to 0.4" in for_zarr_format(later, "", 2).note


@pytest.mark.parametrize("version", ["absent", "0.4", 0.4])
def test_a_version_that_is_absent_or_a_number_is_that_of_0_4(version: Any) -> None:
    item = multiscales()[0]
    del item["version"]
    if version != "absent":
        item["version"] = version
    change = for_zarr_format({"multiscales": [item]}, "image", 3)
    assert change.note == "OME-NGFF 0.4 converted to 0.5"
    assert "version" not in change.attributes["ome"]["multiscales"][0]
