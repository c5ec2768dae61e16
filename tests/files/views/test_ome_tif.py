"""OME-TIFF files, read with tifffile and GDAL."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import tifffile

import zarrfs
from tests.files.views.presented import (
    ContentFile,
    axes_of,
    make_array,
    present,
    refused,
    sample,
    write_file,
)
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.tiff import directories as tiff_directories
from zarrfs.ngff.model import Channel
from zarrfs.testing import CountingStore

TYPES = {
    "|u1": "uint8",
    "|i1": "int8",
    "<u2": "uint16",
    ">u2": "uint16",
    ">i2": "int16",
    "<i4": "int32",
    ">u4": "uint32",
    "<f4": "float",
    ">f4": "float",
    "<f8": "double",
    ">f8": "double",
    "<c8": "complex",
    ">c16": "double-complex",
}
NAMES = {"ome": "http://www.openmicroscopy.org/Schemas/OME/2016-06"}


def read(path: Path) -> tuple[np.ndarray[Any, Any], str, ET.Element]:
    with tifffile.TiffFile(path) as file:
        assert file.is_ome
        assert file.is_bigtiff
        (series,) = file.series
        xml = file.ome_metadata
        assert xml is not None
        values, axes = series.asarray(), series.axes
    if values.dtype.kind != "c":  # tifffile does not map all complex types
        assert np.array_equal(tifffile.memmap(path, mode="r"), values)
    return values, axes, ET.fromstring(xml)


def pixels(root: ET.Element) -> ET.Element:
    element = root.find("ome:Image/ome:Pixels", NAMES)
    assert element is not None
    return element


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", TYPES)
def test_tifffile_reads_the_values(dtype: str, order: str, tmp_path: Path) -> None:
    data = sample(dtype, (3, 4, 5, 6))
    path = write_file(
        make_array(data, order=order), ".ome.tif", tmp_path, geometry=axes_of("t", "z", "y", "x")
    )
    values, axes, root = read(path)
    assert (axes, values.shape) == ("TZYX", data.shape)
    assert values.dtype == data.dtype.newbyteorder("=")
    assert np.array_equal(values, data)
    assert pixels(root).get("Type") == TYPES[dtype]


@pytest.mark.parametrize(
    ("axes", "stored"),
    [
        *(("yx", "YX"), ("xy", "YX"), ("zyx", "ZYX"), ("czyx", "CZYX"), ("zcyx", "ZCYX"), ("ctyx", "CTYX")),
        *(("tczyx", "TCZYX"), ("xyzct", "ZCTYX"), ("yxc", "CYX"), ("zxty", "ZTYX")),
    ],
)
def test_the_order_of_the_planes_is_that_of_the_array(axes: str, stored: str, tmp_path: Path) -> None:
    lengths = {"t": 2, "z": 3, "c": 4, "y": 5, "x": 6}
    data = sample("<u2", tuple(lengths[axis] for axis in axes))
    path = write_file(make_array(data), ".ome.tif", tmp_path, geometry=axes_of(*axes))
    values, found, root = read(path)
    assert found == stored
    assert np.array_equal(values, data.transpose([axes.index(axis) for axis in stored.lower()]))
    for axis, length in lengths.items():
        assert pixels(root).get(f"Size{axis.upper()}") == str(length if axis in axes else 1)


def test_other_dimensions_are_time_points(tmp_path: Path) -> None:
    data = sample("<u2", (2, 3, 4, 5, 6))
    geometry = axes_of("angle", "t", "z", "y", "x")
    values, axes, _ = read(write_file(make_array(data), ".ome.tif", tmp_path, geometry=geometry))
    assert (axes, values.shape) == ("TZYX", (6, 4, 5, 6))
    assert np.array_equal(values, data.reshape(values.shape))


def test_boolean_values_and_scalars(tmp_path: Path) -> None:
    data = sample("?", (4, 5))
    assert np.array_equal(read(write_file(make_array(data), ".ome.tif", tmp_path))[0], data)
    assert read(write_file(make_array(np.array(7, "<u2")), ".ome.tif", tmp_path))[0].tolist() == [[7]]


def test_physical_sizes(tmp_path: Path) -> None:
    geometry = axes_of(
        *("t", "z", "y", "x"),
        t=(2500, "millisecond"),
        z=(2, "micrometer"),
        y=(500, "nanometer"),
        x=(0.25, "micrometer"),
    )
    path = write_file(make_array(sample("<u2", (3, 2, 4, 5))), ".ome.tif", tmp_path, geometry=geometry)
    element = pixels(read(path)[2])
    sizes = {name: float(element.attrib[f"PhysicalSize{name}"]) for name in "XYZ"}
    assert sizes == {"X": 0.25, "Y": 0.5, "Z": 2}
    assert {element.attrib[f"PhysicalSize{name}Unit"] for name in "XYZ"} == {"µm"}
    assert (element.attrib["TimeIncrement"], element.attrib["TimeIncrementUnit"]) == ("2.5", "s")
    with tifffile.TiffFile(path) as file:
        for page in file.pages:
            assert page.tags["XResolution"].value == (40000, 1)
            assert page.tags["YResolution"].value == (20000, 1)
            assert page.tags["ResolutionUnit"].value == 3


def test_names(tmp_path: Path) -> None:
    channels = (Channel('<&"µ>\x00\x1b\ud800', (255, 0, 0)), Channel(None, None), Channel("c", (0, 0, 255)))
    known = replace(axes_of("c", "y", "x")(), channels=channels, image_name="größe\n")
    path = write_file(make_array(sample("<u2", (4, 4, 5))), ".ome.tif", tmp_path, geometry=lambda: known)
    root = read(path)[2]
    elements = pixels(root).findall("ome:Channel", NAMES)
    assert [element.get("Name") for element in elements] == ['<&"µ>\\x00\\x1b\\ud800', None, "c", None]
    assert [element.get("Color") for element in elements] == ["-16776961", None, "65535", None]
    image = root.find("ome:Image", NAMES)
    assert image is not None
    assert image.get("Name") == "größe\\n"


def test_there_are_no_character_references(tmp_path: Path) -> None:
    """Bio-Formats does not read an OME-XML document with ``&#``, and shows the planes as time points without units."""
    geometry = axes_of("z", "y", "x", z=(2, "micrometer"), y=(1, "micrometer"), x=(1, "micrometer"))
    path = write_file(make_array(sample("<u2", (2, 4, 5))), ".ome.tif", tmp_path, geometry=geometry)
    document, _, _ = path.read_bytes().partition(b"</OME>")
    assert 'PhysicalSizeZUnit="µm"'.encode() in document
    assert b"&#" not in document


