"""Images of a scene as files: programs place them correctly to each other."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin
from pathlib import Path
from typing import Any

import nibabel
import nrrd
import numpy as np
import pytest
import SimpleITK

import zarrfs
from zarrfs.errors import OptionError, UnsupportedError
from zarrfs.files.exporting import export
from zarrfs.ngff import SystemReference, compose, load_graph
from zarrfs.ngff.geometry import Ancestor, array_geometry
from zarrfs.ngff.parse import parse
from zarrfs.ngff.spatial_frames import spatial_frame

SPACE = {"type": "space", "unit": "micrometer"}
ZYX = [{"name": name, **SPACE} for name in "zyx"]
SHAPE = (3, 4, 5)
CORNERS = [(0, 0, 0), (2, 0, 0), (0, 3, 0), (0, 0, 4), (1, 2, 3)]
"""Indices along z, y and x."""


def oblique(angle: float = 0.4) -> list[list[float]]:
    """Return an affine transformation of z, y, x: a rotation about z, a shear, and a translation."""
    return [
        [1, 0.1, 0, 30],
        [0, cos(angle), -sin(angle), -40],
        [0, sin(angle), cos(angle), 50],
    ]


def write_scene(
    path: Path, steps: dict[str, dict[str, Any]], axes: list[Any] = ZYX, world: list[Any] = ZYX
) -> None:
    """Write a scene with one image for each transformation, with voxels of 2 x 0.5 x 0.25 micrometres."""
    edges = [
        {"input": {"path": name, "name": "physical"}, "output": {"name": "world"}, **step}
        for name, step in steps.items()
    ]
    scene = {"coordinateSystems": [{"name": "world", "axes": world}], "coordinateTransformations": edges}
    root = zarrfs.create_group(path, attributes={"ome": {"version": "0.6rc0", "scene": scene}})
    rank = len(axes)
    for number, name in enumerate(steps):
        level = {
            "type": "sequence",
            "input": {"path": "s0"},
            "output": {"name": "physical"},
            "transformations": [
                {"type": "scale", "scale": [1, 2, 0.5, 0.25][-rank:]},
                {"type": "translation", "translation": [0, 7, 8, 9][-rank:]},
            ],
        }
        item = {
            "coordinateSystems": [{"name": "physical", "axes": axes}],
            "datasets": [{"path": "s0", "coordinateTransformations": [level]}],
        }
        group = root.create_group(name, attributes={"ome": {"version": "0.6rc0", "multiscales": [item]}})
        data = np.arange(np.prod(SHAPE), dtype="u2").reshape(SHAPE) + number
        group.create_array("s0", data=data if rank == 3 else np.stack([data] * 2))


STEPS = {
    "a": {"type": "translation", "translation": [1, 2, 348]},
    "b": {"type": "affine", "affine": oblique()},
    "c": {"type": "mapAxis", "mapAxis": [1, 2, 0]},
}


def points_of_nifti(path: Path) -> Any:
    """Return the positions of ``CORNERS``, in the coordinates x, y and z of the scene."""
    image = nibabel.load(path)
    assert image.header["sform_code"] > 0
    found = nibabel.affines.apply_affine(image.affine, [index[::-1] for index in CORNERS])
    return found * [-1, -1, 1]


def points_of_itk(path: Path) -> Any:
    image = SimpleITK.ReadImage(str(path))
    return np.array([image.TransformIndexToPhysicalPoint(index[::-1]) for index in CORNERS])


def points_of_nrrd(path: Path) -> Any:
    header = nrrd.read_header(str(path))
    return np.array([index[::-1] for index in CORNERS]) @ header["space directions"] + header["space origin"]


def write(location: Path, target: Path) -> Path:
    export(str(location), str(target))
    return target


READERS: list[tuple[str, Callable[[Path], Any]]] = [
    (".nii", points_of_nifti),
    (".nrrd", points_of_nrrd),
    (".nrrd", points_of_itk),
    (".mha", points_of_itk),
]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("suffix", "read"), READERS)
def test_programs_place_the_images_of_a_scene(
    name: str, suffix: str, read: Callable[[Path], Any], tmp_path: Path
) -> None:
    write_scene(tmp_path / "scene.zarr", STEPS)
    graph = load_graph(zarrfs.open(tmp_path / "scene.zarr"))
    expected = compose(graph, SystemReference(f"{name}/s0"), SystemReference("", "world")).apply(CORNERS)
    found = read(write(tmp_path / "scene.zarr" / name, tmp_path / f"{name}{suffix}"))
    # ITK stores directions that are not orthogonal as they are.
    np.testing.assert_allclose(found, expected[:, ::-1] / 1000, rtol=1e-5, atol=1e-7)


def test_the_distance_of_two_tiles_is_that_of_the_scene(tmp_path: Path) -> None:
    steps = {name: {"type": "translation", "translation": [0, 0, x]} for name, x in (("a", 0), ("b", 348))}
    write_scene(tmp_path / "scene.zarr", steps)
    one, two = (
        points_of_itk(write(tmp_path / "scene.zarr" / name, tmp_path / f"{name}.mha")) for name in "ab"
    )
    np.testing.assert_allclose(two - one, [[0.348, 0, 0]] * len(CORNERS), atol=1e-12)


def geometry_of(path: Path, name: str = "a") -> Any:
    scene, image = (zarrfs.open_group(path, below) for below in ("", name))
    ancestors = [
        Ancestor("s0", image.attrs, parse(image.attrs)),
        Ancestor(f"{name}/s0", scene.attrs, parse(scene.attrs)),
    ]
    return array_geometry(image["s0"].spec, ancestors)


def test_a_plane_is_placed_in_a_volume(tmp_path: Path) -> None:
    step = {"type": "affine", "affine": [[0, 0, 5000], [0, 1, 2000], [1, 0, 3000]]}
    write_scene(tmp_path / "s.zarr", {"a": step}, ZYX[1:])
    image = zarrfs.open_group(tmp_path / "s.zarr", "a", mode="r+")
    image.create_array("s0", data=np.zeros((4, 5), "u1"), overwrite=True)
    frame = spatial_frame(geometry_of(tmp_path / "s.zarr"))
    assert frame.directions == ((0, 1, 0), (1, 0, 0), (0, 0, 1)), "the third one is perpendicular"
    assert frame.scale == (0.00025, 0.0005, 1)
    np.testing.assert_allclose(frame.origin, (3.008, 2.009, 5))
    lengths = np.array(frame.directions) * np.array(frame.scale)[:, None]
    found = np.array([(4, 3, 0)]) @ lengths + frame.origin
    path = write(tmp_path / "s.zarr" / "a", tmp_path / "a.nrrd")
    read = SimpleITK.ReadImage(str(path))
    assert read.GetDimension() == 3
    np.testing.assert_allclose([read.TransformIndexToPhysicalPoint((4, 3, 0))], found)


def test_axes_of_other_types_and_units_of_the_scene(tmp_path: Path) -> None:
    channel = {"name": "c", "type": "channel"}
    world = [channel, *({**axis, "unit": "nanometer"} for axis in ZYX)]
    step = {"type": "scale", "scale": [1, 1000, 1000, 1000]}
    write_scene(tmp_path / "s.zarr", {"a": step}, [channel, *ZYX], world)
    geometry = geometry_of(tmp_path / "s.zarr")
    assert geometry.affine is None
    assert [(axis.scale, axis.translation, axis.unit) for axis in geometry.axes] == [
        (1, 0, None),
        (2000, 7000, "nanometer"),
        (500, 8000, "nanometer"),
        (250, 9000, "nanometer"),
    ]


@pytest.mark.parametrize(
    "step",
    [
        {"type": "affine", "path": "m"},
        {"type": "affine", "affine": [[1, 0, 0, 0]] * 3},
        {"type": "displacements", "path": "d"},
        {"type": "translation", "translation": [1, 2]},
    ],
)
def test_an_image_that_cannot_be_placed_is_presented_alone(step: dict[str, Any], tmp_path: Path) -> None:
    write_scene(tmp_path / "s.zarr", {"a": step})
    frame = spatial_frame(geometry_of(tmp_path / "s.zarr"))
    assert frame.scale == (0.00025, 0.0005, 0.002)
    assert frame.origin == (0.009, 0.008, 0.007)


def test_an_image_without_its_scene_is_in_its_own_system(tmp_path: Path) -> None:
    write_scene(tmp_path / "s.zarr", STEPS)
    image = zarrfs.open_group(tmp_path / "s.zarr", "b")
    geometry = array_geometry(image["s0"].spec, [Ancestor("s0", image.attrs, parse(image.attrs))])
    assert geometry.affine is None
    assert spatial_frame(geometry).origin == (0.009, 0.008, 0.007)


def test_the_coordinate_system_of_an_export_is_an_option(tmp_path: Path) -> None:
    """Also with matrices that are stored in arrays, and with paths through other images."""
    steps = {"a": {"type": "affine", "path": "m"}, "b": STEPS["a"]}
    write_scene(tmp_path / "s.zarr", steps)
    scene = zarrfs.open_group(tmp_path / "s.zarr", mode="r+")
    scene.create_array("m", data=np.array(oblique()))
    image = zarrfs.open_group(tmp_path / "s.zarr", "a", mode="r+")
    ome = image.attrs["ome"]
    ome["multiscales"][0]["coordinateSystems"].append({"name": "stage", "axes": ZYX})
    ome["multiscales"][0]["coordinateTransformations"] = [
        {
            "type": "translation",
            "translation": [0, 100, 200],
            "input": {"name": "physical"},
            "output": {"name": "stage"},
        }
    ]
    image.attrs["ome"] = ome
    graph = load_graph(scene)
    assert graph.problems == ()
    systems = {
        "world": SystemReference("", "world"),
        "stage": SystemReference("a", "stage"),
        "physical": SystemReference("a", "physical"),
    }
    for name, system in systems.items():
        expected = compose(graph, SystemReference("a/s0"), system).apply(CORNERS)[:, ::-1] / 1000
        target = tmp_path / f"{name}.nrrd"
        export(str(tmp_path / "s.zarr" / "a"), str(target), coordinate_system=name)
        np.testing.assert_allclose(points_of_nrrd(target), expected, rtol=1e-6, atol=1e-9)
    with pytest.raises(
        OptionError, match=r"there is no 'nowhere' \(existing: 'physical', 'stage', 'world'\)"
    ):
        export(str(tmp_path / "s.zarr" / "a"), str(tmp_path / "n.nii"), coordinate_system="nowhere")
    assert not (tmp_path / "n.nii").exists()


def test_a_transformation_that_no_file_can_state_is_refused(tmp_path: Path) -> None:
    axes = [{"name": "t", "type": "time"}, *ZYX[1:]]
    step = {"type": "affine", "affine": [[1, 0, 0, 0], [2, 1, 0, 0], [0, 0, 1, 0]]}
    write_scene(tmp_path / "s.zarr", {"a": step}, axes, axes)
    with pytest.raises(UnsupportedError, match="spatial and other axes together"):
        export(str(tmp_path / "s.zarr" / "a"), str(tmp_path / "a.nii"), coordinate_system="world")
    export(str(tmp_path / "s.zarr" / "a"), str(tmp_path / "a.nii"))
