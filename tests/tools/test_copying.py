"""Copies of arrays and hierarchies: same values, attributes and names, whatever the stores, formats and chunks."""

from __future__ import annotations

import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from click.testing import CliRunner

import zarrfs
from zarrfs.cli.main import main
from zarrfs.engine.parallel import at_most
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore, FailingStore
from zarrfs.errors import MetadataError, NodeExistsError, StoreError, UnsupportedError
from zarrfs.tools import convert, copy, copy_all, copy_store, rechunk
from zarrfs.tools.copying.planning import blocks

FORMATS: list[Any] = [2, 3, "n5", "draft2019"]
RNG = np.random.default_rng(0)


def make(path: Path, zarr_format: Any) -> zarrfs.Group:
    """A hierarchy of several data types, with an empty and a partly stored array."""
    group = zarrfs.create_group(path, zarr_format=zarr_format, attributes={"title": "t", "n": [1, 2]})
    names = None if zarr_format in (2, "draft2019") else ["y", "x"]
    group.create_array(
        "a",
        data=RNG.integers(0, 99, (30, 41)).astype("u2"),
        chunks=(8, 9),
        dimension_names=names,
        attributes={"k": 1},
    )
    group.create_group("inner", attributes={"deep": True})
    fills = (0, 0) if zarr_format == "n5" else (2.5, -1)
    group.create_array("inner/f", data=RNG.normal(size=(7, 5)), chunks=(4, 4), fill_value=fills[0])
    part = group.create_array("inner/part", shape=(20,), dtype="i4", chunks=(5,), fill_value=fills[1])
    part[5:10] = np.arange(5)
    return group


def plain(node: Any) -> dict[str, Any]:
    """The attributes without those in which v2 and N5 keep the names of dimensions."""
    return {key: value for key, value in node.attrs.items() if key not in ("_ARRAY_DIMENSIONS", "axes")}


def same(one: zarrfs.Group, other: zarrfs.Group) -> None:
    assert dict(other.attrs) == dict(one.attrs)
    first, second = dict(one.walk()), dict(other.walk())
    assert sorted(first) == sorted(second)
    for path, node in first.items():
        found = second[path]
        assert plain(found) == plain(node)
        if isinstance(node, zarrfs.Array):
            assert isinstance(found, zarrfs.Array)
            assert found.dtype.newbyteorder("=") == node.dtype.newbyteorder("=")
            assert np.array_equal(found[...], node[...])
            assert found.dimension_names == node.dimension_names


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_every_format_becomes_every_other(source: Any, target: Any, tmp_path: Path) -> None:
    group = make(tmp_path / "source.zarr", source)
    convert(tmp_path / "source.zarr", tmp_path / "target.zarr", zarr_format=target, verify=True)
    found = zarrfs.open_group(tmp_path / "target.zarr")
    assert found.zarr_format == target
    same(group, found)


@pytest.mark.parametrize(("source", "target"), [(2, 3), (3, 2), (3, 3), (2, 2)])
def test_chunks_are_untouched_where_only_documents_differ(source: int, target: int, tmp_path: Path) -> None:
    array = zarrfs.create_array(
        tmp_path / "s",
        data=RNG.integers(0, 9, (20, 20)),
        chunks=(6, 6),
        zarr_format=source,
        compressors="zstd",
    )
    lines = convert(tmp_path / "s", tmp_path / "t", zarr_format=target)
    assert lines == ["/: chunks copied as they are"]
    found = zarrfs.open_array(tmp_path / "t")
    for coords in array.storage.stored_chunks():
        old = array.store.get(array.storage.key(coords))
        assert old == found.store.get(found.storage.key(coords))
    assert np.array_equal(np.asarray(zarr.open_array(str(tmp_path / "t"), mode="r")[...]), array[...])


def test_peers_read_what_was_converted(tmp_path: Path) -> None:
    data = RNG.integers(0, 999, (33, 21)).astype("u2")
    zarr.create_array(tmp_path / "v2", data=data, chunks=(10, 10), zarr_format=2)
    convert(tmp_path / "v2", tmp_path / "v3", zarr_format=3, shards=(20, 20))
    assert np.array_equal(np.asarray(zarr.open_array(tmp_path / "v3", mode="r")[...]), data)
    convert(tmp_path / "v3", tmp_path / "n5", zarr_format="n5", compressors="gzip")
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "n5")}}
    assert np.array_equal(tensorstore.open(spec).result().read().result().T, data)


