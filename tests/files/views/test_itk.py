"""NRRD, MetaImage and NIfTI files, read with SimpleITK and pynrrd: values, axes, voxel sizes, positions, reasons."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import nibabel
import nrrd
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader

import zarrfs
from tests.files.views.images import (
    IMAGES,
    ITK_VIEWS,
    MILLIMETERS,
    NUMBERS,
    ORIGIN,
    POSITIONS,
    SCALE,
    image_geometry,
    make_image,
    transposed,
    write,
)
from tests.files.views.presented import view_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.view import PresentedArray
from zarrfs.ngff.geometry import array_geometry


def itk_axes(axes: str, suffix: str) -> tuple[str, bool]:
    """Return the axes of the image that ITK reads, fastest first, and whether the channels are components."""
    if suffix == ".nii":
        return "xyzt" if "t" in axes else "xyz" if "z" in axes else "xy", "c" in axes
    if suffix in (".nhdr", ".mhd"):
        order = axes[::-1]
    else:
        order = "".join(name for name in "xyztc" if name in axes) + "".join(
            name for name in reversed(axes) if name not in "xyztc"
        )
    components = "c" in axes and (suffix in (".nhdr", ".nrrd") or axes.endswith("c"))
    order = order.replace("c", "") if components else order
    return order + "1" * (2 - len(order)), components


@pytest.mark.parametrize("suffix", ITK_VIEWS)
@pytest.mark.parametrize("axes", IMAGES)
def test_simpleitk_reads_values_axes_voxel_sizes_and_positions(
    axes: str, suffix: str, tmp_path: Path
) -> None:
    presented, data = make_image(axes)
    if suffix == ".nii" and "q" in axes:
        return  # ITK ignores the sixth axis of NIfTI files
    write(presented, tmp_path, ".raw", suffix)
    image = sitk.ReadImage(str(tmp_path / f"img{suffix}"))
    order, has_components = itk_axes(axes, suffix)
    expected = transposed(data, axes, order[::-1] + ("c" if has_components else ""))
    assert image.GetNumberOfComponentsPerPixel() == (2 if has_components else 1)
    np.testing.assert_array_equal(sitk.GetArrayFromImage(image), expected)
    spacing = [MILLIMETERS.get(name, 1.0) if name in axes else 1.0 for name in order]
    assert image.GetSpacing() == pytest.approx(spacing, rel=1e-6)
    # The world axes are x, y, z, t, and then the others.
    world = sorted(order, key=lambda name: "xyztc".find(name) % 100)
    origin = {name: POSITIONS.get(name, 0.0) if name in axes else 0.0 for name in world}
    direction = {name: -1 if name == "y" and name in axes else 1 for name in order}
    assert image.GetOrigin() == pytest.approx([origin[name] for name in world], rel=1e-6)
    matrix = np.reshape(image.GetDirection(), (len(order), len(order)))
    expected_matrix = [[direction[row] if row == column else 0 for column in order] for row in world]
    assert matrix.tolist() == expected_matrix


@pytest.mark.parametrize("suffix", [".nhdr", ".nrrd"])
@pytest.mark.parametrize("axes", [axes for axes in IMAGES if len(axes) > 1])
def test_pynrrd_reads_values_axes_and_units(axes: str, suffix: str, tmp_path: Path) -> None:
    presented, data = make_image(axes)
    write(presented, tmp_path, ".raw", suffix)
    values, header = nrrd.read(str(tmp_path / f"img{suffix}"), index_order="C")
    order = "".join(header["labels"])
    expected_order, _ = itk_axes(axes, suffix)
    assert order.replace("c", "") == expected_order.replace("c", "")
    np.testing.assert_array_equal(values, transposed(data, axes, order[::-1]))
    kinds = {"t": "time", "c": "list"}
    assert header["kinds"] == [kinds.get(name, "domain") for name in order]
    domain = [name for name in order if name != "c"]
    world = sorted(domain, key=lambda name: "xyzt".find(name) % 100)
    space = {"xyz": "left-posterior-superior", "xyzt": "left-posterior-superior-time"}.get("".join(world))
    assert header.get("space") == space
    assert header.get("space dimension") == (None if space else len(world))
    assert header["space units"] == [{"t": "s", "q": "", "r": ""}.get(name, "mm") for name in world]
    assert header["space origin"].tolist() == [POSITIONS.get(name, 0.0) for name in world]
    for name, vector in zip(order, header["space directions"], strict=True):
        if name == "c":
            assert np.isnan(vector).all()
        else:
            scale = -MILLIMETERS["y"] if name == "y" else MILLIMETERS.get(name, 1.0)
            assert vector.tolist() == [scale if other == name else 0.0 for other in world]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_all_data_types_that_the_formats_have(dtype: str, tmp_path: Path) -> None:
    presented, data = make_image("zyx", dtype)
    write(presented, tmp_path, ".raw", ".vti", *ITK_VIEWS)
    is_complex = data.dtype.kind == "c"
    pairs = data[..., np.newaxis].view(data.real.dtype) if is_complex else data
    for suffix in ITK_VIEWS:
        read = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / f"img{suffix}")))
        expected = pairs if is_complex and suffix in (".mhd", ".mha") else data
        assert read.dtype == ("u1" if dtype == "|b1" else expected.dtype.newbyteorder("=")), suffix
        np.testing.assert_array_equal(read, expected, suffix)
    for suffix in (".nhdr", ".nrrd"):
        values, _ = nrrd.read(str(tmp_path / f"img{suffix}"), index_order="C")
        np.testing.assert_array_equal(values, pairs)
    np.testing.assert_array_equal(np.asanyarray(nibabel.load(tmp_path / "img.nii").dataobj), data.T)
    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(tmp_path / "img.vti"))
    reader.Update()
    values = vtk_to_numpy(reader.GetOutput().GetPointData().GetArray(0))
    np.testing.assert_array_equal(values.reshape(pairs.shape), pairs)


def test_each_order_of_the_axes_has_the_same_positions(tmp_path: Path) -> None:
    """The value at a physical position is the same, whatever the order of the dimensions in the array is."""
    reference, data = make_image("zyx")
    for axes in map("".join, itertools.permutations("zyx")):
        elements = data.transpose(["zyx".index(name) for name in axes])
        array = zarrfs.create_array(MemoryStore(), "img", data=elements, chunks=(3, 3, 3))
        presented = PresentedArray(array, "img", image_geometry(array, axes))
        write(presented, tmp_path, ".raw", *ITK_VIEWS)
        for suffix in ITK_VIEWS:
            image = sitk.ReadImage(str(tmp_path / f"img{suffix}"))
            for index in ((0, 0, 0), (1, 2, 3), (3, 4, 5)):
                z, y, x = (
                    ORIGIN[name] / 1000 + SCALE[name] / 1000 * i for name, i in zip("zyx", index, strict=True)
                )
                pixel = image.TransformPhysicalPointToIndex((x, y, z))
                assert image[pixel] == data[index], (axes, suffix)
    assert reference.geometry.axes[2].role == "x"


@pytest.mark.parametrize("suffix", [".nhdr", ".nrrd"])
def test_channels_of_complex_numbers_are_an_axis_of_nrrd_files(suffix: str, tmp_path: Path) -> None:
    presented, data = make_image("yxc", "<c8")
    write(presented, tmp_path, ".raw", suffix)
    image = sitk.ReadImage(str(tmp_path / f"img{suffix}"))
    np.testing.assert_array_equal(sitk.GetArrayFromImage(image), data)


@pytest.mark.parametrize(
    ("dtype", "shape", "message"),
    [
        ("<f2", (2, 3), "no data type for float16"),
        ("<M8[s]", (2, 3), r"no data type for datetime64\[s\]"),
        ([("a", "<i4")], (2, 3), "elements with fields"),
        ("<U3", (2, 3), "no data type for str96"),
        ("|V3", (2, 3), "no data type for void24"),
        ("<u2", (2, 0, 3), "a dimension of length 0"),
    ],
    ids=str,
)
@pytest.mark.parametrize("suffix", [*ITK_VIEWS, ".vti"])
def test_the_reason_states_what_a_format_cannot_present(
    suffix: str, dtype: Any, shape: tuple[int, ...], message: str
) -> None:
    array = zarrfs.create_array(MemoryStore(), shape=shape, dtype=dtype, zarr_format=2)
    reason = view_of(suffix).unsupported_reason(PresentedArray(array))
    assert reason is not None
    assert re.search(message, reason)


@pytest.mark.parametrize("suffix", [".mhd", ".mha", ".vti"])
def test_the_length_of_a_dimension_is_limited(suffix: str) -> None:
    array = zarrfs.create_array(MemoryStore(), shape=(2**31,), dtype="u1", chunks=(2**20,))
    assert "2,147,483,647" in str(view_of(suffix).unsupported_reason(PresentedArray(array)))
    assert view_of(".nii").unsupported_reason(PresentedArray(array)) is None


@pytest.mark.parametrize(
    ("suffix", "shape", "message"),
    [
        (".nrrd", (2,) * 9, "9 dimensions, and NRRD supports at most 8"),
        (".mha", (2,) * 11, "11 dimensions, and MetaImage supports at most 10"),
        (".nii", (2,) * 6, "more than 2 dimensions in addition"),
        (".vti", (40, 40, 2, 2, 2), "1,600 combinations"),
    ],
)
def test_the_number_of_dimensions_is_limited(suffix: str, shape: tuple[int, ...], message: str) -> None:
    array = zarrfs.create_array(MemoryStore(), shape=shape, dtype="u1")
    assert message in str(view_of(suffix).unsupported_reason(PresentedArray(array)))
    singletons = zarrfs.create_array(MemoryStore(), shape=(1,) * 9 + (2, 3, 4), dtype="u1")
    assert view_of(suffix).unsupported_reason(PresentedArray(singletons)) is None


@pytest.mark.parametrize("suffix", ITK_VIEWS)
def test_time_channels_and_other_axes_of_length_1_are_omitted(suffix: str, tmp_path: Path) -> None:
    presented, data = make_image("tcqzyx", shape=(1, 1, 1, 1, 5, 6))
    write(presented, tmp_path, ".raw", suffix)
    image = sitk.ReadImage(str(tmp_path / f"img{suffix}"))
    assert image.GetSize() == (6, 5, 1)
    np.testing.assert_array_equal(sitk.GetArrayFromImage(image), data[0, 0, 0])


@pytest.mark.parametrize("suffix", ITK_VIEWS)
def test_an_array_without_dimensions_is_one_pixel(suffix: str, tmp_path: Path) -> None:
    presented, data = make_image("", "<i4", ())
    write(presented, tmp_path, ".raw", suffix)
    read = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / f"img{suffix}")))
    assert read.reshape(-1).tolist() == [data]


@pytest.mark.parametrize("names", [("row", "col"), ("station", "level"), ("station", "x")])
def test_two_dimensions_with_other_names_are_a_plane_in_the_order_of_the_array(
    names: tuple[str, str], tmp_path: Path
) -> None:
    data = np.arange(6, dtype="u1").reshape(2, 3)
    array = zarrfs.create_array(MemoryStore({}), "img", data=data, dimension_names=names)
    presented = PresentedArray(array, "img", lambda: array_geometry(array.spec))
    write(presented, tmp_path, ".raw", ".nii", ".mha", ".mhd", ".nrrd", ".nhdr")
    for suffix in (".mha", ".mhd", ".nrrd", ".nhdr"):
        np.testing.assert_array_equal(
            sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / f"img{suffix}"))), data
        )
    np.testing.assert_array_equal(np.asanyarray(nibabel.load(tmp_path / "img.nii").dataobj), data.T)


def test_unknown_units_are_not_converted(tmp_path: Path) -> None:
    presented, _ = make_image("zyx", units={"x": "pixel", "y": "pixel", "z": "pixel"})
    write(presented, tmp_path, ".raw", ".nii", ".nrrd", ".mhd")
    assert nibabel.load(tmp_path / "img.nii").header.get_xyzt_units() == ("unknown", "unknown")
    assert nibabel.load(tmp_path / "img.nii").header.get_zooms() == (0.5, 0.25, 2.0)
    assert nrrd.read_header(str(tmp_path / "img.nrrd"))["space units"] == ["", "", ""]
    assert sitk.ReadImage(str(tmp_path / "img.mhd")).GetSpacing() == (0.5, 0.25, 2.0)


def test_headers_that_cannot_name_the_raw_file_are_absent() -> None:
    array = zarrfs.create_array(MemoryStore(), shape=(2, 3), dtype="u1")
    for suffix, name in itertools.product((".mhd", ".nhdr"), ("a\nb", "a%03d", " a", "LIST")):
        assert "special meaning" in str(view_of(suffix).unsupported_reason(PresentedArray(array, name)))
    assert "ASCII" in str(view_of(".nhdr").unsupported_reason(PresentedArray(array, "größe")))
    assert view_of(".mhd").unsupported_reason(PresentedArray(array, "größe x")) is None
    assert view_of(".mha").unsupported_reason(PresentedArray(array, "a\nb")) is None


@pytest.mark.parametrize(
    "name", ["a b", "a.b", "größe", "a'b\"c", "a$b", "LOCAL", "#a", "a:=b", "a: b", "a = b", "-"]
)
def test_readers_find_the_raw_file_of_unusual_names(name: str, tmp_path: Path) -> None:
    data = np.arange(12, dtype="<u2").reshape(3, 4)
    array = zarrfs.create_array(MemoryStore(), data=data)
    presented = PresentedArray(array, name)
    (tmp_path / f"{name}.raw").write_bytes(data.tobytes())
    for suffix in (".mhd", ".nhdr"):
        view = view_of(suffix)
        if view.unsupported_reason(presented) is None:
            path = tmp_path / f"{name}{suffix}"
            content = view.content(presented)
            path.write_bytes(content.read(0, content.size))
            np.testing.assert_array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(path))), data, suffix)
            if suffix == ".nhdr":
                np.testing.assert_array_equal(nrrd.read(str(path), index_order="C")[0], data)
        else:
            assert suffix == ".nhdr"
            assert ":" in name or not name.isascii()
