"""Opening of stores by paths, URLs and other locations, and the errors."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.every_store import dbm_sqlite3_store
from zarrfs.engine.stores import locations
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.databases import dbm
from zarrfs.engine.stores.databases.dbm import DBMStore
from zarrfs.engine.stores.databases.lmdb import LMDBStore
from zarrfs.engine.stores.databases.sqlite import SQLiteStore
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import METADATA_NAMES, local, open_store, split_options
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import LocationError, LocationNotFoundError, NodeNotFoundError, OptionError, ZarrError
from zarrfs.tools import consolidate_metadata


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    path = tmp_path / "some data#1%.zarr"
    zarrfs.create_group(path).create_array("labels/0", data=np.arange(4))
    shutil.make_archive(f"{path}", "zip", path)
    return path


def test_all_forms_of_a_location_open_the_same_array(
    hierarchy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hierarchy.parent)
    archive = Path(f"{hierarchy}.zip")
    for location in (
        hierarchy / "labels" / "0",
        str(hierarchy / "labels" / "0"),
        f"{hierarchy}/labels/0/",
        os.path.relpath(hierarchy / "labels" / "0"),
        (hierarchy / "labels" / "0").as_uri(),
        f"file://localhost{hierarchy.as_uri()[7:]}/labels/0",
        hierarchy / "labels" / "0" / "zarr.json",
        archive / "labels" / "0",
        archive.as_uri() + "/labels/0",
        archive / "labels" / "0" / "zarr.json",
    ):
        node = zarrfs.open_array(location)
        np.testing.assert_array_equal(node[...], np.arange(4))
        node.store.close()
    for location in (hierarchy, archive):
        node = zarrfs.open_array(location, "labels/0")
        assert node[3] == 3
        node.store.close()


def test_the_name_of_a_metadata_document_refers_to_its_directory(tmp_path: Path) -> None:
    for name in METADATA_NAMES:
        (tmp_path / name).write_text("{}")
        store, path = open_store(tmp_path / name)
        assert isinstance(store, LocalStore)
        assert (store.root, path) == (str(tmp_path), "")


def test_stores_and_dictionaries_are_locations() -> None:
    store = MemoryStore()
    assert open_store(store) == (store, "")
    values: dict[str, bytes] = {}
    zarrfs.create_array(values, data=np.arange(3))
    assert "zarr.json" in values
    assert zarrfs.open_array(values)[2] == 2


def test_missing_stores_are_created_only_in_mode_a(tmp_path: Path) -> None:
    assert isinstance(open_store(tmp_path / "new.zarr", mode="a")[0], LocalStore)
    store, _ = open_store(tmp_path / "new.zip", mode="a")
    assert isinstance(store, ZipStore)
    store.close()
    with pytest.raises(LocationError):
        open_store(tmp_path / "missing", mode="r+")


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("{tmp}/missing.zarr", "no such file or directory"),
        ('{{"driver": "zarr3", "kvstore": "file://{tmp}/"}}', "a TensorStore spec is not a location"),
        ("file://{tmp}/a.zarr/|zarr3:", "a TensorStore spec is not a location"),
        ("{tmp}/a/b/missing", "{tmp} exists"),
        ("{tmp}/file", "is neither a zip file nor a database"),
        ("{tmp}/file", "zarrfs import {tmp}/file NEW.zarr"),
        ("{tmp}/empty", "is empty"),
        ("{tmp}/file/below", "is neither a zip file nor a database"),
        ("{tmp}/broken.zip", "is not a readable zip file"),
        ("", "the location is empty"),
        ("gopher://host/x", "'gopher' URLs are not supported"),
        ("file://host/path", "must not contain a host"),
        ("sqlite://file.sqlite", f"did you mean sqlite://{os.path.abspath('file.sqlite')}?"),
        ("a\0b", "null"),
    ],
)
def test_the_error_for_an_invalid_location_states_the_reason(
    location: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("hello")
    (tmp_path / "empty").touch()
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 and no more")
    with pytest.raises(LocationError) as caught:
        zarrfs.open(location.format(tmp=tmp_path))
    assert message.format(tmp=tmp_path) in str(caught.value)


def test_objects_of_other_types_are_not_locations() -> None:
    for wrong in (5, {1}, ["a"]):
        with pytest.raises(ZarrError, match="is not a location"):
            zarrfs.open(wrong)  # type: ignore[arg-type]


def test_the_error_for_a_missing_node_names_existing_nodes(hierarchy: Path) -> None:
    with pytest.raises(NodeNotFoundError, match="open one of its members") as caught:
        zarrfs.open(hierarchy.parent)
    assert hierarchy.name in str(caught.value)
    with pytest.raises(NodeNotFoundError, match=r"no array or group 'x'.*'labels'"):
        zarrfs.open_group(hierarchy)["x"]


def test_a_node_is_a_location(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "a.zarr")
    inner = zarrfs.create_group(group, "inner")
    array = zarrfs.create_array(inner, "x", data=np.arange(3))
    assert array.path == "inner/x"
    assert zarrfs.open(group, "inner/x") == zarrfs.open(inner, "x") == zarrfs.open(array) == array
    assert consolidate_metadata(group).nmembers(None) == 2


def test_the_document_of_an_n5_node_refers_to_its_directory(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.n5", "x", data=np.arange(3), zarr_format="n5")
    assert zarrfs.open_array(tmp_path / "a.n5" / "x" / "attributes.json")[2] == 2


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".sqlite", SQLiteStore),
        (".sqlite3", SQLiteStore),
        (".sqldb", SQLiteStore),
        (".db", SQLiteStore),
        (".lmdb", LMDBStore),
        (".dbm", DBMStore),
        (".zip", ZipStore),
        (".zarr", LocalStore),
    ],
)
def test_the_suffix_determines_what_is_created_and_the_content_what_is_opened(
    suffix: str, kind: type[Store], tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    made = zarrfs.create_array(path, "x/y", data=np.arange(3))
    assert isinstance(made.store, kind)
    made.store.close()
    through = zarrfs.create_array(path / "z" / "deep", data=np.arange(4))
    assert isinstance(through.store, kind)
    through.store.close()
    renamed = tmp_path / "renamed"
    if kind is DBMStore:  # which may have several files
        renamed = path
    else:
        path.rename(renamed)
    for location in (renamed / "x" / "y", f"{renamed}/x/y", (renamed / "x" / "y").as_uri()):
        array = zarrfs.open_array(location)
        assert array[...].tolist() == [0, 1, 2]
        array.store.close()


def test_paths_in_a_hierarchy_of_the_draft_name_its_nodes(tmp_path: Path) -> None:
    """Its nodes have no directories."""
    zarrfs.create_array(tmp_path / "d.zarr", "x/y", data=np.arange(3), zarr_format="draft2019")
    for location in (tmp_path / "d.zarr/x/y", (tmp_path / "d.zarr/x/y").as_uri()):
        array = zarrfs.open_array(location, mode="r+")
        assert (array.path, array[...].tolist()) == ("x/y", [0, 1, 2])
    assert zarrfs.open_group(tmp_path / "d.zarr/x").path == "x"
    with pytest.raises(NodeNotFoundError):
        zarrfs.open(tmp_path / "d.zarr/z")
    (tmp_path / "d.zarr/zarr.json").write_text("{")
    with pytest.raises(LocationNotFoundError):
        zarrfs.open(tmp_path / "d.zarr/x/y")


def test_a_new_inner_path_creates_the_store_of_its_suffix(tmp_path: Path) -> None:
    for name, kind in (("a.sqlite", SQLiteStore), ("a.lmdb", LMDBStore), ("a.zip", ZipStore)):
        made = zarrfs.create_array(tmp_path / name / "x", data=np.arange(3))
        assert isinstance(made.store, kind)
        assert made.path == "x"
        made.store.close()


def test_a_database_of_dbm_sqlite3_is_recognized_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    with dbm_sqlite3_store(path) as store:
        group = zarrfs.create_group(store, zarr_format=2)
        group.create_array("a", data=np.arange(5))
    with zarrfs.open_group(path, mode="r") as opened:
        assert isinstance(opened.store, DBMStore)
        assert list(opened["a"][...]) == [0, 1, 2, 3, 4]


def test_a_dbm_database_in_one_file_is_recognized_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python may have no library that stores a database in one file, so only its detection is tested."""
    path = tmp_path / "database"
    path.write_bytes(b"some database")
    opened: list[tuple[Any, ...]] = []

    def record(*arguments: Any) -> Store:
        opened.append(arguments)
        return MemoryStore()

    monkeypatch.setattr(local, "open_database", record)
    with pytest.raises(LocationError, match="is neither a zip file nor a database"):
        locations.open_store(path)
    monkeypatch.setattr(dbm, "find_library_name", lambda name: "dbm.gnu" if name == str(path) else None)
    store, inner = locations.open_store(path)
    assert isinstance(store, MemoryStore)
    assert inner == ""
    assert [call[:3] for call in opened] == [("dbm", str(path), "r")]


