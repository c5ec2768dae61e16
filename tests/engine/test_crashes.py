"""A process that is killed at any time leaves a readable store with old or new chunks, and its work can be repeated."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine import crashing
from zarrfs.engine.hierarchy.staging import replacing
from zarrfs.engine.hierarchy.subtrees import delete_node, move_node
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError
from zarrfs.storage import LMDBStore

EXAMPLES_FACTOR = int(os.environ.get("ZARRFS_LONGER", "1"))
"""The factor for the number of killed processes; see ``tests/stateful/running.py``."""

KILLED_PROCESSES = 12

LOCATIONS = {"local": "{}/NUMBER.zarr", "sqlite": "sqlite://{}/NUMBER.sqldb", "lmdb": "lmdb://{}/NUMBER.lmdb"}


@pytest.mark.timeout(300 * EXAMPLES_FACTOR)
@pytest.mark.parametrize("store", LOCATIONS)
@pytest.mark.parametrize("work", crashing.WORKS)
def test_a_killed_process_leaves_old_or_new_chunks(work: str, store: str, tmp_path: Path) -> None:
    location = LOCATIONS[store].format(tmp_path)
    if work in ("copy", "rechunk"):
        # The location of the copy is this one with "-copy" appended.
        location = location.removesuffix(".zarr")
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            crashing.__file__,
            work,
            location,
            f"{work} {store}",
            str(KILLED_PROCESSES * EXAMPLES_FACTOR),
        ],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = int(done.stdout.split()[0])
    assert killed > KILLED_PROCESSES * EXAMPLES_FACTOR * 0.7, done.stdout


def test_at_each_step_of_a_replacement_the_array_is_absent_or_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a store that cannot rename, the chunks were moved before the document: the array read as the fill value."""
    store = LMDBStore(tmp_path / "a.lmdb")
    assert not store.renames
    zarrfs.create_array(store, "a", data=crashing.OLD, chunks=crashing.BLOCK, attributes={"old": True})
    remove, steps = store._remove, 0

    def checked_remove(key: str) -> None:
        nonlocal steps
        remove(key)
        steps += 1
        if store.get("a/zarr.json") is not None:
            array = zarrfs.open_array(store, "a", cache_size=0)
            assert np.array_equal(array[...], crashing.OLD if array.attrs else crashing.NEW), key

    monkeypatch.setattr(store, "_remove", checked_remove)
    zarrfs.create_array(store, "a", data=crashing.NEW, chunks=crashing.BLOCK, overwrite=True)
    assert steps > 8
    store.close()


def _replace(store: Store, zarr_format: Any) -> None:
    with replacing(store, "g") as staging:
        create_members(staging, zarr_format, crashing.NEW)


def _move(store: Store, zarr_format: Any) -> None:
    move_node(store, "g", "other/h")


def _delete(store: Store, zarr_format: Any) -> None:
    delete_node(store, "g")


def create_members(store: Store, zarr_format: Any, data: np.ndarray[Any, Any]) -> None:
    for path in ("g/a", "g/inner/b"):
        zarrfs.create_array(store, path, data=data, chunks=crashing.BLOCK, zarr_format=zarr_format)


def complete_arrays(store: Store) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values of the arrays at the paths of the tests, each of which is old or new and complete."""
    found = {}
    for path in ("g/a", "g/inner/b", "other/h/a", "other/h/inner/b"):
        with suppress(zarrfs.NodeNotFoundError, zarrfs.NodeTypeError):
            values = zarrfs.open_array(store, path, cache_size=0)[...]
            assert np.array_equal(values, crashing.OLD) or np.array_equal(values, crashing.NEW), path
            found[path] = values
    return found


class SteppingStore(MemoryStore):
    """A store that cannot rename, and calls ``step(key)`` after each change. Its listings are in reverse order."""

    renames = False

    def __init__(self) -> None:
        super().__init__()
        self.step: Callable[[str], object] = lambda key: None

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        self.step(key)

    def delete(self, key: str) -> None:
        super().delete(key)
        self.step(key)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        return iter(sorted(super().list_prefix(prefix), reverse=True))


@pytest.mark.parametrize("max_copied", [1000, 0])
@pytest.mark.parametrize("zarr_format", [2, 3, "n5", "draft2019"])
@pytest.mark.parametrize("change", [_replace, _move, _delete])
def test_at_each_step_of_a_change_of_a_group_its_arrays_are_absent_or_complete(
    change: Callable[[Store, Any], None],
    zarr_format: Any,
    max_copied: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a store that cannot rename. The documents of members were moved and deleted in the order of the listing."""
    monkeypatch.setattr("zarrfs.engine.hierarchy.staging.MAX_COPIED_KEYS", max_copied)
    steps = 0

    def check(key: str) -> None:
        nonlocal steps
        steps += 1
        complete_arrays(store)

    store = SteppingStore()
    create_members(store, zarr_format, crashing.OLD)
    store.step = check
    change(store, zarr_format)
    assert steps > 8
    found = complete_arrays(store)
    paths = {_replace: ["g/a", "g/inner/b"], _move: ["other/h/a", "other/h/inner/b"], _delete: []}
    assert sorted(found) == paths[change]


def test_a_move_that_fails_leaves_the_node_at_its_path() -> None:
    def fail(key: str) -> None:
        if key == "h/zarr.json" and store.get(key) is not None:
            raise StoreError("full")

    store = SteppingStore()
    create_members(store, 3, crashing.OLD)
    before = dict(store.values)
    store.step = fail
    with pytest.raises(StoreError, match="full"):
        move_node(store, "g", "h")
    assert store.values == before
