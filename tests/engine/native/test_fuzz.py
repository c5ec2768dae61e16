"""Damaged files: reads and writes by the native library have the outcome of the Python executor.

``python -m pytest tests/engine/native/test_fuzz.py --hypothesis-profile=fuzz`` tries many more cases; CONTRIBUTING.md
contains the command that compiles the library with the sanitizers.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.engine.native.executors import native, python
from tests.engine.native.test_equivalence import Case, cases, create
from tests.engine.native.test_writing import chunk_files, tree
from zarrfs.engine.read import native_reading, planning
from zarrfs.engine.write import native_writing

BYTES = (0, 1, 2, 16, 127, 128, 254, 255)


def damage(files: list[Path], rng: random.Random) -> None:
    """Change one file: some bytes, a number of its header or trailer, its length, or its place."""
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    kind = rng.randrange(8)
    if kind == 0 or not data:
        data = bytearray(rng.randbytes(rng.choice((0, 1, 3, 15, 16, 17, 40, 300))))
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    elif kind == 2:
        data += rng.choice((b"\0", bytes(data), rng.randbytes(40)))
    elif kind == 3:
        other = rng.choice(files).read_bytes()
        cut = rng.randrange(len(data))
        data = data[:cut] + other[cut:]
    elif kind == 4:
        # Headers and shard indexes consist of such numbers.
        start = 4 * rng.choice((*range(6), -1, -2, -3, -4, -5, -6))
        value = rng.choice((0, 1, 16, len(data), len(data) - 1, 2**31 - 1, 2**31, 2**32 - 1))
        data[start : start + 4 if start != -4 else None] = value.to_bytes(4, "little")
    elif kind == 5:
        del data[: rng.randrange(1, 20)]
    else:
        for _ in range(rng.choice((1, 1, 2, 9))):
            data[rng.randrange(min(len(data), rng.choice((20, 100, 1 << 20))))] = rng.choice(BYTES)
    path.write_bytes(data)


@contextmanager
def small_tasks() -> Iterator[None]:
    """Use several threads for any read or write, and return to the interpreter after each task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "CORES", 3)
        patch.setattr(native_reading, "BUDGET_NS", 1)
        for module in (planning, native_writing):
            patch.setattr(module, "MIN_TASK_NBYTES", 1)
        yield


def read(root: Path, case: Case, cache_size: int, lenient: bool) -> list[Any]:
    """Return the outcomes of several reads through one array."""
    errors: list[str] = []
    access = zarrfs.Access(on_corrupt=(lambda error: errors.append(str(error))) if lenient else None)
    array = zarrfs.open_array(root, cache_size=cache_size, access=access)
    outcomes: list[Any] = []
    for selection in (case.selection, ..., case.selection, ...):
        errors.clear()
        try:
            values = np.asarray(array[selection])
        except zarrfs.ChunkDecodeError:
            # Several chunks can be damaged, and which of them is read first depends on the threads.
            outcomes.append("ChunkDecodeError")
        else:
            outcomes.append((values.shape, values.dtype.str, values.tobytes(), sorted(errors)))
    return outcomes


@given(
    case=cases(),
    seed=st.integers(0, 2**32),
    count=st.integers(1, 4),
    cache_size=st.sampled_from([0, 1 << 24]),
    lenient=st.booleans(),
    many=st.booleans(),
)
def test_damaged_files_are_read_equally(
    case: Case, seed: int, count: int, cache_size: int, lenient: bool, many: bool
) -> None:
    rng = random.Random(seed)
    with TemporaryDirectory() as directory, ExitStack() as stack:
        root = Path(directory)
        create(directory, case)
        for _ in range(count if (files := chunk_files(root)) else 0):
            damage(files, rng)
        with python():
            expected = read(root, case, cache_size, lenient)
        record = stack.enter_context(native())
        if many:
            stack.enter_context(small_tasks())
        assert read(root, case, cache_size, lenient) == expected
        assert record.reads


def write(root: Path, case: Case) -> tuple[str, dict[str, bytes | None]]:
    """Write to a part of an array. Return the error, or nothing, and the files."""
    array = zarrfs.open_array(root, mode="r+", cache_size=0)
    error = ""
    try:
        array[case.selection] = 3
    except zarrfs.ZarrError as raised:
        error = type(raised).__name__
    return error, tree(root)


@given(case=cases(), seed=st.integers(0, 2**32), count=st.integers(1, 4), many=st.booleans())
def test_damaged_files_are_written_equally(case: Case, seed: int, count: int, many: bool) -> None:
    rng = random.Random(seed)
    with TemporaryDirectory() as directory, ExitStack() as stack:
        root = Path(directory, "a")
        create(str(root), case)
        for _ in range(count if (files := chunk_files(root)) else 0):
            damage(files, rng)
        before = tree(root)
        copy = Path(directory, "b")
        shutil.copytree(root, copy)
        with python():
            expected = write(root, case)
        stack.enter_context(native())
        if many:
            stack.enter_context(small_tasks())
        error, files_after = write(copy, case)
    assert error == expected[0]
    if not error:
        assert files_after == expected[1]
    else:
        # The executors write the chunks in different orders until one fails.
        for name, data in expected[1].items():
            if data not in (before.get(name), files_after.get(name)):
                assert files_after.get(name) == before.get(name)
