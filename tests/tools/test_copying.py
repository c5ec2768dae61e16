"""Copies of arrays and hierarchies have the same values, attributes and names in all stores, formats and chunk
shapes.
"""

from __future__ import annotations

import errno
import os
import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from click.testing import CliRunner

import zarrfs
from zarrfs.cli.creation_options import CompressorType
from zarrfs.cli.main import main
from zarrfs.engine.parallel import limit_threads
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import MetadataError, NodeExistsError, StoreError, UnsupportedError
from zarrfs.testing import CountingStore, FailingStore
from zarrfs.tools import convert, copy, copy_all, copy_store, rechunk, verify
from zarrfs.tools.copying.executors import ThreadExecutor
from zarrfs.tools.copying.planning import copy_blocks
from zarrfs.tools.copying.sampling import Sampling, measured_rounds

FORMATS: list[Any] = [2, 3, "n5", "draft2019"]
RNG = np.random.default_rng(0)


def create_hierarchy(path: Path, zarr_format: Any) -> zarrfs.Group:
    """Create a hierarchy of several data types, with a partly stored array."""
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


def own_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes without those in which v2 and N5 store dimension names."""
    return {key: value for key, value in node.attrs.items() if key not in ("_ARRAY_DIMENSIONS", "axes")}


def assert_equal_hierarchies(one: zarrfs.Group, other: zarrfs.Group) -> None:
    assert dict(other.attrs) == dict(one.attrs)
    first, second = dict(one.walk()), dict(other.walk())
    assert sorted(first) == sorted(second)
    for path, node in first.items():
        copied = second[path]
        assert own_attributes(copied) == own_attributes(node)
        if isinstance(node, zarrfs.Array):
            assert isinstance(copied, zarrfs.Array)
            assert copied.dtype.newbyteorder("=") == node.dtype.newbyteorder("=")
            assert np.array_equal(copied[...], node[...])
            assert copied.dimension_names == node.dimension_names


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("source", FORMATS)
def test_every_format_converts_to_every_other(source: Any, target: Any, tmp_path: Path) -> None:
    group = create_hierarchy(tmp_path / "source.zarr", source)
    convert(tmp_path / "source.zarr", tmp_path / "target.zarr", zarr_format=target, verify=True)
    copied = zarrfs.open_group(tmp_path / "target.zarr")
    assert copied.zarr_format == target
    assert_equal_hierarchies(group, copied)


@pytest.mark.parametrize(("source", "target"), [(2, 3), (3, 2), (3, 3), (2, 2)])
def test_encoded_chunks_are_unchanged_if_only_documents_differ(
    source: int, target: int, tmp_path: Path
) -> None:
    array = zarrfs.create_array(
        tmp_path / "s",
        data=RNG.integers(0, 9, (20, 20)),
        chunks=(6, 6),
        zarr_format=source,
        compressors="zstd",
    )
    lines = convert(tmp_path / "s", tmp_path / "t", zarr_format=target)
    assert lines == ["/: chunks copied unchanged"]
    copied = zarrfs.open_array(tmp_path / "t")
    for coords in array.storage.stored_chunks():
        old_chunks = array.store.get(array.storage.key(coords))
        assert old_chunks == copied.store.get(copied.storage.key(coords))
    assert np.array_equal(np.asarray(zarr.open_array(str(tmp_path / "t"), mode="r")[...]), array[...])


def test_other_implementations_read_converted_arrays(tmp_path: Path) -> None:
    data = RNG.integers(0, 999, (33, 21)).astype("u2")
    zarr.create_array(tmp_path / "v2", data=data, chunks=(10, 10), zarr_format=2)
    convert(tmp_path / "v2", tmp_path / "v3", zarr_format=3, shards=(20, 20))
    assert np.array_equal(np.asarray(zarr.open_array(tmp_path / "v3", mode="r")[...]), data)
    convert(tmp_path / "v3", tmp_path / "n5", zarr_format="n5", compressors="gzip")
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "n5")}}
    assert np.array_equal(tensorstore.open(spec).result().read().result().T, data)


def test_convert_changes_compressors_and_shards(tmp_path: Path) -> None:
    data = RNG.integers(0, 5, (64, 64)).astype("u1")
    zarrfs.create_array(tmp_path / "a", data=data, chunks=(16, 16), shards=(32, 32))
    convert(tmp_path / "a", tmp_path / "b", compressors={"name": "gzip", "configuration": {"level": 9}})
    copied = zarrfs.open_array(tmp_path / "b")
    assert (copied.chunks, copied.shards) == ((16, 16), (32, 32))
    assert "gzip" in str(copied.info["codecs"])
    convert(tmp_path / "a", tmp_path / "c", compressors="none", shards=False)
    unsharded = zarrfs.open_array(tmp_path / "c")
    assert unsharded.shards is None
    assert unsharded.nbytes_stored() >= data.nbytes
    for array in (copied, unsharded):
        assert np.array_equal(array[...], data)


def test_strings_and_structured_types_are_copied(tmp_path: Path) -> None:
    arguments = np.array([["a", "größe"], ["", "日本"]], object)
    zarrfs.create_array(tmp_path / "w", data=arguments, dtype="string", chunks=(1, 2), zarr_format=2)
    records = np.array([(1, 2.5), (3, 4.5)], [("i", "<i4"), ("f", "<f8")])
    zarrfs.create_array(tmp_path / "r", data=records, chunks=(1,), zarr_format=2)
    for name, expected in (("w", arguments), ("r", records)):
        convert(tmp_path / name, tmp_path / f"{name}3", zarr_format=3, verify=True)
        copied = zarrfs.open_array(tmp_path / f"{name}3")[...]
        assert np.asarray(copied).tolist() == expected.tolist()


def test_rechunk_writes_each_chunk_once_with_bounded_memory(tmp_path: Path) -> None:
    data = RNG.integers(0, 2**16, (16, 64, 64)).astype("u2")
    planes = zarrfs.create_array(MemoryStore(), data=data, chunks=(1, 64, 64))
    store = CountingStore(MemoryStore())
    rechunk(planes.store, store, (16, 8, 8), memory=16 << 10, shards=(16, 16, 16))
    copied = zarrfs.open_array(store)
    assert np.array_equal(copied[...], data)
    assert copied.shards == (16, 16, 16)
    assert store.calls["set"] == 16 + 1 + 1, "a document, which is changed when the copy is complete"
    for block in copy_blocks(copied, planes, 16 << 10):
        assert np.empty(data.shape, "u1")[block].size * 2 <= 16 << 10


SIDE = 128
PLANES, CUBES = (1, SIDE, SIDE), (16, 16, 16)
SLAB = 16 * SIDE * SIDE * 2
"""The size in bytes of the planes that one cube spans."""


@pytest.mark.parametrize("passes", [1, 2, 4])
@pytest.mark.parametrize(
    ("old_chunks", "new_chunks"), [(PLANES, CUBES), (CUBES, PLANES)], ids=["cubes", "planes"]
)
def test_rechunk_decodes_source_chunks_at_most_slab_size_divided_by_memory_times(
    old_chunks: tuple[int, ...], new_chunks: tuple[int, ...], passes: int, tmp_path: Path
) -> None:
    data = RNG.integers(0, 2**16, (SIDE, SIDE, SIDE)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=old_chunks)
    source = CountingStore(LocalStore(tmp_path / "s"))
    memory, threads = SLAB // passes, 2
    # Modules that the first copy of a process imports need more memory than the copy.
    zarrfs.create_array(tmp_path / "small", data=data[:32, :32, :32], chunks=16)
    rechunk(tmp_path / "small", tmp_path / "rechunked", 8)
    tracemalloc.start()
    try:
        with limit_threads(threads):
            rechunk(source, tmp_path / "t", new_chunks, memory=memory)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    reads = {key: count for key, count in source.keys.items() if key.startswith("c/")}
    assert len(reads) == zarrfs.open_array(tmp_path / "s").nchunks
    if passes == 1:
        assert set(reads.values()) == {1}
    assert max(reads.values()) <= passes
    # Decoded values of each thread, the cache of source chunks, and one or two encoded chunks.
    assert peak < (threads + 1) * memory + (1 << 19)
    assert peak < data.nbytes
    assert np.array_equal(zarrfs.open_array(tmp_path / "t")[...], data)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "options", [{}, {"compressors": "gzip"}, {"chunks": (8, 8)}], ids=["unchanged", "gzip", "chunks"]
)
def test_an_interrupted_copy_is_resumed(options: dict[str, Any], threads: int, tmp_path: Path) -> None:
    data = RNG.integers(1, 99, (40, 40)).astype("u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(10, 10))
    target_store = MemoryStore()
    lock = threading.Lock()
    remaining_writes = 5

    def failure(operation: str, key: str) -> Exception | None:
        nonlocal remaining_writes
        if operation == "set" and key.startswith("c/"):
            with lock:
                remaining_writes -= 1
                if remaining_writes < 0:
                    return StoreError("the disk is full")
        return None

    with limit_threads(threads), pytest.raises(StoreError, match="full"):
        convert(tmp_path / "s", FailingStore(target_store, failure), **options)
    result = {key for key in target_store.list_prefix() if key.startswith("c/")}
    assert len(result) == 5
    written: list[str] = []

    def record(operation: str, key: str) -> None:
        if operation == "set" and key.startswith("c/"):
            written.append(key)

    convert(tmp_path / "s", FailingStore(target_store, record), if_exists="resume", **options)
    copied = zarrfs.open_array(target_store)
    assert np.array_equal(copied[...], data)
    assert len(set(written)) == len(written)
    assert result | set(written) == {key for key in target_store.list_prefix() if key.startswith("c/")}
    if "chunks" not in options:
        assert result.isdisjoint(written)
    elif threads == 1:
        # One of the five chunks belongs to an incomplete block. With two threads both blocks may be incomplete.
        assert len(result & set(written)) == 1


def test_resume_rejects_a_different_array(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.ones((4, 4)), chunks=(2, 2))
    zarrfs.create_array(tmp_path / "t", data=np.ones((5, 4)), chunks=(2, 2))
    for options in ({}, {"chunks": (4, 4)}):
        with pytest.raises(MetadataError, match="not an interrupted copy"):
            convert(tmp_path / "s", tmp_path / "t", if_exists="resume", **options)  # type: ignore[arg-type]
    assert zarrfs.open_array(tmp_path / "t").shape == (5, 4)


def test_if_exists_raises_skips_or_replaces(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s", 3)
    zarrfs.create_array(tmp_path / "t", "a", data=np.zeros(3))
    with pytest.raises(NodeExistsError, match="a node exists at"):
        convert(tmp_path / "s", tmp_path / "t")
    assert list(zarrfs.open_group(tmp_path / "t").names()) == ["a"]
    lines = convert(tmp_path / "s", tmp_path / "t", if_exists="skip")
    assert "a: skipped: it exists" in lines
    assert zarrfs.open_array(tmp_path / "t", "a").shape == (3,)
    convert(tmp_path / "s", tmp_path / "t", if_exists="replace")
    assert zarrfs.open_array(tmp_path / "t", "a").shape == (30, 41)
    with pytest.raises(NodeExistsError, match="into itself"):
        convert(tmp_path / "s", tmp_path / "s" / "copy")


LAST_CHUNK = ("/4", "c/4")


@pytest.mark.parametrize("old_format", FORMATS)
@pytest.mark.parametrize("new_format", FORMATS)
@pytest.mark.parametrize("where", ["", "a", "deep/a"])
def test_a_failed_replacement_keeps_the_old_array(
    old_format: Any, new_format: Any, where: str, tmp_path: Path
) -> None:
    """The copy fails because a source chunk is corrupt, or because the destination is full."""
    zarrfs.create_array(tmp_path / "s", data=np.arange(100), chunks=10, zarr_format=2, compressors="zlib")

    def replace(store: Store, zarr_format: Any) -> None:
        options: dict[str, Any] = {"if_exists": "replace", "chunks": 20, "zarr_format": zarr_format}
        if where:
            copy(zarrfs.open_array(tmp_path / "s"), zarrfs.open_group(store, mode="r+"), where, **options)
        else:
            convert(tmp_path / "s", store, **options)

    broken = tmp_path / "s" / "7"
    original_bytes = broken.read_bytes()
    broken.write_bytes(b"broken")
    old_chunks = zarrfs.create_array(
        tmp_path / "t", where, data=np.arange(6), chunks=2, zarr_format=old_format
    )
    before = {key: old_chunks.store.get(key) for key in old_chunks.store.list_prefix()}
    with pytest.raises(zarrfs.ZarrError):
        replace(old_chunks.store, new_format)
    assert {key: old_chunks.store.get(key) for key in old_chunks.store.list_prefix()} == before
    broken.write_bytes(original_bytes)

    def failure(operation: str, key: str) -> Exception | None:
        return StoreError("the disk is full") if operation == "set" and key.endswith(LAST_CHUNK) else None

    with pytest.raises(StoreError, match="disk is full"):
        replace(FailingStore(old_chunks.store, failure), new_format)
    assert {key: old_chunks.store.get(key) for key in old_chunks.store.list_prefix()} == before
    replace(old_chunks.store, old_format)
    assert (zarrfs.open_array(tmp_path / "t", where)[...] == np.arange(100)).all()
    assert not [key for key in old_chunks.store.list_prefix() if "zarrfs-copy" in key]


def test_a_group_replaces_an_array_only_when_complete(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s", 3)
    chunk = tmp_path / "s" / "inner" / "f" / "c" / "0" / "0"
    original_bytes = chunk.read_bytes()
    zarrfs.create_array(tmp_path / "t", "x", data=np.arange(3))
    chunk.write_bytes(b"")
    with pytest.raises(zarrfs.ZarrError):
        convert(tmp_path / "s", tmp_path / "t" / "x", if_exists="replace", zarr_format=3, compressors="none")
    assert zarrfs.open_array(tmp_path / "t", "x")[...].tolist() == [0, 1, 2]
    chunk.write_bytes(original_bytes)
    convert(tmp_path / "s", tmp_path / "t" / "x", if_exists="replace")
    assert_equal_hierarchies(zarrfs.open_group(tmp_path / "s"), zarrfs.open_group(tmp_path / "t", "x"))


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s", 2)
    lines = convert(tmp_path / "s", tmp_path / "t", zarr_format=3, dry_run=True)
    assert "a: chunks copied unchanged" in lines
    assert not (tmp_path / "t").exists()


def test_a_dry_run_estimates_tasks_and_bytes(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 60000, (16, 50, 60), "u2")
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(1, 50, 60), compressors=None)
    (copied,) = convert(tmp_path / "s", tmp_path / "t", zarr_format=2, dry_run=True).estimates
    assert (copied.tasks, copied.nbytes_read, copied.nbytes_written) == (16, data.nbytes, data.nbytes)
    (encoded,) = rechunk(
        tmp_path / "s", tmp_path / "t", (4, 25, 30), memory=1, compressors="none", dry_run=True
    ).estimates
    assert (encoded.tasks, encoded.nbytes_read) == (16, data.nbytes)
    assert 0 < encoded.nbytes_written <= 2 * data.nbytes
    assert encoded.nbytes_per_thread == 4 * 25 * 30 * 2 + 1
    assert encoded.seconds > 0
    assert 0 < encoded.sampled <= 16
    assert not (tmp_path / "t").exists()


def test_the_first_round_of_tasks_does_not_count_for_the_expected_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It imports modules and opens connections. A round that takes long is not the only one that is measured."""
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    target = zarrfs.create_array(MemoryStore(), shape=4, chunks=1, dtype="u1")

    def measured(*times: float) -> tuple[float, int]:
        remaining = iter(times)

        def work(item: int) -> None:
            nonlocal now
            now += next(remaining)

        found = Sampling(target.store, ThreadExecutor(), None).measure(
            work, [target], range(100)[: len(times)], 1
        )
        return found.expected_seconds(1), found.tasks

    assert measured(100.0) == (100.0, 1)
    assert measured(100.0, 3.0, 5.0) == (3.0, 2)
    assert measured(1.0, 0.5, 0.5) == (0.5, 3)
    assert measured(1.0, *[0.125] * 3) == (0.125, 4)


