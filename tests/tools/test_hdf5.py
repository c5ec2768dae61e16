"""HDF5 to Zarr and back, written and read by h5py on the other side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.special_files import SPECIAL_KINDS, special_file
from zarrfs.cli.main import main
from zarrfs.errors import NodeExistsError, StoreError
from zarrfs.tools import from_hdf5, to_hdf5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as made:
        made.attrs["title"] = "a run"
        made.attrs["sizes"] = np.array([1, 2, 3])
        group = made.create_group("g", track_order=True)
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
        made.create_dataset("whole", data=np.linspace(0, 1, 7))
        made.create_dataset("scalar", data=3.5)
        made.create_dataset("flags", data=np.array([True, False]))
        made.create_dataset("words", data=["a", "größe", ""], dtype=h5py.string_dtype())
        made.create_dataset("fixed", data=np.array([b"ab", b"c"], "S2"))
        made.create_dataset("records", data=np.array([(1, 2.5)], [("i", "<i4"), ("f", "<f8")]))
        made.create_dataset("empty", shape=(0, 3), dtype="f4")
        time = made.create_dataset("time", data=np.arange(3))
        time.make_scale("time")
        series = made.create_dataset("series", data=np.arange(3.0))
        series.dims[0].attach_scale(time)
        made.create_dataset("refs", data=[cube.ref], dtype=h5py.ref_dtype)
        made["dangling"] = h5py.SoftLink("/nowhere")
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_file_becomes_a_group(zarr_format: int, file: Path, tmp_path: Path) -> None:
    lines = from_hdf5(file, tmp_path / "t.zarr", zarr_format=zarr_format)
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
    assert cube.fill_value == 9
    assert cube.attrs["unit"] == "K"
    assert cube.dimension_names == ("z", "y", "x")
    assert group["series"].dimension_names == ("time",)
    assert group["words"][...].tolist() == ["a", "größe", ""]
    assert "refs" not in group
    assert any(line.startswith("refs: left out") for line in lines)


def test_there_and_back(file: Path, tmp_path: Path) -> None:
    from_hdf5(file, tmp_path / "t.zarr", shards="auto")
    to_hdf5(tmp_path / "t.zarr", tmp_path / "back.h5")
    with h5py.File(file) as first, h5py.File(tmp_path / "back.h5") as second:
        for name in ("g/cube", "whole", "scalar", "flags", "fixed", "records", "empty", "series", "words"):
            assert np.array_equal(first[name][()], second[name][()]), name
        assert [dimension.label for dimension in second["g/cube"].dims] == ["z", "y", "x"]
        assert second["g/cube"].attrs["unit"] == "K"
        assert second["g/cube"].fillvalue == 9
        assert second.attrs["sizes"].tolist() == [1, 2, 3]


def test_what_is_there_or_broken_is_told(file: Path, tmp_path: Path) -> None:
    from_hdf5(file, tmp_path / "t.zarr")
    with pytest.raises(NodeExistsError):
        from_hdf5(file, tmp_path / "t.zarr")
    with pytest.raises(NodeExistsError):
        to_hdf5(tmp_path / "t.zarr", file)
    (tmp_path / "broken.h5").write_bytes(b"nothing")
    with pytest.raises(StoreError, match="cannot be opened as HDF5"):
        from_hdf5(tmp_path / "broken.h5", tmp_path / "u.zarr")
    assert not (tmp_path / "u.zarr").exists()


def test_a_copy_that_fails_leaves_no_file(tmp_path: Path) -> None:
    array = zarrfs.create_group(tmp_path / "b.zarr").create_array("a", data=np.arange(40), chunks=(10,))
    chunk = tmp_path / "b.zarr" / "a" / "c" / "2"
    chunk.write_bytes(chunk.read_bytes()[:5])
    assert array.nchunks == 4
    with pytest.raises(zarrfs.ChunkDecodeError):
        to_hdf5(tmp_path / "b.zarr", tmp_path / "b.h5")
    assert [f.name for f in tmp_path.iterdir()] == ["b.zarr"]


def test_the_command(file: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["copy", str(file), str(tmp_path / "c.zarr")])
    assert done.exit_code == 0, done.output
    assert "g/cube: 10 x 6 x 10 uint16" in done.output
    done = CliRunner().invoke(main, ["copy", str(tmp_path / "c.zarr"), str(tmp_path / "c.h5")])
    assert done.exit_code == 0, done.output
    with h5py.File(tmp_path / "c.h5") as back:
        assert back["whole"].shape == (7,)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A file that others name."""
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as made:
        made["values"] = np.arange(6)
    (tmp_path / "raw").write_bytes(np.arange(6).tobytes())
    return path


def external_link(made: h5py.File, folder: Path) -> None:
    made.create_group("g")["there"] = h5py.ExternalLink("other.h5", "/values")


def external_storage(made: h5py.File, folder: Path) -> None:
    made.create_dataset("g/there", (6,), "i8", external=[(str(folder / "raw"), 0, 48)])


def virtual_dataset(made: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((6,), "i8")
    layout[:] = h5py.VirtualSource("other.h5", "values", (6,))
    made.create_virtual_dataset("g/there", layout)


@pytest.mark.parametrize("name_data", [external_link, external_storage, virtual_dataset])
def test_data_of_other_files_are_refused_unless_that_is_allowed(
    name_data: Callable[[h5py.File, Path], None], other: Path, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as made:
        name_data(made, tmp_path)
    with pytest.raises(StoreError, match=r"/g/there is .*(other\.h5|raw).*--allow-external"):
        from_hdf5(tmp_path / "s.h5", tmp_path / "refused.zarr")
    assert not (tmp_path / "refused.zarr").exists()
    done = CliRunner().invoke(main, ["copy", f"{tmp_path}/s.h5", f"{tmp_path}/refused.zarr"])
    assert "--allow-external" in str(done.exception)
    from_hdf5(tmp_path / "s.h5", tmp_path / "a.zarr", allow_external=True)
    assert zarrfs.open_array(tmp_path / "a.zarr", "g/there")[...].tolist() == list(range(6))
    done = CliRunner().invoke(
        main, ["copy", f"{tmp_path}/s.h5", f"{tmp_path}/b.zarr", "--allow-external"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert zarrfs.open_array(tmp_path / "b.zarr", "g/there")[...].tolist() == list(range(6))


def test_a_virtual_dataset_of_the_same_file_is_copied(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as made:
        made["values"] = np.arange(6)
        layout = h5py.VirtualLayout((6,), "i8")
        layout[:] = h5py.VirtualSource(made["values"])
        made.create_virtual_dataset("there", layout)
        made["soft"] = h5py.SoftLink("/values")
    from_hdf5(tmp_path / "s.h5", tmp_path / "a.zarr")
    assert zarrfs.open_array(tmp_path / "a.zarr", "there")[...].tolist() == list(range(6))


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    special_file(tmp_path / "s.h5", kind)
    with pytest.raises(StoreError, match=r"s\.h5 is a .*; expected a regular file"):
        from_hdf5(tmp_path / "s.h5", tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr").exists()
    (tmp_path / "d.h5").mkdir()
    with pytest.raises(StoreError, match="Is a directory"):
        from_hdf5(tmp_path / "d.h5", tmp_path / "t.zarr")
