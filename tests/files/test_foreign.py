"""TIFF, NumPy, HDF5, kerchunk references and TensorStore specs as locations of the viewer."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from zarrfs_viewer.images.opening import open_dataset
from zarrfs_viewer.locations import absolute_location, node_location

import zarrfs
from tests.threads import run_in_threads
from zarrfs.errors import NodeNotFoundError, StoreError, ZarrError
from zarrfs.files.contiguous import ContiguousValues
from zarrfs.files.recognition import open_node

RANDOM = np.random.default_rng(5)


def image(*shape: int, dtype: str = "uint16") -> np.ndarray:
    return RANDOM.integers(0, 200, shape).astype(dtype)


TIFFS: dict[str, tuple[tuple[int, ...], str, dict[str, Any]]] = {
    "plane": ((50, 70), "uint8", {}),
    "contiguous stack": ((4, 50, 70), "float32", {}),
    "strips": ((3, 50, 70), "uint16", {"compression": "zlib", "rowsperstrip": 7, "predictor": True}),
    "tiles": ((3, 50, 70), "int16", {"compression": "zlib", "tile": (16, 32)}),
    "rgb": ((50, 70, 3), "uint8", {"photometric": "rgb"}),
    "rgb tiles": ((2, 50, 70, 3), "uint8", {"photometric": "rgb", "tile": (32, 32), "compression": "zlib"}),
    "planes of samples": (
        (3, 50, 70),
        "uint8",
        {"photometric": "rgb", "planarconfig": "separate", "rowsperstrip": 9, "compression": "zlib"},
    ),
    "big-endian": ((2, 50, 70), "uint16", {"byteorder": ">"}),
    "big-endian tiles": ((2, 50, 70), "float64", {"byteorder": ">", "tile": (16, 16), "compression": "zlib"}),
    "BigTIFF": ((50, 70), "int32", {"bigtiff": True}),
}


@pytest.mark.parametrize("name", TIFFS)
def test_the_values_of_tiff_files_are_those_of_tifffile(name: str, tmp_path: Path) -> None:
    shape, dtype, options = TIFFS[name]
    data = image(*shape, dtype=dtype)
    tifffile.imwrite(tmp_path / "a.tif", data, **{"photometric": "minisblack", **options})
    group = open_node(str(tmp_path / "a.tif"), "")
    array = group["0"]
    assert array.dtype.newbyteorder("=") == data.dtype
    assert np.array_equal(array[...], data)
    assert np.array_equal(array[..., 5:31, 20:43], data[..., 5:31, 20:43])
    group.store.close()


@pytest.mark.parametrize("compression", ["tiff_lzw", "jpeg"])
def test_compressions_of_imagecodecs_are_decoded_or_the_package_is_named(
    compression: str, tmp_path: Path
) -> None:
    picture = Image.fromarray((np.arange(60 * 50) % 251).astype("u1").reshape(60, 50))
    picture.save(tmp_path / "a.tif", compression=compression)
    if importlib.util.find_spec("imagecodecs") is None:
        name = compression.removeprefix("tiff_").upper()
        with pytest.raises(ZarrError, match=f"the compression {name} needs the package imagecodecs"):
            open_node(str(tmp_path / "a.tif"), "")
    else:
        group = open_node(str(tmp_path / "a.tif"), "")
        with Image.open(tmp_path / "a.tif") as expected:
            np.testing.assert_array_equal(group["0"][:], np.asarray(expected))
        group.store.close()


def test_an_ome_tiff_has_axes_pixel_sizes_channels_and_levels(tmp_path: Path) -> None:
    data = image(2, 3, 64, 80)
    metadata = {
        "axes": "CZYX",
        "PhysicalSizeX": 0.5,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": 250,
        "PhysicalSizeYUnit": "nm",
        "Channel": {"Name": ["DNA", "actin"]},
    }
    file = tmp_path / "a.ome.tif"
    with tifffile.TiffWriter(file) as writer:
        writer.write(data, subifds=1, tile=(32, 32), compression="zlib", metadata=metadata)
        writer.write(data[..., ::2, ::2], subfiletype=1, tile=(32, 32), compression="zlib")
    _, (dataset, found, _, problems) = open_dataset(str(file), str(file), "", None)
    assert problems == ()
    assert found is not None
    assert [axis.name for axis in found.axes] == ["c", "z", "y", "x"]
    assert [axis.unit for axis in found.axes[2:]] == ["nanometer", "micrometer"]
    assert [level.shape for level in found.levels] == [(2, 3, 64, 80), (2, 3, 32, 40)]
    assert found.levels[1].scale == (1.0, 1.0, 500.0, 1.0)
    assert [channel.label for channel in found.channels] == ["DNA", "actin"]
    for level, step in zip(found.levels, (1, 2), strict=True):
        assert np.array_equal(level.array[...], data[..., ::step, ::step])
    assert dataset is not None


def test_an_imagej_hyperstack_has_its_spacing(tmp_path: Path) -> None:
    data = image(4, 2, 50, 70)
    metadata = {"axes": "ZCYX", "spacing": 2.0, "unit": "um"}
    tifffile.imwrite(tmp_path / "a.tif", data, imagej=True, metadata=metadata, resolution=(4, 2))
    _, (_, found, _, _) = open_dataset(str(tmp_path / "a.tif"), "a", "", None)
    assert found is not None
    assert found.levels[0].scale == (2.0, 1.0, 0.5, 0.25)
    assert found.channel_axis == 1
    assert np.array_equal(found.levels[0].array[...], data)


def test_several_images_in_a_tiff_file_are_series(tmp_path: Path) -> None:
    images = [image(20, 30), image(3, 40, 50, dtype="uint8")]
    with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
        for one in images:
            writer.write(one, metadata=None if one.ndim == 2 else {"axes": "ZYX"}, photometric="minisblack")
    _, (dataset, found, _, _) = open_dataset(str(tmp_path / "a.tif"), "a", "", None)
    assert found is not None
    assert len(dataset.images) >= 2
    for number, one in enumerate(images):
        assert np.array_equal(open_node(str(tmp_path / f"a.tif/{number}/0"), "")[...], one)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint8", ">i4", "float16", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (7,), (20, 30), (3, 4, 20, 30)])
def test_the_values_of_npy_files_are_those_of_numpy(
    shape: tuple[int, ...], dtype: str, order: str, tmp_path: Path
) -> None:
    data = np.asarray(image(*shape, dtype=dtype) if shape else np.array(3).astype(dtype), order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "a.npy", data)
    array = open_node(str(tmp_path / "a.npy"), "")
    assert np.array_equal(array[...], data)
    array.store.close()


@given(st.data())
def test_regions_of_contiguous_values_are_exact(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=4)))
    values = np.arange(int(np.prod(shape)), dtype=">i2").reshape(shape)
    fortran = data.draw(st.booleans())
    region = []
    for length in shape:
        start = data.draw(st.integers(0, length - 1))
        region.append(slice(start, data.draw(st.integers(start + 1, length))))
    fd = os.memfd_create("values")
    try:
        os.write(fd, b"head" + values.tobytes("F" if fortran else "C"))
        found = ContiguousValues(fd, 4, shape, values.dtype, fortran).read(tuple(region))
        assert np.array_equal(found, values[tuple(region)])
    finally:
        os.close(fd)


def test_the_datasets_of_an_hdf5_file_are_arrays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = image(4, 30, 40)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        chunked = file.create_dataset("images/raw", data=data, chunks=(2, 16, 16), compression="gzip")
        for dimension, label in zip(chunked.dims, "zyx", strict=True):
            dimension.label = label
        chunked.attrs["element_size_um"] = np.array([2.0, 0.5, 0.5])
        file["images/whole"] = data.astype(">f4")
        file["number"] = 7
        file["text"] = "no numbers"
        file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
        file["loop"] = h5py.SoftLink("/images")
        file["other"] = h5py.ExternalLink("b.h5", "/x")
    root = open_node(str(tmp_path / "a.h5"), "")
    assert sorted(root) == ["images", "number", "text"]
    assert root["text"][()] == "no numbers"
    assert {record.getMessage().split("'")[1] for record in caplog.records} == {"other", "ragged"}
    raw = root["images/raw"]
    assert raw.chunks == (2, 16, 16)
    assert list(raw.dimension_names) == ["z", "y", "x"]
    assert raw.attrs["element_size_um"] == [2.0, 0.5, 0.5]
    assert np.array_equal(raw[...], data)
    assert np.array_equal(root["images/whole"][1:3, 4:9], data[1:3, 4:9])
    assert root["number"][()] == 7
    assert np.array_equal(open_node(str(tmp_path / "a.h5/images"), "raw")[...], data)
    assert run_in_threads(lambda _: np.array_equal(raw[...], data), range(4)) == [True] * 4
    root.store.close()
    root.store.close()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((20, 30), "u2"))
    array = open_node(str(tmp_path / "a.npy"), "")
    assert not array[...].any()
    with (tmp_path / "a.npy").open("r+b") as file:
        file.seek(-2 * 30, os.SEEK_END)
        file.write(b"\1\0" * 30)
    os.utime(tmp_path / "a.npy", ns=(1, 1))
    assert array[...].sum() == 30
    os.truncate(tmp_path / "a.npy", 500)
    with pytest.raises(ZarrError, match="cannot be read"):
        array[...]


def test_kerchunk_references_are_opened(tmp_path: Path) -> None:
    data = image(20, 30)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(20, 30), zarr_format=2, compressors=None)
    (key,) = [path.name for path in (tmp_path / "a.zarr").iterdir() if path.name[0] != "."]
    document = (tmp_path / "a.zarr" / ".zarray").read_text()
    refs = {
        ".zgroup": '{"zarr_format": 2}',
        "x/.zarray": document,
        f"x/{key}": [str(tmp_path / "a.zarr" / key), 0, data.nbytes],
    }
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
    group = open_node(str(tmp_path / "refs.json"), "")
    assert np.array_equal(group["x"][...], data)
    assert np.array_equal(open_node(str(tmp_path / "refs.json/x"), "")[...], data)


def test_tensorstore_specs_are_opened(tmp_path: Path) -> None:
    data = image(20, 30)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(20, 30))
    spec = json.dumps({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/a.zarr/"}})
    (tmp_path / "spec.json").write_text(spec)
    for location in (spec, str(tmp_path / "spec.json"), f"file://{tmp_path}/a.zarr/|zarr3:"):
        assert absolute_location(node_location(location)) == location
        _, (_, found, _, _) = open_dataset(location, location, "", None)
        assert found is not None
        assert np.array_equal(found.levels[0].array[...], data)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tif", b"II*\0"),
        ("a.tif", b"II*\0" + bytes(100)),
        ("a.tif", b"II*\0\xff\xff\xff\xff"),
        ("a.npy", b"\x93NUMPY"),
        ("a.npy", b"\x93NUMPY\1\0\4\0{}}}"),
        ("a.npy", b"\x93NUMPY\1\0\x3e\0{'descr': '<u2', 'fortran_order': False, 'shape': (9, 9), }    \n"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(100)),
        ("a.json", b"{"),
        ("a.json", b'{"a": 1}'),
        ("a.json", b'{"driver": "no such driver"}'),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ZarrError, match=name.replace(".", r"\.") if b"driver" not in content else "driver"):
        open_node(str(tmp_path / name), "")


def test_a_damaged_tile_is_an_error(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", image(64, 64), tile=(32, 32), compression="zlib")
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        page = file.pages[0]
        offset, count = page.dataoffsets[1], page.databytecounts[1]  # type: ignore[union-attr]
    with (tmp_path / "a.tif").open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\xff" * count)
    array = open_node(str(tmp_path / "a.tif"), "")["0"]
    assert array[:32, :32].any()
    with pytest.raises(ZarrError, match="cannot be read"):
        array[...]


@pytest.mark.parametrize(("module", "name"), [("tifffile", "a.tif"), ("h5py", "a.h5")])
def test_a_missing_package_is_named(
    module: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"II*\0" if module == "tifffile" else b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ZarrError, match=f"needs the package '{module}'.*pip install"):
        open_node(str(tmp_path / name), "")


def test_objects_without_numbers_are_errors(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(["text"]))
    with pytest.raises(ZarrError, match="expected numbers"):
        open_node(str(tmp_path / "a.npy"), "")
    np.save(tmp_path / "b.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ZarrError, match="expected numbers"):
        open_node(str(tmp_path / "b.npy"), "")


def test_a_directory_of_image_files_is_a_stack(tmp_path: Path) -> None:
    values = np.random.default_rng(5).integers(0, 60000, (12, 20, 30), "u2")
    for number, plane in enumerate(values):
        tifffile.imwrite(tmp_path / f"z{number}.tif", plane, compression="zlib")
    array = open_node(str(tmp_path), "0")
    np.testing.assert_array_equal(array[...], values)
    tifffile.imwrite(tmp_path / "z11.tif", values[0], compression="zlib")
    np.testing.assert_array_equal(array[11], values[0])
    tifffile.imwrite(tmp_path / "z11.tif", values[0, :5], compression="zlib")
    with pytest.raises(StoreError, match=r"z11.tif has changed: found shape \(5, 30\)"):
        array[11]
    (tmp_path / "empty").mkdir()
    with pytest.raises(NodeNotFoundError):
        open_node(str(tmp_path / "empty"), "")