@pytest.mark.parametrize(("scheme", "suffix"), [("sqlite", ".sqldb"), ("dbm", ".dbm"), ("lmdb", ".lmdb")])
def test_a_database_url_may_contain_an_inner_path(scheme: str, suffix: str, tmp_path: Path) -> None:
    url = f"{scheme}://{tmp_path}/a{suffix}"
    zarrfs.create_array(f"{url}/x/0", data=np.arange(3)).store.close()
    for location, path in ((f"{url}/x/0", ""), (f"{url}/x", "0"), (url, "x/0"), (f"{url}/", "x/0")):
        array = zarrfs.open_array(location, path)
        assert array[...].tolist() == [0, 1, 2]
        array.store.close()
    zarrfs.create_array(f"{scheme}://{tmp_path}/without", "x", data=np.arange(3)).store.close()
    assert zarrfs.open_array(f"{scheme}://{tmp_path}/without", "x")[2] == 2


def test_storage_options_are_split_between_source_and_target() -> None:
    options = {"allow_external": True, "durable": True, "anon": True}
    assert split_options(options, "s3://a/b", "c.zarr") == (
        {"allow_external": True, "anon": True},
        {"durable": True},
    )
    assert split_options({"allow_external": True}, "a.zarr", "s3://a/b") == ({"allow_external": True}, {})
    with pytest.raises(OptionError, match="must be true or false"):
        open_store({}, storage_options={"allow_external": 5})
    assert isinstance(open_store({}, storage_options={"allow_external": True})[0], MemoryStore)


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    for location in (tmp_path, tmp_path / "a.zip", "memory://x", {}, MemoryStore()):
        with pytest.raises(OptionError, match=r"mode must be one of 'r'.*found 'q'"):
            open_store(location, mode="q")
        with pytest.raises(OptionError, match="mode must be one of 'r'"):
            zarrfs.open(location, mode="q")  # type: ignore[arg-type]


def test_a_read_only_file_system_raises_a_location_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "mkdir", refuse)
    for location in (f"temporary://{tmp_path}", "temporary://"):
        with pytest.raises(LocationError, match="Read-only file system"):
            open_store(location, mode="a")


def test_a_directory_that_cannot_be_created_raises_a_location_error() -> None:
    with pytest.raises(LocationError, match="cannot be opened as an LMDB environment"):
        open_store("lmdb:///proc/a.lmdb", mode="a")
    with pytest.raises(LocationError, match="is not a directory"):
        open_store("temporary:///proc/none", mode="a")
    for location in ("sqlite:///proc/a.sqldb", "dbm:///proc/a.dbm"):
        with pytest.raises(LocationError, match="/proc/a"):
            open_store(location, mode="a")
