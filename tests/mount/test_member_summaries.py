"""Listings that determine the files of arrays without opening each array: they equal those of opened arrays."""

from __future__ import annotations

import json
import os
import stat
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.threads import Clock
from zarrfs.engine.native import members
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.views import all_kinds
from zarrfs.mount.fuse import open_directories
from zarrfs.mount.fuse.control import ControlOperations
from zarrfs.mount.fuse.dispatch import Dispatcher, inode_number
from zarrfs.mount.fuse.open_directories import MAX_EXPENSIVE
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.fuse.permissions import Permissions
from zarrfs.mount.statistics import RequestCounters
from zarrfs.mount.tree import group_listing, member_summaries, node_cache, node_opening
from zarrfs.mount.tree.document_stamps import document_stamps
from zarrfs.mount.tree.entries import Directory
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.operations import WritableOperations

ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"index": 7, "text": 'q"\n\x7fä'},
    {"deep": {"list": [1, {"b": None}]}, "nan": float("nan"), "x": 1.5},
    {"large": "a" * 70_000},
    {"entries": list(range(20_000))},
    {"transform": {"axes": ["y", "x"], "scale": [2.0, 3.0], "translate": [0, 0], "units": ["m", "m"]}},
    {"dimension_units": ["4 nm", "2 s"]},
    {"pixelResolution": [1.0, 2.0], "downsamplingFactors": [2, 2]},
]
NAMES = ("img", "img2", "x", "LISTA", "a b", "50%", "ä", "-x", "n" * 64, "n" * 80, "n" * 240)
TYPES: list[dict[str, Any]] = [
    {"shape": (4, 5), "dtype": "u2"},
    {"shape": (4, 5), "dtype": ">f4", "dimension_names": ("y", "x")},
    {"shape": (0, 5), "dtype": "c16"},
    {"shape": (3, 3), "dtype": str},
    {"shape": (2, 2), "dtype": [("a", "u1"), ("b", "<f4")]},
]


def operations_of(source: Any, *, summarizes: bool = True, **options: Any) -> ZarrOperations:
    tree = Tree(zarrfs.open(source, mode="r"), summarizes_arrays=summarizes, **options)
    return ZarrOperations(tree, lambda: None, mounted_at=1.0)


def listed(operations: ZarrOperations, path: str = "/") -> dict[str, Any]:
    """Return the attributes of all entries of a directory; each of them as if it had been looked up meanwhile."""
    handle = operations.opendir(path)
    operations._directories[handle].is_looked_up = True
    entries = list(operations.read_directory(path, handle, 0, True))
    operations.releasedir(path, handle)
    names = [entry.name for entry in entries]
    assert len(names) == len(set(names))
    return {entry.name: entry.attributes for entry in entries[2:]}


def assert_listings_are_equal(path: Any, directory: str = "/", **options: Any) -> dict[str, Any]:
    """Assert that listings and look-ups agree, whether arrays are opened or not. Return the attributes by name."""
    summarizing = operations_of(path, **options)
    found = listed(summarizing, directory)
    assert listed(summarizing, directory) == found, "the kinds of arrays are known now"
    opening = operations_of(path, summarizes=False, **options)
    assert listed(opening, directory) == found
    assert list(listed(opening, directory)) == list(found)
    prefix = directory.rstrip("/")
    for name, attributes in found.items():
        assert opening.getattr(f"{prefix}/{name}") == attributes
    return found


@pytest.fixture(params=["native", "Python"])
def scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python":
        monkeypatch.setattr(members, "native_library", lambda: None)


def fill(path: Path, count: int, *, zarr_format: int = 3, **options: Any) -> zarrfs.Group:
    group = zarrfs.create_group(path, zarr_format=zarr_format)
    for number in range(count):
        array = group.create_array(
            f"a{number:02}", shape=(4, 5), dtype="u2", attributes={"n": number}, **options
        )
        array[...] = number
    return group


