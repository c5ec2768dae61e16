"""Verification finds every damaged chunk and every difference, reports no others, and can be resumed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.documents import LITTLE, sharding
from zarrfs.cli.main import main
from zarrfs.errors import NodeExistsError, OptionError, StoreError
from zarrfs.storage import MemoryStore
from zarrfs.testing import FailingStore
from zarrfs.tools import Problem, convert, verify
from zarrfs.tools.copying.cells import Cells
from zarrfs.tools.copying.copy_tasks import have_equal_values
from zarrfs.tools.verification import chunks
from zarrfs.tools.verification.chunks import missing_between

VALUES = np.random.default_rng(5).integers(1, 999, (20, 30)).astype("u2")


LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": (8, 8)},
    "crc32c": {"chunks": (8, 8), "compressors": [{"name": "crc32c"}]},
    "v2": {"chunks": (8, 8), "zarr_format": 2, "compressors": {"id": "zlib", "level": 1}},
    "n5": {"chunks": (8, 8), "zarr_format": "n5"},
    "sharded": {"chunks": (4, 4), "shards": (8, 8)},
    "nested shards": {
        "chunks": (8, 8),
        "codecs": [sharding((4, 4), [sharding((2, 2), [LITTLE, {"name": "crc32c"}])])],
    },
    "rectilinear": {"chunks": ((5, 10, 5), 8)},
}


@pytest.fixture(params=list(LAYOUTS))
def array(request: pytest.FixtureRequest) -> zarrfs.Array:
    return zarrfs.create_array(MemoryStore(), data=VALUES, **LAYOUTS[request.param])


def chunk_key(array: zarrfs.Array, coords: tuple[int, ...]) -> str:
    return array.storage.key(coords)


def test_an_intact_array_has_no_problems(array: zarrfs.Array) -> None:
    report = verify(array)
    assert report.is_intact
    assert not report.problems
    assert report.chunks == len(list(array.storage.stored_chunks())) == 12


@pytest.mark.parametrize("coords", [(0, 0), (1, 2), (2, 3)])
def test_a_truncated_chunk_is_found(array: zarrfs.Array, coords: tuple[int, int]) -> None:
    key = chunk_key(array, coords)
    value = array.store.get(key)
    assert value is not None
    array.store.set(key, bytes(value)[: len(value) * 3 // 4])
    report = verify(array, memory=1)
    assert {(problem.kind, problem.chunk, problem.key) for problem in report.problems} == {
        ("corrupt", coords, key)
    }
    assert not report.is_intact


def test_each_broken_inner_chunk_of_a_shard_is_reported() -> None:
    array = zarrfs.create_array(MemoryStore(), data=VALUES, chunks=(4, 4), shards=(8, 8))
    key = chunk_key(array, (0, 0))
    value = bytearray(array.store.get(key) or b"")
    value[:4] = value[-40:-36] = b"\xff" * 4  # the beginning of the first inner chunk, and of the index
    array.store.set(key, bytes(value))
    assert verify(array).count("corrupt") >= 1


@pytest.mark.parametrize("memory", [1, 64, 1 << 20])
def test_the_parts_of_a_shard_are_verified_in_bounded_memory(memory: int) -> None:
    array = zarrfs.create_array(MemoryStore(), data=VALUES, chunks=(4, 3), shards=(20, 30))
    assert verify(array, memory=memory).problems == []
    other = zarrfs.create_array(MemoryStore(), data=VALUES, chunks=(7, 7))
    other[19, 29] += 1
    (problem, *more) = verify(array, other, memory=memory).problems
    assert problem.kind == "different"
    assert not more


def test_a_chunk_that_cannot_be_read_does_not_end_the_verification() -> None:
    inner = MemoryStore()
    array = zarrfs.create_array(inner, data=VALUES, chunks=(8, 8))
    broken = {chunk_key(array, (0, 1)), chunk_key(array, (2, 2))}
    store = FailingStore(inner, lambda _, key: StoreError("input/output error") if key in broken else None)
    report = verify(store)
    assert {problem.key for problem in report.problems} == broken
    assert {problem.kind for problem in report.problems} == {"unreadable"}


def test_a_chunk_directory_without_permission_does_not_hide_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not apply to root, so the error of the system is simulated."""
    group = zarrfs.create_group(tmp_path / "s.zarr")
    for name in ("a", "b"):
        group.create_array(name, data=np.arange(1, 13).reshape(4, 3), chunks=(1, 1))
    shutil.copytree(tmp_path / "s.zarr", tmp_path / "t.zarr")
    (tmp_path / "s.zarr/a/c/2/0").write_bytes(b"damaged")
    closed = str(tmp_path / "s.zarr/a/c/1")
    scandir = os.scandir

    def scan(path: str = ".") -> Any:
        if path == closed:
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    for other in (None, tmp_path / "t.zarr"):
        report = verify(tmp_path / "s.zarr", other)
        found = {(problem.kind, problem.path, problem.chunk) for problem in report.problems}
        files = set() if other is None else {("unreadable", "/", None)}
        assert found == {("unreadable", "a", None), ("corrupt", "a", (2, 0)), *files}
        assert any(f"{closed} cannot be read: Permission denied" in p.message for p in report.problems)
        assert report.chunks == (21 if other is None else 24)
    swapped = verify(tmp_path / "t.zarr", tmp_path / "s.zarr")
    assert {problem.kind for problem in swapped.problems} == {"unreadable", "corrupt"}
    shown = CliRunner().invoke(main, ["info", str(tmp_path / "s.zarr/a")])
    assert shown.exit_code == 1
    assert f"unknown: {closed} cannot be read: Permission denied" in shown.output
    assert "at least 9 of 12 (75.0%)" in shown.output
    sizes = CliRunner().invoke(main, ["du", str(tmp_path / "s.zarr")])
    assert (sizes.exit_code, sizes.output.count("12 of 12")) == (1, 2)


