"""Stores that change while they are mounted: what open files, new lookups and the root show."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_tree import list_names
from tests.threads import Clock
from zarrfs.errors import StoreError
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.content.open_files import OpenFile
from zarrfs.mount.fuse import reported_sizes
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.fuse.reported_sizes import ReportedSizes
from zarrfs.mount.tree.entries import VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore

DATA = np.arange(6000, dtype="u2").reshape(60, 100)
WIDE = np.arange(2**18, dtype="u2").reshape(64, 4096)
"""Reads of all of it are sequential."""


@pytest.fixture
def location(tmp_path: Path) -> Path:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    group.create_array("a", data=DATA, chunks=(10, 100))
    return tmp_path / "s.zarr"


def open_file(tree: Tree, path: str, pool: BlockPool) -> OpenFile:
    entry = tree.lookup(path)
    assert isinstance(entry, VirtualFile)
    return OpenFile(entry.content, pool, tree.follower(path, entry))


def read_all(tree: Tree, path: str) -> bytes:
    entry = tree.lookup(path)
    assert isinstance(entry, VirtualFile)
    return entry.content.read(0, entry.content.size)


def replace_array(location: Path, **options: Any) -> None:
    zarrfs.open_group(location, mode="r+").create_array("a", overwrite=True, **options)


CHANGES: dict[str, Callable[[Path], object]] = {
    "shrinks": lambda path: zarrfs.open_array(path / "a", mode="r+").resize((30, 100)),
    "grows in the last dimension": lambda path: zarrfs.open_array(path / "a", mode="r+").resize((60, 101)),
    "has another data type": lambda path: replace_array(path, data=DATA.view("i2")),
    "has another shape of the same size": lambda path: replace_array(path, data=DATA.reshape(30, 200)),
    "is removed": lambda path: shutil.rmtree(path / "a"),
    "becomes a group": lambda path: zarrfs.open_group(path, mode="r+").create_group("a", overwrite=True),
    "becomes invalid": lambda path: (path / "a" / "zarr.json").write_text("{"),
}


@pytest.mark.parametrize("suffix", [".raw", ".npy", ".json"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_open_file_whose_array_changes_is_stale(location: Path, change: str, suffix: str) -> None:
    clock, pool = Clock(), BlockPool()
    tree = Tree(zarrfs.open(location), clock=clock)
    file = open_file(tree, f"/a{suffix}", pool)
    before = bytes(file.read(0, 100))
    CHANGES[change](location)
    # The metadata have not been compared with the store since. The bytes are the old ones, or there is an error.
    with suppress(StoreError):
        assert bytes(file.read(0, 100)) == before
    clock.now += 2 * REVALIDATION_SECONDS
    with pytest.raises(StoreError, match="since it was opened") as error:
        file.read(0, 100)
    assert error.value.errno == errno.ESTALE
    with pytest.raises(StoreError):
        file.read(0, 100)
    pool.close()


@pytest.mark.parametrize("suffix", [".raw", ".npy", ".json"])
def test_an_open_file_is_never_truncated(location: Path, suffix: str) -> None:
    """As soon as the mount reports another size, no open file ends at the old size."""
    clock, pool = Clock(), BlockPool()
    tree = Tree(zarrfs.open(location), clock=clock)
    file = open_file(tree, f"/a{suffix}", pool)
    size = file.content.size
    assert bytes(file.read(size, 100)) == b""
    zarrfs.open_array(location / "a", mode="r+").append(DATA[:10])
    clock.now += 2 * REVALIDATION_SECONDS
    expected = read_all(tree, f"/a{suffix}")
    if len(expected) == size:
        return
    if suffix == ".raw":
        assert bytes(file.read(0, len(expected))) == expected
    else:
        with pytest.raises(StoreError) as error:
            file.read(0, 100)
        assert error.value.errno == errno.ESTALE
    pool.close()


def test_an_open_file_follows_changes_of_chunks_and_attributes(location: Path) -> None:
    clock = Clock()
    pool = BlockPool(clock=clock)
    tree = Tree(zarrfs.open(location), clock=clock)
    file = open_file(tree, "/a.npy", pool)
    file.read(0, 100)
    array = zarrfs.open_array(location / "a", mode="r+")
    array[:] = DATA + 1
    array.attrs["unit"] = "nm"
    clock.now += 2 * REVALIDATION_SECONDS
    data = bytes(file.read(0, file.content.size))
    assert data.endswith((DATA + 1).tobytes())
    assert data == read_all(tree, "/a.npy")
    pool.close()


def test_a_new_array_is_seen_after_names_were_looked_up_without_success(location: Path) -> None:
    clock = Clock()
    store = CountingStore(zarrfs.open(location).store)
    tree = Tree(zarrfs.open(store), clock=clock)
    tree.lookup("/a.raw")
    for number in range(40):
        assert tree.lookup(f"/missing{number}.raw") is None
    store.reset()
    for number in range(40):
        assert tree.lookup(f"/other{number}.raw") is None
    assert sum(store.calls.values()) == 0, "a listing shows that the names do not exist"
    zarrfs.open_group(location, mode="r+").create_array("b", data=DATA)
    clock.now += 2 * REVALIDATION_SECONDS
    assert isinstance(tree.lookup("/b.raw"), VirtualFile)
    assert "b.raw" in list_names(tree)


@pytest.mark.parametrize("path", ["", "a"])
def test_a_document_that_is_written_again_without_a_change_makes_no_file_stale(
    location: Path, path: str
) -> None:
    zarrfs.open_group(location, mode="r+").create_array("a", data=WIDE, chunks=(8, 4096), overwrite=True)
    clock, pool = Clock(), BlockPool()
    tree = Tree(zarrfs.open(location / path), "a", clock=clock)
    for time in range(3):
        file = open_file(tree, "/a.raw", pool)
        for _ in range(2):
            assert bytes(file.read(0, WIDE.nbytes)) == WIDE.tobytes()
            os.utime(location / "a" / "zarr.json", (time, time))
            clock.now += 2 * REVALIDATION_SECONDS
            pool.clear()
    pool.close()


def test_a_change_is_seen_within_a_second_in_a_file_that_is_opened_again() -> None:
    """The caches of the kernel are filled from those of the server, so that their ages add up."""
    assert 2 * REVALIDATION_SECONDS <= 1


@pytest.mark.parametrize("reported_by", ["look-up", "listing", "summary"])
@pytest.mark.parametrize("rows", [30, 90])
def test_a_file_is_not_opened_while_the_kernel_has_another_size(
    location: Path, reported_by: str, rows: int
) -> None:
    """The kernel would end reads at the size that it has cached. After ESTALE it looks the file up, and opens again."""
    for number in range(300 if reported_by == "summary" else 0):
        zarrfs.create_array(location / f"b{number}", data=DATA[:1])
    operations = ZarrOperations(Tree(zarrfs.open(location), clock=(clock := Clock())), lambda: None)
    if reported_by == "look-up":
        operations.getattr("/a.raw")
    else:
        directory = operations.opendir("/")
        list(operations.read_directory("/", directory, 0, reported_by == "listing"))
        if reported_by == "summary":
            operations.getattr("/a.raw")
        operations.releasedir("/", directory)
    zarrfs.open_array(location / "a", mode="r+").resize((rows, 100))
    clock.now += 2 * REVALIDATION_SECONDS
    for _ in range(2):  # two programs that open it at the same time
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
            operations.open("/a.raw", os.O_RDONLY)
    assert operations.getattr("/a.raw")["st_size"] == rows * 200
    handle = operations.open("/a.raw", os.O_RDONLY)
    assert len(operations.read("/a.raw", 1 << 20, 0, handle)) == rows * 200
    operations.release("/a.raw", handle)
    operations.destroy("/")


def test_reported_sizes_are_kept_as_long_as_the_kernel_may_use_them() -> None:
    clock = Clock()
    sizes = ReportedSizes(1.0, clock)
    sizes.report("/a", 1)
    clock.now += 0.9
    sizes.report("/b", 2)
    clock.now += 0.1
    sizes.report("/c", 3)
    assert sizes.delay("/b", 2) is None
    assert sizes.delay("/d", 2) is None
    assert [sizes.delay(path, 9) is None for path in ("/a", "/b", "/c")] == [False, False, False]
    clock.now += 2.0
    assert [sizes.delay(path, 8) for path in ("/a", "/b", "/c")] == [None, None, None]


def test_a_file_can_be_opened_after_the_kernel_has_asked_for_its_new_size() -> None:
    clock = Clock()
    sizes = ReportedSizes(1.0, clock)
    sizes.report("/a", 1)
    sizes.report("/a", 2)  # another request with the former size may be answered later
    first = sizes.delay("/a", 2)
    assert first == pytest.approx(reported_sizes.SETTLING_SECONDS)
    sizes.report("/a", 2)
    assert sizes.delay("/a", 2) is not None  # it was reported while older replies were on their way
    clock.now += reported_sizes.SETTLING_SECONDS
    assert sizes.delay("/a", 2) == 0
    sizes.report("/a", 2)
    assert sizes.delay("/a", 2) is None
    sizes.report("/a", 2)
    assert sizes.delay("/a", 2) is None


@pytest.mark.parametrize("path", ["", "a"])
def test_a_deleted_store_is_an_error(location: Path, path: str) -> None:
    clock = Clock()
    tree = Tree(zarrfs.open(location, path), clock=clock)
    file_path = "/a.raw"
    assert isinstance(tree.lookup(file_path), VirtualFile)
    shutil.rmtree(location)
    clock.now += 2 * REVALIDATION_SECONDS
    for missing in ("/", file_path, "/other"):
        with pytest.raises(StoreError, match="has been deleted since it was mounted"):
            tree.lookup(missing)
    group = zarrfs.create_group(location)
    group.create_array("a", data=DATA + 5)
    clock.now += 2 * REVALIDATION_SECONDS
    assert read_all(tree, file_path) == (DATA + 5).tobytes()


def test_changed_metadata_of_the_root_are_seen(location: Path) -> None:
    clock = Clock()
    tree = Tree(zarrfs.open(location), clock=clock)
    assert b"colour" not in read_all(tree, "/.group.json")
    zarrfs.open_group(location, mode="r+").attrs["colour"] = "red"
    clock.now += 2 * REVALIDATION_SECONDS
    assert b"colour" in read_all(tree, "/.group.json")


def test_an_array_that_is_the_root_grows(location: Path) -> None:
    clock, pool = Clock(), BlockPool()
    tree = Tree(zarrfs.open(location, "a"), clock=clock)
    file = open_file(tree, "/a.npy", pool)
    file.read(0, 10)
    zarrfs.open_array(location / "a", mode="r+").append(DATA)
    clock.now += 2 * REVALIDATION_SECONDS
    assert read_all(tree, "/a.raw") == DATA.tobytes() * 2
    with pytest.raises(StoreError):
        file.read(0, 10)
    pool.close()


def test_rescan_shows_changes_at_once(location: Path) -> None:
    tree = Tree(zarrfs.open(location), clock=Clock())
    read_all(tree, "/a.raw")
    replace_array(location, data=DATA[:5])
    zarrfs.open_group(location, mode="r+").attrs["colour"] = "red"
    tree.rescan()
    assert read_all(tree, "/a.raw") == DATA[:5].tobytes()
    assert b"colour" in read_all(tree, "/.group.json")


def test_an_immutable_tree_does_not_look_for_changes(location: Path) -> None:
    clock = Clock()
    store = CountingStore(zarrfs.open(location).store)
    tree = Tree(zarrfs.open(store), clock=clock, immutable=True)
    names = list_names(tree)
    for name in names:
        tree.lookup(f"/{name}")
    store.reset()
    clock.now += 10_000
    for name in names:
        tree.lookup(f"/{name}")
    tree.lookup("/missing.raw")
    assert sum(store.calls.values()) == 0


def write_zip(path: Path, data: np.ndarray[Any, Any]) -> None:
    temporary = path.with_name("new.zip")
    with zarrfs.storage.ZipStore(temporary, "w") as store:
        zarrfs.create_group(store).create_array("a", data=data)
    temporary.replace(path)


@pytest.mark.parametrize("path", ["", "a"])
def test_a_replaced_zip_file_is_opened_again(tmp_path: Path, path: str) -> None:
    location = tmp_path / "s.zip"
    write_zip(location, DATA)
    clock, pool = Clock(), BlockPool()
    root = zarrfs.open(location, path)
    tree = Tree(root, clock=clock)
    file = open_file(tree, "/a.raw", pool)
    assert bytes(file.read(0, DATA.nbytes)) == DATA.tobytes()
    for offset in (1, 2):
        write_zip(location, DATA + offset)
        clock.now += 2 * REVALIDATION_SECONDS
        assert read_all(tree, "/a.raw") == (DATA + offset).tobytes()
        with pytest.raises(StoreError) as error:
            file.read(0, DATA.nbytes)
        assert error.value.errno == errno.ESTALE
        file = open_file(tree, "/a.raw", pool)
    location.write_bytes(b"not a zip file")
    clock.now += 2 * REVALIDATION_SECONDS
    with pytest.raises(StoreError):
        tree.lookup("/a.raw")
    location.unlink()
    clock.now += 2 * REVALIDATION_SECONDS
    with pytest.raises(StoreError):
        tree.lookup("/")
    write_zip(location, DATA)
    clock.now += 2 * REVALIDATION_SECONDS
    assert read_all(tree, "/a.raw") == DATA.tobytes()
    tree.close()
    root.close()
    pool.close()
