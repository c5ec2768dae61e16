"""Whatever a process was doing to a store when it was killed: what is there can be read, with old or new chunks and
nothing between, and the work can be done again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import crashing

LONGER = int(os.environ.get("ZARRFS_LONGER", "1"))
"""As for the twins: so many times as many are killed."""

KILLS = 12

LOCATIONS = {"local": "{}/NUMBER.zarr", "sqlite": "sqlite://{}/NUMBER.sqldb", "lmdb": "lmdb://{}/NUMBER.lmdb"}


@pytest.mark.timeout(300 * LONGER)
@pytest.mark.parametrize("store", LOCATIONS)
@pytest.mark.parametrize("work", crashing.WORKS)
def test_a_process_that_is_killed_leaves_old_or_new(work: str, store: str, tmp_path: Path) -> None:
    location = LOCATIONS[store].format(tmp_path)
    if work in ("copy", "rechunk"):
        # Beside the first, "-copy" is put behind it.
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
            str(KILLS * LONGER),
        ],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed = int(done.stdout.split()[0])
    assert killed > KILLS * LONGER * 0.7, done.stdout
