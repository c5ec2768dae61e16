"""Files that other libraries wrote, imported and compared bit for bit; and exports that are imported again."""

from __future__ import annotations

import os
import resource
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import nibabel
import nrrd
import numpy as np
import pytest
import SimpleITK
import tifffile
from click.testing import CliRunner
from PIL import Image

import zarrfs
from zarrfs.cli.main import main
from zarrfs.engine.cache import default_cache
from zarrfs.errors import LocationError, LocationNotFoundError, NodeTypeError, OptionError, UnsupportedError
from zarrfs.files import recognition as opening
from zarrfs.files.exporting import export
from zarrfs.files.importing import import_files
from zarrfs.files.stacks.names import natural_order, recognized_pattern
from zarrfs.ngff import check_node, parse
from zarrfs.tools import convert, from_hdf5, to_hdf5

VALUES = np.random.default_rng(0).integers(0, 60000, (7, 40, 50), "u2")
SCALE = (2.0, 0.5, 0.25)


def itk_image() -> Any:
    image = SimpleITK.GetImageFromArray(VALUES)
    image.SetSpacing(SCALE[::-1])
    return image


def write_itk(compress: bool = False) -> Callable[[Path], None]:
    return lambda path: SimpleITK.WriteImage(itk_image(), str(path), compress)


def write_nrrd(encoding: str) -> Callable[[Path], None]:
    header = {"space directions": np.diag(SCALE[::-1]), "space": "scanner-xyz", "space units": ["mm"] * 3}
    return lambda path: nrrd.write(str(path), VALUES.T, {**header, "encoding": encoding})


WRITERS: dict[str, Callable[[Path], None]] = {
    "raw.nrrd": write_nrrd("raw"),
    "gzip.nrrd": write_nrrd("gzip"),
    "bzip2.nhdr": write_nrrd("bzip2"),
    "plain.mha": write_itk(),
    "compressed.mha": write_itk(True),
    "plain.mhd": write_itk(),
    "compressed.mhd": write_itk(True),
    "plain.nii": write_itk(),
    "compressed.nii.gz": write_itk(),
    "big.nii": lambda path: nibabel.save(
        nibabel.Nifti2Image(VALUES.astype(">u2").T, np.diag([*SCALE[::-1], 1])), path
    ),
    "imagej.tif": lambda path: tifffile.imwrite(
        path, VALUES, imagej=True, resolution=(4, 2), metadata={"axes": "ZYX", "spacing": 2.0, "unit": "mm"}
    ),
    "image.ome.tif": lambda path: tifffile.imwrite(
        path,
        VALUES,
        metadata={
            "axes": "ZYX",
            **{f"PhysicalSize{axis}": size for axis, size in zip("ZYX", SCALE, strict=True)},
            **dict.fromkeys(("PhysicalSizeXUnit", "PhysicalSizeYUnit", "PhysicalSizeZUnit"), "mm"),
        },
    ),
}


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("name", WRITERS)
def test_an_image_keeps_its_values_and_its_voxel_size(name: str, version: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    target = tmp_path / "image.zarr"
    import_files([tmp_path / name], target, version=version, verify=True)
    group = zarrfs.open_group(target)
    np.testing.assert_array_equal(group["0"][...], VALUES)
    image = parse(group.attrs).multiscales[0]
    assert [(axis.name, axis.type) for axis in image.axes] == [("z", "space"), ("y", "space"), ("x", "space")]
    assert image.levels[0].scale == pytest.approx(SCALE)
    has_units = not name.startswith("big")  # nibabel writes no unit by default
    assert {axis.unit for axis in image.axes} == ({"millimeter"} if has_units else {None})
    assert check_node(group).valid


def test_the_fourth_axis_of_a_metaimage_is_time(tmp_path: Path) -> None:
    SimpleITK.WriteImage(SimpleITK.JoinSeries([itk_image(), itk_image()], 0.0, 1.5), str(tmp_path / "a.mha"))
    import_files([tmp_path / "a.mha"], tmp_path / "image.zarr")
    group = zarrfs.open_group(tmp_path / "image.zarr")
    np.testing.assert_array_equal(group["0"][...], np.stack([VALUES, VALUES]))
    image = parse(group.attrs).multiscales[0]
    assert "".join(axis.name for axis in image.axes) == "tzyx"
    assert image.levels[0].scale == pytest.approx((1.5, *SCALE))


@pytest.mark.parametrize(
    "suffix", [".tif", ".ome.tif", ".nrrd", ".mha", ".mhd", ".nii", ".nii.gz", ".npy", ".npz"]
)
def test_an_export_can_be_imported_again(suffix: str, tmp_path: Path) -> None:
    source = zarrfs.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(3, 16, 16))
    export(source, tmp_path / f"a{suffix}")
    import_files([tmp_path / f"a{suffix}"], tmp_path / "b.zarr", plain=suffix == ".npz")
    group = zarrfs.open_group(tmp_path / "b.zarr")
    np.testing.assert_array_equal(group["arr_0" if suffix == ".npz" else "0"][...], VALUES)