def test_compression_and_shards_are_changed(tmp_path: Path) -> None:
    data = RNG.integers(0, 5, (64, 64)).astype("u1")
    zarrfs.create_array(tmp_path / "a", data=data, chunks=(16, 16), shards=(32, 32))
    convert(tmp_path / "a", tmp_path / "b", compressors={"name": "gzip", "configuration": {"level": 9}})
    found = zarrfs.open_array(tmp_path / "b")
    assert (found.chunks, found.shards) == ((16, 16), (32, 32))
    assert "gzip" in str(found.info["codecs"])
    convert(tmp_path / "a", tmp_path / "c", compressors="none", shards=False)
    plain = zarrfs.open_array(tmp_path / "c")
    assert plain.shards is None
    assert plain.nbytes_stored() >= data.nbytes
    for array in (found, plain):
        assert np.array_equal(array[...], data)


def test_strings_and_structures_are_kept(tmp_path: Path) -> None:
    words = np.array([["a", "größe"], ["", "日本"]], object)
    zarrfs.create_array(tmp_path / "w", data=words, dtype="string", chunks=(1, 2), zarr_format=2)
    records = np.array([(1, 2.5), (3, 4.5)], [("i", "<i4"), ("f", "<f8")])
    zarrfs.create_array(tmp_path / "r", data=records, chunks=(1,), zarr_format=2)
    for name, expected in (("w", words), ("r", records)):
        convert(tmp_path / name, tmp_path / f"{name}3", zarr_format=3, verify=True)
        found = zarrfs.open_array(tmp_path / f"{name}3")[...]
        assert np.asarray(found).tolist() == expected.tolist()


def test_a_rechunk_writes_each_chunk_once_and_bounds_memory(tmp_path: Path) -> None:
    data = RNG.integers(0, 2**16, (16, 64, 64)).astype("u2")
    planes = zarrfs.create_array(MemoryStore(), data=data, chunks=(1, 64, 64))
    store = CountingStore(MemoryStore())
    rechunk(planes.store, store, (16, 8, 8), memory=16 << 10, shards=(16, 16, 16))
    found = zarrfs.open_array(store)
    assert np.array_equal(found[...], data)
    assert found.shards == (16, 16, 16)
    assert store.calls["set"] == 16 + 1
    for block in blocks(found, planes, 16 << 10):
        assert np.empty(data.shape, "u1")[block].size * 2 <= 16 << 10


SIDE = 128
PLANES, CUBES = (1, SIDE, SIDE), (16, 16, 16)
SLAB = 16 * SIDE * SIDE * 2
"""The bytes of as many planes as a cube has."""


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize(("old", "new"), [(PLANES, CUBES), (CUBES, PLANES)], ids=["cubes", "planes"])
def test_a_rechunk_reads_as_often_as_memory_is_too_small_and_takes_no_more(
    old: tuple[int, ...], new: tuple[int, ...], times: int, tmp_path: Path
) -> None:
    data = RNG.integers(0, 2**16, (SIDE, SIDE, SIDE)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=old)
    source = CountingStore(LocalStore(tmp_path / "s"))
    memory, threads = SLAB // times, 2
    tracemalloc.start()
    try:
        with at_most(threads):
            rechunk(source, tmp_path / "t", new, memory=memory)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    reads = {key: count for key, count in source.keys.items() if key.startswith("c/")}
    assert len(reads) == zarrfs.open_array(tmp_path / "s").nchunks
    if times == 1:
        assert set(reads.values()) == {1}
    assert max(reads.values()) <= times
    # What is decoded, what is kept, and a chunk or two as they are stored.
    assert peak < (threads + 1) * memory + (1 << 19)
    assert peak < data.nbytes
    assert np.array_equal(zarrfs.open_array(tmp_path / "t")[...], data)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "options", [{}, {"compressors": "gzip"}, {"chunks": (8, 8)}], ids=["as it is", "gzip", "chunks"]
)
def test_an_interrupted_copy_goes_on(options: dict[str, Any], threads: int, tmp_path: Path) -> None:
    data = RNG.integers(1, 99, (40, 40)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(10, 10))
    kept = MemoryStore()
    lock = threading.Lock()
    left = 5

    def failure(operation: str, key: str) -> Exception | None:
        nonlocal left
        if operation == "set" and key.startswith("c/"):
            with lock:
                left -= 1
                if left < 0:
                    return StoreError("the disk is full")
        return None

    with at_most(threads), pytest.raises(StoreError, match="full"):
        convert(tmp_path / "s", FailingStore(kept, failure), **options)
    done = {key for key in kept.list_prefix() if key.startswith("c/")}
    assert len(done) == 5
    written: list[str] = []

    def record(operation: str, key: str) -> None:
        if operation == "set" and key.startswith("c/"):
            written.append(key)

    convert(tmp_path / "s", FailingStore(kept, record), if_exists="resume", **options)
    found = zarrfs.open_array(kept)
    assert np.array_equal(found[...], data)
    assert len(set(written)) == len(written)
    assert done | set(written) == {key for key in kept.list_prefix() if key.startswith("c/")}
    if "chunks" not in options:
        assert done.isdisjoint(written)
    elif threads == 1:
        # A block of four chunks was complete. Two threads may both have been at incomplete blocks.
        assert len(done & set(written)) == 1


