"""Reading and writing of arrays compared with NumPy, for all formats, with codecs and shards."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrfs
from tests.documents import blosc
from tests.processes import TIMEOUT
from tests.threads import run_in_threads
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, ChunkEncodeError, ReadOnlyError, SelectionError
from zarrfs.testing import CountingStore

GZIP = {"name": "gzip", "configuration": {"level": 1}}


LAYOUTS: dict[str, dict[str, Any]] = {
    "v2": {"zarr_format": 2, "chunks": (3, 4, 5), "compressors": {"id": "zlib", "level": 1}},
    "v2 order F": {"zarr_format": 2, "chunks": (3, 4, 5), "order": "F", "compressors": None},
    "v2 filters": {"zarr_format": 2, "chunks": (3, 4, 5), "filters": [{"id": "delta", "dtype": "<i4"}]},
    "v3 plain": {"chunks": (3, 4, 5), "compressors": None},
    "v3 gzip": {"chunks": (3, 4, 5), "compressors": GZIP},
    "v3 blosc": {"chunks": (3, 4, 5), "compressors": blosc(typesize=4, blocksize=256)},
    "v3 order F": {"chunks": (3, 4, 5), "order": "F"},
    "v3 one chunk": {"chunks": False},
    "v3 shards": {"chunks": (3, 2, 5), "shards": (6, 8, 5), "compressors": GZIP},
    "v3 shards plain": {"chunks": (1, 2, 5), "shards": (4, 8, 10), "compressors": None},
    "v3 shards order F": {"chunks": (3, 3, 3), "shards": (6, 9, 6), "order": "F"},
}
SHAPE = (7, 9, 11)
NUMBERS = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE) % 97


def make(layout: str, cache_size: int | None = None, data: np.ndarray = NUMBERS) -> zarrfs.Array:
    return zarrfs.create_array(MemoryStore(), "a", data=data, cache_size=cache_size, **LAYOUTS[layout])


@pytest.mark.parametrize("cache_size", [0, None])
@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
def test_reading_agrees_with_numpy(layout: str, cache_size: int | None, data: st.DataObject) -> None:
    array = _arrays.setdefault((layout, cache_size), make(layout, cache_size))
    index = data.draw(hnp.basic_indices(SHAPE, allow_newaxis=False))
    np.testing.assert_array_equal(array[index], NUMBERS[index])
    points = data.draw(hnp.integer_array_indices(SHAPE))
    np.testing.assert_array_equal(array.vindex[points], NUMBERS[points])
    rows = data.draw(st.lists(st.integers(-7, 6), max_size=5))
    np.testing.assert_array_equal(
        array.oindex[rows, 2:8, 3], NUMBERS[rows][:, 2:8, 3] if rows else NUMBERS[:0, 2:8, 3]
    )


_arrays: dict[Any, zarrfs.Array] = {}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
def test_writing_agrees_with_numpy(layout: str, data: st.DataObject) -> None:
    array = make(layout)
    expected = NUMBERS.copy()
    for value in range(1000, 1004):
        if data.draw(st.booleans()):
            index = data.draw(hnp.basic_indices(SHAPE, allow_newaxis=False))
            values = np.arange(expected[index].size, dtype="i4").reshape(expected[index].shape) + value
            written = values if data.draw(st.booleans()) else value
            array[index] = written
            expected[index] = written
        else:
            points = data.draw(hnp.integer_array_indices(SHAPE))
            array.vindex[points] = value
            expected[points] = value
        np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
def test_any_range_of_the_byte_stream_can_be_read(layout: str, data: st.DataObject) -> None:
    array = _arrays.setdefault((layout, 0), make(layout, 0))
    offset = data.draw(st.integers(0, NUMBERS.nbytes + 5))
    size = data.draw(st.integers(0, NUMBERS.nbytes + 5))
    for order in ("C", "F"):
        expected = NUMBERS.tobytes(order)[offset : offset + size]
        assert bytes(array.read_bytes(offset, size, order)) == expected
        buffer = bytearray(size)
        assert array.read_bytes_into(offset, buffer, order) == len(expected)
        assert bytes(buffer[: len(expected)]) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_masks_blocks_and_index_arrays_are_read_and_written(layout: str) -> None:
    array = make(layout)
    mask = NUMBERS % 3 == 0
    np.testing.assert_array_equal(array[mask], NUMBERS[mask])
    expected = NUMBERS.copy()
    array[mask] = -1
    expected[mask] = -1
    rows, columns = [0, 5], [1, 1, 8]
    array.oindex[rows, :, columns] = np.arange(2 * 9 * 3).reshape(2, 9, 3)
    expected[np.ix_(rows, range(9), columns)] = np.arange(2 * 9 * 3).reshape(2, 9, 3)
    array[[1, 3]] = 7
    expected[[1, 3]] = 7
    np.testing.assert_array_equal(array[...], expected)
    corner = array.blocks[0, 0, 0]
    np.testing.assert_array_equal(corner, expected[tuple(slice(0, n) for n in corner.shape)])
    array.blocks[-1, :, 0] = 5
    assert (array.blocks[-1, :, 0] == 5).all()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 0, 4)])
def test_scalar_and_empty_arrays_are_read_and_written(shape: tuple[int, ...], zarr_format: int) -> None:
    array = zarrfs.create_array(MemoryStore(), shape=shape, dtype="f4", fill_value=3, zarr_format=zarr_format)
    np.testing.assert_array_equal(array[...], np.full(shape, 3, "f4"))
    array[...] = 7
    np.testing.assert_array_equal(array[...], np.full(shape, 7, "f4"))
    assert bytes(array.read_bytes(0, 100)) == np.full(shape, 7, "f4").tobytes()
    if shape == ():
        assert array[()] == 7
        assert isinstance(array[()], np.float32)
        array[()] = 8
        assert array.vindex[()].shape == ()
        assert float(array[...]) == 8


def test_fields_of_records_are_read_and_written() -> None:
    dtype = np.dtype([("x", "<i4"), ("y", "<f8", (2,))])
    data = np.zeros(10, dtype)
    data["x"] = range(10)
    data["y"][:, 1] = 0.5
    array = zarrfs.create_array(MemoryStore(), data=data, chunks=3, zarr_format=2)
    np.testing.assert_array_equal(array["x"], data["x"])
    np.testing.assert_array_equal(array["y", 2:5], data["y"][2:5])
    np.testing.assert_array_equal(array[["x"]]["x"], data["x"])
    array["x"] = 5
    data["x"] = 5
    np.testing.assert_array_equal(array[...], data)
    with pytest.raises(SelectionError, match="no field"):
        array["z"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_variable_length_strings_are_read_and_written(zarr_format: int) -> None:
    words = np.array(["a", "", "größer", "x" * 1000, "z"], object)
    array = zarrfs.create_array(MemoryStore(), data=words, dtype="string", chunks=2, zarr_format=zarr_format)
    assert array[...].tolist() == words.tolist()
    assert array[3] == "x" * 1000
    array[1] = "new"
    assert array[0:2].tolist() == ["a", "new"]
    with pytest.raises(SelectionError, match="no flat byte stream"):
        array.read_bytes(0, 1)


def test_a_read_only_array_refuses_all_writes() -> None:
    store = MemoryStore()
    zarrfs.create_array(store, "a", data=NUMBERS)
    array = zarrfs.open_array(store, "a")
    for write in (
        lambda: array.__setitem__(0, 1),
        lambda: array.attrs.update(a=1),
        lambda: array.resize((1, 1, 1)),
        lambda: array.append(NUMBERS),
    ):
        with pytest.raises(ReadOnlyError, match=r"r\+"):
            write()
    np.testing.assert_array_equal(array[...], NUMBERS)


def test_values_that_do_not_fit_are_refused_and_nothing_is_written() -> None:
    array = make("v3 gzip")
    with pytest.raises(SelectionError, match="do not match a selection of shape"):
        array[0] = np.zeros(5)
    with pytest.raises(ChunkEncodeError, match="cannot be stored as int32"):
        array[0] = "word"
    np.testing.assert_array_equal(array[...], NUMBERS)


def test_resize_and_append_change_shape_and_stored_chunks() -> None:
    array = make("v3 gzip")
    array.append(NUMBERS[:2])
    assert array.shape == (9, 9, 11)
    np.testing.assert_array_equal(array[7:], NUMBERS[:2])
    array.append(NUMBERS[:, :1][:, :, :].repeat(9, axis=0)[:9, :1], axis=1)
    assert array.shape == (9, 10, 11)
    before = array.nshards_initialized
    array.resize(3, 4, 5)
    assert array.nshards_initialized == 1 < before
    array.resize((6, 4, 5))
    assert (array[3:] == 0).all()
    np.testing.assert_array_equal(array[:3], NUMBERS[:3, :4, :5])
    assert zarrfs.open_array(array.store, "a").shape == (6, 4, 5)
    array.resize(new_shape=(2, 4, 5))
    assert array.shape == (2, 4, 5)
    with pytest.raises(SelectionError, match="expected 3 integers"):
        array.resize(2, new_shape=(2, 4, 5))
    with pytest.raises(SelectionError):
        array.resize(3)
    with pytest.raises(SelectionError):
        array.append(np.zeros((1, 2, 3)))


# -- the requests of a read ----------------------------------------------------------------------------------------


def counted(**options: Any) -> tuple[zarrfs.Array, CountingStore]:
    inner = MemoryStore()
    zarrfs.create_array(inner, "a", **options)
    store = CountingStore(inner)
    array = zarrfs.open_array(store, "a")
    store.reset()
    return array, store


def test_reading_a_plane_of_an_uncompressed_chunk_reads_only_its_bytes() -> None:
    data = np.arange(64**3, dtype="u2").reshape(64, 64, 64)
    array, store = counted(data=data, chunks=(64, 64, 64), compressors=None)
    np.testing.assert_array_equal(array[5], data[5])
    assert store.bytes_read == 64 * 64 * 2
    store.reset()
    np.testing.assert_array_equal(array[:, 7:9], data[:, 7:9])
    assert store.bytes_read <= data.nbytes, "adjacent byte ranges are read as one"
    array, store = counted(data=data[:4].repeat(8, 1), chunks=(4, 512, 64), compressors=None)
    np.testing.assert_array_equal(array[:, 7:9], data[:4].repeat(8, 1)[:, 7:9])
    assert store.bytes_read == 4 * 2 * 64 * 2


def test_reading_an_inner_chunk_reads_only_the_index_and_its_bytes() -> None:
    data = np.random.default_rng(0).integers(0, 1000, (64, 64), "u2")
    array, store = counted(data=data, chunks=(8, 8), shards=(64, 64), compressors=None)
    np.testing.assert_array_equal(array[8:16, 16:24], data[8:16, 16:24])
    assert store.bytes_read == 64 * 16 + 4 + 8 * 8 * 2
    store.reset()
    np.testing.assert_array_equal(array[9, 17], data[9, 17])
    assert store.bytes_read == 0, "the index and the inner chunk are cached"
    np.testing.assert_array_equal(array[63, 63], data[63, 63])
    assert store.bytes_read == 8 * 8 * 2, "the index is read once"


def test_reading_most_of_a_shard_takes_one_request() -> None:
    data = np.random.default_rng(0).integers(0, 1000, (64, 64), "u2")
    array, store = counted(data=data, chunks=(8, 8), shards=(64, 64))
    np.testing.assert_array_equal(array[...], data)
    assert sum(store.calls[name] for name in ("get", "get_into", "get_ranges")) <= 2


def test_reading_a_plane_of_a_blosc_chunk_reads_only_its_blocks() -> None:
    data = np.random.default_rng(0).integers(0, 60000, (64, 128, 128), "u2")
    array, store = counted(data=data, chunks=(64, 128, 128), compressors=blosc(typesize=2, blocksize=8192))
    np.testing.assert_array_equal(array[5], data[5])
    assert store.bytes_read < data.nbytes / 8
    store.reset()
    for plane in range(6, 9):
        np.testing.assert_array_equal(array[plane], data[plane])
    assert store.bytes_read < data.nbytes / 4
    store.reset()
    np.testing.assert_array_equal(array[9], data[9])
    assert store.bytes_read > data.nbytes / 2, (
        "after parts that count as half of the chunk, it is decoded whole"
    )
    store.reset()
    np.testing.assert_array_equal(array[10:40], data[10:40])
    assert store.bytes_read == 0


def test_a_sequential_pass_over_the_byte_stream_decodes_each_chunk_once() -> None:
    data = np.arange(40 * 40 * 40, dtype="u2").reshape(40, 40, 40)
    array, store = counted(data=data, chunks=(20, 20, 20), compressors=GZIP)
    step = 1000
    stream = b"".join(bytes(array.read_bytes(at, step)) for at in range(0, data.nbytes, step))
    assert stream == data.tobytes()
    assert store.calls["get"] == 8


def test_nothing_is_cached_with_cache_size_0() -> None:
    inner = MemoryStore()
    zarrfs.create_array(inner, "a", data=NUMBERS, chunks=(3, 4, 5), compressors=GZIP)
    store = CountingStore(inner)
    array = zarrfs.open_array(store, "a", cache_size=0)
    for _ in range(3):
        store.reset()
        assert array[0, 0, 0] == NUMBERS[0, 0, 0]
        assert store.calls["get"] == 1


def test_changes_through_another_handle_are_visible() -> None:
    store = MemoryStore()
    one = zarrfs.create_array(store, "a", data=NUMBERS, chunks=(3, 4, 5))
    other = zarrfs.open_array(store, "a", "r+")
    assert one[0, 0, 0] == other[0, 0, 0] == NUMBERS[0, 0, 0]
    for value in (5, 6):
        other[0, 0, 0] = value
        assert one[0, 0, 0] == value
        one[0, 0, 1] = value
        assert other[0, 0, 1] == value


def test_concurrent_readers_decode_a_chunk_once() -> None:
    class Gated(MemoryStore):
        def get(self, key: str) -> Any:
            if key.endswith("c/0/0/0"):
                entered.set()
                gate.wait(TIMEOUT)
            return super().get(key)

    entered, gate = threading.Event(), threading.Event()
    gate.set()
    inner = Gated()
    zarrfs.create_array(inner, "a", data=NUMBERS, chunks=(7, 9, 11), compressors=GZIP)
    store = CountingStore(inner)
    array = zarrfs.open_array(store, "a")
    gate.clear()
    entered.clear()
    store.reset()
    results: list[Any] = []
    first = threading.Thread(target=lambda: results.append(array[0, 0, 0]))
    first.start()
    assert entered.wait(TIMEOUT)
    rest = [threading.Thread(target=lambda: results.append(array[1, 1, 1])) for _ in range(4)]
    for thread in rest:
        thread.start()
    gate.set()
    for thread in [first, *rest]:
        thread.join()
    assert sorted(results) == sorted([NUMBERS[0, 0, 0], *[NUMBERS[1, 1, 1]] * 4])
    assert store.calls["get"] == 1


def test_concurrent_writes_to_one_chunk_are_all_kept() -> None:
    for options in ({"compressors": GZIP}, {"shards": (40, 40)}):
        array = zarrfs.create_array(MemoryStore(), shape=(40, 40), dtype="i4", chunks=(20, 20), **options)

        def write(row: int, array: zarrfs.Array = array) -> None:
            for column in range(40):
                array[row, column] = row * 100 + column + 1

        run_in_threads(write, range(0, 40, 10))
        for row in range(0, 40, 10):
            np.testing.assert_array_equal(array[row], np.arange(40) + row * 100 + 1)


# -- missing and corrupt chunks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_missing_chunk_reads_as_the_fill_value(layout: str) -> None:
    array = zarrfs.create_array(MemoryStore(), shape=SHAPE, dtype="i4", fill_value=42, **LAYOUTS[layout])
    assert (array[...] == 42).all()
    assert array.nshards_initialized == 0
    array[...] = 42
    assert array.nshards_initialized == 0, "chunks that contain only the fill value are not stored"
    array[0, 0, 0] = 1
    assert array.nshards_initialized == 1
    array[0, 0, 0] = 42
    assert array.nshards_initialized == 0
    array.write_empty_chunks = True
    array[0, 0, 0] = 42
    assert array.nshards_initialized == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_error_for_a_truncated_chunk_names_its_key_and_coordinates(layout: str) -> None:
    array = make(layout, 0)
    key = sorted(k for k in array.store.list_prefix("a") if k.rpartition("/")[2][0].isdigit())[0]
    value = bytes(array.store.get(key) or b"")
    array.store.set(key, value[: len(value) // 2])
    with pytest.raises(ChunkDecodeError) as caught:
        array[...]
    message = str(caught.value)
    assert key in message
    assert "(0, 0, 0)" in message
    last = tuple(n - 1 for n in SHAPE)
    if layout != "v3 one chunk":
        assert array[last] == NUMBERS[last], "the other chunks can be read"


@pytest.mark.parametrize("shards", [None, (4,)])
def test_values_that_do_not_fit_raise_an_encode_error(shards: tuple[int, ...] | None) -> None:
    array = zarrfs.create_array({}, shape=(8,), dtype=str, chunks=(2,), shards=shards)
    array[...] = "a"
    with pytest.raises(zarrfs.ChunkEncodeError, match="expected a string"):
        array[1:3] = np.array([1, 2], object)
    assert array[...].tolist() == ["a"] * 8


@pytest.mark.parametrize(
    ("dtype", "fill"), [(">i2", -20361), ("S5", b"ab"), ("U6", "a"), (">M8[s]", 5), (">c16", 1j)]
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_that_contain_only_the_fill_value_are_not_stored(
    dtype: str, fill: Any, zarr_format: int
) -> None:
    array = zarrfs.create_array(
        {}, shape=(4, 4), chunks=(2, 2), dtype=dtype, fill_value=fill, zarr_format=zarr_format
    )
    array[...] = np.zeros((), array.dtype)
    assert array.nchunks_initialized == 4
    array[:2] = array.fill_value
    assert array.nchunks_initialized == 2
    array[2:] = np.full((2, 4), array.fill_value, array.dtype)
    assert array.nchunks_initialized == 0


@pytest.mark.parametrize("dtype", ["?", "u1", str])
def test_a_sharded_scalar_array_is_read_and_written(dtype: Any) -> None:
    array = zarrfs.create_array({}, shape=(), dtype=dtype, chunks=(), shards=())
    for value in (True, False):
        array.set_mask_selection(np.array(True), array.dtype.type(value) if dtype is not str else str(value))
        assert array[()] == (str(value) if dtype is str else value)


@pytest.mark.parametrize("codecs", [["bytes"], ["packbits"]])
def test_small_integers_have_the_bytes_of_ml_dtypes(codecs: list[str]) -> None:
    import ml_dtypes

    data = np.array([-8, -1, 0, 7]).astype(ml_dtypes.int4)
    array = zarrfs.create_array({}, shape=(4,), dtype="int4", codecs=codecs, chunks=(4,))
    array[...] = data
    assert bytes(array.read_bytes(0, 4)) == data.tobytes()


def test_a_changed_grid_of_equal_chunk_count_is_detected() -> None:
    store = MemoryStore()

    def create(edges: list[int], data: list[int]) -> None:
        grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [edges]}}
        zarrfs.create_array(store, data=np.array(data), chunks=grid, overwrite=True, codecs=["bytes"])

    create([2, 4], [1, 2, 3, 4, 5, 6])
    array = zarrfs.open_array(store, access=zarrfs.Access(recheck_metadata=True))
    assert array[...].tolist() == [1, 2, 3, 4, 5, 6]
    create([4, 2], [6, 5, 4, 3, 2, 1])
    assert array[...].tolist() == [6, 5, 4, 3, 2, 1]


def test_the_option_chunks_accepts_a_chunk_grid() -> None:
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, [2, 2]], 3]}}
    array = zarrfs.create_array({}, data=np.arange(20).reshape(5, 4), chunks=grid)
    assert array.chunks == ((1, 2, 2), (3, 3))
    assert array[1:4, 2:].tolist() == [[6, 7], [10, 11], [14, 15]]
    with pytest.raises(zarrfs.MetadataError, match="either shards or a chunk grid"):
        zarrfs.create_array({}, shape=(5, 4), dtype="u1", chunks=grid, shards=(5, 4))
    with pytest.raises(zarrfs.UnsupportedError, match="all chunks have the same shape"):
        zarrfs.create_array({}, shape=(5, 4), dtype="u1", chunks=grid, zarr_format=2)


def test_the_inner_chunks_of_shards_of_different_sizes_are_counted() -> None:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    sharding = {"chunk_shape": [1, 2], "codecs": [{"name": "bytes"}], "index_codecs": [little]}
    array = zarrfs.create_array(
        MemoryStore(),
        shape=(3, 9),
        dtype="u1",
        chunks={
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [[1, 4], [2, 4, 6]]},
        },
        codecs=[{"name": "sharding_indexed", "configuration": sharding}],
    )
    assert array.nchunks == 3 * 5
    array[1:, :3] = 1  # shard 1,0 with 2 x 1 inner chunks, and shard 1,1 with 2 x 2
    assert (array.nshards_initialized, array.nchunks_initialized) == (2, 6)
    array[...] = 1
    assert array.nchunks_initialized == array.nchunks
