"""The content of virtual files: reads of arbitrary ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.content import ArraySegment, BytesSegment, VirtualFileContent


@given(st.data())
def test_a_read_returns_the_requested_range(data: st.DataObject) -> None:
    numbers = np.arange(60, dtype="<u4").reshape(3, 4, 5)
    array = zarrfs.create_array(MemoryStore(), data=numbers, chunks=(2, 3, 2))
    choices = {
        "header": (BytesSegment(b"header"), b"header"),
        "nothing": (BytesSegment(b""), b""),
        "C": (ArraySegment(array), numbers.tobytes()),
        "F": (ArraySegment(array, "F"), numbers.tobytes("F")),
        "permuted": (ArraySegment(array, (1, 2, 0)), numbers.transpose(1, 2, 0).tobytes()),
        "swapped": (ArraySegment(array, swap=True), numbers.byteswap().tobytes()),
    }
    names = data.draw(st.lists(st.sampled_from(sorted(choices)), max_size=4))
    content = VirtualFileContent([choices[name][0] for name in names])
    whole = b"".join(choices[name][1] for name in names)
    assert content.size == len(whole)
    for _ in range(5):
        offset = data.draw(st.integers(0, len(whole) + 3))
        size = data.draw(st.integers(0, len(whole) + 3))
        assert content.read(offset, size) == whole[offset : offset + size]


@pytest.mark.parametrize("dtype", ["<u1", "<i2", "<f8", "<c8", "<c16", ">u4"])
def test_swap_reverses_the_byte_order_like_numpy(dtype: str) -> None:
    numbers = np.arange(24).astype(dtype)
    array = zarrfs.create_array(MemoryStore(), data=numbers, chunks=5, zarr_format=2)
    content = VirtualFileContent([ArraySegment(array, swap=True)])
    whole = numbers.byteswap().tobytes()
    assert content.read(0, content.size) == whole
    for offset in range(0, len(whole), 3):
        assert content.read(offset, 5) == whole[offset : offset + 5]
