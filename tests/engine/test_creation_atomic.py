"""Creation of nodes is atomic: if it fails, the store is unchanged."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.create import new_nodes
from zarrfs.engine.formats.api import WRITABLE_FORMATS
from zarrfs.engine.hierarchy import staging
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import MetadataError, NodeExistsError, NodeTypeError, StoreError, ZarrError
from zarrfs.testing import FailingStore

DATA = np.arange(12, dtype="i4").reshape(3, 4)

LATER_DRAFT = {
    "zarr.json": b'{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", '
    b'"metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", '
    b'"metadata_key_suffix": ".json", "extensions": []}',
    "meta/root.group.json": b'{"attributes": {}}',
}


class FailsAtWrite:
    """Fails the n-th write, as a full disk does, or the n-th of other operations."""

    def __init__(self, number: int, operations: tuple[str, ...] = ("set",)) -> None:
        self.number = number
        self.operations = operations
        self.writes = 0

    def __call__(self, operation: str, key: str) -> Exception | None:
        if operation not in self.operations:
            return None
        self.writes += 1
        return StoreError(f"{key}: no space left", errno.ENOSPC) if self.writes == self.number else None


def create(kind: str, store: Store, path: str, zarr_format: Any, **options: Any) -> None:
    attributes = {"a": 1}
    if kind == "group":
        zarrfs.create_group(store, path, zarr_format=zarr_format, attributes=attributes, **options)
    else:
        data = {"data": DATA} if kind == "array with data" else {"shape": DATA.shape, "dtype": "i4"}
        zarrfs.create_array(
            store, path, chunks=2, zarr_format=zarr_format, attributes=attributes, **data, **options
        )


@pytest.mark.parametrize("path", ["", "a/b/c"])
@pytest.mark.parametrize("kind", ["group", "array", "array with data"])
@pytest.mark.parametrize("zarr_format", WRITABLE_FORMATS)
@pytest.mark.parametrize("before", ["nothing", "an array", "a group"])
def test_a_failed_write_leaves_the_store_unchanged(
    before: str, zarr_format: Any, kind: str, path: str
) -> None:
    inner = MemoryStore()
    if before == "an array":
        zarrfs.create_array(
            inner, path, data=DATA + 5, chunks=1, zarr_format=zarr_format, attributes={"old": 1}
        )
    elif before == "a group":
        zarrfs.create_group(inner, path, zarr_format=zarr_format, attributes={"old": 1})
        zarrfs.create_array(inner, f"{path}/x".strip("/"), data=DATA, zarr_format=zarr_format)
    values = dict(inner.values)
    for number in range(1, 40):
        failure = FailsAtWrite(number)
        error = None
        try:
            create(kind, FailingStore(inner, failure), path, zarr_format, overwrite=before != "nothing")
        except StoreError as raised:
            error = raised
        if error is None:
            assert failure.writes < number
            break
        assert error.errno == errno.ENOSPC
        assert inner.values == values, f"after write {number}"
    else:
        pytest.fail("it never succeeded")
    node = zarrfs.open(inner, path)
    assert dict(node.attrs) == {"a": 1}
    if kind == "array with data":
        np.testing.assert_array_equal(node, DATA)
    assert not [key for key in inner.values if key.startswith(".zarrfs")]


CHANGES = ("set", "delete", "delete_prefix", "move_prefix")


class CopyingStore(WrapperStore):
    """A store that moves by copying each value, as object stores and databases do."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.renames = False

    def move_prefix(self, prefix: str, target: str) -> None:
        Store.move_prefix(self, prefix, target)


@pytest.mark.parametrize("path", ["", "a/b"])
@pytest.mark.parametrize("kind", ["memory", "local", "copies"])
@pytest.mark.parametrize("zarr_format", WRITABLE_FORMATS)
def test_a_failure_at_any_step_of_a_replacement_keeps_the_old_node_or_the_new_one(
    zarr_format: Any, kind: str, path: str, tmp_path: Path
) -> None:
    inner: Store = LocalStore(tmp_path / "s") if kind == "local" else MemoryStore()
    zarrfs.create_array(inner, path, data=DATA, chunks=2, zarr_format=zarr_format)
    old_keys = set(inner.list_prefix())
    outcomes = set()
    for number in range(1, 200):
        failing: Store = FailingStore(inner, FailsAtWrite(number, CHANGES))
        data = DATA + number
        try:
            zarrfs.create_array(
                CopyingStore(failing) if kind == "copies" else failing,
                path,
                data=data,
                chunks=3,
                zarr_format=zarr_format,
                overwrite=True,
            )
        except StoreError:
            stored = np.asarray(zarrfs.open_array(inner, path))
            is_new = np.array_equal(stored, data)
            assert is_new or np.array_equal(stored, DATA)
            outcomes.add(is_new)
            if is_new:  # only the old data could not be deleted
                inner.delete_prefix("")
                zarrfs.create_array(inner, path, data=DATA, chunks=2, zarr_format=zarr_format)
            left = {key for key in inner.list_prefix() if not key.startswith(".zarrfs")}
            assert left == old_keys
        else:
            break
    else:
        pytest.fail("it never succeeded")
    assert outcomes == {False, True}


