"""A FIFO, a socket, a device or a directory instead of a file is an immediate error.

A test that opens one of them blocks until the time limit of the test suite.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from zarrfs_viewer.images.dataset import open_dataset
from zarrfs_viewer.saved_views.views import load_views

import zarrfs
from tests.engine.stores.special_files import SPECIAL_KINDS, make_special_file
from zarrfs.cli.main import main
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.databases.dbm import DBMStore
from zarrfs.engine.stores.databases.lmdb import LMDBStore
from zarrfs.engine.stores.databases.sqlite import SQLiteStore
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import open_store
from zarrfs.engine.stores.regular_files import check_regular_file, open_regular_file
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import LocationError, StoreError, ZarrError
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.serving import serve

DESCRIPTIONS = {"pipe": "a FIFO", "socket": "a socket", "zero": "a character device"}


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
def test_opening_a_special_file_is_an_error(kind: str, tmp_path: Path) -> None:
    path = make_special_file(tmp_path / "x", kind)
    for check in (open_regular_file, check_regular_file):
        with pytest.raises(StoreError, match=f"x is {DESCRIPTIONS[kind]}.*; expected a regular file"):
            check(path)
        with pytest.raises(IsADirectoryError):
            check(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular_file(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        check_regular_file(tmp_path / "missing", missing_ok=False)
    check_regular_file(tmp_path / "missing")
    (tmp_path / "file").write_bytes(b"12")
    fd = open_regular_file(tmp_path / "file")
    assert os.read(fd, 5) == b"12"
    os.close(fd)


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
@pytest.mark.parametrize("mode", ["r", "r+", "a", "w"])
@pytest.mark.parametrize(
    "location",
    [
        "{}/x",
        "file://{}/x",
        "{}/x/inner/path",
        "{}/x.zip",
        "{}/x.zarr.zip",
        "{}/x.sqlite",
        "{}/x.db",
        "{}/x.lmdb",
        "sqlite://{}/x",
        "sqlite://{}/x/inner",
        "dbm://{}/x",
        "lmdb://{}/x",
        "{}/zarr.json",
        "{}/.zgroup",
    ],
)
def test_a_special_file_as_a_location_is_an_error(
    location: str, mode: str, kind: str, tmp_path: Path
) -> None:
    text = location.format(tmp_path)
    name = text.removeprefix("file://").partition("://")[2] or text.removeprefix("file://")
    make_special_file(Path(name.removesuffix("/inner/path").removesuffix("/inner")), kind)
    with pytest.raises(LocationError, match=DESCRIPTIONS[kind].replace("(", r"\(")):
        open_store(text, mode=mode)


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (ZipStore, ["x"]),
        (lambda path: ZipStore(path, "a"), ["x"]),
        (lambda path: ZipStore(path, "w"), ["x"]),
        (SQLiteStore, ["x", "x-journal", "x-wal", "x-shm"]),
        (DBMStore, ["x", "x.dir", "x.pag", "x.dat", "x.bak", "x.db"]),
        (LMDBStore, ["x", "x/data.mdb", "x/lock.mdb"]),
    ],
)
def test_a_special_file_among_the_files_of_a_store_is_an_error(
    make: Callable[[Path], object], names: list[str], kind: str, tmp_path: Path
) -> None:
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        (folder / name).parent.mkdir(parents=True)
        make_special_file(folder / name, kind)
        with pytest.raises(LocationError, match=DESCRIPTIONS[kind]):
            make(folder / "x")


@pytest.mark.parametrize(
    "make",
    [
        ZipStore,
        lambda path: ZipStore(path, "a"),
        lambda path: ZipStore(path, "w"),
        SQLiteStore,
        lambda path: SQLiteStore(path, read_only=True),
        DBMStore,
    ],
)
def test_a_directory_instead_of_a_file_is_an_error(make: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(LocationError, match=r"[Dd]irectory"):
        make(tmp_path / "x")


@pytest.mark.parametrize(
    "make",
    [
        LocalStore,
        ZipStore,
        lambda path: ZipStore(path, "a"),
        SQLiteStore,
        lambda path: SQLiteStore(path, read_only=True),
        DBMStore,
        LMDBStore,
    ],
)
def test_a_file_with_another_format_is_an_error_and_unchanged(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(b"This is a text file. " * 1000)
    with pytest.raises(LocationError, match="/x"):
        make(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"This is a text file. " * 1000


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
@pytest.mark.parametrize("key", ["zarr.json", "a/zarr.json", "a/c/0"])
def test_a_special_file_as_a_value_is_an_error(key: str, kind: str, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "s").create_array("a", data=np.arange(3), chunks=3)
    zarrfs.create_array(tmp_path / "s", "b", data=np.arange(3))
    (tmp_path / "s" / key).unlink()
    make_special_file(tmp_path / "s" / key, kind)
    store = LocalStore(tmp_path / "s")
    expected = r"expected a regular file|leads out of the store"
    for read in (
        lambda: store.get(key),
        lambda: store.get_within(key, 10),
        lambda: store.get_into(key, memoryview(bytearray(8))),
        lambda: store.get_ranges(key, [ByteRange(0, 1)]),
        lambda: store.size(key),
        lambda: store.stamp(key),
        lambda: zarrfs.open_array(zarrfs.open_group(tmp_path / "s")["a"])[...],
    ):
        with pytest.raises(StoreError, match=expected):
            read()
    with pytest.raises(StoreError, match="expected a regular file"):
        LocalStore(tmp_path / "s", allow_external=True).get(key)
    assert zarrfs.open_array(tmp_path / "s", "b")[...].tolist() == [0, 1, 2]
    result = CliRunner().invoke(main, ["info", str(tmp_path / "s" / "b")], catch_exceptions=False)
    assert result.exit_code == 0


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
def test_commands_the_viewer_and_mounts_refuse_special_files(kind: str, tmp_path: Path) -> None:
    path = make_special_file(tmp_path / "x", kind)
    for command in ("info", "tree", "check"):
        result = CliRunner().invoke(main, [command, str(path)])
        assert isinstance(result.exception, LocationError)
    for location in (path, tmp_path / "x" / "zarr.json"):
        with pytest.raises(ZarrError):
            open_dataset(str(location))
    with pytest.raises(ZarrError, match="expected a regular file"):
        load_views(path)
    (tmp_path / "mnt").mkdir()
    with pytest.raises(LocationError):
        serve(str(path), str(tmp_path / "mnt"), MountOptions())
