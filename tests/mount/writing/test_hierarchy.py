"""Creating, removing, renaming and resizing nodes, and setting attributes, by file operations."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.test_operations import errno_of
from tests.mount.writing.layouts import create_array, operations_of, read_file, write_file
from zarrfs.cli.creation_options import CompressorType
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MountError
from zarrfs.mount.options import CreationOptions
from zarrfs.mount.writing.local_storage import check_store
from zarrfs.mount.writing.operations import WritableOperations


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    create_array(store, "compressed")
    zarrfs.open_group(store, mode="r+").create_group("inner")
    return store


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def names(operations: WritableOperations, path: str = "/") -> list[str]:
    return sorted(name for name in operations.readdir(path, 0) if not name.startswith("."))


@pytest.mark.parametrize(
    "data",
    [
        np.arange(1000, dtype="<u2").reshape(10, 100),
        np.asfortranarray(np.arange(60, dtype="<f4").reshape(4, 15)),
        np.arange(60, dtype=">i4").reshape(4, 15),
        np.array([True, False]),
        np.array(3.5),
        np.zeros((0, 4), "u1"),
        np.array([(1, 2.0)], [("a", "<i2"), ("b", "<f8")]),
        np.array([b"ab", b"c"]),
    ],
    ids=lambda data: f"{data.dtype} {data.shape}",
)
def test_a_numpy_file_becomes_an_array(store: MemoryStore, data: Any) -> None:
    operations = operations_of(store)
    write_file(operations, "/inner/new.npy", npy(data), size=100)
    assert names(operations, "/inner")[:2] == ["new.json", "new.npy"]
    array = zarrfs.open_array(store, "inner/new")
    assert (array.shape, array.dtype.newbyteorder("=")) == (data.shape, data.dtype.newbyteorder("="))
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(np.load(io.BytesIO(read_file(operations, "/inner/new.npy"))), data)
    operations.destroy("/")


def test_an_incomplete_numpy_file_stays_visible_until_it_is_complete(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    content = npy(np.arange(100))
    write_file(operations, "/new.npy", content[:-1])
    assert errno_of(operations.rename, "/new.npy", "/other.npy") == errno.EINVAL
    assert "expected 928" in caplog.text
    assert "new" not in zarrfs.open_group(store)
    assert read_file(operations, "/new.npy") == content[:-1]
    handle = operations.open("/new.npy", os.O_RDWR)
    operations.write("/new.npy", content[-1:], len(content) - 1, handle)
    operations.flush("/new.npy", handle)
    operations.release("/new.npy", handle)
    np.testing.assert_array_equal(zarrfs.open_array(store, "new")[...], np.arange(100))
    for bad in (b"text", npy(np.array([{}], object)), content + b"x"):
        assert errno_of(write_file, operations, "/bad.npy", bad) == errno.EINVAL
        operations.unlink("/bad.npy")
    operations.destroy("/")
    assert sorted(zarrfs.open_group(store)) == ["img", "inner", "new"]


def test_a_file_that_is_never_completed_is_reported(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    write_file(operations, "/new.npy", npy(np.arange(9))[:-1])
    operations.destroy("/")
    assert "/new.npy: the file is lost" in caplog.text


def test_a_replaced_array_keeps_its_attributes_and_codecs(store: MemoryStore) -> None:
    old = zarrfs.open_array(store, "img", mode="r+")
    old.attrs["scale"] = 3
    operations = operations_of(store)
    reader = operations.open("/img.raw", os.O_RDONLY)
    operations.read("/img.raw", 10, 0, reader)
    for data in (np.ones((5, 6, 7), "<u2"), np.ones((5, 6), "<u2")):
        handle = operations.open("/img.npy", os.O_WRONLY | os.O_TRUNC)
        operations.write("/img.npy", npy(data), 0, handle)
        operations.flush("/img.npy", handle)
        operations.release("/img.npy", handle)
        array = zarrfs.open_array(store, "img")
        np.testing.assert_array_equal(array[...], data)
        assert dict(array.attrs) == {"scale": 3}
        assert bytes(operations.read("/img.raw", 10, 0, reader)) == data.tobytes()[:10]
        if data.ndim == 3:
            assert (array.chunks, array.spec.codecs) == (old.chunks, old.spec.codecs)
    operations.destroy("/")


def test_a_file_that_is_truncated_and_closed_empty_leaves_the_array(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    before = zarrfs.open_array(store, "img")[...]
    operations = operations_of(store)
    handle = operations.open("/img.npy", os.O_WRONLY | os.O_TRUNC)
    assert operations.getattr("/img.npy")["st_size"] == 0
    operations.flush("/img.npy", handle)
    operations.release("/img.npy", handle)
    assert "unchanged" in caplog.text
    assert operations.getattr("/img.npy")["st_size"] == 128 + before.nbytes
    operations.destroy("/")
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], before)


def test_options_of_the_mount_and_of_a_file_determine_how_an_array_is_stored(store: MemoryStore) -> None:
    operations = operations_of(store, options=CreationOptions(None, (5, 6), "gzip"))
    data = np.arange(1200, dtype="<u2").reshape(30, 40)
    write_file(operations, "/a.npy", npy(data))
    assert zarrfs.open_array(store, "a").chunks == (5, 6)
    assert "gzip" in str(zarrfs.open_array(store, "a").metadata)
    operations.release("/b.npy", operations.create("/b.npy", 0o644))
    operations.setxattr("/b.npy", "user.zarr.chunks", b"[7, 8]", 0)
    operations.setxattr("/b.npy", "user.zarr.attrs.unit", b"nm", 0)
    assert operations.getxattr("/b.npy", "user.zarr.chunks") == b"[7, 8]"
    handle = operations.open("/b.npy", os.O_WRONLY | os.O_TRUNC)
    operations.write("/b.npy", npy(data), 0, handle)
    operations.flush("/b.npy", handle)
    operations.release("/b.npy", handle)
    array = zarrfs.open_array(store, "b")
    assert (array.chunks, dict(array.attrs)) == ((7, 8), {"unit": "nm"})
    operations.destroy("/")


def test_new_arrays_are_not_compressed_if_the_options_say_so(store: MemoryStore) -> None:
    compressor = CompressorType().convert("none", None, None)
    operations = operations_of(store, options=CreationOptions(compressors=compressor))
    data = np.arange(1200, dtype="<u2").reshape(30, 40)
    write_file(operations, "/a.npy", npy(data))
    operations.destroy("/")
    array = zarrfs.open_array(store, "a")
    np.testing.assert_array_equal(array[...], data)
    assert array.compressors == ()


def test_a_read_only_file_system_is_not_mounted_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_store(LocalStore(tmp_path))
    found = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda path: found)
    with pytest.raises(MountError, match=r"is on a read-only file system.* mount it without --rw"):
        check_store(LocalStore(tmp_path))


def test_only_the_process_that_opened_a_file_completes_it(store: MemoryStore) -> None:
    process = [1]
    operations = operations_of(store, caller=lambda: process[0])
    before = zarrfs.open_array(store, "img")[...]
    data = np.arange(2 * before.size, dtype="<u2").reshape(18, 10, 11)
    half = data.nbytes // 2 - 20
    writer = operations.open("/img.raw", os.O_WRONLY | os.O_TRUNC)
    operations.write("/img.raw", data.tobytes()[:half], 0, writer)
    # Another process inherited the descriptor, or the file is read.
    process[0] = 2
    operations.flush("/img.raw", writer)
    assert len(read_file(operations, "/img.raw")) == half
    process[0] = 1
    reader = operations.open("/img.raw", os.O_RDONLY)
    operations.flush("/img.raw", reader)
    operations.release("/img.raw", reader)
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], before)
    # The process that opened the file ends before the other one.
    process[0] = 2
    operations.write("/img.raw", data.tobytes()[half:], half, writer)
    operations.flush("/img.raw", writer)
    operations.release("/img.raw", writer)
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], data)
    operations.destroy("/")


def test_a_file_that_became_an_array_is_extended(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    data = np.arange(18 * 110, dtype="<u2").reshape(18, 10, 11)
    bounds = [0, 3 * 220, 3 * 220 + 7, data.nbytes]
    handle = operations.open("/img.raw", os.O_WRONLY | os.O_TRUNC)
    for start, stop, rows in zip(bounds, bounds[1:], (3, None, 18), strict=False):
        operations.write("/img.raw", data.tobytes()[start:stop], start, handle)
        assert operations.getattr("/img.raw")["st_size"] == stop
        if rows is None:
            assert errno_of(operations.flush, "/img.raw", handle) == errno.EINVAL
        else:
            operations.flush("/img.raw", handle)
            assert zarrfs.open_array(store, "img").shape == (rows, 10, 11)
    operations.release("/img.raw", handle)
    np.testing.assert_array_equal(zarrfs.open_array(store, "img")[...], data)
    assert "not a whole number of rows" in caplog.text
    operations.destroy("/")


def test_bytes_that_complete_no_row_are_reported_when_the_file_is_closed(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    before = zarrfs.open_array(store, "img")[...]
    operations = operations_of(store)
    handle = operations.open("/img.raw", os.O_WRONLY | os.O_APPEND)
    operations.write("/img.raw", b"abc", before.nbytes, handle)
    assert errno_of(operations.write, "/img.raw", b"abc", before.nbytes + 4, handle) == errno.EFBIG
    assert errno_of(operations.rename, "/img.raw", "/other.raw") == errno.EINVAL
    assert errno_of(operations.flush, "/img.raw", handle) == errno.EINVAL
    operations.release("/img.raw", handle)
    assert "/img.raw: the last 3 bytes are lost" in caplog.text
    assert operations.getattr("/img.raw")["st_size"] == before.nbytes
    # What is cut off again, and what belongs to an array that is removed or replaced, is no error.
    for change in ("truncate", "replace", "remove"):
        handle = operations.open("/img.raw", os.O_RDWR)
        operations.write("/img.raw", b"abc", before.nbytes, handle)
        if change == "truncate":
            operations.truncate("/img.raw", before.nbytes)
        elif change == "replace":
            operations.unlink("/img.npy")
            write_file(operations, "/img.npy", npy(before))
        else:
            for name in ("/img.npy", "/img.raw", "/img.json"):
                operations.unlink(name)
        caplog.clear()
        operations.release("/img.raw", handle)
        assert not caplog.text
    assert names(operations) == ["inner"]
    operations.destroy("/")


def test_a_json_file_and_a_raw_file_create_an_array(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    assert errno_of(write_file, operations, "/new.raw", bytes(48)) == errno.EINVAL
    operations.unlink("/new.raw")
    assert errno_of(write_file, operations, "/new.json", b'{"shape": [2, 3]}') == errno.EINVAL
    operations.unlink("/new.json")
    document = {"shape": [2, 3], "dtype": "<f8", "chunks": [1, 3], "fill_value": 1.5, "attributes": {"a": 1}}
    write_file(operations, "/new.json", json.dumps(document).encode())
    array = zarrfs.open_array(store, "new")
    assert (array.shape, array.chunks, dict(array.attrs), array[1, 2]) == ((2, 3), (1, 3), {"a": 1}, 1.5)
    data = np.arange(12.0).reshape(4, 3)
    handle = operations.open("/new.raw", os.O_WRONLY | os.O_TRUNC)
    operations.write("/new.raw", data.tobytes(), 0, handle)
    operations.flush("/new.raw", handle)
    operations.release("/new.raw", handle)
    np.testing.assert_array_equal(zarrfs.open_array(store, "new")[...], data)
    assert "shape" in caplog.text
    operations.destroy("/")


def test_a_copied_json_file_describes_an_array_that_another_file_created(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    zarrfs.open_group(store, mode="r+")["inner"].create_array(
        "source", data=np.arange(60).reshape(6, 10), chunks=(2, 5), attributes={"a": 1}, fill_value=9
    )
    document = json.loads(read_file(operations, "/inner/source.json"))
    write_file(operations, "/new.npy", read_file(operations, "/inner/source.npy"))
    for name, change in (("/new.json", {}), ("/other.json", {"shape": [7, 10]})):
        if name == "/other.json":
            write_file(operations, "/other.npy", npy(np.arange(60).reshape(6, 10)))
        operations.unlink(name)
        content = json.dumps({**document, **change, "zarr_format": 2}).encode()
        if change:
            assert errno_of(write_file, operations, name, content) == errno.EINVAL
            operations.unlink(name)
        else:
            write_file(operations, name, content)
    array = zarrfs.open_array(store, "new")
    assert (array.chunks, array.fill_value, dict(array.attrs)) == ((2, 5), 9, {"a": 1})
    np.testing.assert_array_equal(array[...], np.arange(60).reshape(6, 10))
    assert "describes an array whose shape is [7, 10]" in caplog.text
    operations.destroy("/")


def test_elements_wait_for_their_array_while_a_tree_is_copied(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    process = [1]
    operations = operations_of(store, caller=lambda: process[0])
    data = np.arange(12.0).reshape(4, 3)
    operations.mkdir("/tree", 0o755)
    write_file(operations, "/tree/new.raw", data.tobytes())
    assert read_file(operations, "/tree/new.raw") == data.tobytes()
    write_file(operations, "/tree/new.json", b'{"shape": [2, 3], "dtype": "<f8"}')
    np.testing.assert_array_equal(zarrfs.open_array(store, "tree/new")[...], data)
    process[0] = 2
    assert errno_of(write_file, operations, "/tree/other.raw", data.tobytes()) == errno.EINVAL
    assert "Create the array first" in caplog.text
    operations.unlink("/tree/other.raw")
    operations.destroy("/")


def test_temporary_files_are_renamed_to_arrays(store: MemoryStore) -> None:
    operations = operations_of(store)
    for number, name in enumerate((".new.npy.Xa81ab", "new.npy.tmp", ".new.npy.swp", "4913", "new.npy~")):
        data = np.arange(number + 1)
        write_file(operations, f"/{name}", npy(data))
        assert name in operations.readdir("/", 0)
        operations.rename(f"/{name}", "/new.npy")
        assert name not in operations.readdir("/", 0)
        np.testing.assert_array_equal(zarrfs.open_array(store, "new")[...], data)
    operations.destroy("/")


def test_names_that_cannot_be_stored_are_refused(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    for name in ("notes.txt", "image.tiff", "image.nii.gz", "name"):
        assert errno_of(operations.create, f"/{name}", 0o644) == errno.EOPNOTSUPP
    assert "a new file must be an array" in caplog.text
    assert errno_of(operations.create, "/nothing/a.npy", 0o644) == errno.ENOENT
    assert errno_of(operations.symlink, "/a", "/b") == errno.EOPNOTSUPP
    assert errno_of(operations.truncate, "/img.npy", 5) == errno.EINVAL
    assert errno_of(operations.truncate, "/img.raw", 5) == errno.EINVAL
    assert errno_of(operations.truncate, "/img.F.raw", 0) == errno.EINVAL
    assert errno_of(operations.truncate, "/inner", 5) == errno.EISDIR
    assert errno_of(operations.rename, "/img.npy", "/img.tif") == errno.EINVAL
    assert errno_of(operations.unlink, "/inner") == errno.EISDIR
    assert errno_of(operations.rmdir, "/img.npy") == errno.ENOTDIR
    assert errno_of(operations.mkdir, "/inner", 0o755) == errno.EEXIST
    operations.destroy("/")


def test_a_header_cannot_be_changed(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    operations = operations_of(store)
    before = read_file(operations, "/img.npy")
    handle = operations.open("/img.npy", os.O_RDWR)
    assert errno_of(operations.write, "/img.npy", b"changed" * 30, 0, handle) == errno.EPERM
    assert errno_of(operations.write, "/img.npy", b"a", len(before), handle) == errno.EFBIG
    assert operations.write("/img.npy", b"abc", len(before) - 1, handle) == 1
    assert read_file(operations, "/img.npy") == before[:-1] + b"a"
    assert "header" in caplog.text
    operations.destroy("/")


def test_an_array_is_removed_with_its_last_name(store: MemoryStore) -> None:
    operations = operations_of(store)
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", b"abc", 0, handle)
    operations.unlink("/img.npy")
    assert names(operations) == ["img.json", "img.raw", "inner"]
    assert errno_of(operations.getattr, "/img.npy") == errno.ENOENT
    assert errno_of(operations.unlink, "/img.npy") == errno.ENOENT
    operations.unlink("/img.json")
    assert "img" in zarrfs.open_group(store)
    operations.unlink("/img.raw")
    assert names(operations) == ["inner"]
    assert list(store.list_prefix("img")) == []
    assert errno_of(operations.write, "/img.raw", b"abc", 0, handle) == errno.ESTALE
    write_file(operations, "/img.npy", npy(np.arange(3)))
    assert names(operations) == ["img.json", "img.npy", "img.raw", "inner"]
    operations.destroy("/")


def test_groups_are_created_and_removed(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    operations = operations_of(store)
    operations.mkdir("/g", 0o755)
    operations.mkdir("/g/h", 0o755)
    assert errno_of(operations.rmdir, "/g") == errno.ENOTEMPTY
    operations.unlink("/g/h/.group.json")
    operations.rmdir("/g/h")
    operations.rename("/g", "/inner/k")
    assert names(operations, "/inner") == ["k"]
    store.set("inner/k/unknown", b"data")
    assert errno_of(operations.rmdir, "/inner/k") == errno.ENOTEMPTY
    store.delete("inner/k/unknown")
    operations.rmdir("/inner/k")
    assert errno_of(operations.rmdir, "/") == errno.EBUSY
    assert sorted(zarrfs.open_group(store)) == ["img", "inner"]
    assert "unknown" in caplog.text
    operations.destroy("/")


def test_a_renamed_array_keeps_written_bytes_and_open_files(store: MemoryStore) -> None:
    expected = bytearray(zarrfs.open_array(store, "img")[...].tobytes())
    operations = operations_of(store)
    handle = operations.open("/img.raw", os.O_RDWR)
    operations.write("/img.raw", b"abc", 1, handle)
    operations.rename("/img.npy", "/inner/other.npy")
    operations.write("/inner/other.raw", b"def", 100, handle)
    expected[1:4], expected[100:103] = b"abc", b"def"
    assert bytes(operations.read("/inner/other.raw", 10_000, 0, handle)) == expected
    write_file(operations, "/target.npy", npy(np.arange(3)))
    operations.rename("/inner/other.raw", "/target.raw")
    operations.destroy("/")
    assert zarrfs.open_array(store, "target")[...].tobytes() == expected
    assert sorted(zarrfs.open_group(store)) == ["inner", "target"]


def test_attributes_are_edited(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    operations = operations_of(store)
    operations.setxattr("/img.npy", "user.zarr.attrs.a", b'{"b": [1]}', 0)
    operations.setxattr("/", "user.zarr.attrs.title", b"text", 0)
    assert operations.getxattr("/img.raw", "user.zarr.attrs.a") == b'{"b": [1]}'
    assert "user.zarr.attrs.a" in operations.listxattr("/img.json")
    for path, key in (("/img.json", "img"), ("/.group.json", "")):
        document = json.loads(read_file(operations, path))
        for change, number in (({"attributes": {"n": 1}}, 0), ({"zarr_format": 7}, errno.EINVAL)):
            handle = operations.open(path, os.O_WRONLY | os.O_TRUNC)
            operations.write(path, json.dumps({**document, **change}).encode(), 0, handle)
            if number:
                assert errno_of(operations.flush, path, handle) == number
                operations.unlink(path)
            else:
                operations.flush(path, handle)
            operations.release(path, handle)
        assert dict(zarrfs.open(store, key).attrs) == {"n": 1}
    operations.setxattr("/img.npy", "user.zarr.shape", operations.getxattr("/img.npy", "user.zarr.shape"), 0)
    assert errno_of(operations.setxattr, "/img.npy", "user.zarr.shape", b"[1]", 0) == errno.EPERM
    assert errno_of(operations.setxattr, "/img.npy", "user.other", b"1", 0) == errno.EOPNOTSUPP
    operations.removexattr("/img.npy", "user.zarr.attrs.n")
    assert errno_of(operations.removexattr, "/img.npy", "user.zarr.attrs.n") == errno.ENODATA
    assert dict(zarrfs.open(store, "img").attrs) == {}
    operations.destroy("/")


def test_an_editor_keeps_a_backup_of_a_document(store: MemoryStore) -> None:
    operations = operations_of(store)
    old = read_file(operations, "/img.json")
    operations.rename("/img.json", "/img.json~")
    assert "img.json" not in operations.readdir("/", 0)
    write_file(operations, "/img.json", old.replace(b'"attributes": {}', b'"attributes": {"a": 1}'))
    assert read_file(operations, "/img.json~") == old
    operations.unlink("/img.json~")
    assert dict(zarrfs.open_array(store, "img").attrs) == {"a": 1}
    assert names(operations) == ["img.json", "img.npy", "img.raw", "inner"]
    operations.destroy("/")


@pytest.mark.parametrize("limit", ["hidden_names.MAX_HIDDEN_NAMES", "pending.MAX_PENDING_FILES"])
def test_a_document_keeps_its_name_if_no_backup_can_be_kept(
    store: MemoryStore, limit: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    operations = operations_of(store)
    monkeypatch.setattr(f"zarrfs.mount.writing.{limit}", 0)
    present = operations.readdir("/", 0)
    assert errno_of(operations.rename, "/img.json", "/img.json~") == errno.ENOSPC
    assert "/img.json" in caplog.text
    assert operations.readdir("/", 0) == present
    operations.destroy("/")


def test_modes_owners_and_times_are_accepted(store: MemoryStore) -> None:
    operations = operations_of(store)
    operations.chmod("/img.npy", 0o600)
    operations.utimens("/img.npy", (1, 1))
    operations.chown("/img.npy", os.getuid() + 1, -1)
    assert errno_of(operations.chown, "/missing.npy", -1, -1) == errno.ENOENT
    assert operations.getattr("/img.npy")["st_uid"] == os.getuid()
    assert operations.access("/img.npy", os.W_OK) == 0
    assert operations.getattr("/img.npy")["st_mode"] & 0o777 == 0o644
    assert operations.getattr("/")["st_mode"] & 0o777 == 0o755
    operations.destroy("/")


def test_a_mounted_array_is_changed_but_not_replaced(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    zarrfs.create_array(store, data=np.arange(12, dtype="<u2").reshape(3, 4), chunks=2)
    operations = operations_of(store)
    (raw,) = (name for name in names(operations) if name.endswith(".raw"))
    path = f"/{raw}"
    handle = operations.open(path, os.O_RDWR)
    operations.write(path, b"ab", 2, handle)
    operations.truncate(path, 2 * 8)
    assert bytes(operations.read(path, 100, 0, handle)) == b"\0\0ab\2\0\3\0\4\0\5\0\6\0\7\0"
    operations.setxattr(path, "user.zarr.attrs.a", b"1", 0)
    document = path.replace(".raw", ".json")
    text = read_file(operations, document).replace(b'"a": 1', b'"b": 2')
    editor = operations.open(document, os.O_WRONLY | os.O_TRUNC)
    operations.write(document, text, 0, editor)
    operations.flush(document, editor)
    operations.release(document, editor)
    for arguments in (
        (operations.unlink, path),
        (operations.rename, path, "/b.raw"),
        (operations.mkdir, "/g", 0),
    ):
        assert errno_of(*arguments) == errno.EPERM
    assert errno_of(operations.create, "/new.npy", 0o644) == errno.EPERM
    assert "the mount presents one array" in caplog.text
    operations.destroy("/")
    array = zarrfs.open_array(store)
    assert (array.shape, dict(array.attrs)) == ((2, 4), {"b": 2})


def test_an_array_with_the_name_of_a_temporary_file_is_replaced(store: MemoryStore) -> None:
    zarrfs.open_group(store, mode="r+").create_array(".hidden", data=np.arange(3))
    operations = operations_of(store)
    handle = operations.open("/.hidden.npy", os.O_WRONLY | os.O_TRUNC)
    operations.write("/.hidden.npy", npy(np.arange(5)), 0, handle)
    operations.flush("/.hidden.npy", handle)
    operations.release("/.hidden.npy", handle)
    assert zarrfs.open_array(store, ".hidden").shape == (5,)
    operations.destroy("/")


def test_directories_of_views_are_removed_with_their_array(store: MemoryStore) -> None:
    operations = operations_of(store)
    zarrfs.open_group(store, mode="r+").create_array("0", data=np.zeros((3, 4, 5), "u1"))
    planes = [name for name in operations.readdir("/0.planes", 0) if name not in (".", "..")]
    assert planes
    for name in planes:
        operations.unlink(f"/0.planes/{name}")
    operations.rmdir("/0.planes")
    assert errno_of(operations.getattr, "/0.planes") == errno.ENOENT
    assert "0" in zarrfs.open_group(store)
    operations.destroy("/")


def test_the_number_of_files_that_are_not_stored_is_limited(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("zarrfs.mount.writing.pending.MAX_PENDING_FILES", 2)
    operations = operations_of(store)
    for name in ("/a.npy", "/b.npy"):
        write_file(operations, name, npy(np.arange(3))[:-1])
    assert errno_of(operations.create, "/c.npy", 0o644) == errno.ENOSPC
    assert "there are 2 files that are not stored" in caplog.text
    operations.unlink("/a.npy")
    write_file(operations, "/c.npy", npy(np.arange(3)))
    assert "c.npy" in names(operations)
    operations.unlink("/b.npy")
    operations.destroy("/")


def test_a_name_with_a_backslash_is_not_that_of_another_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = zarrfs.create_group(tmp_path / "a.zarr")
    for path in ("back/slash", "other"):
        root.create_array(path, data=np.arange(6, dtype="u1"), chunks=2)
    (tmp_path / "a.zarr" / "other").rename(tmp_path / "a.zarr" / "back\\slash")
    operations = operations_of(tmp_path / "a.zarr")
    handle = operations.open("/back\\slash.raw", os.O_RDWR)
    assert operations.write("/back\\slash.raw", b"abc", 1, handle) == 3
    operations.flush("/back\\slash.raw", handle)
    operations.release("/back\\slash.raw", handle)
    for suffix in (".npy", ".json"):
        operations.unlink(f"/back\\slash{suffix}")
    for arguments in (
        (operations.unlink, "/back\\slash.raw"),
        (operations.truncate, "/back\\slash.raw", 3),
        (operations.rename, "/back\\slash.raw", "/new.raw"),
        (operations.rename, "/back/slash.raw", "/back\\new.raw"),
        (operations.create, "/new\\name.npy", 0o644),
        (operations.mkdir, "/new\\group", 0o755),
        (operations.setxattr, "/back\\slash.raw", "user.zarr.attrs.a", b"1", 0),
    ):
        assert errno_of(*arguments) == errno.EINVAL, arguments  # type: ignore[arg-type]
    operations.destroy("/")
    assert bytes(root["back/slash"][...]) == bytes(range(6))
    assert (tmp_path / "a.zarr" / "back\\slash" / "c" / "1").exists()
    assert len(root["back/slash"].attrs) == 0