def test_another_array_is_not_gone_on_with(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.ones((4, 4)), chunks=(2, 2))
    zarrfs.create_array(tmp_path / "t", data=np.ones((5, 4)), chunks=(2, 2))
    for options in ({}, {"chunks": (4, 4)}):
        with pytest.raises(MetadataError, match="no interrupted copy"):
            convert(tmp_path / "s", tmp_path / "t", if_exists="resume", **options)  # type: ignore[arg-type]
    assert zarrfs.open_array(tmp_path / "t").shape == (5, 4)


def test_what_is_there_is_respected(tmp_path: Path) -> None:
    make(tmp_path / "s", 3)
    zarrfs.create_array(tmp_path / "t", "a", data=np.zeros(3))
    with pytest.raises(NodeExistsError, match="already something"):
        convert(tmp_path / "s", tmp_path / "t")
    assert list(zarrfs.open_group(tmp_path / "t").names()) == ["a"]
    lines = convert(tmp_path / "s", tmp_path / "t", if_exists="skip")
    assert "a: skipped, it is there" in lines
    assert zarrfs.open_array(tmp_path / "t", "a").shape == (3,)
    convert(tmp_path / "s", tmp_path / "t", if_exists="replace")
    assert zarrfs.open_array(tmp_path / "t", "a").shape == (30, 41)
    with pytest.raises(NodeExistsError, match="into itself"):
        convert(tmp_path / "s", tmp_path / "s" / "copy")


LAST_CHUNK = ("/4", "c/4")


@pytest.mark.parametrize("old_format", FORMATS)
@pytest.mark.parametrize("new_format", FORMATS)
@pytest.mark.parametrize("where", ["", "a", "deep/a"])
def test_a_replacement_that_fails_leaves_the_old_array(
    old_format: Any, new_format: Any, where: str, tmp_path: Path
) -> None:
    """Be it the source that breaks, the destination that fills up, or the comparison that finds a difference."""
    zarrfs.create_array(tmp_path / "s", data=np.arange(100), chunks=10, zarr_format=2, compressors="zlib")

    def replace(store: Store, zarr_format: Any) -> None:
        options: dict[str, Any] = {"if_exists": "replace", "chunks": 20, "zarr_format": zarr_format}
        if where:
            copy(zarrfs.open_array(tmp_path / "s"), zarrfs.open_group(store, mode="r+"), where, **options)
        else:
            convert(tmp_path / "s", store, **options)

    broken = tmp_path / "s" / "7"
    sound = broken.read_bytes()
    broken.write_bytes(b"broken")
    old = zarrfs.create_array(tmp_path / "t", where, data=np.arange(6), chunks=2, zarr_format=old_format)
    before = {key: old.store.get(key) for key in old.store.list_prefix()}
    with pytest.raises(zarrfs.ZarrError):
        replace(old.store, new_format)
    assert {key: old.store.get(key) for key in old.store.list_prefix()} == before
    broken.write_bytes(sound)

    def failure(operation: str, key: str) -> Exception | None:
        return StoreError("the disk is full") if operation == "set" and key.endswith(LAST_CHUNK) else None

    with pytest.raises(StoreError, match="disk is full"):
        replace(FailingStore(old.store, failure), new_format)
    assert {key: old.store.get(key) for key in old.store.list_prefix()} == before
    replace(old.store, old_format)
    assert (zarrfs.open_array(tmp_path / "t", where)[...] == np.arange(100)).all()
    assert not [key for key in old.store.list_prefix() if "zarrfs-copy" in key]


