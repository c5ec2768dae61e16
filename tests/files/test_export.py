"""Exported files, read by NumPy and the libraries of their formats."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import nibabel
import nrrd
import numpy as np
import pytest
import SimpleITK
import tifffile
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import zarrfs
from zarrfs.cli.main import main
from zarrfs.engine.cache import default_cache
from zarrfs.errors import (
    ChunkDecodeError,
    DataError,
    LocationError,
    NodeTypeError,
    OptionError,
    StoreError,
    UnsupportedError,
)
from zarrfs.files.exporting import export
from zarrfs.files.exporting.conversion import converted
from zarrfs.files.view import PresentedArray
from zarrfs.files.views import all_views
from zarrfs.mount.tree.entries import VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.storage import MemoryStore
from zarrfs.testing import FailingStore
from zarrfs.tools import build_pyramid

VALUES = np.random.default_rng(0).integers(0, 60000, (7, 40, 50), "u2")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    source = zarrfs.create_array(MemoryStore(), data=VALUES, chunks=(3, 16, 16))
    path = tmp_path / "image.zarr"
    build_pyramid(source, path, axes="zyx", scale=[2, 0.5, 0.25], unit="micrometer", levels=2)
    return path


READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": np.load,
    ".F.npy": np.load,
    ".raw": lambda path: np.fromfile(path, "u2").reshape(VALUES.shape),
    ".tif": tifffile.imread,
    ".tiff": tifffile.imread,
    ".ome.tif": tifffile.imread,
    ".nii": lambda path: np.asarray(nibabel.load(path).dataobj).T,
    ".nii.gz": lambda path: np.asarray(nibabel.load(path).dataobj).T,
    ".nrrd": lambda path: nrrd.read(str(path), index_order="C")[0],
    ".nhdr": lambda path: nrrd.read(str(path), index_order="C")[0],
    ".mha": lambda path: SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path)),
    ".mhd": lambda path: SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path)),
    ".npz": lambda path: np.load(path)["0"],
    ".h5": lambda path: next(iter(h5py.File(path).values()))[()],
}


@pytest.mark.parametrize("suffix", READERS)
def test_the_library_of_the_format_reads_the_values(suffix: str, image: Path, tmp_path: Path) -> None:
    file = tmp_path / f"out{suffix}"
    written = export(image, file)
    assert written[0] == str(file)
    assert all(Path(name).exists() for name in written)
    np.testing.assert_array_equal(READERS[suffix](file), VALUES)


@pytest.mark.parametrize(
    "suffix", [view.suffix for view in all_views() if view.suffix not in (".json", ".h5", ".nc")]
)
def test_the_bytes_are_those_of_a_mount(suffix: str, image: Path, tmp_path: Path) -> None:
    group = zarrfs.open_group(image, mode="r+")
    if suffix == ".csv":
        group.create_array("x", data=VALUES[0])
    elif suffix == ".txt":
        group.create_array("x", data=np.array(["one", "two"], object), dtype="string")
    name = "x" if "x" in group else "0"
    entry = Tree(zarrfs.open_group(image)).lookup(f"/{name}{suffix}")
    assert isinstance(entry, VirtualFile)
    expected = bytearray(entry.content.size)
    entry.content.read_into(0, memoryview(expected))
    file = tmp_path / f"{name}{suffix}"
    export(image / name, file)
    assert file.read_bytes() == bytes(expected)


def test_a_level_is_chosen_and_keeps_its_voxel_size(image: Path, tmp_path: Path) -> None:
    level = zarrfs.open_array(image / "1")
    export(image, tmp_path / "a.nii", level=1)
    export(image / "1", tmp_path / "b.nii")
    first, second = (nibabel.load(tmp_path / name) for name in ("a.nii", "b.nii"))
    np.testing.assert_array_equal(np.asarray(first.dataobj).T, level[...])
    assert first.header.get_zooms() == second.header.get_zooms()
    assert first.header.get_zooms()[0] > 0.0002
    with pytest.raises(OptionError, match="levels 0 to"):
        export(image, tmp_path / "c.nii", level=9)


def test_equal_exports_give_equal_compressed_files(image: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        export(image, tmp_path / f"{name}.nii.gz")
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()
    export(image, tmp_path / "a.nii")
    assert gzip.decompress((tmp_path / "a.nii.gz").read_bytes()) == (tmp_path / "a.nii").read_bytes()


@pytest.mark.parametrize(
    ("shape", "dtype", "suffix", "names"),
    [
        ((40, 50), "u1", ".png", ["p.png"]),
        ((40, 50), "bool", ".png", ["p.png"]),
        ((40, 50, 3), "u1", ".png", ["p.png"]),
        ((40, 50, 4), "u1", ".png", ["p.png"]),
        ((11, 40, 50), "u2", ".png", [f"p_{number:02}.png" for number in range(11)]),
        ((2, 3, 40, 50), "u1", ".png", [f"p_{i}_{j}.png" for i in range(2) for j in range(3)]),
        ((40, 50), "u1", ".jpg", ["p.jpg"]),
        ((2, 40, 50, 3), "u1", ".JPEG", ["p_0.jpeg", "p_1.jpeg"]),
    ],
)
def test_planes_become_image_files(
    shape: tuple[int, ...], dtype: str, suffix: str, names: list[str], tmp_path: Path
) -> None:
    data = np.random.default_rng(1).integers(0, 255, shape).astype(dtype)
    array = zarrfs.create_array(MemoryStore(), data=data, chunks=tuple(min(7, length) for length in shape))
    written = export(array, tmp_path / f"p{suffix}")
    assert [Path(name).name for name in written] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    if suffix == ".png":
        planes = [np.asarray(Image.open(name)) for name in written]
        np.testing.assert_array_equal(np.stack(planes).reshape(shape), data)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("a.xyz", OptionError, "does not name a format"),
        ("noname", OptionError, "does not name a format"),
        ("a.csv", UnsupportedError, "cannot be written as .csv"),
        ("a.jpg", UnsupportedError, "expected uint8"),
        ("missing/a.npy", LocationError, "there is no directory"),
        ("folder.npy", LocationError, "is a directory"),
        ("exists.npy", LocationError, "exists"),
    ],
)
def test_wrong_files_are_refused(
    name: str, error: type[Exception], message: str, image: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "exists.npy").write_bytes(b"old")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=message):
        export(image, tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "exists.npy").read_bytes() == b"old"


def test_a_group_without_an_image_is_refused_except_as_npz(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr")
    for name in "ab":
        group.create_array(name, data=VALUES[0])
    with pytest.raises(NodeTypeError, match=r"has 2 arrays \(a, b\)"):
        export(tmp_path / "g.zarr", tmp_path / "g.npy")
    group.create_group("plate").attrs["well"] = {"images": [{"path": "0"}], "version": "0.4"}
    with pytest.raises(NodeTypeError, match="is a well, not an image; give the location of an image in it"):
        export(tmp_path / "g.zarr/plate", tmp_path / "g.npy")
    export(tmp_path / "g.zarr", tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as archive:
        assert sorted(archive.files) == ["a", "b"]
        np.testing.assert_array_equal(archive["b"], VALUES[0])


def test_a_failed_export_leaves_the_old_file(image: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    file.write_bytes(b"old")
    chunk = next(path for path in (image / "0" / "c").rglob("*") if path.is_file())
    chunk.write_bytes(b"corrupt")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ChunkDecodeError):
        export(image, file, if_exists="replace")
    assert file.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == before


def test_an_unreadable_store_is_an_error(tmp_path: Path) -> None:
    memory = MemoryStore()
    zarrfs.create_array(memory, data=VALUES, chunks=(3, 16, 16))
    failing = FailingStore(memory, lambda operation, key: StoreError("unreadable") if "c/" in key else None)
    with pytest.raises(StoreError):
        export(failing, tmp_path / "a.raw")
    assert list(tmp_path.iterdir()) == []


def test_no_thread_remains(image: Path, tmp_path: Path) -> None:
    before = threading.active_count()
    export(image, tmp_path / "a.npy")
    assert threading.active_count() <= before + 1


@pytest.mark.parametrize(("suffix", "dtype"), [(".tif", None), (".tif", "float32"), (".png", None)])
def test_an_export_with_a_memory_limit_does_not_fill_the_shared_cache(
    suffix: str, dtype: str | None, image: Path, tmp_path: Path
) -> None:
    """The shared cache may have gigabytes. The files are the same."""
    export(image, tmp_path / f"a{suffix}", dtype=dtype)
    default_cache().clear()
    export(image, tmp_path / f"b{suffix}", dtype=dtype, memory=100)
    assert default_cache().nbytes == 0
    for path in tmp_path.glob(f"a*{suffix}"):
        assert path.read_bytes() == path.with_name(path.name.replace("a", "b", 1)).read_bytes()


def test_the_command_names_the_files(image: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    result = runner.invoke(main, ["export", str(image), str(tmp_path / "a.mhd")], catch_exceptions=False)
    assert result.output == f"{tmp_path}/a.mhd and 1 more\n"
    result = runner.invoke(main, ["export", str(image), str(tmp_path / "a.mhd")])
    assert isinstance(result.exception, LocationError)
    arguments = ["export", str(image), str(tmp_path / "a.mhd"), "--if-exists", "replace"]
    assert runner.invoke(main, arguments, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize("suffix", [".tif", ".ome.tif"])
@pytest.mark.parametrize("dtype", ["u8", ">u8", "i8"])
def test_labels_of_64_bits_are_converted_if_their_values_fit(suffix: str, dtype: str, tmp_path: Path) -> None:
    labels = np.arange(2 * 30 * 40, dtype=dtype).reshape(2, 30, 40) * 1000
    group = zarrfs.create_group(tmp_path / "a.zarr")
    array = group.create_array("cells", data=labels, chunks=(1, 16, 16))
    file = tmp_path / f"a{suffix}"
    advised = "uint32" if "u" in dtype else "int32"
    with pytest.raises(UnsupportedError, match=f"dtype='{advised}' converts the values, if they fit"):
        export(array, file)
    export(array, file, dtype=advised)
    np.testing.assert_array_equal(tifffile.imread(file), labels)
    assert tifffile.imread(file).dtype == advised
    array[1, 2, 3] = 1 << 40
    with pytest.raises(DataError, match="1099511627776 cannot be written as"):
        export(array, file, dtype=advised, if_exists="replace")
    np.testing.assert_array_equal(tifffile.imread(file), labels)


def conversions() -> st.SearchStrategy[tuple[Any, str]]:
    kinds = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8"]
    values = st.sampled_from(kinds).flatmap(lambda kind: arrays(np.dtype(kind), (3, 4)))
    return st.tuples(values, st.sampled_from(kinds))


@settings(max_examples=150, deadline=None)
@given(conversions())
def test_converted_values_are_equal_or_refused(case: tuple[Any, str]) -> None:
    values, dtype = case
    presented = PresentedArray(zarrfs.create_array(MemoryStore(), data=values, chunks=(2, 3)))
    kind = np.dtype(dtype).kind
    expected = [[as_python(value, kind) for value in row] for row in values.tolist()]
    try:
        result = converted(presented, dtype).array[...]
    except DataError:
        assert any(value is None or not is_exact(value, np.dtype(dtype)) for row in expected for value in row)
        return
    assert result.dtype == dtype
    for row, wanted in zip(result.tolist(), expected, strict=True):
        for value, original in zip(row, wanted, strict=True):
            if values.dtype.kind in "fc" and kind in "fc":
                rounded = np.dtype(dtype).type(original)
                assert value == rounded or (np.isnan(value) and np.isnan(rounded))
            else:
                assert value == original


def as_python(value: Any, kind: str) -> Any:
    """Return a complex number as its real part, for types that are not complex. None if that loses something."""
    if not isinstance(value, complex) or kind == "c":
        return value
    return value.real if value.imag == 0 else None


def is_exact(value: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether a data type has a number: compared as Python numbers, which are exact."""
    if dtype.kind in "fc":
        with np.errstate(over="ignore"):
            stored = (
                complex(dtype.type(value)) if isinstance(value, complex) else float(dtype.type(value).real)
            )
        return (
            bool(stored == value) if isinstance(value, int) else np.isfinite(stored) or not np.isfinite(value)
        )
    if isinstance(value, complex):
        value = value.real
    if isinstance(value, float) and (not np.isfinite(value) or value != int(value)):
        return False
    return value in (0, 1) if dtype.kind == "b" else np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
