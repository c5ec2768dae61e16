"""Directories with one TIFF file for each plane, read with tifffile."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile

import zarrfs
from tests.files.views.presented import NUMBERS, axes_of, make_array, sample
from tests.mount.mounted import mounted, needs_fuse
from tests.mount.test_tree import list_names
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.tiff.planes_view import PlaneDirectory, PlanesView
from zarrfs.files.view import PresentedArray
from zarrfs.mount.tree.entries import Directory, VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore


def planes(array: zarrfs.Array, **options: Any) -> PlaneDirectory:
    presented = PresentedArray(array, "img", **options)
    view = PlanesView()
    assert view.unsupported_reason(presented) is None
    return view.directory(presented)


def read(files: PlaneDirectory, name: str) -> np.ndarray[Any, Any]:
    content = files.find(name)
    assert content is not None
    data = content.read(0, content.size)
    assert len(data) == content.size
    return tifffile.imread(io.BytesIO(data))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_each_plane_is_a_tiff_file(dtype: str, order: str) -> None:
    data = sample(dtype, (2, 11, 4, 5))
    files = planes(make_array(data, order=order), geometry=axes_of("c", "z", "y", "x"))
    names = files.names()
    assert names == [f"c{c}_z{z:02}.tif" for c in range(2) for z in range(11)]
    for name, plane in zip(names, data.reshape(22, 4, 5), strict=True):
        assert np.array_equal(read(files, name), plane)


@pytest.mark.parametrize("axes", ["yxc", "xyz", "tyzx", "yx"])
def test_planes_of_other_axis_orders(axes: str) -> None:
    lengths = {"t": 2, "z": 3, "c": 4, "y": 5, "x": 6}
    data = sample("<u2", tuple(lengths[axis] for axis in axes))
    files = planes(make_array(data), geometry=axes_of(*axes))
    outer = [axis for axis in axes if axis not in "xy"]
    stacked = data.transpose([axes.index(axis) for axis in (*outer, "y", "x")]).reshape(-1, 5, 6)
    assert np.array_equal([read(files, name) for name in files.names()], stacked)


def test_names_of_dimensions() -> None:
    data = sample("<u2", (2, 2, 2, 2, 3, 4))
    array = zarrfs.create_array(
        MemoryStore(), "img", data=data, dimension_names=["angle", "a_b", "angle2", None, "y", "x"]
    )
    names = planes(array).names()
    assert names[0] == "angle0_d1n0_d2n0_d3n0.tif"
    assert len(names) == len(set(names)) == 16
    assert names == sorted(names)


def test_small_ranks() -> None:
    for shape in ((), (4,), (3, 4)):
        data = sample("<u2", shape)
        files = planes(make_array(data))
        assert files.names() == ["plane.tif"]
        assert np.array_equal(np.atleast_2d(read(files, "plane.tif")), np.atleast_2d(data))


def test_only_canonical_names_exist() -> None:
    files = planes(make_array(sample("<u2", (11, 3, 4))), geometry=axes_of("z", "y", "x"))
    assert files.find("z10.tif") is not None
    for name in (
        "z11.tif",
        "z1.tif",
        "z010.tif",
        "z-1.tif",
        "z10",
        "z10.tiff",
        "",
        "plane.tif",
        "z１0.tif",
        "z10.tif\n",
    ):
        assert files.find(name) is None, name


def test_resolution() -> None:
    array = make_array(sample("<u2", (2, 3, 4)))
    files = planes(array, geometry=axes_of("z", "y", "x", y=(0.5, "um"), x=(0.25, "um")))
    content = files.find("z1.tif")
    assert content is not None
    with tifffile.TiffFile(io.BytesIO(content.read(0, content.size))) as file:
        assert file.pages.first.tags["XResolution"].value == (40000, 1)
        assert file.pages.first.tags["YResolution"].value == (20000, 1)
    with PIL.Image.open(io.BytesIO(content.read(0, content.size))) as image:
        assert image.size == (4, 3)


def test_a_file_decodes_only_the_chunks_of_its_plane() -> None:
    store = CountingStore(MemoryStore())
    array = zarrfs.create_array(
        store, "img", shape=(200, 100, 64, 64), chunks=(1, 1, 64, 64), dtype="u2", fill_value=3, zarr_format=2
    )
    store.reset()
    files = planes(array, geometry=axes_of("t", "z", "y", "x"))
    assert len(files.names()) == 20_000
    assert not store.keys
    assert read(files, "t123_z45.tif").tolist() == np.full((64, 64), 3).tolist()
    assert set(store.keys) == {"img/123.45.0.0"}


def test_absent_planes() -> None:
    view = PlanesView()
    assert "no elements" in str(view.unsupported_reason(PresentedArray(make_array(np.zeros((0, 3), "u1")))))
    assert "TIFF has no data type" in str(
        view.unsupported_reason(PresentedArray(make_array(np.zeros(3, "S3"))))
    )
    many = zarrfs.create_array(MemoryStore(), "img", shape=(1 << 21, 2, 2), chunks=(1, 2, 2), dtype="u1")
    assert "maximum number of files" in str(view.unsupported_reason(PresentedArray(many)))


def test_the_directory_in_the_tree() -> None:
    group = zarrfs.create_group(MemoryStore())
    data = sample("<u2", (3, 4, 5))
    group.create_array("a/img", data=data, chunks=(1, 4, 5))
    group.create_group("a/taken.planes")
    group.create_array("a/taken", data=data)
    tree = Tree(zarrfs.open_group(group.store), views=("all",))
    assert list_names(tree, "/a/img.planes") == ["z0.tif", "z1.tif", "z2.tif"]
    file = tree.lookup("/a/img.planes/z1.tif")
    assert isinstance(file, VirtualFile)
    assert np.array_equal(tifffile.imread(io.BytesIO(file.content.read(0, file.content.size))), data[1])
    assert "img.planes" in list_names(tree, "/a")
    assert "img.planes" not in list_names(Tree(group), "/a")
    for path in ("/a/img.planes/z3.tif", "/a/img.planes/z1.tif/x", "/a/none.planes/z1.tif", "/a/none.planes"):
        assert tree.lookup(path) is None
    assert isinstance(tree.lookup("/a/taken.planes"), Directory)
    assert tree.lookup("/a/taken.planes/z1.tif") is None


def test_an_array_as_the_root() -> None:
    data = sample("<u2", (3, 4, 5))
    tree = Tree(zarrfs.create_array(MemoryStore(), data=data), "img")
    file = tree.lookup("/img.planes/z2.tif")
    assert isinstance(file, VirtualFile)
    assert file.content.read(file.content.size - 40, 40) == data[2].tobytes()
    assert tree.lookup("/other.planes/z2.tif") is None


@needs_fuse
def test_a_mount(tmp_path: Path) -> None:
    data = sample("<u2", (300, 10, 8, 8))
    zarrfs.create_array(tmp_path / "s.zarr", "img", data=data, chunks=(300, 1, 8, 8))
    with mounted(tmp_path / "s.zarr", tmp_path / "mnt") as mount:
        directory = mount / "img.planes"
        names = sorted(path.name for path in directory.iterdir())
        assert len(names) == 3000
        values = tifffile.imread([directory / name for name in names[990:1010]])
        assert np.array_equal(values, data.reshape(3000, 8, 8)[990:1010])
        sizes = {(directory / name).stat().st_size for name in names[:50]}
        assert len(sizes) == 1
        assert not (directory / "z000.tif").exists()
