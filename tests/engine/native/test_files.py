"""Files that are missing, special, links, too large or corrupt: both executors have the same outcome."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.native.executors import native, outcome, python, require_library
from tests.faults import chunks as hostile_chunks
from tests.faults.hostile import Case
from tests.threads import run_in_threads
from zarrfs.engine.read import native_reading, planning

VALUES = np.arange(4 * 6 * 5, dtype="<u2").reshape(4, 6, 5)
CASES = [
    case
    for case in hostile_chunks.cases()
    if not {"longest", "bz2", "lzma", "xz"}.intersection(case.name.split())
]
"""Chunks of codecs that the library does not support are not read by it."""


STEPWISE = ("-DZARRFS_WITHOUT_OPENAT2",)
"""The library opens files as with kernels, or in sandboxes, that do not have the system call openat2."""


def both(location: Path, selection: Any = ..., **options: Any) -> tuple[str, Any]:
    """Return the outcome of a read, which must be the same with both executors and both ways to open files."""
    with python():
        expected = outcome(location, selection, **options)
    for flags in ((), STEPWISE):
        with native(*flags) as record:
            found = outcome(location, selection, **options)
        assert found == expected
        assert record.reads or found[0] != "values"
    return expected


@pytest.fixture(params=["default", "flat", "n5", "shards"])
def array(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    options: dict[str, dict[str, Any]] = {
        "default": {"chunks": (2, 3, 5)},
        "flat": {"chunks": (2, 3, 5), "zarr_format": 2, "fill_value": 7, "compressors": {"id": "zlib"}},
        "n5": {"chunks": (2, 3, 5), "zarr_format": "n5"},
        "shards": {"chunks": (1, 3, 5), "shards": (2, 3, 5)},
    }
    zarrfs.create_array(tmp_path / "store", "group/array", data=VALUES, **options[request.param])
    return tmp_path / "store" / "group" / "array"


def chunk_files(array: Path) -> list[Path]:
    names = ("zarr.json", ".zarray", ".zattrs", "attributes.json")
    return sorted(path for path in array.rglob("*") if path.is_file() and path.name not in names)


def test_missing_chunks_read_as_the_fill_value_or_raise(array: Path) -> None:
    for path in chunk_files(array)[::2]:
        path.unlink()
    assert both(array)[0] == "values"
    assert both(array, access=zarrfs.Access(fill_missing=False))[0] == "MissingChunkError"
    for path in chunk_files(array):
        path.unlink()
    assert both(array)[0] == "values"


def test_links_are_followed_within_the_store_only(array: Path, tmp_path: Path) -> None:
    inside, outside, dangling, *_ = chunk_files(array)
    inside.rename(array / "moved")
    inside.symlink_to(array / "moved")
    assert both(array)[0] == "values"
    dangling.rename(tmp_path / "elsewhere")
    dangling.symlink_to(tmp_path / "elsewhere")
    kind, message = both(array)
    assert kind == "StoreError"
    assert "leads out of the store" in message
    assert both(array, allow_external=True)[0] == "values"
    outside.unlink()
    outside.symlink_to("/dev/zero")
    assert both(array, allow_external=True)[0] != "values"


def test_linked_directories_are_followed_within_the_store_only(array: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    array.rename(store / "moved")
    array.symlink_to(store / "moved")
    assert both(array)[0] == "values"
    array.unlink()
    (store / "moved").rename(tmp_path / "moved")
    array.symlink_to(tmp_path / "moved")
    linked = zarrfs.open_group(store, allow_external=True)["group/array"]
    assert isinstance(linked, zarrfs.Array)
    with native():
        np.testing.assert_array_equal(linked[...], VALUES)


def test_a_linked_directory_of_chunks_that_leads_out_of_the_store_is_refused(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=VALUES, chunks=(2, 3, 5))
    (tmp_path / "a" / "c" / "1").rename(tmp_path / "elsewhere")
    (tmp_path / "a" / "c" / "1").symlink_to(tmp_path / "elsewhere")
    kind, message = both(tmp_path / "a")
    assert kind == "StoreError"
    assert "leads out of the store" in message


def test_without_openat2_a_link_within_a_path_is_left_to_the_python_executor(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=VALUES, chunks=(2, 3, 5))
    (tmp_path / "a" / "c" / "1").rename(tmp_path / "a" / "moved")
    (tmp_path / "a" / "c" / "1").symlink_to(tmp_path / "a" / "moved")
    for flags in ((), STEPWISE):
        with native(*flags) as record:
            assert outcome(tmp_path / "a")[0] == "values"
        assert (record.reads, record.returned) == (1, 2)


def test_without_openat2_no_directory_stays_open(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=VALUES, chunks=(2, 3, 5))
    (tmp_path / "a" / "c" / "0" / "1" / "0").unlink()
    with native(*STEPWISE) as record:
        outcome(tmp_path / "a")
        before = os.listdir("/proc/self/fd")
        outcome(tmp_path / "a")
        assert len(os.listdir("/proc/self/fd")) == len(before)
    assert (record.reads, record.returned) == (2, 0)


def test_special_files_are_not_read(array: Path) -> None:
    first, second, *_ = chunk_files(array)
    first.unlink()
    first.mkdir()
    assert both(array)[0] == "values"
    second.unlink()
    os.mkfifo(second)
    assert both(array)[0] == "StoreError"


def test_files_that_are_too_large_are_not_read(array: Path) -> None:
    with open(chunk_files(array)[0], "r+b") as file:
        file.truncate(1 << 40)
    assert both(array)[0] == "ChunkDecodeError"


def test_unreadable_files_raise_the_same_error(array: Path) -> None:
    chunk_files(array)[0].chmod(0)
    assert both(array)[0] in ("StoreError", "values")  # root reads all files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hostile_chunks_raise_the_same_error(case: Case, tmp_path: Path) -> None:
    require_library()
    for key, value in case.make().items():
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
    with python():
        expected = outcome(tmp_path)
    with native():
        assert outcome(tmp_path) == expected
    assert expected[0] != "values"


def variants(data: bytes, rng: random.Random) -> Iterator[bytes]:
    for _ in range(30):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 9))):
            changed[rng.randrange(min(len(changed), rng.choice((16, 64, 1 << 20))))] = rng.choice(
                (0, 1, 127, 255)
            )
        yield bytes(changed)
    for _ in range(8):
        yield data[: rng.randrange(len(data))]
    yield data + b"x"
    yield data + data


COMPRESSORS: dict[str, list[Any]] = {
    "none": [],
    "crc32c": [{"name": "crc32c"}],
    "gzip": [{"name": "gzip", "configuration": {"level": 1}}],
    "zstd": [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}],
    "blosc": [
        {
            "name": "blosc",
            "configuration": {
                "cname": "lz4",
                "clevel": 5,
                "shuffle": "shuffle",
                "typesize": 2,
                "blocksize": 8192,
            },
        },
        {"name": "crc32c"},
    ],
    "numcodecs.zlib": [{"name": "numcodecs.zlib", "configuration": {"level": 1}}],
    "numcodecs.lz4": [{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}],
}


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("shards", [None, (32, 64, 48)], ids=["chunks", "shards"])
def test_corrupt_chunks_have_the_same_outcome(compressor: str, shards: Any, tmp_path: Path) -> None:
    rng = random.Random(f"{compressor} {shards}")
    values = np.random.default_rng(3).integers(0, 50, (32, 64, 48)).astype("<u2")
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    codecs: list[Any] = [little, *COMPRESSORS[compressor]]
    chunks = (16, 64, 48)
    if shards:
        configuration = {
            "chunk_shape": list(chunks),
            "codecs": codecs,
            "index_codecs": [little, {"name": "crc32c"}],
        }
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    zarrfs.create_array(tmp_path, data=values, chunks=shards or chunks, codecs=codecs)
    path = chunk_files(tmp_path)[0]
    data = path.read_bytes()
    for changed in variants(data, rng):
        path.write_bytes(changed)
        for selection in (..., np.s_[3], np.s_[:, 5]):
            with python():
                expected = outcome(tmp_path, selection)
            with native():
                found = outcome(tmp_path, selection)
            if found != expected:
                # A partial read does not see all bytes. It must not return other values than a whole read.
                assert selection is not ...
                assert "values" in (found[0], expected[0])


# -- threads, signals and processes --------------------------------------------------------------------------------


@pytest.fixture
def many_chunks(tmp_path: Path) -> zarrfs.Array:
    values = np.arange(40 * 40 * 40, dtype="<u4").reshape(40, 40, 40)
    zarrfs.create_array(tmp_path, data=values, chunks=(5, 5, 5), compressors="zstd")
    return zarrfs.open_array(tmp_path, mode="r", cache_size=0)


def expected_values() -> np.ndarray[Any, Any]:
    return np.arange(40 * 40 * 40, dtype="<u4").reshape(40, 40, 40)


def test_a_read_continues_after_each_return_to_the_interpreter(
    many_chunks: zarrfs.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_reading, "BUDGET_NS", 1)
    with native() as record:
        np.testing.assert_array_equal(many_chunks[...], expected_values())
    assert (record.reads, record.returned) == (1, 0)


def test_a_signal_handler_can_interrupt_a_read(
    many_chunks: zarrfs.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = require_library()
    calls = []

    def execute(reference: Any) -> int:
        calls.append(1)
        signal.raise_signal(signal.SIGINT)
        return library.execute(reference)

    class Interrupting:
        functions, check, supports = library.functions, library.check, library.supports

    Interrupting.execute = staticmethod(execute)  # type: ignore[attr-defined]
    monkeypatch.setattr(native_reading, "BUDGET_NS", 1)
    opened = len(os.listdir("/proc/self/fd"))
    with native():
        monkeypatch.setattr(native_reading, "native_library", lambda: Interrupting)
        with pytest.raises(KeyboardInterrupt):
            many_chunks[...]
    assert len(calls) == 1
    assert len(os.listdir("/proc/self/fd")) == opened


def test_chunks_that_are_links_are_read_by_the_other_executor_between_the_calls(
    many_chunks: zarrfs.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_reading, "BUDGET_NS", 1)
    for number, path in enumerate(chunk_files(tmp_path)):
        if number % 5 == 0:
            link = path.with_name(path.name + ".moved")
            path.rename(link)
            path.symlink_to(link)
    with native() as record:
        np.testing.assert_array_equal(many_chunks[...], expected_values())
    assert record.returned == len([n for n in range(512) if n % 5 == 0])


@contextmanager
def recorded_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Read with the native library in the block. The list receives the number of threads of each call."""
    library = require_library()
    threads: list[int] = []
    # With the usual budget a slow read needs several calls.
    monkeypatch.setattr(native_reading, "BUDGET_NS", 1 << 60)

    class Recording:
        functions, check, supports = library.functions, library.check, library.supports

        @staticmethod
        def execute(reference: Any) -> int:
            threads.append(reference._obj.threads)
            return library.execute(reference)

    with native():
        monkeypatch.setattr(native_reading, "native_library", lambda: Recording)
        yield threads