def test_channels_move_before_space_and_keep_their_names(tmp_path: Path) -> None:
    data = np.random.default_rng(1).integers(0, 255, (3, 5, 40, 50), "u1")
    names = ["DAPI", "GFP", "RFP"]
    tifffile.imwrite(tmp_path / "a.ome.tif", data, metadata={"axes": "CZYX", "Channel": {"Name": names}})
    tifffile.imwrite(tmp_path / "rgb.tif", np.moveaxis(data[:, 0], 0, -1), photometric="rgb")
    import_files([tmp_path / "a.ome.tif"], tmp_path / "a.zarr")
    group = zarrfs.open_group(tmp_path / "a.zarr")
    np.testing.assert_array_equal(group["0"][...], data)
    omero = parse(group.attrs).omero
    assert omero is not None
    assert [channel.label for channel in omero.channels] == names
    assert check_node(group).valid
    import_files([tmp_path / "rgb.tif"], tmp_path / "rgb.zarr")
    group = zarrfs.open_group(tmp_path / "rgb.zarr")
    np.testing.assert_array_equal(group["0"][...], data[:, 0])
    assert [axis.name for axis in parse(group.attrs).multiscales[0].axes] == ["c", "y", "x"]


def test_options_replace_the_axes_of_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    import_files(
        [tmp_path / "a.npy"],
        tmp_path / "a.zarr",
        axes=["x", "t", "y"],
        scale=[1, 2, 3],
        unit="nanometer",
        levels=1,
    )
    group = zarrfs.open_group(tmp_path / "a.zarr")
    image = parse(group.attrs).multiscales[0]
    assert [axis.name for axis in image.axes] == ["t", "x", "y"]
    assert image.levels[0].scale == (2, 1, 3)
    assert [axis.unit for axis in image.axes] == [None, "nanometer", "nanometer"]
    np.testing.assert_array_equal(group["0"][...], VALUES.transpose(1, 0, 2))
    assert group.names() == ["0"]


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "I;16", "1"])
def test_a_stack_is_sorted_by_numbers(mode: str, tmp_path: Path) -> None:
    shape = (12, 30, 20, *{"RGB": (3,), "RGBA": (4,)}.get(mode, ()))
    dtype = {"I;16": "u2", "1": "?"}.get(mode, "u1")
    data = np.random.default_rng(2).integers(0, 255, shape).astype(dtype)
    for number, plane in enumerate(data):
        Image.fromarray(plane).save(tmp_path / f"z{number}.png")
    import_files([tmp_path / "z*.png"], tmp_path / "a.zarr")
    group = zarrfs.open_group(tmp_path / "a.zarr")
    expected = np.moveaxis(data, -1, 0) if data.ndim == 4 else data
    np.testing.assert_array_equal(group["0"][...], expected)
    assert natural_order("z2.png") < natural_order("z10.png")


PATTERNS = {
    ("z2.tif", "z10.tif"): "z{z}.tif",
    ("img001.tif", "img002.tif"): "img{z}.tif",
    ("a_t0_c1_z3.tif", "a_t1_c1_z3.tif", "a_t0_c2_z3.tif"): "a_t{t}_c{c}_z3.tif",
    ("stackZ01.tif", "stackZ02.tif"): "stackZ{z}.tif",
    ("x_ch00_time=1.tif", "x_ch01_time=1.tif"): "x_ch{c}_time=1.tif",
    ("e_w1DAPI_t1.TIF", "e_w2GFP_t1.TIF"): "e_w{c}_t1.TIF",
    ("DAPI/slice 1.png", "DAPI/slice 2.png", "GFP/slice 1.png"): "{c}/slice {z}.png",
    ("img_c1_0001.tif", "img_c1_0002.tif"): "img_c1_{z}.tif",
    ("z1_0001.tif", "z2_0002.tif"): "z{z}_*.tif",
    ("z1_0001.tif", "z1_0002.tif", "z2_0001.tif"): "z{z}_{t}.tif",
}


@pytest.mark.parametrize("names", PATTERNS)
def test_the_axes_of_a_stack_are_recognized_by_the_names_of_its_files(names: tuple[str, ...]) -> None:
    assert recognized_pattern(names, "pattern") == PATTERNS[names]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a_1_1.tif", "a_2_2.tif", "a_1_2.tif"), "not clear from their names, such as a_1_1.tif"),
        (("z1.tif", "MIP.tif"), "do not have one form: z1.tif and MIP.tif"),
        (("a_s1_z1.tif", "a_s2_z1.tif"), "several images, at the positions 1, 2 of a_s"),
        (("tile_x1_y2.tif", "tile_x2_y1.tif"), "several images"),
        (("z1_z1.tif", "z1_z2.tif", "z2_z1.tif"), "not clear"),
    ],
)
def test_names_of_unclear_meaning_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        recognized_pattern(names, "pattern='...'")


def write_stack(directory: Path, name: str = "img_t{t:02}_c{c}_z{z:03}.tif") -> Any:
    """Write one TIFF file for each plane, in an order of names that is not that of the axes; return the values."""
    values = np.random.default_rng(3).integers(0, 60000, (2, 3, 11, 20, 30), "u2")
    directory.mkdir(exist_ok=True)
    for t, c, z in np.ndindex(2, 3, 11):
        file = directory / name.format(t=t, c=c, z=z + 1, channel=("DAPI", "GFP", "RFP")[c])
        file.parent.mkdir(exist_ok=True)
        tifffile.imwrite(file, values[t, c, z], compression="zlib" if z % 2 else None)
    return values


