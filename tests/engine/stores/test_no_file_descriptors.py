"""Behaviour without free file descriptors: each operation of a local store works or raises a ZarrError.

Each test runs in a subprocess, which prints the outcomes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, os, resource, sys, traceback
from pathlib import Path
import zarrfs
from tests.engine.stores.every_store import STORES
from zarrfs.engine.stores.locations import open_store  # modules are imported before: an import needs a descriptor
from zarrfs.engine.stores.base import ByteRange

open_array = zarrfs.open_array
name, folder = sys.argv[1], Path(sys.argv[2])
store = STORES[name](folder)
store.set("a/b", b"1")
store.set("a/c", b"2")
fresh = STORES[name](folder / "fresh") if not (folder / "fresh").mkdir() else None
operations = {
    "get": lambda: store.get("a/b"),
    "get_ranges": lambda: store.get_ranges("a/b", [ByteRange(0, 1)]),
    "get_into": lambda: store.get_into("a/b", memoryview(bytearray(1))),
    "size": lambda: store.size("a/b"),
    "stamp": lambda: store.stamp("a/b"),
    "list_dir": lambda: store.list_dir("a"),
    "list_prefix": lambda: list(store.list_prefix()),
    "usage": lambda: store.usage(),
    "set": lambda: store.set("a/b", b"3"),
    "first set": lambda: fresh.set("a", b"3"),
    "delete": lambda: store.delete("a/b"),
    "delete_prefix": lambda: store.delete_prefix("a"),
    "move_prefix": lambda: store.move_prefix("a", "d"),
    "clean": lambda: store.clean(dry_run=True),
    "flush": lambda: store.flush(),
    "close": lambda: store.close(),
    "open": lambda: open_store(folder / "store", mode="r"),
    "open zip": lambda: open_store(sys.argv[3], mode="r"),
    "open sqlite": lambda: open_store(f"sqlite://{folder}/x.sqldb", mode="a"),
    "open lmdb": lambda: open_store(f"lmdb://{folder}/x.lmdb", mode="a"),
    "open dbm": lambda: open_store(f"dbm://{folder}/x.dbm", mode="a"),
    "open temporary": lambda: open_store("temporary://", mode="a"),
    "open array": lambda: open_array(folder / "store"),
}
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
outcomes = {}
for operation, action in operations.items():
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limit[1]))
    try:
        action()
        outcome = "success"
    except zarrfs.ZarrError as error:
        outcome = f"ZarrError {error}"
    except BaseException as error:
        outcome = f"{type(error).__name__} {error}"
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        traceback.print_exc()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    outcomes[operation] = outcome
store.close()
fresh.close()
print(json.dumps(outcomes))
"""


@pytest.mark.parametrize("name", ["local", "local, durable", "zip", "zip, existing", "sqlite", "dbm", "lmdb"])
def test_operations_without_free_descriptors_work_or_raise_zarr_errors(name: str, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", b"1")
    (tmp_path / "work").mkdir()
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT, name, tmp_path / "work", tmp_path / "other.zip"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    outcomes = json.loads(completed.stdout)
    for operation, outcome in outcomes.items():
        assert outcome == "success" or outcome.startswith("ZarrError"), (operation, outcome, completed.stderr)
    if name.startswith("local"):
        assert "Too many open files" in outcomes["get"]
        assert "Too many open files" in outcomes["set"]
    assert "Too many open files" in outcomes["open zip"]