@pytest.mark.parametrize("concurrency", [None, 1, 2])
def test_the_number_of_threads_follows_the_option(
    concurrency: int | None, many_chunks: zarrfs.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = zarrfs.open_array(tmp_path, mode="r", cache_size=0, access=zarrfs.Access(concurrency=concurrency))
    monkeypatch.setattr(planning, "CORES", 4)
    monkeypatch.setattr(planning, "MIN_TASK_NBYTES", 1)
    with recorded_threads(monkeypatch) as threads:
        np.testing.assert_array_equal(array[...], expected_values())
    assert threads == [min(4, concurrency or 4)]


def test_many_threads_read_at_once(many_chunks: zarrfs.Array) -> None:
    def read(_: int) -> None:
        for _ in range(5):
            np.testing.assert_array_equal(many_chunks[...], expected_values())

    with native():
        run_in_threads(read, range(6))


def test_a_forked_process_reads(many_chunks: zarrfs.Array) -> None:
    with native():
        many_chunks[...]
        process = os.fork()
        if process == 0:
            equal = bool((many_chunks[...] == expected_values()).all())
            os._exit(0 if equal else 1)
        _, status = os.waitpid(process, 0)
    assert status == 0


def test_the_parts_of_a_shard_come_from_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shard is replaced between the calls in which its parts are read."""
    library = require_library()
    values = np.arange(32 * 32 * 32, dtype="<u4").reshape(32, 32, 32)
    for name, data in (("old", values), ("new", values + 1)):
        zarrfs.create_array(tmp_path / name, data=data, chunks=(4, 4, 4), shards=(32, 32, 32))
    calls: list[int] = []

    class Replacing:
        functions, check, supports = library.functions, library.check, library.supports

        @staticmethod
        def execute(reference: Any) -> int:
            assert reference._obj.parts > 2
            calls.append(1)
            result = library.execute(reference)
            if len(calls) == 1:
                os.replace(tmp_path / "new/c/0/0/0", tmp_path / "old/c/0/0/0")
            return result

    array = zarrfs.open_array(tmp_path / "old", mode="r", cache_size=0)
    monkeypatch.setattr(planning, "CORES", 2)
    monkeypatch.setattr(planning, "MIN_TASK_NBYTES", 1)
    monkeypatch.setattr(native_reading, "BUDGET_NS", 1)
    with native() as record:
        monkeypatch.setattr(native_reading, "native_library", lambda: Replacing)
        np.testing.assert_array_equal(array[...], values + 1)
    assert len(calls) > 1
    assert record.returned == 1


def test_an_error_leaves_no_file_open(many_chunks: zarrfs.Array, tmp_path: Path) -> None:
    chunk_files(tmp_path)[7].write_bytes(b"x")
    opened = len(os.listdir("/proc/self/fd"))
    with native(), pytest.raises(zarrfs.ChunkDecodeError) as caught:
        many_chunks[...]
    assert caught.value.__traceback__ is not None
    assert len(os.listdir("/proc/self/fd")) == opened


def test_large_chunks_limit_the_number_of_threads(
    many_chunks: zarrfs.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "CORES", 8)
    monkeypatch.setattr(planning, "MIN_TASK_NBYTES", 1)
    monkeypatch.setattr(planning, "MAX_SCRATCH_NBYTES", 3 * 2 * 5 * 5 * 5 * 4)
    with recorded_threads(monkeypatch) as threads:
        np.testing.assert_array_equal(many_chunks[...], expected_values())
    assert threads == [3]
