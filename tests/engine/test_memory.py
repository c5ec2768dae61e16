"""Data that do not fit into memory raise a ZarrError, and the process can continue."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrfs

PROGRAM = """
import errno, resource, sys
import numpy, zarrfs
path, what = sys.argv[1:]
array = zarrfs.open_array(path, what, cache_size=0)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), -1))
try:
    array[0]
except zarrfs.ZarrError as error:
    print(type(error).__name__, getattr(error, "errno", None) == errno.EFBIG, error)
array = zarrfs.open_array(path, "small", cache_size=0)
print(array[...].tolist())
"""


def read_with_little_memory(path: Path, what: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), what],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *messages, last = done.stdout.splitlines()
    assert last == "[0, 1, 2]"
    return messages


@pytest.fixture
def group(tmp_path: Path) -> zarrfs.Group:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    group.create_array("small", data=np.arange(3))
    return group


def test_the_error_for_a_selection_that_does_not_fit_into_memory_states_its_size(
    group: zarrfs.Group, tmp_path: Path
) -> None:
    group.create_array("large", shape=(2, 1 << 30), dtype="u1", chunks=(1, 1 << 20))
    (message,) = read_with_little_memory(tmp_path / "s.zarr", "large")
    assert message.startswith("SelectionError")
    assert "1,073,741,824 bytes of memory, which cannot be allocated; select less at a time" in message


def test_the_error_for_a_chunk_that_does_not_fit_into_memory_names_the_chunk(
    group: zarrfs.Group, tmp_path: Path
) -> None:
    array = group.create_array("large", shape=(1 << 29,), dtype="u1", chunks=(1 << 29,), compressors="gzip")
    other = zarrfs.create_array({}, shape=(1,), dtype="u1", chunks=(1,), compressors="gzip")
    other[0] = 1
    (tmp_path / "s.zarr" / "large" / "c").mkdir()
    (tmp_path / "s.zarr" / "large" / "c" / "0").write_bytes(bytes(other.store.get("c/0") or b""))
    assert array.shape == (1 << 29,)
    (message,) = read_with_little_memory(tmp_path / "s.zarr", "large")
    assert message.startswith("ChunkDecodeError")
    assert "large: chunk (0,) (key 'large/c/0')" in message


def test_a_file_that_does_not_fit_into_memory_raises_a_store_error(
    group: zarrfs.Group, tmp_path: Path
) -> None:
    group.create_array("large", data=["a", "b"], chunks=(2,), compressors=None)
    # The encoded size of strings is not limited, so that only the memory limits the size of the read.
    with open(tmp_path / "s.zarr" / "large" / "c" / "0", "r+b") as file:
        file.truncate(4 << 30)
    (message,) = read_with_little_memory(tmp_path / "s.zarr", "large")
    assert message.startswith("StoreError True")
    assert "memory" in message