def test_a_stack_of_tiff_files_has_the_axes_of_their_names(tmp_path: Path) -> None:
    values = write_stack(tmp_path / "stack")
    (tmp_path / "stack/.hidden.tif").write_bytes(b"")
    (tmp_path / "stack/notes.txt").write_text("text")
    for number, files in enumerate((tmp_path / "stack", tmp_path / "stack/*.tif")):
        report = import_files([files], tmp_path / f"{number}.zarr", scale=[1, 1, 2, 0.5, 0.5], verify=True)
        assert report.source == (
            "a stack of 66 files with names of the pattern img_t{t}_c{c}_z{z}.tif: t 2 (0, 1), c 3 (0, 1, 2), "
            "z 11 (1 to 11)"
        )
        group = zarrfs.open_group(tmp_path / f"{number}.zarr")
        np.testing.assert_array_equal(group["0"][...], values)
        image = parse(group.attrs).multiscales[0]
        assert [axis.name for axis in image.axes] == ["t", "c", "z", "y", "x"]
        assert image.levels[0].scale == (1, 1, 2, 0.5, 0.5)
        assert check_node(group).valid


def test_the_channels_of_a_stack_have_the_names_of_the_files(tmp_path: Path) -> None:
    values = write_stack(tmp_path / "stack", "{channel}/{z}_{t}.tif")
    with pytest.raises(UnsupportedError, match="not clear"):
        import_files([tmp_path / "stack/*/*.tif"], tmp_path / "a.zarr")
    import_files([tmp_path / "stack/*/*.tif"], tmp_path / "a.zarr", pattern="{c}/{z}_{t}.tif")
    group = zarrfs.open_group(tmp_path / "a.zarr")
    np.testing.assert_array_equal(group["0"][...], values)
    omero = parse(group.attrs).omero
    assert omero is not None
    assert [channel.label for channel in omero.channels] == ["DAPI", "GFP", "RFP"]


@pytest.mark.parametrize("name", ["a.tif", "a.ome.tif", "a.npy"])
def test_a_stack_of_volumes(name: str, tmp_path: Path) -> None:
    """The pages of a TIFF file that does not state their meaning are positions along z."""
    stem, suffix = name.split(".", 1)
    for t in range(3):
        file = tmp_path / f"{stem}_{t}.{suffix}"
        if suffix == "npy":
            np.save(file, VALUES + t)
        else:
            metadata = {"axes": "ZYX", "PhysicalSizeX": 0.5} if suffix.startswith("ome") else None
            tifffile.imwrite(file, VALUES + t, metadata=metadata)
    pattern = "a_{t}." + suffix
    import_files([tmp_path / f"a_*.{suffix}"], tmp_path / "a.zarr", pattern=pattern)
    group = zarrfs.open_group(tmp_path / "a.zarr")
    np.testing.assert_array_equal(group["0"][...], np.stack([VALUES, VALUES + 1, VALUES + 2]))
    image = parse(group.attrs).multiscales[0]
    assert [axis.name for axis in image.axes] == ["t", "z", "y", "x"]
    assert image.levels[0].scale == (1, 1, 1, 0.5 if suffix.startswith("ome") else 1)


def test_files_that_a_stack_lacks_are_named(tmp_path: Path) -> None:
    write_stack(tmp_path / "stack")
    (tmp_path / "stack/img_t01_c2_z004.tif").unlink()
    with pytest.raises(LocationError, match=r"files of the stack are missing .*\(1 of 66\): t 1, c 2, z 4$"):
        import_files([tmp_path / "stack"], tmp_path / "a.zarr")
    for file in (tmp_path / "stack").glob("*_z007.tif"):
        file.unlink()
    with pytest.raises(LocationError, match="z 6 and z 8 are not consecutive: z 7 is missing"):
        import_files([tmp_path / "stack/*_t00_*.tif"], tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()
    import_files([tmp_path / "stack/*_t00_*.tif"], tmp_path / "a.zarr", pattern="*_c{c}_z{z}.tif")
    assert zarrfs.open_array(tmp_path / "a.zarr/0").shape == (3, 10, 20, 30)


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("*_{q}.tif", OptionError, r"\{q\} in \*_\{q\}.tif is not valid"),
        ("*_{z}_{z}.tif", OptionError, r"\{z\} in .* is not valid"),
        ("*.tif", OptionError, r"has none of \{t\}, \{c\} and \{z\}"),
        ("b_{z}.tif", OptionError, "does not match the pattern b_"),
        ("*_z{z}.tif", UnsupportedError, "have the same position by the pattern .*: z 1; correct"),
    ],
)
def test_patterns_that_do_not_fit_are_refused(
    pattern: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    write_stack(tmp_path / "stack")
    with pytest.raises(error, match=message):
        import_files([tmp_path / "stack"], tmp_path / "a.zarr", pattern=pattern)


def test_directories_that_are_no_stack_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LocationNotFoundError, match="neither a Zarr hierarchy nor TIFF, PNG or JPEG"):
        import_files([tmp_path / "empty"], tmp_path / "a.zarr")
    write_stack(tmp_path / "stack")
    Image.fromarray(VALUES[0]).save(tmp_path / "stack/a.png")
    with pytest.raises(UnsupportedError, match=r"files of several formats, such as img_t00.* and a.png"):
        import_files([tmp_path / "stack"], tmp_path / "a.zarr")


