"""Random operations on hierarchies in every store, compared with the same operations on a dictionary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import zarrfs
from tests.engine.stores.every_store import stop_all_servers
from tests.stateful.running import EXAMPLES_FACTOR, WRITABLE, run
from zarrfs.engine.stores.base import Store

EXAMPLES = {"memory": 15, "local": 10}

DEFAULT_EXAMPLES = 4


class GroupMachine(RuleBasedStateMachine):
    """A hierarchy. Its model is a dictionary of paths to kind and attributes."""

    make: Callable[[Path], Store]
    names = st.sampled_from(["a", "b", "a/x", "a/y", "b/x/deep"])

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        try:
            self.store = type(self).make(Path(self._folder.name))
        except BaseException:  # a skipped test included: teardown is not called then
            self._folder.cleanup()
            raise
        self.model: dict[str, tuple[str, dict[str, Any]]] = {}

    @initialize(zarr_format=st.sampled_from([2, 3]))
    def create(self, zarr_format: int) -> None:
        self.root = zarrfs.create_group(self.store, zarr_format=zarr_format, overwrite=True)

    def _below(self, name: str) -> list[str]:
        return [path for path in self.model if path == name or path.startswith(f"{name}/")]

    def _array_above(self, name: str) -> bool:
        parts = name.split("/")
        return any(
            self.model.get("/".join(parts[:depth]), ("group", {}))[0] == "array"
            for depth in range(1, len(parts))
        )

    def _put(self, name: str, kind: str) -> None:
        for path in self._below(name):
            del self.model[path]
        parts = name.split("/")
        for depth in range(1, len(parts)):
            self.model.setdefault("/".join(parts[:depth]), ("group", {}))
        self.model[name] = (kind, {})

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
        if name not in self.model:
            with pytest.raises(zarrfs.NodeNotFoundError):
                del self.root[name]
            return
        del self.root[name]
        for path in self._below(name):
            del self.model[path]

    @rule(name=names, destination=names)
    def move(self, name: str, destination: str) -> None:
        is_valid = name in self.model and destination not in self.model and not self._array_above(destination)
        if not is_valid or destination.startswith(f"{name}/"):
            with pytest.raises((zarrfs.NodeNotFoundError, zarrfs.NodeExistsError, zarrfs.NodeTypeError)):
                self.root.move(name, destination)
            return
        self.root.move(name, destination)
        moved = {path: self.model.pop(path) for path in self._below(name)}
        self._put(destination, "group")
        self.model |= {destination + path[len(name) :]: entry for path, entry in moved.items()}

    @rule(name=names, key=st.sampled_from("pq"), value=st.integers(0, 9))
    def set_attribute(self, name: str, key: str, value: int) -> None:
        if name in self.model:
            self.root[name].attrs[key] = value
            self.model[name][1][key] = value

    @invariant()
    def hierarchy_equals_model(self) -> None:
        if hasattr(self, "root"):
            found = {
                path: ("array" if isinstance(node, zarrfs.Array) else "group", dict(node.attrs))
                for path, node in zarrfs.open_group(self.store).walk()
            }
            assert found == self.model

    def teardown(self) -> None:
        self.store.close()
        self._folder.cleanup()


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    yield
    stop_all_servers()


@pytest.mark.timeout(1200 * EXAMPLES_FACTOR)
@pytest.mark.parametrize("store", WRITABLE)
def test_any_sequence_of_operations_agrees_with_a_dictionary(store: str) -> None:
    # Each step walks the whole hierarchy, which is slow over a network.
    steps = 6 if store.startswith("fsspec, ") else 20
    run(GroupMachine, store, EXAMPLES, DEFAULT_EXAMPLES, stateful_step_count=steps)
