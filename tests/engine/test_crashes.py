"""A process that is killed at any time leaves a readable store with old or new chunks, and its work can be repeated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.engine import crashing
from zarrfs.storage import LMDBStore

EXAMPLES_FACTOR = int(os.environ.get("ZARRFS_LONGER", "1"))
"""The factor for the number of killed processes; see ``tests/stateful/running.py``."""

KILLED_PROCESSES = 12

LOCATIONS = {"local": "{}/NUMBER.zarr", "sqlite": "sqlite://{}/NUMBER.sqldb", "lmdb": "lmdb://{}/NUMBER.lmdb"}


@pytest.mark.timeout(300 * EXAMPLES_FACTOR)
@pytest.mark.parametrize("store", LOCATIONS)
@pytest.mark.parametrize("work", crashing.WORKS)
def test_a_killed_process_leaves_old_or_new_chunks(work: str, store: str, tmp_path: Path) -> None:
    location = LOCATIONS[store].format(tmp_path)
    if work in ("copy", "rechunk"):
        # The location of the copy is this one with "-copy" appended.
        location = location.removesuffix(".zarr")
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            crashing.__file__,
            work,
            location,
            f"{work} {store}",
            str(KILLED_PROCESSES * EXAMPLES_FACTOR),
        ],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = int(done.stdout.split()[0])
    assert killed > KILLED_PROCESSES * EXAMPLES_FACTOR * 0.7, done.stdout


def test_at_each_step_of_a_replacement_the_array_is_absent_or_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a store that cannot rename, the chunks were moved before the document: the array read as the fill value."""
    store = LMDBStore(tmp_path / "a.lmdb")
    assert not store.renames
    zarrfs.create_array(store, "a", data=crashing.OLD, chunks=crashing.BLOCK, attributes={"old": True})
    remove, steps = store._remove, 0

    def checked_remove(key: str) -> None:
        nonlocal steps
        remove(key)
        steps += 1
        if store.get("a/zarr.json") is not None:
            array = zarrfs.open_array(store, "a", cache_size=0)
            assert np.array_equal(array[...], crashing.OLD if array.attrs else crashing.NEW), key

    monkeypatch.setattr(store, "_remove", checked_remove)
    zarrfs.create_array(store, "a", data=crashing.NEW, chunks=crashing.BLOCK, overwrite=True)
    assert steps > 8
    store.close()
