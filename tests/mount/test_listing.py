"""Listings: types and attributes of entries, the cost of large groups, and the pages that the kernel may keep."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import zarrfs
from tests.mount.test_tree import list_names
from tests.processes import TIMEOUT
from tests.threads import Clock
from zarrfs.engine.array.array import Array
from zarrfs.engine.stores.base import Usage
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files import views as registry
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.json_view import JsonView
from zarrfs.files.view import PresentedArray
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.fuse.page_versions import SETTLING_SECONDS, PageVersions
from zarrfs.mount.tree import group_listing, stored_sizes
from zarrfs.mount.tree.entries import VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore


def many_arrays(count: int) -> MemoryStore:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for number in range(count):
        root.create_array(f"a{number:03}", data=np.arange(4, dtype="u2"), attributes={"number": number})
    root.create_group("group")
    return store


def operations_of(store: Any, **options: Any) -> ZarrOperations:
    return ZarrOperations(Tree(zarrfs.open(store), **options), lambda: None)


def test_a_listing_has_the_attributes_that_a_look_up_has() -> None:
    store = many_arrays(5)
    store.set("bad/zarr.json", b"not JSON")
    operations = operations_of(store)
    handle = operations.opendir("/")
    listed = list(operations.read_directory("/", handle, 0, True))
    assert [entry.name for entry in listed[:2]] == [".", ".."]
    assert {"a000.npy", "group", "bad.error.txt", ".group.json"} <= {entry.name for entry in listed}
    for entry in listed[2:]:
        expected = operations.getattr(f"/{entry.name}")
        assert entry.attributes == expected
        assert entry.type == stat.S_IFMT(expected["st_mode"])
    assert [entry.name for entry in operations.read_directory("/", handle, 0, False)] == [
        entry.name for entry in listed
    ]
    operations.releasedir("/", handle)


def test_a_listing_continues_at_any_offset() -> None:
    operations = operations_of(many_arrays(5))
    names = operations.readdir("/", 0)
    handle = operations.opendir("/")
    pages = []
    while True:
        page = operations.read_directory("/", handle, len(pages), True)
        first = next(page, None)
        if first is None:
            break
        pages.append(first)
        following = next(page, None)  # It did not fit into the page and is returned again.
        assert following is None or following.attributes is not None or following.name == ".."
    assert [entry.name for entry in pages] == names
    assert all(entry.attributes is not None for entry in pages[2:])
    assert [entry.name for entry in operations.read_directory("/", handle, 3, False)] == names[3:]


def test_members_that_change_during_a_listing_do_not_fail_it() -> None:
    count = group_listing.MEMBERS_PER_BATCH + 3
    store = many_arrays(count)
    operations = operations_of(store)
    handle = operations.opendir("/")
    page = operations.read_directory("/", handle, 0, False)
    found = [next(page).name for _ in range(4)]
    last = f"a{count - 1:03}"
    store.delete_prefix(last)
    found += [entry.name for entry in page]
    assert {"a000.npy", "a001.raw", "group"} <= set(found)
    assert not any(name.startswith(last) for name in found)


def test_the_requests_of_a_listing_do_not_grow_faster_than_the_number_of_arrays() -> None:
    def calls(count: int) -> int:
        counting = CountingStore(many_arrays(count))
        operations = operations_of(counting, clock=Clock())
        counting.reset()
        for entry in list(operations.read_directory("/", operations.opendir("/"), 0, True)):
            assert entry.name
        for name in operations.readdir("/", 0)[2:]:
            operations.getattr(f"/{name}")
        # The listing reads the documents together; the look-ups open the arrays.
        assert all(number <= 2 for key, number in counting.keys.items() if key.endswith("get")), counting.keys
        return sum(counting.calls.values())

    assert calls(60) - calls(40) == calls(40) - calls(20)
    assert calls(40) - calls(20) <= 20 * 17


def test_names_with_the_suffix_of_another_view_are_listed_once() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    root.create_array("a", data=np.arange(6, dtype="u1").reshape(2, 3))
    root.create_array("a.F", data=np.arange(2, dtype="u1"))
    root.create_array("b", data=np.arange(2, dtype="u1"))
    root.create_array("b.F", data=np.array(["x"], dtype="T" if hasattr(np.dtypes, "StringDType") else "U1"))
    root.create_group("b.npy")
    tree = Tree(zarrfs.open(store), views=("all",))
    listed = list_names(tree)
    assert len(listed) == len(set(listed))
    for name in listed:
        assert tree.lookup(f"/{name}") is not None
    longer = tree.lookup("/a.F.npy")
    assert isinstance(longer, VirtualFile)
    assert isinstance(longer.node, Array)
    assert longer.node.path == "a.F"


@pytest.mark.parametrize(
    ("order", "names"),
    [("C", {"a.npy", "a.raw", "a.json"}), ("F", {"a.F.npy", "a.F.raw", "a.json"})],
)
@pytest.mark.parametrize("summarizes_arrays", [True, False])
def test_the_order_selects_the_listed_files_and_the_stored_size_counts_once(
    order: Literal["C", "F"], names: set[str], summarizes_arrays: bool, tmp_path: Path
) -> None:
    root = zarrfs.create_group(tmp_path / "a.zarr")
    array = root.create_array("a", data=np.random.default_rng(0).integers(0, 255, (40, 50), "u1"))
    tree = Tree(zarrfs.open_group(tmp_path / "a.zarr"), order=order, summarizes_arrays=summarizes_arrays)
    listed = list_names(tree)
    assert {name for name in listed if name.startswith("a")} == names
    stored = {}
    for name in names:
        found = tree.summarize(f"/{name}") or tree.lookup(f"/{name}")
        stored[name.removeprefix("a")] = found.stored_nbytes  # type: ignore[union-attr]
    (elements,) = (name for name in stored if name.endswith(".raw"))
    assert stored.pop(elements) == array.nbytes_stored()
    assert 0 < sum(stored.values()) < array.nbytes
    assert tree.lookup("/a.npy") is not None
    assert tree.lookup("/a.F.raw") is not None


ARRAYS: list[dict[str, Any]] = [
    {"shape": (4, 5), "dtype": "u2"},
    {"shape": (4, 5), "dtype": ">f4", "dimension_names": ("y", "x")},
    {"shape": (2, 3, 4, 5), "dtype": "i1", "dimension_names": ("t", "z", "y", "x")},
    {"shape": (), "dtype": "f8"},
    {"shape": (0, 3), "dtype": "c16"},
    {"shape": (3,), "dtype": "bool"},
    {"shape": (3,), "dtype": [("a", "u1"), ("b", "<f4")]},
    {"shape": (3,), "dtype": str},
    {"shape": (2,) * 9, "dtype": "u1"},
]
NAMES = ("img", "img2", "x", "LIST", "LISTA", "a b", "50%", "ä", "a:b", "n" * 70, "-x", "y")


@pytest.mark.parametrize("options", ARRAYS, ids=lambda options: f"{options['dtype']} {options['shape']}")
def test_shared_refusals_and_documents_are_those_of_each_array(options: dict[str, Any]) -> None:
    direct = JsonView(
        lambda presented: {v.suffix: registry.unsupported_reason(v, presented) for v in registry.all_kinds()}
    )
    for attributes in (
        {},
        {"a": 1, "text": 'q"\n'},
        {"deep": {"list": [1, {"b": None}]}, "nan": float("nan")},
    ):
        store = MemoryStore()
        root = zarrfs.create_group(store)
        for name in NAMES:
            if name != "a:b":
                root.create_array(name, **options, attributes=attributes)
        opened = zarrfs.open_group(store)
        for name, array in opened.arrays():
            presented = PresentedArray(array, name)
            expected = {
                view.suffix: registry.unsupported_reason(view, presented) for view in registry.all_kinds()
            }
            assert registry.unsupported_reasons(PresentedArray(array, name)) == expected
            content = registry_json().content(PresentedArray(array, name))
            text = content.read(0, content.size)
            document = json.loads(text)
            uncached = direct.content(presented)
            assert text == uncached.read(0, uncached.size)
            assert text.endswith(b"\n  }\n}\n")
            assert document["path"] == f"/{name}"
            assert document["views"] == [
                name + suffix for suffix, reason in expected.items() if reason is None
            ]


@pytest.mark.parametrize(
    "attributes", [{}, {"a": 1, "b": 'q"\nä'}, {"deep": {"list": [1, {}, {"b": float("nan")}]}}]
)
def test_the_size_of_a_document_follows_from_that_of_another_array(attributes: dict[str, Any]) -> None:
    root = zarrfs.create_group(MemoryStore(), attributes={"pixelResolution": [2.0, 3.0]})
    first = root.create_array("first", shape=(4, 5), dtype="u2", attributes={"x": [1]})
    view = registry_json()
    size = view.size(PresentedArray(first, "first"))
    for name in ("img", "x_1", "n" * 64):
        array = root.create_array(f'g"ä/{name}', shape=(4, 5), dtype="u2", attributes=attributes)
        content = view.content(PresentedArray(array, name))
        assert size.nbytes(array.name, name, attributes) == content.size


def registry_json() -> JsonView:
    (view,) = [view for view in registry.all_views() if isinstance(view, JsonView)]
    return view


def file_of(usage: Usage | None, content: VirtualFileContent) -> VirtualFile:
    return VirtualFile(content, 0, None, None, version=usage)


def test_pages_are_kept_if_nothing_has_changed_for_some_time() -> None:
    clock, content = Clock(), VirtualFileContent([BytesSegment(b"x")])
    versions = PageVersions(clock, lambda: 1000.0)
    reading: set[int] = set()

    def are_current(usage: Usage | None, content: VirtualFileContent = content) -> bool:
        return versions.are_current("/a.npy", file_of(usage, content), lambda: bool(reading))

    old, new = Usage(2, 100, 10.0), Usage(2, 100, 999.9)
    assert not are_current(old), "the first opening"
    assert are_current(old)
    assert not are_current(new)
    assert not are_current(new), "cached data may be older than the change"
    reading.add(1)
    assert are_current(new), "dropping the pages would wait for the read"
    clock.now += REVALIDATION_SECONDS
    assert not are_current(new)
    reading.clear()
    clock.now += SETTLING_SECONDS + 1
    assert not are_current(new), "pages of the time before are dropped"
    assert are_current(new)
    for _ in range(2):
        assert not are_current(None), "changes are not known"
    reading.add(1)
    assert are_current(None)
    clock.now += REVALIDATION_SECONDS
    assert not are_current(None)
    assert not are_current(new, VirtualFileContent([BytesSegment(b"y")]))


@pytest.mark.parametrize("count", [3, 300])
def test_a_changed_chunk_is_noticed_with_few_system_calls(count: int, tmp_path: Path) -> None:
    """The stored size of an array of very many chunks is determined in the background."""
    clock = Clock()
    array = zarrfs.create_array(tmp_path / "s.zarr" / "a", shape=(count,), chunks=(1,), dtype="u1")
    array[...] = 1
    counting = CountingStore(zarrfs.open(tmp_path / "s.zarr" / "a").store)
    operations = operations_of(counting, root_name="a", clock=clock)
    slow = operations._tree._nodes.sizes
    assert isinstance(operations._tree.lookup("/a.raw"), VirtualFile)
    operations._tree._nodes.root.usage_seconds = 10.0
    operations._tree._nodes.root.usage_expires = float("inf")
    assert not slow.is_exact(operations._tree._nodes.root)
    array[1] = 7
    clock.now += 2
    counting.reset()
    handle = operations.open("/a.raw", os.O_RDONLY)
    assert not operations.keeps_pages(handle)
    assert bytes(operations.read("/a.raw", 1, 1, handle)) == b"\7"
    assert sum(counting.calls.values()) < 20
    operations.release("/a.raw", handle)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_first_look_up_of_an_array_of_many_chunks_does_not_wait_for_its_stored_size(
    zarr_format: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_sizes, "MAX_FOREGROUND_ENTRIES", 20)
    monkeypatch.setattr(stored_sizes, "MAX_FIRST_SECONDS", 0.0)
    group = zarrfs.create_group(tmp_path / "s.zarr", zarr_format=zarr_format)
    for name, count in (("few", 5), ("many", 40)):
        array = group.create_array(name, shape=(count, 100), chunks=(1, 100), dtype="u1")
        array[...] = np.arange(100)
    may_determine = threading.Event()
    determine = stored_sizes._large_usage

    def wait(array: Array) -> Usage:
        assert may_determine.wait(TIMEOUT)
        return determine(array)

    monkeypatch.setattr(stored_sizes, "_large_usage", wait)
    operations = operations_of(tmp_path / "s.zarr", clock=Clock())
    sizes = operations._tree._nodes.sizes
    stored = {name: zarrfs.open(tmp_path / "s.zarr")[name].usage() for name in ("few", "many")}
    assert operations.getattr("/few.raw")["st_blocks"] == -(-stored["few"].nbytes // 512)
    for _ in range(2):
        assert operations.getattr("/many.raw")["st_blocks"] == -(-4000 // 512)
    record = operations._tree._nodes.get("many")
    assert not sizes.is_exact(record)
    event = sizes._refreshing[id(record)]
    may_determine.set()
    assert event.wait(TIMEOUT)
    assert record.usage == stored["many"]
    assert operations.getattr("/many.raw")["st_blocks"] == -(-stored["many"].nbytes // 512)
