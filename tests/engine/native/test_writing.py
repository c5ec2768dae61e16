"""The native library writes the same bytes as the Python executor, and both raise the same errors."""

from __future__ import annotations

import os
import resource
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from tests.documents import blosc, named
from tests.engine.native.executors import native, python
from tests.engine.native.test_equivalence import Case, cases
from tests.threads import run_in_threads
from zarrfs.engine.read import native_reading, planning
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.temporary_files import TEMPORARY_PREFIX
from zarrfs.engine.write import native_writing

METADATA = ("zarr.json", ".zarray", ".zattrs", "attributes.json")
EXECUTORS: tuple[Callable[[], AbstractContextManager[Any]], ...] = (python, native)
VALUES = np.random.default_rng(3).integers(0, 99, (20, 24, 30)).astype("<u2")

LAYOUTS: dict[str, dict[str, Any]] = {
    "nested": {"chunks": (5, 8, 10)},
    "flat": {"chunks": (5, 8, 10), "zarr_format": 2, "fill_value": 7, "compressors": {"id": "zstd"}},
    "n5": {"chunks": (5, 8, 10), "zarr_format": "n5"},
    "shards": {"chunks": (5, 4, 5), "shards": (10, 8, 10)},
}


def tree(root: Path | str) -> dict[str, bytes | None]:
    """Return all files below a directory with their bytes, and the directories."""
    found: dict[str, bytes | None] = {}
    for path in Path(root).rglob("*"):
        assert not path.name.startswith(TEMPORARY_PREFIX)
        is_file = path.is_file() and path.stat().st_size < 1 << 20
        found[str(path.relative_to(root))] = path.read_bytes() if is_file else None
    return found


def chunk_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name not in METADATA)


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param]


