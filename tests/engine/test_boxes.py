"""Boxes within one chunk, and single elements, are read as ordinary selections are, by a shorter way."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.documents import LITTLE, sharding
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.indexing.selections import fancy_selection
from zarrfs.engine.read.planning import plan_box, plan_read
from zarrfs.engine.read.reading import read_basic
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, MissingChunkError, SelectionError

VALUES = np.arange(7 * 5 * 9, dtype="<i4").reshape(7, 5, 9)


LAYOUTS: dict[str, dict[str, Any]] = {
    "regular": {"chunks": (3, 2, 4)},
    "chunks of one element": {"chunks": (1, 1, 1)},
    "chunks of one element along a dimension": {"chunks": (1, 5, 9)},
    "one chunk": {"chunks": (7, 5, 9)},
    "larger than the array": {"chunks": (8, 8, 16)},
    "rectilinear": {"chunks": ((2, 5), (1, 4), (3, 3, 3))},
    "shards": {"chunks": (2, 2, 4), "shards": (4, 4, 8)},
    "shards with the index first": {
        "chunks": (4, 5, 9),
        "serializer": sharding((2, 5, 3), [LITTLE, {"name": "zstd"}], index_location="start"),
        "compressors": None,
    },
    "transposed shards": {
        "chunks": (4, 4, 8),
        "filters": [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}],
        "serializer": sharding((4, 2, 2), [LITTLE, {"name": "crc32c"}]),
        "compressors": None,
    },
    "nested shards": {
        "chunks": (8, 8, 16),
        "serializer": sharding((4, 4, 8), [sharding((2, 2, 4), [LITTLE])]),
        "compressors": None,
    },
    "uncompressed": {"chunks": (3, 2, 4), "compressors": None},
    "fortran": {"chunks": (3, 2, 4), "order": "F"},
    "v2": {"chunks": (3, 2, 4), "zarr_format": 2},
}

STORES: dict[str, MemoryStore] = {}

CACHES = (0, 200, 4096, 1 << 20)


def store_of(layout: str) -> MemoryStore:
    if layout not in STORES:
        STORES[layout] = MemoryStore()
        array = zarrfs.create_array(
            STORES[layout], shape=VALUES.shape, dtype=VALUES.dtype, fill_value=-1, **LAYOUTS[layout]
        )
        array[...] = VALUES
    return STORES[layout]


def entries_of(length: int) -> st.SearchStrategy[int | slice]:
    bound = st.none() | st.integers(-length - 2, length + 2)
    short = st.integers(0, length).flatmap(
        lambda start: st.integers(1, 3).map(lambda count: slice(start, start + count))
    )
    return st.one_of(
        st.integers(-length, length - 1),
        short,
        st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1])),
    )


ELEMENTS = st.tuples(*(st.integers(-length, length - 1) for length in VALUES.shape))
SELECTIONS = st.tuples(*map(entries_of, VALUES.shape)) | ELEMENTS


def is_in_one_chunk(array: zarrfs.Array, selection: tuple[int | slice, ...]) -> bool:
    """Whether the selection is not empty, has no steps, and intersects one chunk, or inner chunk of a shard."""
    for dimension, part in enumerate(selection):
        indices = range(array.shape[dimension])[part]
        if isinstance(indices, int):
            continue
        if not len(indices) or indices.step != 1:
            return False
        length = array.chunks[dimension]
        ends = accumulate(length) if isinstance(length, tuple) else range(0, array.shape[dimension], length)
        if any(indices[0] < end <= indices[-1] for end in ends):
            return False
    return True


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), cache_size=st.sampled_from(CACHES))
def test_a_box_equals_that_of_numpy(layout: str, data: st.DataObject, cache_size: int) -> None:
    array = zarrfs.open_array(store_of(layout), cache_size=cache_size)
    for _ in range(4):
        selection = data.draw(SELECTIONS)
        expected = VALUES[selection]
        general = array._get(fancy_selection, selection)
        for values in (array[selection], general):
            assert type(values) is type(expected)
            assert values.dtype == expected.dtype
            np.testing.assert_array_equal(values, expected)
        box = plan_box(array.storage, selection)
        is_within = box is not None and isinstance(box[0].chunks, tuple)
        assert is_within == is_in_one_chunk(array, selection)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), cache_size=st.sampled_from(CACHES), is_filled=st.booleans())
def test_chunk_and_policy_are_those_of_the_plan(
    layout: str, data: st.DataObject, cache_size: int, is_filled: bool
) -> None:
    array = zarrfs.open_array(store_of(layout), cache_size=cache_size)
    if is_filled:
        array[0, 0, 0]
    selection = data.draw(SELECTIONS.filter(lambda selection: is_in_one_chunk(array, selection)))
    normalized = fancy_selection(selection, array.shape)
    plan = plan_read(array.storage, normalized, prod(normalized.shape) * array.dtype.itemsize)
    box = plan_box(array.storage, selection)
    assert box is not None
    box_plan, shape, _ = box
    assert shape == normalized.shape
    (planned,), (projection,) = plan.chunks, box_plan.chunks
    assert projection._replace(target=planned.target) == planned
    out = np.empty(shape)
    assert out[projection.target].shape == out[planned.target].shape == out.shape
    assert replace(box_plan, chunks=()) == replace(plan, chunks=())


def contents(cache: ChunkCache) -> dict[Any, Any]:
    """Return keys (without the token of the array), stamps and sizes of the entries, and the recorded reads."""
    entries = {key[1:]: (stamp, nbytes) for key, (stamp, _, nbytes) in cache._entries.items()}
    return {"entries": entries, "reads": {key[1:]: share for key, share in cache._decoded_shares.items()}}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(selections=st.lists(SELECTIONS, min_size=1, max_size=5), cache_size=st.sampled_from(CACHES))
def test_the_cache_is_that_of_ordinary_reads(
    layout: str, selections: list[tuple[int | slice, ...]], cache_size: int
) -> None:
    arrays = [zarrfs.open_array(store_of(layout), cache_size=cache_size) for _ in range(2)]
    for selection in selections:
        arrays[0][selection]
        arrays[1]._get(fancy_selection, selection)
        assert contents(arrays[0].storage.cache) == contents(arrays[1].storage.cache)


INVALID = [
    (7, 0, 0),
    (0, -6, 0),
    (0, 0, 10**30),
    (0, 0, 0, 0),
    (-8, 99, 0),
    (slice(0, 2, 0), 0, 0),
    (slice(0, 1.5), 0, 0),
    (slice("a", None), 0, 0),
    (slice(0, 2), 0, 9),
    (0, slice(0, 2), 0, slice(0, 1)),
]


@pytest.mark.parametrize("index", INVALID, ids=str)
def test_errors_are_those_of_ordinary_selections(index: tuple[Any, ...]) -> None:
    array = zarrfs.open_array(store_of("regular"))
    messages = []
    for read in (array.__getitem__, lambda index: array._get(fancy_selection, index)):
        with pytest.raises(SelectionError) as caught:
            read(index)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_other_indices_are_ordinary_selections() -> None:
    array = zarrfs.open_array(store_of("regular"))
    np.testing.assert_array_equal(array[1, 2], VALUES[1, 2])
    np.testing.assert_array_equal(array[0:0, 2, 3], VALUES[0:0, 2, 3])
    assert array[np.int64(1), 2, 3] == VALUES[1, 2, 3]
    with pytest.raises(SelectionError):
        array[True, 0, 0]
    for selection in ((7, 0, 0), (0, 0), (0, 0, slice(0, 3, 2)), (0, 0, slice(5, 5))):
        assert read_basic(array.storage, selection) is None


def test_missing_corrupt_and_changed_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    array = zarrfs.create_array(path, shape=(4, 4), chunks=(2, 2), dtype="u2", fill_value=7)
    array[:2, :2] = 1
    reader = zarrfs.open_array(path)
    assert (reader[0, 0], reader[3, 3]) == (1, 7)
    array[0, 0] = 500
    assert reader[0, 0] == 500
    with pytest.raises(MissingChunkError):
        zarrfs.open_array(path, access=zarrfs.Access(fill_missing=False))[3, 3]
    (path / "c" / "0" / "0").write_bytes(b"damaged")
    with pytest.raises(ChunkDecodeError, match=r"chunk \(0, 0\)"):
        reader[0, 0]
    errors: list[Exception] = []
    tolerant = zarrfs.open_array(path, access=zarrfs.Access(on_corrupt=errors.append))
    assert tolerant[1, 1] == 7
    assert len(errors) == 1


INDEX_NBYTES = 4 * 16 + 4
"""The index of 2 x 2 inner chunks, and its checksum."""


def sharded(path: Path, **options: Any) -> zarrfs.Array:
    """Return an array of one shard in which the inner chunks (0, 0), (0, 1) and (1, 0) are stored."""
    array = zarrfs.create_array(path, shape=(4, 4), chunks=(2, 2), shards=(4, 4), dtype="u2", fill_value=7)
    array[:2, :2] = 1
    array[:2, 2:] = 2
    array[2:, :2] = 3
    return array


@pytest.mark.parametrize("cache_size", [0, 1 << 20])
def test_inner_chunks_missing_corrupt_and_changed(tmp_path: Path, cache_size: int) -> None:
    path = tmp_path / "a.zarr"
    array = sharded(path)
    reader = zarrfs.open_array(path, cache_size=cache_size)
    for _ in range(2):
        np.testing.assert_array_equal(reader[0:2, 1:2], [[1], [1]])
        np.testing.assert_array_equal(reader[2:4, 2], [7, 7])
    array[:2, :2] = 500
    np.testing.assert_array_equal(reader[0:2, 1], [500, 500])
    file = path / "c" / "0" / "0"
    intact = file.read_bytes()
    index = np.frombuffer(intact[-INDEX_NBYTES:-4], "<u8").reshape(2, 2, 2)
    offset, nbytes = index[0, 1].tolist()

    file.write_bytes(intact[:offset] + bytes(nbytes) + intact[offset + nbytes :])
    with pytest.raises(ChunkDecodeError, match=r"chunk \(0, 0\).*inner chunk \(0, 1\)"):
        reader[0:2, 2:4]
    np.testing.assert_array_equal(reader[0:2, 1], [500, 500])

    file.write_bytes(intact[: -INDEX_NBYTES + 3] + b"\xff" + intact[-INDEX_NBYTES + 4 :])
    with pytest.raises(ChunkDecodeError, match="crc32c"):
        reader[0:2, 1]
    file.write_bytes(intact[:20])
    with pytest.raises(ChunkDecodeError, match="20 bytes"):
        reader[0:2, 1]

    file.unlink()
    np.testing.assert_array_equal(reader[0:2, 1], [7, 7])
    file.write_bytes(intact)
    np.testing.assert_array_equal(reader[0:2, 1], [500, 500])


def test_the_options_of_access_apply_to_inner_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    sharded(path)
    strict = zarrfs.open_array(path, access=zarrfs.Access(fill_missing=False))
    np.testing.assert_array_equal(strict[0:2, 2], [2, 2])
    with pytest.raises(MissingChunkError, match=r"inner chunk \(1, 1\)"):
        strict[2:4, 2]
    file = path / "c" / "0" / "0"
    data = file.read_bytes()
    offset, nbytes = np.frombuffer(data[-INDEX_NBYTES:-4], "<u8").reshape(2, 2, 2)[0, 1].tolist()
    file.write_bytes(data[:offset] + bytes(nbytes) + data[offset + nbytes :])
    errors: list[Exception] = []
    tolerant = zarrfs.open_array(path, access=zarrfs.Access(on_corrupt=errors.append))
    np.testing.assert_array_equal(tolerant[0:2, 2], [7, 7])
    np.testing.assert_array_equal(tolerant[0:2, 0], [1, 1])
    assert len(errors) == 1


def test_the_native_library_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrfs.engine.read.native_reading.read_natively", None)
    array = zarrfs.open_array(store_of("shards"))
    np.testing.assert_array_equal(array[1:2, 2:4, 3], VALUES[1:2, 2:4, 3])


def test_records_texts_and_scalars() -> None:
    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
    array = zarrfs.create_array(MemoryStore(), data=records, chunks=(1,))
    assert array[(1,)] == records[1]
    assert type(array[(1,)]) is np.void
    texts = zarrfs.create_array(MemoryStore(), shape=(2,), dtype="string", chunks=(2,))
    texts[...] = np.array(["a", "bc"], dtype=object)
    assert texts[(1,)] == "bc"
    assert zarrfs.create_array(MemoryStore(), data=np.array(5))[()] == 5


def test_changed_metadata_are_seen(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "a.zarr", shape=(2,), chunks=(2,), dtype="u2", fill_value=7)
    reader = zarrfs.open_array(tmp_path / "a.zarr", access=zarrfs.Access(recheck_metadata=True))
    array.resize((5,))
    assert reader[(4,)] == 7
