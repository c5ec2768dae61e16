"""Stores, paths and nodes of zarr-python as locations. The contract suite runs over its stores too."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pytest
import tifffile
import zarr
import zarr.storage

import zarrfs
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.zarr_python import ZarrPythonStore

DATA = np.arange(35, dtype="u2").reshape(5, 7)


def places(path: Path) -> dict[str, Any]:
    return {
        "memory": zarr.storage.MemoryStore(),
        "local": zarr.storage.LocalStore(path / "local"),
        "zip": zarr.storage.ZipStore(path / "a.zip", mode="w"),
        "fsspec": zarr.storage.FsspecStore.from_url(f"memory://{path.name}"),
        "a local file system of fsspec": zarr.storage.FsspecStore.from_url(
            f"file://{path}/remote", storage_options={"auto_mkdir": True}
        ),
        "obstore in memory": zarr.storage.ObjectStore(obstore.store.MemoryStore()),
        "obstore in a directory": zarr.storage.ObjectStore(
            obstore.store.LocalStore(path / "object store", mkdir=True)
        ),
        "logging": zarr.storage.LoggingStore(zarr.storage.MemoryStore(), log_level="ERROR"),
    }


KINDS = [
    "memory",
    "local",
    "zip",
    "fsspec",
    "a local file system of fsspec",
    "obstore in memory",
    "obstore in a directory",
    "logging",
]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    store = places(tmp_path)[request.param]
    yield store
    store.close()


class ForeignStore(zarr.storage.WrapperStore[zarr.storage.MemoryStore]):
    """A store of zarr-python that counts its requests and refuses documents of other formats than v3."""

    def __init__(self, store: zarr.storage.MemoryStore) -> None:
        super().__init__(store)
        self.requests: Counter[str] = Counter()

    def _count(self, name: str, key: str) -> None:
        self.requests[name] += 1
        if key.endswith((".zarray", ".zgroup", "attributes.json")):
            raise KeyError(f"v2 key not found at {key}")

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        self._count("get", key)
        return await super().get(key, prototype, byte_range)

    async def exists(self, key: str) -> bool:
        self._count("exists", key)
        return await super().exists(key)

    async def getsize(self, key: str) -> int:
        self._count("getsize", key)
        return await super().getsize(key)


def test_an_exception_for_documents_of_other_formats_means_that_they_are_missing() -> None:
    store = ForeignStore(zarr.storage.MemoryStore())
    root = zarrfs.create_group(store)
    root.create_array("x", data=DATA)
    root.create_group("g")
    assert root.get("nothing") is None
    assert list(root) == ["g", "x"]
    del root["g"]
    root.move("x", "moved/x")
    np.testing.assert_array_equal(zarrfs.open_array(store, path="moved/x"), DATA)


def test_a_document_takes_one_request() -> None:
    store = ForeignStore(zarr.storage.MemoryStore())
    zarrfs.create_array(store, data=DATA)
    store.requests.clear()
    zarrfs.open_array(ZarrPythonStore(store), mode="r")
    assert store.requests["getsize"] == 0


def test_zeros_are_written_to_a_store_that_cannot_delete(tmp_path: Path) -> None:
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        root = zarrfs.open_group(store, mode="a")
        root["new"] = np.zeros(4)
        np.testing.assert_array_equal(root["new"], np.zeros(4))


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")  # of zarr-python's ZipStore
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_written_by_zarr_python_are_read_from_its_store(place: Any, zarr_format: Any) -> None:
    root = zarr.create_group(place, zarr_format=zarr_format)
    made = root.create_array("a/b", shape=DATA.shape, dtype=DATA.dtype, chunks=(2, 3))
    made[:] = DATA
    found = zarrfs.open_group(place)
    assert np.array_equal(found["a/b"][...], DATA)
    assert np.array_equal(found["a/b"][1:3, 4], DATA[1:3, 4])
    assert [name for name, _ in found.members(max_depth=None)] == ["a", "a/b"]
    assert np.array_equal(zarrfs.open_array(made)[...], DATA)
    assert sorted(zarrfs.open_group(root["a"])) == ["b"]
    assert np.array_equal(zarrfs.open_array(zarr.storage.StorePath(place, "a"), "b")[...], DATA)
    assert zarrfs.open_array(place, "a/b").info_complete()["chunks_initialized"] == 9


def test_a_shard_is_read_partially(place: Any) -> None:
    made = zarr.create_array(place, shape=(8, 8), dtype="i4", chunks=(2, 2), shards=(8, 8))
    made[:] = np.arange(64).reshape(8, 8)
    assert zarrfs.open_array(place)[3, 5] == 29


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_zarr_python_reads_arrays_written_to_its_store(place: Any) -> None:
    group = zarrfs.group(place)
    group.create_array("x", data=DATA, chunks=(2, 3), attributes={"a": 1})
    found = zarr.open_group(place, mode="r+")
    assert np.array_equal(found["x"][...], DATA)
    assert dict(found["x"].attrs) == {"a": 1}


def test_a_local_store_is_opened_as_a_directory(tmp_path: Path) -> None:
    zarrfs.array(DATA, tmp_path / "a")
    array = zarrfs.open_array(zarr.storage.LocalStore(tmp_path / "a", read_only=True), mode="r+")
    assert isinstance(array.store, LocalStore)
    assert array.read_only


def test_an_object_store_of_a_directory_is_opened_as_a_directory(tmp_path: Path) -> None:
    zarrfs.array(DATA, tmp_path / "a")
    objects = zarr.storage.ObjectStore(obstore.store.LocalStore(tmp_path), read_only=True)
    array = zarrfs.open_array(objects, "a", mode="r+")
    assert array.store == LocalStore(tmp_path)
    assert array.read_only
    assert np.array_equal(array[...], DATA)
    # A store without a prefix begins at the root of the file system. Creating a node would create all groups above it.
    whole = zarr.storage.ObjectStore(obstore.store.LocalStore())
    array = zarrfs.open_array(whole, f"{tmp_path.as_posix()[1:]}/a", mode="r+")
    array[0] = 7
    assert (zarrfs.open_array(tmp_path, "a")[0] == 7).all()


def test_names_that_no_object_can_have_are_missing() -> None:
    group = zarrfs.create_group(zarr.storage.ObjectStore(obstore.store.MemoryStore()))
    assert "a\nb" not in group
    with pytest.raises(zarrfs.StoreError, match=r"writing .*illegal character"):
        group["a\nb"] = DATA
    assert list(group) == []


def test_a_read_only_store_stays_read_only() -> None:
    store = zarr.storage.MemoryStore()
    zarrfs.array(DATA, store)
    array = zarrfs.open_array(store.with_read_only(True), mode="r+")
    with pytest.raises(zarrfs.ReadOnlyError):
        array[0, 0] = 1


def test_stores_of_zarr_python_are_compared_and_pickled(tmp_path: Path) -> None:
    options = {"auto_mkdir": True}
    store = zarr.storage.FsspecStore.from_url(f"file://{tmp_path}/a", storage_options=options)
    zarrfs.array(DATA, store)
    one, other = zarrfs.open_array(store), zarrfs.open_array(store)
    assert one == other
    assert isinstance(one.store, ZarrPythonStore)
    assert np.array_equal(pickle.loads(pickle.dumps(one))[...], DATA)


def test_errors_of_stores_of_zarr_python_become_store_errors() -> None:
    class Broken(zarr.storage.MemoryStore):
        async def get(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("the disk is on fire")

        exists = get

    with pytest.raises(zarrfs.StoreError, match="the disk is on fire"):
        zarrfs.open(Broken())


def test_zarr_python_is_not_imported_without_need(tmp_path: Path) -> None:
    program = (
        "import sys, zarrfs; z = zarrfs.zeros(3); zarrfs.zeros_like(z); zarrfs.save(sys.argv[1], z); "
        "zarrfs.copy(zarrfs.open(sys.argv[1]), zarrfs.group(), 'a'); assert 'zarr' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "x")], check=True)


def test_a_store_without_ranges_is_read_by_whole_values(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", np.arange(64 * 48, dtype="u2").reshape(64, 48), tile=(16, 16))
    with tifffile.TiffFile(tmp_path / "a.tif") as file, file.aszarr() as store:
        array = zarrfs.open_array(store)
        assert array[17:40, 3].tolist() == [48 * row + 3 for row in range(17, 40)]
        assert array[0, 0] == 0
