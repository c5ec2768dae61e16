"""Chunks of remote stores are prefetched: requested before they are read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import WebServer, web_server
from tests.processes import TIMEOUT
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.remote.http import HTTPBackend
from zarrfs.engine.stores.remote.request_limit import START_REQUESTS, ServerLimit
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.errors import ChunkDecodeError, MissingChunkError, StoreError

DATA = np.arange(24 * 20, dtype="u2").reshape(24, 20)
KEYS = [f"a.zarr/c/{i}/{j}" for i in range(6) for j in range(4)]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    codecs = ["bytes", {"name": "zstd", "configuration": {"level": 1, "checksum": False}}]
    array = zarrfs.create_array(
        tmp_path / "a.zarr", shape=DATA.shape, chunks=(4, 5), dtype="u2", fill_value=9, codecs=codecs
    )
    array[...] = DATA
    with web_server(tmp_path) as server:
        yield server


def opened(web: WebServer, **options: Any) -> zarrfs.Array:
    return zarrfs.open_array(f"{web.url}/a.zarr", mode="r", **options)


def chunk_requests(web: WebServer) -> dict[str, int]:
    return {path[1:]: count for path, count in web.requests.items() if "/c/" in path}


@pytest.fixture
def separate_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that are read without having been requested before."""
    keys: list[str] = []
    get = RemoteStore.get

    def recorded(store: RemoteStore, key: str) -> Any:
        keys.append(key)
        return get(store, key)

    monkeypatch.setattr(RemoteStore, "get", recorded)
    return keys


def test_all_chunks_are_requested_before_the_first_response(
    web: WebServer, separate_reads: list[str]
) -> None:
    arrived = threading.Barrier(len(KEYS))
    with opened(web, cache_size=0).store as store:
        array = zarrfs.open_array(store, mode="r", cache_size=0)
        web.before_response = lambda path: arrived.wait(TIMEOUT)
        np.testing.assert_array_equal(array[...], DATA)
    assert chunk_requests(web) == dict.fromkeys(KEYS, 1)
    assert separate_reads == []


@pytest.mark.parametrize(
    "selection", [np.s_[1:23, 3:19], np.s_[:, 7], np.s_[::5, ::-1], np.s_[2, :]], ids=str
)
def test_parts_of_chunks_are_read_from_requested_chunks(
    web: WebServer, selection: Any, separate_reads: list[str]
) -> None:
    for options in ({"cache_size": 0}, {}):
        array = opened(web, **options)
        np.testing.assert_array_equal(array[selection], DATA[selection])
        array.store.close()
    assert separate_reads == []


def test_cached_chunks_are_not_requested(web: WebServer) -> None:
    array = opened(web, cache_size=1 << 20)
    np.testing.assert_array_equal(array[:8], DATA[:8])
    web.reset()
    np.testing.assert_array_equal(array[...], DATA)
    assert chunk_requests(web) == dict.fromkeys(KEYS[8:], 1)
    web.reset()
    np.testing.assert_array_equal(array[...], DATA)
    assert not web.requests
    array.store.close()


def test_missing_and_broken_chunks(web: WebServer) -> None:
    (web.folder / KEYS[5]).unlink()
    expected = DATA.copy()
    expected[4:8, 5:10] = 9
    for options in ({}, {"cache_size": 0}, {"access": zarrfs.Access(concurrency=1)}):
        array = opened(web, **options)
        np.testing.assert_array_equal(array[...], expected)
        array.store.close()
    strict = opened(web, access=zarrfs.Access(fill_missing=False))
    with pytest.raises(MissingChunkError, match="chunk \\(1, 1\\)"):
        strict[...]
    strict.store.close()
    (web.folder / KEYS[6]).write_bytes(b"broken")
    array = opened(web)
    with pytest.raises(ChunkDecodeError, match="chunk \\(1, 2\\)"):
        array[...]
    np.testing.assert_array_equal(array[8:], expected[8:])
    array.store.close()
    errors: list[Exception] = []
    lenient = opened(web, access=zarrfs.Access(on_corrupt=errors.append))
    expected[4:8, 10:15] = 9
    np.testing.assert_array_equal(lenient[...], expected)
    assert len(errors) == 1
    lenient.store.close()


def test_an_error_of_one_request_is_that_of_the_read(web: WebServer) -> None:
    array = opened(web, cache_size=0)
    web.status_for = lambda path: 500 if path.endswith("c/3/1") else None
    with pytest.raises(StoreError, match="c/3/1 cannot be read: 500"):
        array[...]
    web.status_for = lambda path: None
    web.truncate_for = lambda path: 3 if path.endswith("c/3/2") else None
    with pytest.raises(StoreError, match="c/3/2 cannot be read"):
        array[...]
    web.truncate_for = lambda path: None
    np.testing.assert_array_equal(array[...], DATA)
    array.store.close()


