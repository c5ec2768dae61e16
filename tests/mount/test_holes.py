"""Holes of files: missing chunks whose elements are 0, which programs skip (SEEK_DATA and SEEK_HOLE)."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from tests.mount.mounted import mounted, needs_fuse
from tests.processes import TIMEOUT
from zarrfs.files.content import streams
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import ArraySegment, BytesSegment, PartSegment, VirtualFileContent
from zarrfs.files.content.open_files import OpenFile

TERABYTE = (1000, 1000, 1_000_000)


def data_and_holes(descriptor: int) -> list[tuple[int, int]]:
    """Return the ranges of data in an open file as a program finds them."""
    ranges, offset = [], 0
    while True:
        try:
            start = os.lseek(descriptor, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return ranges
        offset = os.lseek(descriptor, start, os.SEEK_HOLE)
        ranges.append((start, offset))


@st.composite
def contents(draw: st.DrawFn) -> tuple[VirtualFileContent, zarrfs.Array]:
    """A file with a header and a part of an array of which some chunks are missing."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    chunks: Any = tuple(draw(st.integers(1, length)) for length in shape)
    if draw(st.booleans()):
        chunks = [[1, *([length - 1] if length > 1 else [])] for length in shape]
    array = zarrfs.create_array({}, shape=shape, chunks=chunks, dtype="u2", fill_value=0)
    for index in draw(st.lists(st.tuples(*(st.integers(0, length - 1) for length in shape)), max_size=4)):
        array[index] = 1 + sum(index)
    segment = ArraySegment(array, draw(st.sampled_from(["C", "F"])), swap=draw(st.booleans()))
    start = draw(st.integers(0, array.nbytes))
    part = PartSegment(segment, start, draw(st.integers(0, array.nbytes - start)))
    return VirtualFileContent([BytesSegment(draw(st.binary(max_size=4))), part, segment]), array


@settings(deadline=None)
@given(made=contents())
def test_all_bytes_outside_of_the_data_are_0(made: tuple[VirtualFileContent, zarrfs.Array]) -> None:
    content, _ = made
    data = content.read(0, content.size)
    is_hole = np.ones(content.size, bool)
    ranges = content.data_ranges()
    assert ranges == sorted(ranges)
    for start, stop in ranges:
        assert 0 <= start < stop <= content.size
        is_hole[start:stop] = False
    assert not np.frombuffer(data, np.uint8)[is_hole].any()
    assert all(before[1] < after[0] for before, after in pairwise(ranges))


@settings(deadline=None)
@given(made=contents(), offset=st.integers(-1, 1000), whence=st.sampled_from([os.SEEK_DATA, os.SEEK_HOLE]))
def test_offsets_are_those_of_the_ranges(
    made: tuple[VirtualFileContent, zarrfs.Array], offset: int, whence: int
) -> None:
    content, _ = made
    is_data = np.zeros(content.size + 1, bool)  # the end of the file is a hole
    for start, stop in content.data_ranges():
        is_data[start:stop] = True
    wanted = is_data if whence == os.SEEK_DATA else ~is_data
    expected = [n for n in range(max(offset, 0), content.size + 1) if wanted[n]]
    pool = BlockPool()
    file = OpenFile(content, pool)
    found = expected[0] if 0 <= offset < content.size and expected else None
    assert file.seek(offset, whence) == found
    pool.close()


@pytest.mark.parametrize(
    "options",
    [{"fill_value": 7}, {"fill_value": 0, "access": zarrfs.Access(fill_missing=False)}, {"dtype": "string"}],
)
def test_missing_chunks_that_do_not_read_as_0_are_no_holes(options: dict[str, Any]) -> None:
    array = zarrfs.create_array({}, **{"shape": (10,), "chunks": (2,), "dtype": "u1", **options})
    if array.dtype.hasobject:
        assert streams.ArrayStream(array).stored_ranges() is None
    else:
        assert VirtualFileContent([ArraySegment(array)]).data_ranges() == [(0, 10)]