def test_rounds_of_measured_tasks_are_spread_and_grow_while_they_are_short() -> None:
    rounds: list[list[int]] = []

    def run(part: Sequence[int]) -> float:
        rounds.append(list(part))
        return 0.0

    measured_rounds(run, range(64), 2, 60.0)
    assert rounds[:4] == [[31, 32], [16, 17], [45, 46, 47, 48], [7, 8, 9, 10, 11, 12, 13, 14]]
    assert sorted(number for part in rounds for number in part) == list(range(64))


@pytest.mark.parametrize("sample_writes", [True, False])
def test_a_dry_run_writes_samples_to_the_destination_and_removes_them(
    sample_writes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(64), chunks=8)
    target = zarrfs.create_group(tmp_path / "t").store
    written: list[str] = []
    original = LocalStore.set_parts

    def set_parts(store: LocalStore, key: str, parts: Any) -> None:
        written.append(os.path.relpath(store.root, tmp_path))
        original(store, key, parts)

    monkeypatch.setattr(LocalStore, "set_parts", set_parts)
    (plan,) = convert(
        tmp_path / "s", tmp_path / "t" / "a", dry_run=True, sample_writes=sample_writes
    ).estimates
    assert all(".zarrfs-copy-" in name for name in written)
    assert bool(written) == sample_writes == (plan.not_written is None)
    assert plan.sampled > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "t"]
    assert list(target.list_prefix()) == ["zarr.json"]


