"""What is the directory store's alone: atomic files, links, odd files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from zarrfs.engine.stores.local import TEMPORARY_PREFIX, LocalStore
from zarrfs.errors import ReadOnlyError, StoreError


def test_a_failing_write_leaves_the_old_value_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"old")

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.set("a", b"new")
    assert caught.value.errno == errno.ENOSPC
    assert store.get("a") == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_files_being_written_are_not_listed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    (tmp_path / f"{TEMPORARY_PREFIX}xyz").write_bytes(b"half")
    assert list(store.list_prefix()) == ["a"]
    assert store.list_dir().keys == ["a"]
    assert store.usage().keys == 1


def test_empty_directories_go_with_their_last_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "s")
    store.set("a/b/c", b"1")
    store.delete("a/b/c")
    assert os.listdir(tmp_path / "s") == []
    store.set("a/b/c", b"1")
    store.delete_prefix("a")
    assert os.listdir(tmp_path / "s") == []


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_bytes(b"1")
    root = tmp_path / "s"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "loop").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "dangling").symlink_to("nowhere")
    store = LocalStore(root)
    assert store.get("link/x") == b"1"
    assert "link/x" in list(store.list_prefix())
    assert store.get("dangling") is None


def test_what_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    store = LocalStore(tmp_path)
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match="Permission denied") as caught:
        store.get("a")
    assert str(tmp_path) in str(caught.value)
    assert caught.value.errno == errno.EACCES


def test_new_files_have_ordinary_permissions(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_read_only(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, read_only=True)
    with pytest.raises(ReadOnlyError, match="'a'"):
        store.set("a", b"1")
    with pytest.raises(ReadOnlyError):
        store.delete("a")


def test_a_stamp_tells_a_replaced_file_of_the_same_size_and_time(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a", b"1")
    os.utime(tmp_path / "a", ns=(10**18, 10**18))
    stamp = store.stamp("a")
    store.set("b", b"2")
    os.utime(tmp_path / "b", ns=(10**18, 10**18))
    os.replace(tmp_path / "b", tmp_path / "a")
    assert store.stamp("a") != stamp
