"""Arrays of rank 0 to 32, the limit of TensorStore, and 64, the limit of NumPy. A higher rank raises an error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore

RANKS = [*range(33), 48, 63, 64]
NUMPY_1 = int(np.__version__.partition(".")[0]) < 2

LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {},
    "v3, F order": {"order": "F"},
    "v3, shards": {"shards": True},
    "v3, keys of v2": {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}},
    "v2": {"zarr_format": 2},
    "v2, F order": {"zarr_format": 2, "order": "F"},
    "n5": {"zarr_format": "n5"},
    "draft2019": {"zarr_format": "draft2019"},
}


def shape_of(rank: int) -> tuple[int, ...]:
    """Up to four longer dimensions, at the ends and inside; all others have the length 1."""
    shape = [1] * rank
    for axis, length in ((0, 3), (rank // 2, 2), (rank - 1, 4), (rank // 3, 2)):
        if rank:
            shape[axis] = length
    return tuple(shape)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rank", RANKS)
def test_an_array_of_any_rank_is_created_read_and_written(rank: int, layout: str) -> None:
    if rank > 32 and NUMPY_1:
        pytest.skip("NumPy 1 has 32 dimensions at most")
    if rank == 0 and layout == "n5":
        with pytest.raises(zarrfs.UnsupportedError, match="without dimensions"):
            zarrfs.create_array({}, shape=(), dtype="i2", zarr_format="n5")
        return
    if rank == 64 and layout == "v3, shards":
        with pytest.raises(
            zarrfs.UnsupportedError, match="the index of shards of 64 dimensions has one more"
        ):
            zarrfs.create_array({}, shape=(1,) * 64, dtype="i2", chunks=1, shards=1)
        return
    shape = shape_of(rank)
    expected = np.arange(np.prod(shape, dtype=int), dtype="i2").reshape(shape)
    chunks = tuple(min(2, n) for n in shape)
    options = dict(LAYOUTS[layout])
    if options.pop("shards", False):
        options["shards"] = tuple(2 * n if n > 1 else 1 for n in chunks)
    store = MemoryStore()
    array = zarrfs.create_array(store, "a", shape=shape, dtype="i2", chunks=chunks, **options)
    array[...] = expected
    for again in (zarrfs.open_array(store, "a", "r+", cache_size=0), zarrfs.open_array(store, "a", "r+")):
        assert again.shape == shape
        assert np.array_equal(again[...], expected)
    for order in ("C", "F"):
        assert bytes(again.read_bytes(0, expected.nbytes, order)) == expected.tobytes(order)
        assert bytes(again.read_bytes(3, 9, order)) == expected.tobytes(order)[3:12]
    _select_and_assign(again, expected, again.shards or chunks)
    if rank:
        again.resize((shape[0] + 2, *shape[1:]))
        again.append(np.full((1, *shape[1:]), 8, "i2"))
        expected = np.concatenate(
            [expected, np.zeros((2, *shape[1:]), "i2"), np.full((1, *shape[1:]), 8, "i2")]
        )
    assert np.array_equal(np.asarray(again), expected)
    assert np.array_equal(zarrfs.open_array(store, "a", cache_size=0)[...], expected)


def _select_and_assign(array: zarrfs.Array, expected: np.ndarray[Any, Any], blocks: tuple[int, ...]) -> None:
    """Read and write the array and its NumPy counterpart with all kinds of selections."""
    shape, rank = array.shape, array.ndim
    backwards = (slice(None, None, -1),) * rank
    first = (slice(0, 1),) * rank
    last = (-1,) * rank
    assert np.array_equal(array[backwards], expected[backwards])
    assert array[last] == expected[last]
    array[first] = expected[first] = 70
    array[last] = expected[last] = 71
    if rank:
        edges = tuple(slice((n - 1) // c * c, n) for n, c in zip(shape, blocks, strict=True))
        assert np.array_equal(array.blocks[last], expected[edges])
        array.blocks[last] = expected[edges] = 72
    if rank == 64:
        return  # NumPy indexes by 63 arrays at most.
    mask = expected % 3 == 1
    assert np.array_equal(array.get_mask_selection(mask), expected[mask])
    array.set_mask_selection(mask, 73)
    expected[mask] = 73
    outer = tuple([n - 1, 0][:n] for n in shape)
    assert np.array_equal(array.oindex[outer], expected[np.ix_(*outer)])
    array.oindex[outer] = 74
    expected[np.ix_(*outer)] = 74
    if rank:
        points = tuple([n - 1, 0] for n in shape)
        assert np.array_equal(array.vindex[points], expected[points])
        array.vindex[points] = expected[points] = [75, 76]


@pytest.mark.parametrize("rank", [65, 100, 5000])
def test_more_dimensions_than_numpy_supports_raise_an_error(rank: int) -> None:
    ones = [1] * rank
    documents: dict[str, dict[str, Any]] = {
        "zarr.json": {
            "zarr_format": 3,
            "node_type": "array",
            "shape": ones,
            "data_type": "int8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": ones}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 0,
            "codecs": ["bytes"],
        },
        ".zarray": {
            "zarr_format": 2,
            "shape": ones,
            "chunks": ones,
            "dtype": "|i1",
            "compressor": None,
            "filters": None,
            "fill_value": 0,
            "order": "C",
        },
        "attributes.json": {
            "dimensions": ones,
            "blockSize": ones,
            "dataType": "int8",
            "compression": {"type": "raw"},
        },
    }
    for name, document in documents.items():
        with pytest.raises(zarrfs.MetadataError, match=f"at most 64 dimensions, found {rank}"):
            zarrfs.open_array({name: json.dumps(document).encode()})
    for zarr_format in (2, 3, "n5", "draft2019"):
        store: dict[str, bytes] = {}
        with pytest.raises(zarrfs.MetadataError, match=f"at most 64 dimensions, found {rank}"):
            zarrfs.create_array(store, shape=ones, dtype="i1", zarr_format=zarr_format)
        assert not store