@pytest.mark.parametrize("layout", ["v3", "sharded", "n5"])
def test_a_listed_chunk_that_does_not_exist_is_found(layout: str, tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a.zarr", data=VALUES, **LAYOUTS[layout])
    file = tmp_path / "a.zarr" / chunk_key(array, (1, 1))
    file.unlink()
    file.symlink_to("missing")
    report = verify(tmp_path / "a.zarr")
    (problem,) = report.problems
    assert (problem.kind, problem.chunk, report.is_intact) == ("unreadable", (1, 1), False)
    assert "the store lists it, but it does not exist" in problem.message


@pytest.mark.parametrize("is_compared", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_that_is_deleted_meanwhile_is_one_error(layout: str, is_compared: bool) -> None:
    """All its chunks were listed as problems, or the other array read as the fill value."""
    inner, other = MemoryStore(), MemoryStore()
    array = zarrfs.create_array(inner, data=VALUES, **LAYOUTS[layout])
    zarrfs.create_array(other, data=VALUES, **LAYOUTS[layout])
    first = chunk_key(array, (0, 0))

    def delete_all(_: str, key: str) -> None:
        if key == first:
            inner.delete_prefix("")

    opened = zarrfs.open_array(FailingStore(inner, delete_all))
    with pytest.raises(StoreError, match="was deleted by another program while it was verified"):
        verify(other if is_compared else opened, opened if is_compared else None)


def test_differences_to_a_copy_with_other_chunks_are_found(array: zarrfs.Array) -> None:
    copy = MemoryStore()
    convert(array, copy, zarr_format=3, chunks=(6, 5), shards=False)
    assert verify(array, copy).problems == []
    other = zarrfs.open_array(copy, mode="r+")
    other[3, 4] += 1
    (problem,) = verify(array, copy).problems
    assert (problem.kind, problem.chunk) == ("different", (0, 0))
    assert "differ from those in memory://" in problem.message


def test_a_chunk_that_exists_only_at_the_other_location_is_different() -> None:
    array = zarrfs.create_array(MemoryStore(), data=VALUES, chunks=(8, 8))
    other = zarrfs.create_array(MemoryStore(), data=VALUES, chunks=(8, 8))
    array.store.delete(chunk_key(array, (1, 1)))
    assert [problem.chunk for problem in verify(array, other).problems] == [(1, 1)]
    assert [problem.chunk for problem in verify(other, array).problems] == [(1, 1)]


def new_hierarchy(path: Path) -> zarrfs.Group:
    group = zarrfs.create_group(path)
    group.create_array("a/b", data=VALUES, chunks=(8, 8))
    group.create_array("c", data=VALUES[0], chunks=8)
    return group


def test_hierarchies_are_compared_array_by_array(tmp_path: Path) -> None:
    new_hierarchy(tmp_path / "one")
    other = new_hierarchy(tmp_path / "other")
    assert verify(tmp_path / "one", tmp_path / "other").arrays == 2
    del other["c"]
    other.create_array("d", data=VALUES)
    other.create_array("a/b", data=VALUES[:3], overwrite=True)
    problems = verify(tmp_path / "one", tmp_path / "other").problems
    assert [(problem.path, problem.kind) for problem in problems] == [
        ("a/b", "different"),
        ("c", "different"),
        ("d", "different"),
    ]
    assert "expected shape (20, 30)" in problems[0].message


def test_problems_are_listed_by_path_and_chunk(tmp_path: Path) -> None:
    """An array that is missing is found after the chunks of the others were read."""
    one = new_hierarchy(tmp_path / "one")
    new_hierarchy(tmp_path / "other")
    del one["a/b"]
    for number in (3, 0):
        (tmp_path / "one" / "c" / "c" / str(number)).write_bytes(b"corrupt")
    problems = verify(tmp_path / "one", tmp_path / "other").problems
    assert [(problem.path, problem.chunk) for problem in problems] == [
        ("a/b", None),
        ("c", (0,)),
        ("c", (3,)),
    ]


FORMATS: list[Any] = [2, 3, "n5"]


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_the_metadata_of_copies_are_equal_and_each_change_is_found(source: Any, target: Any) -> None:
    group = zarrfs.create_group(MemoryStore(), zarr_format=source, attributes={"title": "t"})
    names = ["y", "x"]
    for name, fill in (("a", 0), ("b", 7)):
        array = group.create_array(
            f"g/{name}", shape=(4, 3), dtype="f4", chunks=(2, 3), dimension_names=names
        )
        array.attrs["units"] = "K"
        if source != "n5":
            group.create_array(
                f"g/{name}_fill", data=VALUES, chunks=(8, 8), fill_value=fill, dimension_names=names
            )
    if source != "n5":
        group.create_array("nan", shape=4, dtype="f4", fill_value=np.nan, dimension_names=["x"])
        axes = [{"name": name, "type": "space"} for name in names]
        scale = [{"type": "scale", "scale": [1, 1]}]
        image = [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}]
        ome = {"multiscales": [{**image[0], "version": "0.4"}]} if source == 2 else {}
        attributes = ome or {"ome": {"version": "0.5", "multiscales": image}}
        group.create_group("image", attributes=attributes).create_array("0", data=VALUES)
    copy = MemoryStore()
    convert(group.store, copy, zarr_format=target)
    for one, other in ((group.store, copy), (copy, group.store)):
        assert verify(one, other, metadata=True).problems == []
    changed = zarrfs.open_group(copy, mode="r+")
    changed["g/a"].attrs["units"] = "m"
    changed.attrs["new"] = 1
    changed.create_group("more")
    if source != "n5":
        changed["image"].attrs["x"] = 1
    assert verify(group.store, copy).problems == []
    found = {p.path: p.message.partition(": ")[2] for p in verify(group.store, copy, metadata=True).problems}
    expected = {
        "/": "the attribute 'new' exists only there",
        "g/a": "attribute 'units': expected 'm', found 'K'",
        "more": "",
        **({"image": "the attribute 'x' exists only there"} if source != "n5" else {}),
    }
    assert found.keys() == expected.keys()
    assert all(expected[path] in message for path, message in found.items())
    swapped = verify(copy, group.store, metadata=True).problems
    assert {problem.path for problem in swapped} == expected.keys()
    with pytest.raises(OptionError, match="needs another location"):
        verify(copy, metadata=True)


def test_unreadable_metadata_is_a_problem_of_the_member_only(tmp_path: Path) -> None:
    new_hierarchy(tmp_path / "one")
    (tmp_path / "one" / "c" / "zarr.json").write_text("{")
    (problem,) = verify(tmp_path / "one").problems
    assert (problem.path, problem.kind) == ("c", "unreadable")


# -- missing chunks --------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(
        lambda grid: st.tuples(st.just(grid), st.sets(st.tuples(*(st.integers(0, n - 1) for n in grid))))
    )
)
def test_missing_chunks_have_only_stored_neighbours(case: tuple[list[int], set[tuple[int, ...]]]) -> None:
    grid, missing = case
    stored = sorted(set(product(*map(range, grid))) - missing)
    expected = []
    for chunk in sorted(missing):
        neighbours = [
            (*chunk[:axis], chunk[axis] + step, *chunk[axis + 1 :])
            for axis in range(len(grid))
            for step in (-1, 1)
            if 0 <= chunk[axis] + step < grid[axis]
        ]
        if neighbours and all(neighbour in stored for neighbour in neighbours):
            expected.append(chunk)
    for window in (1, 1 << 18):
        with patch.object(chunks, "WINDOW", window):
            assert sorted(missing_between(Cells(grid, stored))) == (expected if stored else [])


