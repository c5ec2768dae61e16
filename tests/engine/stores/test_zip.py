"""Tests of ZipStore: members of all kinds, atomic writes, corrupt archives, and compatibility with zarr-python."""

from __future__ import annotations

import errno
import io
import logging
import os
import random
import subprocess
import sys
import threading
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

import zarrfs
from tests.processes import running
from tests.programs import find_program
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zip import directory as directory_module
from zarrfs.engine.stores.zip import spool as spool_module
from zarrfs.engine.stores.zip.directory import Members
from zarrfs.engine.stores.zip.records import (
    CENTRAL_HEADER,
    LOCAL_HEADER,
    central_record,
    end_records,
    local_header,
    moved_record,
)
from zarrfs.engine.stores.zip.remote import RemoteZipStore
from zarrfs.engine.stores.zip.spool import Spool
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import LocationError, ReadOnlyError, StoreError
from zarrfs.testing import CountingStore

UNZIP_PATH = find_program("unzip")


def write_archive(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, value in members:
            out.writestr(name, value)
    return path


def directory(start: int, *members: tuple[str, int, int, int]) -> bytes:
    """Return a central directory at an offset: name, checksum, size and offset of stored members."""
    records = b"".join(
        central_record(name.encode(), 0, crc, size, offset) for name, crc, size, offset in members
    )
    return records + end_records(start, len(records), len(members), b"")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_read_whole_and_by_ranges(method: int, tmp_path: Path) -> None:
    value = bytes(range(256)) * 100
    with ZipStore(write_archive(tmp_path / "a.zip", ("a/b", value), ("empty", b""), method=method)) as store:
        assert bytes(store.get("a/b") or b"") == value
        parts = store.get_ranges("a/b", [ByteRange(300, 5), ByteRange(-3)])
        assert parts is not None
        assert [bytes(part) for part in parts] == [value[300:305], value[-3:]]
        assert bytes(store.get("empty") or b"") == b""
        assert store.size("empty") == 0
        with pytest.raises(ReadOnlyError):
            store.set("a", b"1")


def test_the_last_of_two_members_with_a_name_is_used_and_written_once(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a", b"old")
        with pytest.warns(UserWarning, match="Duplicate"):
            out.writestr("a", b"new")
    with ZipStore(path, "a") as store:
        assert bytes(store.get("a") or b"") == b"new"
        for _ in range(5):
            store.set("b", b"again")
    with zipfile.ZipFile(path) as out:
        assert sorted(out.namelist()) == ["a", "b"]


def test_names_that_leave_the_archive_are_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_archive(
        tmp_path / "a.zip", ("../evil", b"1"), ("/abs", b"1"), ("a/../../b", b"1"), ("fine", b"1")
    )
    with caplog.at_level(logging.WARNING), ZipStore(path) as store:
        assert list(store.list_prefix()) == ["fine"]
    assert len(caplog.records) == 3


@pytest.mark.parametrize("size", [0, 10, 100])
def test_a_file_that_is_not_an_archive_is_refused(size: int, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\3\4" + bytes(size))
    with pytest.raises(LocationError, match="is not a readable zip file"):
        ZipStore(tmp_path / "a.zip")
    with pytest.raises(LocationError, match="cannot be opened"):
        ZipStore(tmp_path / "missing.zip")


def test_a_corrupt_member_is_an_error(tmp_path: Path) -> None:
    value = os.urandom(5000)
    path = write_archive(tmp_path / "a.zip", ("a", b"x" * 5000), ("b", value), method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    offset = data.index(b"a", 30) + 1
    data[offset : offset + 8] = bytes(8)
    path.write_bytes(data)
    with ZipStore(path) as store:
        with pytest.raises(StoreError, match="'a' is corrupt"):
            store.get("a")
        assert bytes(store.get("b") or b"") == value


def test_an_impossible_declared_size_is_an_error(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"x" * 100), method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\1\2")
    data[central + 24 : central + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with (
        ZipStore(path) as store,
        pytest.raises(StoreError, match="declares 2147483648 bytes, which is impossible"),
    ):
        store.get("a")


def test_a_failed_close_leaves_the_old_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old"))
    store = ZipStore(path, "a")
    store.set("a", b"new")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", raise_no_space)
        with pytest.raises(StoreError, match="No space left"):
            store.close()
        with zipfile.ZipFile(path) as old:
            assert old.read("a") == b"old"
    store.close()
    with zipfile.ZipFile(path) as new:
        assert new.read("a") == b"new"
    assert os.listdir(tmp_path) == ["a.zip"]


def test_an_unclosed_store_is_completed_at_exit(tmp_path: Path) -> None:
    code = f"import zarrfs, numpy as np; a = zarrfs.create_array({str(tmp_path / 'a.zip')!r}, data=np.arange(10))"
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "a.zip")[...], np.arange(10))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_python_and_zarrfs_read_each_other(zarr_format: int, tmp_path: Path) -> None:
    data = np.arange(100, dtype="i4").reshape(10, 10)
    with zarr.storage.ZipStore(tmp_path / "theirs.zip", mode="w") as theirs:
        root = zarr.create_group(theirs, zarr_format=zarr_format)
        root.create_array("a/b", data=data, chunks=(3, 4)) if zarr_format == 3 else root.create_group(
            "a"
        ).create_array("b", data=data, chunks=(3, 4))
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "theirs.zip" / "a" / "b")[...], data)
    group = zarrfs.create_group(tmp_path / "ours.zip", zarr_format=zarr_format)
    group.create_array("a/b", data=data, chunks=(3, 4))
    group.store.close()
    with zarr.storage.ZipStore(tmp_path / "ours.zip", mode="r") as ours:
        np.testing.assert_array_equal(zarr.open_group(ours, mode="r")["a/b"][...], data)


# -- writing ---------------------------------------------------------------------------------------------------


def raise_no_space(*args: object) -> None:
    raise OSError(28, "No space left on device")


def check_archive(path: Path, expected: dict[str, bytes]) -> None:
    """Check the content of an archive with Python, with ZipStore, and with unzip if it is installed."""
    with zipfile.ZipFile(path) as found:
        assert found.testzip() is None
        assert sorted(found.namelist()) == sorted(expected)
        for name, value in expected.items():
            assert found.read(name) == value
    with ZipStore(path) as store:
        for name, value in expected.items():
            assert bytes(store.get(name) or b"") == value
    if UNZIP_PATH is not None and expected:
        result = subprocess.run([UNZIP_PATH, "-tqq", str(path)], capture_output=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert not result.stderr


def member_names_by_local_headers(path: Path) -> list[str]:
    """Return the names of the members that a sequential reader finds by the local headers."""
    data = path.read_bytes()
    names = []
    offset = 0
    while data[offset : offset + 4] == b"PK\3\4":
        fields = LOCAL_HEADER.unpack_from(data, offset)
        flags, compressed_size, name_size, extra_size = fields[2], fields[7], fields[9], fields[10]
        assert not flags & 8
        names.append(data[offset + 30 : offset + 30 + name_size].decode())
        offset += 30 + name_size + extra_size + compressed_size
    assert data[offset : offset + 4] in (b"PK\1\2", b"PK\5\6")  # the central directory or the end record
    return names


def test_written_values_are_not_retained_in_memory(tmp_path: Path) -> None:
    one = os.urandom(1 << 20)
    tracemalloc.start()
    try:
        with ZipStore(tmp_path / "a.zip", "w") as store:
            for number in range(48):
                store.set(f"c/{number}", memoryview(one))
            for number in range(48):
                store.set(f"c/{number}", memoryview(one))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    # The archive does not contain the replaced values.
    assert 48 << 20 < (tmp_path / "a.zip").stat().st_size < 51 << 20
    check_archive(tmp_path / "a.zip", {f"c/{number}": one for number in range(48)})


def test_a_record_that_moves_retains_its_other_fields() -> None:
    zip64, empty, other = b"\1\0\4\0abcd", b"\7\0\0\0", b"\2\1\3\0xyz"
    record = bytearray(central_record(b"name", 0, 7, 10, 5))
    name_end = CENTRAL_HEADER.size + 4
    for extra, expected in (
        (b"", b""),
        (zip64, b""),
        (empty, empty),
        (other + zip64 + empty, other + empty),
        (zip64 + empty, empty),
        (other + b"\1\0", other),  # incomplete
    ):
        record[30:32] = len(extra).to_bytes(2, "little")
        moved = moved_record(bytes(record[:name_end]) + extra + b"comment", 9)
        assert moved[42:46] == b"\x09\0\0\0"
        assert moved[name_end:] == expected + b"comment"
        far = moved_record(moved, 5 << 30)
        assert far[42:46] == b"\xff" * 4
        assert far[name_end:] == b"\1\0\x08\0" + (5 << 30).to_bytes(8, "little") + expected + b"comment"
        assert moved_record(far, 9)[name_end:] == expected + b"comment"


def test_a_closed_remote_archive_refuses_every_operation(tmp_path: Path) -> None:
    inner = MemoryStore()
    with ZipStore(tmp_path / "a.zip", "w") as local:
        local.set("a/b", b"1")
    inner.set("a.zip", (tmp_path / "a.zip").read_bytes())
    store = RemoteZipStore(inner, "a.zip")
    assert store.get("a/b") == b"1"
    store.close()
    store.close()
    for operation in (
        lambda: store.get("a/b"),
        lambda: store.size("a/b"),
        lambda: store.stamp("a/b"),
        lambda: store.exists("missing"),
        lambda: store.get_ranges("a/b", [ByteRange(0, 1)]),
        lambda: store.list_dir(),
        lambda: list(store.list_prefix()),
        lambda: store.usage(),
    ):
        with pytest.raises(StoreError, match=r"^zip::.* is closed; open it again"):
            operation()


def test_the_requests_of_a_remote_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "BLOCK_NBYTES", 100_000)
    names = [f"c/{number}" for number in range(5000)]
    # The size, the end, and blocks of the directory. The last block of the largest one is in the end.
    for count, requests in ((100, 2), (1500, 3), (5000, 4)):
        write_archive(tmp_path / "a.zip", *((name, name.encode()) for name in names[:count]))
        counted = CountingStore(LocalStore(tmp_path, read_only=True))
        with RemoteZipStore(counted, "a.zip") as store:
            assert counted.calls["size"] + counted.calls["get_ranges"] == requests
            assert sorted(store.list_prefix()) == sorted(names[:count])
            assert all(store.get(name) == name.encode() for name in names[:count:10])


def test_an_archive_with_more_than_65535_members_uses_zip64(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    expected = {f"c/{number // 1000}/{number}": b"%d" % number for number in range(65_600)}
    with ZipStore(path, "w") as store:
        for key, value in expected.items():
            store.set(key, value)
        assert len(store.list_dir("c").prefixes) == 66
    with zipfile.ZipFile(path) as found:
        assert found.namelist() == list(expected)
    with ZipStore(path, "a") as store:
        store.delete("c/0/7")
        store.set("c/1/1007", b"new")
        store.set("more", b"1")
    del expected["c/0/7"]
    check_archive(path, expected | {"c/1/1007": b"new", "more": b"1"})
    with sync(zarr.storage.ZipStore.open(path, mode="r")) as theirs:
        found = sync(theirs.get("c/65/65599", default_buffer_prototype()))
        assert found is not None
        assert found.to_bytes() == b"65599"


def test_members_beyond_four_gibibytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "MIN_SIZE_PER_WASTE", 0)  # never compacted
    path = tmp_path / "a.zip"
    spool = Spool(str(tmp_path), None, 0)
    spool.end = 5 << 30  # a hole instead of 5 GiB of values
    members = Members()
    for name in ("a", "b/c"):
        members.set(name, spool.write(name, [b"123", b"4"], 4, zlib.crc32(b"1234"), 1))
    spool.complete(members, str(path), False, 1)
    check_archive(path, {"a": b"1234", "b/c": b"1234"})
    assert path.stat().st_size > 5 << 30
    assert path.stat().st_blocks < 1000


def test_the_directory_of_a_member_larger_than_four_gibibytes(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    size = (4 << 30) + 5
    header = local_header("a", size, 7)
    with open(path, "wb") as file:
        file.write(header)
        file.seek(size, os.SEEK_CUR)
        file.write(directory(len(header) + size, ("a", 7, size, 0)))
    with zipfile.ZipFile(path) as found:
        assert found.getinfo("a").file_size == size
        with found.open("a") as stream:
            assert stream.read(10) == bytes(10)
    with ZipStore(path) as store:
        assert store.size("a") == size
        assert store.get_ranges("a", [ByteRange(-2)]) == [bytes(2)]


@pytest.mark.parametrize("seed", [*range(8), 53])
def test_random_changes_match_a_dictionary(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    path = tmp_path / "a.zip"
    expected: dict[str, bytes] = {}
    max_nbytes = rng.choice([50, 5_000, 100_000])
    monkeypatch.setattr(spool_module, "MIN_COMPACTED_NBYTES", 2 * max_nbytes)
    readers = []
    for _ in range(8):
        with ZipStore(path, "a") as store:
            for _ in range(rng.randrange(12)):
                key = f"{rng.randrange(3)}/ö{rng.randrange(6)}"
                if rng.random() < 0.3:
                    store.delete(key)
                    expected.pop(key, None)
                else:
                    expected[key] = rng.randbytes(rng.randrange(max_nbytes))
                    store.set(key, expected[key])
                if rng.random() < 0.2:
                    # A failed attempt must not affect later ones.
                    with monkeypatch.context() as patched, suppress(StoreError):
                        patched.setattr(os, "replace", raise_no_space)
                        store.flush()
                if rng.random() < 0.1:
                    store.flush()
                    check_archive(path, expected)
                assert {name: store.get(name) for name in store.list_prefix()} == expected
        check_archive(path, expected)
        assert set(expected) <= set(member_names_by_local_headers(path))
        readers.append((ZipStore(path), dict(expected)))
    assert os.listdir(tmp_path) == ["a.zip"]
    for reader, old_values in readers:  # readers of old archives continue to read them
        with reader:
            assert {name: reader.get(name) for name in reader.list_prefix()} == old_values


def test_the_file_of_a_value_that_is_replaced_repeatedly_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "MIN_COMPACTED_NBYTES", 50_000)
    path = write_archive(tmp_path / "a.zip", ("old", b"old"))
    with ZipStore(path, "a") as store:
        store.set("other", b"1")
        for number in range(100):
            store.set("a", b"%09d" % number * 1000)
            (temporary,) = {*os.listdir(tmp_path)} - {"a.zip"}
            assert (tmp_path / temporary).stat().st_size < 80_000
            assert store.get("a") == b"%09d" % number * 1000
            assert store.get("other") == b"1"
    check_archive(path, {"old": b"old", "other": b"1", "a": b"000000099" * 1000})
    assert path.stat().st_size < 12_000


def test_a_failed_compaction_leaves_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "MIN_COMPACTED_NBYTES", 0)
    with ZipStore(tmp_path / "a.zip", "w") as store:
        store.set("b", b"1")
        with monkeypatch.context() as patched:
            patched.setattr(os, "copy_file_range", raise_no_space)
            for number in range(10):
                store.set("a", b"%d" % number)
                assert (store.get("a"), store.get("b")) == (b"%d" % number, b"1")
        assert len(os.listdir(tmp_path)) == 1
    check_archive(tmp_path / "a.zip", {"a": b"9", "b": b"1"})


def test_large_gaps_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with ZipStore(path, "w") as store:
        for number in range(10):
            store.set(str(number), bytes(100_000))
    with ZipStore(path, "a") as store:
        for number in range(0, 10, 2):
            store.delete(str(number))
        store.set("new", b"1")
    check_archive(path, {str(number): bytes(100_000) for number in range(1, 10, 2)} | {"new": b"1"})
    assert path.stat().st_size < 502_000
    assert member_names_by_local_headers(path) == ["1", "3", "5", "7", "9", "new"]


def test_members_of_other_programs_are_copied_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    # The stream is not seekable, so zipfile writes the sizes after the data.
    stream = io.BytesIO()
    stream.seekable = lambda: False  # type: ignore[method-assign]
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as out:
        out.comment = b"of the archive"
        info = zipfile.ZipInfo("packed", (2001, 2, 3, 4, 5, 6))
        info.compress_type, info.external_attr, info.comment = zipfile.ZIP_DEFLATED, 0o600 << 16, b"kept"
        out.writestr(info, b"x" * 10_000)
        out.writestr("gone", b"y" * 1000)
        out.writestr("größe", b"z" * 1000)
        out.writestr("bzip", b"w" * 1000, zipfile.ZIP_BZIP2)
    path.write_bytes(stream.getvalue())
    path.chmod(0o640)
    with ZipStore(path, "a") as store:
        store.delete("gone")
        store.set("new", b"1")
    with zipfile.ZipFile(path) as found:
        assert found.comment == b"of the archive"
        assert found.testzip() is None
        assert found.namelist() == ["packed", "größe", "bzip", "new"]
        again = found.getinfo("packed")
        assert again.date_time == info.date_time
        assert again.external_attr == 0o600 << 16
        assert again.comment == b"kept"
        assert again.compress_size < 100
        assert found.read("größe") == b"z" * 1000
        assert found.read("bzip") == b"w" * 1000
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("deletes_most", [False, True])
def test_members_without_a_valid_key_are_retained(
    deletes_most: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With few deletions the new members are added to a copy of the archive, else all members are copied one by one."""
    path = write_archive(tmp_path / "a.zip", ("a", bytes(10_000)), ("../other", b"1" * 100), ("/abs", b"2"))
    with caplog.at_level(logging.WARNING), ZipStore(path, "a") as store:
        store.set("new", b"3")
        if deletes_most:
            store.delete("a")
    assert (path.stat().st_size < 10_000) == deletes_most
    with zipfile.ZipFile(path) as found:
        assert found.testzip() is None
        assert sorted(set(found.namelist()) - {"a"}) == ["../other", "/abs", "new"]
        assert found.read("../other") == b"1" * 100
        assert found.read("/abs") == b"2"


def test_concurrent_reads_and_writes_return_whole_values(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip", "w") as store:
        store.set("0", b"0" * 10)
        errors: list[BaseException] = []

        def replace(own: int) -> None:
            rng = random.Random(own)
            try:
                for _ in range(500):
                    store.set(str(rng.randrange(4)), b"%d" % rng.randrange(10) * rng.randrange(1, 20_000))
            except BaseException as error:
                errors.append(error)

        def read() -> None:
            try:
                for number in range(2000):
                    value = bytes(store.get(str(number % 4)) or b"")
                    assert len(set(value)) <= 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=replace, args=(own,)) for own in (1, 2)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        expected = {key: bytes(store.get(key) or b"") for key in store.list_prefix()}
    check_archive(tmp_path / "a.zip", expected)


SMALL_DISK = """
import resource, sys
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
store = ZipStore(sys.argv[1], "a")
store.set("a", b"changed")
written = 0
try:
    while True:
        store.set(str(written), bytes(100_000))
        written += 1
except StoreError as error:
    print(written, error)
assert store.get("a") == b"changed"
assert store.get(str(written)) is None
store.delete("0")
store.set("1", b"fits")  # completed when the interpreter exits
"""


def test_a_failed_write_on_a_full_disk_leaves_the_other_values(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old"), ("b", b"old"))
    result = subprocess.run(
        [sys.executable, "-c", SMALL_DISK, path], capture_output=True, text=True, check=True
    )
    written, _, message = result.stdout.partition(" ")
    assert "cannot be written" in message
    expected = {str(number): bytes(100_000) for number in range(int(written))}
    del expected["0"]
    check_archive(path, expected | {"a": b"changed", "b": b"old", "1": b"fits"})
    assert os.listdir(tmp_path) == ["a.zip"]


def test_a_failed_close_on_a_full_disk_leaves_the_old_archive(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old" * 10), ("b", bytes(1300)))
    code = SMALL_DISK.split("written = 0")[0].replace("1 << 20", "1500") + (
        "store.set('c', b'2')\nbefore = open(sys.argv[1], 'rb').read()\n"
        "try:\n    store.close()\nexcept StoreError as error:\n    print(error)\n"
        "else:\n    raise SystemExit('closed')\n"
        "assert open(sys.argv[1], 'rb').read() == before\n"
        "store.delete('b')\nstore.set('a', b'1')\nassert store.get('c') == b'2'\n"  # completed at exit
    )
    result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert "cannot be written" in result.stdout
    assert not result.stderr
    check_archive(path, {"a": b"1", "c": b"2"})
    assert os.listdir(tmp_path) == ["a.zip"]


KILLED = """
import sys
from zarrfs.engine.stores.zip.store import ZipStore
for number in range(1, 100_000):
    with ZipStore(sys.argv[1], "a") as store:
        for key in "abc":
            store.set(key, b"%09d" % number * 3000)
        store.delete("d" if number % 2 else "e")
        store.set("e" if number % 2 else "d", b"%09d" % number)
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_the_old_or_the_new_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    write_archive(path, *((key, b"%09d" % 0 * 3000) for key in "abc"), ("d", b"%09d" % 0))
    rng = random.Random(1)
    for _ in range(12):
        with running([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(rng.randint(1, 40)):
                last = int(writer.stdout.readline())
            writer.kill()
            rest = writer.stdout.read().split()
        last = int(rest[-1]) if rest else last
        with zipfile.ZipFile(path) as found:
            assert found.testzip() is None
            values = {found.read(name)[:9] for name in found.namelist()}
            assert len(found.namelist()) == 4
        assert len(values) == 1
        assert int(values.pop()) in (last, last + 1)
    with ZipStore(path, "a") as store:
        store.set("a", b"1")
        left = [name for name in os.listdir(tmp_path) if name != "a.zip"]
        assert len(left) == 1  # the file of this store; the files of the killed writers were removed
        with ZipStore(path) as other:
            assert other.clean(dry_run=True) == []
    assert os.listdir(tmp_path) == ["a.zip"]


def test_a_forked_process_reads_the_old_values_and_cannot_write(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("old", b"old"))
    code = f"""
import os
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import StoreError
store = ZipStore({str(path)!r}, "a")
store.set("a", b"before" * 100)
store.set("b", b"before" * 100)
read_end, write_end = os.pipe()
child = os.fork()
if not child:
    os.read(read_end, 1)
    assert store.get("a") == store.get("b") == b"before" * 100
    assert store.get("old") == b"old"
    try:
        store.set("c", b"1")
    except StoreError as error:
        assert "before this process was forked" in str(error)
    else:
        raise AssertionError
    raise SystemExit(0)  # a normal exit, with exit handlers
store.delete("b")
for key in "acde":
    store.set(key, b"after." * 100)
store.flush()
store.set("f", b"after." * 100)
os.write(write_end, b"1")
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    check_archive(path, {"old": b"old"} | dict.fromkeys("acdef", b"after." * 100))
    assert os.listdir(tmp_path) == ["a.zip"]


def test_changes_of_another_process_are_not_overwritten(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old"))
    outdated_store = ZipStore(path, "a")
    outdated_store.set("b", b"1")
    code = "import sys; from zarrfs.engine.stores.zip.store import ZipStore; ZipStore(sys.argv[1], 'a').set('c', b'2')"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    with ZipStore(path, "a") as newer:
        assert newer.get("c") == b"2"
    with pytest.raises(StoreError, match="changed by another process"):
        outdated_store.close()
    check_archive(path, {"a": b"old", "c": b"2"})
    outdated_store.discard()
    assert os.listdir(tmp_path) == ["a.zip"]


def test_stores_of_one_process_share_their_writes(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old"))
    one, other = ZipStore(path, "a"), ZipStore(path, "a")
    one.set("b", b"1")
    assert other.get("b") == b"1"
    other.set("c", b"2")
    assert one.list_dir().keys == ["a", "b", "c"]
    one.close()
    check_archive(path, {"a": b"old", "b": b"1", "c": b"2"})
    other.delete("b")
    with ZipStore(path) as reader:
        assert reader.list_dir().keys == ["a", "c"]
    with ZipStore(path, "w") as truncating_store:
        truncating_store.set("d", b"3")
        assert other.list_dir().keys == ["d"]
    other.close()
    check_archive(path, {"d": b"3"})
    assert os.listdir(tmp_path) == ["a.zip"]


THREADS = """
import sys, threading
import numpy as np
import zarrfs

def work(number):
    array = zarrfs.open_array(sys.argv[1], mode="r+")
    for _ in range(5):
        array.append(np.full(3, number))
    {forget}

threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
kept = []
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("forget", ["kept.append(array)", "del array"], ids=["at exit", "when collected"])
def test_unclosed_stores_of_several_threads_are_completed(forget: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    zarrfs.create_array(path, shape=0, chunks=7, dtype="i4").store.close()
    code = THREADS.format(forget=forget)
    result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert result.stderr == ""
    with zarrfs.open_array(path).store as store:
        values = zarrfs.open_array(store)[...]
    assert sorted(values.tolist()) == sorted(list(range(6)) * 15)
    assert os.listdir(tmp_path) == ["a.zip"]


def test_a_new_archive_can_be_opened_again_before_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr.zip"
    array = zarrfs.create_array(path, "x/y", data=np.arange(3))
    assert not path.exists()
    changed = zarrfs.open_array(path, "x/y", mode="r+")
    assert changed[...].tolist() == [0, 1, 2]
    changed[0] = 5
    assert array[0] == 5
    inner = zarrfs.open_array(path / "x" / "y", mode="a")
    assert inner[0] == 5
    read = zarrfs.open_array(path / "x" / "y")
    assert read[...].tolist() == [5, 1, 2]
    for node in (array, changed, inner, read):
        node.store.close()


# -- corrupt and malicious archives ----------------------------------------------------------------------------


def damage(path: Path, change: Callable[[bytearray], None]) -> Path:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return path


def test_the_checksum_of_a_stored_member_is_checked(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"0123456789"), method=zipfile.ZIP_STORED)

    def change(data: bytearray) -> None:
        data[data.index(b"0123456789")] = ord("x")

    with ZipStore(damage(path, change)) as store:
        for read in (
            lambda: store.get("a"),
            lambda: store.get_within("a", 100),
            lambda: store.get_into("a", memoryview(bytearray(10))),
            lambda: store.get_ranges("a", [ByteRange(0)]),
            lambda: store.get_ranges("a", [ByteRange(2, 3), ByteRange(0, 10)]),
        ):
            with pytest.raises(StoreError, match=r"member 'a' is corrupt: .*checksum"):
                read()
        assert store.get_ranges("a", [ByteRange(2, 3)]) == [b"234"]
    remote = RemoteZipStore(LocalStore(tmp_path, read_only=True), "a.zip")
    with pytest.raises(StoreError, match=r"member 'a' is corrupt: .*checksum"):
        remote.get("a")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("offset", "value", "field"),
    [
        (30, b"x", "name"),
        (8, b"\x63", "method"),
        (6, b"\x01", "method"),
        (14, b"\x01\x02\x03\x04", "checksum"),
        (18, b"\x01", "size"),
        (22, b"\x01", "size"),
    ],
)
def test_a_local_header_that_differs_from_the_directory_is_refused(
    offset: int, value: bytes, field: str, method: int, tmp_path: Path
) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"0123456789" * 5), method=method)

    def change(data: bytearray) -> None:
        data[offset : offset + len(value)] = value

    damage(path, change)
    for store in (ZipStore(path), RemoteZipStore(LocalStore(tmp_path, read_only=True), "a.zip")):
        with (
            store,
            pytest.raises(StoreError, match=f"the {field}.* of member 'a' in its local header differ"),
        ):
            store.get("a")


def test_overlapping_members_are_refused(tmp_path: Path) -> None:
    """An overlapping zip bomb: each member contains the headers and data of the following members."""
    inner = local_header("b", 1000, zlib.crc32(bytes(1000))) + bytes(1000)
    outer = local_header("a", len(inner), zlib.crc32(inner))
    body = outer + inner
    members = [
        ("a", zlib.crc32(inner), len(inner), 0),
        ("b", zlib.crc32(bytes(1000)), 1000, len(outer)),
    ]
    path = tmp_path / "a.zip"
    path.write_bytes(body + directory(len(body), *members))
    for store in (ZipStore(path), RemoteZipStore(LocalStore(tmp_path, read_only=True), "a.zip")):
        with store:
            with pytest.raises(StoreError, match="member 'a' overlaps"):
                store.get("a")
            with pytest.raises(StoreError, match="member 'a' overlaps"):
                store.get_ranges("a", [ByteRange(5, 5)])
            assert bytes(store.get("b") or b"") == bytes(1000)


def test_a_local_header_shared_by_several_names_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"1" * 50))
    body = local_header("a", 50, zlib.crc32(b"1" * 50)) + b"1" * 50
    members = [(name, zlib.crc32(b"1" * 50), 50, 0) for name in "abc"]
    path.write_bytes(body + directory(len(body), *members))
    with ZipStore(path) as store:
        assert store.get("a") == b"1" * 50
        for name in "bc":
            with pytest.raises(StoreError, match="the name of member"):
                store.get(name)


