"""The readable summary of arrays and groups, and the status of OME-NGFF metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
from zarrfs_viewer.analysis.node_summary import check_status, node_summary, stored_array_summary
from zarrfs_viewer.analysis.readout import format_coordinate

import zarrfs
from zarrfs.engine.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrfs.engine.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrfs.ngff import check_node
from zarrfs.synthetic import make_picture, write_image


def test_an_array_is_described_without_technical_keys(tmp_path: Path) -> None:
    array = zarrfs.create_array(
        tmp_path / "a.zarr",
        shape=(64, 2048),
        dtype="u2",
        chunks=(8, 64),
        shards=(32, 128),
        compressors=[ZstdCodec(level=3), Crc32cCodec()],
        dimension_names=["y", "x"],
        fill_value=7,
    )
    assert node_summary(array) == {
        "Array": "/",
        "Shape": "64 x 2048",
        "Dimensions": "y x",
        "Data type": "uint16",
        "Size": "256 KiB",
        "Chunks": "8 x 64",
        "Chunk size": "1 KiB",
        "Shards": "32 x 128",
        "Fill value": "7",
        "Compression": "zstd, level 3",
        "Checksum": "crc32c",
        "Format": "Zarr 3",
    }
    array[:32] = np.arange(2048)
    stored = stored_array_summary(array)
    assert stored["Stored shards"] == "16 of 32"
    assert float(stored["Compression ratio"]) > 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"dtype": ">u2", "compressors": None}, {"Data type": "uint16, big-endian", "Compression": "none"}),
        (
            {"dtype": "u2", "filters": [numcodecs.Delta("u2")], "compressors": numcodecs.Blosc("lz4", 5)},
            {"Filters": "delta", "Compression": "blosc (lz4), level 5"},
        ),
        ({"dtype": "U7"}, {"Data type": "text of up to 7 characters", "Fill value": '""'}),
        ({"dtype": "S5"}, {"Data type": "bytes, up to 5"}),
        ({"dtype": "V3"}, {"Data type": "3 raw bytes"}),
        ({"dtype": "?", "fill_value": True}, {"Data type": "bool", "Fill value": "true"}),
        (
            {"dtype": "f4", "fill_value": np.nan, "order": "F"},
            {"Fill value": "NaN", "Memory order": "column-major (F)"},
        ),
        (
            {"dtype": [("a", "<i4"), ("b", ">f8", (2,))]},
            {"Data type": {"a": "int32", "b": "float64, big-endian, 2"}},
        ),
    ],
)
def test_data_types_and_codecs(tmp_path: Path, options: dict[str, Any], expected: dict[str, Any]) -> None:
    array = zarrfs.create_array(tmp_path / "a.zarr", shape=(8, 8), zarr_format=2, **options)
    summary = node_summary(array)
    assert {name: summary.get(name) for name in expected} == expected
    assert summary["Format"] == "Zarr 2"


def test_scalars_and_groups(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr")
    assert node_summary(group) == {"Group": "/", "Format": "Zarr 3"}
    assert node_summary(group.create_array("s", shape=(), dtype="f4"))["Shape"] == "scalar"
    rectilinear = group.create_array("r", shape=(10, 4), dtype="u1", chunks=((2, 8), (4,)))
    assert node_summary(rectilinear)["Chunks"] == "(2 to 8) x 4"
    assert "Chunk size" not in node_summary(rectilinear)


def test_the_status_of_the_metadata(tmp_path: Path) -> None:
    write_image(tmp_path / "i.zarr", make_picture((2, 16, 16)))
    group = zarrfs.open_group(tmp_path / "i.zarr", mode="r+")
    assert check_status(check_node(group)) == {"OME-NGFF": "0.5, valid"}
    assert check_status(check_node(zarrfs.open(tmp_path / "i.zarr")["0"])) == {}
    attributes = group.attrs.asdict()
    del attributes["ome"]["multiscales"][0]["axes"]
    group.attrs.put(attributes)
    details = check_status(check_node(group))["OME-NGFF"]
    assert details["Version"] == "0.5"
    assert details["Status"].startswith("not valid, ")
    assert any("axes" in text for text in details.values())


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (3.25, 0.5, "3.25"),
        (123456.75, 0.25, "123456.75"),
        (1e12 - 4, -2.0, "999999999996"),
        (0.0, 1.0, "0"),
        (1 / 3, 1e-30, "0.333333333333333"),
        (5.0, 0.0, "5"),
    ],
)
def test_coordinates_have_the_digits_of_the_pixel_size(value: float, step: float, text: str) -> None:
    assert format_coordinate(value, step) == text