def test_missing_chunks_are_reported_but_do_not_count_as_damage(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(8, 8))
    array[8:16, 8:16] = 0
    report = verify(array)
    assert [(problem.kind, problem.chunk) for problem in report.problems] == [("missing", (1, 1))]
    assert report.is_intact
    runner = CliRunner()
    assert runner.invoke(main, ["verify", str(tmp_path / "a.zarr")]).exit_code == 0
    assert runner.invoke(main, ["verify", str(tmp_path / "a.zarr"), "--strict"]).exit_code == 1


# -- report file -----------------------------------------------------------------------------------------------


def test_an_interrupted_run_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrfs.tools.verification.verification.BATCH_SIZE", 5)
    inner = MemoryStore()
    array = zarrfs.create_array(inner, data=VALUES, chunks=(8, 8))
    inner.set(chunk_key(array, (0, 1)), b"broken")
    file = tmp_path / "report.jsonl"

    def stop(path: str, done: int, total: int) -> None:
        if done == total * 10 // 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(array, report_file=file, progress=stop)
    with pytest.raises(NodeExistsError, match="resume"):
        verify(array, report_file=file)
    with file.open("a") as opened:
        opened.write('{"batch": [')  # an incomplete line
    report = verify(array, report_file=file, resume=True)
    assert (report.chunks, report.resumed) == (12, 10)
    assert [problem.chunk for problem in report.problems] == [(0, 1)]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[-1]["complete"]["intact"] is False
    assert verify(array, report_file=file, resume=True).resumed == 12


