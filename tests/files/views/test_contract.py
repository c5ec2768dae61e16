"""The contract of all views: a reader for each of them, exact sizes, and any ranges of bytes."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import nibabel
import nrrd
import numpy as np
import pytest
import rasterio
import safetensors.numpy
import SimpleITK as sitk  # noqa: N813
import tifffile
from astropy.io import fits
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader

from tests.files.views.images import make_image
from zarrfs.files.views import all_views

ROOT = Path(__file__).resolve().parents[3]

Values = np.ndarray[Any, Any]


def read_itk(path: Path) -> Values:
    return np.asarray(sitk.GetArrayFromImage(sitk.ReadImage(str(path))))


def read_nrrd(path: Path) -> Values:
    return np.asarray(nrrd.read(str(path), index_order="C")[0])


def read_nifti(path: Path) -> Values:
    return np.asanyarray(nibabel.load(path).dataobj).T


def read_vti(path: Path) -> Values:
    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    return vtk_to_numpy(image.GetPointData().GetArray(0)).reshape(image.GetDimensions()[::-1])


def read_h5(path: Path) -> Values:
    with h5py.File(path) as file:
        return np.asarray(file["img"][...])


def read_nc(path: Path) -> Values:
    with h5netcdf.File(path) as file:
        return np.asarray(file["img"][...])


def read_gdal(path: Path) -> Values:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path) as file:
            return np.asarray(file.read())


READERS: dict[str, Callable[[Path], Values]] = {
    ".npy": np.load,
    ".F.npy": np.load,
    ".raw": lambda path: np.fromfile(path, "<u2").reshape(
        json.loads(path.with_suffix(".json").read_text())["shape"]
    ),
    ".F.raw": lambda path: np.fromfile(path, "<u2").reshape((4, 5, 6), order="F"),
    ".json": lambda path: np.fromfile(
        path.with_suffix(".raw"), json.loads(path.read_text())["dtype"]
    ).reshape(4, 5, 6),
    ".nhdr": read_nrrd,
    ".nrrd": read_itk,
    ".mhd": read_itk,
    ".mha": read_itk,
    ".nii": read_nifti,
    ".vti": read_vti,
    ".h5": read_h5,
    ".nc": read_nc,
    ".tif": tifffile.imread,
    ".ome.tif": tifffile.imread,
    ".hdr": lambda path: read_gdal(path.with_suffix(".raw")),
    ".vrt": read_gdal,
    ".fits": fits.getdata,
    ".safetensors": lambda path: safetensors.numpy.load_file(path)["img"],
}
"""A function that reads the file of each view of an image with the axes z, y and x."""

NOT_FOR_IMAGES = {".csv", ".txt"}
"""The views of tables and text, which have their own tests."""

AXES = ("zyx", "tczyx", "ctzyx", "xyz", "zcyxt", "yxc", "qzyx", "x", "")


def test_each_view_has_a_reader_and_a_row_in_the_documentation() -> None:
    suffixes = {view.suffix for view in all_views()}
    assert suffixes == set(READERS) | NOT_FOR_IMAGES
    rows = (ROOT / "docs" / "mount-files.md").read_text()
    missing = [suffix for suffix in suffixes if f"`img{suffix}`" not in rows]
    assert not missing, f"docs/mount-files.md has no row for {missing}"


def test_each_reader_reads_the_elements(tmp_path: Path) -> None:
    presented, data = make_image("zyx")
    for view in all_views():
        assert (view.unsupported_reason(presented) is None) == (view.suffix not in NOT_FOR_IMAGES), (
            view.suffix
        )
        if view.suffix in NOT_FOR_IMAGES:
            continue
        content = view.content(presented)
        (tmp_path / f"img{view.suffix}").write_bytes(content.read(0, content.size))
    for suffix, reader in READERS.items():
        np.testing.assert_array_equal(reader(tmp_path / f"img{suffix}"), data, suffix)


@pytest.mark.parametrize("dtype", ["<u2", ">f4", "|b1", "<c16"])
@pytest.mark.parametrize("axes", AXES)
def test_any_ranges_of_any_view_are_parts_of_the_whole_file(axes: str, dtype: str) -> None:
    presented, data = make_image(axes, dtype)
    generator = random.Random(axes + dtype)
    for view in all_views():
        if view.unsupported_reason(presented) is not None:
            continue
        content = view.content(presented)
        whole = content.read(0, content.size + 1)
        assert len(whole) == content.size, view.suffix
        assert len(whole) >= data.nbytes or content.in_memory, view.suffix
        for _ in range(20):
            offset = generator.randrange(content.size + 1)
            size = generator.choice((1, 3, 16, 100, content.size))
            assert content.read(offset, size) == whole[offset : offset + size], view.suffix
