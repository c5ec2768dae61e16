"""Arrays and groups driven by random operations, beside a NumPy array and a dictionary that undergo the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zarrfs
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.lmdb import LMDBStore
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.remote import RemoteStore
from zarrfs.engine.stores.sqlite import SQLiteStore
from zarrfs.engine.stores.zip import ZipStore

STORES: dict[str, Callable[[Path], Store]] = {
    "local": LocalStore,
    "memory": lambda path: MemoryStore(),
    "zip": lambda path: ZipStore(path / "a.zip", "w"),
    "sqlite": lambda path: SQLiteStore(path / "a.sqldb"),
    "lmdb": lambda path: LMDBStore(path / "a.lmdb"),
    "fsspec": lambda path: RemoteStore(f"memory://twin{path}"),
}
KINDS: list[dict[str, Any]] = [
    {"zarr_format": 3, "chunks": (3, 4)},
    {"zarr_format": 3, "chunks": (2, 2), "shards": (4, 6)},
    {"zarr_format": 3, "chunks": (3, 4), "write_empty_chunks": True, "order": "F"},
    {"zarr_format": 2, "chunks": (3, 4), "order": "F"},
    {"zarr_format": 2, "chunks": (5, 1), "dimension_separator": "/", "compressors": None},
    {"zarr_format": "n5", "chunks": (3, 4)},
    {"zarr_format": "draft2019", "chunks": (3, 4)},
]
MOST = 12


class ArrayTwin(RuleBasedStateMachine):
    """An array of two dimensions."""

    make: Callable[[Path], Store]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.store = type(self).make(Path(self._folder.name))
        self.twin = np.zeros((0, 0), "i4")

    @initialize(kind=st.sampled_from(KINDS), shape=st.tuples(st.integers(1, MOST), st.integers(1, MOST)))
    def create(self, kind: dict[str, Any], shape: tuple[int, int]) -> None:
        fill = 0 if kind["zarr_format"] == "n5" else 7
        self.array = zarrfs.create_array(
            self.store, "a", shape=shape, dtype="i4", fill_value=fill, overwrite=True, **kind
        )
        self.fill = fill
        self.twin = np.full(shape, fill, "i4")

    @rule(data=st.data(), value=st.integers(-9, 99))
    def set_basic(self, data: st.DataObject, value: int) -> None:
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False))
        self.array[index] = value
        self.twin[index] = value

    @rule(data=st.data())
    def set_block(self, data: st.DataObject) -> None:
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False, min_dims=2, max_dims=2))
        part = self.twin[index]
        values = np.arange(part.size, dtype="i4").reshape(part.shape)
        self.array[index] = values
        self.twin[index] = values

    @precondition(lambda self: self.twin.size)
    @rule(data=st.data(), value=st.integers(-9, 99))
    def set_outer(self, data: st.DataObject, value: int) -> None:
        rows, columns = (
            data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5)) for n in self.twin.shape
        )
        self.array.oindex[rows, columns] = value
        self.twin[np.ix_(rows, columns)] = value

    @precondition(lambda self: self.twin.size)
    @rule(data=st.data())
    def set_points_and_mask(self, data: st.DataObject) -> None:
        row, column = (data.draw(st.integers(0, n - 1)) for n in self.twin.shape)
        self.array.vindex[[row], [column]] = [55]
        self.twin[row, column] = 55
        mask = data.draw(nps.arrays("?", self.twin.shape))
        self.array[mask] = 66
        self.twin[mask] = 66

    @rule(shape=st.tuples(st.integers(0, MOST), st.integers(0, MOST)))
    def resize(self, shape: tuple[int, int]) -> None:
        # What overhangs in a kept chunk may show again when the array grows: it is overwritten first.
        old = self.twin
        low = tuple(min(a, b) for a, b in zip(old.shape, shape, strict=True))
        self.array[low[0] :, :] = self.fill
        self.array[:, low[1] :] = self.fill
        self.array.resize(shape)
        self.twin = np.full(shape, self.fill, "i4")
        self.twin[: low[0], : low[1]] = old[: low[0], : low[1]]

    @precondition(lambda self: self.twin.shape[0] < MOST)
    @rule(rows=st.integers(1, 3))
    def append(self, rows: int) -> None:
        values = np.full((rows, self.twin.shape[1]), 44, "i4")
        self.array.append(values)
        self.twin = np.concatenate([self.twin, values])

    @rule()
    def reopen(self) -> None:
        self.array = zarrfs.open_array(self.store, "a", "r+", cache_size=0)

    @invariant()
    def both_are_equal(self) -> None:
        if hasattr(self, "array"):
            assert self.array.shape == self.twin.shape
            assert np.array_equal(self.array[...], self.twin)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False))
        assert np.array_equal(self.array[index], self.twin[index])

    def teardown(self) -> None:
        self.store.close()
        self._folder.cleanup()


class GroupTwin(RuleBasedStateMachine):
    """A hierarchy: path -> kind and attributes."""

    make: Callable[[Path], Store]
    names = st.sampled_from(["a", "b", "a/x", "a/y", "b/x/deep"])

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.store = type(self).make(Path(self._folder.name))
        self.twin: dict[str, tuple[str, dict[str, Any]]] = {}

    @initialize(zarr_format=st.sampled_from([2, 3]))
    def create(self, zarr_format: int) -> None:
        self.root = zarrfs.create_group(self.store, zarr_format=zarr_format, overwrite=True)

    def _below(self, name: str) -> list[str]:
        return [path for path in self.twin if path == name or path.startswith(f"{name}/")]

    def _array_above(self, name: str) -> bool:
        parts = name.split("/")
        return any(
            self.twin.get("/".join(parts[:depth]), ("group", {}))[0] == "array"
            for depth in range(1, len(parts))
        )

    def _put(self, name: str, kind: str) -> None:
        for path in self._below(name):
            del self.twin[path]
        parts = name.split("/")
        for depth in range(1, len(parts)):
            self.twin.setdefault("/".join(parts[:depth]), ("group", {}))
        self.twin[name] = (kind, {})

    @rule(name=names, is_array=st.booleans())
    def make_node(self, name: str, is_array: bool) -> None:
        if self._array_above(name):
            with pytest.raises(zarrfs.NodeTypeError):
                self.root.create_group(name)
            return
        if is_array:
            self.root.create_array(name, shape=(3,), dtype="u1", overwrite=True)
        else:
            self.root.create_group(name, overwrite=True)
        self._put(name, "array" if is_array else "group")

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name not in self.twin:
            with pytest.raises(zarrfs.NodeNotFoundError):
                del self.root[name]
            return
        del self.root[name]
        for path in self._below(name):
            del self.twin[path]

    @rule(name=names, goal=names)
    def move(self, name: str, goal: str) -> None:
        fine = name in self.twin and goal not in self.twin and not self._array_above(goal)
        if not fine or goal.startswith(f"{name}/"):
            with pytest.raises((zarrfs.NodeNotFoundError, zarrfs.NodeExistsError, zarrfs.NodeTypeError)):
                self.root.move(name, goal)
            return
        self.root.move(name, goal)
        moved = {path: self.twin.pop(path) for path in self._below(name)}
        self._put(goal, "group")
        self.twin |= {goal + path[len(name) :]: entry for path, entry in moved.items()}

    @rule(name=names, key=st.sampled_from("pq"), value=st.integers(0, 9))
    def set_attribute(self, name: str, key: str, value: int) -> None:
        if name in self.twin:
            self.root[name].attrs[key] = value
            self.twin[name][1][key] = value

    @invariant()
    def both_are_equal(self) -> None:
        if hasattr(self, "root"):
            found = {
                path: ("array" if isinstance(node, zarrfs.Array) else "group", dict(node.attrs))
                for path, node in zarrfs.open_group(self.store).walk()
            }
            assert found == self.twin

    def teardown(self) -> None:
        self.store.close()
        self._folder.cleanup()


@pytest.mark.parametrize("twin", [ArrayTwin, GroupTwin])
@pytest.mark.parametrize("store", STORES)
def test_any_sequence_of_operations(store: str, twin: type[RuleBasedStateMachine]) -> None:
    class Machine(twin):  # type: ignore[valid-type,misc]
        make = staticmethod(STORES[store])

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=15, stateful_step_count=20, deadline=None)
    )