def test_names_in_utf8_and_code_page_437_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name in ("größe", "日本", "plain"):
            made.writestr(name, name.encode())
    with ZipStore(path) as store:
        for name in ("größe", "日本", "plain"):
            assert store.get(name) == name.encode()

    def change(data: bytearray) -> None:
        # Without the flag for UTF-8 the names are in code page 437.
        for signature, flags_offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            start = data.index(signature)
            data[start + flags_offset + 1] &= ~0x08

    damage(path, change)
    with ZipStore(path) as store:
        found = "größe".encode().decode("cp437")
        assert store.get(found) == "größe".encode()


def test_a_member_without_a_name_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"1"), ("b", b"2"))

    def change(data: bytearray) -> None:
        start = data.index(b"PK\1\2")
        data[start + 28 : start + 30] = b"\0\0"  # the size of the name ...
        data[start + 30 : start + 32] = b"\0\0"
        data[start + 32 : start + 34] = b"\1\0"  # ... becomes the size of the comment

    damage(path, change)
    with caplog.at_level(logging.WARNING), ZipStore(path) as store:
        assert list(store.list_prefix()) == ["b"]
    assert "its name is empty" in caplog.text
    caplog.clear()
    with ZipStore(path, "a") as store:
        store.set("c", b"3")
    with ZipStore(path) as store:
        assert list(store.list_prefix()) == ["b", "c"]


