"""Files that other programs have stored beside nodes: names, bytes, changes, and what a writable mount refuses."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse
from tests.mount.test_operations import errno_of
from tests.mount.writing.layouts import operations_of
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import LatencyStore

PART = bytes(range(256)) * 10_000

FOREIGN = {
    "notes.txt": b"notes",
    "empty": b"",
    "OME/METADATA.ome.xml": b"<OME/>",
    "points/0/points.parquet/part.0.parquet": PART,
    "points/0/points.parquet/deep/er": b"1",
    "img.npy": b"a view has this name",
    "img.planes/file": b"a directory of planes has this name",
    "text.npy": b"the array has no such view",
    ".group.json": b"hidden",
    "img/inside.txt": b"in an array",
}

TEXT = ("text.json", "text.npy")

SHOWN = {
    "": [".group.json", "OME", "empty", "img.json", "img.npy", "img.raw", "notes.txt", "points", *TEXT],
    "OME": ["METADATA.ome.xml"],
    "points/0": [".group.json", "points.parquet"],
    "points/0/points.parquet": ["deep", "part.0.parquet"],
}


def fill(store: Store, zarr_format: int) -> None:
    root = zarrfs.create_group(store, zarr_format=zarr_format)
    root.create_array("img", data=np.arange(6, dtype="u1").reshape(2, 3))
    root.create_array("text", data=np.array(["a", "bc"], dtype=object), dtype=str)
    root.create_group("points").create_group("0")
    for key, value in FOREIGN.items():
        store.set(key, value)


class RemoteStore(LatencyStore):
    concurrency = 8
    is_remote = True


def local(path: Path) -> Store:
    return LocalStore(path / "a.zarr")


def archive(path: Path) -> Store:
    return ZipStore(path / "a.zip", "a")


def remote(path: Path) -> Store:
    return RemoteStore(MemoryStore(), lambda operation, key: None)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("make", [local, archive, remote])
def test_files_of_other_programs_are_shown_beside_the_nodes(
    make: Callable[[Path], Store], consolidated: bool, zarr_format: int, tmp_path: Path
) -> None:
    store = make(tmp_path)
    fill(store, zarr_format)
    if consolidated:
        zarrfs.consolidate_metadata(store)
    operations = ZarrOperations(Tree(zarrfs.open(store)), lambda: None)
    for directory, names in SHOWN.items():
        assert sorted(operations.readdir(f"/{directory}".rstrip("/") or "/", 0)[2:]) == names, directory
    for name in ("notes.txt", "empty", "text.npy", "OME/METADATA.ome.xml"):
        status = operations.getattr(f"/{name}")
        assert (status["st_size"], status["st_mode"]) == (len(FOREIGN[name]), stat.S_IFREG | 0o444)
        handle = operations.open(f"/{name}", os.O_RDONLY)
        assert bytes(operations.read(f"/{name}", 100, 0, handle)) == FOREIGN[name]
        assert operations.listxattr(f"/{name}") == []
        operations.release(f"/{name}", handle)
    path = "/points/0/points.parquet/part.0.parquet"
    handle = operations.open(path, os.O_RDONLY)
    for start, size in ((len(PART) - 8, 100), (0, len(PART)), (1 << 20, 5), ((1 << 20) - 3, 7)):
        assert bytes(operations.read(path, size, start, handle)) == PART[start : start + size]
    operations.release(path, handle)
    assert operations.getattr("/points/0/points.parquet")["st_mode"] == stat.S_IFDIR | 0o555
    assert operations.getattr("/img.npy")["st_size"] == 128 + 6
    for hidden in ("/zarr.json", "/.zgroup", "/img/inside.txt", "/img.planes/file", "/nothing", "/OME/no"):
        assert errno_of(operations.getattr, hidden) == errno.ENOENT, hidden
    operations.destroy("/")
    store.close()


def test_directories_of_other_programs_are_listed_if_each_array_has_to_be_opened(tmp_path: Path) -> None:
    """The sizes of these headers depend on the names of arrays, so that listings open each array."""
    with local(tmp_path) as store:
        fill(store, 3)
        operations = ZarrOperations(Tree(zarrfs.open(store), views=("nhdr",)), lambda: None)
        assert {"OME", "empty", "img.nhdr", "points"} <= set(operations.readdir("/", 0))
        operations.destroy("/")


def test_a_change_during_a_read_is_an_error_and_a_new_opening_has_the_new_bytes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = local(tmp_path)
    fill(store, 3)
    operations = ZarrOperations(Tree(zarrfs.open(store)), lambda: None)
    handle = operations.open("/notes.txt", os.O_RDONLY)
    assert bytes(operations.read("/notes.txt", 2, 0, handle)) == b"no"
    store.set("notes.txt", b"other")
    assert errno_of(operations.read, "/notes.txt", 2, 2, handle) == errno.ESTALE
    operations.release("/notes.txt", handle)
    handle = operations.open("/notes.txt", os.O_RDONLY)
    assert bytes(operations.read("/notes.txt", 9, 0, handle)) == b"other"
    operations.release("/notes.txt", handle)
    operations.destroy("/")


@pytest.mark.parametrize("kind", ["plain", "consolidated"])
def test_a_listing_of_a_server_takes_no_more_requests_than_the_names_need(kind: str) -> None:
    """Without consolidated metadata no request more than before; with it, one listing for each directory."""
    requests: list[tuple[str, str]] = []
    store = RemoteStore(MemoryStore(), lambda operation, key: requests.append((operation, key)))
    root = zarrfs.create_group(store)
    for index in range(20):
        root.create_array(f"a{index}", data=np.arange(3))
    if kind == "consolidated":
        zarrfs.consolidate_metadata(store)
    tree = Tree(zarrfs.open(store))
    requests.clear()
    directory = tree.lookup("/")
    assert directory is not None
    list(tree.list_entries(directory))  # type: ignore[arg-type]
    assert [request for request in requests if request[0].startswith("list")] == [("list_dir", "")]


def test_a_writable_mount_does_not_change_files_of_other_programs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = local(tmp_path)
    fill(store, 3)
    operations = operations_of(store)
    before = {key: bytes(store.get(key) or b"") for key in store.list_prefix("")}
    assert operations.getattr("/notes.txt")["st_mode"] == stat.S_IFREG | 0o444
    assert operations.getattr("/OME")["st_mode"] == stat.S_IFDIR | 0o555
    for arguments in (
        (operations.open, "/notes.txt", os.O_RDWR),
        (operations.open, "/notes.txt", os.O_WRONLY | os.O_TRUNC),
        (operations.truncate, "/notes.txt", 0),
        (operations.unlink, "/notes.txt"),
        (operations.rename, "/notes.txt", "/other.txt"),
        (operations.rename, "/img.npy", "/OME/new.npy"),
        (operations.rename, "/points", "/OME/points"),
        (operations.rename, "/OME", "/new"),
        (operations.rmdir, "/OME"),
        (operations.mkdir, "/OME/new", 0o755),
        (operations.create, "/OME/new.npy", 0o644),
        (operations.setxattr, "/notes.txt", "user.zarr.attrs.a", b"1", 0),
        (operations.setxattr, "/OME", "user.zarr.attrs.a", b"1", 0),
    ):
        assert errno_of(*arguments) == errno.EPERM, arguments  # type: ignore[arg-type]
    assert errno_of(operations.rename, "/img.npy", "/OME.npy") == errno.EEXIST
    assert errno_of(operations.rmdir, "/points/0") == errno.ENOTEMPTY
    handle = operations.open("/notes.txt", os.O_RDONLY)
    assert bytes(operations.read("/notes.txt", 9, 0, handle)) == b"notes"
    operations.release("/notes.txt", handle)
    operations.rename("/points", "/moved")
    path = "/moved/0/points.parquet/deep/er"
    handle = operations.open(path, os.O_RDONLY)
    assert bytes(operations.read(path, 9, 0, handle)) == b"1"
    operations.release(path, handle)
    operations.destroy("/")
    after = {key: bytes(store.get(key) or b"") for key in store.list_prefix("")}
    assert after == {key.replace("points/", "moved/", 1): value for key, value in before.items()}


@needs_fuse
@pytest.mark.parametrize("options", [(), ("--rw",)])
@pytest.mark.parametrize("compression", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_programs_read_files_of_other_programs(
    compression: int | None, options: tuple[str, ...], tmp_path: Path
) -> None:
    location = tmp_path / "a.zarr"
    fill(LocalStore(location), 3)
    if compression is not None:
        if options:
            return  # one archive is enough
        with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as written:
            for path in sorted(location.rglob("*")):
                if path.is_file():
                    written.write(path, path.relative_to(location).as_posix())
        location = tmp_path / "a.zip"
    with mounted(location, tmp_path / "mnt", *options) as mount:
        found = {
            path.relative_to(mount).as_posix(): path.read_bytes()
            for path in mount.rglob("*")
            if path.is_file() and path.suffix not in (".raw", ".json")
        }
        assert os.stat(mount / "notes.txt").st_blocks == 1
        if compression is None:
            times = [os.stat(each / "notes.txt").st_mtime_ns for each in (mount, location)]
            assert abs(times[0] - times[1]) < 2000
    shown = {key for key in FOREIGN if not key.startswith((".", "img"))}
    assert set(found) - {"img.npy"} == shown
    assert all(found[key] == FOREIGN[key] for key in shown)
