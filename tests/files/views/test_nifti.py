"""NIfTI files, read with nibabel."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest

from tests.files.views.images import (
    IMAGES,
    MILLIMETERS,
    ORIGIN,
    POSITIONS,
    SCALE,
    make_image,
    transposed,
    write,
)


@pytest.mark.parametrize("axes", IMAGES)
def test_nibabel_reads_values_the_affine_transformation_and_units(axes: str, tmp_path: Path) -> None:
    presented, data = make_image(axes)
    write(presented, tmp_path, ".nii")
    image = nibabel.load(tmp_path / "img.nii")
    order = "xyztc" + "".join(name for name in reversed(axes) if name not in "xyztc")
    expected = transposed(data, axes, order)
    assert np.asanyarray(image.dataobj).dtype == data.dtype
    np.testing.assert_array_equal(
        np.asanyarray(image.dataobj).reshape(expected.shape), expected, err_msg=str(image.shape)
    )
    assert image.shape == expected.shape[: len(image.shape)]
    scale = [MILLIMETERS["x"], -MILLIMETERS["y"], MILLIMETERS["z"]]
    affine = np.eye(4)
    for number, name in enumerate("xyz"):
        if name in axes:
            affine[number, number] = scale[number]
            affine[number, 3] = POSITIONS[name]
    affine[:2] *= -1  # without an orientation x points to the left and y to posterior, as in ITK
    for matrix in (image.affine, image.get_qform(), image.get_sform()):
        np.testing.assert_allclose(matrix, affine, rtol=1e-6)
    space, time = image.header.get_xyzt_units()
    assert (space, time) == ("mm", "sec" if "t" in axes else "unknown")
    if "t" in axes:
        assert image.header.get_zooms()[3] == SCALE["t"]
        assert float(image.header["toffset"]) == ORIGIN["t"]


@pytest.mark.parametrize("dtype", ["<u1", ">f4"])
def test_nifti_2_for_dimensions_that_nifti_1_cannot_express(dtype: str, tmp_path: Path) -> None:
    presented, data = make_image("yx", dtype, (2, 40_000))
    write(presented, tmp_path, ".nii")
    image = nibabel.load(tmp_path / "img.nii")
    assert isinstance(image, nibabel.Nifti2Image)
    np.testing.assert_array_equal(np.asanyarray(image.dataobj), data.T)
    np.testing.assert_allclose(np.diag(image.affine)[:2], [-MILLIMETERS["x"], MILLIMETERS["y"]])
    np.testing.assert_array_equal(image.affine, image.get_qform())
    assert image.header.get_xyzt_units() == ("mm", "unknown")


def test_nifti_2_for_distances_that_nifti_1_cannot_express(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALE, "x", 1e-30)
    presented, _ = make_image("yx", units={"x": "yoctometer", "y": "yoctometer"})
    write(presented, tmp_path, ".nii")
    image = nibabel.load(tmp_path / "img.nii")
    assert isinstance(image, nibabel.Nifti2Image)
    assert image.header.get_zooms() == pytest.approx((1e-51, 0.25e-21))


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_reversed_axes_are_rotations_and_reflections(
    signs: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, sign in zip("xy", signs, strict=True):
        monkeypatch.setitem(SCALE, name, sign * abs(SCALE[name]))
    presented, _ = make_image("zyx")
    write(presented, tmp_path, ".nii")
    image = nibabel.load(tmp_path / "img.nii")
    assert np.sign(np.diag(image.get_sform()))[:2].tolist() == [-sign for sign in signs]
    np.testing.assert_allclose(image.get_qform(), image.get_sform(), rtol=1e-6)
    assert image.header["pixdim"][4:].tolist() == [1, 1, 1, 1]