def test_a_changed_byte_never_raises_other_errors_or_returns_wrong_values(tmp_path: Path) -> None:
    path = write_archive(
        tmp_path / "a.zip", ("a/b", b"0123456789"), ("c", b"x" * 20), method=zipfile.ZIP_DEFLATED
    )
    good = path.read_bytes()
    logging.getLogger("zarrfs").disabled = True
    try:
        for at in range(len(good)):
            for value in (0, 1, 0x7F, 0xFF, good[at] ^ 0x80):
                path.write_bytes(good[:at] + bytes([value]) + good[at + 1 :])
                with suppress(zarrfs.ZarrError), ZipStore(path) as store:
                    for key in list(store.list_prefix()):
                        with suppress(zarrfs.ZarrError):
                            found = store.get(key)
                            assert found in (b"0123456789", b"x" * 20)
    finally:
        logging.getLogger("zarrfs").disabled = False


def test_a_member_too_large_for_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    size = 1 << 42
    header = local_header("a", size, 0)
    with path.open("wb") as made:
        made.write(header)
        made.seek(len(header) + size)
        made.write(directory(len(header) + size, ("a", 0, size, 0)))
    with ZipStore(path) as store:
        for read in (lambda: store.get("a"), lambda: store.get_ranges("a", [ByteRange(1)])):
            with pytest.raises(StoreError, match="do not fit into memory") as caught:
                read()
            assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize("number", [errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EINVAL])
