"""The orientation of images: files of other programs, imported and presented again, have the same physical points."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from itertools import permutations, product
from pathlib import Path
from typing import Any

import nibabel
import nrrd
import numpy as np
import pytest
import SimpleITK
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nibabel.affines import apply_affine

import zarrfs
from tests.files.views.presented import view_of
from zarrfs.files.exporting import export
from zarrfs.files.exporting.sources import presented_array
from zarrfs.files.importing import import_files
from zarrfs.ngff import check_node, parse
from zarrfs.ngff.editing import with_axis_name
from zarrfs.ngff.orientation import ANATOMICAL_DIRECTIONS
from zarrfs.ngff.spatial_frames import spatial_frame

SHAPE = (4, 5, 6)
"""The lengths of x, y and z."""

DATA = np.arange(120, dtype="u2").reshape(SHAPE)
VOXELS = [(0, 0, 0), (3, 0, 0), (0, 4, 0), (0, 0, 5), (1, 2, 3)]
LPS = np.diag([-1.0, -1.0, 1.0])

VIEWS = (".nii", ".nrrd", ".nhdr", ".mha", ".mhd")
WRITTEN = (".nii", ".nrrd", ".mha")

ALIGNED = [
    np.eye(3)[list(order)] * np.array(signs)[:, np.newaxis]
    for order in permutations(range(3))
    for signs in product((1.0, -1.0), repeat=3)
]
"""The 48 matrices of directions that are parallel to the axes of the body."""


def rotation(angles: tuple[float, float, float]) -> np.ndarray[Any, Any]:
    matrix = np.eye(3)
    for axis, angle in enumerate(angles):
        part = np.eye(3)
        rows = [row for row in range(3) if row != axis]
        part[np.ix_(rows, rows)] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix = matrix @ part
    return matrix


def affine_of(
    directions: np.ndarray[Any, Any], sizes: tuple[float, ...], origin: tuple[float, ...]
) -> np.ndarray[Any, Any]:
    affine = np.eye(4)
    affine[:3, :3] = directions * np.array(sizes)
    affine[:3, 3] = origin
    return affine


def write_nifti(path: Path, affine: np.ndarray[Any, Any]) -> None:
    image = nibabel.Nifti1Image(DATA, affine)
    image.header.set_xyzt_units("mm", "sec")
    nibabel.save(image, path)


def write_itk(path: Path, affine: np.ndarray[Any, Any]) -> None:
    image = SimpleITK.GetImageFromArray(DATA.T)
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    image.SetSpacing(sizes.tolist())
    image.SetDirection((LPS @ affine[:3, :3] / sizes).ravel().tolist())
    image.SetOrigin((LPS @ affine[:3, 3]).tolist())
    SimpleITK.WriteImage(image, str(path))


def write_ras_nrrd(path: Path, affine: np.ndarray[Any, Any]) -> None:
    header = {
        "space": "right-anterior-superior",
        "space directions": affine[:3, :3].T,
        "space origin": affine[:3, 3],
        "space units": ["mm"] * 3,
    }
    nrrd.write(str(path), DATA, header)


WRITERS = {
    "a.nii": write_nifti,
    "a.nrrd": write_itk,
    "ras.nrrd": write_ras_nrrd,
    "a.mha": write_itk,
}


def points_by_nibabel(path: Path) -> np.ndarray[Any, Any]:
    """Return the right, anterior, superior positions of the voxels."""
    image = nibabel.load(path)
    np.testing.assert_array_equal(np.asanyarray(image.dataobj), DATA)
    if image.header["qform_code"]:
        np.testing.assert_allclose(image.get_qform(), image.get_sform(), rtol=1e-5, atol=1e-4)
    return np.array(apply_affine(image.affine, VOXELS))


def points_by_itk(path: Path) -> np.ndarray[Any, Any]:
    image = SimpleITK.ReadImage(str(path))
    values = SimpleITK.GetArrayFromImage(image).T
    np.testing.assert_array_equal(values, DATA)
    return np.array([image.TransformIndexToPhysicalPoint(voxel) for voxel in VOXELS]) @ LPS


def points_by_pynrrd(path: Path) -> np.ndarray[Any, Any]:
    values, header = nrrd.read(str(path))
    np.testing.assert_array_equal(values, DATA)
    assert header["space"] == "left-posterior-superior"
    return np.array((np.array(VOXELS) @ header["space directions"] + header["space origin"]) @ LPS)


def read_points(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the positions that each program reads from a file."""
    found = {"SimpleITK": points_by_itk(path)}
    if path.suffix == ".nii":
        found["nibabel"] = points_by_nibabel(path)
    elif path.suffix in (".nrrd", ".nhdr"):
        found["pynrrd"] = points_by_pynrrd(path)
    return found


