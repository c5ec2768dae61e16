"""Image files that are copied into a writable mount, and the elements of a .raw file with a JSON file."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse
from tests.mount.test_operations import errno_of
from tests.mount.writing.layouts import operations_of, read_file, write_file
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.mount.writing import image_file
from zarrfs.mount.writing.operations import WritableOperations

DATA = np.arange(12 * 20 * 30, dtype="u2").reshape(12, 20, 30)
SCALE, ORIGIN = (2.0, 0.75, 0.5), (3.0, -2.0, 1.0)


def _write_nii(path: str) -> None:
    nibabel: Any = pytest.importorskip("nibabel")
    affine = np.diag([*SCALE[::-1], 1.0])
    affine[:3, 3] = ORIGIN[::-1]
    image = nibabel.Nifti1Image(DATA.T, affine)
    image.header.set_xyzt_units("mm", "sec")
    nibabel.save(image, path)


def _write_itk(path: str, is_compressed: bool = False) -> None:
    sitk: Any = pytest.importorskip("SimpleITK")
    image = sitk.GetImageFromArray(DATA)
    image.SetSpacing(SCALE[::-1])
    image.SetOrigin(ORIGIN[::-1])
    sitk.WriteImage(image, path, is_compressed)


def _write_tif(path: str, **options: Any) -> None:
    tifffile: Any = pytest.importorskip("tifffile")
    tifffile.imwrite(path, DATA, **options)


IMAGEJ: dict[str, Any] = {
    "imagej": True,
    "resolution": (2, 1 / 0.75),
    "metadata": {"axes": "ZYX", "spacing": 2.0, "unit": "um"},
}
OME = {f"PhysicalSize{name}": size for name, size in zip("ZYX", SCALE, strict=True)}

WRITERS: dict[str, tuple[Any, str | None, bool]] = {
    "a.nii": (_write_nii, "millimeter", True),
    "b.nrrd": (_write_itk, None, True),
    "c.nrrd": (lambda path: _write_itk(path, is_compressed=True), None, True),
    "d.mha": (_write_itk, "millimeter", True),
    "e.mha": (lambda path: _write_itk(path, is_compressed=True), "millimeter", True),
    "f.tif": (lambda path: _write_tif(path, **IMAGEJ), "micrometer", False),
    "g.ome.tif": (lambda path: _write_tif(path, metadata={"axes": "ZYX", **OME}), "micrometer", False),
    "h.ome.tif": (
        lambda path: _write_tif(path, compression="zlib", tile=(16, 16), metadata={"axes": "ZYX", **OME}),
        "micrometer",
        False,
    ),
}
"""The function that writes each file, the unit in it, and whether it contains the position."""


def stem_and_suffix(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.partition(".")
    return stem, dot + suffix


@pytest.fixture
def operations() -> Any:
    store = MemoryStore()
    zarrfs.create_group(store)
    made = operations_of(store)
    yield made
    made.destroy("/")


def root_of(operations: WritableOperations) -> zarrfs.Group:
    return zarrfs.open_group(operations._tree.root.store, mode="r")


@pytest.mark.parametrize("name", WRITERS)
def test_an_image_file_becomes_an_array_with_its_geometry(
    name: str, operations: WritableOperations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_file, "MAX_SLAB_NBYTES", 5000)
    write, unit, has_position = WRITERS[name]
    write(str(tmp_path / name))
    content = (tmp_path / name).read_bytes()
    stem, suffix = stem_and_suffix(name)
    operations.release(f"/{name}", operations.create(f"/{name}", 0o644))
    operations.setxattr(f"/{name}", "user.zarr.chunks", b"[5, 7, 11]", 0)
    handle = operations.open(f"/{name}", os.O_WRONLY)
    operations.write(f"/{name}", content, 0, handle)
    operations.flush(f"/{name}", handle)
    operations.release(f"/{name}", handle)
    array = root_of(operations)[stem]
    assert isinstance(array, zarrfs.Array)
    assert (array.dtype, array.chunks, array.dimension_names) == (np.dtype("u2"), (5, 7, 11), ("z", "y", "x"))
    np.testing.assert_array_equal(array[...], DATA)
    transform = array.attrs["transform"]
    np.testing.assert_allclose(transform["scale"], SCALE)
    np.testing.assert_allclose(transform["translate"], ORIGIN if has_position else (0, 0, 0))
    assert transform["units"] == [unit or ""] * 3
    # The file has the same name as before, and its reader finds the same values.
    (tmp_path / f"again{suffix}").write_bytes(read_file(operations, f"/{name}"))
    check_equal_images(tmp_path / name, tmp_path / f"again{suffix}", has_position)


DIRECTIONS = {
    "flipped": [[-1, 0, 0], [0, 1, 0], [0, 0, -1]],
    "exchanged": [[0, 0, 1], [-1, 0, 0], [0, -1, 0]],
    "oblique": [[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]],
}


@pytest.mark.parametrize("kind", DIRECTIONS)
@pytest.mark.parametrize("suffix", [".nii", ".nrrd", ".mha"])
def test_an_image_file_keeps_its_orientation(
    suffix: str, kind: str, operations: WritableOperations, tmp_path: Path
) -> None:
    sitk: Any = pytest.importorskip("SimpleITK")
    pytest.importorskip("nibabel" if suffix == ".nii" else "nrrd")
    image = sitk.GetImageFromArray(DATA)
    image.SetSpacing(SCALE[::-1])
    image.SetOrigin(ORIGIN[::-1])
    image.SetDirection(np.ravel(DIRECTIONS[kind]).astype(float).tolist())
    name = f"a{suffix}"
    sitk.WriteImage(image, str(tmp_path / name))
    write_file(operations, f"/{name}", (tmp_path / name).read_bytes())
    attributes = root_of(operations)["a"].attrs
    assert ("anatomical_directions" in attributes) == (kind == "oblique")
    for other in (".nii", ".nrrd", ".mha"):
        (tmp_path / f"again{other}").write_bytes(read_file(operations, f"/a{other}"))
        check_equal_images(tmp_path / name, tmp_path / f"again{other}", True)


def check_equal_images(first: Path, second: Path, has_position: bool) -> None:
    if first.name.endswith(".tif"):
        tifffile: Any = pytest.importorskip("tifffile")
        with tifffile.TiffFile(second) as found, tifffile.TiffFile(first) as expected:
            np.testing.assert_array_equal(found.asarray(), expected.asarray())
            assert found.series[0].axes == expected.series[0].axes
    else:
        sitk: Any = pytest.importorskip("SimpleITK")
        one, other = sitk.ReadImage(str(first)), sitk.ReadImage(str(second))
        np.testing.assert_array_equal(sitk.GetArrayFromImage(one), sitk.GetArrayFromImage(other))
        np.testing.assert_allclose(one.GetSpacing(), other.GetSpacing())
        np.testing.assert_allclose(one.GetOrigin(), other.GetOrigin(), atol=1e-4)
        np.testing.assert_allclose(one.GetDirection(), other.GetDirection(), atol=1e-6)


@pytest.mark.parametrize("name", ["c.nrrd", "e.mha"])
def test_an_open_file_of_other_bytes_than_those_of_the_array_is_not_the_array(
    name: str, operations: WritableOperations, tmp_path: Path
) -> None:
    """A compressed file is stored when it is flushed. Its open handle still shows what was written."""
    WRITERS[name][0](str(tmp_path / name))
    content = (tmp_path / name).read_bytes()
    stem, _ = stem_and_suffix(name)
    assert len(content) < DATA.nbytes
    handle = operations.create(f"/{name}", 0o644)
    operations.write(f"/{name}", content, 0, handle)
    operations.flush(f"/{name}", handle)
    np.testing.assert_array_equal(root_of(operations)[stem][...], DATA)
    assert bytes(operations.read(f"/{name}", len(content) + 1, 0, handle)) == content
    operations.release(f"/{name}", handle)
    np.testing.assert_array_equal(root_of(operations)[stem][...], DATA)


@pytest.mark.parametrize("name", WRITERS)
def test_an_incomplete_or_damaged_image_file_is_an_error_and_is_kept(
    name: str, operations: WritableOperations, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    WRITERS[name][0](str(tmp_path / name))
    content = (tmp_path / name).read_bytes()
    for bad in (content[: len(content) * 3 // 4], content[: len(content) // 2], content[:100], b"text" * 99):
        assert errno_of(write_file, operations, f"/{name}", bad) == errno.EINVAL
        assert list(root_of(operations)) == []
        assert read_file(operations, f"/{name}") == bad
        operations.unlink(f"/{name}")
    assert f"/{name}: the file cannot become an array" in caplog.text
    assert "/tmp" not in "".join(record.getMessage() for record in caplog.records)
    # The file of another format is not accepted under this name either.
    assert errno_of(write_file, operations, f"/{name}", np.lib.format.magic(1, 0) + content) == errno.EINVAL
    write_file(operations, f"/{name}", content)
    assert list(root_of(operations)) == [stem_and_suffix(name)[0]]


def test_an_image_file_replaces_an_array_and_its_geometry(
    operations: WritableOperations, tmp_path: Path
) -> None:
    write_file(operations, "/scan.json", b'{"shape": [2, 3, 4], "dtype": "u2", "attributes": {"a": 1}}')
    for name in ("d.mha", "f.tif"):
        WRITERS[name][0](str(tmp_path / name))
        # A copy program writes a temporary file and renames it.
        write_file(operations, "/.temporary", (tmp_path / name).read_bytes())
        operations.rename("/.temporary", "/scan" + stem_and_suffix(name)[1])
        array = root_of(operations)["scan"]
        assert isinstance(array, zarrfs.Array)
        np.testing.assert_array_equal(array[...], DATA)
        assert array.attrs["a"] == 1
        assert array.attrs["transform"]["units"] == [WRITERS[name][1]] * 3


def test_a_file_with_several_images_is_refused(
    operations: WritableOperations, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tifffile: Any = pytest.importorskip("tifffile")
    with tifffile.TiffWriter(tmp_path / "two.tif") as writer:
        writer.write(DATA, metadata={"axes": "ZYX"})
        writer.write(DATA[0, :5], metadata={"axes": "YX"})
    assert errno_of(write_file, operations, "/two.tif", (tmp_path / "two.tif").read_bytes()) == errno.EINVAL
    assert "2 images" in caplog.text
    operations.unlink("/two.tif")


def test_elements_are_copied_with_the_json_file_of_another_mount_in_any_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    structured = np.array([(1, 2.0), (4, 5.0)], [("a", "<i2"), ("b", "<f8")])
    for options in (
        {
            "data": DATA,
            "chunks": (5, 7, 9),
            "shards": (10, 14, 18),
            "fill_value": 7,
            "attributes": {"a": [1]},
        },
        {
            "data": DATA.astype("f4"),
            "chunks": (4, 4, 4),
            "fill_value": np.nan,
            "dimension_names": ["z", "y", "x"],
        },
        {"data": structured},
    ):
        source, targets = MemoryStore(), MemoryStore()
        zarrfs.create_group(source).create_array("img", **options)  # type: ignore[arg-type]
        reader = operations_of(source)
        files = {suffix: read_file(reader, f"/img{suffix}") for suffix in (".json", ".raw")}
        reader.destroy("/")
        zarrfs.create_group(targets)
        writer = operations_of(targets)
        write_file(writer, "/first.json", files[".json"])
        handle = writer.open("/first.raw", os.O_WRONLY | os.O_TRUNC)
        writer.write("/first.raw", files[".raw"], 0, handle)
        writer.flush("/first.raw", handle)
        writer.release("/first.raw", handle)
        # The elements alone have no shape. They are kept until the JSON file arrives.
        assert errno_of(write_file, writer, "/second.raw", files[".raw"]) == errno.EINVAL
        write_file(writer, "/second.json", files[".json"])
        writer.destroy("/")
        old = zarrfs.open_array(source, "img")
        for name in ("first", "second"):
            new = zarrfs.open_array(targets, name)
            np.testing.assert_array_equal(new[...], old[...])
            assert (new.dtype, new.chunks, new.shards) == (old.dtype, old.chunks, old.shards)
            assert new.dimension_names == old.dimension_names
            assert dict(new.attrs) == dict(old.attrs)
            np.testing.assert_equal(new.fill_value, old.fill_value)


@pytest.mark.parametrize("name", ["scan.nii.gz", "scan.tiff", "scan.png"])
def test_a_name_that_no_file_of_a_mount_has_is_refused(
    name: str, operations: WritableOperations, caplog: pytest.LogCaptureFixture
) -> None:
    assert errno_of(operations.create, f"/{name}", 0o644) == errno.EOPNOTSUPP
    assert "zarrfs import" in caplog.text


@needs_fuse
def test_programs_write_images_to_a_mount(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "store")
    with mounted(tmp_path / "store", tmp_path / "mnt", "--rw") as mnt:
        for name, (write, _, _) in WRITERS.items():
            write(str(mnt / name))
            stem = stem_and_suffix(name)[0]
            np.testing.assert_array_equal(np.load(mnt / f"{stem}.npy"), DATA)
            assert json.loads((mnt / f"{stem}.json").read_text())["shape"] == list(DATA.shape)