def test_a_negative_zero_is_no_hole() -> None:
    array = zarrfs.create_array({}, shape=(10,), chunks=(2,), dtype="f8", fill_value=-0.0)
    assert VirtualFileContent([ArraySegment(array)]).data_ranges() == [(0, 80)]


def test_of_very_many_chunks_no_holes_are_determined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LISTED_CHUNKS", 3)
    array = zarrfs.create_array({}, shape=(10,), chunks=(2,), dtype="u1")
    array[2:8] = 1
    assert VirtualFileContent([ArraySegment(array)]).data_ranges() == [(2, 8)]
    array[9] = 1
    assert VirtualFileContent([ArraySegment(array)]).data_ranges() == [(0, 10)]


def test_a_chunk_that_is_written_later_is_seen() -> None:
    array = zarrfs.create_array({}, shape=(10,), chunks=(2,), dtype="u1")
    pool = BlockPool()
    file = OpenFile(VirtualFileContent([ArraySegment(array)]), pool)
    assert file.seek(0, os.SEEK_DATA) is None
    array[5] = 1
    file._data_ranges = (*file._data_ranges[:2], float("-inf"))  # the time of the comparison has passed
    assert file.seek(0, os.SEEK_DATA) == 4
    pool.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = zarrfs.create_group(tmp_path / "s.zarr")
    root.create_array("empty", shape=TERABYTE, chunks=(100, 100, 10_000), dtype="u1")
    sparse = root.create_array("sparse", shape=TERABYTE, chunks=(1, 100, 10_000), dtype="u1")
    sparse[500, 250, 3] = 1
    root.create_array("full", data=np.arange(1000, dtype="u2"), chunks=(100,))
    return tmp_path / "s.zarr"


@pytest.fixture
def mountpoint(store: Path, tmp_path: Path) -> Iterator[Path]:
    with mounted(store, tmp_path / "mnt") as path:
        yield path


@needs_fuse
def test_programs_skip_the_holes(mountpoint: Path, tmp_path: Path) -> None:
    found = {}
    for name in ("empty.raw", "sparse.raw", "full.raw", ".zarrfs/stats.json"):
        descriptor = os.open(mountpoint / name, os.O_RDONLY)
        found[name] = data_and_holes(descriptor)
        os.close(descriptor)
    plane, line = TERABYTE[1] * TERABYTE[2], TERABYTE[2]
    start = 500 * plane + 200 * line
    assert found["empty.raw"] == []
    assert found["sparse.raw"] == [(start, start + 100 * line)]
    assert found["full.raw"] == [(0, 2000)]
    command = [
        "tar",
        "-c",
        "--sparse",
        "-f",
        str(tmp_path / "a.tar"),
        "-C",
        str(mountpoint),
        "empty.raw",
        "full.raw",
    ]
    subprocess.run(command, check=True, timeout=TIMEOUT)
    assert (tmp_path / "a.tar").stat().st_size < 100_000
    subprocess.run(
        ["tar", "-x", "-f", str(tmp_path / "a.tar"), "-C", str(tmp_path)], check=True, timeout=TIMEOUT
    )
    assert (tmp_path / "empty.raw").stat().st_size == plane * TERABYTE[0]
    np.testing.assert_array_equal(np.fromfile(tmp_path / "full.raw", "u2"), np.arange(1000))


@needs_fuse
def test_files_of_a_writable_mount_have_no_holes(store: Path, tmp_path: Path) -> None:
    with mounted(store, tmp_path / "mnt", "--rw") as path:
        descriptor = os.open(path / "sparse.raw", os.O_RDONLY)
        assert os.lseek(descriptor, 5, os.SEEK_DATA) == 5
        assert os.lseek(descriptor, 5, os.SEEK_HOLE) == os.fstat(descriptor).st_size
        os.close(descriptor)
