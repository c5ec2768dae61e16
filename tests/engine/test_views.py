"""Array views (casts and fields), iteration and checksums."""

from __future__ import annotations

import copy
import hashlib
import pickle
from pathlib import Path
from typing import Any

import dask.base
import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ReadOnlyError, SelectionError, UnsupportedError
from zarrfs.testing import CountingStore

NUMBERS = np.arange(60, dtype="i4").reshape(12, 5)
RECORDS = np.array([(i, i / 2, [i, i]) for i in range(7)], [("i", "<i4"), ("f", "<f8"), ("v", "<u1", (2,))])

ZARRAY = """{
    "chunks": [
        1000,
        1000
    ],
    "compressor": {
        "blocksize": 0,
        "clevel": 5,
        "cname": "lz4",
        "id": "blosc",
        "shuffle": 1
    },
    "dtype": "<f8",
    "fill_value": %s,
    "filters": null,
    "order": "C",
    "shape": [
        10000,
        10000
    ],
    "zarr_format": 2
}"""


def test_a_cast_view_reads_on_access_and_casts_like_numpy() -> None:
    store = CountingStore(MemoryStore())
    view = zarrfs.create_array(store, data=NUMBERS, chunks=(4, 5), cache_size=0).astype("f4")
    before = store.calls["get"]
    assert (view.shape, view.ndim, view.size, view.chunks, len(view)) == ((12, 5), 2, 60, (4, 5), 12)
    assert (view.dtype, view.nbytes) == (np.dtype("f4"), 240)
    assert store.calls["get"] == before
    assert view[5].dtype == np.dtype("f4")
    assert store.calls["get"] == before + 1
    assert np.array_equal(view[2:9, ::2], NUMBERS[2:9, ::2])
    assert isinstance(view[3, 3], np.float32)
    assert np.asarray(view).dtype == np.dtype("f4")
    assert np.array_equal(np.asarray(view, "u1"), NUMBERS.astype("u1"))
    assert np.array_equal(list(view), NUMBERS)
    assert np.array_equal(view.get_selection("orthogonal", ([1, 3], slice(2))), NUMBERS[[1, 3], :2])
    assert view.astype("i8")[1, 1] == 6
    with pytest.raises(ReadOnlyError, match="casts"):
        view[0] = 1
    with pytest.raises(ValueError, match="copy"):
        np.array(view, copy=False)


def test_a_field_view_is_read_and_written() -> None:
    array = zarrfs.create_array(MemoryStore(), data=RECORDS, chunks=(3,), zarr_format=2)
    field = array.field("f")
    assert field.dtype == np.dtype("f8")
    assert np.array_equal(field[1:6:2], RECORDS["f"][1:6:2])
    assert np.array_equal(list(field), RECORDS["f"])
    field[2:4] = [9.5, 8.5]
    assert array["f"].tolist() == [0, 0.5, 9.5, 8.5, 2, 2.5, 3]
    assert array["i"].tolist() == list(range(7))
    assert field.astype("i1")[2] == 9
    some = array.field(["i", "f"])
    assert some[1].dtype == some.dtype
    assert some[1].tolist() == (1, 0.5)
    assert array.field(["i"])[4].tolist() == (4,)
    with pytest.raises(SelectionError, match="no field 'x'"):
        array.field("x")
    with pytest.raises(SelectionError, match="array of shape"):
        array.field("v")


def test_islice_decodes_each_chunk_once() -> None:
    store = CountingStore(MemoryStore())
    array = zarrfs.create_array(store, data=NUMBERS, chunks=(4, 5), cache_size=0)
    before = store.calls["get"]
    assert np.array_equal(list(array.islice(3, 9)), NUMBERS[3:9])
    assert store.calls["get"] == before + 3
    assert np.array_equal(list(array.islice(10)), NUMBERS[10:])
    assert np.array_equal(list(array.islice(end=99)), NUMBERS)
    assert list(array.islice(5, 2)) == []
    with pytest.raises(SelectionError, match="at least 0"):
        array.islice(-1)
    with pytest.raises(TypeError):
        zarrfs.create_array(MemoryStore(), shape=(), dtype="i4").islice()


@pytest.mark.parametrize(
    ("fill", "digest"),
    [
        ("null", "041f90bc7a571452af4f850a8ca2c6cddfa8a1ac"),
        ("0.0", "7162d416d26a68063b66ed1f30e0a866e4abed60"),
    ],
)
def test_the_digest_is_that_of_zarr_python_2(fill: str, digest: str) -> None:
    """The expected values are from the documentation of zarr-python 2."""
    array = zarrfs.open_array({".zarray": (ZARRAY % fill).encode()})
    assert array.hexdigest() == digest
    assert array.digest() == bytes.fromhex(digest)


@pytest.mark.parametrize("zarr_format", [2, 3, "n5", "draft2019"])
def test_the_digest_covers_chunks_and_then_documents(zarr_format: Any) -> None:
    store = MemoryStore()
    array = zarrfs.create_array(
        store, "a", data=NUMBERS + 1, chunks=(2, 5), attributes={"k": 1}, zarr_format=zarr_format
    )
    chunks = b"".join(bytes(store.get(array.storage.key((row, 0))) or b"") for row in range(6))
    documents = {
        2: ["a/.zarray", "a/.zattrs"],
        3: ["a/zarr.json"],
        "n5": ["a/attributes.json"],
        "draft2019": ["meta/root/a.array"],
    }[zarr_format]
    whole = chunks + b"".join(bytes(store.get(key) or b"") for key in documents)
    assert array.hexdigest("sha256") == hashlib.sha256(whole).hexdigest()
    before = array.hexdigest()
    array.attrs["k"] = 2
    changed = array.hexdigest()
    array[0, 0] = 99
    assert len({before, changed, array.hexdigest()}) == 3
    with pytest.raises(UnsupportedError, match="is not a known hash algorithm"):
        array.hexdigest("crc99")


def test_nodes_are_pickled_by_store_and_path(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g")
    array = group.create_array("a", data=NUMBERS, chunks=(4, 5))
    for node in (group, array):
        assert pickle.loads(pickle.dumps(node)) == node
        assert copy.deepcopy(node).path == node.path
    again = pickle.loads(pickle.dumps(array.astype("f8")))
    assert np.array_equal(again[...], NUMBERS)
    assert dask.base.tokenize(again) == dask.base.tokenize(array.astype("f8"))
    assert dask.base.tokenize(again) != dask.base.tokenize(array.astype("f4"))