def test_a_dry_run_to_a_server_writes_samples_below_a_temporary_prefix(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(64), chunks=8)
    target = RecordingServer()
    (plan,) = convert(tmp_path / "s", target, dry_run=True, sample_writes=True, chunks=4).estimates
    assert (plan.tasks, plan.not_written) == (8, None)
    assert {key.split("-")[1] for key in target.written} == {"copy"}
    assert {key.rpartition("/")[2] for key in target.written} >= {"probe", "zarr.json"}
    assert list(target.list_prefix()) == []


class RecordingServer(MemoryStore):
    """A store that counts as one on a server, and records the keys that are written."""

    in_process = False
    concurrency = 4
    is_remote = True

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def set(self, key: str, value: Any) -> None:
        self.written.append(key)
        super().set(key, value)


def test_a_dry_run_to_a_destination_without_space_measures_in_memory(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(64), chunks=8)
    server = RecordingServer()
    full = FailingStore(
        server,
        lambda operation, key: (
            StoreError("no space", errno.ENOSPC) if operation == "set" and "/c/" in key else None
        ),
    )
    (plan,) = convert(tmp_path / "s", full, dry_run=True, sample_writes=True).estimates
    assert (plan.tasks, plan.not_written) == (8, "no space")
    assert plan.sampled > 0
    assert list(server.list_prefix()) == []


