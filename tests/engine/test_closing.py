"""Closing of nodes by ``close`` or ``with``, and of the store together with the last node that shares it."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError

DATA = np.arange(12).reshape(3, 4)

LOCATIONS: dict[str, Callable[[Path], Any]] = {
    "directory": lambda path: path / "s.zarr",
    "archive": lambda path: path / "s.zip",
    "sqlite": lambda path: f"sqlite://{path}/s.db",
    "mapping": lambda path: MAPPINGS.setdefault(path, {}),
    "store": lambda path: LocalStore(path / "s.zarr"),
}
MAPPINGS: dict[Path, dict[str, bytes]] = {}

USES: dict[str, Callable[[Any], Any]] = {
    "reading": lambda array: array[0],
    "reading bytes": lambda array: array.read_bytes(0, 4),
    "fields": lambda array: array.oindex[[0], :],
    "writing": lambda array: array.__setitem__(0, 1),
    "appending": lambda array: array.append(DATA),
    "resizing": lambda array: array.resize(1, 1),
    "attributes": lambda array: array.attrs.update(a=1),
    "refreshing": lambda array: array.refresh(),
    "usage": lambda array: array.usage(),
    "digest": lambda array: array.digest(),
    "a view": lambda array: array.astype("f4")[0],
}

GROUP_USES: dict[str, Callable[[Any], Any]] = {
    "member": lambda group: group["a"],
    "names": lambda group: list(group),
    "create group": lambda group: group.create_group("new"),
    "create array": lambda group: group.create_array("new", shape=3),
    "setting": lambda group: group.__setitem__("new", DATA),
    "deleting": lambda group: group.__delitem__("a"),
    "attributes": lambda group: group.attrs.update(a=1),
    "moving": lambda group: group.move("a", "b"),
    "opening below": lambda group: zarrfs.open_array(group, "a"),
}


@pytest.mark.parametrize("place", LOCATIONS)
def test_a_closed_node_refuses_use_and_can_be_opened_again(place: str, tmp_path: Path) -> None:
    location = LOCATIONS[place](tmp_path)
    with zarrfs.create_group(location) as group:
        array = group.create_array("a", data=DATA)
    array.close()
    array.close()
    for use in USES.values():
        with pytest.raises(StoreError, match="was closed; open it again"):
            use(array)
    assert repr(array).startswith("<zarrfs.Array /a (3 x 4) int64 in ")
    for use in GROUP_USES.values():
        with pytest.raises(StoreError, match="was closed; open it again"):
            use(group)
    with zarrfs.open_array(location, "a") as again:
        np.testing.assert_array_equal(again, DATA)


def test_the_last_node_closes_the_store_that_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    group = zarrfs.create_group(path)
    array = group.create_array("a", data=DATA)
    deeper = group.create_group("b")
    other = zarrfs.open_group(group, "b", mode="r+")
    store: Any = group.store
    for node in (group, deeper, other):
        node.close()
        # Written data are visible to other processes although the store is still in use.
        assert "a/zarr.json" in zipfile.ZipFile(path).namelist()
        assert not store._closed
    np.testing.assert_array_equal(array, DATA)
    array[0] = 9
    array.close()
    assert store._closed
    with zarrfs.open_array(path, "a") as again:
        assert (again[0] == 9).all()


def test_a_garbage_collected_node_does_not_keep_the_store_open(tmp_path: Path) -> None:
    with zarrfs.create_group(tmp_path / "s.zip") as group:
        for name in ("a", "b"):
            group.create_array(name, data=DATA)
            np.testing.assert_array_equal(group[name], DATA)
        store: Any = group.store
    assert store._closed


class Closable(WrapperStore):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_store_that_is_passed_stays_open() -> None:
    store = Closable(MemoryStore())
    with zarrfs.create_group(store) as group, group.create_array("a", data=DATA):
        pass
    with zarrfs.open_array(store, "a") as array:
        np.testing.assert_array_equal(array, DATA)
    assert store.closed == 0


def test_a_store_is_released_when_opening_or_creating_fails(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    for attempt in (
        lambda: zarrfs.create_array(path, shape=-1),
        lambda: zarrfs.create_array(path, data=[300], dtype="u1"),
        lambda: zarrfs.create_group(path, attributes={1: 2}),
    ):
        with pytest.raises(zarrfs.ZarrError):
            attempt()
        assert not path.exists()
    with zarrfs.create_array(path, "a", data=DATA):
        pass
    before = path.read_bytes()
    with pytest.raises(zarrfs.NodeNotFoundError):
        zarrfs.open(path, "b")
    with pytest.raises(zarrfs.ZarrError):
        zarrfs.create_array(path, "c", data=[300], dtype="u1")
    assert path.read_bytes() == before


def test_an_unpickled_node_has_its_own_store(tmp_path: Path) -> None:
    with (
        zarrfs.create_array(tmp_path / "s.zarr", data=DATA) as array,
        pickle.loads(pickle.dumps(array)) as copy,
    ):
        array.close()
        np.testing.assert_array_equal(copy, DATA)
    with pytest.raises(StoreError, match="was closed"):
        copy[0]


def test_closing_can_be_repeated_after_an_archive_could_not_be_written(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    array = zarrfs.create_array(path, data=DATA)
    path.write_bytes(b"of another writer")
    with pytest.raises(StoreError, match="changed by another process"):
        array.close()
    path.unlink()
    array.close()
    with zarrfs.open_array(path) as again:
        np.testing.assert_array_equal(again, DATA)