@pytest.mark.parametrize(
    "content", ["", "x\n", '{"zarrfs_verify": 1, "location": "elsewhere"}\n', "[]\n{}\n"]
)
def test_a_file_that_is_not_the_report_of_this_verification_is_not_changed(
    tmp_path: Path, content: str
) -> None:
    array = zarrfs.create_array(MemoryStore(), data=VALUES)
    (tmp_path / "file").write_text(content)
    with pytest.raises((StoreError, NodeExistsError), match="file"):
        verify(array, report_file=tmp_path / "file", resume=True)
    assert (tmp_path / "file").read_text() == content


def test_the_report_file_lists_all_problems_once_also_when_it_is_resumed(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr")
    other = zarrfs.create_group(tmp_path / "other.zarr")
    group.create_array("a", data=np.ones((4, 4)), chunks=(1, 1))
    group.create_array("b", data=np.ones(4))
    other.create_array("a", data=np.ones((4, 4)), chunks=(1, 1))
    other.create_array("b", data=np.ones(5))
    (tmp_path / "g.zarr/a/c/0/0").write_bytes(b"broken")
    (tmp_path / "g.zarr/a/c/2/2").unlink()
    group.create_group("unreadable")
    (tmp_path / "g.zarr/unreadable/zarr.json").write_text("{")
    for names, kinds in (
        (["g.zarr"], {"corrupt", "missing", "unreadable"}),
        (["g.zarr", "other.zarr"], {"corrupt", "different", "unreadable"}),
    ):
        file = tmp_path / f"{len(names)}.jsonl"
        for resume in (False, True, True):
            report = verify(*(tmp_path / name for name in names), report_file=file, resume=resume)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            listed = [problem for line in lines for problem in line.get("problems", [])]
            expected = [json.dumps(problem.to_json()) for problem in report.problems]
            assert sorted(map(json.dumps, listed)) == sorted(expected)
            assert {problem["kind"] for problem in listed} == kinds
            assert lines[-1]["complete"]["problems"] == len(listed)


def test_a_report_file_that_is_a_fifo_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    array = zarrfs.create_array(MemoryStore(), data=VALUES)
    with pytest.raises(StoreError, match="expected a regular file"):
        verify(array, report_file=tmp_path / "fifo", resume=True)


def test_the_command_prints_problems_and_json(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(8, 8))
    runner = CliRunner()
    result = runner.invoke(main, ["verify", str(tmp_path / "a.zarr")])
    assert (result.exit_code, result.output) == (0, "12 chunks of 1 array verified: no problems\n")
    array.store.set(chunk_key(array, (0, 1)), b"broken")
    result = runner.invoke(main, ["verify", str(tmp_path / "a.zarr")])
    assert result.exit_code == 1
    assert result.output.startswith("corrupt: / chunk (0, 1) (key 'c/0/1'): ")
    assert result.output.endswith("12 chunks of 1 array verified: 1 corrupt\n")
    result = runner.invoke(main, ["verify", str(tmp_path / "a.zarr"), "--json"])
    document = json.loads(result.output)
    assert (document["chunks"], document["problems"][0]["chunk"]) == (12, [0, 1])
    result = runner.invoke(main, ["verify", str(tmp_path / "a.zarr"), "--resume"])
    assert (result.exit_code, "--report" in result.output) == (2, True)


def test_problems_are_json() -> None:
    problem = Problem("a", "corrupt", "message", (1, 2), "a/c/1/2")
    assert json.loads(json.dumps(problem.to_json())) == {
        "path": "a",
        "kind": "corrupt",
        "message": "message",
        "chunk": [1, 2],
        "key": "a/c/1/2",
    }


def test_values_are_compared_without_copies() -> None:
    one = np.arange(1 << 20, dtype="u2").reshape(1024, 1024)
    other = one.copy()
    tracemalloc.start()
    try:
        assert have_equal_values(one, other)
        assert tracemalloc.get_traced_memory()[1] < one.nbytes // 2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "<f4", "c16", "S3", "U4", "M8[s]", "V5"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_values_are_equal_if_their_bits_are(dtype: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    one = np.full(count, 0, "u1").view(dtype).reshape(shape)
    assert have_equal_values(one, np.asfortranarray(one))
    assert have_equal_values(one.astype(one.dtype.newbyteorder()), one)
    if count:
        changed = np.zeros(count, "u1")
        changed[-1 if dtype != "U4" else -4] = 1
        assert not have_equal_values(one, changed.view(dtype).reshape(shape))
    nan = np.full(shape, np.nan)
    assert have_equal_values(nan, nan.copy())
    assert have_equal_values(nan, -nan) == (nan.size == 0)