def test_a_group_replaces_an_array_once_it_is_complete(tmp_path: Path) -> None:
    make(tmp_path / "s", 3)
    chunk = tmp_path / "s" / "inner" / "f" / "c" / "0" / "0"
    sound = chunk.read_bytes()
    zarrfs.create_array(tmp_path / "t", "x", data=np.arange(3))
    chunk.write_bytes(b"")
    with pytest.raises(zarrfs.ZarrError):
        convert(tmp_path / "s", tmp_path / "t" / "x", if_exists="replace", zarr_format=3, compressors="none")
    assert zarrfs.open_array(tmp_path / "t", "x")[...].tolist() == [0, 1, 2]
    chunk.write_bytes(sound)
    convert(tmp_path / "s", tmp_path / "t" / "x", if_exists="replace")
    same(zarrfs.open_group(tmp_path / "s"), zarrfs.open_group(tmp_path / "t", "x"))


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    make(tmp_path / "s", 2)
    lines = convert(tmp_path / "s", tmp_path / "t", zarr_format=3, dry_run=True)
    assert "a: chunks copied as they are" in lines
    assert not (tmp_path / "t").exists()


def test_a_difference_is_found(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(100), chunks=(10,))
    convert(tmp_path / "s", tmp_path / "t")
    array = zarrfs.open_array(tmp_path / "t", mode="r+")
    array[55] = 0
    with pytest.raises(StoreError, match="differs from the source"):
        convert(tmp_path / "s", tmp_path / "t", if_exists="resume", verify=True)


def test_shards_of_a_format_without_them_are_refused(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(100), chunks=(10,))
    with pytest.raises(UnsupportedError, match="shards need zarr_format 3"):
        convert(tmp_path / "s", tmp_path / "t", zarr_format=2, shards=(20,))


def test_copy_and_copy_all(tmp_path: Path) -> None:
    source = make(tmp_path / "s", 2)
    dest = zarrfs.create_group(tmp_path / "t")
    copy(source["inner"], dest, "other")
    assert np.array_equal(dest["other/f"][...], source["inner/f"][...])
    assert dest["other/f"].zarr_format == 3
    copy_all(source, dest)
    assert sorted(dest.names()) == ["a", "inner", "other"]


def test_copy_store(tmp_path: Path) -> None:
    make(tmp_path / "s", 3)
    source, dest = LocalStore(tmp_path / "s"), MemoryStore()
    count, skipped, nbytes = copy_store(source, dest, "inner", "below", dry_run=True)
    assert list(dest.list_prefix()) == []
    assert (skipped, nbytes) == (0, 0)
    assert copy_store(source, dest, "inner", "below") == (count, 0, source.usage("inner").nbytes)
    assert np.array_equal(zarrfs.open_array(dest, "below/f")[...], zarrfs.open_array(source, "inner/f")[...])
    with pytest.raises(NodeExistsError):
        copy_store(source, dest, "inner", "below")
    assert copy_store(source, dest, "inner", "below", if_exists="skip") == (0, count, 0)


def test_the_commands(tmp_path: Path) -> None:
    group = make(tmp_path / "s.zarr", 2)

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    s, t = str(tmp_path / "s.zarr"), str(tmp_path / "t.zarr")
    assert "would be" in run("convert", s, t, "--format", "3", "--dry-run")
    assert "as they are" in run("convert", s, t, "--format", "3", "--verify")
    same(group, zarrfs.open_group(t))
    run("copy", s, str(tmp_path / "c.zarr.zip"))
    same(group, zarrfs.open_group(tmp_path / "c.zarr.zip"))
    run("copy", s, f"sqlite://{tmp_path}/c.sqldb")
    with zarrfs.open_group(tmp_path / "c.sqldb").store as store:
        same(group, zarrfs.open_group(store))
    run("rechunk", f"{t}/a", str(tmp_path / "r.zarr"), "--chunks", "5,-1", "--shards", "10,41")
    found = zarrfs.open_array(tmp_path / "r.zarr")
    assert (found.chunks, found.shards) == ((5, 41), (10, 41))
    run("convert", f"{t}/a", str(tmp_path / "g.zarr"), "--compressor", "gzip:9")
    assert "gzip" in str(zarrfs.open_array(tmp_path / "g.zarr").info["codecs"])
    done = CliRunner().invoke(main, ["convert", s, t])
    assert isinstance(done.exception, NodeExistsError) or done.exit_code