@pytest.mark.parametrize("is_binary_only", [False, True])
def test_the_files_of_an_ome_tiff_are_one_image(is_binary_only: bool, tmp_path: Path) -> None:
    """Only the OME-XML states the positions: the names are in another order. Few files are open at a time."""
    planes = "".join(
        f'<TiffData IFD="0" FirstZ="{z}" PlaneCount="1"><UUID FileName="p{40 - z}.ome.tif">urn:uuid:{z}</UUID>'
        "</TiffData>"
        for z in range(40)
    )
    head = '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:{}">'
    document = (
        head
        + '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="24" SizeY="20" '
        f'SizeZ="40" SizeC="1" SizeT="1">{planes}</Pixels></Image></OME>'
    )
    other = head + '<BinaryOnly MetadataFile="p40.ome.tif" UUID="urn:uuid:0"/></OME>'
    values = np.random.default_rng(4).integers(0, 60000, (40, 20, 24), "u2")
    for z in range(40):
        text = (other if is_binary_only and z else document).format(z)
        tifffile.imwrite(
            tmp_path / f"p{40 - z}.ome.tif", values[z], description=text, metadata=None, compression="zlib"
        )
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[0], used + 60), limit[1]))
    try:
        import_files([tmp_path / "*.tif"], tmp_path / "a.zarr")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "a.zarr/0")[...], values)
    tifffile.imwrite(tmp_path / "q.ome.tif", values[0])
    with pytest.raises(UnsupportedError, match=r"q.ome.tif does not belong to the OME-TIFF of .*p1.ome.tif"):
        import_files([tmp_path / "*.tif"], tmp_path / "b.zarr")


@pytest.mark.parametrize("dtype", ["u1", ">f4", "<i8"])
def test_a_raw_file_with_a_header(dtype: str, tmp_path: Path) -> None:
    data = VALUES.astype(dtype)
    (tmp_path / "a.bin").write_bytes(b"header" + data.tobytes())
    import_files([tmp_path / "a.bin"], tmp_path / "a.zarr", shape=data.shape, dtype=dtype, offset=6)
    array = zarrfs.open_array(tmp_path / "a.zarr/0")
    np.testing.assert_array_equal(array[...], data)
    assert array.dtype == np.dtype(dtype).newbyteorder("=")


