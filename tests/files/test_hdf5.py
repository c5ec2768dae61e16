"""Conversion of HDF5 files to Zarr and vice versa. h5py writes and reads the HDF5 files."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.special_files import SPECIAL_KINDS, make_special_file
from zarrfs.cli.main import main
from zarrfs.errors import IncompleteCopyError, NodeExistsError, StoreError
from zarrfs.files.hdf5.dimensions import NO_VARIABLE
from zarrfs.files.hdf5.output import HDF5Output
from zarrfs.files.importing import import_files
from zarrfs.tools import from_hdf5, to_hdf5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as output:
        output.attrs["title"] = "a run"
        output.attrs["sizes"] = np.array([1, 2, 3])
        group = output.create_group("g", track_order=True)
        group.attrs["bytes"] = np.bytes_(b"abc")
        cube = group.create_dataset(
            "cube",
            data=np.arange(600, dtype="u2").reshape(10, 6, 10),
            chunks=(4, 3, 10),
            compression="gzip",
            fillvalue=9,
        )
        for number, label in enumerate("zyx"):
            cube.dims[number].label = label
        cube.attrs["unit"] = "K"
        output.create_dataset("whole", data=np.linspace(0, 1, 7))
        output.create_dataset("scalar", data=3.5)
        output.create_dataset("flags", data=np.array([True, False]))
        output.create_dataset("words", data=["a", "größe", ""], dtype=h5py.string_dtype())
        output.create_dataset("fixed", data=np.array([b"ab", b"c"], "S2"))
        output.create_dataset("records", data=np.array([(1, 2.5)], [("i", "<i4"), ("f", "<f8")]))
        output.create_dataset("empty", shape=(0, 3), dtype="f4")
        time = output.create_dataset("time", data=np.arange(3))
        time.make_scale("time")
        series = output.create_dataset("series", data=np.arange(3.0))
        series.dims[0].attach_scale(time)
        output.create_dataset("refs", data=[cube.ref], dtype=h5py.ref_dtype)
        output["dangling"] = h5py.SoftLink("/nowhere")
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_file_converts_to_a_group(zarr_format: int, file: Path, tmp_path: Path) -> None:
    lines = from_hdf5(file, tmp_path / "t.zarr", zarr_format=zarr_format, skip_broken=True)
    group = zarrfs.open_group(tmp_path / "t.zarr")
    assert dict(group.attrs) == {"title": "a run", "sizes": [1, 2, 3]}
    assert group["g"].attrs["bytes"] == "abc"
    cube: Any = group["g/cube"]
    with h5py.File(file) as source:
        assert np.array_equal(cube[...], source["g/cube"][...])
        for name in ("whole", "scalar", "flags", "fixed", "records", "empty", "series"):
            assert np.array_equal(group[name][...], source[name][...]), name
            assert group[name].dtype == source[name].dtype
    assert cube.chunks == (4, 3, 10)
    # xarray would take the fill value of format 2 for a missing value, which the file does not state.
    assert cube.fill_value == (None if zarr_format == 2 else 9)
    assert cube.attrs["unit"] == "K"
    assert cube.dimension_names == ("z", "y", "x")
    assert group["series"].dimension_names == ("time",)
    assert group["words"][...].tolist() == ["a", "größe", ""]
    assert "refs" not in group
    assert any(line.startswith("refs: skipped: ") for line in lines)
    assert list(lines.skipped) == ["refs"]
    assert "dangling: link to /nowhere, which does not exist" in lines


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_takes_only_the_missing_value_of_the_file_for_missing(
    zarr_format: int, tmp_path: Path
) -> None:
    """The arrays by their fill value in HDF5 and their attribute _FillValue."""
    cases: dict[str, tuple[Any, Any]] = {
        "neither": (None, None),
        "fill": (7, None),
        "missing": (None, 5),
        "equal": (7, 7),
        "different": (7, 5),
    }
    with h5py.File(tmp_path / "a.h5", "w") as output:
        output.create_dataset("x", data=np.arange(4, dtype="i4")).make_scale("x")
        for name, (fill, missing) in cases.items():
            for dtype in ("i4", "f8"):
                # The last element is in a chunk that is not stored.
                dataset = output.create_dataset(f"{name}_{dtype}", (4,), dtype, chunks=(3,), fillvalue=fill)
                dataset[:3] = [0, 5, 7]
                dataset.dims[0].attach_scale(output["x"])
                if missing is not None:
                    dataset.attrs["_FillValue"] = np.array([missing], dtype)
    from_hdf5(tmp_path / "a.h5", tmp_path / "a.zarr", zarr_format=zarr_format)
    expected = xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf")
    actual = xarray.open_dataset(tmp_path / "a.zarr", engine="zarrfs")
    with expected, actual:
        xarray.testing.assert_identical(actual, expected)
        assert {name: item.dtype for name, item in actual.items()} == {
            name: item.dtype for name, item in expected.items()
        }


def test_conversion_to_zarr_and_back_keeps_the_data(file: Path, tmp_path: Path) -> None:
    from_hdf5(file, tmp_path / "t.zarr", shards="auto", skip_broken=True)
    to_hdf5(tmp_path / "t.zarr", tmp_path / "back.h5")
    with h5py.File(file) as first, h5py.File(tmp_path / "back.h5") as second:
        for name in ("g/cube", "whole", "scalar", "flags", "fixed", "records", "empty", "series", "words"):
            assert np.array_equal(first[name][()], second[name][()]), name
        assert [dimension.label for dimension in second["g/cube"].dims] == ["z", "y", "x"]
        assert second["g/cube"].attrs["unit"] == "K"
        assert second["g/cube"].fillvalue == 9
        assert second.attrs["sizes"].tolist() == [1, 2, 3]


def test_a_single_array_becomes_a_dataset(tmp_path: Path) -> None:
    array = zarrfs.create_array(
        tmp_path / "a.zarr", data=np.arange(12).reshape(3, 4), attributes={"unit": "K"}
    )
    assert to_hdf5(array, tmp_path / "a.h5") == ["data: 3 x 4 int64"]
    with h5py.File(tmp_path / "a.h5") as file:
        assert list(file) == ["data"]
        assert not file.attrs
        assert file["data"].attrs["unit"] == "K"
        assert np.array_equal(file["data"], array)
    result = CliRunner().invoke(main, ["copy", str(tmp_path / "a.zarr"), str(tmp_path / "b.h5")])
    assert result.exit_code == 0, result.output
    from_hdf5(tmp_path / "b.h5", tmp_path / "b.zarr")
    assert np.array_equal(zarrfs.open_array(tmp_path / "b.zarr", "data"), array)


def test_existing_targets_and_invalid_files_are_errors(file: Path, tmp_path: Path) -> None:
    from_hdf5(file, tmp_path / "t.zarr", skip_broken=True)
    with pytest.raises(NodeExistsError):
        from_hdf5(file, tmp_path / "t.zarr", skip_broken=True)
    with pytest.raises(NodeExistsError):
        to_hdf5(tmp_path / "t.zarr", file)
    (tmp_path / "broken.h5").write_bytes(b"nothing")
    with pytest.raises(StoreError, match="cannot be opened as HDF5"):
        from_hdf5(tmp_path / "broken.h5", tmp_path / "u.zarr")
    assert not (tmp_path / "u.zarr").exists()


def test_a_failed_copy_leaves_no_file(tmp_path: Path) -> None:
    array = zarrfs.create_group(tmp_path / "b.zarr").create_array("a", data=np.arange(40), chunks=(10,))
    chunk = tmp_path / "b.zarr" / "a" / "c" / "2"
    chunk.write_bytes(chunk.read_bytes()[:5])
    assert array.nchunks == 4
    with pytest.raises(zarrfs.ChunkDecodeError):
        to_hdf5(tmp_path / "b.zarr", tmp_path / "b.h5")
    assert [f.name for f in tmp_path.iterdir()] == ["b.zarr"]


def test_the_copy_command_converts_both_ways(file: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["copy", str(file), str(tmp_path / "c.zarr"), "--skip-broken"])
    assert result.exit_code == 3, result.output
    assert "skipped: refs: " in result.output
    assert "g/cube: 10 x 6 x 10 uint16" in result.output
    result = CliRunner().invoke(main, ["copy", str(tmp_path / "c.zarr"), str(tmp_path / "c.h5")])
    assert result.exit_code == 0, result.output
    with h5py.File(tmp_path / "c.h5") as back:
        assert back["whole"].shape == (7,)


# -- hostile and unusual files ---------------------------------------------------------------------------------

DEPTH = 16


def test_each_object_is_copied_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        group = file.create_group("a")
        group["up"] = file["/"]
        group["again"] = group
        group.create_dataset("x", data=np.arange(3))
        file["b"] = group["x"]
        file["soft"] = h5py.SoftLink("/a/x")
    report = from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr")
    assert sorted(report) == [
        "a/again: another name of a",
        "a/up: another name of /",
        "a/x: 3 int64",
        "a: group",
        "b: another name of a/x",
        "soft: link to /a/x",
    ]
    assert [path for path, _ in zarrfs.open_group(tmp_path / "t.zarr").walk()] == ["a", "a/x"]


def test_groups_linked_twice_at_each_level_are_copied_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        group = file
        for _ in range(DEPTH):
            child = group.create_group("left")
            group["right"] = child
            group = child
    report = from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr")
    assert len(report) == 2 * DEPTH
    assert len(list(zarrfs.open_group(tmp_path / "t.zarr").walk())) == DEPTH


HUGE = (10**9, 10**9)


def test_chunks_that_are_not_stored_are_not_copied(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        empty = file.create_dataset("empty", HUGE, "u1", chunks=(1, 1), fillvalue=7)
        assert empty.id.get_num_chunks() == 0
        part = file.create_dataset("part", HUGE, "u1", chunks=(1, 1))
        part[10**8, 5] = 3
        part[4, 10**8] = 4
    from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr", compressors=None)
    group = zarrfs.open_group(tmp_path / "t.zarr")
    assert group["empty"][5, 5] == 7
    assert (group["part"][10**8, 5], group["part"][4, 10**8], group["part"][4, 4]) == (3, 4, 0)
    to_hdf5(tmp_path / "t.zarr", tmp_path / "back.h5")
    with h5py.File(tmp_path / "back.h5") as file:
        assert file["empty"].id.get_num_chunks() == 0
        assert file["part"][10**8, 5] == 3
        assert file["part"].shape == HUGE


def test_a_dataset_with_too_many_missing_chunks_to_write_is_skipped(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("a", HUGE, "u1", chunks=(1, 1), fillvalue=7)
        file.create_dataset("b", data=np.arange(3))
    with pytest.raises(IncompleteCopyError, match=r"1 member cannot be copied: a \(.*blocks"):
        from_hdf5(tmp_path / "s.h5", tmp_path / "t.n5", zarr_format="n5")
    assert list(zarrfs.open_group(tmp_path / "t.n5")) == ["b"]


def test_an_unsupported_fill_value_is_stored_explicitly(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("a", (20,), "u2", chunks=(5,), fillvalue=7)
    from_hdf5(tmp_path / "s.h5", tmp_path / "t.n5", zarr_format="n5")
    assert zarrfs.open_array(tmp_path / "t.n5", "a")[...].tolist() == [7] * 20


@pytest.mark.parametrize("name", ["...", "__reserved", "zarr.json", "a\\b"])
def test_an_invalid_name_does_not_affect_other_objects(name: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_group(name).create_dataset("x", data=np.arange(3))
        file.create_dataset("z", data=np.arange(4))
    with pytest.raises(IncompleteCopyError, match="skip_broken=True") as caught:
        from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr")
    assert f"{name} (" in str(caught.value)
    report = from_hdf5(tmp_path / "s.h5", tmp_path / "u.zarr", skip_broken=True)
    assert list(report.skipped) == [name]
    for path in ("t.zarr", "u.zarr"):
        group = zarrfs.open_group(tmp_path / path)
        assert list(group) == ["z"]
        assert group["z"][...].tolist() == [0, 1, 2, 3]


def test_a_corrupt_chunk_affects_only_its_dataset(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        broken = file.create_dataset("a", data=np.arange(100), chunks=(50,), compression="gzip")
        file.create_dataset("b", data=np.arange(100), chunks=(50,), compression="gzip")
        chunk_info = broken.id.get_chunk_info(0)
    with (tmp_path / "s.h5").open("r+b") as raw:
        raw.seek(chunk_info.byte_offset)
        raw.write(b"\xff" * chunk_info.size)
    report = from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr", skip_broken=True)
    assert list(report.skipped) == ["a"]
    assert list(zarrfs.open_group(tmp_path / "t.zarr")) == ["b"]


def test_named_types_and_unsupported_attributes_are_reported(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["type"] = np.dtype("f8")
        dataset = file.create_dataset("a", data=np.arange(3))
        dataset.attrs["where"] = dataset.ref
        dataset.attrs["unit"] = "m"
    report = from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr", skip_broken=True)
    assert list(report.skipped) == ["type"]
    assert "a: attribute 'where' skipped: its data type has no JSON representation" in report
    assert dict(zarrfs.open_array(tmp_path / "t.zarr", "a").attrs) == {"unit": "m"}


def test_other_files_are_read_only_with_allow_external(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.create_dataset("secret", data=np.arange(5))
    (tmp_path / "raw.bin").write_bytes(np.arange(5, dtype="<i4").tobytes())
    layout = h5py.VirtualLayout((5,), "i8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "secret", (5,))
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["link"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/secret")
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (5,), "<i4", external=[(str(tmp_path / "raw.bin"), 0, 20)])
    report = from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr", skip_broken=True)
    assert sorted(report.skipped) == ["external", "link", "virtual"]
    assert all("allow_external=True" in reason for reason in report.skipped.values())
    assert list(zarrfs.open_group(tmp_path / "t.zarr")) == []
    from_hdf5(tmp_path / "s.h5", tmp_path / "u.zarr", allow_external=True)
    group = zarrfs.open_group(tmp_path / "u.zarr")
    assert {name: array[...].tolist() for name, array in group.arrays()} == {
        name: [0, 1, 2, 3, 4] for name in ("external", "link", "virtual")
    }


def test_a_zip_file_is_complete_after_conversion(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("a", data=np.arange(3))
    from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr.zip")
    assert "a/zarr.json" in zipfile.ZipFile(tmp_path / "t.zarr.zip").namelist()


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_a_source_that_is_not_a_regular_file_is_rejected(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    with pytest.raises(StoreError, match="is not a regular file"):
        from_hdf5(path, tmp_path / "t.zarr")


COPY_WITH_FILE_SIZE_LIMIT = """
import resource, sys
import numpy as np
import zarrfs
from zarrfs.cli.main import run

