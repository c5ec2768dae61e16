"""Reading and writing without free file descriptors: a StoreError that says so, never a chunk that is called broken.

The modules of the executors and of the codecs are imported when they are needed, which needs descriptors too.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs

ARRAYS: dict[str, dict[str, Any]] = {
    "zstd": {"compressors": "zstd"},
    "sharded": {"shards": (4, 4), "compressors": "gzip"},
    "string": {"dtype": "string"},
}

PROGRAM = """
import errno, os, resource, sys
import zarrfs

def use(array, operation):
    if operation == "read":
        return array[...]
    array[...] = "a" if array.dtype.kind in "OT" else 1

def check(path, when, operation, free):
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    if when == "open":
        array = zarrfs.open_array(path, mode="r+")
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(free):
        os.close(held.pop())
    try:
        if when == "before":
            array = zarrfs.open_array(path, mode="r+")
        use(array, operation)
    except zarrfs.StoreError as error:
        assert error.errno == errno.EMFILE, repr(error)
        assert "Too many open files" in str(error) and "broken" not in str(error), repr(error)
    except zarrfs.ZarrError as error:
        assert when == "before" and "Too many open files" in str(error), repr(error)
    for fd in held:
        os.close(fd)
    use(zarrfs.open_array(path, mode="r+"), operation)

CASES = [("open", "read", 0), ("open", "read", 1), ("open", "write", 0), ("before", "read", 0)]

for path in sys.argv[1:]:
    for case in CASES:
        # A new process has not imported the modules that are imported when they are needed.
        pid = os.fork()
        if pid == 0:
            try:
                check(path, *case)
            except BaseException as error:
                print(path, *case, repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, (path, case)
"""


def test_no_free_descriptors_are_a_clear_error(tmp_path: Path) -> None:
    paths = []
    for name, options in ARRAYS.items():
        data = np.array([["a", "b"], ["c", "d"]], dtype=object) if name == "string" else np.eye(4, dtype="u2")
        zarrfs.create_array(tmp_path / name, data=data, chunks=(2, 2), **options)
        paths.append(str(tmp_path / name))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *paths], stdout=subprocess.PIPE, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
