"""Concurrent writers lose no data, and a killed writer leaves each chunk in its old or its new version."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.processes import run_together, running
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
path, locks, own, of = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
array = zarrfs.open_array(path, mode="r+", synchronizer=zarrfs.ProcessSynchronizer(locks))
print("ready", flush=True)
sys.stdin.readline()
for row in range(own, 16, of):
    for column in range(0, 16, 2):
        array[row, column : column + 2] = row * 16 + column + 1
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_concurrent_writes_of_processes_to_one_chunk_are_all_kept(layout: str, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", shape=(16, 16), dtype="u2", **LAYOUTS[layout])
    count = 3
    run_together(WRITER, [(tmp_path / "a", tmp_path / "locks", own, count) for own in range(count)])
    row, column = np.indices((16, 16))
    assert np.array_equal(zarrfs.open_array(tmp_path / "a")[...], row * 16 + column // 2 * 2 + 1)


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