def write_views(node: Any, directory: Path, suffixes: tuple[str, ...] = VIEWS) -> None:
    presented = presented_array(node, 0, "img")
    for suffix in (".raw", *suffixes):
        content = view_of(suffix).content(presented)
        (directory / f"img{suffix}").write_bytes(content.read(0, content.size))


def imported(place: Path, name: str, affine: Any) -> zarrfs.Group:
    """Write a file of the format of ``name``, import it, and return the image, whose metadata are valid."""
    WRITERS[name](place / name, affine)
    import_files([place / name], place / "image.zarr")
    group = zarrfs.open_group(place / "image.zarr")
    assert check_node(group).valid
    return group


def check_points(place: Path, suffixes: tuple[str, ...], expected: Any, atol: float) -> None:
    """Compare the positions of voxels in the views of these suffixes, as each program reads them."""
    for suffix in suffixes:
        for program, points in read_points(place / f"img{suffix}").items():
            np.testing.assert_allclose(points, expected, atol=atol, err_msg=f"{suffix}, {program}")


SIZES = st.tuples(*[st.sampled_from([0.25, 1.0, 3.5])] * 3)
ORIGINS = st.tuples(*[st.integers(-40, 40).map(lambda number: number / 4)] * 3)


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=25)
@given(directions=st.sampled_from(ALIGNED), sizes=SIZES, origin=ORIGINS)
def test_aligned_axes_keep_their_positions_in_every_view(
    name: str, directions: Any, sizes: tuple[float, ...], origin: tuple[float, ...]
) -> None:
    affine = affine_of(directions, sizes, origin)
    expected = apply_affine(affine, VOXELS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        group = imported(place, name, affine)
        assert ANATOMICAL_DIRECTIONS not in group.attrs
        axes = parse(group.attrs).multiscales[0].axes
        identity = name == "a.mha" and np.array_equal(directions, LPS)
        assert identity or all(axis.orientation for axis in axes)
        codes = "".join(nibabel.aff2axcodes(affine))
        ends = [str(axis.orientation).rpartition("-")[2][0].upper() for axis in reversed(axes)]
        assert identity or "".join(ends) == codes
        write_views(group, place, (".nii", ".nhdr", ".mha"))
        np.testing.assert_allclose(nibabel.load(place / "img.nii").affine, affine, rtol=1e-6, atol=1e-6)
        check_points(place, (".nii", ".nhdr", ".mha"), expected, atol=1e-4)


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=15)
@example(angles=(np.pi / 4, 0, 0), mirrored=False, sizes=(1.0, 1.0, 1.0), origin=(1.0, 2.0, 3.0))
@example(angles=(0, np.pi / 4, np.pi / 4), mirrored=True, sizes=(1.0, 1.0, 1.0), origin=(1.0, 2.0, 3.0))
@given(
    angles=st.tuples(*[st.integers(-24, 24).map(lambda number: number * np.pi / 12)] * 3),
    mirrored=st.booleans(),
    sizes=SIZES,
    origin=ORIGINS,
)
def test_oblique_axes_keep_their_positions_in_every_view(
    name: str,
    angles: tuple[float, float, float],
    mirrored: bool,
    sizes: tuple[float, ...],
    origin: tuple[float, ...],
) -> None:
    directions = rotation(angles) * (1, 1, -1 if mirrored else 1)
    affine = affine_of(directions, sizes, origin)
    expected = apply_affine(affine, VOXELS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        group = imported(place, name, affine)
        write_views(group, place, (".nii", ".nrrd", ".mhd"))
        check_points(place, (".nii", ".nrrd", ".mhd"), expected, atol=1e-3)


@pytest.mark.usefixtures("caplog")
def test_a_sheared_transformation_is_kept_without_qform(tmp_path: Path) -> None:
    affine = np.array([[2, 0.5, 0, 10], [0, -1, 0.25, 20], [0.1, 0, 3, -30], [0, 0, 0, 1.0]])
    write_nifti(tmp_path / "a.nii", affine)
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    export(tmp_path / "image.zarr", tmp_path / "b.nii")
    image = nibabel.load(tmp_path / "b.nii")
    np.testing.assert_allclose(image.affine, affine, rtol=1e-5, atol=1e-5)
    assert (int(image.header["qform_code"]), int(image.header["sform_code"])) == (0, 1)
    with pytest.raises(RuntimeError, match=r"non-?orthogonal|orthonormal"):
        SimpleITK.ReadImage(str(tmp_path / "b.nii"))


@pytest.mark.parametrize("angles", [(0, 0, 0), (np.pi / 2, 0, np.pi), (0.3, -0.2, 0.1)])
@pytest.mark.parametrize("distance", [None, 4.0])
@pytest.mark.usefixtures("caplog")
def test_a_plane_keeps_its_position(
    angles: tuple[float, float, float], distance: float | None, tmp_path: Path
) -> None:
    """A header without a distance of planes has a third vector of zeros."""
    affine = affine_of(rotation(angles), (2.0, 3.0, distance or 1.0), (5.0, 6.0, 30.0))
    image = nibabel.Nifti1Image(DATA[:, :, 0], affine)
    image.header.set_xyzt_units("mm")
    if distance is None:
        image.header["vox_offset"] = 352
        for row in "xyz":
            image.header[f"srow_{row}"][2] = 0
        image.header["qform_code"] = 0
        image.header["sform_code"] = 1
        (tmp_path / "a.nii").write_bytes(image.header.binaryblock + bytes(4) + DATA[:, :, 0].tobytes("F"))
    else:
        nibabel.save(image, tmp_path / "a.nii")
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    export(tmp_path / "image.zarr", tmp_path / "b.nii")
    copy = nibabel.load(tmp_path / "b.nii")
    assert copy.shape == (*DATA.shape[:2], 1)
    np.testing.assert_allclose(copy.affine, affine, atol=1e-5)
    np.testing.assert_array_equal(np.asanyarray(copy.dataobj)[:, :, 0], DATA[:, :, 0])


@pytest.mark.parametrize("angles", [(0, 0, 0), (np.pi / 2, 0, np.pi), (0.3, -0.2, 0.1)])
@pytest.mark.parametrize("space", ["left-posterior-superior", "right-anterior-superior"])
@pytest.mark.usefixtures("caplog")
def test_a_plane_in_nrrd_keeps_its_position(
    space: str, angles: tuple[float, float, float], tmp_path: Path
) -> None:
    affine = affine_of(rotation(angles), (2.0, 3.0, 1.0), (5.0, 6.0, 30.0))
    header = {
        "space": space,
        "space directions": affine[:3, :2].T,
        "space origin": affine[:3, 3],
        "space units": ["mm"] * 3,
    }
    nrrd.write(str(tmp_path / "a.nrrd"), DATA[:, :, 0], header)
    import_files([tmp_path / "a.nrrd"], tmp_path / "image.zarr")
    export(tmp_path / "image.zarr", tmp_path / "b.nrrd")
    values, copy = nrrd.read(str(tmp_path / "b.nrrd"))
    signs = np.array([1.0, 1.0, 1.0] if space == "left-posterior-superior" else [-1.0, -1.0, 1.0])
    assert copy["space"] == "left-posterior-superior"
    np.testing.assert_array_equal(values, DATA[:, :, :1])
    np.testing.assert_allclose(copy["space origin"], affine[:3, 3] * signs, atol=1e-5)
    np.testing.assert_allclose(copy["space directions"][:2], affine[:3, :2].T * signs, atol=1e-5)


@pytest.mark.parametrize("origin", [(0.0, 0.0, 0.0), (5.0, 6.0, 0.0)])
def test_a_plane_through_the_origin_is_two_dimensional(
    origin: tuple[float, float, float], tmp_path: Path
) -> None:
    affine = affine_of(np.eye(3), (2.0, 3.0, 4.0), origin)
    nibabel.save(nibabel.Nifti1Image(DATA[:, :, 0], affine), tmp_path / "a.nii")
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    export(tmp_path / "image.zarr", tmp_path / "b.nii")
    copy = nibabel.load(tmp_path / "b.nii")
    assert copy.shape == DATA.shape[:2]
    np.testing.assert_allclose(copy.affine[:, [0, 1, 3]], affine[:, [0, 1, 3]], atol=1e-5)


def test_oblique_axes_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_nifti(tmp_path / "a.nii", affine_of(rotation((0.1, 0, 0)), (1, 1, 1), (0, 0, 0)))
    with caplog.at_level(logging.WARNING, "zarrfs"):
        import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    assert ANATOMICAL_DIRECTIONS in caplog.text


@pytest.mark.usefixtures("caplog")
def test_levels_of_a_pyramid_have_the_same_frame(tmp_path: Path) -> None:
    """The position of an element of level 1 is the mean of the positions of the elements that it replaces."""
    affine = affine_of(rotation((0.3, -0.2, 0.1)), (1.0, 1.0, 2.0), (5.0, 6.0, 7.0))
    image = nibabel.Nifti1Image(np.zeros((64, 64, 32), "u1"), affine)
    nibabel.save(image, tmp_path / "a.nii")
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr", levels=2)
    export(tmp_path / "image.zarr", tmp_path / "b.nii", level=1)
    small = nibabel.load(tmp_path / "b.nii")
    factors = np.array(image.shape) / small.shape
    mean = apply_affine(affine, (factors - 1) / 2)
    np.testing.assert_allclose(small.affine[:3, 3], mean, atol=1e-4)
    np.testing.assert_allclose(small.affine[:3, :3], affine[:3, :3] * factors, atol=1e-4)


@pytest.mark.parametrize("space", ["space: right-anterior-superior", "space dimension: 3"])
def test_nrrd_with_a_position_and_no_directions(space: str, tmp_path: Path) -> None:
    header = f"NRRD0004\ntype: ushort\ndimension: 3\n{space}\nsizes: 4 5 6\nendian: little\nencoding: raw\n"
    header += "space origin: (1,2,3)\n\n"
    (tmp_path / "a.nrrd").write_bytes(header.encode() + DATA.tobytes("F"))
    import_files([tmp_path / "a.nrrd"], tmp_path / "image.zarr")
    group = zarrfs.open_group(tmp_path / "image.zarr")
    write_views(group, tmp_path)
    expected = points_by_itk(tmp_path / "a.nrrd")
    for suffix in VIEWS:
        for program, points in read_points(tmp_path / f"img{suffix}").items():
            np.testing.assert_allclose(points, expected, atol=1e-6, err_msg=f"{suffix}, {program}")


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.nii", lambda data: data[:280] + np.array([1e30, np.inf, np.nan], "<f4").tobytes() + data[292:]),
        ("a.nii", lambda data: data[:280] + bytes(48) + data[328:]),
        (
            "a.nrrd",
            lambda data: data.replace(b"(1,0,0)", b"(1e308,1e308,0)").replace(b"(0,1,0)", b"(0,1e-320,0)"),
        ),
        ("a.nrrd", lambda data: data.replace(b"(1,0,0)", b"(0,1,0)")),
        ("a.nrrd", lambda data: data.replace(b"(1,0,0)", b"(nan,0,0)")),
        ("a.mha", lambda data: data.replace(b"TransformMatrix = 1 0 0", b"TransformMatrix = nan 0 0")),
        ("a.mha", lambda data: data.replace(b"TransformMatrix = 1 0 0", b"TransformMatrix = 0 0 1")),
    ],
)
def test_the_elements_of_a_file_with_a_damaged_transformation_can_be_read(
    name: str, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    WRITERS[name](tmp_path / name, affine_of(LPS, (1, 1, 1), (0, 0, 0)))
    damaged = change((tmp_path / name).read_bytes())
    assert damaged != (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(damaged)
    import_files([tmp_path / name], tmp_path / "image.zarr")
    group = zarrfs.open_group(tmp_path / "image.zarr")
    np.testing.assert_array_equal(group["0"][...], DATA.T)
    write_views(group, tmp_path)


def test_a_transformation_with_the_code_0_is_no_orientation(tmp_path: Path) -> None:
    image = nibabel.Nifti1Image(DATA, None)
    image.header.set_zooms((2.0, 3.0, 4.0))
    nibabel.save(image, tmp_path / "a.nii")
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    image = parse(zarrfs.open_group(tmp_path / "image.zarr").attrs).multiscales[0]
    assert [axis.orientation for axis in image.axes] == [None] * 3
    assert image.levels[0].translation == (0.0, 0.0, 0.0)
    assert image.levels[0].scale == (4.0, 3.0, 2.0)


def test_an_image_in_a_plane_of_the_body(tmp_path: Path) -> None:
    """A coronal image has the axes x (to the left) and y (to inferior), and no third one."""
    attributes = image_attributes(("right-to-left", "superior-to-inferior"), (0.5, 2.0), (3.0, -4.0))
    node = image_group(tmp_path / "image.zarr", DATA[:, :, 0].T, attributes)
    write_views(node, tmp_path)
    points = [[-(0.5 * x + 3.0), 0.0, -(2.0 * y - 4.0)] for x, y, _ in VOXELS]
    nifti = nibabel.load(tmp_path / "img.nii")
    voxels = [(x, y, 0) for x, y, _ in VOXELS]
    np.testing.assert_allclose(apply_affine(nifti.affine, voxels), points, atol=1e-6)
    for suffix in (".nrrd", ".nhdr", ".mha", ".mhd"):
        image = SimpleITK.ReadImage(str(tmp_path / f"img{suffix}"))
        size = list(image.GetSize())
        thin = size.index(1)
        found = [image.TransformIndexToPhysicalPoint([*voxel[:thin], 0, *voxel[thin:2]]) for voxel in voxels]
        np.testing.assert_allclose(np.array(found) @ LPS, points, atol=1e-6, err_msg=suffix)


@pytest.mark.parametrize(
    "orientations",
    [
        (None, None, None),
        ("left-to-right", "posterior-to-anterior", None),
        ("left-to-right", "right-to-left", "inferior-to-superior"),
        ("left-to-right", "dorsal-to-ventral", "rostral-to-caudal"),
        ("left-to-right", "upwards", "inferior-to-superior"),
    ],
    ids=str,
)
def test_axes_without_a_complete_orientation_are_those_of_itk(
    orientations: tuple[str | None, ...], tmp_path: Path
) -> None:
    """All programs read the coordinates x, y, z of OME-NGFF as left, posterior, superior."""
    attributes = image_attributes(orientations, (0.5, 2.0, 4.0), (3.0, -4.0, 5.0))
    node = image_group(tmp_path / "image.zarr", DATA.T, attributes)
    write_views(node, tmp_path)
    expected = (np.array(VOXELS) * (0.5, 2.0, 4.0) + (3.0, -4.0, 5.0)) @ LPS
    for suffix in VIEWS:
        for program, points in read_points(tmp_path / f"img{suffix}").items():
            np.testing.assert_allclose(points, expected, atol=1e-6, err_msg=f"{suffix}, {program}")
    header = nibabel.load(tmp_path / "img.nii").header
    assert (int(header["qform_code"]), int(header["sform_code"])) == (2, 2)
    assert b"AnatomicalOrientation" not in (tmp_path / "img.mha").read_bytes()


def test_the_orientation_in_metaimage_files_is_that_of_itk(tmp_path: Path) -> None:
    for number, directions in enumerate(ALIGNED):
        write_itk(tmp_path / f"{number}.mha", affine_of(directions, (1, 1, 1), (0, 0, 0)))
        import_files([tmp_path / f"{number}.mha"], tmp_path / f"{number}.zarr", levels=1)
        write_views(zarrfs.open_group(tmp_path / f"{number}.zarr"), tmp_path, (".mha",))
        lines = [
            {line for line in path.read_bytes().splitlines() if line.startswith(b"AnatomicalOrientation")}
            for path in (tmp_path / f"{number}.mha", tmp_path / "img.mha")
        ]
        assert lines[0] == lines[1] != set()


@pytest.mark.usefixtures("caplog")
@pytest.mark.parametrize(
    "change",
    [
        {"space": "scanner"},
        {"axes": ["z", "y"]},
        {"axes": ["x", "y", "z"]},
        {"directions": [[0, 0, 1.0], [0, 1.0, 0]]},
        {"directions": [[0, 0, 1.0], [0, 1.0, 0], [0, 1.0, 0]]},
        {"directions": [[0, 0, 9.0], [0, 1.0, 0], [1.0, 0, 0]]},
        {"directions": [[0, 0, "1"], [0, 1.0, 0], [1.0, 0, 0]]},
        {"directions": [[0, 0, -1.0], [0, 1.0, 0], [1.0, 0, 0]]},
        {"directions": 5},
    ],
    ids=str,
)
def test_directions_that_do_not_fit_the_axes_are_ignored(change: dict[str, Any], tmp_path: Path) -> None:
    affine = affine_of(rotation((0.3, -0.2, 0.1)), (1.0, 1.0, 2.0), (5.0, 6.0, 7.0))
    write_nifti(tmp_path / "a.nii", affine)
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    group = zarrfs.open_group(tmp_path / "image.zarr", mode="r+")
    assert any(axis.direction for axis in presented_array(group, 0, "a").geometry.axes)
    group.attrs[ANATOMICAL_DIRECTIONS] = {**group.attrs[ANATOMICAL_DIRECTIONS], **change}
    geometry = presented_array(group, 0, "a").geometry
    assert not any(axis.direction for axis in geometry.axes)
    assert spatial_frame(geometry).is_anatomical


@pytest.mark.usefixtures("caplog")
def test_exact_directions_follow_the_name_of_an_axis(tmp_path: Path) -> None:
    write_nifti(tmp_path / "a.nii", affine_of(rotation((0.3, -0.2, 0.1)), (1.0, 1.0, 2.0), (5.0, 6.0, 7.0)))
    import_files([tmp_path / "a.nii"], tmp_path / "image.zarr")
    group = zarrfs.open_group(tmp_path / "image.zarr", mode="r+")
    before = presented_array(group, 0, "a").geometry.axes
    group.attrs.put(with_axis_name(group.attrs, 0, "depth"))
    after = presented_array(group, 0, "a").geometry.axes
    assert [axis.direction for axis in after] == [axis.direction for axis in before]
    assert after[0].name == "depth"


def image_attributes(
    orientations: tuple[str | None, ...], scale: tuple[float, ...], translation: tuple[float, ...]
) -> dict[str, Any]:
    """Return the attributes of an image in millimetres; the arguments are in the order x, y, z."""
    axes: list[dict[str, Any]] = [
        {"name": name, "type": "space", "unit": "millimeter"} for name in "xyz"[: len(scale)]
    ]
    for axis, orientation in zip(axes, orientations, strict=True):
        if orientation is not None:
            axis["orientation"] = {"type": "anatomical", "value": orientation}
    steps = [
        {"type": "scale", "scale": list(scale[::-1])},
        {"type": "translation", "translation": list(translation[::-1])},
    ]
    datasets = [{"path": "0", "coordinateTransformations": steps}]
    return {"ome": {"version": "0.5", "multiscales": [{"axes": axes[::-1], "datasets": datasets}]}}


def image_group(path: Path, data: Any, attributes: dict[str, Any]) -> Any:
    group = zarrfs.create_group(path, attributes=attributes)
    group.create_array("0", data=data)
    return zarrfs.open_group(path)