def test_members_are_copied_without_copy_file_range(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old" * 1000))

    def refuse(*args: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    with ZipStore(path, "a") as store:
        store.set("b", b"1")
    check_archive(path, {"a": b"old" * 1000, "b": b"1"})


def test_a_failed_copy_of_the_old_members_leaves_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_archive(tmp_path / "a.zip", ("a", b"old" * 1000))
    store = ZipStore(path, "a")
    store.set("b", b"1")
    with monkeypatch.context() as patched:
        patched.setattr(os, "copy_file_range", lambda *args: 0)
        with pytest.raises(StoreError, match="became shorter"):
            store.flush()

        def fail(*args: object) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        patched.setattr(os, "copy_file_range", fail)
        with pytest.raises(StoreError, match="Input/output error") as caught:
            store.flush()
        assert caught.value.errno == errno.EIO
    check_archive(path, {"a": b"old" * 1000})
    store.close()
    check_archive(path, {"a": b"old" * 1000, "b": b"1"})


def test_a_closed_store_refuses_all_operations(tmp_path: Path) -> None:
    store = ZipStore(write_archive(tmp_path / "a.zip", ("a", b"old")), "a")
    store.close()
    for work in (
        lambda: store.get("a"),
        lambda: store.list_dir(),
        lambda: list(store.list_prefix()),
        lambda: store.set("a", b"1"),
        lambda: store.delete("a"),
    ):
        with pytest.raises(StoreError, match="is closed"):
            work()


def test_a_link_to_an_archive_is_retained(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = write_archive(tmp_path / "there" / "a.zip", ("a", b"old"))
    (tmp_path / "link.zip").symlink_to(path)
    with ZipStore(tmp_path / "link.zip", "a") as store:
        store.set("b", b"1")
    assert (tmp_path / "link.zip").is_symlink()
    check_archive(path, {"a": b"old", "b": b"1"})


def test_opening_for_reading_completes_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    first = zarrfs.create_array(path, "a", data=np.arange(3))
    second = zarrfs.create_array(path, "b", data=np.arange(4))
    assert first[...].tolist() == [0, 1, 2]
    assert sorted(zarrfs.open_group(path)) == ["a", "b"]
    assert zarrfs.open_array(path, "b")[...].tolist() == second[...].tolist()
    first.store.close()
    second.store.close()


def test_an_error_that_close_has_raised_is_not_logged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = ZipStore(tmp_path / "a.zip", "w")
    store.set("key", b"value")
    with monkeypatch.context() as patched:
        patched.setattr(Spool, "complete", full)
        with pytest.raises(StoreError, match="No space left on device"):
            store.close()
        store._close_and_log_errors()  # what happens when the process ends
        assert caplog.records == []
        unclosed = ZipStore(tmp_path / "b.zip", "w")
        unclosed.set("key", b"value")
        unclosed._close_and_log_errors()
    assert "b.zip cannot be written" in caplog.text
    caplog.clear()