@pytest.mark.parametrize("options", TYPES, ids=lambda options: f"{options['dtype']} {options['shape']}")
@pytest.mark.usefixtures("scanner")
def test_listings_equal_those_of_opened_arrays(options: dict[str, Any], tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "s.zarr", attributes={"pixelResolution": [3.0, 4.0]})
    for number, name in enumerate(NAMES):
        group.create_array(name, **options, attributes={"number": number})
    for number, attributes in enumerate(ATTRIBUTES):
        group.create_array(f"attributes{number}", **options, attributes=attributes)
    found = assert_listings_are_equal(tmp_path / "s.zarr")
    assert len(found) > len(NAMES) + len(ATTRIBUTES)


@pytest.mark.parametrize("name", ["50%", "LISTA", "x"])
def test_files_of_arrays_are_not_derived_from_one_with_a_special_name(name: str, tmp_path: Path) -> None:
    """The array with that name is opened first. Some formats cannot represent it, which its JSON file states."""
    group = zarrfs.create_group(tmp_path / "s.zarr")
    for each in (name, "y1", "y2"):
        group.create_array(each, shape=(4, 5), dtype="u2", dimension_names=("y", "x"))
    assert_listings_are_equal(tmp_path / "s.zarr")


@pytest.mark.parametrize("options", TYPES[:3], ids=lambda options: f"{options['dtype']} {options['shape']}")
@pytest.mark.usefixtures("scanner")
def test_listings_of_version_2_equal_those_of_opened_arrays(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    group = zarrfs.create_group(path, zarr_format=2)
    options = {key: value for key, value in options.items() if key != "dimension_names"}
    names = [
        {},
        {"_ARRAY_DIMENSIONS": ["y", "x"]},
        {"_ARRAY_DIMENSIONS": ["x", "y"]},
        {"_ARRAY_DIMENSIONS": 3},
    ]
    for number, attributes in enumerate([*ATTRIBUTES, *names, *names]):
        group.create_array(f"a{number}", **options, attributes=attributes)
        group.create_array(f"F{number}", **options, attributes=attributes, order="F")
    group.create_group("g")
    for number in range(3):
        plain = group.create_array(f"nested{number}", **options)
        document = json.loads((path / plain.path / ".zarray").read_text())
        del document["dimension_separator"]  # It is determined by the chunks.
        (path / plain.path / ".zarray").write_text(json.dumps(document))
    (path / "a0" / ".zattrs").write_text("")
    (path / "a1" / ".zattrs").write_text('{"a": 1, "a": 2}')
    found = assert_listings_are_equal(path)
    assert {"a0.error.txt", "a1.error.txt", "nested1.npy", "F3.npy"} <= set(found)


@pytest.mark.parametrize("kind", ["zip", "memory", "version 2"])
def test_arrays_of_all_local_stores_are_not_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source: Any = {"zip": tmp_path / "s.zip", "memory": MemoryStore(), "version 2": tmp_path / "s.zarr"}[kind]
    with zarrfs.create_group(source, zarr_format=2 if kind == "version 2" else 3) as group:
        for number in range(100):
            group.create_array(f"a{number:02}", data=np.full((3, 4), number), attributes={"n": number})
        group.create_group("b").create_array("c", shape=(2,), dtype="u1")
    opened: list[str] = []
    open_member = node_opening.open_member
    monkeypatch.setattr(
        node_cache, "open_member", lambda root, path: opened.append(path) or open_member(root, path)
    )
    found = listed(operations_of(source, clock=Clock()))
    assert len(found) == 3 * 100 + 2
    assert opened == ["a00", "b"]
    monkeypatch.undo()
    assert assert_listings_are_equal(source) == found


def test_the_levels_of_equal_images_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plate.zarr"
    group = zarrfs.create_group(path)
    scales = [[0.5, 0.25], [1.0, 0.5], [2.0, 1.0]]
    datasets = [
        {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        for level, scale in enumerate(scales)
    ]
    for number in range(8):
        image = group.create_group(f"field{number}")
        # The geometry of one image is another one.
        unit = "nanometer" if number == 5 else "micrometer"
        own_axes = [{"name": name, "type": "space", "unit": unit} for name in "yx"]
        image.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": own_axes, "datasets": datasets}]}
        for level in range(3):
            shape = (8 >> level, 16 >> level)
            image.create_array(str(level), shape=shape, dtype="u2", dimension_names=("y", "x"))
    opened: list[str] = []
    open_member = node_opening.open_member
    monkeypatch.setattr(
        node_cache, "open_member", lambda root, path: opened.append(path) or open_member(root, path)
    )
    operations = operations_of(path)
    found = {number: listed(operations, f"/field{number}") for number in range(8)}
    arrays = [each for each in opened if "/" in each]
    assert arrays == [f"field{number}/{level}" for number in (0, 5) for level in range(3)]
    monkeypatch.undo()
    for number, attributes in found.items():
        assert assert_listings_are_equal(path, f"/field{number}") == attributes


def test_listings_of_a_writable_mount(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    fill(path, 6)

    def writable(summarizes: bool) -> WritableOperations:
        tree = Tree(zarrfs.open(path, mode="r+"), summarizes_arrays=summarizes)
        return WritableOperations(tree, lambda: None, mounted_at=1.0)

    operations = writable(True)
    try:
        before = listed(operations)
        handle = operations.open("/a01.raw", os.O_RDWR)
        operations.write("/a01.raw", b"\xff", 0, handle)
        operations.setxattr("/a02.npy", "user.zarr.attrs.n", b'"much longer"', 0)
        operations.unlink("/a03.json")
        found = listed(operations)
        assert set(before) - set(found) == {"a03.json"}
        assert found["a01.raw"]["st_mtime"] > before["a01.raw"]["st_mtime"]
        assert found["a02.json"]["st_size"] > before["a02.json"]["st_size"]
        for name, attributes in found.items():
            assert operations.getattr(f"/{name}") == attributes
        operations.release("/a01.raw", handle)
        stored = listed(operations)
        others = writable(False)
        try:
            expected = listed(others)
        finally:
            others.destroy("/")
        for attributes in (*stored.values(), *expected.values()):
            for name in ("st_atime", "st_mtime", "st_ctime"):
                del attributes[name]  # The mount that wrote knows the time of the write.
        del expected["a03.json"]
        assert stored == expected
    finally:
        operations.destroy("/")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_permissions_are_those_of_the_documents(
    zarr_format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.zarr"
    fill(path, 5, zarr_format=zarr_format)
    document = "zarr.json" if zarr_format == 3 else ".zarray"
    (path / "a02" / document).chmod(0o600)
    (path / "a03" / document).chmod(0o640)
    counters = RequestCounters()
    permissions = Permissions(follow_store=True)
    found = []
    for summarizes in (True, False):
        operations = operations_of(path, summarizes=summarizes, with_permissions=True)
        dispatcher: Any = Dispatcher(operations, {}, ControlOperations(), counters, lambda: None, permissions)
        for _ in range(2):
            handle = dispatcher.opendir("/")
            entries = list(dispatcher.read_directory("/", handle, 0, True))[2:]
            dispatcher.releasedir("/", handle)
            found.append({entry.name: entry.attributes for entry in entries})
        assert {name: dispatcher.getattr(f"/{name}") for name in found[0]} == found[0]
    assert all(each == found[0] for each in found[1:])
    assert found[0]["a02.npy"]["st_mode"] & 0o777 == 0o400
    assert found[0]["a03.raw"]["st_mode"] & 0o777 == 0o440
    opened: list[str] = []
    open_member = node_opening.open_member
    monkeypatch.setattr(
        node_cache, "open_member", lambda root, path: opened.append(path) or open_member(root, path)
    )
    listed(operations_of(path, with_permissions=True))
    assert opened == ["a00"]


def test_the_sizes_are_those_of_the_bytes_that_are_read(tmp_path: Path) -> None:
    fill(tmp_path / "s.zarr", 6)
    operations = operations_of(tmp_path / "s.zarr")
    found = listed(operations)
    assert len(found) == 3 * 6 + 1
    for name, attributes in found.items():
        handle = operations.open(f"/{name}", os.O_RDONLY)
        assert len(bytes(operations.read(f"/{name}", 1 << 20, 0, handle))) == attributes["st_size"]
        operations.release(f"/{name}", handle)


@pytest.mark.usefixtures("scanner")
def test_unusual_members_are_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "s.zarr"
    group = fill(path, 3)
    group.create_group("b")
    group.create_group("c.npy")
    group.create_array("c", shape=(4, 5), dtype="u2")
    zarrfs.create_array(path / "both", shape=(4, 5), dtype="u2", zarr_format=2)
    zarrfs.create_array(path / "v2", shape=(4, 5), dtype="u2", zarr_format=2)
    (path / "both" / "zarr.json").write_bytes((path / "a00" / "zarr.json").read_bytes())
    (path / "bad").mkdir()
    (path / "bad" / "zarr.json").write_text("{")
    (path / "empty").mkdir()
    os.symlink("a00", path / "link")
    os.symlink("/etc", path / "outside")
    (path / "linked").mkdir()
    os.symlink("../a00/zarr.json", path / "linked" / "zarr.json")
    (path / "fifo").mkdir()
    os.mkfifo(path / "fifo" / "zarr.json")
    (path / "directory" / "zarr.json").mkdir(parents=True)
    many = group.create_array("many", shape=(members.MAX_ENTRIES + 10,), chunks=(1,), dtype="u1")
    many[...] = 1
    (path / "a01" / ".zarrfs-writing-abc").write_bytes(b"1234567")
    (path / "a02" / "extra").write_bytes(b"1234567")
    found = assert_listings_are_equal(path)
    assert {"c.npy", "c.raw", "bad.error.txt", "link.npy", "linked.npy", "many.raw"} <= set(found)
    assert not any(name.startswith("empty") for name in found)
    assert [name for name in found if name.startswith("directory")] == ["directory.error.txt"]
    assert "fifo.npy" not in found
    assert caplog.messages
    assert all("'both' has metadata of both" in message for message in caplog.messages)


def test_images_views_and_limits(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    group = fill(path, 4)
    image = group.create_group("image")
    scales = [[1.0, 2.0], [3.0, 4.0]]
    for number in range(len(scales)):
        image.create_array(f"{number}", shape=(4, 5), dtype="u2")
    image.attrs["ome"] = {
        "version": "0.5",
        "multiscales": [
            {
                "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
                "datasets": [
                    {"path": str(number), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
                    for number, scale in enumerate(scales)
                ],
            }
        ],
    }
    assert_listings_are_equal(path, "/image")
    for views in (("npy",), ("json", "raw"), ("all",), ("npy", "nhdr")):
        assert_listings_are_equal(path, views=views)
    limited = Tree(zarrfs.open(path, mode="r", access=zarrfs.Access(max_document=2000)))
    root = limited.lookup("/")
    assert isinstance(root, Directory)
    group.create_array("large", shape=(4, 5), dtype="u2", attributes={"text": "a" * 3000})
    assert {"large.error.txt", "a00.npy"} <= {entry.name for entry in limited.list_entries(root)}
    zarrfs.consolidate_metadata(path)
    assert_listings_are_equal(path)


def test_one_array_of_a_kind_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "s.zarr", 150)
    operations = operations_of(tmp_path / "s.zarr")
    opened: list[str] = []
    open_member = node_opening.open_member

    def counting(root: Any, path: str) -> Any:
        opened.append(path)
        return open_member(root, path)

    monkeypatch.setattr(node_cache, "open_member", counting)
    found = listed(operations)
    assert len(found) == 3 * 150 + 1
    assert opened == ["a00"]
    changed = zarrfs.open_array(tmp_path / "s.zarr" / "a07", mode="r+")
    changed.attrs["n"] = "longer"
    again = listed(operations)
    assert opened == ["a00"]
    assert again["a07.json"]["st_size"] == found["a07.json"]["st_size"] + len('"longer"') - len("7")
    assert {name for name in found if found[name] != again[name]} == {"a07.npy", "a07.raw", "a07.json"}


def test_old_sizes_are_determined_again(tmp_path: Path) -> None:
    group = fill(tmp_path / "s.zarr", 5)
    clock = Clock()
    operations = operations_of(tmp_path / "s.zarr", clock=clock)
    before = listed(operations)
    handle = operations.opendir("/")
    entries = operations.read_directory("/", handle, 0, True)
    found = {next(entries).name for _ in range(4)}
    group["a03"].attrs["n"] = "changed"
    clock.now += REVALIDATION_SECONDS + 1
    attributes = {entry.name: entry.attributes for entry in entries}
    assert found | set(attributes) >= set(before)
    assert attributes["a03.json"] == operations.getattr("/a03.json")
    assert attributes["a03.json"] != before["a03.json"]


def test_attributes_are_returned_as_far_as_they_are_cheap_or_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "s.zarr", 30)
    monkeypatch.setattr(open_directories, "MAX_SUMMARIZED", 50)
    monkeypatch.setattr(open_directories, "MAX_EXPENSIVE", 5)
    for summarizes, limit in ((True, 50), (False, 5)):
        operations = operations_of(tmp_path / "s.zarr", summarizes=summarizes)
        for is_looked_up in (False, True):
            handle = operations.opendir("/")
            entries = operations.read_directory("/", handle, 0, True)
            first = [next(entries) for _ in range(10)]
            if is_looked_up:
                operations.getattr(f"/{first[-1].name}")
            known = [
                number for number, entry in enumerate([*first, *entries]) if entry.attributes is not None
            ]
            last = 92 if is_looked_up else limit - 1
            assert known[-1] == last
            assert len(known) >= min(limit, last) - 10
            operations.releasedir("/", handle)


def test_a_group_that_becomes_an_image_is_opened(tmp_path: Path) -> None:
    group = fill(tmp_path / "s.zarr", 3)
    clock = Clock()
    operations = operations_of(tmp_path / "s.zarr", clock=clock)
    listed(operations)
    datasets = [{"path": "a01", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 2.0]}]}]
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]}
    clock.now += REVALIDATION_SECONDS + 1
    found = listed(operations)
    assert found == listed(operations_of(tmp_path / "s.zarr", summarizes=False))
    assert json.loads((tmp_path / "s.zarr" / "a01" / "zarr.json").read_text())["node_type"] == "array"
    assert np.all(group["a02"][...] == 2)


