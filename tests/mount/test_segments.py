"""The segments of virtual files: any ranges of arrays in any order of the dimensions, compared with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import ArraySegment, BytesSegment, PartSegment, VirtualFileContent
from zarrfs.files.content.open_files import OpenFile
from zarrfs.testing import CountingStore


@st.composite
def permuted_arrays(draw: st.DrawFn) -> tuple[zarrfs.Array, tuple[int, ...], bool, bytes]:
    """Return an array, an order of its dimensions, whether to reverse the bytes, and the expected stream."""
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=5)))
    chunks = tuple(draw(st.integers(1, length)) for length in shape)
    order = tuple(draw(st.permutations(range(len(shape)))))
    dtype = np.dtype(draw(st.sampled_from(["|u1", "<u2", ">i4", "<f8", "<c8"])))
    swap = draw(st.booleans())
    data = np.arange(1, math.prod(shape) + 1).astype(dtype).reshape(shape)
    if dtype.kind == "c":
        data = data + np.array(0.5j, dtype)
    array = zarrfs.create_array(MemoryStore(), data=data.astype(dtype), chunks=chunks, zarr_format=2)
    expected = data.astype(dtype).transpose(order)
    return array, order, swap, (expected.byteswap() if swap else expected).tobytes()


ranges = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None)
@given(case=permuted_arrays(), fractions=ranges)
def test_ranges_of_permuted_arrays(
    case: tuple[zarrfs.Array, tuple[int, ...], bool, bytes], fractions: list[tuple[float, float]]
) -> None:
    array, order, swap, expected = case
    segment = ArraySegment(array, order, swap)
    pool = BlockPool(1 << 20)
    try:
        file = OpenFile(VirtualFileContent([BytesSegment(b"header"), segment, BytesSegment(b"!")]), pool)
        whole = b"header" + expected + b"!"
        assert file.content.size == len(whole)
        assert segment.nbytes == len(expected)
        for first, second in fractions:
            start, stop = sorted((int(first * len(whole)), int(second * len(whole))))
            assert file.content.read(start, stop - start) == whole[start:stop]
            assert bytes(file.read(start, stop - start)) == whole[start:stop]
    finally:
        pool.close()


@settings(max_examples=100, deadline=None)
@given(
    bounds=st.lists(st.tuples(st.integers(0, 240), st.integers(0, 240)), min_size=1, max_size=6),
    step=st.integers(1, 100),
)
def test_files_of_parts_of_a_segment(bounds: list[tuple[int, int]], step: int) -> None:
    data = np.arange(120, dtype="<u2").reshape(4, 5, 6)
    segment = ArraySegment(zarrfs.create_array(MemoryStore(), data=data, chunks=(2, 2, 2)), (2, 0, 1))
    stream = data.transpose(2, 0, 1).tobytes()
    parts: list[Any] = []
    whole = b""
    for start, stop in map(sorted, bounds):
        parts += [BytesSegment(b"|"), PartSegment(segment, start, stop - start)]
        whole += b"|" + stream[start:stop]
    nested = PartSegment(PartSegment(segment, 10, 50), 5, 20)
    content = VirtualFileContent([*parts, nested])
    whole += stream[15:35]
    assert content.size == len(whole)
    assert b"".join(content.read(offset, step) for offset in range(0, content.size, step)) == whole
    assert content.read(0, len(whole) + 5) == whole
    pool = BlockPool(1 << 20)
    try:
        file = OpenFile(content, pool)
        assert b"".join(bytes(file.read(offset, step)) for offset in range(0, content.size, step)) == whole
        assert bytes(file.read(0, len(whole) + 5)) == whole
    finally:
        pool.close()


def test_a_part_must_lie_in_its_segment() -> None:
    for start, nbytes in ((-1, 2), (0, 5), (4, 1), (0, -1)):
        with pytest.raises(ValueError, match="not part of a segment of 4 bytes"):
            PartSegment(BytesSegment(b"1234"), start, nbytes)


def test_a_plane_of_a_permuted_array_reads_only_its_chunks() -> None:
    store = CountingStore(MemoryStore())
    data = np.arange(4 * 3 * 8 * 8, dtype="<u2").reshape(4, 3, 8, 8)
    array = zarrfs.create_array(store, "a", data=data, chunks=(1, 1, 8, 8))
    store.reset()
    content = VirtualFileContent([ArraySegment(array, (1, 0, 2, 3))])
    plane = 8 * 8 * 2
    # The planes (c=2, t=1) and (c=2, t=2) are adjacent in the file.
    assert content.read((2 * 4 + 1) * plane, 2 * plane) == data[1:3, 2].tobytes()
    assert {key for key in store.keys if "/c/" in key} == {"a/c/1/2/0/0", "a/c/2/2/0/0"}
