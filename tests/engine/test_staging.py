"""Staging prefixes and probe keys: those of killed processes are removed, all others are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.threads import run_in_threads
from zarrfs.engine.hierarchy.staging import STAGING, replacing, staging_name
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import open_store
from zarrfs.engine.stores.temporary_files import Owner, owner
from zarrfs.storage import LocalStore, MemoryStore
from zarrfs.tools import clean

DATA = np.arange(64)

KILLED_PROGRAM = """
import os, signal, sys
from zarrfs.engine.hierarchy import staging
from zarrfs.tools import convert
from zarrfs.tools.copying.copy_tasks import CopyBlock
def kill(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "exchange":
    staging._exchange = staging._exchange_copies = kill
else:
    CopyBlock.__call__ = kill
options = {"dry_run": True, "sample_writes": True} if sys.argv[3] == "dry run" else {}
convert(sys.argv[1], sys.argv[2], compressors="gzip", if_exists="replace", **options)
"""


@pytest.fixture(params=["local", "sqlite"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A hierarchy with the array ``a``, and the array ``source`` next to it."""
    location = str(tmp_path / "t.zarr") if request.param == "local" else f"sqlite://{tmp_path}/t.sqlite"
    zarrfs.create_array(location, "a", data=DATA, chunks=8).store.close()
    zarrfs.create_array(tmp_path / "source", data=DATA + 1, chunks=8)
    return location


def kill_process(work: str, location: str, tmp_path: Path) -> str:
    """Run a process that kills itself while it replaces the array, or samples this. Return the location to clean."""
    command = [sys.executable, "-c", KILLED_PROGRAM, str(tmp_path / "source"), f"{location}/a", work]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return str(tmp_path) if work == "dry run" else location


def staged(location: str) -> list[str]:
    """Return the keys below staging prefixes, and probe keys."""
    store, _ = open_store(location, mode="r")
    with store:
        return [key for key in store.list_prefix() if STAGING in key]


@pytest.mark.parametrize("work", ["dry run", "replacement"])
def test_what_killed_processes_left_is_removed(work: str, location: str, tmp_path: Path) -> None:
    place = kill_process(work, location, tmp_path)
    assert staged(place)
    (found,) = clean(place, dry_run=True)
    assert STAGING in found
    assert staged(place)
    assert clean(place) == [found]
    assert not any(STAGING in name for _, names, _ in os.walk(tmp_path) for name in names)
    assert staged(place) == clean(place) == []
    with zarrfs.open_array(location, "a").store as store:
        assert np.array_equal(zarrfs.open_array(store, "a")[...], DATA)


def test_the_nodes_of_an_interrupted_exchange_are_kept(
    location: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = kill_process("exchange", location, tmp_path)
    before = staged(place)
    assert clean(place) == []
    assert staged(place) == before != []
    assert "was interrupted. The new node is below new" in caplog.text
    caplog.clear()


@pytest.mark.parametrize("store_type", [MemoryStore, LocalStore])
def test_names_of_running_processes_and_of_other_machines_are_kept(
    store_type: type[Store], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore() if store_type is MemoryStore else LocalStore(tmp_path)
    own = staging_name()
    machine, _, rest = own.removeprefix(STAGING).partition("-")
    other = f"{STAGING}{'0' * len(machine)}-{rest}"
    unnamed = f"{STAGING}0a1b2c3d"
    for name in (own, other, unnamed):
        store.set(f"{name}/new/zarr.json", b"{}")
    store.set(f"{other}-reply", b"")
    assert clean(store) == []
    assert "temporary names of other machines are kept" in caplog.text
    assert [name in caplog.text for name in (own, other, unnamed)] == [False, True, False]
    caplog.clear()
    removed = clean(store, other_machines=True)
    assert [name.rpartition("/")[2] for name in removed] == [other, f"{other}-reply"]
    assert sorted(store.list_prefix()) == sorted([f"{own}/new/zarr.json", f"{unnamed}/new/zarr.json"])
    with replacing(store, "a"):
        assert clean(store) == []


def test_a_name_identifies_its_process_and_can_be_continued() -> None:
    assert owner(staging_name(), STAGING) is owner(f"{staging_name()}-1a2b", STAGING) is Owner.RUNNING
    assert staging_name() != staging_name()
    assert owner(staging_name(), ".other-") is None
    assert owner(f"{STAGING}a-b", STAGING) is owner(f"{STAGING}a-x-y-z", STAGING) is None


@pytest.mark.parametrize("path", ["", "g/h"])
def test_threads_that_replace_the_same_node_exclude_each_other(path: str, tmp_path: Path) -> None:
    zarrfs.open_group(tmp_path / "a", path, "w")

    def replace(number: int) -> None:
        for _ in range(10):
            if number % 2:
                zarrfs.open_group(tmp_path / "a", path, "w")
            else:
                zarrfs.create_array(tmp_path / "a", path, data=np.ones(4), chunks=2, overwrite=True)

    run_in_threads(replace, range(6))
    zarrfs.open(tmp_path / "a", path)
    assert [name for name in os.listdir(tmp_path / "a") if "copy" in name] == []
