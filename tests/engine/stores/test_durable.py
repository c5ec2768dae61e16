"""Tests of the option ``durable``: fsync is called if and only if it is requested."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.locations import open_store, split_options
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import OptionError
from zarrfs.tools import convert

SyncCalls = list[tuple[str, str]]
"""The synced files and directories: kind and name."""


@pytest.fixture
def sync_calls(monkeypatch: pytest.MonkeyPatch) -> SyncCalls:
    calls: SyncCalls = []
    sync = os.fsync

    def record(fd: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"
        calls.append((kind, os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))))
        sync(fd)

    monkeypatch.setattr(os, "fsync", record)
    return calls


def test_a_durable_directory_store_syncs_files_and_directories(sync_calls: SyncCalls, tmp_path: Path) -> None:
    store, _ = open_store(tmp_path / "s", mode="a", storage_options={"durable": True})
    store.set("a/b", b"1")
    kinds = [(kind, "temporary" if name.startswith(".zarrfs") else name) for kind, name in sync_calls]
    # The new directories are synced too, because a file is lost if its directory entry is lost.
    assert kinds == [
        ("directory", tmp_path.name),
        ("directory", "s"),
        ("file", "temporary"),
        ("directory", "a"),
    ]
    sync_calls.clear()
    store.set("a/b", b"2")
    assert [kind for kind, _ in sync_calls] == ["file", "directory"]
    sync_calls.clear()
    store.delete("a/b")
    assert sync_calls == [("directory", "a")]


@pytest.mark.parametrize("name", ["s", "s.zip"])
def test_stores_do_not_sync_by_default(name: str, sync_calls: SyncCalls, tmp_path: Path) -> None:
    for options in (None, {}, {"durable": False}):
        array = zarrfs.create_array(
            tmp_path / name, data=np.arange(10), chunks=(2,), overwrite=True, storage_options=options
        )
        array[3] = 1
        array.store.close()
    zarrfs.open_array(tmp_path / name, storage_options={"durable": True})[...]
    assert sync_calls == []


def test_a_durable_archive_syncs_when_it_is_closed(sync_calls: SyncCalls, tmp_path: Path) -> None:
    array = zarrfs.create_array(
        tmp_path / "s.zip", data=np.arange(10), chunks=(2,), storage_options={"durable": True}
    )
    assert sync_calls == []
    array.store.close()
    assert [kind for kind, _ in sync_calls] == ["file", "directory"]
    assert sync_calls[1][1] == tmp_path.name


def test_lmdb(tmp_path: Path) -> None:
    path = tmp_path / "s.lmdb"
    for options, expected in ({"durable": True}, True), (None, False):
        store: Any = open_store(f"lmdb://{path}", mode="a", storage_options=options)[0]
        assert store.durable is expected
        store.set("a", b"1")
        store.close()
    store = open_store(path, mode="r+", storage_options={"durable": True})[0]
    assert store.durable is True
    store.close()


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
@pytest.mark.parametrize(
    "make",
    [
        lambda path: path / "directory",
        lambda path: (path / "directory").as_uri(),
        lambda path: path / "a.zip",
        lambda path: path / "a.zip" / "inner",
        lambda path: f"lmdb://{path}/a.lmdb",
        lambda path: path / "a.lmdb",
        lambda path: path / "a.sqldb",
        lambda path: f"sqlite://{path}/a.sqldb",
        lambda path: MemoryStore(),
        lambda path: {},
    ],
)
def test_unknown_options_are_errors(make: Callable[[Path], Any], mode: str, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    for name in ("a.zip", f"lmdb://{tmp_path}/a.lmdb", f"sqlite://{tmp_path}/a.sqldb"):
        zarrfs.create_group(name if "://" in name else tmp_path / name).store.close()
    with pytest.raises(OptionError, match="does not accept the storage option 'anon'"):
        open_store(make(tmp_path), mode=mode, storage_options={"anon": True})


@pytest.mark.parametrize("location", ["{}/a", "{}/a.zip", "lmdb://{}/a.lmdb"])
def test_durable_must_be_a_boolean(location: str, tmp_path: Path) -> None:
    for wrong in ("yes", 1, None):
        with pytest.raises(OptionError, match="must be true or false"):
            open_store(location.format(tmp_path), mode="a", storage_options={"durable": wrong})
    assert os.listdir(tmp_path) == []


def test_remote_stores_refuse_durable() -> None:
    for url in ("memory://x", "s3://bucket/x", "redis://localhost"):
        with pytest.raises(OptionError, match="storage option 'durable'"):
            open_store(url, mode="a", storage_options={"durable": True})


def test_options_are_split_between_two_locations() -> None:
    both = {"anon": True, "durable": True}
    assert split_options(None, "a", "b") == (None, None)
    assert split_options(both, "s3://b/a", "b.zarr") == ({"anon": True}, {"durable": True})
    assert split_options(both, "a.zarr", "s3://b/a") == (None, both)
    assert split_options({"anon": True}, "s3://b/a", "s3://b/b") == ({"anon": True}, {"anon": True})
    assert split_options({"durable": True}, "a", "b") == ({}, {"durable": True})
    assert split_options({"anon": True}, "a", "b") == ({"anon": True}, {"anon": True})


def test_durable_copies_sync(sync_calls: SyncCalls, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=np.arange(4))
    convert(tmp_path / "a", tmp_path / "b", storage_options={"durable": True})
    assert ("directory", "b") in sync_calls
    with pytest.raises(OptionError, match="does not accept the storage option 'sure'"):
        convert(tmp_path / "a", tmp_path / "c", storage_options={"sure": True})
    assert not (tmp_path / "c").exists()
