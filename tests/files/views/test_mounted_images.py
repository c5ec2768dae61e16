"""Images in a mount, opened by other programs."""

from __future__ import annotations

from pathlib import Path

import nibabel
import nrrd
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader

import zarrfs
from tests.files.views.images import (
    image_attributes,
)
from tests.mount.mounted import mounted, needs_fuse


@needs_fuse
def test_a_mounted_image_opens_in_all_readers(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    data = generator.integers(0, 2**16, (2, 40, 64, 64)).astype("<u2")
    group = zarrfs.create_group(tmp_path / "a b.zarr", attributes=image_attributes("czyx"), zarr_format=2)
    group.create_array("0", data=data, chunks=(1, 10, 32, 32))
    with mounted(tmp_path / "a b.zarr", tmp_path / "mnt") as mount:
        for suffix in (".nhdr", ".nrrd"):
            read = sitk.GetArrayFromImage(sitk.ReadImage(str(mount / f"0{suffix}")))
            np.testing.assert_array_equal(read, np.moveaxis(data, 0, -1))
            np.testing.assert_array_equal(nrrd.read(str(mount / f"0{suffix}"), index_order="C")[0], data)
        for suffix in (".mhd", ".mha"):
            image = sitk.ReadImage(str(mount / f"0{suffix}"))
            np.testing.assert_array_equal(sitk.GetArrayFromImage(image), data)
            assert image.GetSpacing()[:3] == (0.0005, 0.00025, 0.002)
        nii = nibabel.load(mount / "0.nii")
        assert nii.shape == (64, 64, 40, 1, 2)
        assert nii.dataobj[5, 6, 7, 0, 1] == data[1, 7, 6, 5]
        np.testing.assert_array_equal(np.asanyarray(nii.dataobj)[:, :, :, 0].T, data)
        assert np.load(mount / "0.F.npy", mmap_mode="r")[1, 2, 3, 4] == data[1, 2, 3, 4]
        np.testing.assert_array_equal(np.load(mount / "0.F.npy"), data)
        reader = vtkXMLImageDataReader()
        reader.SetFileName(str(mount / "0.vti"))
        reader.Update()
        second = vtk_to_numpy(reader.GetOutput().GetPointData().GetArray("channel 1"))
        np.testing.assert_array_equal(second.reshape(data.shape[1:]), data[1])


@needs_fuse
def test_simpleitk_reads_a_region_of_a_metaimage_without_the_other_chunks(tmp_path: Path) -> None:
    """All chunks but one are corrupt, so that reading any other one fails."""
    data = np.arange(8 * 512 * 512, dtype="u4").astype("u1").reshape(8, 512, 512)
    group = zarrfs.create_group(tmp_path / "a.zarr", attributes=image_attributes("zyx"), zarr_format=2)
    group.create_array("0", data=data, chunks=(1, 512, 512), compressors=None)
    for chunk in (0, 1, 2, 3, 5, 6, 7):
        (tmp_path / "a.zarr" / "0" / f"{chunk}.0.0").write_bytes(b"corrupt")
    with mounted(tmp_path / "a.zarr", tmp_path / "mnt") as mount:
        reader = sitk.ImageFileReader()
        reader.SetFileName(str(mount / "0.mhd"))
        reader.ReadImageInformation()
        assert reader.GetSize() == (512, 512, 8)
        reader.SetExtractIndex((255, 256, 4))
        reader.SetExtractSize((3, 2, 1))
        region = sitk.GetArrayFromImage(reader.Execute())
        np.testing.assert_array_equal(region, data[4:5, 256:258, 255:258])
        reader.SetExtractIndex((255, 256, 5))
        with pytest.raises(RuntimeError):
            reader.Execute()
