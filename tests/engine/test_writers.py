"""Concurrent writers lose no data, and a killed writer leaves each chunk in its old or its new version."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.processes import TIMEOUT, run_together, running
from tests.threads import run_in_threads
from zarrfs.engine.stores.memory import MemoryStore

LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (16, 16)},
    "shards": {"chunks": (2, 2), "shards": (16, 16)},
    "v2": {"chunks": (16, 16), "zarr_format": 2},
    "n5": {"chunks": (16, 16), "zarr_format": "n5"},
}

WRITER = """
import sys, zarrfs
path, own, of = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
locks = {"synchronizer": zarrfs.ProcessSynchronizer(sys.argv[4])} if len(sys.argv) > 4 else {}
array = zarrfs.open_array(path, mode="r+", **locks)
array[own] = 7  # The first write imports modules.
print("ready", flush=True)
sys.stdin.readline()
width = array.shape[1]
for row in range(own, 32, of):
    # Rows of several chunks are written by the native library, parts of one chunk are not.
    array[row] = row + 1
    array[row] = 0  # Chunks that contain only the fill value are deleted.
    array[row, : width // 2 + 1] = row + 1
    array[row, width // 2 - 1 :] = row + 1
"""


@pytest.mark.parametrize(
    ("layout", "native", "locks"),
    [
        ("chunks", "1", ()),
        ("shards", "1", ()),
        ("shards", "0", ()),
        ("v2", "0", ()),
        ("n5", "1", ("locks",)),
    ],
    ids=str,
)
def test_processes_that_write_to_the_same_chunks_lose_nothing(
    layout: str, native: str, locks: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZARRFS_NATIVE", native)
    width = 16384  # Writing a chunk takes so long that the writers meet.
    options = {
        key: (n[0], n[1] * width // 32) if key != "zarr_format" else n for key, n in LAYOUTS[layout].items()
    }
    array = zarrfs.create_array(tmp_path / "a", shape=(32, width), dtype="u4", fill_value=0, **options)
    count = 4
    run_together(
        WRITER, [(tmp_path / "a", own, count, *(tmp_path / name for name in locks)) for own in range(count)]
    )
    assert [row for row in range(32) if (array[row] != row + 1).any()] == []
    names = {name for _, _, names in os.walk(tmp_path / "a") for name in names}
    assert len(names) <= 6
    assert not any("writing" in name or "lock" in name for name in names), names


HOLDER = """
import sys, zarrfs
store = zarrfs.open_array(sys.argv[1], mode="r+").store
with store.lock(sys.argv[2]):
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_the_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a", shape=4, chunks=4, dtype="u2")
    array[0] = 1
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "a"), "c/0"]
    waiting = threading.Thread(target=lambda: array.__setitem__(1, 2))
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        waiting.start()
        assert array[:].tolist() == [1, 0, 0, 0]
    waiting.join(TIMEOUT)
    assert array[:].tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_concurrent_writes_through_separate_array_objects_are_all_kept(layout: str) -> None:
    store = MemoryStore()
    zarrfs.create_array(store, shape=(16, 16), dtype="u2", **LAYOUTS[layout])

    def write(own: int) -> None:
        array = zarrfs.open_array(store, mode="r+")
        for row in range(own, 16, 4):
            for column in range(16):
                array[row, column] = row * 16 + column + 1

    run_in_threads(write, range(4))
    assert np.array_equal(zarrfs.open_array(store)[...], np.arange(1, 257).reshape(16, 16))


def test_members_and_unpickled_nodes_use_the_synchronizer(tmp_path: Path) -> None:
    locks = pickle.loads(pickle.dumps(zarrfs.ProcessSynchronizer(tmp_path / "locks")))
    group = zarrfs.create_group(tmp_path / "g", synchronizer=locks)
    array = group.create_array("a", data=np.zeros(10), chunks=(5,))
    array[3] = 1
    assert list((tmp_path / "locks").iterdir())
    again = pickle.loads(pickle.dumps(array))
    again[4] = 2
    assert zarrfs.open_array(tmp_path / "g", "a", synchronizer=zarrfs.ThreadSynchronizer())[3:5].tolist() == [
        1,
        2,
    ]


KILLED = """
import sys, zarrfs
array = zarrfs.open_array(sys.argv[1], mode="r+")
for number in range(1, 100000):
    array[...] = number
    array[3:13, 5:27] = number
    print(number, flush=True)
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_killed_writer_leaves_each_chunk_in_its_old_or_new_version(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    zarrfs.create_array(path, shape=(32, 32), dtype="u4", fill_value=0, **LAYOUTS[layout])
    rng = random.Random(layout)
    for _ in range(5):
        command = [sys.executable, "-c", KILLED, str(path)]
        with running(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(rng.randint(1, 25)):
                last = int(writer.stdout.readline())
            writer.kill()
            rest = writer.stdout.read()
        last = int(rest.split()[-1]) if rest.split() else last
        found = zarrfs.open_array(path, cache_size=0)[...]
        for row in (0, 16):
            for column in (0, 16):
                values = set(found[row : row + 16, column : column + 16].reshape(-1).tolist())
                assert len(values) == 1, values
                assert values <= {last, last + 1}
    array = zarrfs.open_array(path, mode="r+")
    assert array.nshards_initialized == 4
    array[...] = 7
    assert (array[...] == 7).all()