def test_scaled_values_of_nifti_are_floats(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(VALUES.T.astype("i2"), np.eye(4))
    image.header.set_slope_inter(0.5, 3.0)
    nibabel.save(image, tmp_path / "a.nii")
    import_files([tmp_path / "a.nii"], tmp_path / "a.zarr")
    array = zarrfs.open_array(tmp_path / "a.zarr/0")
    assert array.dtype == "f8"
    np.testing.assert_array_equal(array[...].T, np.asarray(nibabel.load(tmp_path / "a.nii").dataobj))


@pytest.mark.parametrize("slope", [1.0, 0.0, float("nan")])
def test_nifti_that_is_not_scaled_keeps_integers(slope: float, tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(VALUES.T.astype("i2"), np.eye(4))
    nibabel.save(image, tmp_path / "a.nii")
    header = bytearray((tmp_path / "a.nii").read_bytes())
    header[112:120] = np.array([slope, 0.0], "<f4").tobytes()  # scl_slope, scl_inter
    (tmp_path / "a.nii").write_bytes(header)
    import_files([tmp_path / "a.nii"], tmp_path / "a.zarr")
    array = zarrfs.open_array(tmp_path / "a.zarr/0")
    assert array.dtype == "i2"
    np.testing.assert_array_equal(array[...], VALUES.astype("i2"))


def test_hdf5_and_npz_keep_their_names(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = VALUES
        file["g"].attrs["a"] = 1
    np.savez_compressed(tmp_path / "b.npz", x=VALUES, y=VALUES[0])
    import_files([tmp_path / "a.h5"], tmp_path / "a.zarr", verify=True)
    import_files([tmp_path / "b.npz"], tmp_path / "b.zarr", verify=True, compressors="zstd")
    first, second = zarrfs.open_group(tmp_path / "a.zarr"), zarrfs.open_group(tmp_path / "b.zarr")
    np.testing.assert_array_equal(first["g/x"][...], VALUES)
    assert first["g"].attrs["a"] == 1
    assert second.names() == ["x", "y"]
    np.testing.assert_array_equal(second["x"][...], VALUES)


RECORDS = np.array([(1, -0.5, b"ab"), (2, np.inf, b"")], [("n", "<i4"), ("x", ">f8"), ("name", "S3")])
TEXTS = np.array(["ä", "", "long text"] * 50, object)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_and_records_of_hdf5_are_kept(zarr_format: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("texts", data=TEXTS, dtype=h5py.string_dtype(), chunks=(64,))
        file.create_dataset("text", data="one", dtype=h5py.string_dtype("ascii"))
        file.create_dataset("records", data=RECORDS)
        file.create_dataset("bytes", data=RECORDS["name"])
        file.create_dataset("partial", (100, 7), "i2", chunks=(10, 7), fillvalue=-5)[40:50] = 3
    import_files([tmp_path / "a.h5"], tmp_path / "v3.zarr", verify=True)
    import_files([tmp_path / "a.h5"], tmp_path / "v3.zarr", verify=True, if_exists="resume")
    convert(tmp_path / "v3.zarr", tmp_path / "a.zarr", zarr_format=zarr_format, allow_loss=True)
    group = zarrfs.open_group(tmp_path / "a.zarr")
    assert group["texts"][...].tolist() == TEXTS.tolist()
    assert group["text"][()] == "one"
    assert group["records"][...].tolist() == RECORDS.tolist()
    assert group["bytes"][...].tolist() == RECORDS["name"].tolist()
    expected = np.full((100, 7), -5, "i2")
    expected[40:50] = 3
    np.testing.assert_array_equal(group["partial"][...], expected)
    assert (
        len(list((tmp_path / "v3.zarr/partial/c").rglob("*"))) == 2
    )  # only the stored chunk, and its directory


def test_netcdf_is_the_same_dataset_in_xarray(tmp_path: Path) -> None:
    import xarray

    temperature = np.arange(60, dtype="f4").reshape(3, 4, 5)
    temperature[1, 1] = np.nan
    dataset = xarray.Dataset(
        {"t": (("time", "lat", "lon"), temperature, {"units": "K"}), "n": (("lat",), list("abcd"))},
        coords={"time": np.arange(3), "lat": np.linspace(0, 1, 4)},
        attrs={"title": "weather"},
    )
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"t": {"_FillValue": -9.0}})
    import_files([tmp_path / "a.nc"], tmp_path / "a.zarr")
    from_hdf5(tmp_path / "a.nc", tmp_path / "b.zarr")
    from_hdf5(tmp_path / "a.nc", tmp_path / "c.zarr", zarr_format=2)
    for name in ("a.zarr", "b.zarr"):
        with xarray.open_zarr(tmp_path / name, consolidated=False) as found:
            xarray.testing.assert_identical(found.load().astype(dataset.dtypes), dataset)
    with xarray.open_zarr(tmp_path / "c.zarr", consolidated=False) as found:
        np.testing.assert_array_equal(found["t"].values, temperature)


def _write_records(path: Path) -> None:
    """Write a netCDF file with unlimited dimensions. One variable is shorter than its dimension."""
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"time": None, "x": 3}
        file.resize_dimension("time", 5)
        file.create_variable("time", ("time",), "i4", data=np.arange(5, dtype="i4"))
        file.create_variable("a", ("time", "x"), "f4", data=np.ones((5, 3), "f4"), fillvalue=np.float32(9.5))
        inner = file.create_group("g")
        inner.dimensions = {"record": None}
        inner.resize_dimension("record", 4)
        inner.create_variable("b", ("record",), "i2", data=np.arange(4, dtype="i2"), fillvalue=np.int16(-1))
        inner.create_variable("c", ("time",), "i2", data=np.arange(5, dtype="i2"), fillvalue=np.int16(-2))
    with h5py.File(path, "r+") as written:
        written["a"].resize(2, axis=0)
        written["g/c"].resize(1, axis=0)


@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}])
def test_variables_of_netcdf_have_the_length_of_their_unlimited_dimension(
    options: dict[str, Any], tmp_path: Path
) -> None:
    _write_records(tmp_path / "a.nc")
    if options:
        from_hdf5(tmp_path / "a.nc", tmp_path / "a.zarr", **options)
    else:
        import_files([tmp_path / "a.nc"], tmp_path / "a.zarr", verify=True)
    group = zarrfs.open_group(tmp_path / "a.zarr")
    expected = np.full((5, 3), 9.5, "f4")
    expected[:2] = 1
    np.testing.assert_array_equal(group["a"][...], expected)
    np.testing.assert_array_equal(group["g/c"][...], [0, -2, -2, -2, -2])
    np.testing.assert_array_equal(group["g/b"][...], np.arange(4))
    to_hdf5(tmp_path / "a.zarr", tmp_path / "b.nc")
    with h5netcdf.File(tmp_path / "b.nc", "r") as file:
        assert {name: one.isunlimited() for name, one in file.dimensions.items()} == {
            "time": True,
            "x": False,
        }
        assert file["g"].dimensions["record"].isunlimited()
        assert file.dimensions["time"].size == 5
        np.testing.assert_array_equal(file["a"][...], expected)
        np.testing.assert_array_equal(file["g/b"][...], np.arange(4))
        assert "zarrfs_unlimited_dimensions" not in file.attrs
    from_hdf5(tmp_path / "b.nc", tmp_path / "c.zarr")
    again = zarrfs.open_group(tmp_path / "c.zarr")
    name = "zarrfs_unlimited_dimensions"
    assert again.attrs[name] == group.attrs[name] == ["time"]
    assert again["g"].attrs[name] == group["g"].attrs[name] == ["record"]