@contextmanager
def many_threads() -> Iterator[None]:
    """Use several threads for any write, and return to the interpreter after each value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "CORES", 3)
        patch.setattr(native_writing, "MIN_TASK_NBYTES", 1)
        patch.setattr(native_reading, "BUDGET_NS", 1)
        patch.setattr(native_writing, "MAX_BATCH_VALUES", 5)
        yield


def encodes_natively(case: Case) -> bool:
    """Return whether the native library has the encoders of a case: it has none of gzip and zlib."""
    text = repr(case.options)
    return "'gzip'" not in text and "'id': 'zlib'" not in text


def write(root: str, case: Case, other: tuple[Any, ...], write_empty: bool) -> list[dict[str, bytes | None]]:
    """Write to a new array several times. Return the files after each step."""
    values = case.values.astype(case.options["dtype"])
    options = {**case.options, "write_empty_chunks": write_empty}
    array = zarrfs.create_array(root, shape=values.shape, cache_size=0, **options)
    trees = []
    array[...] = values
    trees.append(tree(root))
    for number, path in enumerate(chunk_files(Path(root))):
        if number in case.missing:
            path.unlink()
    array[case.selection] = values[case.selection][..., ::-1].copy() if values.ndim else values
    trees.append(tree(root))
    array[other] = case.options.get("fill_value", 0)
    trees.append(tree(root))
    return trees


@settings(deadline=None, max_examples=50)
@given(case=cases(), whole=st.lists(st.booleans(), min_size=4, max_size=4), write_empty=st.booleans())
def test_every_write_is_equal(case: Case, whole: list[bool], write_empty: bool) -> None:
    other = tuple(slice(None) if w else part for w, part in zip(whole, case.selection, strict=False))
    if np.ndim(case.values[case.selection]) == 0:
        case.selection = tuple(
            slice(part, part + 1 or None) if isinstance(part, int) else part for part in case.selection
        )
    with TemporaryDirectory() as root:
        with python():
            expected = write(f"{root}/python", case, other, write_empty)
        with native() as record, many_threads():
            found = write(f"{root}/native", case, other, write_empty)
    assert found == expected
    assert bool(record.writes) == encodes_natively(case)
    assert record.returned == 0


CODECS: dict[str, list[Any]] = {
    "none": [],
    **{
        f"blosc {name}": [blosc(cname=name, typesize=2)]
        for name in ("lz4", "lz4hc", "blosclz", "zstd", "zlib")
    },
    "blosc bits": [blosc(cname="lz4", shuffle="bitshuffle", typesize=2, blocksize=512)],
    "zstd": [named("zstd", level=3, checksum=True)],
    "lz4": [named("numcodecs.lz4", acceleration=1)],
    "crc32c": [{"name": "crc32c"}, named("zstd", level=0, checksum=False), {"name": "crc32c"}],
}


def written(root: Path, codecs: list[Any], sharded: bool) -> dict[str, bytes | None]:
    inner = [named("transpose", order=[2, 0, 1]), named("bytes", endian="big"), *codecs]
    options: dict[str, Any] = {"codecs": inner, "chunks": (10, 12, 30)}
    if sharded:
        index = [named("bytes", endian="little"), {"name": "crc32c"}]
        sharding = named("sharding_indexed", chunk_shape=(5, 6, 10), codecs=inner, index_codecs=index)
        options["codecs"] = [sharding]
    array = zarrfs.create_array(root, shape=VALUES.shape, dtype="uint16", cache_size=0, **options)
    array[...] = VALUES
    array[3:17, 5] = 0
    return tree(root)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("sharded", [False, True])
def test_other_implementations_read_what_is_written(name: str, sharded: bool, tmp_path: Path) -> None:
    with python():
        expected = written(tmp_path / "python", CODECS[name], sharded)
    with native() as record, many_threads():
        assert written(tmp_path / "native", CODECS[name], sharded) == expected
    assert (record.writes, record.returned) == (2, 0)
    values = VALUES.copy()
    values[3:17, 5] = 0
    zarr = pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numcodecs codecs are not in the Zarr version 3")
        np.testing.assert_array_equal(zarr.open_array(tmp_path / "native", mode="r")[...], values)
    if name == "lz4":
        return  # TensorStore does not support it.
    tensorstore = pytest.importorskip("tensorstore")
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "native")}}
    np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), values)


def test_the_inner_chunks_of_one_shard_are_encoded_in_parallel(tmp_path: Path) -> None:
    trees = []
    for number, executor in enumerate(EXECUTORS):
        with executor(), many_threads():
            array = zarrfs.create_array(
                tmp_path / str(number), data=VALUES, chunks=(2, 2, 3), shards=VALUES.shape
            )
            trees.append(tree(tmp_path / str(number)))
            array[3:9, :, 4] = 1
            array[0:2] = 0
            trees.append(tree(tmp_path / str(number)))
            array[...] = 0
            trees.append(tree(tmp_path / str(number)))
    assert trees[:3] == trees[3:]
    assert set(trees[2]) == {"zarr.json"}


def test_durable_writes_are_equal(layout: dict[str, Any], tmp_path: Path) -> None:
    trees = []
    for number, executor in enumerate(EXECUTORS):
        with executor():
            store = LocalStore(tmp_path / str(number), durable=True)
            array = zarrfs.create_array(store, shape=VALUES.shape, dtype="uint16", **layout)
            array[...] = VALUES
            array[:5] = layout.get("fill_value", 0)
            trees.append(tree(tmp_path / str(number)))
    assert trees[0] == trees[1]


# -- failures --------------------------------------------------------------------------------------------------


def _directory_in_place(files: list[Path]) -> None:
    files[2].unlink()
    (files[2] / "x").mkdir(parents=True)


def _file_in_place_of_a_directory(files: list[Path]) -> None:
    parent = files[-1].parent
    if (
        (parent / "zarr.json").exists()
        or (parent / ".zarray").exists()
        or (parent / "attributes.json").exists()
    ):
        _directory_in_place(files)
        return
    for path in parent.iterdir():
        path.unlink()
    parent.rmdir()
    parent.write_bytes(b"x")


def _corrupt_data(files: list[Path]) -> None:
    files[3].write_bytes(files[3].read_bytes()[:-7])


def _too_large(files: list[Path]) -> None:
    os.truncate(files[1], 1 << 40)


def _external_link(files: list[Path]) -> None:
    outside = files[0].parents[-2] / "outside"
    files[4].unlink()
    files[4].symlink_to(outside)


def _link(files: list[Path]) -> None:
    files[4].rename(files[4].parent / "target")
    files[4].symlink_to("target")


def _fifo(files: list[Path]) -> None:
    files[4].unlink()
    os.mkfifo(files[4])


@pytest.mark.parametrize(
    "spoil",
    [
        _directory_in_place,
        _file_in_place_of_a_directory,
        _corrupt_data,
        _too_large,
        _external_link,
        _link,
        _fifo,
    ],
)
@pytest.mark.parametrize("selection", [np.s_[...], np.s_[2:18, 3], np.s_[1:2, 1:2, 1:2]])
def test_failures_are_equal(
    spoil: Callable[[list[Path]], None], selection: Any, layout: dict[str, Any], tmp_path: Path
) -> None:
    root = tmp_path / "array"
    outcomes = []
    for executor in EXECUTORS:
        with python():
            zarrfs.create_array(root, data=VALUES + np.uint16(1), **layout)
        spoil(chunk_files(root))
        array = zarrfs.open_array(root, mode="r+", cache_size=0)
        with executor():
            try:
                array[selection] = 5
                outcome = ""
            except zarrfs.ZarrError as error:
                outcome = f"{type(error).__name__}: {error}"
        links = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink())
        fifos = sum(path.is_fifo() for path in root.rglob("*"))
        # A write that fails may have written any of its chunks.
        files = None if outcome else tree(root)
        outcomes.append((outcome, links, fifos, files))
        root.rename(tmp_path / f"old{len(outcomes)}")
    assert outcomes[0] == outcomes[1]


def test_a_full_disk_leaves_the_old_data(layout: dict[str, Any], tmp_path: Path) -> None:
    """The limit of the size of files makes writes fail, as a full disk does."""
    noise = np.random.default_rng(1).integers(0, 60000, VALUES.shape).astype("<u2")
    outcomes = []
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for number, executor in enumerate(EXECUTORS):
        root = tmp_path / str(number)
        with executor():
            array = zarrfs.create_array(root, data=VALUES, **layout)
            before = tree(root)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
            try:
                with pytest.raises(zarrfs.StoreError) as caught:
                    array[...] = noise
                with pytest.raises(zarrfs.StoreError) as partly:
                    array[3] = noise[3]
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert tree(root) == before
            np.testing.assert_array_equal(array[...], VALUES)
        # Threads write in any order, so the first chunk that fails differs.
        messages = [str(error.value).rpartition("/")[2].partition(" ")[2] for error in (caught, partly)]
        outcomes.append((messages, caught.value.errno, partly.value.errno))
    assert outcomes[0] == outcomes[1]


# -- threads, processes, signals -------------------------------------------------------------------------------


def test_threads_do_not_overwrite_each_others_data(layout: dict[str, Any], tmp_path: Path) -> None:
    """Each thread writes other rows of the same chunks, natively or in Python if another thread holds the lock."""
    array = zarrfs.create_array(tmp_path, shape=VALUES.shape, dtype="uint16", **layout)

    def write(first: int) -> None:
        own = zarrfs.open_array(tmp_path, mode="r+", cache_size=0)
        for row in range(first, VALUES.shape[0], 4):
            own[row] = VALUES[row]

    with native() as record:
        run_in_threads(write, range(4))
    assert record.writes == VALUES.shape[0]
    np.testing.assert_array_equal(array[...], VALUES)
    tree(tmp_path)


def test_chunks_that_are_locked_are_returned(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path, shape=VALUES.shape, dtype="uint16", chunks=(5, 8, 10))
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with array._storage.lock((1, 2, 1)):
            held.set()
            release.wait(60)

    with native() as record, pytest.MonkeyPatch.context() as patch:
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)
        executor = native_writing._execute

        def execute(*arguments: Any) -> Iterator[Any]:
            for positions in executor(*arguments):
                release.set()
                yield positions

        patch.setattr(native_writing, "_execute", execute)
        array[...] = VALUES
    thread.join()
    assert record.returned == 1
    np.testing.assert_array_equal(array[...], VALUES)


def test_locks_are_held_until_the_budget_of_time_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk that another thread has locked is written natively if it is unlocked before its turn comes."""
    array = zarrfs.create_array(tmp_path, shape=VALUES.shape, dtype="uint16", chunks=(5, 8, 10))
    held, release = threading.Event(), threading.Event()
    batches: list[int] = []
    last = tuple((length - 1) // chunk for length, chunk in zip(VALUES.shape, (5, 8, 10), strict=True))

    def hold() -> None:
        with array._storage.lock(last):
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    write_batch = native_writing._write_batch

    def write_one_batch(*arguments: Any) -> None:
        if batches:
            release.set()
            thread.join()
        batches.append(arguments[2])
        write_batch(*arguments)

    monkeypatch.setattr(native_reading, "BUDGET_NS", 1)
    monkeypatch.setattr(planning, "CORES", 1)
    monkeypatch.setattr(native_writing, "_write_batch", write_one_batch)
    with native() as record:
        array[...] = VALUES
    assert record.returned == 0
    assert len(batches) > 2
    np.testing.assert_array_equal(array[...], VALUES)


def test_a_forked_process_writes(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path, shape=VALUES.shape, dtype="uint16", chunks=(5, 8, 10))
    with native() as record:
        # A lock that another thread holds is free in the new process, which does not have that thread.
        with array._storage.lock((0, 0, 0)):
            array[...] = VALUES
            process = os.fork()
            if process == 0:
                array[...] = VALUES + np.uint16(1)
                os._exit(0 if record.returned == 0 else 1)
        _, status = os.waitpid(process, 0)
    assert status == 0
    np.testing.assert_array_equal(array[...], VALUES + 1)


def test_a_signal_handler_can_interrupt_a_write(layout: dict[str, Any], tmp_path: Path) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(number: int, frame: Any) -> None:
        raise Interrupted

    array = zarrfs.create_array(tmp_path, data=VALUES, **layout)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with native(), many_threads():
            count = 0

            class Counting(native_writing._NativeWrite):
                def begin(self) -> int:
                    nonlocal count
                    count += 1
                    if count == 4:
                        os.kill(os.getpid(), signal.SIGUSR1)
                    return super().begin()

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(native_writing, "_NativeWrite", Counting)
                with pytest.raises(Interrupted):
                    array[...] = VALUES + np.uint16(1)
            tree(tmp_path)
            found = np.asarray(array[...])
            assert set(np.unique(found - VALUES)) == {0, 1}
            array[...] = VALUES
            np.testing.assert_array_equal(array[...], VALUES)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("concurrency", [None, 1, 2])
def test_the_number_of_threads_follows_the_option(
    concurrency: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = zarrfs.create_array(
        tmp_path,
        shape=VALUES.shape,
        dtype="uint16",
        chunks=(5, 8, 10),
        access=zarrfs.Access(concurrency=concurrency),
    )
    found = []

    def execute(write: Any, storage: Any) -> Iterator[Any]:
        found.append(write.structure.read.threads)
        yield from original(write, storage)

    with native(), many_threads():
        original = native_writing._execute
        monkeypatch.setattr(native_writing, "_execute", execute)
        array[...] = VALUES
    assert found == [concurrency or 3]
    np.testing.assert_array_equal(array[...], VALUES)


def test_own_writes_are_seen_through_the_cache(layout: dict[str, Any], tmp_path: Path) -> None:
    expected = VALUES.copy()
    with native():
        array = zarrfs.create_array(
            tmp_path, data=VALUES, cache_size=1 << 24, access=zarrfs.Access(recheck_data=False), **layout
        )
        for value in (5, 0, 6):
            np.testing.assert_array_equal(array[...], expected)
            array[:, 3:12] = expected[:, 3:12] = value
        np.testing.assert_array_equal(array[...], expected)


def test_stores_that_change_how_files_are_written_are_not_bypassed(tmp_path: Path) -> None:
    written: list[str] = []

    class Recording(LocalStore):
        def set_parts(self, key: str, parts: Any) -> None:
            written.append(key)
            super().set_parts(key, parts)

    with native() as record:
        array = zarrfs.create_array(
            Recording(tmp_path), shape=VALUES.shape, dtype="uint16", chunks=(5, 8, 10)
        )
        array[...] = VALUES
    assert record.writes == 0
    assert len(written) > 30