@pytest.mark.parametrize("order", ["of the listing", "of the inode numbers"])
def test_look_ups_after_a_listing_open_no_arrays(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.zarr"
    group = fill(path, 25)
    group.create_array("a10b", shape=(4, 5), dtype="u2", attributes={"transform": {"scale": [2.0, 2.0]}})
    group.create_group("a11b")
    set_times(path)
    clock = Clock()
    operations = operations_of(path, clock=clock)
    names = operations.readdir("/", 0)[2:]
    if order == "of the inode numbers":
        names.sort(key=inode_number)
    opened: list[str] = []
    scanned: list[str] = []
    open_member, scan_members = node_opening.open_member, members.scan_members

    def record_scan(directory: int, names: Any, *arguments: Any, **options: Any) -> Any:
        scanned.extend(names)
        return scan_members(directory, names, *arguments, **options)

    monkeypatch.setattr(
        node_cache, "open_member", lambda root, path: opened.append(path) or open_member(root, path)
    )
    monkeypatch.setattr(member_summaries, "scan_members", record_scan)
    expected = operations_of(path, summarizes=False)
    for name in names:
        assert operations.getattr(f"/{name}") == expected.getattr(f"/{name}")
    # The other object opens each member once, this one those that cannot be summarized. The files of an array, which
    # follow each other, need one scan; a00 and a10b are open.
    assert len(opened) == len(set(opened)) > 27
    assert sorted(scanned) == [f"a{number:02}" for number in range(1, 25)]
    # A change is seen when the sizes are determined again, and a file that does not exist is not found.
    zarrfs.open_array(path / "a20", mode="r+").attrs["n"] = "longer"
    clock.now += REVALIDATION_SECONDS + 1
    changed = operations_of(path, summarizes=False)
    for name in reversed(names):
        assert operations.getattr(f"/{name}") == changed.getattr(f"/{name}")
    for name in ("a30.npy", "a20", "a20.nothing"):
        with pytest.raises(OSError, match="No such file"):
            operations.getattr(f"/{name}")


def test_the_inode_numbers_of_the_files_of_an_array_follow_each_other() -> None:
    suffixes = [view.suffix for view in all_kinds()]
    arrays = [f"/group/a{number}" for number in range(50)]
    assert len({inode_number(array + suffix) for array in arrays for suffix in suffixes}) == 50 * len(
        suffixes
    )
    # A file with a suffix of two parts (.ome.tif) can also be one of an array with a longer name.
    suffixes = [suffix for suffix in suffixes if suffix.count(".") == 1]
    files = sorted((inode_number(array + suffix), array) for array in arrays for suffix in suffixes)
    assert [array for array, _ in groupby(array for _, array in files)] == [
        array for _, array in files[:: len(suffixes)]
    ]
    assert len(suffixes) > 10


def test_a_new_member_with_the_name_of_a_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    group = fill(path, 5)
    set_times(path)
    clock = Clock()
    operations = operations_of(path, clock=clock)
    names = operations.readdir("/", 0)[3:]
    assert [stat.S_ISREG(operations.getattr(f"/{name}")["st_mode"]) for name in names] == [True] * 15
    group.create_group("a00.npy")
    clock.now += REVALIDATION_SECONDS + 1
    assert stat.S_ISDIR(operations.getattr("/a00.npy")["st_mode"])


def test_the_second_listing_with_all_views_opens_no_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.zarr"
    group = fill(path, 12)
    group.create_array("text", data=np.array(["a", "b\n"]))
    clock = Clock()
    operations = operations_of(path, views=("all",), clock=clock)
    found = listed(operations)
    assert {"a03.h5", "a03.nhdr", "a03.F.raw", "a03.planes", "text.txt"} <= set(found)
    clock.now += REVALIDATION_SECONDS + 1
    compared: list[str] = []
    monkeypatch.setattr(
        node_cache, "document_stamps", lambda *args: compared.append(args[1]) or document_stamps(*args)
    )
    assert listed(operations) == found
    # The sizes of the first array of the kind were not kept, and the .txt file depends on the elements.
    assert set(compared) <= {"", "a00", "text"}
    # The sizes in memory are those of the documents and not used for others.
    group["a03"].attrs["n"] = "much longer than the number"
    zarrfs.create_array(path / "a04", shape=(7, 5), dtype="u2", overwrite=True)
    clock.now += REVALIDATION_SECONDS + 1
    changed = listed(operations)
    assert changed == listed(operations_of(path, views=("all",), summarizes=False))
    assert changed["a03.h5"]["st_size"] >= found["a03.h5"]["st_size"]
    assert changed["a04.nii"]["st_size"] > found["a04.nii"]["st_size"]
    assert changed["a05.h5"] == found["a05.h5"]


def test_cached_array_kinds_of_former_group_versions_are_dropped(tmp_path: Path) -> None:
    group = fill(tmp_path / "s.zarr", 3)
    clock = Clock()
    operations = operations_of(tmp_path / "s.zarr", clock=clock)
    summaries = operations._tree._listing._summaries
    assert summaries is not None
    for number in range(4):
        group.attrs["number"] = number
        clock.now += REVALIDATION_SECONDS + 1
        listed(operations)
        assert len(summaries._kinds) == 1


def set_times(path: Path) -> None:
    """Set the times of the directories to the past: a directory that was changed just now has no stamp."""
    for directory in (path, *path.iterdir()):
        if directory.is_dir():
            os.utime(directory, (1000, 1000))


def test_large_groups_are_listed_without_sizes_until_an_entry_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "s.zarr", 130)
    monkeypatch.setattr(open_directories, "MAX_MEMBERS", 100)
    monkeypatch.setattr(group_listing, "MEMBERS_PER_BATCH", 10)
    monkeypatch.setattr(open_directories, "NAMES_PER_BATCH", 7)
    scans: list[bool] = []

    scan_members = members.scan_members

    def record(*arguments: Any, with_usage: bool) -> Any:
        scans.append(with_usage)
        return scan_members(*arguments, with_usage=with_usage)

    monkeypatch.setattr(member_summaries, "scan_members", record)
    operations = operations_of(tmp_path / "s.zarr")
    handle = operations.opendir("/")
    entries = list(operations.read_directory("/", handle, 0, True))
    names = [entry.name for entry in entries]
    assert len(names) == len(set(names)) == 2 + 1 + 3 * 130
    assert max(number for number, entry in enumerate(entries) if entry.attributes) < MAX_EXPENSIVE
    assert scans.count(True) <= 4
    looked_up = operations.opendir("/")
    page = operations.read_directory("/", looked_up, 0, True)
    for name in names[:100]:
        assert next(page).name == name
    operations.getattr(f"/{names[99]}")
    rest = list(operations.read_directory("/", looked_up, 100, True))
    assert [entry.name for entry in rest] == names[100:]
    assert all(entry.attributes is not None for entry in rest[30:])
