"""Zarr core specification 3.1: "Abstract store interface"; "File system store", version 1.0.

The contract suite of stores has further tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.base import ByteRange, Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import KeyNameError


@pytest.fixture(params=["memory", "local", "zip"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    makers: dict[str, Callable[[], Store]] = {
        "memory": MemoryStore,
        "local": lambda: LocalStore(tmp_path / "store"),
        "zip": lambda: ZipStore(tmp_path / "store.zip", "w"),
    }
    with makers[request.param]() as made:
        yield made


# -- Abstract store interface --------------------------------------------------------------------------


def test_list_prefix_example(store: Store) -> None:
    for key in ("a/b", "a/c/d", "e/f/g"):
        store.set(key, b"")
    assert sorted(store.list_prefix("a")) == ["a/b", "a/c/d"]
    assert sorted(store.list_prefix()) == ["a/b", "a/c/d", "e/f/g"]


def test_list_dir_example(store: Store) -> None:
    for key in ("a/b", "a/c", "a/d/e", "a/f/g"):
        store.set(key, b"")
    assert store.list_dir("a") == (["b", "c"], ["d", "f"])
    assert store.list_dir("b") == ([], [])


def test_keys_are_case_sensitive(store: Store) -> None:
    store.set("foo", b"a")
    store.set("FOO", b"b")
    assert (store.get("foo"), store.get("FOO")) == (b"a", b"b")


def test_ranges_of_values(store: Store) -> None:
    store.set("k", b"0123456789")
    ranges = [ByteRange(0), ByteRange(2, 3), ByteRange(5), ByteRange(2, 3), ByteRange(8, 10)]
    values = store.get_ranges("k", ranges)
    assert values is not None
    assert [bytes(value) for value in values] == [b"0123456789", b"234", b"56789", b"234", b"89"]
    assert store.get_ranges("absent", ranges) is None


def test_erase_example(store: Store) -> None:
    for key in ("a/b", "a/c/d", "ab", "e"):
        store.set(key, b"x")
    store.delete("e")
    store.delete("e")
    store.delete_prefix("a")
    assert list(store.list_prefix()) == ["ab"]


@pytest.mark.parametrize("key", ["a/", "/a", "", "a//b", "a/../b"])
def test_keys_that_end_with_a_slash_or_leave_the_store_are_refused(store: Store, key: str) -> None:
    with pytest.raises(KeyNameError):
        store.set(key, b"")


# -- File system store ---------------------------------------------------------------------------------


def test_keys_are_paths_below_the_base_directory(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "data")
    store.set("foo/bar", b"value")
    assert (tmp_path / "data" / "foo" / "bar").read_bytes() == b"value"
    (tmp_path / "data" / "foo" / "baz").write_bytes(b"other")
    assert store.get("foo/baz") == b"other"
    assert sorted(store.list_prefix("foo")) == ["foo/bar", "foo/baz"]
    assert store.get("foo") is None


def test_canonical_uri(tmp_path: Path) -> None:
    directory = tmp_path / "my data ü%"
    zarrfs.create_array(directory, data=np.arange(3))
    uri = directory.as_uri()
    assert "my%20data%20%C3%BC%25" in uri
    assert LocalStore(directory).url == uri
    assert zarrfs.open_array(uri)[:].tolist() == [0, 1, 2]


def test_a_string_without_a_scheme_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(3))
    monkeypatch.chdir(tmp_path)
    for location in ("a.zarr", "./a.zarr", os.fspath(tmp_path / "a.zarr")):
        assert zarrfs.open_array(location)[:].tolist() == [0, 1, 2]
