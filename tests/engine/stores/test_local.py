"""What is the directory store's alone: atomic files, links, odd files."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.local import TEMPORARY_PREFIX, LocalStore
from zarrfs.engine.stores.temporary import TemporaryStore
from zarrfs.errors import LocationError, ReadOnlyError, StoreError


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


def test_a_temporary_directory_goes_with_its_store(tmp_path: Path) -> None:
    array = zarrfs.create_array(f"temporary://{tmp_path}", data=np.arange(3))
    (made,) = tmp_path.iterdir()
    copy = pickle.loads(pickle.dumps(array))
    assert copy[...].tolist() == [0, 1, 2]
    del copy
    gc.collect()
    assert made.is_dir()
    array.store.close()
    assert not list(tmp_path.iterdir())
    forgotten = TemporaryStore(tmp_path)
    forgotten.set("a", b"1")
    del forgotten
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(LocationError, match="nothing to be opened"):
        zarrfs.open("temporary://")
    with pytest.raises(LocationError, match="no directory"):
        zarrfs.create_array(f"temporary://{tmp_path}/none", shape=3)


def test_a_temporary_directory_goes_with_the_interpreter_and_not_with_a_child(tmp_path: Path) -> None:
    program = f"""
import os, zarrfs
array = zarrfs.create_array("temporary://{tmp_path}", shape=3)
child = os.fork()
if child == 0:
    raise SystemExit
os.waitpid(child, 0)
array[0] = 1
assert array[0] == 1
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    assert not list(tmp_path.iterdir())