def test_a_dry_run_states_why_writing_was_not_measured(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(64), chunks=8)
    refusing = FailingStore(
        RecordingServer(), lambda operation, key: StoreError("refused") if operation == "set" else None
    )
    (plan,) = convert(tmp_path / "s", refusing, dry_run=True, sample_writes=True).estimates
    assert plan.not_written == "refused"
    assert plan.sampled > 0
    with ZipStore(tmp_path / "t.zip", mode="w") as archive:
        (plan,) = convert(tmp_path / "s", archive, dry_run=True, sample_writes=True).estimates
    assert plan.not_written is not None
    assert "would change the archive" in plan.not_written


def test_progress_is_counted_in_decoded_bytes(tmp_path: Path) -> None:
    data = np.arange(1000, dtype="u2").reshape(10, 100)
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(3, 40))
    calls: list[tuple[str, int, int]] = []

    def steps(name: str) -> list[tuple[int, int]]:
        found = [(done, total) for each, done, total in calls if each == name]
        calls[:] = [call for call in calls if call[0] != name]
        return found

    def record(*what: Any) -> None:
        calls.append(what)

    expected = (0, data.nbytes), (data.nbytes, data.nbytes)
    convert(tmp_path / "s", tmp_path / "unchanged", progress=record)
    assert (copied := steps("/"))[:: len(copied) - 1] == list(expected)
    rechunk(tmp_path / "s", tmp_path / "rechunked", (5, 50), verify=True, progress=record)
    assert (copied := steps("/"))[:: len(copied) - 1] == list(expected)
    assert (verified := steps("/ (verifying)"))[:: len(verified) - 1] == list(expected)
    verify(tmp_path / "s", progress=record)
    assert (verified := steps("/"))[:: len(verified) - 1] == list(expected)
    assert not calls


