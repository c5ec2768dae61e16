"""The limit of requests in progress, and large ranges, which are requested in parts of one version."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.object_server import ObjectServer, object_server
from tests.processes import TIMEOUT
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.remote import backend, http, object_backend
from zarrfs.engine.stores.remote.request_limit import (
    MAX_REQUESTS,
    MIN_REQUESTS,
    PROBE_ROUNDS,
    START_REQUESTS,
    RequestLimit,
    ServerLimit,
)
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.errors import ServerError, StoreError

# -- the limit of a server -------------------------------------------------------------------------------------


class Server:
    """A ServerLimit whose requests take the time that ``nbytes_per_second`` gives for the present limit."""

    def __init__(self) -> None:
        self.now = 0.0
        self.adaptive = ServerLimit(lambda: self.now)

    def finish_round(self, rate: float, *, others_wait: bool = True) -> int:
        """End as many requests as the limit permits, with ``rate`` bytes per second, and return the limit."""
        count, generation = self.adaptive.limit, self.adaptive.generation
        self.now += count / rate
        for _ in range(count):
            self.adaptive.end_request(generation, 1, is_overload=False, others_wait=others_wait)
        return self.adaptive.limit

    def fail(self, count: int = 1) -> int:
        generation = self.adaptive.generation
        for _ in range(count):
            self.adaptive.end_request(generation, 0, is_overload=True, others_wait=True)
        return self.adaptive.limit


def test_a_limit_is_raised_while_the_throughput_grows_with_it() -> None:
    server = Server()
    limits = [server.finish_round(rate=server.adaptive.limit) for _ in range(6)]
    assert limits[:2] == [96, 144]
    assert limits[-1] == MAX_REQUESTS


def test_a_limit_is_reduced_again_if_the_throughput_does_not_grow() -> None:
    server = Server()
    assert server.finish_round(rate=100) == 96
    assert server.finish_round(rate=101) == START_REQUESTS
    assert {server.finish_round(rate=100) for _ in range(PROBE_ROUNDS)} == {START_REQUESTS}
    assert server.finish_round(rate=100) == 96  # tried again


def test_a_limit_that_is_not_used_stays() -> None:
    server = Server()
    for _ in range(5):
        assert server.finish_round(rate=server.adaptive.limit, others_wait=False) == START_REQUESTS


def test_an_overloaded_server_gets_fewer_requests_and_then_slowly_more() -> None:
    server = Server()
    assert server.fail(START_REQUESTS) == START_REQUESTS // 2  # once for all requests in progress
    assert [server.fail() for _ in range(5)] == [16, 8, 4, MIN_REQUESTS, MIN_REQUESTS]
    server = Server()
    server.fail()
    limits = [server.finish_round(rate=server.adaptive.limit) for _ in range(40)]
    assert limits[0] == 48
    assert START_REQUESTS <= limits[-1] < MAX_REQUESTS
    assert max(np.diff([limit for limit in limits if limit >= START_REQUESTS - 16])) <= 16


# -- the limit of the process ----------------------------------------------------------------------------------


def test_stores_of_a_server_share_its_limit_and_get_places_in_turn() -> None:
    first, second, other = RequestLimit("a"), RequestLimit("a"), RequestLimit("b")
    second.reduce(2)
    with first.reserve(START_REQUESTS + 1) as number:
        assert number == START_REQUESTS
        with other.reserve(MAX_REQUESTS) as number:
            assert number == START_REQUESTS
        started = threading.Event()

        def wait() -> int:
            started.set()
            with second.reserve(5) as number:
                return number

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            assert started.wait(TIMEOUT)
            assert not waiting.done()
            first._release(1, -1, 0)
            assert waiting.result(TIMEOUT) == 1
            first._take(1)
    assert second.statistics.requests == 1
    assert first.statistics.in_progress == second.statistics.in_progress == 0


def test_requests_that_are_cancelled_while_they_wait_take_no_place() -> None:
    limit = RequestLimit("cancelled")
    limit.reduce(1)

    async def run() -> str:
        release = asyncio.Event()

        async def hold() -> bytes:
            await release.wait()
            return b"held"

        async def value() -> bytes:
            return b"value"

        holder = asyncio.ensure_future(limit.send(hold))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(limit.send(value)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        release.set()
        results = await asyncio.gather(holder, *waiting, return_exceptions=True)
        return " ".join(each.decode() if isinstance(each, bytes) else type(each).__name__ for each in results)

    assert asyncio.run(run()) == "held CancelledError value value"
    assert limit.statistics[:2] == (3, 14)
    assert limit.statistics.in_progress == 0


# -- servers ---------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with object_server("bucket") as opened:
        yield opened


@pytest.fixture(params=["s3", "http"])
def store(request: pytest.FixtureRequest, server: ObjectServer) -> Iterator[RemoteStore]:
    """A store on the server, by each transport."""
    options = {"endpoint_url": server.url, "key": "x", "secret": "x"}
    if request.param == "s3":
        opened = RemoteStore("s3://bucket/a", read_only=True, storage_options=options)
    else:
        opened = RemoteStore(f"{server.url}/bucket/a", read_only=True)
    with opened:
        yield opened


def test_a_server_that_refuses_requests_gets_fewer(server: ObjectServer, store: RemoteStore) -> None:
    server.buckets["bucket"]["a/value"] = b"value"
    server.status_for = lambda method, path: 503
    retrying = RetryStore(store, attempts=2, sleep=lambda seconds: None)
    with pytest.raises(ServerError, match="503"):
        retrying.get("value")
    limit = store._backend.limit
    assert limit.count == START_REQUESTS // 4
    assert len(server.requests) == 2  # The store repeats none below RetryStore.
    server.status_for = lambda method, path: None
    assert retrying.get("value") == b"value"
    assert retrying.request_statistics == (3, 5, 1, 0)


@pytest.mark.parametrize("url", ["memory://counted", "s3://bucket/a"])
def test_requests_and_bytes_are_counted(url: str, server: ObjectServer) -> None:
    options = {"endpoint_url": server.url, "key": "x", "secret": "x"} if url.startswith("s3") else None
    with RemoteStore(url, storage_options=options) as store:
        store.set("value", bytes(100))
        assert store.get("value") == bytes(100)
        assert PrefixStore(store, "below").get("value") is None
        assert store.request_statistics == (3, 200, 0, 0)
        assert store.get_ranges("value", [ByteRange(0, 7), ByteRange(-5)]) == [bytes(7), bytes(5)]
        assert store.request_statistics.nbytes == 212


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(backend, "PART_NBYTES", 1000)
    for module in (http, object_backend):
        monkeypatch.setattr(module, "MAX_UNDIVIDED_NBYTES", 1000)
    return 1000


def ranges_of(server: ObjectServer) -> list[str]:
    return [headers.get("range", "").removeprefix("bytes=") for headers in server.headers]


def test_a_large_range_is_requested_in_parts(
    server: ObjectServer, store: RemoteStore, small_parts: int
) -> None:
    value = np.random.default_rng(3).bytes(5500)
    server.buckets["bucket"]["a/value"] = value
    assert store.get_ranges("value", [ByteRange(0, 4)]) == [value[:4]]
    server.reset()
    assert store.get_ranges("value", [ByteRange(100, 3000), ByteRange(7, 2)]) == [value[100:3100], value[7:9]]
    assert sorted(ranges_of(server)) == ["100-1099", "1100-2099", "2100-3099", "7-8"]
    server.reset()
    # A range that exceeds the value ends with it.
    assert store.get_ranges("value", [ByteRange(3000, 90000)]) == [value[3000:]]
    assert sorted(ranges_of(server)) == ["3000-3999", "4000-4999", "5000-5499"]
    assert store.get_ranges("value", [ByteRange(6000, 90000)]) == [b""]
    assert store.get("value") == value
    store.limit_requests(1)
    assert store.get_ranges("value", [ByteRange(0, 5500)]) == [value]


def test_a_whole_shard_is_requested_in_parts(
    server: ObjectServer, store: RemoteStore, small_parts: int
) -> None:
    data = np.random.default_rng(4).integers(0, 60000, (60, 60), "u2")
    values = server.buckets["bucket"]
    memory: dict[str, Any] = {}
    zarrfs.create_array(memory, data=data, chunks=(10, 10), shards=(60, 60))
    values.update({f"a/{key}": bytes(value) for key, value in memory.items()})
    array = zarrfs.open_array(store, mode="r", cache_size=0)
    server.reset()
    np.testing.assert_array_equal(array[...], data)
    assert len(server.requests) == 1 + -(-len(values["a/c/0/0"]) // 1000)


@pytest.mark.parametrize("changes", [1, 1000])
def test_parts_of_different_versions_are_not_combined(
    changes: int, server: ObjectServer, store: RemoteStore, small_parts: int
) -> None:
    values = server.buckets["bucket"]
    values["a/value"] = bytes(4000)
    assert store.get_ranges("value", [ByteRange(0, 4)]) == [bytes(4)]
    numbers = itertools.count()

    def replace(path: str) -> None:
        if 1 <= (number := next(numbers)) <= changes:  # not before the first response
            values["a/value"] = number.to_bytes(2, "little") * (2000 - number)

    server.before_response = replace
    if changes == 1:
        assert store.get_ranges("value", [ByteRange(0, 4000)]) == [b"\1\0" * 1999]
    else:
        with pytest.raises(
            StoreError, match=r"value cannot be read: it is replaced each time.*try again later"
        ):
            store.get_ranges("value", [ByteRange(0, 4000)])


def test_a_large_value_is_requested_in_parts(server: ObjectServer, small_parts: int) -> None:
    value = np.random.default_rng(5).bytes(2500)
    server.buckets["bucket"] |= {"a/value": value, "a/empty": b"", "a/small": b"small"}
    options = {"endpoint_url": server.url, "key": "x", "secret": "x"}
    with RemoteStore("s3://bucket/a", storage_options=options) as store:
        assert store.get("value") == value
        assert sorted(ranges_of(server)) == ["0-999", "1000-1999", "2000-2499"]
        server.reset()
        assert store.get("small") == b"small"
        assert ranges_of(server) == ["0-999"]
        assert store.get("empty") == b""
        assert store.get("missing") is None