@pytest.mark.parametrize("path", ["", "a"])
@pytest.mark.parametrize("limit", ["MAX_COPIED_KEYS", "MAX_COPIED_NBYTES"])
def test_a_large_node_in_a_store_that_copies_is_not_copied_aside(
    limit: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = MemoryStore()
    zarrfs.create_array(inner, path, data=DATA, chunks=2)
    usage = inner.usage(path)
    size = usage.keys if limit == "MAX_COPIED_KEYS" else usage.nbytes
    monkeypatch.setattr(staging, limit, size)
    zarrfs.create_array(CopyingStore(inner), path, data=DATA, chunks=2, overwrite=True)
    assert inner.usage(path)[:2] == usage[:2]

    written: list[str] = []

    def fail(operation: str, key: str) -> Exception | None:
        if operation == "set":
            written.append(key)
        is_last = operation == "set" and written.count(key) == 1 and not key.startswith(".zarrfs")
        return StoreError(f"{key}: no space left", errno.ENOSPC) if is_last else None

    monkeypatch.setattr(staging, limit, size - 1)
    store = CopyingStore(FailingStore(inner, fail))
    with pytest.raises(StoreError, match=r"may be incomplete.*complete replacement is below") as caught:
        zarrfs.create_array(store, path, data=DATA + 1, chunks=2, overwrite=True)
    assert not [key for key in written if "/old" in key]
    staged = next(key for key in inner.values if key.startswith(".zarrfs")).partition("/")[0] + "/new"
    assert repr(staged) in str(caught.value)
    np.testing.assert_array_equal(zarrfs.open_array(inner, f"{staged}/{path}"), DATA + 1)


def test_a_node_that_can_neither_be_replaced_nor_restored_is_below_the_named_prefixes() -> None:
    inner = MemoryStore()
    zarrfs.create_array(inner, "a", data=DATA, chunks=2)
    moves: list[str] = []

    def fail(operation: str, key: str) -> Exception | None:
        if operation == "move_prefix":
            moves.append(key)
        return StoreError("no connection", errno.EIO) if len(moves) > 1 else None

    with pytest.raises(StoreError, match=r"'a' could not be replaced .* could not be restored") as caught:
        zarrfs.create_array(FailingStore(inner, fail), "a", data=DATA + 1, chunks=2, overwrite=True)
    assert caught.value.errno == errno.EIO
    staging = next(key for key in inner.values if key.startswith(".zarrfs")).partition("/")[0]
    for name, data in (("old", DATA), ("new", DATA + 1)):
        assert f"'{staging}/{name}'" in str(caught.value)
        np.testing.assert_array_equal(zarrfs.open_array(inner, f"{staging}/{name}/a"), data)


def test_replacing_an_array_of_a_later_draft_preserves_the_key_suffix() -> None:
    store = MemoryStore(dict(LATER_DRAFT))
    root = zarrfs.open_group(store, mode="r+")
    for data in (DATA, DATA + 1):
        root.create_array("a/b", data=data, chunks=2, overwrite=True)
        np.testing.assert_array_equal(zarrfs.open_array(store, "a/b"), data)
    new = set(store.values) - set(LATER_DRAFT)
    assert {"meta/root/a.group.json", "meta/root/a/b.array.json"} < new
    assert all(key.startswith(("meta/root/", "data/root/a/b/")) for key in new)


@pytest.mark.parametrize("path", ["", "a/b"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_while_data_are_written_leaves_the_store_unchanged(
    path: str, overwrite: bool, tmp_path: Path
) -> None:
    directory = tmp_path / "s"
    if overwrite:
        zarrfs.create_array(directory, path, data=DATA, chunks=2, attributes={"old": 1})
    before = contents(directory)
    # The last chunk is incompressible and exceeds the limit of the file size.
    data = np.zeros((4, 1 << 17), "u1")
    data[3] = np.random.default_rng(0).integers(0, 255, 1 << 17)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            zarrfs.create_array(
                directory, path, data=data, chunks=(1, 1 << 17), overwrite=overwrite, write_empty_chunks=True
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(directory) == before
    zarrfs.create_array(directory, path, data=data, chunks=(1, 1 << 17), overwrite=overwrite)
    np.testing.assert_array_equal(zarrfs.open_array(directory, path), data)
    assert not [name for name in os.listdir(directory) if name.startswith(".")]


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()
    }


class _NotJson:
    """An object that JSON cannot represent. Its repr, used in test identifiers, is the same in all processes."""

    def __repr__(self) -> str:
        return "NOT_JSON"


NOT_JSON = _NotJson()


WRONG: list[dict[str, Any]] = [
    {"data": DATA, "shape": (5, 4)},
    {"data": DATA, "shape": (12,)},
    {"data": [[1, 2], [3]]},
    {"data": DATA, "dtype": "no such type"},
    {"data": DATA, "attributes": {"a": NOT_JSON}},
    {"data": DATA, "attributes": {1: 2}},
    {"data": DATA, "attributes": [1, 2]},
    {"data": DATA, "chunks": (2, 2), "shards": (3, 3)},
    {"data": DATA, "codecs": ["no-such-codec"]},
    {"data": np.array([NOT_JSON])},
    {"shape": 3, "dtype": str, "data": [1, 2, 3]},
]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("zarr_format", WRITABLE_FORMATS)
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_invalid_options_are_refused_before_anything_is_written(
    wrong: dict[str, Any], zarr_format: Any, overwrite: bool
) -> None:
    inner = MemoryStore()
    if overwrite:
        zarrfs.create_array(inner, "a", data=DATA, zarr_format=zarr_format)

    def forbidden(operation: str, key: str) -> Exception | None:
        return (
            AssertionError(f"{operation} {key}") if operation in ("set", "delete", "delete_prefix") else None
        )

    store = FailingStore(inner, forbidden)
    with pytest.raises(ZarrError):
        zarrfs.create_array(store, "a", zarr_format=zarr_format, overwrite=overwrite, **wrong)
    attributes = wrong.get("attributes")
    if attributes is not None:
        with pytest.raises(MetadataError, match="attributes"):
            zarrfs.create_group(
                store, "a", zarr_format=zarr_format, overwrite=overwrite, attributes=attributes
            )


@pytest.mark.parametrize("zarr_format", WRITABLE_FORMATS)
def test_creating_below_an_array_or_over_an_existing_node_is_refused(zarr_format: Any) -> None:
    store = MemoryStore()
    zarrfs.create_array(store, "a", data=DATA, zarr_format=zarr_format)
    before = dict(store.values)
    for kind in ("group", "array with data"):
        with pytest.raises(NodeTypeError, match="'a' is an array"):
            create(kind, store, "a/b/c", zarr_format)
        with pytest.raises(NodeExistsError, match="overwrite=True"):
            create(kind, store, "a", zarr_format)
    assert store.values == before


def test_an_array_can_be_replaced_by_a_copy_of_itself() -> None:
    group = zarrfs.create_group({})
    group["a"] = DATA
    group["a"] = group["a"]
    np.testing.assert_array_equal(group["a"], DATA)


def test_keys_that_cannot_be_removed_after_a_failure_are_noted() -> None:
    def failure(operation: str, key: str) -> Exception | None:
        if operation == "delete" and key == "a/b/zarr.json":
            return StoreError(f"{key}: no connection")
        return StoreError(f"{key}: no space left") if (operation, key) == ("set", "a/b/zarr.json") else None

    store = MemoryStore()
    with pytest.raises(StoreError, match="no space left") as caught:
        zarrfs.create_array(FailingStore(store, failure), "a/b", shape=(2,), dtype="u1")
    (note,) = caught.value.__notes__
    assert note.startswith("the keys written for 'a/b' could not be deleted either: ")
    assert note.endswith("no connection")
    assert list(store.list_prefix()) == [], "all other keys are deleted"


CONCURRENT_CALLS: dict[str, Any] = {
    "require_group": lambda root: zarrfs.open_group(root, mode="r+").require_group("g/h"),
    "require_array": lambda root: zarrfs.open_group(root, mode="r+").require_array("a", (3, 4), "i4"),
    "open_group": lambda root: zarrfs.open_group(root, "g", mode="a"),
    "open_array": lambda root: zarrfs.open_array(root, "a", mode="a", shape=(3, 4), dtype="i4"),
}


@pytest.mark.parametrize("name", CONCURRENT_CALLS)
def test_a_node_that_another_process_creates_at_the_same_time_is_opened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one creates it between the look-up and the creation."""
    zarrfs.create_group(tmp_path)
    original = new_nodes._creating
    calls: list[str] = []

    def creating(store: Store, path: str, *arguments: Any) -> Any:
        if not calls:
            calls.append(path)
            other = CONCURRENT_CALLS[name](tmp_path)
            other.attrs["writer"] = "the other process"
        return original(store, path, *arguments)

    monkeypatch.setattr(new_nodes, "_creating", creating)
    assert CONCURRENT_CALLS[name](tmp_path).attrs["writer"] == "the other process"
    assert len(calls) == 1


def test_modes_that_create_do_not_open_what_another_process_creates(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path)
    for mode in ("w-", "x"):
        with pytest.raises(NodeExistsError):
            zarrfs.open_group(tmp_path, mode=mode)  # type: ignore[arg-type]
