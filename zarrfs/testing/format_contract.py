"""The contract of on-disk formats (``zarrfs.ext.formats``) as tests that run on any format.

The tests need neither pytest nor another test library; see ``store_contract.py``.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats.base import Format
from zarrfs.engine.formats.registry import all_formats
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs.testing.contracts import run_tests

__all__ = ["FormatTests", "check_format"]

REGIONS = 20
"""The number of random regions that are read from each array."""

DAMAGED_DOCUMENTS = (b"", b"{", b"{}", b"[]", b"null", b"\xff\xfe", b'{"shape": "large"}')

Values = np.ndarray[Any, Any]


def check_format(tests: FormatTests) -> None:
    """Run the contract without pytest. Raises ExceptionGroup with the errors."""
    run_tests(tests, lambda test: test(), f"The format {tests.name!r} does not keep the contract")


class FormatTests:
    """The contract of a format. Subclass it, set ``format`` and ``name``, and define ``write_example``.

    Example, for pytest::

        class TestMyFormat(FormatTests):
            format = MyFormat()
            name = "example.mine"

            def write_example(self, store):
                store.set("image/my.json", b'{"size": [3]}')
                store.set("image/0", bytes([1, 2, 3]))
                store.set("my.json", b'{"folder": true}')
                return {"": None, "image": np.array([1, 2, 3], "u1")}

    Attributes:
        format: the format.
        name: the ``zarr_format`` of its nodes, the name of the entry point.
    """

    format: Format
    name: str

    def write_example(self, store: Store) -> Mapping[str, Values | None]:
        """Write nodes to an empty store. Return the values of the arrays by path, and None for the groups."""
        raise NotImplementedError

    def _example(self) -> tuple[MemoryStore, Mapping[str, Values | None]]:
        store = MemoryStore()
        nodes = self.write_example(store)
        assert any(values is not None for values in nodes.values()), "the example contains no array"
        return store, nodes

    def _read(self, store: Store, path: str) -> NodeSpec:
        spec = self.format.read(store, path, False, True)
        assert spec is not None, f"there is no node at {path!r}"
        return spec

    def test_an_empty_store_contains_no_node(self) -> None:
        store = MemoryStore()
        store.set("other/file", b"1234")
        for path in ("", "other", "other/file", "missing/name"):
            assert self.format.kind(store, path) is None
            assert self.format.read(store, path, False, True) is None

    def test_nodes_of_the_example_are_found(self) -> None:
        store, nodes = self._example()
        for path, values in nodes.items():
            spec = self._read(store, path)
            assert isinstance(spec, GroupSpec if values is None else ArraySpec)
            assert self.format.kind(store, path) == ("group" if values is None else "array")
            assert spec.zarr_format == self.name
            assert isinstance(self.name, str), "numbers are reserved for the versions of Zarr"

    def test_nodes_are_not_of_a_built_in_format(self) -> None:
        store, nodes = self._example()
        for path in nodes:
            found = [name for name, known in all_formats() if known.kind(store, path) is not None]
            assert [name for name in found if name != self.name] == []

    def test_groups_list_their_members(self) -> None:
        store, nodes = self._example()
        for path, values in nodes.items():
            if values is not None:
                continue
            spec = self._read(store, path)
            assert isinstance(spec, GroupSpec)
            prefix = f"{path}/" if path else ""
            members = {
                name.removeprefix(prefix) for name in nodes if name.startswith(prefix) and name != path
            }
            listed = self.format.child_names(store, path, spec)
            assert {name for name in members if "/" not in name} <= set(listed)

    def test_the_documents_of_a_node_are_known(self) -> None:
        store, nodes = self._example()
        for path, values in nodes.items():
            keys = self.format.document_keys(store, path, "group" if values is None else "array")
            assert any(store.exists(key) for key in keys), f"no document of {path!r} exists: {keys}"

    def test_arrays_have_the_values_of_the_example(self) -> None:
        generator = random.Random(0)
        store, nodes = self._example()
        for path, values in nodes.items():
            if values is None:
                continue
            spec = self._read(store, path)
            assert isinstance(spec, ArraySpec)
            array = Array(store, path, spec, ChunkCache(0), True)
            assert (array.shape, array.dtype) == (values.shape, values.dtype)
            assert np.array_equal(np.asarray(array[...]), values)
            for _ in range(REGIONS):
                bounds = (sorted(generator.choices(range(length + 1), k=2)) for length in values.shape)
                region = tuple(slice(*pair) for pair in bounds)
                assert np.array_equal(np.asarray(array[region]), values[region]), region

    def test_metadata_can_be_sent_to_other_processes(self) -> None:
        store, nodes = self._example()
        for path in nodes:
            spec = self._read(store, path)
            assert pickle.loads(pickle.dumps(spec)) == spec

    def test_damaged_documents_are_errors_of_zarrfs(self) -> None:
        store, nodes = self._example()
        for path, values in nodes.items():
            kind = "group" if values is None else "array"
            for key in self.format.document_keys(store, path, "group" if values is None else "array"):
                intact = store.get(key)
                if intact is None:
                    continue
                for damaged in (*DAMAGED_DOCUMENTS, bytes(intact)[: len(intact) // 2]):
                    store.set(key, damaged)
                    try:
                        self.format.read(store, path, False, True)
                        self.format.kind(store, path)
                    except ZarrError:
                        pass
                    except Exception as error:
                        raise AssertionError(
                            f"{damaged!r} as the document {key} of the {kind} raises {type(error).__name__}, "
                            "expected a MetadataError"
                        ) from error
                store.set(key, intact)

    def test_nodes_are_written_or_refused(self) -> None:
        store, nodes = self._example()
        for path in nodes:
            spec = self._read(store, path)
            before = {key: bytes(store.get(key) or b"") for key in store.list_prefix()}
            if not self.format.features.writable:
                for write in (self.format.write, self.format.write_attributes):
                    try:
                        write(store, path, spec)
                    except UnsupportedError:
                        continue
                    raise AssertionError(f"{write.__name__} of a read-only format raises no UnsupportedError")
                after = {key: bytes(store.get(key) or b"") for key in store.list_prefix()}
                assert after == before
                continue
            self.format.check(spec)
            target = MemoryStore()
            self.format.write(target, path, spec)
            written = self._read(target, path)
            assert written.attributes == spec.attributes
            if isinstance(spec, ArraySpec):
                assert isinstance(written, ArraySpec)
                assert (written.shape, written.data_type) == (spec.shape, spec.data_type)