limit = int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv = ["zarrfs", "copy", sys.argv[1], sys.argv[2]]
run()
"""


def create_random_hierarchy(path: Path) -> None:
    group = zarrfs.create_group(path)
    for name in "abc":
        data = np.random.default_rng(0).integers(0, 2**16, (1000, 1000)).astype("u2")
        group.create_array(name, data=data, chunks=(100, 100), attributes={"k": list(range(1000))})


def run_copy(source: Path, target: Path, limit: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COPY_WITH_FILE_SIZE_LIMIT, str(source), str(target), str(limit)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("limit", [0, 500, 100_000, 1_000_000, 2_050_000, 4_000_000])
def test_a_file_size_limit_is_one_error_and_leaves_no_file(limit: int, tmp_path: Path) -> None:
    """RLIMIT_FSIZE lets writes beyond a file size fail, like a full disk."""
    create_random_hierarchy(tmp_path / "s.zarr")
    result = run_copy(tmp_path / "s.zarr", tmp_path / "y.h5", limit)
    if limit == 0:
        assert (result.returncode, result.stderr) == (0, "")
        assert (tmp_path / "y.h5").exists()
        return
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    assert "y.h5 cannot be written: File too large; the incomplete file was removed" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.zarr"]


def test_a_full_disk_is_one_error_and_leaves_no_file(small_disk: Path, tmp_path: Path) -> None:
    create_random_hierarchy(tmp_path / "s.zarr")
    (small_disk / "old.h5").write_bytes(b"old")
    result = run_copy(tmp_path / "s.zarr", small_disk / "y.h5", 0)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    assert "y.h5 cannot be written: No space left on device; the incomplete file was removed" in result.stderr
    assert [path.name for path in small_disk.iterdir()] == ["old.h5"]


def test_writes_after_a_failure_are_buffered_in_memory(tmp_path: Path) -> None:
    output = HDF5Output(str(tmp_path / "f"))
    output.write(b"0123456789")
    os.close(output._fd)
    output._fd = os.open(tmp_path / "f", os.O_RDONLY)
    output.seek(8)
    assert output.write(b"abcd") == 4
    output.seek(2)
    output.write(b"XY")
    output.seek(0)
    assert output.read() == b"01XY4567abcd"
    assert output.seek(0, os.SEEK_END) == 12
    with pytest.raises(StoreError, match="Bad file descriptor"):
        output.check()
    with pytest.raises(StoreError, match="Bad file descriptor"):
        output.close()
    output.close()


def test_a_virtual_dataset_of_the_same_file_is_copied(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as output:
        output["values"] = np.arange(6)
        layout = h5py.VirtualLayout((6,), "i8")
        layout[:] = h5py.VirtualSource(output["values"])
        output.create_virtual_dataset("virtual", layout)
        output["soft"] = h5py.SoftLink("/values")
    from_hdf5(tmp_path / "s.h5", tmp_path / "a.zarr")
    assert zarrfs.open_array(tmp_path / "a.zarr", "virtual")[...].tolist() == list(range(6))


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    make_special_file(tmp_path / "s.h5", kind)
    with pytest.raises(StoreError, match=r"s\.h5 is not a regular file"):
        from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr").exists()
    (tmp_path / "d.h5").mkdir()
    with pytest.raises(StoreError, match="is not a regular file"):
        from_hdf5(tmp_path / "d.h5", tmp_path / "t.zarr")


# -- dimensions and missing values of netCDF -----------------------------------------------------------------------


def weather() -> xarray.Dataset:
    """A dataset with coordinates, a dimension without coordinate, missing values of both kinds and text."""
    temperature = np.arange(24.0).reshape(2, 3, 4)
    temperature[temperature % 5 == 0] = np.nan
    dataset = xarray.Dataset(
        {
            "temperature": (("time", "y", "x"), temperature, {"units": "K"}),
            "count": (("y", "x"), np.where(np.eye(3, 4), np.nan, 2.0)),
            "plain": (("time", "q"), np.arange(10, dtype="u1").reshape(2, 5)),
            "flag": ("x", np.array([True, False, True, False])),
            "name": ("y", np.array(["a", "größe", "ccc"], object)),
            "scalar": ((), np.float32(3)),
        },
        {
            "time": np.array(["2020-01-01", "2020-01-02"], "M8[ns]"),
            "y": np.arange(3.0) * 2,
            "x": ("x", np.arange(4) * 5.0, {"units": "m"}),
            "latitude": (("y", "x"), np.zeros((3, 4))),
        },
        {"title": "Weather"},
    )
    dataset["temperature"].encoding["_FillValue"] = -9.0
    dataset["count"].encoding.update(_FillValue=5, dtype="i4")
    return dataset


@pytest.mark.parametrize("suffix", ["nc", "h5"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_xarray_reads_the_same_dataset_from_the_file(zarr_format: Any, suffix: str, tmp_path: Path) -> None:
    weather().to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=False)
    file = tmp_path / f"a.{suffix}"
    to_hdf5(tmp_path / "a.zarr", file)
    from_hdf5(file, tmp_path / "b.zarr", zarr_format=zarr_format)
    expected = xarray.open_dataset(tmp_path / "a.zarr", engine="zarrfs").load()
    assert expected["count"].isnull().sum() == 3
    for location, engine in ((file, "h5netcdf"), (tmp_path / "b.zarr", "zarrfs")):
        actual = xarray.open_dataset(location, engine=engine).load()
        for item in (*actual.variables.values(), *expected.variables.values()):
            item.attrs.pop("DIMENSION_LABELS", None)
        xarray.testing.assert_identical(actual, expected)
        for name in ("temperature", "count"):
            assert actual[name].encoding["_FillValue"] == expected[name].encoding["_FillValue"]
            assert actual[name].dtype == expected[name].dtype
    with h5py.File(file) as content:
        assert content["count"].attrs["_FillValue"].dtype == np.int32
        assert content["temperature"].dims[2][0] == content["x"] == content["count"].dims[1][0]
        assert content["x"].attrs["NAME"] == b"x"
        assert content["q"].attrs["NAME"].startswith(b"This is a netCDF dimension but not a netCDF variable")
        assert "DIMENSION_LABELS" not in content["count"].attrs or suffix == "h5"


def test_a_file_of_netcdf_converts_to_zarr_and_back(tmp_path: Path) -> None:
    weather().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    for zarr_format in (2, 3):
        from_hdf5(tmp_path / "a.nc", tmp_path / f"{zarr_format}.zarr", zarr_format=zarr_format)
        to_hdf5(tmp_path / f"{zarr_format}.zarr", tmp_path / f"{zarr_format}.nc")
        with (
            xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as expected,
            xarray.open_dataset(tmp_path / f"{zarr_format}.nc", engine="h5netcdf") as actual,
        ):
            xarray.testing.assert_identical(actual, expected)


Members = dict[str, tuple[tuple[int, ...], tuple[str | None, ...]]]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"0": ((4, 8), ("y", "x")), "1": ((4, 4), ("y", "x"))}, {"0": ("y", "x"), "1": ("y", "x_4")}),
        ({"x": ((4, 3), ("y", "x"))}, {"x": ("y", "x_3")}),
        ({"x": ((3,), ("x",)), "g/a": ((3,), ("x",)), "g/b": ((4,), ("x",))}, {"x": ("x",)}),
        ({"a": ((0, 3), ("t", "x")), "t": ((0,), ("t",))}, {"a": ("t", "x"), "t": ("t",)}),
        ({"a": ((2, 3), ("y", None))}, {"a": ("phony_dim_0", "phony_dim_1")}),
        ({"a": ((2, 3), ("y/z", "x"))}, {"a": ("phony_dim_0", "phony_dim_1")}),
        ({"g/a": ((2,), ("x",)), "b": ((3,), ("g",))}, {"b": ("g_3",)}),
    ],
)
def test_dimensions_whose_name_is_taken_keep_it_as_label(
    members: Members, expected: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    group = zarrfs.create_group(tmp_path / "a.zarr")
    for path, (shape, names) in members.items():
        group.create_array(path, shape=shape, dtype="u1", dimension_names=names)
    to_hdf5(tmp_path / "a.zarr", tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf", phony_dims="access") as dataset:
        assert {name: item.dims for name, item in dataset.variables.items()} == expected
    from_hdf5(tmp_path / "a.nc", tmp_path / "b.zarr")
    back = zarrfs.open_group(tmp_path / "b.zarr")
    assert {path: back[path].dimension_names for path in members} == {
        path: names for path, (_, names) in members.items()
    }


def test_a_coordinate_is_shared_with_the_groups_below(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "a.zarr")
    for path in ("x", "g/a"):
        group.create_array(path, data=np.arange(3), dimension_names=("x",))
    group.create_array("g/b", data=np.arange(4), dimension_names=("x",))
    to_hdf5(tmp_path / "a.zarr", tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["g/a"].dims[0][0] == file["x"]
        # netCDF4 takes the nearest dimension of a name.
        assert file["g/b"].dims[0][0] == file["g/x_4"]
        assert sorted(file["g"]) == ["a", "b", "x_4"]


def test_attributes_of_dimension_scales_are_not_taken_from_the_source(tmp_path: Path) -> None:
    attributes = {"CLASS": "a", "NAME": "b", "DIMENSION_LIST": [1], "REFERENCE_LIST": "c", "unit": "m"}
    group = zarrfs.create_group(tmp_path / "a.zarr")
    group.create_array("x", data=np.arange(3), dimension_names=("x",), attributes=attributes)
    to_hdf5(tmp_path / "a.zarr", tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as dataset:
        assert dataset["x"].attrs == {"unit": "m"}
        assert dataset["x"].dims == ("x",)


@pytest.mark.parametrize("attributes", [{"big": 10**30}, {"a": "x\0y"}, {"": 1}])
def test_an_attribute_that_hdf5_cannot_store_names_its_member(
    attributes: dict[str, Any], tmp_path: Path
) -> None:
    group = zarrfs.create_group(tmp_path / "a.zarr")
    group.create_array("a", data=np.arange(3), attributes=attributes)
    group.create_array("b", data=np.arange(3))
    with pytest.raises(IncompleteCopyError, match=r"a \(HDF5 cannot store the attribute"):
        to_hdf5(tmp_path / "a.zarr", tmp_path / "a.h5")
    to_hdf5(tmp_path / "a.zarr", tmp_path / "a.h5", skip_broken=True)
    with h5py.File(tmp_path / "a.h5") as file:
        assert list(file) == ["b"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_text_of_fixed_length_becomes_text_of_variable_length(zarr_format: Any, tmp_path: Path) -> None:
    values = np.array(["a", "größe", ""], "U7")
    zarrfs.create_array(tmp_path / "a.zarr", data=values, zarr_format=zarr_format)
    to_hdf5(tmp_path / "a.zarr", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["data"].asstr()[...].tolist() == values.tolist()


def test_booleans_are_marked_in_netcdf(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "a.zarr").create_array("a", data=np.array([True, False]))
    to_hdf5(tmp_path / "a.zarr", tmp_path / "a.nc")
    from_hdf5(tmp_path / "a.nc", tmp_path / "b.zarr")
    array = zarrfs.open_array(tmp_path / "b.zarr", "a")
    assert (array.dtype, dict(array.attrs)) == (np.dtype(bool), {})
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["a"].attrs["dtype"] == b"bool"


def test_more_datasets_than_an_attribute_of_64_kib_can_list_share_a_dimension(tmp_path: Path) -> None:
    group = zarrfs.create_group({})
    # Each dimension of a dataset is an entry of 16 bytes in the list of the scale.
    for number in range(530):
        group.create_array(f"a{number}", shape=(1,) * 8, dtype="u1", dimension_names=("x",) * 8)
    to_hdf5(group, tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["x"].attrs["REFERENCE_LIST"].nbytes > 1 << 16
        assert file["a529"].dims[7][0] == file["x"] == file["a0"].dims[0][0]


@pytest.mark.parametrize("suffix", [".h5", ".nc"])
@pytest.mark.parametrize("dtype", ["<M8[ns]", ">M8[s]", "<M8[D]", "<m8[ms]"])
def test_times_become_integers_with_units_that_xarray_decodes(
    dtype: str, suffix: str, tmp_path: Path
) -> None:
    times = np.array([0, -5, 10**4, np.iinfo("i8").min, 7], "i8").view(np.dtype(dtype).newbyteorder("="))
    times = times.astype(dtype)
    group = zarrfs.create_group(tmp_path / "a.zarr", zarr_format=2)
    fill_value = np.datetime64("NaT") if dtype[1] == "M" else np.timedelta64("NaT")
    for name, dimension in (("time", "time"), ("end", "time")):
        array = group.create_array(
            name,
            shape=5,
            chunks=2,
            dtype=dtype,
            attributes={"_ARRAY_DIMENSIONS": [dimension], "units": "m"},
            fill_value=fill_value,
        )
        array[:4] = times[:4]  # the last chunk is missing
    file = tmp_path / f"a{suffix}"
    to_hdf5(tmp_path / "a.zarr", file)
    expected = times.copy()
    expected[4] = fill_value
    from_hdf5(file, tmp_path / "b.zarr")
    with (
        xarray.open_dataset(file, engine="h5netcdf", decode_timedelta=True) as dataset,
        xarray.open_zarr(tmp_path / "b.zarr", consolidated=False, decode_timedelta=True) as copied,
    ):
        for found in (dataset, copied):
            assert found["end"].dims == ("time",)
            assert np.array_equal(found["end"].values, expected, equal_nan=True)
            assert np.array_equal(found["time"].values, expected, equal_nan=True)
    assert zarrfs.open_array(tmp_path / "b.zarr", "end").dtype == np.dtype("i8")


@pytest.mark.parametrize("dtype", ["M8[M]", "m8[10s]"])
def test_times_without_a_unit_of_netcdf_are_refused(dtype: str, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(3).astype(dtype))
    with pytest.raises(IncompleteCopyError, match=r"netCDF has no unit for .*; convert it to a unit"):
        to_hdf5(tmp_path / "a.zarr", tmp_path / "a.h5")


def test_times_of_h5py_are_copied_as_times(tmp_path: Path) -> None:
    times = np.array([0, 5, np.iinfo("i8").min], "i8").view("M8[s]")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("t", data=times.astype(h5py.opaque_dtype(times.dtype)))
    from_hdf5(tmp_path / "a.h5", tmp_path / "a.zarr")
    copied = zarrfs.open_array(tmp_path / "a.zarr", "t")
    assert copied.dtype == times.dtype
    assert np.array_equal(copied[...], times, equal_nan=True)


@pytest.mark.parametrize("is_taken", [False, True])
def test_variables_with_the_name_of_a_dimension_keep_it(is_taken: bool, tmp_path: Path) -> None:
    """netCDF-4 stores a variable x(y, x) that is not the coordinate of x as ``_nc4_non_coord_x``."""
    values = np.arange(6).reshape(2, 3)
    with h5py.File(tmp_path / "a.nc", "w") as file:
        for name, length in (("x", 3), ("y", 2)):
            file.create_dataset(name, shape=length, dtype="f4")
            is_variable = is_taken and name == "x"
            file[name].make_scale(name if is_variable else NO_VARIABLE % length)
        stored = file.create_dataset("_nc4_non_coord_x", data=values)
        for number, name in enumerate(("y", "x")):
            stored.dims[number].attach_scale(file[name])
    name = "_nc4_non_coord_x" if is_taken else "x"
    from_hdf5(tmp_path / "a.nc", tmp_path / "a.zarr")
    import_files([tmp_path / "a.nc"], tmp_path / "b.zarr")
    for place in ("a.zarr", "b.zarr"):
        copied = zarrfs.open_array(tmp_path / place, name)
        assert np.array_equal(copied[...], values)
        assert set(zarrfs.open_group(tmp_path / place)) == ({"x", name} if is_taken else {name})
        if not is_taken:
            assert copied.dimension_names == ("y", "x")
