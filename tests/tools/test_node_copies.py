"""``copy``, ``copy_all`` and ``copy_store`` with the behaviour of zarr-python 2, and Dask."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numcodecs
import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore

DATA = np.arange(24, dtype="i4").reshape(4, 6)


def create_hierarchy(store: Any, zarr_format: Any = 2) -> zarrfs.Group:
    root = zarrfs.group(store, zarr_format=zarr_format, attributes={"root": 1})
    foo = root.create_group("foo", attributes={"level": 1})
    foo.create_array("x", data=DATA, chunks=(2, 3), attributes={"unit": "m"}, compressors=numcodecs.Zlib(2))
    foo.create_group("deep").create_array("y", data=DATA[0], chunks=4)
    root.create_array("z", data=DATA[:, 0])
    return root


def contents(group: zarrfs.Group) -> dict[str, Any]:
    return {
        "": dict(group.attrs),
        **{
            name: (dict(node.attrs), node[...].tolist() if isinstance(node, zarrfs.Array) else None)
            for name, node in group.walk()
        },
    }


def test_a_copy_has_the_values_attributes_and_codecs_of_the_source() -> None:
    source, dest = create_hierarchy({}), zarrfs.group({}, zarr_format=2)
    assert zarrfs.copy(source["foo"], dest) == (4, 0, DATA.nbytes + DATA[0].nbytes)
    assert contents(dest["foo"]) == contents(source["foo"])  # type: ignore[arg-type]
    assert dest["foo/x"].metadata == source["foo/x"].metadata
    assert zarrfs.copy(source["foo/x"], dest, name="other/name").copied == 1
    assert dest["other/name"].attrs["unit"] == "m"


def test_options_change_properties_of_the_copy() -> None:
    source, dest = create_hierarchy({}), zarrfs.group({})
    zarrfs.copy(source["foo/x"], dest, chunks=(4, 6), compressors=None, without_attrs=True)
    copied = dest["x"]
    assert (copied.chunks, copied.zarr_format, dict(copied.attrs)) == ((4, 6), 3, {})
    assert copied.compressors == ()
    assert np.array_equal(copied[...], DATA)
    shallow = zarrfs.group({})
    assert zarrfs.copy(source["foo"], shallow, shallow=True).copied == 2
    assert list(shallow["foo"]) == ["x"]
    assert dict(shallow["foo"].attrs) == {"level": 1}
    zarrfs.copy(source["foo"], shallow, name="bare", without_attrs=True)
    assert dict(shallow["bare"].attrs) == dict(shallow["bare/x"].attrs) == {}


def test_copy_all_copies_the_attributes_of_the_group() -> None:
    for zarr_format in (2, 3):
        source, dest = create_hierarchy({}), zarrfs.group({}, zarr_format=zarr_format)
        assert zarrfs.copy_all(source, dest).copied == 5
        assert contents(dest) == contents(source)
        bare = zarrfs.group({}, zarr_format=zarr_format)
        zarrfs.copy_all(source, bare, without_attrs=True)
        assert dict(bare.attrs) == {}


def test_if_exists_raises_skips_or_replaces() -> None:
    source, dest = create_hierarchy({}), zarrfs.group({}, zarr_format=2)
    dest.create_array("x", data=[1])
    with pytest.raises(zarrfs.NodeExistsError, match="an array exists already"):
        zarrfs.copy(source["foo/x"], dest)
    assert zarrfs.copy(source["foo/x"], dest, if_exists="skip") == (0, 1, 0)
    assert zarrfs.copy(source["foo/x"], dest, if_exists="skip_initialized") == (0, 1, 0)
    assert dest["x"].shape == (1,)
    assert zarrfs.copy(source["foo/x"], dest, if_exists="replace", dry_run=True) == (1, 0, 0)
    assert dest["x"].shape == (1,)
    assert zarrfs.copy(source["foo/x"], dest, if_exists="replace") == (1, 0, DATA.nbytes)
    assert np.array_equal(dest["x"][...], DATA)
    dest.create_array("y", shape=5)
    assert zarrfs.copy(source["foo/x"], dest, "y", if_exists="skip_initialized").copied == 1
    with pytest.raises(zarrfs.NodeExistsError):
        zarrfs.copy(source["foo"], dest, "x")
    assert zarrfs.copy(source["foo"], dest, "x", if_exists="skip") == (0, 1, 0)
    zarrfs.copy(source["foo"], dest, "x", if_exists="replace")
    assert np.array_equal(dest["x/x"][...], DATA)


def test_invalid_sources_and_destinations_are_errors() -> None:
    root = create_hierarchy({})
    for call in (zarrfs.copy, zarrfs.copy_all):
        with pytest.raises(zarrfs.NodeTypeError, match="must be a group"):
            call(root["foo"], root["z"])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="if_exists must be"):
            call(root["foo"], root, if_exists="perhaps")  # type: ignore[arg-type]
    with pytest.raises(zarrfs.NodeTypeError, match="source of copy_all must be a group"):
        zarrfs.copy_all(root["z"], root)
    with pytest.raises(TypeError, match="has no name"):
        zarrfs.copy(root, zarrfs.group({}))
    with pytest.raises(zarrfs.NodeExistsError, match="itself"):
        zarrfs.copy(root["z"], root, if_exists="replace")
    assert np.array_equal(root["z"][...], DATA[:, 0])
    for destination in (root, root["foo/deep"]):
        with pytest.raises(zarrfs.NodeExistsError, match="into itself"):
            zarrfs.copy(root["foo"], destination, "foo")  # type: ignore[arg-type]


def test_a_failed_replacement_keeps_the_existing_array() -> None:
    class FailingMemoryStore(MemoryStore):
        broken = False

        def get(self, key: str) -> bytes | None:
            if self.broken and "/c/" in f"/{key}":
                raise zarrfs.StoreError("no more")
            return super().get(key)

    store = FailingMemoryStore()
    source, dest = create_hierarchy(store, 3), zarrfs.group({})
    dest.create_array("x", data=[1, 2])
    store.broken = True
    with pytest.raises(zarrfs.StoreError, match="no more"):
        zarrfs.copy(source["foo/x"], dest, if_exists="replace")
    assert dest["x"][...].tolist() == [1, 2]


def test_log_receives_a_line_per_node(tmp_path: Path) -> None:
    source = create_hierarchy({})
    lines: list[str] = []
    zarrfs.copy(source["foo"], zarrfs.group({}), log=lines.append)
    assert lines[0] == "copy /foo"
    assert "copy /foo/x (4, 6) int32" in lines
    assert lines[-1] == "all done: 4 copied, 0 skipped, 120 bytes copied"
    file = io.StringIO()
    zarrfs.copy(source["foo"], zarrfs.group({}), log=file, dry_run=True)
    assert file.getvalue().splitlines()[-1] == "dry run: 4 copied, 0 skipped, 0 bytes copied"
    zarrfs.copy(source["foo"], zarrfs.group({}), log=str(tmp_path / "log"))
    assert (tmp_path / "log").read_text().splitlines() == lines
    with pytest.raises(TypeError, match="log must be"):
        zarrfs.copy(source["foo"], zarrfs.group({}), log=5)  # type: ignore[arg-type]


def test_h5py_groups_and_arrays_are_copied(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/x", data=DATA, chunks=(2, 3)).attrs["n"] = np.arange(2)
        file["g"].attrs["unit"] = "m"
        file.create_dataset("plain", data=DATA[0])
        dest = zarrfs.group({})
        assert zarrfs.copy_all(file, dest).copied == 3
        assert zarrfs.copy(file["g/x"], dest).copied == 1
    assert np.array_equal(dest["g/x"][...], DATA)
    assert (dest["x"].chunks, dest["g/x"].attrs["n"], dest["g"].attrs["unit"]) == ((2, 3), [0, 1], "m")


@pytest.mark.parametrize(
    ("dtype", "fill_value"),
    [("i4", 7), ("f4", np.nan), ("S3", b"ab"), ([("a", "i4"), ("b", "f8")], (1, 2.5))],
)
def test_the_fill_value_of_h5py_is_copied(dtype: Any, fill_value: Any, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill = np.array(fill_value, dtype)[()]
        source = file.create_dataset("x", (6,), dtype, chunks=(2,), fillvalue=fill)
        dest = zarrfs.group({})
        zarrfs.copy(source, dest)
        assert dest["x"].fill_value.tobytes() == fill.tobytes()
        assert dest["x"][...].tobytes() == source[...].tobytes()
        like = zarrfs.empty_like(source)
        assert like.fill_value.tobytes() == fill.tobytes()


def test_copies_into_h5py_name_the_functions_for_it(tmp_path: Path) -> None:
    source = zarrfs.group({}).create_array("x", data=DATA)
    with (
        h5py.File(tmp_path / "a.h5", "w") as file,
        pytest.raises(zarrfs.NodeTypeError, match=r"zarrfs\.tools\.to_hdf5"),
    ):
        zarrfs.copy(source, file)


@pytest.mark.parametrize("shards", [None, (4, 6)])
def test_encoded_chunks_are_copied_unchanged(shards: Any) -> None:
    source = zarrfs.group({})
    source.create_array("a", data=DATA, chunks=(2, 3), shards=shards)
    dest = zarrfs.group({})
    zarrfs.copy(source["a"], dest)
    for key in source.store.list_prefix("a"):
        assert dest.store.get(key) == source.store.get(key), key


def test_copy_store_copies_keys_between_locations(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "source")
    lines: list[str] = []
    result = zarrfs.copy_store(
        tmp_path / "source",
        tmp_path / "dest",
        "foo",
        "bar",
        excludes=r"\.zattrs$",
        includes="deep",
        log=lines.append,
    )
    assert result.copied == len(lines)
    copied = zarrfs.open_group(tmp_path / "dest", "bar")
    assert np.array_equal(copied["x"][...], DATA)
    assert dict(copied["x"].attrs) == {}
    for kind in ("raise", "replace", "skip"):
        if kind == "raise":
            with pytest.raises(zarrfs.NodeExistsError):
                zarrfs.copy_store(tmp_path / "source", tmp_path / "dest", "foo", "bar")
        else:
            second_result = zarrfs.copy_store(
                tmp_path / "source", tmp_path / "dest", "foo", "bar", if_exists=kind
            )  # type: ignore[arg-type]
            assert (second_result.copied > 2) == (kind == "replace")
    with pytest.raises(ValueError, match="if_exists must be"):
        zarrfs.copy_store({}, {}, if_exists="perhaps")  # type: ignore[arg-type]


# -- Dask ------------------------------------------------------------------------------------------------------


def test_dask_reads_and_writes_arrays_and_locations(tmp_path: Path) -> None:
    array = zarrfs.array(DATA, tmp_path / "a", chunks=(2, 3))
    lazy = da.from_array(array, chunks=array.chunks)
    assert lazy.chunks == ((2, 2), (3, 3))
    target = zarrfs.zeros_like(array, tmp_path / "b")
    da.store(lazy + 1, target, lock=False)
    assert np.array_equal(target[...], DATA + 1)
    for zarr_format in (2, 3):
        zarrfs.save_array(tmp_path / "c", DATA, chunks=(2, 3), zarr_format=zarr_format)
        assert np.array_equal(da.from_zarr(str(tmp_path / "c")).compute(), DATA)
    da.to_zarr(lazy * 2, str(tmp_path / "d"))
    result = zarrfs.open_array(tmp_path / "d")
    assert np.array_equal(result[...], DATA * 2)
    assert result.chunks == (2, 3)
