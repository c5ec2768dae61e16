"""``Array.write_bytes``: ranges of the flat stream, compared with NumPy."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.synchronizers import ProcessSynchronizer
from zarrfs.engine.write.patching import Patch, write_patches
from zarrfs.errors import ChunkDecodeError, ReadOnlyError, SelectionError
from zarrfs.testing import CountingStore

SHAPE = (7, 9, 5)
NBYTES = 7 * 9 * 5 * 4

LAYOUTS: dict[str, dict[str, Any]] = {
    "uncompressed": {"chunks": (3, 4, 5), "compressors": None},
    "compressed": {"chunks": (3, 4, 5)},
    "sharded": {"chunks": (2, 3, 5), "shards": (4, 9, 5)},
    "F order": {"chunks": (3, 4, 5), "order": "F", "zarr_format": 2},
    "v2": {"chunks": (4, 2, 3), "zarr_format": 2},
    "n5": {"chunks": (4, 2, 3), "zarr_format": "n5"},
    "one chunk": {"chunks": SHAPE},
}


def create(layout: str, dtype: str = "<u4", store: Any = None) -> tuple[zarrfs.Array, np.ndarray[Any, Any]]:
    data = np.arange(np.prod(SHAPE), dtype=dtype).reshape(SHAPE)
    array = zarrfs.create_array(store or MemoryStore(), "a", data=data, **LAYOUTS[layout])
    return array, data


ranges = st.integers(0, NBYTES).flatmap(
    lambda start: st.tuples(st.just(start), st.integers(0, NBYTES - start))
)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(deadline=None, max_examples=25)
@given(
    writes=st.lists(ranges, max_size=4), order=st.sampled_from(["C", "F", (1, 2, 0)]), seed=st.integers(0, 99)
)
def test_ranges_are_written_as_to_a_plain_file(
    layout: str, writes: list[tuple[int, int]], order: Any, seed: int
) -> None:
    array, data = create(layout)
    axes = {"C": (0, 1, 2), "F": (2, 1, 0)}.get(order, order)
    plain = bytearray(data.transpose(axes).tobytes())
    rng = np.random.default_rng(seed)
    for start, size in writes:
        new = rng.bytes(size)
        assert array.write_bytes(start, new, order) == size
        plain[start : start + size] = new
    assert bytes(array.read_bytes(0, len(plain), order)) == plain
    again = zarrfs.open_array(array.store, "a", mode="r")
    assert bytes(again.read_bytes(0, len(plain), order)) == plain


@pytest.mark.parametrize(
    "dtype", [">u4", "<c8", "|V4", "<f4", "S4", [("a", "<u2"), ("b", "u1"), ("c", "i1")]]
)
def test_every_fixed_size_data_type_is_written(dtype: Any) -> None:
    data = np.frombuffer(bytes(range(1, 49)), dtype=dtype)
    options: dict[str, Any] = {"shape": data.shape, "chunks": 5, "zarr_format": 2}
    array = zarrfs.create_array(MemoryStore(), "a", dtype=data.dtype, **options)
    for start, stop in ((0, 3), (3, 30), (30, 48)):
        array.write_bytes(start, data.tobytes()[start:stop])
    np.testing.assert_array_equal(array[...], data)
    assert bytes(array.read_bytes(0, 48)) == data.tobytes()


def test_an_array_without_dimensions_is_written() -> None:
    array = zarrfs.create_array(MemoryStore(), "a", data=np.array(0x01020304, "<u4"))
    assert array.write_bytes(1, b"\xff\xfe") == 2
    assert bytes(array.read_bytes(0, 4)) == b"\x04\xff\xfe\x01"


def test_a_write_is_clipped_at_the_end_and_refused_elsewhere() -> None:
    array, data = create("compressed")
    assert array.write_bytes(data.nbytes - 2, b"abcdef") == 2
    assert array.write_bytes(data.nbytes, b"abcdef") == 0
    assert array.write_bytes(0, b"") == 0
    refused: list[Any] = [(-1, b"a"), (0, b"a", "K"), (0, "text"), (0, np.zeros((4, 4), "u1")[:, 1])]
    for arguments in refused:
        with pytest.raises(SelectionError):
            array.write_bytes(*arguments)
    with pytest.raises(ReadOnlyError):
        zarrfs.open_array(array.store, "a", mode="r").write_bytes(0, b"a")


@pytest.mark.parametrize(
    ("layout", "coords"), [("compressed", (0, 0, 0)), ("sharded", (0, 0, 0)), ("sharded", (1, 0, 0))]
)
def test_whole_chunks_and_shards_are_written_without_reading_them(
    layout: str, coords: tuple[int, ...]
) -> None:
    store = CountingStore(MemoryStore())
    array, _ = create(layout, store=store)
    storage = array.storage
    shape = tuple(
        min(n, axis.length - axis.begin(c))
        for n, axis, c in zip(storage.shape_of(coords), storage.axes, coords, strict=True)
    )
    inner: Any = array.chunks
    patches = []
    for index in np.ndindex(*(-(-n // m) for n, m in zip(shape, inner, strict=True))):
        region = tuple(
            slice(i * m, min((i + 1) * m, n), 1) for i, m, n in zip(index, inner, shape, strict=True)
        )
        box = tuple(part.stop - part.start for part in region)
        patches.append(Patch(region, np.full((*box, 4), 7, np.uint8), None))
    store.calls.clear()
    write_patches(storage, coords, patches)
    assert [name for name in store.calls if name.startswith("get")] == []
    begin = [axis.begin(c) for axis, c in zip(storage.axes, coords, strict=True)]
    written = array[tuple(slice(b, b + n) for b, n in zip(begin, shape, strict=True))]
    assert (written == 0x07070707).all()


@pytest.mark.parametrize("layout", ["compressed", "sharded"])
def test_a_corrupt_chunk_is_not_overwritten_by_a_partial_write(layout: str) -> None:
    array, _ = create(layout)
    key = next(key for key in array.store.list_prefix("a/c"))
    array.store.set(key, b"corrupt")
    coords = tuple(map(int, key.removeprefix("a/c/").split("/")))
    begin = [axis.begin(c) for axis, c in zip(array.storage.axes, coords, strict=True)]
    offset = int(np.ravel_multi_index(begin, SHAPE)) * 4
    with pytest.raises(ChunkDecodeError):
        array.write_bytes(offset, b"a")
    assert bytes(array.store.get(key) or b"") == b"corrupt"


def test_bytes_of_one_chunk_are_merged_in_a_synchronized_store() -> None:
    with tempfile.TemporaryDirectory() as directory:
        location = f"{directory}/a.zarr"
        zarrfs.create_array(location, shape=(10,), dtype="u4", chunks=10)
        arrays = [
            zarrfs.open_array(location, mode="r+", synchronizer=ProcessSynchronizer(f"{directory}/locks"))
            for _ in range(2)
        ]
        for index in range(40):
            arrays[index % 2].write_bytes(index, bytes([index + 1]))
        assert bytes(arrays[0].read_bytes(0, 40)) == bytes(range(1, 41))