def test_attributes_of_hdf5_that_are_lost_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = [1, 2]
        file["a"].attrs["where"] = file["a"].ref
        file["a"].attrs["CLASS"] = "IMAGE"
    import_files([tmp_path / "a.h5"], tmp_path / "a.zarr")
    assert dict(zarrfs.open_array(tmp_path / "a.zarr", "a").attrs) == {"CLASS": "IMAGE"}
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.endswith("a.h5: a: attribute 'where' skipped: its data type has no JSON representation")


def write_ome(path: Path, old: str = "", new: str = "") -> None:
    """Write an OME-TIFF of 2 channels and 3 layers, in whose OME-XML ``old`` is replaced."""
    options: Any = {"axes": "CZYX", "PhysicalSizeX": 0.5}
    tifffile.imwrite(path, VALUES[:6].reshape(2, 3, *VALUES.shape[1:]), ome=True, metadata=options)
    with tifffile.TiffFile(path) as file:
        text = file.ome_metadata
    assert text is not None
    assert old in text
    with tifffile.TiffWriter(path) as writer:
        for number, page in enumerate(VALUES[:6]):
            description = None if number else text.replace(old, new).encode()
            writer.write(page, description=description, metadata=None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("</Image>", "</Imag>", "not valid XML: mismatched tag"),
        ("</OME>", "", "truncated"),
        ("Image", "Other", "does not describe the pages"),
        ("?><OME", '?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><OME a="&e;"', "external entity"),
    ],
)
def test_invalid_ome_xml_is_an_error_unless_the_axes_are_given(
    old: str, new: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.ome.tif"
    write_ome(file, old, new)
    with pytest.raises(LocationError, match=f"the OME-XML is ignored, because .*{reason}.*axes='zyx'"):
        import_files([file], tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()
    options: list[dict[str, Any]] = [{"plain": True}, {"axes": "zyx"}]
    for number, option in enumerate(options):
        import_files([file], tmp_path / f"{number}.zarr", **option)
        np.testing.assert_array_equal(zarrfs.open_array(tmp_path / f"{number}.zarr", "0")[...], VALUES[:6])
        (message,) = [record.getMessage() for record in caplog.records if record.name == "zarrfs"]
        assert "the order of the dimensions, pixel sizes and channels are unknown" in message
        caplog.clear()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("OME", "OME", ""),
        ('SizeZ="3"', 'SizeZ="4"', "2 of the 8 planes that the OME-XML declares for image 0 are missing"),
        ('DimensionOrder="XYZCT"', 'DimensionOrder="XYZ"', "3 of the 6 pages are omitted"),
    ],
)
def test_planes_that_the_file_lacks_and_pages_that_ome_xml_lacks_are_named(
    old: str, new: str, message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_ome(tmp_path / "a.ome.tif", old, new)
    import_files([tmp_path / "a.ome.tif"], tmp_path / "a.zarr")
    found = [record.getMessage() for record in caplog.records if record.name == "zarrfs"]
    assert len(found) == bool(message)
    assert message in "".join(found)


def test_several_images_become_a_collection(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "a.ome.tif", ome=True) as writer:
        for data in (VALUES, VALUES[:3, :30]):
            writer.write(data, metadata={"axes": "ZYX"})
    for version in ("0.4", "0.5"):
        target = tmp_path / f"{version}.zarr"
        lines = import_files([tmp_path / "a.ome.tif"], target, version=version)
        assert lines[0].startswith("0: ")
        np.testing.assert_array_equal(zarrfs.open_array(target / "0/0")[...], VALUES)
        np.testing.assert_array_equal(zarrfs.open_array(target / "1/0")[...], VALUES[:3, :30])
        attributes = zarrfs.open_group(target).attrs
        assert attributes.get("ome", attributes)["bioformats2raw.layout"] == 3


def _rgb_png_16() -> bytes:
    """Return a PNG file with colours of 16 bits, which Pillow cannot write."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" + bytes(range(12)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "name", "options", "error", "message"),
    [
        (None, "missing.tif", {}, LocationError, "no such file"),
        (None, "*.png", {}, LocationNotFoundError, "no file matches"),
        (b"NRRD0004\n", "a.nrrd", {}, LocationError, "not a valid NRRD file"),
        (b"NDims = 3\nDimSize = 4 4\n", "a.mha", {}, LocationError, "ElementDataFile is missing"),
        (
            b"ObjectType = Image\nNDims = 2\nDimSize = 4 4\nElementType = MET_UCHAR\nElementDataFile = LOCAL\nabc",
            "a.mha",
            {},
            LocationError,
            "expected 16 bytes of values",
        ),
        (
            b"ObjectType = Image\nNDims = 2\nDimSize = 4 4\nElementType = MET_UCHAR\nElementDataFile = ../secret\n",
            "a.mhd",
            {},
            LocationError,
            "only a file of the same directory",
        ),
        (b"\x89PNG\r\n\x1a\n", "a.png", {}, LocationError, "cannot be read as PNG"),
        (b"PK\x03\x04", "a.npz", {}, LocationError, "cannot be read as a NumPy archive"),
        (
            b"x" * 400,
            "a.nii",
            {},
            LocationError,
            "not a file of a known format; expected TIFF, .* or raw values with",
        ),
        (b"GIF89a", "a.gif", {}, LocationError, "not a file of a known format"),
        (b"II*\0\0\0\0\0", "a.tif", {}, LocationError, "contains no images"),
        (_rgb_png_16(), "a.png", {}, UnsupportedError, "colours of 16 bits, of which Pillow reads 8"),
        (b"x" * 10, "a.raw", {"shape": [4, 4], "dtype": "u1"}, LocationError, "expected 16 bytes"),
        (b"x" * 10, "a.raw", {"shape": [4, 0], "dtype": "u1"}, OptionError, "at least 1"),
        (b"x" * 10, "a.raw", {"shape": [4, 4], "dtype": "q9"}, OptionError, "NumPy data type"),
        (b"x" * 10, "a.raw", {"shape": [4, 4]}, OptionError, "needs both"),
    ],
)
def test_bad_files_and_options_are_refused(
    content: bytes | None,
    name: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    tmp_path: Path,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        import_files([tmp_path / name], tmp_path / "out.zarr", **options)
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("name", [*WRITERS, "a.npy", "a.h5", "a.npz"])
def test_a_file_that_is_deleted_before_it_is_opened_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / name
    if name in WRITERS:
        WRITERS[name](file)
    else:
        export(zarrfs.create_array(tmp_path / "a.zarr", data=VALUES), file)
    find_opener = opening._opener

    def opener(path: str) -> Any:
        found = find_opener(path)
        file.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(opening, "_opener", opener)
    with pytest.raises(LocationNotFoundError, match="was deleted or renamed by another program"):
        import_files([file], tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_compressed_tiff_pages_with_a_further_axis_are_refused(tmp_path: Path) -> None:
    """The axes after those of a page were taken for pages, so that elements read as zeros."""
    values = np.arange(1, 11, dtype="u2").reshape(1, 10, 1)
    tifffile.imwrite(
        tmp_path / "a.tif", values, tile=(16, 16), compression="deflate", photometric="minisblack"
    )
    with pytest.raises(UnsupportedError, match="does not end with that of its pages"):
        import_files([tmp_path / "a.tif"], tmp_path / "a.zarr", plain=True)


def test_animations_are_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.full((4, 5), number, "u1")) for number in range(3)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    with pytest.raises(UnsupportedError, match="an animation of 3 images; write each to a file of its own"):
        import_files([tmp_path / "a.png"], tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_differing_files_and_other_stacks_are_refused(tmp_path: Path) -> None:
    for number, size in enumerate((10, 11)):
        Image.fromarray(np.zeros((size, 9), "u1")).save(tmp_path / f"{number}.png")
        np.save(tmp_path / f"{number}.npy", VALUES)
    with pytest.raises(
        UnsupportedError, match=r"1.png differs from .*0.png: found shape \(11, 9\).* expected shape"
    ):
        import_files([tmp_path / "*.png"], tmp_path / "out.zarr")
    for number in range(2):
        (tmp_path / f"{number}.txt").write_text("text")
    with pytest.raises(UnsupportedError, match=r"0.txt is not an image of a known format"):
        import_files([tmp_path / "*.txt"], tmp_path / "out.zarr")
    zarrfs.create_array(tmp_path / "a.zarr", data=VALUES)
    with pytest.raises(NodeTypeError, match="is a Zarr hierarchy"):
        import_files([tmp_path / "a.zarr"], tmp_path / "out.zarr")


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a.CZI", b"ZISRAWFILE"),
        ("a.lif", b"p\0\0\0"),
        ("renamed", b"ZISRAWFILE"),
        ("a.bin", b"\xda\xce\xbe\x0a"),
    ],
)
def test_a_file_of_a_microscope_has_an_error_that_names_a_converter(
    tmp_path: Path, name: str, header: bytes
) -> None:
    (tmp_path / name).write_bytes(header + bytes(100))
    message = rf"{name} is a file of a microscope.* bioformats2raw"
    with pytest.raises(LocationError, match=message):
        import_files([tmp_path / name], tmp_path / "b.zarr")
    with pytest.raises(LocationError, match=message):
        zarrfs.open(tmp_path / name)


def test_the_command_and_an_existing_destination(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    arguments = [
        "import",
        str(tmp_path / "a.npy"),
        str(tmp_path / "a.zarr"),
        "--axes",
        "zyx",
        "--levels",
        "2",
    ]
    runner = CliRunner()
    dry = runner.invoke(main, [*arguments, "--dry-run"], catch_exceptions=False)
    assert not (tmp_path / "a.zarr").exists()
    done = runner.invoke(main, arguments, catch_exceptions=False)
    *lines, plan, note, _ = dry.output.splitlines()
    assert lines == [f"would be {line}" for line in done.output.splitlines()]
    assert plan.startswith("plan levels 0, 1: 1 tasks, ")
    assert "--sample-writes" in note
    assert runner.invoke(main, arguments).exit_code != 0
    assert runner.invoke(main, [*arguments, "--if-exists", "resume"], catch_exceptions=False).exit_code == 0
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "a.zarr/0")[...], VALUES)


def ramp(*last: int) -> Any:
    """Return a lookup table from black to a colour."""
    return np.stack([np.arange(256) * part // 255 for part in last]).astype("u1")


@pytest.mark.parametrize(
    ("table", "factor"), [(ramp(0, 255, 0), 257), (ramp(0, 255, 0), 256), (ramp(0, 255, 0), 1)]
)
def test_the_color_map_of_a_channel_becomes_its_color(table: Any, factor: int, tmp_path: Path) -> None:
    colors = table.astype("u2") * factor
    tifffile.imwrite(tmp_path / "a.tif", VALUES[0].astype("u1"), photometric="palette", colormap=colors)
    import_files([tmp_path / "a.tif"], tmp_path / "a.zarr", levels=2)
    group = zarrfs.open_group(tmp_path / "a.zarr")
    np.testing.assert_array_equal(group["0"][...], VALUES[0].astype("u1"))
    (channel,) = parse(group.attrs).omero.channels
    assert channel.color == (0, 255, 0)
    assert "image-label" not in group.attrs["ome"]
    assert check_node(group).valid


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_other_color_maps_become_the_colors_of_labels(version: str, tmp_path: Path) -> None:
    colors = np.random.default_rng(1).integers(0, 1 << 16, (3, 256), "u2")
    labels = np.zeros((8, 8), "u1")
    labels[:2, :2], labels[2:, 2:] = 7, 200
    tifffile.imwrite(tmp_path / "a.tif", labels, photometric="palette", colormap=colors)
    import_files([tmp_path / "a.tif"], tmp_path / "a.zarr", levels=2, version=version)
    group = zarrfs.open_group(tmp_path / "a.zarr")
    np.testing.assert_array_equal(group["0"][...], labels)
    assert set(np.unique(group["1"][...])) == {0, 7, 200}  # the mode, no mean of two labels
    image_label = parse(group.attrs).image_label
    assert image_label is not None
    assert len(image_label.colors) == 256
    assert image_label.colors[7] == (*(colors[:, 7] >> 8).tolist(), 255)
    assert check_node(group).valid
    import_files([tmp_path / "a.tif"], tmp_path / "mean.zarr", levels=2, method="mean")
    assert set(np.unique(zarrfs.open(tmp_path / "mean.zarr")["1"][...])) >= {0, 7, 200}


def test_the_colors_and_display_ranges_of_imagej_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = [ramp(255, 0, 0), ramp(0, 255, 255)]
    metadata = {"axes": "CYX", "mode": "composite", "LUTs": tables, "Ranges": (10.0, 200.0, -5.0, 1000.0)}
    tifffile.imwrite(tmp_path / "a.tif", VALUES[:2], imagej=True, metadata=metadata)
    import_files([tmp_path / "a.tif"], tmp_path / "a.zarr", levels=1)
    group = zarrfs.open_group(tmp_path / "a.zarr")
    channels = parse(group.attrs).omero.channels
    assert [channel.color for channel in channels] == [(255, 0, 0), (0, 255, 255)]
    assert [(channel.window.start, channel.window.end) for channel in channels] == [(10, 200), (-5, 1000)]
    assert check_node(group).valid
    export(group, tmp_path / "b.tif")
    again = tifffile.TiffFile(tmp_path / "b.tif")
    with again:
        assert [table.tolist() for table in again.imagej_metadata["LUTs"]] == [t.tolist() for t in tables]
        assert again.imagej_metadata["Ranges"] == metadata["Ranges"]

    uneven = np.stack([np.arange(256) ** 2 // 256] * 3).astype("u1")
    tifffile.imwrite(tmp_path / "c.tif", VALUES[0], imagej=True, metadata={"axes": "YX", "LUTs": [uneven]})
    import_files([tmp_path / "c.tif"], tmp_path / "c.zarr", levels=1)
    assert "the lookup table of channel 0 is not a ramp" in caplog.text
    caplog.clear()


def test_color_maps_that_cannot_be_kept_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    colors = np.random.default_rng(1).integers(0, 1 << 16, (3, 1 << 16), "u2")
    tifffile.imwrite(tmp_path / "a.tif", VALUES[0].astype("u2"), photometric="palette", colormap=colors)
    import_files([tmp_path / "a.tif"], tmp_path / "a.zarr", levels=1)
    assert "the colour map has 65536 colours and is ignored" in caplog.text
    caplog.clear()
    rising, falling = np.arange(256, dtype="u2") << 8, np.arange(255, -1, -1, dtype="u2") << 8
    gradual = np.stack([rising, falling, np.minimum(rising, falling)])
    gradual[:, 255] = 0xFFFF  # as in maps that mark saturated values
    tifffile.imwrite(tmp_path / "b.tif", VALUES[0].astype("u1"), photometric="palette", colormap=gradual)
    import_files([tmp_path / "b.tif"], tmp_path / "b.zarr", levels=2)
    assert "is ignored: OME-NGFF cannot represent it" in caplog.text
    assert "image-label" not in zarrfs.open_group(tmp_path / "b.zarr").attrs["ome"]
    caplog.clear()


def test_an_import_does_not_fill_the_shared_cache(tmp_path: Path) -> None:
    """The shared cache may have gigabytes; the memory of an import is limited by its option."""
    WRITERS["imagej.tif"](tmp_path / "a.tif")
    before = default_cache().nbytes
    import_files([tmp_path / "a.tif"], tmp_path / "b.zarr", memory=1, chunks=(2, 8, 8))
    assert default_cache().nbytes == before
