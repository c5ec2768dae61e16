"""Single elements are read as ordinary selections are, by a shorter way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.indexing.selections import fancy_selection
from zarrfs.engine.io.elements import read_element
from zarrfs.engine.io.planning import ChunkPolicy, element_policy, plan_read
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


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), cache_size=st.sampled_from(CACHES))
def test_an_element_equals_that_of_numpy(layout: str, data: st.DataObject, cache_size: int) -> None:
    array = zarrfs.open_array(store_of(layout), cache_size=cache_size)
    for _ in range(4):
        index = tuple(data.draw(st.integers(-length, length - 1)) for length in VALUES.shape)
        value = array[index]
        assert (value, type(value)) == (VALUES[index], np.int32)
        general = array._get(fancy_selection, index)
        assert (value, type(value)) == (general, type(general))


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data(), cache_size=st.sampled_from(CACHES), is_filled=st.booleans())
def test_the_policy_is_that_of_the_plan(
    layout: str, data: st.DataObject, cache_size: int, is_filled: bool
) -> None:
    array = zarrfs.open_array(store_of(layout), cache_size=cache_size)
    if is_filled:
        array[0, 0, 0]
    index = tuple(data.draw(st.integers(0, length - 1)) for length in VALUES.shape)
    plan = plan_read(array.storage, fancy_selection(index, array.shape), array.dtype.itemsize)
    policy = element_policy(array.storage)
    names = list(ChunkPolicy.__annotations__)
    assert [getattr(policy, name) for name in names] == [getattr(plan, name) for name in names]


@pytest.mark.parametrize("index", [(7, 0, 0), (0, -6, 0), (0, 0, 10**30), (0, 0, 0, 0), (-8, 99, 0)])
def test_errors_are_those_of_ordinary_selections(index: tuple[int, ...]) -> None:
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
    assert array[np.int64(1), 2, 3] == VALUES[1, 2, 3]
    with pytest.raises(SelectionError):
        array[True, 0, 0]
    assert read_element(array.storage, (7, 0, 0)) is None


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