def test_verify_detects_a_difference(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(100), chunks=(10,))
    convert(tmp_path / "s", tmp_path / "t")
    array = zarrfs.open_array(tmp_path / "t", mode="r+")
    array[55] = 0
    with pytest.raises(StoreError, match="differs from the source"):
        convert(tmp_path / "s", tmp_path / "t", if_exists="resume", verify=True)


def test_shards_are_rejected_for_formats_without_sharding(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(100), chunks=(10,))
    with pytest.raises(UnsupportedError, match="shards need zarr_format 3"):
        convert(tmp_path / "s", tmp_path / "t", zarr_format=2, shards=(20,))


def test_copy_and_copy_all_copy_between_groups(tmp_path: Path) -> None:
    source = create_hierarchy(tmp_path / "s", 2)
    dest = zarrfs.create_group(tmp_path / "t")
    copy(source["inner"], dest, "other")
    assert np.array_equal(dest["other/f"][...], source["inner/f"][...])
    assert dest["other/f"].zarr_format == 3
    copy_all(source, dest)
    assert sorted(dest.names()) == ["a", "inner", "other"]


def test_copy_store_copies_keys_below_a_path(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s", 3)
    source, dest = LocalStore(tmp_path / "s"), MemoryStore()
    count, skipped, nbytes = copy_store(source, dest, "inner", "below", dry_run=True)
    assert list(dest.list_prefix()) == []
    assert (skipped, nbytes) == (0, 0)
    assert copy_store(source, dest, "inner", "below") == (count, 0, source.usage("inner").nbytes)
    assert np.array_equal(zarrfs.open_array(dest, "below/f")[...], zarrfs.open_array(source, "inner/f")[...])
    with pytest.raises(NodeExistsError):
        copy_store(source, dest, "inner", "below")
    assert copy_store(source, dest, "inner", "below", if_exists="skip") == (0, count, 0)


def test_commands_copy_convert_and_rechunk(tmp_path: Path) -> None:
    group = create_hierarchy(tmp_path / "s.zarr", 2)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    s, t = str(tmp_path / "s.zarr"), str(tmp_path / "t.zarr")
    assert "would be" in run("convert", s, t, "--format", "3", "--dry-run")
    assert "copied unchanged" in run("convert", s, t, "--format", "3", "--verify")
    assert_equal_hierarchies(group, zarrfs.open_group(t))
    run("copy", s, str(tmp_path / "c.zarr.zip"))
    assert_equal_hierarchies(group, zarrfs.open_group(tmp_path / "c.zarr.zip"))
    run("copy", s, f"sqlite://{tmp_path}/c.sqldb")
    with zarrfs.open_group(tmp_path / "c.sqldb").store as store:
        assert_equal_hierarchies(group, zarrfs.open_group(store))
    run("rechunk", f"{t}/a", str(tmp_path / "r.zarr"), "--chunks", "5,-1", "--shards", "10,41")
    copied = zarrfs.open_array(tmp_path / "r.zarr")
    assert (copied.chunks, copied.shards) == ((5, 41), (10, 41))
    run("convert", f"{t}/a", str(tmp_path / "g.zarr"), "--compressor", "gzip:9")
    assert "gzip" in str(zarrfs.open_array(tmp_path / "g.zarr").info["codecs"])
    result = CliRunner().invoke(main, ["convert", s, t])
    assert isinstance(result.exception, NodeExistsError)


@pytest.mark.parametrize(
    ("compressor", "expected"),
    [("gzip:7", "gzip"), ("blosc", "blosc"), (None, None), ("n5_lz4", "blosc"), ("bz2:3", "bz2")],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_compression_of_n5_blocks_is_kept(
    zarr_format: int, compressor: str | None, expected: str | None, tmp_path: Path
) -> None:
    """It is part of the codec of a block. A compression that only N5 has becomes the default one."""
    data = np.arange(400, dtype="u2").reshape(20, 20)
    source = zarrfs.create_array(
        tmp_path / "a.n5",
        data=data,
        chunks=(10, 10),
        zarr_format="n5",
        compressors=CompressorType().convert(compressor, None, None),
    )
    convert(source, tmp_path / "b.zarr", zarr_format=zarr_format, chunks=5)
    copy = zarrfs.open_array(tmp_path / "b.zarr")
    names = [codec.name.removeprefix("numcodecs.") for codec in copy.spec.codecs[1:]]
    assert names == ([] if expected is None else [expected])
    assert np.array_equal(copy[...], data)
    report = convert(source, tmp_path / "c.n5", chunks=5)
    same = zarrfs.open_array(tmp_path / "c.n5")
    assert [line for line in report if "dropped" in line] == []
    assert same.metadata["compression"] == source.metadata["compression"]


def create_dataset(path: Path) -> None:
    """Create arrays with the dimensions time, lat and lon, and one without names."""
    group = zarrfs.create_group(path)
    for name, dimensions in (
        ("t", ["time", "lat", "lon"]),
        ("series", ["time"]),
        ("lat", ["lat"]),
        ("free", None),
    ):
        shape = (8, 6, 4)[: len(dimensions or "x")]
        group.create_array(
            name, data=RNG.integers(0, 99, shape), chunks=(2,) * len(shape), dimension_names=dimensions
        )


def test_chunks_along_named_dimensions(tmp_path: Path) -> None:
    create_dataset(tmp_path / "s")
    arguments = [
        "rechunk",
        str(tmp_path / "s"),
        str(tmp_path / "t"),
        "--chunks",
        "time=-1, lat=3",
        "--verify",
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    copied = zarrfs.open_group(tmp_path / "t")
    chunks = {name: array.chunks for name, array in copied.arrays()}
    assert chunks == {"t": (8, 3, 2), "series": (8,), "lat": (3,), "free": (2,)}
    assert "free: chunks copied unchanged" in result.output
    assert verify(tmp_path / "s", tmp_path / "t").problems == []
    with pytest.raises(
        MetadataError, match=r"no array has a dimension named 'tim'; the dimensions are lat, lon, time"
    ):
        rechunk(tmp_path / "s", tmp_path / "u", {"tim": 3, "lat": 3})
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("text", ["time=", "time=x", "=3", "time=0", "time=3,time=4", "time=3,4", "time=-2"])
def test_invalid_chunks_along_named_dimensions_are_incorrect_usage(text: str) -> None:
    result = CliRunner().invoke(main, ["rechunk", "a", "b", "--chunks", text])
    assert result.exit_code == 2, result.output
    assert "names and sizes such as time=30,lat=2" in result.output or "is not a shape" in result.output