@pytest.mark.parametrize("count", [2, 5])
def test_the_number_of_values_that_wait_is_limited(web: WebServer, count: int) -> None:
    lock = threading.Lock()
    arrived = taken = max_waiting = 0

    def arrive(path: str) -> None:
        nonlocal arrived, max_waiting
        with lock:
            arrived += 1
            max_waiting = max(max_waiting, arrived - taken)

    web.before_response = arrive
    with RemoteStore(web.url, read_only=True) as store:
        context = store.prefetch(KEYS, count)
        assert context is not None
        with context as values:
            for key in KEYS:
                with lock:
                    taken += 1
                assert values.get(key) == (web.folder / key).read_bytes()
    assert arrived == len(KEYS)
    assert max_waiting <= count


def test_values_are_read_once_and_other_keys_separately(web: WebServer) -> None:
    with RemoteStore(web.url, read_only=True) as store:
        context = store.prefetch([*KEYS[:2], "a.zarr/missing"], 3)
        assert context is not None
        with context as values:
            assert values.get(KEYS[3]) == store.get(KEYS[3])
            assert values.get("a.zarr/missing") is None
            first = (web.folder / KEYS[0]).read_bytes()
            out = bytearray(len(first))
            assert values.get_into(KEYS[0], memoryview(out)) == len(first)
            assert bytes(out) == first
            assert values.get(KEYS[0]) == first
            assert values.size(KEYS[0]) == len(first)
    assert chunk_requests(web)[KEYS[0]] == 3


def test_requests_that_are_left_are_cancelled(web: WebServer) -> None:
    released = threading.Event()
    web.before_response = lambda path: path.endswith("c/0/0") or released.wait(TIMEOUT)
    with RemoteStore(web.url, read_only=True) as store:
        context = store.prefetch(KEYS, 4)
        assert context is not None
        with context as values:
            assert values.get(KEYS[0]) is not None
        released.set()
        assert store.get(KEYS[1]) == (web.folder / KEYS[1]).read_bytes()
    assert set(web.requests) <= {f"/{key}" for key in KEYS[:5]}


def test_stores_without_latency_prefetch_nothing(tmp_path: Path) -> None:
    assert zarrfs.create_array(tmp_path / "b.zarr", shape=(4,), dtype="u1").store.prefetch(["c/0"], 2) is None
    assert RemoteStore("memory://requested").prefetch(["c/0"], 2) is None


def test_a_subclass_that_reads_other_values_prefetches_nothing(web: WebServer) -> None:
    class Empty(RemoteStore):
        def get_within(self, key: str, max_nbytes: int | None) -> None:
            return None

    with Empty(f"{web.url}/a.zarr", read_only=True) as store:
        assert store.prefetch(["c/0/0"], 2) is None
        array = zarrfs.open_array(store, mode="r", cache_size=0)
        assert (array[...] == 9).all()


def test_references_are_read_without_requests_in_advance(web: WebServer, tmp_path: Path) -> None:
    references = {"version": 1, "refs": {"a/zarr.json": [f"{web.url}/a.zarr/zarr.json"]}}
    references["refs"] |= {key.replace("a.zarr", "a"): [f"{web.url}/{key}"] for key in KEYS}  # type: ignore[operator]
    options = {"fo": references, "remote_protocol": "http"}
    array = zarrfs.open_array("reference://", "a", mode="r", storage_options=options, allow_external=True)
    np.testing.assert_array_equal(array[...], DATA)
    array.store.close()


@pytest.mark.parametrize("limit", [None, 8])
def test_the_requests_of_a_store_are_limited(
    limit: int | None, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of values, chunks that are prefetched, and chunks that threads read, all at the same time."""
    count = limit or START_REQUESTS
    monkeypatch.setattr(ServerLimit, "end_request", lambda *arguments, **options: None)  # The limit stays.
    lock, is_full = threading.Lock(), threading.Event()
    waiting, found, sent, most_sent = 0, 0, 0, 0
    ranges = [ByteRange(start, 1) for start in range(40)]
    (web.folder / "a.zarr" / "value").write_bytes(bytes(range(40)))

    def hold(path: str) -> None:
        nonlocal waiting, found
        with lock:
            waiting += 1
            found = max(found, waiting)
            if waiting >= count:
                is_full.set()
        assert is_full.wait(TIMEOUT)
        with lock:
            waiting -= 1

    request_range = HTTPBackend._receive_range

    async def counted(backend: HTTPBackend, url: str, byte_range: ByteRange, size: Any) -> Any:
        nonlocal sent, most_sent
        sent += 1
        most_sent = max(most_sent, sent)
        try:
            return await request_range(backend, url, byte_range, size)
        finally:
            sent -= 1

    monkeypatch.setattr(HTTPBackend, "_receive_range", counted)
    array = opened(web, access=zarrfs.Access(concurrency=limit), cache_size=0)
    store = array.store
    others = [zarrfs.open_array(store, mode="r", cache_size=0) for _ in range(4)]
    web.before_response = hold
    with ThreadPoolExecutor(8) as pool:
        values = [pool.submit(store.get_ranges, "value", ranges) for _ in others]
        results = [pool.submit(other.__getitem__, ...) for other in others]
        for value in values:
            assert b"".join(value.result()) == bytes(range(40))
        for result in results:
            np.testing.assert_array_equal(result.result(), DATA)
    store.close()
    assert found == count
    assert most_sent <= count