def test_strips_of_large_planes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiff_directories, "MAX_STRIP_NBYTES", 35)
    data = sample("<u2", (3, 7, 5))
    path = write_file(make_array(data), ".ome.tif", tmp_path, geometry=axes_of("z", "y", "x"))
    assert np.array_equal(read(path)[0], data)
    with tifffile.TiffFile(path) as file:
        assert [len(page.dataoffsets) for page in file.pages] == [3, 3, 3]


def test_gdal_reads_each_plane(tmp_path: Path) -> None:
    data = sample(">u2", (3, 4, 5))
    path = write_file(make_array(data), ".ome.tif", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        for number in range(3):
            with rasterio.open(f"GTIFF_DIR:{number + 1}:{path}") as file:
                assert np.array_equal(file.read(1), data[number])


def test_listing_the_planes_reads_no_chunk() -> None:
    store = CountingStore(MemoryStore())
    array = zarrfs.create_array(store, "img", shape=(2000, 3, 64, 64), chunks=(1, 1, 64, 64), dtype="u2")
    store.reset()
    content = present(array, ".ome.tif", geometry=axes_of("t", "c", "y", "x"))
    with tifffile.TiffFile(ContentFile(content)) as file:
        assert len(file.pages) == 6000
        assert file.series[0].shape == (2000, 3, 64, 64)
        assert file.pages[5999].dataoffsets[0] == content.size - 64 * 64 * 2
    assert not store.keys


def test_a_large_array_costs_no_memory() -> None:
    array = zarrfs.create_array(
        MemoryStore(), "img", shape=(1 << 20, 1 << 17, 1 << 17), chunks=(1, 1024, 1024), dtype="u1"
    )
    content = present(array, ".ome.tif", geometry=axes_of("z", "y", "x"))
    assert content.memory_nbytes < 10_000
    stop = content.size - array.nbytes
    assert len(content.read(stop - 100_000, 100_000)) == 100_000


@pytest.mark.parametrize("dtype", ["<i8", "<u8", "<f2", "|S3", "<M8[s]", [("x", "<i4")]], ids=str)
def test_types_without_equivalent_are_absent(dtype: Any) -> None:
    assert refused(make_array(np.zeros((3, 4), dtype)), ".ome.tif").startswith("OME-TIFF has no data type")


def test_limits() -> None:
    assert refused(make_array(np.zeros((0, 4), "u1")), ".ome.tif") == "it has no elements"
    array = zarrfs.create_array(MemoryStore(), "img", shape=(1 << 17, 4, 4), chunks=(1, 4, 4), dtype="u1")
    assert "channels" in refused(array, ".ome.tif", geometry=axes_of("c", "y", "x"))
