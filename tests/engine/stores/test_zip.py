"""What is the zip store's alone: members of all kinds, no name twice, broken archives, and zarr-python's."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrfs
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.zip import ZipStore
from zarrfs.errors import LocationError, ReadOnlyError, StoreError


def archive(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, value in members:
            out.writestr(name, value)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_read_whole_and_in_part(method: int, tmp_path: Path) -> None:
    value = bytes(range(256)) * 100
    with ZipStore(archive(tmp_path / "a.zip", ("a/b", value), ("empty", b""), method=method)) as store:
        assert bytes(store.get("a/b") or b"") == value
        pieces = store.get_ranges("a/b", [ByteRange(300, 5), ByteRange(-3)])
        assert pieces is not None
        assert [bytes(piece) for piece in pieces] == [value[300:305], value[-3:]]
        assert bytes(store.get("empty") or b"") == b""
        assert store.size("empty") == 0
        with pytest.raises(ReadOnlyError):
            store.set("a", b"1")


def test_the_last_of_two_members_counts_and_writing_again_leaves_one(tmp_path: Path) -> None:
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


def test_names_that_leave_the_archive_are_ignored_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = archive(tmp_path / "a.zip", ("../evil", b"1"), ("/abs", b"1"), ("a/../../b", b"1"), ("fine", b"1"))
    with caplog.at_level(logging.WARNING), ZipStore(path) as store:
        assert list(store.list_prefix()) == ["fine"]
    assert len(caplog.records) == 3


@pytest.mark.parametrize("size", [0, 10, 100])
def test_no_zip_file_at_all(size: int, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\3\4" + bytes(size))
    with pytest.raises(LocationError, match="no zip file that can be read"):
        ZipStore(tmp_path / "a.zip")
    with pytest.raises(LocationError, match="cannot be opened"):
        ZipStore(tmp_path / "missing.zip")


def test_broken_members_are_said(tmp_path: Path) -> None:
    value = os.urandom(5000)
    path = archive(tmp_path / "a.zip", ("a", b"x" * 5000), ("b", value), method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    where = data.index(b"a", 30) + 1
    data[where : where + 8] = bytes(8)
    path.write_bytes(data)
    with ZipStore(path) as store:
        with pytest.raises(StoreError, match="'a' is broken"):
            store.get("a")
        assert bytes(store.get("b") or b"") == value


def test_a_member_that_claims_more_than_it_can_hold(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", ("a", b"x" * 100), method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\1\2")
    data[central + 24 : central + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with ZipStore(path) as store, pytest.raises(StoreError, match="more than it can hold"):
        store.get("a")


def test_a_failing_write_leaves_the_old_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "a.zip", ("a", b"old"))
    store = ZipStore(path, "a")
    store.set("a", b"new")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(StoreError, match="No space left"):
            store.close()
        with zipfile.ZipFile(path) as old:
            assert old.read("a") == b"old"
    store.close()
    with zipfile.ZipFile(path) as new:
        assert new.read("a") == b"new"
    assert os.listdir(tmp_path) == ["a.zip"]


def test_what_was_written_is_there_though_nobody_closed(tmp_path: Path) -> None:
    code = f"import zarrfs, numpy as np; a = zarrfs.create_array({str(tmp_path / 'a.zip')!r}, data=np.arange(10))"
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_array_equal(zarrfs.open_array(tmp_path / "a.zip")[...], np.arange(10))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_both_ways_with_zarr_python(zarr_format: int, tmp_path: Path) -> None:
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
